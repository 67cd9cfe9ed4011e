// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <string_view>

namespace penstock::inline v0_1::detail {

/// Whether a relative path stays within the folder it is relative to. A description must not lead to files
/// outside its folder.
[[nodiscard]] bool stays_in_folder(std::string_view path) noexcept;

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/folder_names.ipp>
#endif
