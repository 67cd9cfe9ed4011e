// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <initializer_list>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// What a file is by its first bytes, with an article: "a GIF image"; empty if they are not known. 512 bytes
/// are enough for all that is known.
[[nodiscard]] std::string_view known_format(bytes_view bytes) noexcept;

/// The error for a file that is not `wanted`, "a tar archive", and begins with `head`: says what it is if
/// that is known, and otherwise why it is not wanted.
[[nodiscard, gnu::cold]] error not_a(std::string_view wanted, bytes_view head,
                                     std::initializer_list<piece> why);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/core/known_formats.ipp>
#endif
