// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/ffcv_file.hpp>

#include <penstock/core/known_formats.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <algorithm>
#include <iterator>

// Source: FFCV, ffcv/{types,writer,reader,memory_allocator}.py and ffcv/fields/*.py, version 2 of the format.
namespace penstock::inline v0_1 {
namespace detail {

namespace ffcv_tables {

constexpr std::size_t head_size = 24, field_size = 1041, name_size = 16, entry_size = 24;

[[noreturn, gnu::cold]] inline void bad(std::initializer_list<piece> what, std::uint64_t offset) {
  throw error(errc::format, what).at_offset(offset);
}
inline std::uint64_t number(const std::byte* at) noexcept { return load_little<std::uint64_t>(at); }

// What numpy calls an element: "<f4". Empty if no codec reads such.
PENSTOCK_INLINE std::string_view dtype_of(std::string_view descr, std::uint64_t& item) {
  struct known {
    std::string_view code, name;
    std::uint64_t size;
  };
  static constexpr auto all = std::to_array<known>({{"f2", "float16", 2},
                                                    {"f4", "float32", 4},
                                                    {"f8", "float64", 8},
                                                    {"i1", "int8", 1},
                                                    {"i2", "int16", 2},
                                                    {"i4", "int32", 4},
                                                    {"i8", "int64", 8},
                                                    {"u1", "uint8", 1},
                                                    {"u2", "uint16", 2},
                                                    {"u4", "uint32", 4},
                                                    {"u8", "uint64", 8}});
  for (const known& one : all)
    if (descr.substr(1) == one.code &&
        (descr.front() == '<' || (one.size == 1 && (descr.front() == '|' || descr.front() == '>')))) {
      item = one.size;
      return one.name;
    }
  return {};
}

// `arguments`: shape[32], the length of the type, and the type as JSON: [["", "<f4"]].
PENSTOCK_INLINE void read_array(ffcv_field& field, const std::byte* arguments, std::uint64_t offset) {
  constexpr std::size_t dimensions = 32, maximum = 1024 - 8 * dimensions - 8;
  std::size_t count = dimensions;
  while (count != 0 && number(arguments + 8 * (count - 1)) == 0) --count;
  const std::uint64_t length = number(arguments + 8 * dimensions);
  if (length > maximum) bad({"the type of the array '", field.name, "' has ", length, " bytes"}, offset);
  const std::string_view text(reinterpret_cast<const char*>(arguments + 8 * dimensions + 8), to_size(length));
  const std::size_t end = text.rfind('"'), begin = end == text.npos ? end : text.rfind('"', end - 1);
  const std::string_view descr =
      begin == text.npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
  std::uint64_t item = 0;
  const std::string_view name =
      descr.empty() || std::ranges::count(text, '"') != 4 ? "" : dtype_of(descr, item);
  if (name.empty()) {  // records, texts, the other byte order: known when it is asked for
    field.type = penstock::detail::text({"array of ", text});
    return;
  }
  field.type = penstock::detail::text({"ndarray:", name, ":"});
  field.size = item;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t extent = number(arguments + 8 * i);
    append(field.type, {i == 0 ? "" : ",", extent});
    if (__builtin_mul_overflow(field.size, extent, &field.size) || field.size >> 40 != 0)
      bad({"the array '", field.name, "' has more bytes than a file can have"}, offset);
  }
  if (count == 0) field.type += '1';
}

struct kind_facts {
  std::string_view encoding;
  std::size_t size, alignment;  // in a row
};
PENSTOCK_INLINE kind_facts facts_of_kind(ffcv_kind kind) noexcept {
  static constexpr kind_facts all[] = {{"float64", 8, 8}, {"int64", 8, 8}, {"image", 13, 1}, {"bytes", 16, 1},
                                       {"ndarray", 8, 8}, {"json", 16, 1}, {"ndarray", 8, 8}};
  const auto number = static_cast<std::size_t>(kind);
  return number < std::size(all) ? all[number] : kind_facts{"custom", 0, 1};
}

}  // namespace ffcv_tables

PENSTOCK_INLINE ffcv_file::ffcv_file(session_view session, object_id object) {
  using ffcv_tables::bad, ffcv_tables::number, ffcv_tables::head_size, ffcv_tables::field_size,
      ffcv_tables::name_size, ffcv_tables::entry_size;
  size_ = session.size(object);
  if (const object_bytes some = session.range(object, 0, std::min<std::uint64_t>(size_, 512));
      !known_format(some).empty())
    throw not_a("a file of FFCV", some, {});
  if (size_ < head_size) bad({"the file has ", size_, " bytes, and the header of FFCV 24"}, 0);
  const object_bytes start = session.range(object, 0, head_size);
  const bytes_view head = start;
  const auto version = load_little<std::uint16_t>(head.data()),
             count = load_little<std::uint16_t>(head.data() + 2);
  const auto page = load_little<std::uint32_t>(head.data() + 4);
  const std::uint64_t table = number(head.data() + 16);
  samples_ = number(head.data() + 8);
  constexpr std::uint32_t smallest_page = 1u << 21;
  if (version != 2 || page < smallest_page || (page & (page - 1)) != 0)
    bad({"this is no file of FFCV, or not of version 2: its version is ", version, ", and its pages have ",
         page, " bytes"},
        0);
  if (table == 0) bad({"the file was never completed: the program that wrote it stopped before its end"}, 16);
  if (count == 0) bad({"the file has no fields"}, 2);
  const std::uint64_t rows_begin = head_size + field_size * count;
  if (rows_begin > size_) bad({"the file ends within the descriptions of its ", count, " fields"}, size_);

  const object_bytes descriptions = session.range(object, head_size, field_size * count);
  const bytes_view described = descriptions;
  std::size_t alignment = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const at = described.data() + field_size * i;
    ffcv_field one;
    const std::string_view name(reinterpret_cast<const char*>(at + 1), name_size);
    one.name = name.substr(0, name.find('\0'));
    one.kind = static_cast<ffcv_kind>(at[0]);
    const ffcv_tables::kind_facts facts = ffcv_tables::facts_of_kind(one.kind);
    if (facts.size == 0)
      bad({"the field '", one.name, "' is of FFCV's type ", std::to_integer<unsigned>(at[0]),
           ", of which only the program that wrote it knows the size: write the dataset without it"},
          head_size + field_size * i);
    one.type = facts.encoding;
    if (one.kind == ffcv_kind::array || one.kind == ffcv_kind::tensor)
      ffcv_tables::read_array(one, at + 1 + name_size, head_size + field_size * i + 1 + name_size);
    if (one.kind == ffcv_kind::image) one.image_place = images_++;
    one.in_index = one.kind == ffcv_kind::real || one.kind == ffcv_kind::whole;
    if (one.in_index) one.size = facts.size;
    one.offset = (row_size_ + facts.alignment - 1) / facts.alignment * facts.alignment;
    row_size_ = one.offset + facts.size;
    alignment = std::max(alignment, facts.alignment);
    fields_.push_back(std::move(one));
  }
  row_size_ = (row_size_ + alignment - 1) / alignment * alignment;
  if (samples_ > (size_ - rows_begin) / row_size_)
    bad({"the file ends within the rows of its ", samples_, " samples"}, size_);
  const std::uint64_t rows_size = samples_ * row_size_;
  if (table > size_ || table < rows_begin + rows_size || (size_ - table) % entry_size != 0)
    bad({"the table of values does not go from ", table, " to the end of the file: it is cut off"}, 16);

