// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<bzlib.h>)
#error "penstock/codec/unpack_bzip2.hpp needs bzip2: link penstock::bz2"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <bzlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

namespace penstock::inline v0_1 {

/// bzip2 for sources that read forward: an unpacker for `webdataset_stream`.
///
/// In: pieces of a bzip2 file; consecutive streams are read one after another. Out: pieces of the content.
/// Cost: libbz2's own. Its memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage and for bytes after the last stream; `errc::checksum`.
/// Source: the manual of libbzip2 1.0.8.
///
///     auto samples = webdataset_stream<unpack_bzip2>("train-{0000..0127}.tar.bz2");
struct unpack_bzip2 {
  static constexpr std::string_view unpacker_format = "bzip2";

  class stream {
   public:
    void begin() { state_.reset(); }

    unpack_step step(bytes_view in, mutable_bytes out, bool) {
      if (!state_) {
        if (in.empty()) return {0, 0, true};
        start(in.front());
      }
      bz_stream& z = *state_;
      const std::size_t offered = std::min(in.size(), maximum), room = std::min(out.size(), maximum);
      // libbz2 does not write there
      z.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(in.data()));
      z.avail_in = static_cast<unsigned>(offered);
      z.next_out = reinterpret_cast<char*>(out.data());
      z.avail_out = static_cast<unsigned>(room);
      const int result = ::BZ2_bzDecompress(&z);
      const unpack_step done{offered - z.avail_in, room - z.avail_out, result == BZ_STREAM_END};
      if (result == BZ_MEM_ERROR) throw std::bad_alloc();
      if (result == BZ_DATA_ERROR)
        throw error(errc::checksum, "the bzip2 stream is damaged: its content does not match its checksums");
      if (result == BZ_DATA_ERROR_MAGIC)
        throw error(errc::format, "the bzip2 stream is damaged, or there is something after it");
      if (result != BZ_OK && result != BZ_STREAM_END)
        throw error(errc::format, "the bzip2 stream is damaged: error " + std::to_string(result));
      if (done.whole) state_.reset();  // the library cannot restart
      return done;
    }

   private:
    static constexpr std::size_t maximum = std::numeric_limits<unsigned>::max();

    void start(std::byte first) {
      if (first != std::byte{'B'})
        throw error(errc::format, "there is something after the last bzip2 stream");
      auto made = std::make_unique<bz_stream>();
      if (::BZ2_bzDecompressInit(made.get(), 0, 0) != BZ_OK) throw std::bad_alloc();
      state_.reset(made.release());
    }

    std::unique_ptr<bz_stream, detail::ended_by<BZ2_bzDecompressEnd>> state_;
  };
};

}  // namespace penstock::inline v0_1
