// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/ffcv_files.hpp>

#include <penstock/core/known_formats.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/hash_bytes.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

// Source: FFCV, ffcv/{types,writer,reader,memory_allocator}.py and ffcv/fields/*.py, version 2 of the format.
namespace penstock::inline v0_1 {
namespace detail {

namespace ffcv_tables {

constexpr std::size_t head_size = 24, field_size = 1041, name_size = 16, entry_size = 24;

[[noreturn, gnu::cold]] inline void bad(std::initializer_list<piece> what, std::uint64_t offset) {
  throw error(errc::format, what).at_offset(offset);
}
inline std::uint64_t number(const std::byte* at, std::size_t size) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

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
  while (count != 0 && number(arguments + 8 * (count - 1), 8) == 0) --count;
  const std::uint64_t length = number(arguments + 8 * dimensions, 8);
  if (length > maximum) bad({"the type of the array '", field.name, "' has ", length, " bytes"}, offset);
  const std::string_view text(reinterpret_cast<const char*>(arguments + 8 * dimensions + 8), to_size(length));
  const std::size_t end = text.rfind('"'), begin = end == text.npos ? end : text.rfind('"', end - 1);
  const std::string_view descr =
      begin == text.npos ? std::string_view() : text.substr(begin + 1, end - begin - 1);
  std::uint64_t item = 0;
  const std::string_view name =
      descr.empty() || std::ranges::count(text, '"') != 4 ? "" : dtype_of(descr, item);
  if (name.empty()) {  // records, texts, the other byte order: known when it is asked for
    field.encoding = penstock::detail::text({"array of ", text});
    return;
  }
  field.encoding = penstock::detail::text({"ndarray:", name, ":"});
  field.size = item;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t extent = number(arguments + 8 * i, 8);
    append(field.encoding, {i == 0 ? "" : ",", extent});
    if (__builtin_mul_overflow(field.size, extent, &field.size) || field.size >> 40 != 0)
      bad({"the array '", field.name, "' has more bytes than a file can have"}, offset);
  }
  if (count == 0) field.encoding += '1';
}

struct kind_facts {
  std::string_view encoding;
  std::size_t size, alignment;  // in a row
};
PENSTOCK_INLINE kind_facts facts_of_kind(ffcv_kind kind) noexcept {
  switch (kind) {
    case ffcv_kind::real:
      return {"float64", 8, 8};
    case ffcv_kind::whole:
      return {"int64", 8, 8};
    case ffcv_kind::image:
      return {"image", 13, 1};
    case ffcv_kind::bytes:
      return {"bytes", 16, 1};
    case ffcv_kind::json:
      return {"json", 16, 1};
    case ffcv_kind::array:
    case ffcv_kind::tensor:
      return {"ndarray", 8, 8};
    default:
      return {"custom", 0, 1};
  }
}

}  // namespace ffcv_tables

PENSTOCK_INLINE ffcv_file ffcv_file::read(session_view session, object_id object) {
  using ffcv_tables::bad, ffcv_tables::number, ffcv_tables::head_size, ffcv_tables::field_size,
      ffcv_tables::name_size, ffcv_tables::entry_size;
  ffcv_file made;
  made.size = session.size(object);
  if (const object_bytes some = session.range(object, 0, std::min<std::uint64_t>(made.size, 512));
      !known_format(some).empty())
    throw not_a("a file of FFCV", some, {});
  if (made.size < head_size) bad({"the file has ", made.size, " bytes, and the header of FFCV 24"}, 0);
  const object_bytes start = session.range(object, 0, head_size);
  const bytes_view head = start;
  const std::uint64_t version = number(head.data(), 2), count = number(head.data() + 2, 2),
                      page = number(head.data() + 4, 4), table = number(head.data() + 16, 8);
  made.samples = number(head.data() + 8, 8);
  constexpr std::uint64_t smallest_page = std::uint64_t{1} << 21;
  if (version != 2 || page < smallest_page || (page & (page - 1)) != 0)
    bad({"this is no file of FFCV, or not of version 2: its version is ", version, ", and its pages have ",
         page, " bytes"},
        0);
  if (table == 0) bad({"the file was never completed: the program that wrote it stopped before its end"}, 16);
  if (count == 0) bad({"the file has no fields"}, 2);
  const std::uint64_t rows_begin = head_size + field_size * count;
  if (rows_begin > made.size)
    bad({"the file ends within the descriptions of its ", count, " fields"}, made.size);

  const object_bytes descriptions = session.range(object, head_size, field_size * count);
  const bytes_view described = descriptions;
  std::size_t alignment = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const at = described.data() + field_size * i;
    ffcv_field one;
    const std::string_view name(reinterpret_cast<const char*>(at + 1), name_size);
    one.name = name.substr(0, name.find('\0'));
    one.kind = static_cast<ffcv_kind>(number(at, 1));
    const ffcv_tables::kind_facts facts = ffcv_tables::facts_of_kind(one.kind);
    if (facts.size == 0)
      bad({"the field '", one.name, "' is of FFCV's type ", number(at, 1),
           ", of which only the program that wrote it knows the size: write the dataset without it"},
          head_size + field_size * i);
    one.encoding = facts.encoding;
    if (one.kind == ffcv_kind::array || one.kind == ffcv_kind::tensor)
      ffcv_tables::read_array(one, at + 1 + name_size, head_size + field_size * i + 1 + name_size);
    if (one.kind == ffcv_kind::image) one.image_place = made.images++;
    one.offset = (made.row_size + facts.alignment - 1) / facts.alignment * facts.alignment;
    made.row_size = one.offset + facts.size;
    alignment = std::max(alignment, facts.alignment);
    made.fields.push_back(std::move(one));
  }
  made.row_size = (made.row_size + alignment - 1) / alignment * alignment;
  if (made.samples > (made.size - rows_begin) / made.row_size)
    bad({"the file ends within the rows of its ", made.samples, " samples"}, made.size);
  const std::uint64_t rows_size = made.samples * made.row_size;
  if (table > made.size || table < rows_begin + rows_size || (made.size - table) % entry_size != 0)
    bad({"the table of values does not go from ", table, " to the end of the file: it is cut off"}, 16);

  made.rows.resize_for_overwrite(to_size(rows_size));
  session.read(object, rows_begin, made.rows.span());
  made.mark = hash_bytes(hash_bytes(made.samples, described), made.rows.view());
  if (made.images == 0) {
    made.payload = made.size - table;
    return made;
  }
  // Only this table knows the sizes of JPEGs.
  struct entry {
    std::uint64_t begin, size;
  };
  std::vector<entry> entries;
  const object_bytes last = session.range(object, table, made.size - table);
  const bytes_view values = last;
  entries.reserve(values.size() / entry_size);
  for (std::size_t at = 0; at < values.size(); at += entry_size)
    entries.push_back({number(values.data() + at + 8, 8), number(values.data() + at + 16, 8)});
  // An empty value lies where the next one begins: of entries with one beginning the largest comes last.
  std::ranges::sort(entries, {}, [](const entry& one) { return std::pair(one.begin, one.size); });
  made.image_sizes.assign(to_size(made.samples) * made.images, no_size);
  for (std::uint64_t sample = 0; sample < made.samples; ++sample)
    for (const ffcv_field& field : made.fields) {
      if (field.kind != ffcv_kind::image) continue;
      const std::uint64_t begin = number(made.row(sample) + field.offset + 5, 8);
      const auto after = std::ranges::upper_bound(entries, begin, {}, &entry::begin);
      if (after == entries.begin()) continue;
      if (const entry& found = after[-1]; found.begin == begin && found.size < no_size)
        made.image_sizes[to_size(sample) * made.images + field.image_place] =
            static_cast<std::uint32_t>(found.size);
    }
  for (const std::uint32_t one : made.image_sizes) {
    made.payload += one == no_size ? 0 : one;
    made.mark = mix64(made.mark ^ one);
  }
  return made;
}

