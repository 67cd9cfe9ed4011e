// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libdeflate.h>)
#error "penstock/codec/gzip.hpp needs libdeflate: link penstock::gzip"
#endif

#include <penstock/codec/detail/packed_blob.hpp>
#include <penstock/codec/layouts/inflater.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/to_size.hpp>

#include <libdeflate.h>

namespace penstock::inline v0_1 {

/// The per-worker memory of `gzip`: a decompressor, created on first use, and room for content.
class gzip_scratch {
 public:
  static constexpr std::string_view format = "gzip";

  /// Decompresses all members of `packed` into `content`.
  void expand(bytes_view packed, std::uint64_t limit) {
    std::size_t at = 0;
    std::size_t written = 0;
    do {
      if (!member(packed, at, written, limit)) break;
    } while (at < packed.size());
    content.resize_for_overwrite(written);
  }

  buffer content;

 private:
  static constexpr std::uint64_t max_expansion = 1032;  // of deflate: a two-bit match yields 258 bytes

  [[noreturn]] static void cut_short(bytes_view packed) {
    throw error(errc::format, "the gzip member is cut short").at_offset(packed.size());
  }
  [[nodiscard]] static std::uint32_t little32(bytes_view bytes, std::size_t at) noexcept {
    return detail::load_little<std::uint32_t>(bytes.data() + at);
  }

  /// Skips a member's header: RFC 1952, section 2.3. Returns false at zero padding after the last member.
  bool header(bytes_view packed, std::size_t& at) const {
    const std::size_t start = at;
    const auto octet = [&](std::size_t i) { return std::to_integer<unsigned>(packed[i]); };
    const auto need = [&](std::size_t n) {
      if (packed.size() - at < n) cut_short(packed);
    };
    if (packed.size() - at < 2 || octet(at) != 0x1f || octet(at + 1) != 0x8b) {
      const bytes_view rest = packed.subspan(at);
      if (start != 0 && std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; }))
        return false;
      if (start == 0) throw detail::not_a("gzip", packed, {});
      throw error(errc::format, "there is something after the last gzip member").at_offset(start);
    }
    need(10);
    const unsigned flags = octet(at + 3);
    if (octet(at + 2) != 8 || (flags & 0xe0) != 0)
      throw error(errc::format, "the gzip member has an unknown method or reserved flags").at_offset(at + 2);
    at += 10;
    if ((flags & 4) != 0) {  // extra field
      need(2);
      const std::size_t extra = octet(at) | octet(at + 1) << 8;
      at += 2;
      need(extra);
      at += extra;
    }
    for (const unsigned flag : {8u, 16u}) {  // file name, comment
      if ((flags & flag) == 0) continue;
      const void* const zero =
          at == packed.size() ? nullptr : std::memchr(packed.data() + at, 0, packed.size() - at);
      if (zero == nullptr) cut_short(packed);
      at = static_cast<std::size_t>(static_cast<const std::byte*>(zero) - packed.data()) + 1;
    }
    if ((flags & 2) != 0) {  // checksum of the header
      need(2);
      const std::uint32_t sum = libdeflate_crc32(0, packed.data() + start, at - start) & 0xffff;
      if (sum != (octet(at) | octet(at + 1) << 8))
        throw error(errc::checksum, "the gzip header does not match its checksum").at_offset(at);
      at += 2;
    }
    return true;
  }

  bool member(bytes_view packed, std::size_t& at, std::size_t& written, std::uint64_t limit) {
    if (!header(packed, at)) return false;
    const bytes_view rest = packed.subspan(at);
    // If this is the only member and the file is honest, the last four bytes are the size: a first guess,
    // capped at the most that the input can expand to.
    const std::uint64_t possible = rest.size() * max_expansion + 64;
    const std::uint64_t maximum = std::min(limit - written, possible);
    std::uint64_t room = rest.size() >= 4 ? little32(packed, packed.size() - 4) : 0;
    room = std::min(std::max<std::uint64_t>({room, content.capacity() - written, 1_KiB}), maximum);
    for (;;) {
      reserve(written, detail::to_size(room));
      std::byte nothing{};
      std::byte* const into = room == 0 ? &nothing : content.data() + written;
      std::size_t used = 0, got = 0;
      const auto result = libdeflate_deflate_decompress_ex(inflater_.get(), rest.data(), rest.size(), into,
                                                           detail::to_size(room), &used, &got);
      if (result == LIBDEFLATE_SUCCESS) {
        at += used;
        trailer(packed, at, bytes_view(into, got));
        written += got;
        return true;
      }
      if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
        throw error(errc::format, "the gzip member is damaged").at_offset(at);
      if (room == maximum) {
        if (maximum == possible) throw error(errc::format, "the gzip member is damaged").at_offset(at);
        throw error(errc::limit, {"the gzip content has more than ", limit,
                                  " bytes, which is the limit; raise it with gzip{.limit = ...}"});
      }
      room = std::min(maximum, room * 2);
    }
  }

  static void trailer(bytes_view packed, std::size_t& at, bytes_view member) {
    if (packed.size() - at < 8) cut_short(packed);
    if (libdeflate_crc32(0, member.data(), member.size()) != little32(packed, at))
      throw error(errc::checksum, "the content does not match the gzip member's checksum").at_offset(at);
    if (static_cast<std::uint32_t>(member.size()) != little32(packed, at + 4))
      throw error(errc::format, "the gzip member gives a size, modulo 2^32, that is not that of its content")
          .at_offset(at + 4);
    at += 8;
  }

  /// Makes room for `more` bytes after the first `kept`, which stay.
  void reserve(std::size_t kept, std::size_t more) {
    if (kept + more <= content.capacity()) return content.resize_for_overwrite(kept + more);
    buffer grown(kept + more);
    if (kept != 0) std::memcpy(grown.data(), content.data(), kept);
    content = std::move(grown);
  }

  detail::inflater inflater_;
};

/// The content of a gzip payload: a blob that is already decompressed, because gzip does not state its size
/// reliably.
using gzip_bytes = detail::packed_blob<gzip_scratch>;

/// Gzip: payloads of one or more members, optionally followed by zero bytes, decompressed as a whole by
/// libdeflate.
///
/// In: any byte element. Out: a blob of the content, in the worker's scratch; another codec may follow
/// (`chain<gzip, text>`).
/// Kind: pointwise, keeps all guarantees. Cost per sample: libdeflate's own, a checksum and one copy; no
/// allocation once the scratch has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::limit` for content beyond `limit`; `errc::checksum`; `errc::format` for damage, truncated
/// members, and anything but zeros after the last one.
/// Source: RFC 1952 (gzip), RFC 1951 (deflate).
///
///     auto pages = records | decode<gzip>(gzip{.limit = 16_MiB});
struct gzip {
  /// The maximum size to which one payload may expand; it bounds what a hostile payload can cost.
  std::uint64_t limit = 1_GiB;

  static constexpr std::string_view codec_name = "gzip";
  static constexpr std::string_view extensions[] = {"gz"};
  using scratch = gzip_scratch;

  template <byte_element Bytes>
  [[nodiscard]] gzip_bytes decode(const Bytes& in, scratch& s) const {
    s.expand(as_bytes(in), limit);
    return gzip_bytes(s);
  }
};

}  // namespace penstock::inline v0_1
