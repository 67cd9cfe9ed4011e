// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// The component and unpacker for a compression format. The names are empty if there is none.
struct packed_format {
  std::string_view format, component, unpacker;
};

[[nodiscard]] packed_format packed_format_of(std::string_view format) noexcept;

/// The name of the compression that the first bytes of a file show, or nothing.
[[nodiscard]] std::string_view compression_of(bytes_view head) noexcept;

/// Whether these may be the first bytes of a zlib stream, which has no certain mark.
[[nodiscard]] bool may_begin_zlib(bytes_view head) noexcept;

/// What tells a file that is not packed from one that is: the first bytes alone may not.
struct stream_kind {
  bool (*is_plain)(bytes_view head);  ///< whether these are the first bytes of a file that is not packed
  bool may_be_zlib;                   ///< whether files may be packed with zlib, which leaves no certain mark
  std::string_view (*compression)(bytes_view head) = &compression_of;
};

/// One sentence for a file whose compression the caller has no unpacker for: what to write to read it.
/// `before` and `after` are the text around the unpacker's name.
[[nodiscard]] std::string packed_advice(std::string_view format, std::string_view before,
                                        std::string_view after);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/packed_format.ipp>
#endif
