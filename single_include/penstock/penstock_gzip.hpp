// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component gzip. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<libdeflate.h>)
#error "penstock_gzip.hpp needs libdeflate: link penstock::gzip"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <libdeflate.h>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// ---- penstock/codec/layouts/inflater.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// libdeflate's decompressor, created on first use.
class inflater {
 public:
  [[nodiscard]] libdeflate_decompressor* get() {
    if (!made_) made_.reset(libdeflate_alloc_decompressor());
    if (!made_) throw std::bad_alloc();
    return made_.get();
  }

 private:
  struct closer {
    void operator()(libdeflate_decompressor* one) const noexcept { libdeflate_free_decompressor(one); }
  };
  std::unique_ptr<libdeflate_decompressor, closer> made_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/codec/gzip.hpp

namespace penstock::inline v0_1 {

/// The per-worker memory of `gzip`: a decompressor, created on first use, and room for content.
class gzip_scratch {
 public:
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
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
    return value;
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
class gzip_bytes {
 public:
  using unfinished = void;

  explicit gzip_bytes(bytes_view content) noexcept : content_(content) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return content_.size(); }
  /// Copies the content to a destination of `size()` bytes.
  void read_into(mutable_bytes into) const {
    if (into.size() != content_.size())
      throw error(errc::argument,
                  {"gzip_bytes: the destination has ", into.size(), " bytes, the content ", content_.size()});
    if (!into.empty()) std::memcpy(into.data(), content_.data(), into.size());
  }
  /// The content, in the worker's scratch, valid until its next use.
  [[nodiscard]] bytes_view finish() const noexcept { return content_; }

 private:
  bytes_view content_;
};

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
    return gzip_bytes(s.content.view());
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/codec/npz.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// The member of an archive that is an array: the one of this name, or, without a name, the only one.
[[nodiscard]] inline zip_entry npz_entry(bytes_view file, std::string_view array) {
  zip_archive archive(file);
  if (array.empty() && archive.members() == 1) return archive.first();
  if (!array.empty())
    if (const std::optional<zip_entry> found = archive.find(array)) return *found;
  std::string known;
  for (const zip_entry& one : archive.all()) list_name(known, one.array());
  if (known.empty()) throw error(errc::missing, "the npz file has no arrays");
  if (array.empty())
    throw error(errc::argument, {"the npz file has ", known, ": name one, as in npz<float>{.array = \"x\"}"});
  throw error(errc::missing, {"the npz file has no array '", array, "'; it has: ", known})
      .at_offset(archive.begin());
}

/// The bytes of a member: in place if it is stored, otherwise unpacked into `room`.
[[nodiscard]] inline bytes_view npz_member(bytes_view file, const zip_entry& member, std::uint64_t limit,
                                           inflater& unpacker, buffer& room) {
  const bytes_view packed = file.subspan(to_size(member.begin), to_size(member.packed));
  bytes_view content = packed;
  if (member.method == 8) {
    constexpr std::uint64_t max_expansion = 1032;  // of deflate: a two-bit match yields 258 bytes
    if (member.unpacked > limit)
      throw error(errc::limit, {"the array '", member.array().substr(0, 80), "' has ", member.unpacked,
                                " bytes, and the limit is ", limit, "; raise it with npz<T>{.limit = ...}"});
    if (member.unpacked / max_expansion > member.packed)
      member.refuse("is damaged: it cannot have as many bytes as the directory says");
    room.resize_for_overwrite(to_size(member.unpacked));
    std::size_t used = 0;
    const auto result = libdeflate_deflate_decompress_ex(unpacker.get(), packed.data(), packed.size(),
                                                         room.data(), room.size(), &used, nullptr);
    if (result != LIBDEFLATE_SUCCESS || used != packed.size()) member.refuse("is damaged");
    content = room.view();
  } else if (member.method != 0) {
    member.refuse("is compressed by another method than deflate; save it with numpy.savez_compressed");
  }
  if (libdeflate_crc32(0, content.data(), content.size()) != member.checksum)
    throw error(errc::checksum,
                {"the array '", member.array().substr(0, 80), "' does not match the npz file's checksum"})
        .at_offset(member.begin);
  return content;
}

}  // namespace detail

/// Reads an array of the element type `T` from numpy's npz files, compressed or not: what `numpy.savez` and
/// `numpy.savez_compressed` write, and the `CompressedNdarrayCodec` of Petastorm.
///
///     auto clips = webdataset("train-{0000..0127}.tar") | decode<field<"npz", npz<float>>>;
///
/// In: any byte element, as a whole. Out: as for `npy<T>`, an array expression; in place if the array is not
/// compressed, otherwise of the worker's scratch. `.array` is the array's name; without it the file must have
/// only one.
/// Kind: pointwise, keeps all guarantees. Cost per sample: the archive's directory, the checksum of the
/// array, and decompressing it; no allocation in the steady state. Thread-safe, with a scratch per thread.
/// Throws `errc::missing` for a name that the file does not have, or a file without arrays, and
/// `errc::argument` for several arrays without a name, with what there is; `errc::checksum`; `errc::limit`
/// for an array of more than `limit`
/// bytes; `errc::format` for what is no npz file or is damaged, encrypted or compressed otherwise; and as
/// `npy<T>`, with offsets in the array.
/// Source: PKWARE's APPNOTE.TXT, version 6.3.10; numpy, numpy/lib/npyio.py.
template <class T>
struct npz {
  std::string_view array = {};
  std::uint64_t limit = 1_GiB;  ///< of an unpacked array

  static constexpr std::string_view codec_name = "npz";
  static constexpr std::string_view extensions[] = {"npz"};
  struct scratch {
    detail::inflater inflater;
    buffer content;
    typename npy<T>::scratch values;
  };

