// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<zlib.h>)
#error "penstock/codec/unpack_gzip.hpp needs zlib: link penstock::zlib"
#endif

#include <penstock/codec/detail/inflate_stream.hpp>

namespace penstock::inline v0_1 {

/// gzip for sources that read forward: an unpacker for `webdataset_stream`.
///
/// In: pieces of a gzip file; consecutive members are read one after another. Out: pieces of the content.
/// Cost: zlib's own. Its memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage and for bytes after the last member that are not zeros;
/// `errc::checksum`.
/// Source: RFC 1952.
///
///     auto samples = webdataset_stream<unpack_gzip>("train-{0000..0127}.tar.gz");
struct unpack_gzip {
  static constexpr std::string_view unpacker_format = "gzip";

  using stream = detail::inflate_stream<true>;
};

}  // namespace penstock::inline v0_1
