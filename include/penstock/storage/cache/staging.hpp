// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/staged_object.hpp>
#include <penstock/storage/object_check.hpp>
#include <penstock/storage/stage_options.hpp>

#include <string>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::staging {

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
#include <penstock/storage/cache/staging.ipp>
#endif
