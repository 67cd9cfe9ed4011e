// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<lzma.h>)
#error "penstock/codec/unpack_xz.hpp needs liblzma: link penstock::xz"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <lzma.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1 {

/// xz for sources that read forward: an unpacker for `webdataset_stream`.
///
/// In: pieces of a .xz file; consecutive streams are read one after another. Out: pieces of the content.
/// Cost: liblzma's own. Its memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage; `errc::limit` for streams that need more than 1 GiB of memory.
/// Source: the .xz file format, version 1.1.0.
///
///     auto samples = webdataset_stream<unpack_xz>("train-{0000..0127}.tar.xz");
struct unpack_xz {
  static constexpr std::string_view unpacker_format = "xz";

  class stream {
   public:
    void begin() {
      if (!state_) {
        state_.reset(new lzma_stream);
        *state_ = LZMA_STREAM_INIT;
      }
      ended_ = false;
      if (::lzma_stream_decoder(state_.get(), max_memory, LZMA_CONCATENATED) != LZMA_OK)
        throw std::bad_alloc();
    }

    unpack_step step(bytes_view in, mutable_bytes out, bool last) {
      if (ended_) return {0, 0, true};
      lzma_stream& z = *state_;
      z.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
      z.avail_in = in.size();
      z.next_out = reinterpret_cast<std::uint8_t*>(out.data());
      z.avail_out = out.size();
      // Only at the end of the input can the library tell whether another stream follows.
      const lzma_ret result = ::lzma_code(&z, last ? LZMA_FINISH : LZMA_RUN);
      switch (result) {
        case LZMA_OK:
        case LZMA_BUF_ERROR:
          break;
        case LZMA_STREAM_END:
          ended_ = true;
          break;
        case LZMA_MEM_ERROR:
          throw std::bad_alloc();
        case LZMA_MEMLIMIT_ERROR:
          throw error(errc::limit,
                      "the xz stream needs more than 1 GiB of memory; compress it with xz -9 at most");
        case LZMA_FORMAT_ERROR:
          throw error(errc::format, "there is something between or after the xz streams");
        case LZMA_OPTIONS_ERROR:
          throw error(errc::format, "the xz stream uses options that this liblzma does not know");
        default:
          throw error(errc::format,
                      "the xz stream is damaged: error " + std::to_string(static_cast<int>(result)));
      }
      return {in.size() - z.avail_in, out.size() - z.avail_out, ended_};
    }

   private:
    static constexpr std::uint64_t max_memory = 1_GiB;
    std::unique_ptr<lzma_stream, detail::ended_by<lzma_end>> state_;
    bool ended_ = false;
  };
};

}  // namespace penstock::inline v0_1
