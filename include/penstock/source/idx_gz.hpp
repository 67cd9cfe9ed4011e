// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libdeflate.h>)
#error "penstock/source/idx_gz.hpp needs libdeflate: link penstock::gzip"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/idx.hpp>

#include <libdeflate.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// All of a gzip file, decompressed. A room takes of another its concepts only, hence not the codec.
[[nodiscard]] inline buffer read_gzip_file(const std::string& path, std::uint64_t limit) {
  const buffer packed = read_whole_file(path);
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!inflater) throw std::bad_alloc();
  buffer out;
  std::size_t at = 0, written = 0;
  do {
    const bytes_view rest = packed.view().subspan(at);
    // zeros after the last member are padding, as gzip itself takes them
    if (at != 0 && std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; }))
      break;
    // deflate expands no more than 1032 times; the last four bytes are the size of the last member, if nobody
    // lies
    const std::uint64_t possible = std::uint64_t{rest.size()} * 1032 + 64;
    const std::uint64_t most = std::min(limit - written, possible);
    std::uint32_t guess = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, rest.size()); ++i)
      guess = guess << 8 | std::to_integer<std::uint32_t>(rest[rest.size() - 1 - i]);
    for (std::uint64_t room = std::min(std::max<std::uint64_t>(guess, 1_KiB), most);;
         room = std::min(room * 2, most)) {
      if (written + room > out.capacity()) {
        buffer grown(written + static_cast<std::size_t>(room));
        if (written != 0) std::memcpy(grown.data(), out.data(), written);
        out = std::move(grown);
      }
      std::byte nothing{};
      std::size_t used = 0, got = 0;
      const auto result = libdeflate_gzip_decompress_ex(inflater.get(), rest.data(), rest.size(),
                                                        room == 0 ? &nothing : out.data() + written,
                                                        static_cast<std::size_t>(room), &used, &got);
      if (result == LIBDEFLATE_SUCCESS) {
        at += used;
        written += got;
        break;
      }
      if (result == LIBDEFLATE_INSUFFICIENT_SPACE && room < most) continue;
      if (result == LIBDEFLATE_INSUFFICIENT_SPACE && most < possible)
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

/// `idx` of a file that is packed with gzip, as MNIST is distributed: it is decompressed once, when the plan
/// is made.
///
/// In: a path, and the most bytes that a file may expand to. Out, kind, cost, threads: as `idx`.
/// Throws as `idx`; `errc::format` for damaged gzip; `errc::limit` for content beyond `limit`. Offsets of
/// errors in the header are those of the content.
///
///     auto images = idx_gz("train-images-idx3-ubyte.gz") | batch(256);
template <idx_value T = std::uint8_t>
[[nodiscard]] idx_source<T> idx_gz(const std::string& path, std::uint64_t limit = 1_GiB) {
  return {detail::read_gzip_file(path, limit), path};
}

/// The same for images and their labels: records of "image" and "label".
///
///     auto mnist = idx_gz("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz") | shuffle(seed) | batch(256);
template <idx_value T = std::uint8_t, idx_value Label = std::uint8_t>
[[nodiscard]] idx_pair_source<T, Label> idx_gz(const std::string& images, const std::string& labels,
                                               std::uint64_t limit = 1_GiB) {
  return {idx_gz<T>(images, limit), idx_gz<Label>(labels, limit)};
}

}  // namespace penstock::inline v0_1
