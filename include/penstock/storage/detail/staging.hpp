// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/background_view.hpp>
#include <penstock/storage/object_check.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/stage_options.hpp>

#include <span>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail::staging {

/// A storage whose type is erased, connected. All of it must outlive the staging.
struct far_storage {
  template <class Session>
  far_storage(Session& connected, std::span<const std::string> its_names, bool are_paths,
              bool are_files) noexcept
      : session(connected),
        background(connected),
        names(its_names),
        paths(are_paths),
        files(are_files),
        self(&connected),
        end_reads([](void* s) noexcept { penstock::end_reads(*static_cast<Session*>(s)); }) {}

  session_view session;
  background_view background;
  std::span<const std::string> names;
  bool paths;  ///< whether the names are paths
  bool files;  ///< whether the objects are the files of these paths
  void* self;
  void (*end_reads)(void* self) noexcept;
};

/// Who is told how far it is: called by the thread that called `stage_to`.
struct stage_listener {
  void* self = nullptr;
  void (*call)(void* self, const stage_progress& now) = nullptr;
};

/// Copies all objects to a folder; returns their paths.
[[nodiscard]] std::vector<std::string> stage(const far_storage& far, const std::string& folder,
                                             const stage_options& options, const check_view& check,
                                             stage_listener listener);

}  // namespace detail::staging
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/detail/staging.ipp>
#endif
