// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <initializer_list>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// Throws `errc::format`: the bytes are of none of the formats of these codecs. Says of which they are, or
/// how they begin.
[[noreturn, gnu::cold]] void refuse_image_format(bytes_view bytes,
                                                 std::initializer_list<std::string_view> codecs);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/known_formats.ipp>
#endif
