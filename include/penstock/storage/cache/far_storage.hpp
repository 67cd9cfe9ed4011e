// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/background_view.hpp>
#include <penstock/storage/session_view.hpp>

#include <span>
#include <string>

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

}  // namespace detail::staging
}  // namespace penstock::inline v0_1