  template <byte_element Bytes>
  [[nodiscard]] npy_array<T> decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    const detail::zip_entry member = detail::npz_entry(file, array);
    const bytes_view content = detail::npz_member(file, member, limit, s.inflater, s.content);
    try {
      return npy<T>{}.decode(content, s.values);
    } catch (error& e) {
      e.within("the array '" + std::string(member.array().substr(0, 80)) + "'", member.begin);
      throw;
    }
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/idx_gz.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// A whole gzip file, decompressed. It does not use the gzip codec, because a folder of headers may use only
/// the concepts of another one.
[[nodiscard]] inline buffer read_gzip_file(const std::string& path, std::uint64_t limit) {
  const buffer packed = read_whole_file(path);
  inflater unpacker;
  buffer out;
  std::size_t at = 0, written = 0;
  do {
    const bytes_view rest = packed.view().subspan(at);
    // zeros after the last member are padding, as for gzip itself
    if (at != 0 && std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; }))
      break;
    // deflate expands at most 1032 times; the last four bytes should be the size of the last member
    const std::uint64_t possible = std::uint64_t{rest.size()} * 1032 + 64;
    const std::uint64_t maximum = std::min(limit - written, possible);
    std::uint32_t guess = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, rest.size()); ++i)
      guess = guess << 8 | std::to_integer<std::uint32_t>(rest[rest.size() - 1 - i]);
    for (std::uint64_t room = std::min(std::max<std::uint64_t>(guess, 1_KiB), maximum);;
         room = std::min(room * 2, maximum)) {
      if (written + room > out.capacity()) {
        buffer grown(written + detail::to_size(room));
        if (written != 0) std::memcpy(grown.data(), out.data(), written);
        out = std::move(grown);
      }
      std::byte nothing{};
      std::size_t used = 0, got = 0;
      const auto result = libdeflate_gzip_decompress_ex(unpacker.get(), rest.data(), rest.size(),
                                                        room == 0 ? &nothing : out.data() + written,
                                                        detail::to_size(room), &used, &got);
      if (result == LIBDEFLATE_SUCCESS) {
        at += used;
        written += got;
        break;
      }
      if (result == LIBDEFLATE_INSUFFICIENT_SPACE && room < maximum) continue;
      if (result == LIBDEFLATE_INSUFFICIENT_SPACE && maximum < possible)
        throw error(errc::limit, {"the file expands to more than ", limit,
                                  " bytes, which is the limit; raise it with the last argument of idx_gz"})
            .in_file(path);
      throw error(errc::format, "the file is not gzip, is damaged or is cut short")
          .in_file(path)
          .at_offset(at);
    }
  } while (at < packed.size());
  out.resize_for_overwrite(written);
  return out;
}

}  // namespace detail

/// `idx` for a gzip-compressed file, as MNIST is distributed. The file is decompressed once, when the plan is
/// made.
///
/// In: a path, and the maximum number of bytes that a file may expand to. Out, kind, cost, threads: as for
/// `idx`.
/// Throws what `idx` throws; `errc::format` for damaged gzip; `errc::limit` for content beyond `limit`.
/// Offsets in errors about the header count in the decompressed content.
///
///     auto images = idx_gz("train-images-idx3-ubyte.gz") | batch(256);
template <idx_value T = std::uint8_t>
[[nodiscard]] idx_source<T> idx_gz(const std::string& path, std::uint64_t limit = 1_GiB) {
  return {detail::read_gzip_file(path, limit), path};
}

/// Images and their labels, from two gzip-compressed IDX files: records of "image" and "label".
///
///     auto mnist = idx_gz("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz") | shuffle | batch(256);
template <idx_value T = std::uint8_t, idx_value Label = std::uint8_t>
[[nodiscard]] idx_pair_source<T, Label> idx_gz(const std::string& images, const std::string& labels,
                                               std::uint64_t limit = 1_GiB) {
  return {idx_gz<T>(images, limit), idx_gz<Label>(labels, limit)};
}

/// A gzip-compressed IDX file for `dataset`, recognised by its content, of which it decompresses up to
/// `limit`. The types are as for `idx_format`.
template <idx_value... Ts>
struct idx_gz_format {
  using types = typename detail::number_types<pack<std::uint8_t>, Ts...>::type;
  using sources = typename detail::sources_of_types<types, detail::idx_source_of, void>::type;
  static constexpr std::string_view name = "idx_gz";

  std::uint64_t limit = 1_GiB;

  [[nodiscard]] format_fit look(const dataset_listing& there) const {
    return there.is_storage() ? format_fit::none
                              : there.fit_of([this](const listed_files& some) { return is_idx_gz(some); });
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    const std::vector<std::string> paths =
        there.paths_of([this](const listed_files& some) { return is_idx_gz(some); });
    if (paths.size() != 1) detail::several_idx_files(there);
    const buffer whole = detail::read_gzip_file(paths.front(), limit);
    const auto code = std::to_integer<unsigned>(whole.view()[2]);
    return detail::source_of_type<sources>(
        std::type_identity<types>{}, {&there, name, "numbers of code " + std::to_string(code)},
        [&]<class T>() { return detail::idx_code<T> == code; },
        [&]<class T>() { return idx_gz<T>(paths.front(), limit); });
  }

 private:
  [[nodiscard]] bool is_idx_gz(const listed_files& some) const {
    if (!some.begins("\x1f\x8b")) return false;
    try {
      const buffer whole = detail::read_gzip_file(some.paths.front(), limit);
      const std::string_view text = text_of(whole.view());
      return detail::is_idx({{}, {}, text.size(), std::string(text.substr(0, 64)), {}});
    } catch (const error&) {  // damaged, or too large to be one
      return false;
    }
  }
};

}  // namespace penstock::inline v0_1
