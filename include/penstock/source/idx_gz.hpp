// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libdeflate.h>)
#error "penstock/source/idx_gz.hpp needs libdeflate: link penstock::gzip"
#endif

#include <penstock/codec/layouts/inflater.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/rows/idx_listing.hpp>

#include <libdeflate.h>

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
  using types = detail::number_types<light_tuple<std::uint8_t>, Ts...>;
  static constexpr std::string_view name = "idx_gz";

  std::uint64_t limit = 1_GiB;

  [[nodiscard]] format_fit look(const dataset_listing& there) const {
    return there.is_storage() ? format_fit::none
                              : there.fit_of([this](const listed_files& some) { return is_idx_gz(some); });
  }
  [[nodiscard]] auto open(const dataset_listing& there) const {
    const std::vector<std::string> paths =
        there.paths_of([this](const listed_files& some) { return is_idx_gz(some); });
    if (paths.size() != 1) detail::several_idx_files(there);
    const buffer whole = detail::read_gzip_file(paths.front(), limit);
    const auto code = std::to_integer<unsigned>(whole.view()[2]);
    return detail::source_of_type(
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
