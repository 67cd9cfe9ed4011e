// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/mds_sample.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>
#include <array>
#include <utility>

// Source: mosaicml-streaming, streaming/base/format/mds/{reader,writer,encodings}.py.
namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE mds_columns::mds_columns(std::vector<mds_column> columns) : all(std::move(columns)) {
  for (const mds_column& one : all)
    if (one.size == 0) head += 4;
}

PENSTOCK_INLINE void check_mds_codec(const mds_column& column, std::string_view codec) {
  // The encodings that a codec reads: beside `bytes`, whose content only the user knows.
  struct reads {
    std::string_view codec;
    std::array<std::string_view, 5> encodings;
  };
  constexpr std::array<reads, 16> known{{{"text", {"str", "str_int", "str_float", "str_decimal", "json"}},
                                         {"integer", {"str", "str_int"}},
                                         {"floating", {"str", "str_int", "str_float", "str_decimal"}},
                                         {"json", {"str", "json"}},
                                         {"json_field", {"str", "json"}},
                                         {"json_fields", {"str", "json"}},
                                         {"jpeg", {"jpeg"}},
                                         {"png", {"png"}},
                                         {"image", {"jpeg", "png"}},
                                         {"webp", {}},
                                         {"npy", {}},
                                         {"npy_image", {}},
                                         {"pixels", {}},
                                         {"zstd", {}},
                                         {"gzip", {}},
                                         {"lz4", {}}}};
  if (column.encoding == "pkl" || column.encoding.starts_with("pkl:"))
    throw error(errc::format, {"the column '", column.name,
                               "' holds pickles, which can run any program and are never read: write it anew "
                               "with another encoding"});
  if (column.encoding == "bytes") return;
  const auto found = std::ranges::find(known, codec, &reads::codec);
  if (found == known.end() || std::ranges::find(found->encodings, column.encoding) != found->encodings.end())
    return;
  throw error(errc::format, {"the column '", column.name, "' is of encoding '", column.encoding,
                             "', which this codec does not read; raw_number<T> reads numbers, mds_array<T> "
                             "and litdata_array<T> arrays, mds_list lists, pil_pixels images of PIL"});
}

PENSTOCK_INLINE void mds_cursor::divide(bytes_view head) {
  const std::vector<mds_column>& all = columns->all;
  begins.resize(all.size() + 1);
  const auto refuse = [&](std::uint64_t what) {
    throw error(errc::format, {"the sample has ", size, " bytes, and its columns have ", what,
                               ": the shard is damaged, or is not the one that its index describes"})
        .at_offset(begin);
  };
  if (size < columns->head) refuse(columns->head);
  std::uint64_t at = columns->head;
  const std::byte* sizes = head.data();
  for (std::size_t i = 0; i < all.size(); ++i) {
    begins[i] = at;
    if (all[i].size != 0) {
      at += all[i].size;
      continue;
    }
    std::uint32_t said = 0;
    for (std::size_t k = 0; k < 4; ++k) said |= std::to_integer<std::uint32_t>(sizes[k]) << (8 * k);
    sizes += 4;
    at += said;
  }
  begins.back() = at;
  if (at != size) refuse(at);
}

PENSTOCK_INLINE void mds_cursor::enter(const mds_columns& new_columns, const std::string& new_path,
                                       const std::string& new_name, object_id new_shard) {
  if (columns != &new_columns) codecs.clear();
  columns = &new_columns;
  path = &new_path;
  name = &new_name;
  shard = new_shard;
}

PENSTOCK_INLINE std::string_view mds_cursor::key() const {
  key_text.clear();
  append(key_text, {*name, ":", sample});
  return key_text;
}

PENSTOCK_INLINE void mds_cursor::add_context(error& e) const {
  // An offset without a file comes from a codec and counts from the value's first byte.
  const bool asked = touched != nothing_touched;
  if (e.file().empty() && e.offset() && asked) e.within("the value", begin + touched);
  e.in_file(*path).for_key(key()).at_offset(asked ? begin + touched : begin);
}

PENSTOCK_INLINE void mds_cursor::learn_codec(std::size_t column, std::string_view codec) {
  check_mds_codec(columns->all[column], codec);
  if (codecs.size() <= column) codecs.resize(column + 1);
  codecs[column] = codec;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
