// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/core_formats.hpp>

#include <penstock/codec/layouts/npy_header.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <algorithm>
#include <bit>
#include <iterator>

namespace penstock::inline v0_1 {
namespace detail {

/// A number of `size` bytes at a place of the head; nothing beyond its end.
template <class T>
T number_in(const listed_files& some, std::size_t at) {
  return at + sizeof(T) <= some.head.size() ? load_little<T>(bytes_of(some.head).data() + at) : T{};
}

/// Whether the bytes are text: UTF-8 without control characters other than white space. A character may be
/// cut at the end.
inline bool is_text(const listed_files& some) {
  const std::string_view head = some.head;
  for (std::size_t i = 0; i < head.size();) {
    const auto c = static_cast<unsigned char>(head[i]);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') return false;
    const std::size_t more = c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 9;
    if (more == 9) return false;
    for (std::size_t k = 1; k <= more && i + k < head.size(); ++k)
      if ((static_cast<unsigned char>(head[i + k]) & 0xc0) != 0x80) return false;
    i += more + 1;
  }
  return !head.empty();
}

inline bool is_json_lines(const listed_files& some) {
  if (!is_text(some)) return false;
  const std::string_view head = some.head;
  if (!head.starts_with('{') && !head.starts_with('[')) return false;
  const bool named = some.ending == ".jsonl" || some.ending == ".ndjson";
  const std::size_t end = head.find('\n');
  if (end == head.npos) return named;
  const char last = head.starts_with('{') ? '}' : ']';
  const std::string_view first = head.substr(0, end - (end > 1 && head[end - 1] == '\r' ? 1 : 0));
  if (!first.ends_with(last)) return false;
  return named || (end + 1 < head.size() && head[end + 1] == head[0]);
}

inline bool is_named_text(const listed_files& some) {
  return is_json_lines(some) || (is_text(some) && (some.ending == ".txt" || some.ending == ".text"));
}

inline bool is_llmc(const listed_files& some) { return llmc_width(bytes_of(some.head)) != 0; }

inline bool is_megatron(const listed_files& some) { return some.begins({"MMIDIDX\0\0", 9}); }

PENSTOCK_INLINE bool is_tar(const listed_files& some) {
  const bytes_view head = bytes_of(some.head);
  if (!compression_of(head).empty())
    return some.ending.starts_with(".tar") || some.ending.starts_with(".tgz");
  return begins_tar(head, some.ending == ".tar");
}

PENSTOCK_INLINE bool is_arrow(const listed_files& some) {
  if (some.begins("ARROW1")) return true;
  // A stream: a mark, the length of the schema's message, and an offset to its root within it.
  const auto length = number_in<std::uint32_t>(some, 4);
  return some.begins("\xff\xff\xff\xff") && length >= 16 && length % 8 == 0 && length <= some.size - 8 &&
         number_in<std::uint32_t>(some, 8) < length;
}

PENSTOCK_INLINE bool is_ffcv(const listed_files& some) {
  constexpr std::size_t head_size = 24;
  const auto fields = number_in<std::uint16_t>(some, 2);
  const auto page = number_in<std::uint32_t>(some, 4);
  return some.size >= head_size && number_in<std::uint16_t>(some, 0) == 2 && fields != 0 &&
         page >= 1u << 21 && std::has_single_bit(page) && number_in<std::uint64_t>(some, 16) <= some.size;
}

PENSTOCK_INLINE bool is_npy(const listed_files& some) { return some.begins("\x93NUMPY"); }

PENSTOCK_INLINE bool is_npz(const listed_files& some) {
  if (!some.begins("PK\3\4") || some.head.size() < 30) return false;
  const std::string_view name = std::string_view(some.head).substr(30, number_in<std::uint16_t>(some, 26));
  return name.ends_with(".npy");
}

inline bool is_image(const listed_files& some) {
  const std::string_view known = known_format(bytes_of(some.head));
  constexpr std::string_view images[] = {"a JPEG image", "a PNG image",   "a WebP image",
                                         "a GIF image",  "an AVIF image", "a TIFF image"};
  return std::ranges::find(images, known) != std::end(images);
}

PENSTOCK_INLINE format_fit look_for_tokens(const dataset_listing& there) {
  if (there.fit_of(&is_llmc) != format_fit::none) return format_fit::content;
  const auto is_part = [](const listed_files& some) { return is_megatron(some) || some.ending == ".bin"; };
  const std::vector<std::string> indexes = there.paths_of(&is_megatron);
  return !indexes.empty() && there.fit_of(is_part) != format_fit::none ? format_fit::content
                                                                       : format_fit::none;
}

PENSTOCK_INLINE format_fit look_for_lines(const dataset_listing& there) {
  if (there.is_folder()) {
    // Descriptions of other datasets are text, too.
    const bool others = std::any_of(there.files().begin(), there.files().end(),
                                    [](const listed_files& some) { return !is_text(some); });
    return !others && there.folders().empty() && there.fit_of(&is_named_text) != format_fit::none
               ? format_fit::layout
               : format_fit::none;
  }
  if (there.fit_of(&is_json_lines) != format_fit::none) return format_fit::content;
  const auto is_plain = [](const listed_files& some) { return is_text(some) && some.ending != ".json"; };
  return there.fit_of(is_plain) != format_fit::none ? format_fit::layout : format_fit::none;
}

PENSTOCK_INLINE std::vector<std::string> paths_of_arrow(const dataset_listing& there) {
  // The names of Hugging Face's files say which belong together, and how many there are.
  const auto named = [](const listed_files& some) { return some.ending == ".arrow" && is_arrow(some); };
  if (there.is_folder() && there.fit_of(named) != format_fit::none)
    return data_paths(data_kind::arrow, there.path());
  return there.paths_of(&is_arrow);
}

PENSTOCK_INLINE std::vector<std::string> paths_of_tokens(const dataset_listing& there) {
  std::vector<std::string> paths = there.paths_of(&is_llmc);
  if (!paths.empty()) return paths;
  for (const std::string& index : there.paths_of(&is_megatron)) {
    paths.push_back(index.substr(0, index.rfind('.')) + ".bin");
    paths.push_back(index);
  }
  return paths;
}

PENSTOCK_INLINE std::vector<std::string> paths_of_lines(const dataset_listing& there) {
  return there.is_folder() ? there.paths_of(&is_named_text) : there.paths_of(&is_text);
}

PENSTOCK_INLINE lines_options options_of_lines(const dataset_listing& there, lines_options options) {
  if (!there.is_folder() && there.fit_of(&is_json_lines) != format_fit::none && !options.skip_blank)
    options.skip_blank = true;
  return options;
}

PENSTOCK_INLINE stored_tokens tokens_at(const dataset_listing& there) {
  for (const listed_files& some : there.files()) {
    if (is_llmc(some)) return {token_format::llmc, {llmc_width(bytes_of(some.head)), false}};
    if (!is_megatron(some) || some.head.size() < 18) continue;
    const auto code = static_cast<unsigned char>(some.head[17]);
    if (const token_type type = megatron_type(code); type.width != 0) return {token_format::megatron, type};
    throw error(errc::format,
                {"the index says that its tokens are of type ", unsigned{code}, ", which is no whole number"})
        .in_file(some.paths.front())
        .at_offset(17);
  }
  return {};
}

PENSTOCK_INLINE npy_type npy_type_at(const dataset_listing& there) {
  for (const listed_files& some : there.files()) {
    if (!is_npy(some)) continue;
    const npy_header header =
        in_file(some.paths.front(), [&] { return read_npy_header(bytes_of(some.head)); });
    return {header.kind, header.item_size};
  }
  return {'?', 0};
}

PENSTOCK_INLINE npy_type npz_type_at(session_view session, std::uint64_t size, std::string_view array) {
  const zip_member member = find_zip_array(session, 0, size, array);
  const object_bytes start = session.range(0, member.begin, std::min<std::uint64_t>(member.size, 4_KiB));
  const npy_header header = read_npy_header(start);
  return {header.kind, header.item_size};
}

PENSTOCK_INLINE std::string npz_array_at(session_view session, std::uint64_t size, const std::string& array) {
  if (!array.empty()) return array;
  const std::vector<std::string> arrays = zip_arrays(session, 0, size);
  if (arrays.size() == 1) return arrays.front();
  std::string list;
  for (const std::string& one : arrays) list.append(list.empty() ? "" : ", ").append(one);
  throw error(errc::argument, {"the npz file has the arrays ", list,
                               ": name one, as in dataset(path, npz_rows_format<>{.array = \"",
                               arrays.empty() ? "x" : arrays.front(),
                               "\"}), or join several with zip<...>(npz_rows<...>(...), ...)"});
}

}  // namespace detail

PENSTOCK_INLINE format_fit directory_format::look(const dataset_listing& there) {
  if (!there.is_folder()) return format_fit::none;
  if (there.fit_of(&detail::is_image) != format_fit::none) return format_fit::layout;
  constexpr std::size_t maximum = 4;
  for (std::size_t i = 0; i < there.folders().size() && i < maximum; ++i)
    if (there.below(there.folders()[i]).fit_of(&detail::is_image) != format_fit::none)
      return format_fit::layout;
  return format_fit::none;
}

PENSTOCK_INLINE std::variant<directory> directory_format::open(const dataset_listing& there) {
  return directory(there.path(),
                   {.extensions = {"jpg", "jpeg", "png", "webp", "gif", "avif", "tif", "tiff"}});
}

}  // namespace penstock::inline v0_1
