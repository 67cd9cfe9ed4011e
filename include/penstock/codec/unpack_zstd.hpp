// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<zstd.h>)
#error "penstock/codec/unpack_zstd.hpp needs zstd: link penstock::zstd"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1 {

/// Zstandard for sources that read forward: an unpacker for `webdataset_stream`.
///
/// In: pieces of a file of zstd frames; consecutive frames are read one after another. Out: pieces of the
/// content.
/// Cost: libzstd's own. Its memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage; `errc::checksum`; `errc::limit` for frames whose window is larger than
/// 2^`WindowLogMax` bytes, which is how much memory a frame can demand.
/// Source: RFC 8878.
///
///     auto samples = webdataset_stream<unpack_zstd>("train-{0000..0127}.tar.zst");
template <int WindowLogMax>
struct basic_unpack_zstd {
  static_assert(WindowLogMax >= 10 && WindowLogMax <= 31,
                "penstock: windows of zstd frames have 2^10 to 2^31 bytes: basic_unpack_zstd<10> to <31>");
  static constexpr std::string_view unpacker_format = "zstd";
  /// The logarithm of the largest window to base 2, as zstd's option of this name.
  static constexpr int window_log_max = WindowLogMax;

  class stream {
   public:
    void begin() {
      if (!context_) {
        context_.reset(ZSTD_createDCtx());
        if (!context_) throw std::bad_alloc();
        if (const std::size_t result =
                ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, WindowLogMax);
            ZSTD_isError(result))
          throw error(errc::argument, {"this libzstd does not take a window_log_max of ", WindowLogMax, ": ",
                                       ZSTD_getErrorName(result)});
      }
      ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
      whole_ = true;
    }

    unpack_step step(bytes_view in, mutable_bytes out, bool) {
      if (whole_ && in.empty()) return {0, 0, true};
      ZSTD_inBuffer source{in.data(), in.size(), 0};
      ZSTD_outBuffer to{out.data(), out.size(), 0};
      const std::size_t result = ZSTD_decompressStream(context_.get(), &to, &source);
      if (ZSTD_isError(result)) fail(result);
      whole_ = result == 0;
      return {source.pos, to.pos, whole_};
    }

   private:
    [[noreturn]] static void fail(std::size_t result) {
      switch (ZSTD_getErrorCode(result)) {
        case ZSTD_error_checksum_wrong:
          throw error(errc::checksum, "the content does not match the zstd frame's checksum");
        case ZSTD_error_memory_allocation:
          throw std::bad_alloc();
        case ZSTD_error_frameParameter_windowTooLarge:
          throw error(
              errc::limit,
              {"the zstd frame needs a window of more than 2^", WindowLogMax,
               " bytes, the window_log_max of this unpacker; name ",
               "unpack_zstd_long in its place, or basic_unpack_zstd<window_log_max>, or compress the file "
               "without --long"});
        case ZSTD_error_prefix_unknown:
          throw error(errc::format, "there is something between or after the zstd frames");
        default:
          throw error(errc::format, std::string("the zstd frame is damaged: ") + ZSTD_getErrorName(result));
      }
    }

    std::unique_ptr<ZSTD_DCtx, detail::freed_by<ZSTD_freeDCtx>> context_;
    bool whole_ = true;
  };
};

/// For frames with windows of up to 128 MiB: all that `zstd` writes without options.
using unpack_zstd = basic_unpack_zstd<27>;
/// For frames with windows of any size: what `zstd --long=31` and `zstd --ultra --long` write. Takes up to 2
/// GiB of memory a thread.
using unpack_zstd_long = basic_unpack_zstd<31>;

}  // namespace penstock::inline v0_1
