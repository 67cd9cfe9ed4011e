// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <string_view>

/// The one place where the version is written: the build system and the packages read it from here.
/// The inline namespace carries major and minor, so that two versions in one program are two types.
namespace penstock::inline v0_1 {

/// The first number of the version.
inline constexpr int version_major = 0;
/// The second: while the first is 0, it may change everything.
inline constexpr int version_minor = 1;
/// The third.
inline constexpr int version_patch = 0;
/// The three as a text.
inline constexpr std::string_view version = "0.1.0";

}  // namespace penstock::inline v0_1
