// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::staging {

/// The files, relative to one folder, that objects with these names are copied to: what follows the folder
/// that all names have in common. Of URLs neither scheme nor query is part of it.
/// Throws errc::argument for a name that leaves the folder or has no place in it, and for two objects that
/// would have one.
[[nodiscard]] std::vector<std::string> staged_names(std::span<const std::string> names, bool are_paths);

}  // namespace detail::staging
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/staged_names.ipp>
#endif