PENSTOCK_INLINE void ffcv_file::find_place(std::uint64_t sample, std::size_t which, ffcv_place& found) const {
  const ffcv_field& field = fields[which];
  const std::byte* const at = row(sample) + field.offset;
  switch (field.kind) {
    case ffcv_kind::image: {
      found.begin = load_little<std::uint64_t>(at + 5);
      found.size = image_sizes[to_size(sample) * images + field.image_place];
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
    case ffcv_kind::bytes:
    case ffcv_kind::json:
      found.begin = load_little<std::uint64_t>(at);
      found.size = load_little<std::uint64_t>(at + 8);
      break;
    default:
      found.begin = load_little<std::uint64_t>(at);
      found.size = field.size;
  }
  if (found.size > size || found.begin > size - found.size)
    throw error(errc::format, {"the value of the field '", field.name, "' goes from ", found.begin, " for ",
                               found.size, " bytes, and the file has ", size});
}

PENSTOCK_INLINE ffcv_files::ffcv_files(storage_facts where, session_view session) {
  if (where.names.empty()) throw error(errc::argument, "a dataset needs at least one file");
  std::vector<manifest::shard> entries;
  for (std::size_t i = 0; i < where.names.size(); ++i) {
    const auto object = static_cast<object_id>(i);
    try {
      const object_version version = session.version(object);
      files.push_back(ffcv_file::read(session, object));
      learn_ends(object, ends_of(session, object, version.size));
      session.confirm(object);
      const ffcv_file& file = files.back();
      if (file.fields != fields())
        throw error(errc::format, {"the file has other fields than the first one, '", where.names[0], "'"});
      entries.push_back({where.names[i], file.size, file.samples, file.payload, file.mark, version.stamp});
      versions.push_back(version);
    } catch (error& e) {
      session.confirm(object);
      e.in_file(where.names[i]);
      throw;
    }
  }
  shards = manifest(std::move(entries));
  mark = mix64(shards.fingerprint() ^ 0x6265746f6eu);
}

PENSTOCK_INLINE std::string ffcv_files::key_of(std::size_t shard, std::uint64_t sample) const {
  const std::string_view name = path(shard);
  return text({name.substr(name.rfind('/') + 1), ":", sample});
}
PENSTOCK_INLINE std::string ffcv_files::describe() const {
  std::string line = text({"ffcv(", files.size(), files.size() == 1 ? " file, " : " files, ", shards.bytes(),
                           " bytes): ", shards.samples(), " samples of "});
  for (std::size_t i = 0; i < fields().size(); ++i)
    append(line, {i == 0 ? "" : ", ", fields()[i].name, " (", fields()[i].encoding, ")"});
  return line;
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
  throw error(errc::format, {"the field '", field.name, "' is of type ", field.encoding, ", which ", codec,
                             " does not read: use ", good});
}

}  // namespace detail
}  // namespace penstock::inline v0_1
