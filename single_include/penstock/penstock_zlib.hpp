// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component zlib. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<zlib.h>)
#error "penstock_zlib.hpp needs zlib: link penstock::zlib"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <string_view>
#include <zlib.h>

// ---- penstock/codec/detail/inflate_stream.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// A gzip file, whose members are read one after another, or a zlib stream, in pieces; see `unpacker`.
template <bool Gzip>
class inflate_stream {
 public:
  void begin() {
    if (!state_) {
      auto made = std::make_unique<z_stream>();
      if (::inflateInit2(made.get(), Gzip ? 15 + 16 : 15) != Z_OK) throw std::bad_alloc();
      state_.reset(made.release());
    }
    ::inflateReset(state_.get());
    between_ = true;
    first_ = true;
  }

  unpack_step step(bytes_view in, mutable_bytes out, bool) {
    if (between_ && !first_) {  // zeros after the last member are padding, as for gzip itself
      const auto end = Gzip
                           ? std::find_if(in.begin(), in.end(), [](std::byte b) { return b != std::byte{0}; })
                           : in.begin();
      const auto zeros = static_cast<std::size_t>(end - in.begin());
      if (zeros != 0 || in.empty()) return {zeros, 0, true};
      if (!Gzip || in.front() != std::byte{0x1f})
        throw error(errc::format, {"there is something after the ", last_name});
    }
    first_ = false;
    z_stream& z = *state_;
    const std::size_t offered = std::min(in.size(), most), room = std::min(out.size(), most);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));  // zlib does not write there
    z.avail_in = static_cast<uInt>(offered);
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&z, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      const std::string_view what = result == Z_NEED_DICT ? "it needs a dictionary"
                                    : z.msg == nullptr    ? "the data is damaged"
                                                          : z.msg;
      if (what == "incorrect data check")
        throw error(errc::checksum, {"the content does not match the ", name, "'s checksum"});
      throw error(errc::format, {"the ", name, " is damaged: ", what});
    }
    between_ = result == Z_STREAM_END;
    if (between_) ::inflateReset(&z);
    return {offered - z.avail_in, room - z.avail_out, between_};
  }

 private:
  static constexpr std::size_t most = std::numeric_limits<uInt>::max();
  static constexpr std::string_view name = Gzip ? "gzip member" : "zlib stream";
  static constexpr std::string_view last_name = Gzip ? "last gzip member" : "zlib stream";
  struct end_state {
    void operator()(z_stream* z) const noexcept {
      ::inflateEnd(z);
      delete z;
    }
  };
  std::unique_ptr<z_stream, end_state> state_;
  bool between_ = true;
  bool first_ = true;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/codec/unpack_gzip.hpp

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

// ---- penstock/codec/unpack_zlib.hpp

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
