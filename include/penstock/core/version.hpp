// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <string_view>

/// The only place where the version is written: the build system and the packages read it from here.
/// The inline namespace carries major and minor, so that two versions in one program are distinct
/// types.
namespace penstock::inline v0_1 {

/// The major version.
inline constexpr int version_major = 0;
/// The minor version: while the major version is 0, it may change everything.
inline constexpr int version_minor = 1;
/// The patch version.
inline constexpr int version_patch = 0;
/// The version as text.
inline constexpr std::string_view version = "0.1.0";

}  // namespace penstock::inline v0_1
