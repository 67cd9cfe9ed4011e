// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component zstd. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<zstd.h>)
#error "penstock_zstd.hpp needs zstd: link penstock::zstd"
#endif

#include <penstock/penstock.hpp>

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

/// Zstandard for sources that read forward: the unpacker that `webdataset_stream` takes.
///
/// In: pieces of a file of zstd frames; several that follow each other are read one after another. Out:
/// pieces of the content.
/// Cost: libzstd's own. Its memory is kept from file to file. Threads: a stream is used by one at a time.
/// Throws `errc::format` for damage; `errc::checksum`; `errc::limit` for frames whose window is larger than
/// 128 MiB.
/// Source: RFC 8878.
///
///     auto samples = webdataset_stream<unpack_zstd>("train-{0000..0127}.tar.zst");
struct unpack_zstd {
  static constexpr std::string_view unpacker_format = "zstd";

  class stream {
   public:
    void begin() {
      if (!context_) context_.reset(ZSTD_createDCtx());
      if (!context_) throw std::bad_alloc();
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
          throw error(errc::limit,
                      "the zstd frame needs a window of more than 128 MiB; compress the file without --long");
        case ZSTD_error_prefix_unknown:
          throw error(errc::format, "there is something between or behind the zstd frames");
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

}  // namespace penstock::inline v0_1

// ---- penstock/codec/detail/zstd_frames.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// What the frames of a zstd payload say about its content, before any of it is decompressed.
struct zstd_extent {
  std::uint64_t content = 0;  // the sum of the sizes that the frames name; meaningful where `known`
  std::uint64_t bound = 0;    // what their blocks can hold at most
  bool known = true;          // whether each frame names its size
};

/// Walks the frames of a payload, block by block, without decompressing. It costs some nanoseconds for 128
/// KiB of content, and gives what no header can fake: an upper bound, so that a lie about the size allocates
/// nothing.
/// Source: RFC 8878, sections 3.1.1 and 3.1.2.
class zstd_frame_walk {
 public:
  explicit zstd_frame_walk(bytes_view packed) noexcept : packed_(packed) {}

  [[nodiscard]] zstd_extent run() {
    if (packed_.empty())
      throw error(errc::format, "there are no bytes, not even an empty zstd frame").at_offset(0);
    while (at_ < packed_.size()) frame();
    return found_;
  }

 private:
  static constexpr std::uint32_t magic = 0xfd2fb528u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are free

  [[nodiscard]] std::uint64_t little(std::size_t bytes) {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }
  void skip(std::uint64_t bytes) {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
    at_ += static_cast<std::size_t>(bytes);
  }

  void frame() {
    const std::size_t start = at_;
    const bool begins = packed_.size() - at_ >= 4;
    const auto number = begins ? static_cast<std::uint32_t>(little(4)) : 0;
    if ((number & ~15u) == skippable) return skip(little(4));
    if (number != magic)
      throw error(errc::format,
                  start == 0 ? "this is not a zstd frame" : "there is something after the last zstd frame")
          .at_offset(start);
    const auto descriptor = static_cast<unsigned>(little(1));
    const bool single_segment = (descriptor & 0x20) != 0;
    if ((descriptor & 0x08) != 0)
      throw error(errc::format, "the zstd frame header has a reserved bit set").at_offset(start + 4);
    constexpr std::size_t dictionary_bytes[] = {0, 1, 2, 4};
    const std::size_t size_bytes[] = {single_segment ? std::size_t{1} : std::size_t{0}, 2, 4, 8};
    const std::size_t size_field = size_bytes[descriptor >> 6];
    if (!single_segment) skip(1);
    if (const std::uint64_t dictionary = little(dictionary_bytes[descriptor & 3]); dictionary != 0)
      throw error(errc::format, {"the zstd frame needs dictionary ", dictionary, ", and none is supported"})
          .at_offset(start);
    std::uint64_t content = little(size_field);
    if (size_field == 2) content += 256;
    const std::uint64_t bound = blocks();
    if ((descriptor & 0x04) != 0) skip(4);
    if (size_field == 0) {
      found_.known = false;
    } else if (content > bound) {
      throw error(errc::format, {"the zstd frame says that it holds ", content,
                                 " bytes, but its blocks hold at most ", bound})
          .at_offset(start);
    }
    // no overflow: each block takes at least three bytes of input and holds less than 2^22
    found_.content += content;
    found_.bound += bound;
  }

  [[nodiscard]] std::uint64_t blocks() {
    std::uint64_t bound = 0;
    for (;;) {
      const std::size_t start = at_;
      const std::uint64_t header = little(3);
      const std::uint64_t size = header >> 3;
      switch (header >> 1 & 3) {
        case 0:
          skip(size);
          bound += size;
          break;
        case 1:
          skip(1);
          bound += size;
          break;
        case 2:
          skip(size);
          bound += 128_KiB;
          break;
        default:
          throw error(errc::format, "the zstd frame has a block of an unknown type").at_offset(start);
      }
      if ((header & 1) != 0) return bound;
    }
  }

  bytes_view packed_;
  std::size_t at_ = 0;
  zstd_extent found_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/codec/zstd.hpp

namespace penstock::inline v0_1 {

/// What one worker keeps for `zstd`: a decompression context, made on first use, and room for content.
class zstd_scratch {
 public:
  static constexpr std::string_view format = "zstd";

  /// Decompresses all frames of `packed` to `into` and returns how many bytes they gave.
  /// `bounded` says that `into` ends at the user's limit and not at a size that the frames name.
  std::size_t expand(bytes_view packed, mutable_bytes into, bool bounded) {
    if (!context_) context_.reset(ZSTD_createDCtx());
    if (!context_) throw std::bad_alloc();
    std::byte nothing{};  // zstd takes no null destination, not even for no bytes
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
/// In: any byte element. Out: a blob of the content; it can be followed by another codec (`chain<zstd,
/// npy<float>>`).
/// Where each frame names its size, the content goes straight to its destination; else through the worker's
/// scratch.
/// Kind: pointwise, keeps all guarantees. Cost per sample: zstd's own, and about 4 ns for each 128 KiB of
/// content; no allocation once the scratch has grown. Threads: any number at once, each with a scratch of its
/// own.
/// Throws `errc::limit` for content beyond `limit`, before it is decompressed where frames name their size;
/// `errc::checksum`;
/// `errc::format` for damage, a size that is not so, bytes after the last frame, dictionaries.
/// Source: RFC 8878.
///
///     auto tokens = records | decode<zstd>(zstd{.limit = 64_MiB}) | batch(32);
struct zstd {
  /// The most bytes that one payload may expand to: what a hostile one can cost.
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