  rows_.resize_for_overwrite(to_size(rows_size));
  session.read(object, rows_begin, rows_.span());
  mark_ = hash_bytes(hash_bytes(samples_, described), rows_.view());
  if (images_ == 0) {
    payload_ = size_ - table;
    return;
  }
  // Only this table knows the sizes of JPEGs.
  struct entry {
    std::uint64_t begin, size;
  };
  std::vector<entry> entries;
  const object_bytes last = session.range(object, table, size_ - table);
  const bytes_view values = last;
  entries.reserve(values.size() / entry_size);
  for (std::size_t at = 0; at < values.size(); at += entry_size)
    entries.push_back({number(values.data() + at + 8), number(values.data() + at + 16)});
  // An empty value lies where the next one begins: of entries with one beginning the largest comes last.
  std::ranges::sort(entries, {}, [](const entry& one) { return std::pair(one.begin, one.size); });
  image_sizes_.assign(to_size(samples_) * images_, no_size);
  for (std::uint64_t sample = 0; sample < samples_; ++sample)
    for (const ffcv_field& field : fields_) {
      if (field.kind != ffcv_kind::image) continue;
      const std::uint64_t begin = number(row(sample) + field.offset + 5);
      const auto after = std::ranges::upper_bound(entries, begin, {}, &entry::begin);
      if (after == entries.begin()) continue;
      if (const entry& found = after[-1]; found.begin == begin && found.size < no_size)
        image_sizes_[to_size(sample) * images_ + field.image_place] = static_cast<std::uint32_t>(found.size);
    }
  for (const std::uint32_t one : image_sizes_) {
    payload_ += one == no_size ? 0 : one;
    mark_ = mix64(mark_ ^ one);
  }
}

