// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/session_view.hpp>

#include <span>
#include <string>

namespace penstock::inline v0_1 {
namespace detail::staging {

/// A storage whose type is erased, connected. All of it must outlive the staging.
struct far_storage {
  session_view session;
  std::span<const std::string> names;
  bool paths;  ///< whether the names are paths
  bool files;  ///< whether the objects are the files of these paths
};

}  // namespace detail::staging
}  // namespace penstock::inline v0_1
