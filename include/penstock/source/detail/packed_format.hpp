// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The component and unpacker for a compression format. The names are empty if there is none.
struct packed_format {
  std::string_view format, component, unpacker;
};

[[nodiscard]] packed_format packed_format_of(std::string_view format) noexcept;

/// Whether these may be the first bytes of a zlib stream, which has no certain mark.
[[nodiscard]] bool may_begin_zlib(bytes_view head) noexcept;

/// One sentence for a file whose compression the caller has no unpacker for: what to write to read it.
/// `before` and `after` are the text around the unpacker's name.
[[nodiscard]] std::string packed_advice(std::string_view format, std::string_view before,
                                        std::string_view after);

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/packed_format.ipp>
#endif
