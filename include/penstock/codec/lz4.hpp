// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<lz4frame.h>)
#error "penstock/codec/lz4.hpp needs lz4: link penstock::lz4"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/detail/packed_blob.hpp>

#include <lz4frame.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1 {

namespace detail {

/// liblz4's decompression context, created on first use.
class lz4_context {
 public:
  [[nodiscard]] LZ4F_dctx* get() const noexcept { return made_.get(); }

  /// Begins a frame. If the last one was damaged or abandoned, the context is not reused: up to lz4 1.9.4, a
  /// reset keeps the number of bytes that its frame still expected, and the next frame without a size would
  /// be rejected because of them.
  void restart(bool last_was_whole) {
    if (last_was_whole && made_) return LZ4F_resetDecompressionContext(made_.get());
    made_.reset();
    LZ4F_dctx* made = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0) throw std::bad_alloc();
    made_.reset(made);
  }

 private:
  std::unique_ptr<LZ4F_dctx, freed_by<LZ4F_freeDecompressionContext>> made_;
};

}  // namespace detail

/// The per-worker memory of `lz4`: a decompression context, created on first use, and room for content.
class lz4_scratch {
 public:
  static constexpr std::string_view format = "lz4";

  std::size_t expand(bytes_view packed, mutable_bytes into, bool bounded) {
    std::size_t written = 0;
    for (detail::lz4_frame_walk walk(packed); !walk.done();) {
      const detail::lz4_frame frame = walk.next();
      if (!frame.skippable) written += expand_frame(frame.bytes, into.subspan(written), into.size(), bounded);
    }
    return written;
  }

  buffer content;

 private:
  std::size_t expand_frame(bytes_view packed, mutable_bytes into, std::size_t limit, bool bounded) {
    context_.restart(std::exchange(whole_, false));
    LZ4F_decompressOptions_t options{};
    options.stableDst = 1;  // the output stays in place, so the library need not copy it
    std::byte nothing{};
    std::byte* const to = into.empty() ? &nothing : into.data();
    std::size_t written = 0;
    for (;;) {
      std::size_t room = into.size() - written, taken = packed.size();
      const std::size_t more =
          LZ4F_decompress(context_.get(), to + written, &room, packed.data(), &taken, &options);
      if (LZ4F_isError(more) != 0) fail(LZ4F_getErrorName(more));
      written += room;
      packed = packed.subspan(taken);
      if (more == 0) break;
      if (room == 0 && taken == 0) {
        if (bounded) detail::beyond_unpack_limit(format, "more than " + std::to_string(limit), limit);
        fail(packed.empty() ? "it ends too early" : "it holds more than it says");
      }
    }
    if (!packed.empty()) fail("it ends before its last block");
    whole_ = true;
    return written;
  }

  [[noreturn]] static void fail(std::string_view why) {
    if (why.find("llocation") != std::string_view::npos) throw std::bad_alloc();
    if (why.find("ontentChecksum") != std::string_view::npos ||
        why.find("lockChecksum") != std::string_view::npos)
      throw error(errc::checksum, "the content does not match the lz4 frame's checksum");
    throw error(errc::format, {"the lz4 frame is damaged: ", why});
  }

  detail::lz4_context context_;
  bool whole_ = false;  // the last frame ended properly
};

/// The content of an lz4 payload: a blob.
using lz4_bytes = detail::packed_blob<lz4_scratch>;

/// LZ4: payloads of one or more frames, with skippable frames between them, without dictionaries.
///
/// In: any byte element. Out: a blob of the content; another codec may follow (`chain<lz4, npy<float>>`). If
/// every frame gives its size (`lz4 --content-size`), the content is decompressed straight to its
/// destination, otherwise through the worker's scratch.
/// Kind: pointwise, keeps all guarantees. Cost per sample: lz4's own, and a few nanoseconds per block; no
/// allocation once the scratch has grown. The library keeps its own buffer for a block, 64 KiB to 4 MiB.
/// Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for content beyond `limit`, before decompressing it if frames give their size;
/// `errc::checksum`; `errc::format` for damage, a wrong size, bytes after the last frame, dictionaries, and
/// the legacy format.
/// Source: LZ4 Frame Format Description, versions 1.5.1 to 1.6.4.
///
///     auto tokens = records | decode<lz4>(lz4{.limit = 64_MiB}) | batch(32);
struct lz4 {
  /// The maximum size to which one payload may expand; it bounds what a hostile payload can cost.
  std::uint64_t limit = 1_GiB;

  static constexpr std::string_view codec_name = "lz4";
  static constexpr std::string_view extensions[] = {"lz4"};
  using scratch = lz4_scratch;

  template <byte_element Bytes>
  [[nodiscard]] lz4_bytes decode(const Bytes& in, scratch& s) const {
    const bytes_view packed = as_bytes(in);
    return detail::unpacked(s, packed, detail::lz4_frame_walk(packed).run(), limit);
  }
};

}  // namespace penstock::inline v0_1