PENSTOCK_INLINE void ffcv_file::find_place(std::uint64_t sample, std::size_t which, ffcv_place& found) const {
  const ffcv_field& field = fields_[which];
  const std::byte* const at = row(sample) + field.offset;
  switch (field.kind) {
    case ffcv_kind::image: {
      found.begin = load_little<std::uint64_t>(at + 5);
      found.size = image_sizes_[to_size(sample) * images_ + field.image_place];
      const unsigned mode = load_little<std::uint8_t>(at);
      if (mode > 1)
        throw error(errc::format, {"the image '", field.name, "' is of mode ", mode, ", not 0 or 1"});
      if (found.size == no_size)
        throw error(errc::format, {"the table of values does not have the image '", field.name, "'"});
      found.raw_image = mode == 1;
      found.width = load_little<std::uint16_t>(at + 1);
      found.height = load_little<std::uint16_t>(at + 3);
      const std::uint64_t pixels = std::uint64_t{3} * found.width * found.height;
      if (found.raw_image && pixels != found.size)
        throw error(errc::format, {"the image '", field.name, "' of ", found.width, " by ", found.height,
                                   " has ", found.size, " bytes"});
      break;
    }
    case ffcv_kind::real:
    case ffcv_kind::whole:
      found.in_memory = at;
      found.size = field.size;
      return;
    case ffcv_kind::bytes:
    case ffcv_kind::json:
      found.begin = load_little<std::uint64_t>(at);
      found.size = load_little<std::uint64_t>(at + 8);
      break;
    default:
      found.begin = load_little<std::uint64_t>(at);
      found.size = field.size;
  }
  if (found.size > size_ || found.begin > size_ - found.size)
    throw error(errc::format, {"the value of the field '", field.name, "' goes from ", found.begin, " for ",
                               found.size, " bytes, and the file has ", size_});
  // The writer ends a text of JSON with a NUL.
  if (field.kind == ffcv_kind::json && found.size != 0) --found.size;
}

PENSTOCK_INLINE void check_ffcv_codec(const ffcv_field& field, std::string_view codec) {
  std::string_view good;
  switch (field.kind) {
    case ffcv_kind::real:
    case ffcv_kind::whole:
      if (codec == "raw_number") return;
      good = field.kind == ffcv_kind::real ? "raw_number<double>" : "raw_number<std::int64_t>";
      break;
    case ffcv_kind::image:
      if (codec == "ffcv_image") return;
      good = "ffcv_image<jpeg>, or ffcv_image<> if no image is compressed";
      break;
    case ffcv_kind::array:
    case ffcv_kind::tensor:
      if (codec == "mds_array") return;
      good = "mds_array<T>";
      break;
    default:
      if (codec != "raw_number" && codec != "mds_array" && codec != "ffcv_image") return;
      good = field.kind == ffcv_kind::json ? "json, json_field or text"
                                           : "identity, or the codec that they are for";
  }
  throw error(errc::format, {"the field '", field.name, "' is of type ", field.type, ", which ", codec,
                             " does not read: use ", good});
}

}  // namespace detail
}  // namespace penstock::inline v0_1
