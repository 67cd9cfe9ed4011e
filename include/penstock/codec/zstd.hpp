// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<zstd.h>)
#error "penstock/codec/zstd.hpp needs zstd: link penstock::zstd"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/detail/packed_blob.hpp>

#include <zstd.h>
#include <zstd_errors.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1 {

/// The per-worker memory of `zstd`: a decompression context, created on first use, and room for content.
class zstd_scratch {
 public:
  static constexpr std::string_view format = "zstd";

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
        if (bounded)
          detail::beyond_unpack_limit(format, "more than " + std::to_string(into.size()), into.size());
        [[fallthrough]];
      default:
        throw error(errc::format, {"the zstd frame is damaged: ", ZSTD_getErrorName(written)});
    }
  }

  buffer content;

 private:
  std::unique_ptr<ZSTD_DCtx, detail::freed_by<ZSTD_freeDCtx>> context_;
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
    return detail::unpacked(s, packed, detail::zstd_frame_walk(packed).run(), limit);
  }
};

}  // namespace penstock::inline v0_1
