// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <cstddef>
#include <string>

namespace penstock::inline v0_1 {
namespace detail {

/// The first bytes of a field as one readable, quoted word for a message: `"12x
/// "`; longer ones end in "...".
[[nodiscard, gnu::cold]] std::string quoted(bytes_view bytes, std::size_t maximum = 20);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/quoted.ipp>
#endif
