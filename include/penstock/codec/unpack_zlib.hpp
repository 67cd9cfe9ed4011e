// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<zlib.h>)
#error "penstock/codec/unpack_zlib.hpp needs zlib: link penstock::zlib"
#endif

#include <penstock/codec/detail/inflate_stream.hpp>

namespace penstock::inline v0_1 {

/// zlib streams for sources that read forward: an unpacker for `tfrecord_stream`, since TensorFlow writes
/// them. Nothing but the first record tells such a file from one that is not packed, so other sources do not
/// recognise them.
///
/// In: pieces of a zlib stream. Out: pieces of the content.
/// Cost: zlib's own. Its memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage, a stream with a dictionary, and bytes after its end; `errc::checksum`.
/// Source: RFC 1950.
///
///     const auto same = unpack_zlib::unpacker_format == "zlib";
struct unpack_zlib {
  static constexpr std::string_view unpacker_format = "zlib";

  using stream = detail::inflate_stream<false>;
};

}  // namespace penstock::inline v0_1
