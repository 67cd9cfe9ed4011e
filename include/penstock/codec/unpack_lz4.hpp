// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<lz4frame.h>)
#error "penstock/codec/unpack_lz4.hpp needs lz4: link penstock::lz4"
#endif

#include <penstock/codec/lz4.hpp>

#include <lz4frame.h>

#include <new>

namespace penstock::inline v0_1 {

/// LZ4 for sources that read forward: an unpacker for `webdataset_stream`.
///
/// In: pieces of a file of LZ4 frames; consecutive frames are read one after another. Out: pieces of the
/// content.
/// Cost: liblz4's own. Its memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage; `errc::checksum`.
/// Source: the LZ4 frame format description, version 1.6.
///
///     auto samples = webdataset_stream<unpack_lz4>("train-{0000..0127}.tar.lz4");
struct unpack_lz4 {
  static constexpr std::string_view unpacker_format = "lz4";

  class stream {
   public:
    void begin() {
      context_.restart(whole_);
      whole_ = true;
    }

    unpack_step step(bytes_view in, mutable_bytes out, bool) {
      if (whole_ && in.empty()) return {0, 0, true};
      whole_ = false;
      std::size_t taken = in.size(), made = out.size();
      const std::size_t result =
          LZ4F_decompress(context_.get(), out.data(), &made, in.data(), &taken, nullptr);
      if (LZ4F_isError(result) != 0) {
        const std::string_view what = LZ4F_getErrorName(result);
        if (what == "ERROR_allocation_failed") throw std::bad_alloc();
        if (what.ends_with("hecksum_invalid"))
          throw error(errc::checksum, "the content does not match a checksum of the lz4 frame");
        if (what == "ERROR_frameType_unknown")
          throw error(errc::format, "there is something between or after the lz4 frames");
        throw error(errc::format, "the lz4 frame is damaged: " + std::string(what));
      }
      whole_ = result == 0;
      return {taken, made, whole_};
    }

   private:
    detail::lz4_context context_;
    bool whole_ = true;
  };
};

}  // namespace penstock::inline v0_1
