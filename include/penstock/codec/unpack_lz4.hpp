// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<lz4frame.h>)
#error "penstock/codec/unpack_lz4.hpp needs lz4: link penstock::lz4"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <lz4frame.h>

#include <memory>
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
      // The last file was abandoned or damaged within a frame: up to lz4 1.9.4, a reset keeps the number of
      // bytes that frame still expected.
      if (!whole_) context_.reset();
      if (!context_) {
        LZ4F_dctx* made = nullptr;
        if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0) throw std::bad_alloc();
        context_.reset(made);
      }
      LZ4F_resetDecompressionContext(context_.get());
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
    struct free_context {
      void operator()(LZ4F_dctx* context) const noexcept { LZ4F_freeDecompressionContext(context); }
    };
    std::unique_ptr<LZ4F_dctx, free_context> context_;
    bool whole_ = true;
  };
};

}  // namespace penstock::inline v0_1
