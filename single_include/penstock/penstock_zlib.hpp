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
#include <string>
#include <string_view>
#include <zlib.h>

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

  class stream {
   public:
    void begin() {
      if (!state_) {
        auto made = std::make_unique<z_stream>();
        if (::inflateInit2(made.get(), 15 + 16) != Z_OK) throw std::bad_alloc();
        state_.reset(made.release());
      }
      ::inflateReset(state_.get());
      between_ = true;
      first_ = true;
    }

    unpack_step step(bytes_view in, mutable_bytes out, bool) {
      if (between_ && !first_) {  // zeros after the last member are padding, as for gzip itself
        const auto end = std::find_if(in.begin(), in.end(), [](std::byte b) { return b != std::byte{0}; });
        const auto zeros = static_cast<std::size_t>(end - in.begin());
        if (zeros != 0 || in.empty()) return {zeros, 0, true};
        if (in.front() != std::byte{0x1f})
          throw error(errc::format, "there is something after the last gzip member");
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
        const std::string_view what = z.msg == nullptr ? "the data is damaged" : z.msg;
        if (what == "incorrect data check")
          throw error(errc::checksum, "the content does not match the gzip member's checksum");
        throw error(errc::format, "the gzip member is damaged: " + std::string(what));
      }
      between_ = result == Z_STREAM_END;
      if (between_) ::inflateReset(&z);
      return {offered - z.avail_in, room - z.avail_out, between_};
    }

   private:
    static constexpr std::size_t most = std::numeric_limits<uInt>::max();
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
};

}  // namespace penstock::inline v0_1
