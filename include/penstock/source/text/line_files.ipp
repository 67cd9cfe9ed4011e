// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/text/line_files.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/files/stored_files.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

inline bool is_blank_line(std::string_view line) noexcept {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

PENSTOCK_INLINE line_table::line_table(std::string_view text, bool skip_blank) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of(text, at);
    if (!skip_blank || !is_blank_line(text.substr(at, end - at))) {
      add(at);
    } else if (blank++ == 0) {
      for (std::size_t i = 0; i < begins.size(); ++i) numbers.push_back(i * group);
    }
    at = end;
  }
  begins.shrink_to_fit();
  numbers.shrink_to_fit();
}

PENSTOCK_INLINE void line_table::add(std::size_t at) {
  constexpr std::size_t few = 128, room = 4096;
  constexpr std::uint64_t maximum = 64;
  if (count % group == 0) {
    begins.push_back(at);
    if (blank != 0) numbers.push_back(count + blank);
    if (begins.size() > few && group < maximum && begins.size() > at / room) thin_out();
  }
  ++count;
}

PENSTOCK_INLINE void line_table::thin_out() {
  for (std::vector<std::uint64_t>* const all : {&begins, &numbers}) {
    for (std::size_t i = 0; 2 * i < all->size(); ++i) (*all)[i] = (*all)[2 * i];
    all->resize((all->size() + 1) / 2);
  }
  group *= 2;
}

PENSTOCK_INLINE std::size_t line_table::behind_blanks(std::string_view text, std::size_t at) noexcept {
  while (at < text.size()) {
    const std::size_t end = end_of(text, at);
    if (!is_blank_line(text.substr(at, end - at))) break;
    at = end;
  }
  return at;
}

PENSTOCK_INLINE std::uint64_t line_table::number(std::string_view text, std::uint64_t line) const noexcept {
  if (blank == 0) return line;
  auto at = to_size(begins[entry(line)]);
  std::uint64_t before = numbers[entry(line)];
  for (std::uint64_t n = beyond(line); n != 0 && at < text.size();) {
    at = end_of(text, at);
    ++before;
    if (at < text.size() && !is_blank_line(text.substr(at, end_of(text, at) - at))) --n;
  }
  return before;
}

PENSTOCK_INLINE bool has_json_lines(std::string_view name) noexcept {
  const auto without = [&](std::string_view ending) {
    const bool has = name.ends_with(ending);
    if (has) name.remove_suffix(ending.size());
    return has;
  };
  if (without(".penstock-unpacked"))
    for (const char* const packed : {".gz", ".zst", ".bz2", ".xz", ".lz4", ".zlib"})
      if (without(packed)) break;
  return name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
}

// Refuses a compressed file, whose bytes would also make lines. Text may begin with the magic letters of
// bzip2 and lzip, so these two are checked further.
PENSTOCK_INLINE void refuse_packed_lines(bytes_view all) {
  if (known_format(all.first(std::min<std::size_t>(all.size(), 512))).starts_with("a Git LFS"))
    throw not_a("a text", all, {});
  const std::string_view format = compression_of(all.first(std::min<std::size_t>(all.size(), 4096)));
  const std::string_view rest = text_of(all).substr(std::min<std::size_t>(all.size(), 4));
  if (format.empty() || (format == "bzip2" && !rest.starts_with("1AY&SY")) ||
      (format == "lzip" && !rest.starts_with('\1')))
    return;
  throw error(errc::format, packed_advice(format, "lines(mapped_file(unpacked<",
                                          ">(...))), which is in <penstock/source/unpacked.hpp>"))
      .at_offset(0);
}

PENSTOCK_INLINE void line_files::read(storage_facts where, session_view session, std::size_t threads,
                                      std::optional<bool> skip_blank) {
  tables.resize(where.names.size());
  auto read_one = [&](std::size_t i, object_version version) {
    const auto object = static_cast<object_id>(i);
    const bytes_view all = session.view(object, 0, version.size);
    refuse_packed_lines(all);
    line_table& table = tables[i];
    table = line_table(text_of(all), skip_blank.value_or(has_json_lines(where.names[i])));
    const std::uint64_t hash = hash_of_file(session, object, version.size);
    return file_facts{table.count, version.size, hash_words(hash ^ table.count, table.begins), hash};
  };
  read_each(*this, where, session, read_one, threads);
  if (shards.samples() == 0)
    throw error(errc::argument,
                "lines: the files are empty, or have blank lines alone: there are no lines in them")
        .in_file(path(0));
}

PENSTOCK_INLINE std::string line_files::describe() const {
  std::uint64_t blank = 0;
  for (const line_table& table : tables) blank += table.blank;
  std::string line =
      text({"lines(", versions.size(), " files, ", shards.bytes(), " bytes): ", shards.samples(), " lines"});
  if (blank != 0) append(line, {", ", blank, " blank ones left out"});
  return line;
}

}  // namespace penstock::inline v0_1::detail
