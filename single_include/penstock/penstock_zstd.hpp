// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component zstd. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<zstd.h>)
#error "penstock_zstd.hpp needs zstd: link penstock::zstd"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <zstd.h>
#include <zstd_errors.h>

// ---- penstock/codec/unpack_zstd.hpp

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
///     // zstd --long=31
///     auto packed_long = webdataset_stream<unpack_zstd_long>("train-{0000..0127}.tar.zst");
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

    struct free_context {
      void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
    };
    std::unique_ptr<ZSTD_DCtx, free_context> context_;
    bool whole_ = true;
  };
};

/// For frames with windows of up to 128 MiB: all that `zstd` writes without options.
using unpack_zstd = basic_unpack_zstd<27>;
/// For frames with windows of any size: what `zstd --long=31` and `zstd --ultra --long` write. Takes up to 2
/// GiB of memory a thread.
using unpack_zstd_long = basic_unpack_zstd<31>;

}  // namespace penstock::inline v0_1

// ---- penstock/codec/zstd.hpp

namespace penstock::inline v0_1 {

/// The per-worker memory of `zstd`: a decompression context, created on first use, and room for content.
class zstd_scratch {
 public:
  static constexpr std::string_view format = "zstd";

  /// Decompresses all frames of `packed` to `into` and returns the number of bytes written. `bounded` means
  /// that the size of `into` is the user's limit rather than a size from the frames.
  std::size_t expand(bytes_view packed, mutable_bytes into, bool bounded) {
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) throw std::bad_alloc();
    std::byte nothing{};  // zstd accepts no null destination, even for zero bytes
    const std::size_t written = ZSTD_decompressDCtx(context_.get(), into.empty() ? &nothing : into.data(),
                                                    into.size(), packed.data(), packed.size());
    if (!ZSTD_isError(written)) return written;
    switch (ZSTD_getErrorCode(written)) {
      case ZSTD_error_checksum_wrong:
        throw error(errc::checksum, "the content does not match the zstd frame's checksum");
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      case ZSTD_error_dstSize_tooSmall:
        if (bounded) beyond_limit("more than " + std::to_string(into.size()), into.size());
        [[fallthrough]];
      default:
        throw error(errc::format, {"the zstd frame is damaged: ", ZSTD_getErrorName(written)});
    }
  }

  [[noreturn]] static void beyond_limit(const std::string& size, std::uint64_t limit) {
    throw error(errc::limit, {"the zstd content has ", size, " bytes, and the limit is ", limit,
                              "; raise it with zstd{.limit = ...}"});
  }

  buffer content;

 private:
  struct free_context {
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, free_context> context_;
};

/// The content of a zstd payload: a blob.
using zstd_bytes = detail::packed_blob<zstd_scratch>;

/// Zstandard: payloads of one or more frames, with skippable frames between them, without dictionaries.
///
/// In: any byte element. Out: a blob of the content; another codec may follow (`chain<zstd, npy<float>>`). If
/// every frame gives its size, the content is decompressed straight to its destination, otherwise through the
/// worker's scratch. Windows of any size are read (`zstd --long=31`): the content is unpacked in one piece,
/// so a window takes no memory of its own, and `limit` bounds both.
/// Kind: pointwise, keeps all guarantees. Cost per sample: zstd's own, and about 4 ns per 128 KiB of content;
/// no allocation once the scratch has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for content beyond `limit`, before decompressing it if frames give their size;
/// `errc::checksum`; `errc::format` for damage, a wrong size, bytes after the last frame, and dictionaries.
/// Source: RFC 8878.
///
///     auto tokens = records | decode<zstd>(zstd{.limit = 64_MiB}) | batch(32);
struct zstd {
  /// The maximum size to which one payload may expand; it bounds what a hostile payload can cost.
  std::uint64_t limit = 1_GiB;

  static constexpr std::string_view codec_name = "zstd";
  static constexpr std::string_view extensions[] = {"zst"};
  using scratch = zstd_scratch;

  template <byte_element Bytes>
  [[nodiscard]] zstd_bytes decode(const Bytes& in, scratch& s) const {
    const bytes_view packed = as_bytes(in);
    const detail::zstd_extent extent = detail::zstd_frame_walk(packed).run();
    if (extent.known) {
      if (extent.content > limit) s.beyond_limit(std::to_string(extent.content), limit);
      return {s, packed, extent.content};
    }
    const std::uint64_t room = std::min(extent.bound, limit);
    s.content.resize_for_overwrite(static_cast<std::size_t>(room));
    s.content.resize_for_overwrite(s.expand(packed, s.content.span(), extent.bound > limit));
    return zstd_bytes(s);
  }
};

}  // namespace penstock::inline v0_1
