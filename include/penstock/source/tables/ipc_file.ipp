// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/ipc_file.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE const arrow_type* find_dictionary_type(const arrow_type& type, std::int64_t id) noexcept {
  if (!type.dictionary.empty()) {
    if (type.dictionary_id == id) return &type.dictionary.front();
    if (const arrow_type* const found = find_dictionary_type(type.dictionary.front(), id)) return found;
  }
  for (const arrow_type& child : type.children)
    if (const arrow_type* const found = find_dictionary_type(child, id)) return found;
  return nullptr;
}

PENSTOCK_INLINE const arrow_type* ipc_file::dictionary_type(std::int64_t id) const noexcept {
  return find_dictionary_type(schema, id);
}

PENSTOCK_INLINE void bad_ipc(std::initializer_list<piece> what, std::uint64_t offset) {
  throw error(errc::format, what).at_offset(offset);
}

PENSTOCK_INLINE ipc_message::ipc_message(bytes_view metadata) : header(metadata) {
  const flat_table message = header;
  version = message.number<std::int16_t>(0);
  kind = message.number<std::uint8_t>(1);
  body_size = message.number<std::int64_t>(3);
  const auto found = message.table(2);
  if (!found || body_size < 0) bad_ipc({"the message has no header: the file is damaged"}, 0);
  header = *found;
}

// Of whole numbers; empty for a width that they do not have.
PENSTOCK_INLINE std::string_view ipc_format_of_whole(const flat_table& type) {
  const bool has_sign = type.flag(1);
  switch (type.number<std::int32_t>(0)) {
    case 8:
      return has_sign ? "c" : "C";
    case 16:
      return has_sign ? "s" : "S";
    case 32:
      return has_sign ? "i" : "I";
    case 64:
      return has_sign ? "l" : "L";
    default:
      return "";
  }
}

// By the numbers of the union Type in Schema.fbs.
PENSTOCK_INLINE std::string ipc_format_of(const flat_table& field) {
  constexpr std::string_view without_options[] = {"", "n", "",  "",   "z",  "u",  "b",  "",    "",
                                                  "", "",  "",  "+l", "+s", "",   "",   "",    "+m",
                                                  "", "Z", "U", "+L", "+r", "vz", "vu", "+vl", "+vL"};
  const auto kind = field.number<std::uint8_t>(2);
  const std::optional<flat_table> said = field.table(3);
  if (!said) return kind == 1 ? "n" : "";
  const flat_table& type = *said;
  // The letter of the type's unit or precision.
  const auto letter = [&](std::string_view letters, std::int16_t otherwise) {
    const auto which = static_cast<std::uint16_t>(type.number<std::int16_t>(0, otherwise));
    return which < letters.size() ? letters.substr(which, 1) : "?";
  };
  const auto unit = [&](std::int16_t otherwise) { return letter("smun", otherwise); };
  switch (kind) {
    case 2:
      return std::string(ipc_format_of_whole(type));
    case 3:
      return std::string(letter("efg", 0));
    case 7: {
      const auto bits = type.number<std::int32_t>(2, 128);
      std::string made = text({"d:", type.number<std::int32_t>(0), ",", type.number<std::int32_t>(1)});
      if (bits != 128) append(made, {",", bits});
      return made;
    }
    case 8:
      return type.number<std::int16_t>(0, 1) == 0 ? "tdD" : "tdm";
    case 9:
      return text({"tt", unit(1)});
    case 10:
      return text({"ts", unit(0), ":", type.text(1)});
    case 11:
      return text({"ti", letter("MDn", 0)});
    case 14:
      return type.number<std::int16_t>(0) == 0 ? "+us:" : "+ud:";
    case 15:
      return text({"w:", type.number<std::int32_t>(0)});
    case 16:
      return text({"+w:", type.number<std::int32_t>(0)});
    case 18:
      return text({"tD", unit(1)});
    default:
      return kind < std::size(without_options) ? std::string(without_options[kind]) : std::string();
  }
}

PENSTOCK_INLINE std::uint64_t ipc_unread_buffers(std::string_view format, std::int16_t version) noexcept {
  const std::uint64_t validity = version < 4 ? 1 : 0;  // before version 5 unions had one
  if (format.starts_with("+us")) return 1 + validity;
  if (format.starts_with("+ud")) return 2 + validity;
  return 0;  // run_end_encoded
}

// What damaged metadata, which may use a table or a text many times over, cannot exceed.
struct ipc_budget {
  std::size_t fields;
  std::size_t name_bytes = 16 << 20;
};

PENSTOCK_INLINE arrow_type ipc_field(const flat_table& said, std::int16_t version, std::size_t depth,
                                     ipc_budget& left) {
  constexpr std::size_t deepest = 64;
  if (depth > deepest)
    bad_ipc({"the schema's columns are nested deeper than ", deepest, " levels, which is not read"}, 0);
  const std::string_view name = said.text(0);
  if (left.fields == 0 || left.name_bytes < name.size())
    bad_ipc({"the schema has more columns, or longer names, than its bytes can hold: the file is damaged"},
            0);
  --left.fields;
  left.name_bytes -= name.size();
  arrow_type made = arrow_type::of_format(ipc_format_of(said));
  made.name = name;
  const bool known = made.layout != arrow_layout::other || made.format.starts_with('+');
  if (!known)
    bad_ipc({"the column '", name, "' is of Arrow type number ", said.number<std::uint8_t>(2),
             made.format.empty() ? "" : ", as ", made.format, ", which is not known"},
            0);
  if (made.layout == arrow_layout::other) made.unread_buffers = ipc_unread_buffers(made.format, version);
  const flat_table::vector children = said.list(5, 4);
  if (made.is_list() && children.size() != 1)
    bad_ipc({"the list '", name, "' has ", children.size(), " children instead of one"}, 0);
  for (std::size_t i = 0; i < children.size(); ++i)
    made.children.push_back(ipc_field(children.table(i), version, depth + 1, left));
  if (const auto encoding = said.table(4)) {
    const auto type = encoding->table(1);
    arrow_type numbers = arrow_type::of_format(type ? ipc_format_of_whole(*type) : "i");
    if (numbers.number == arrow_number::none)
      bad_ipc({"the dictionary of the column '", name, "' is numbered by no whole numbers"}, 0);
    numbers.name = name;
    numbers.dictionary_id = encoding->number<std::int64_t>(0);
    numbers.dictionary.push_back(std::move(made));
    return numbers;
  }
  return made;
}

PENSTOCK_INLINE arrow_type ipc_schema(const flat_table& schema, std::int16_t version) {
  arrow_type root = arrow_type::of_format("+s");
  const flat_table::vector fields = schema.list(1, 4);
  ipc_budget left{schema.message_size() / 8};  // a field's table has as many bytes at least
  for (std::size_t i = 0; i < fields.size(); ++i)
    root.children.push_back(ipc_field(fields.table(i), version, 1, left));
  return root;
}

struct ipc_reader {
  session_view session;
  object_id object;
  std::uint64_t start, size;  // of what is Arrow's: from where in the object, and to where
  object_bytes metadata{};    // of the message found last, which refers to it

  // A little-endian number of 32 bits.
  [[nodiscard]] std::uint32_t number(std::uint64_t at) {
    std::array<std::byte, 4> four;
    session.read(object, at, four);
    return load_little<std::uint32_t>(four.data());
  }
  // The metadata of the message at an offset; none at the end of a stream. Moves on to what follows it.
  [[nodiscard]] std::optional<ipc_message> next(std::uint64_t& at, ipc_place& place) {
    const std::uint64_t begin = at;
    if (size - at < 4) {
      if (size == at) return std::nullopt;
      bad_ipc({"the stream ends within a message: the file is cut off"}, begin);
    }
    std::uint32_t length = number(at);
    at += 4;
    if (constexpr std::uint32_t marker = 0xffffffff; length == marker) {
      if (size - at < 4) bad_ipc({"the stream ends within a message: the file is cut off"}, begin);
      length = number(at);
      at += 4;
    }
    if (length == 0) return std::nullopt;
    if (length > size - at)
      bad_ipc({"the message's metadata have ", length, " bytes, and ", size - at,
               " follow: the file is cut off, or is no Arrow IPC stream"},
              begin);
    place.begin = at;
    place.size = length;
    try {
      metadata = session.range(object, at, length, std::move(metadata));
      ipc_message found(metadata);
      at += length;
      place.body = at;
      place.body_size = static_cast<std::uint64_t>(found.body_size);
      if (place.body_size > size - at)
        bad_ipc(
            {"the message has ", place.body_size, " bytes, and ", size - at, " follow: the file is cut off"},
            begin);
      at += place.body_size;
      return found;
    } catch (error& e) {
      if (e.offset()) e.within("the metadata", begin);
      e.at_offset(begin);
      throw;
    }
  }
};

PENSTOCK_INLINE void take_ipc_schema(ipc_file& file, const flat_table& schema, std::int16_t version) {
  file.schema = ipc_schema(schema, version);
  const bool big = schema.number<std::int16_t>(0) != 0;
  file.swapped = big != (std::endian::native == std::endian::big);
}

PENSTOCK_INLINE void take_ipc_batch(ipc_file& file, const ipc_message& message, const ipc_place& place) {
  if (message.kind == static_cast<std::uint8_t>(ipc_kind::batch)) {
    const auto rows = message.header.number<std::int64_t>(0);
    if (rows < 0) bad_ipc({"the batch has a negative number of rows"}, place.begin);
    file.compressed = file.compressed || message.header.table(3).has_value();
    file.batches.push_back({place, static_cast<std::uint64_t>(rows)});
  } else if (message.kind == static_cast<std::uint8_t>(ipc_kind::dictionary)) {
    const auto data = message.header.table(1);
    if (!data) bad_ipc({"the dictionary has no values"}, place.begin);
    file.compressed = file.compressed || data->table(3).has_value();
    file.dictionaries.push_back(
        {place, message.header.number<std::int64_t>(0), message.header.flag(2), file.batches.size()});
  } else {
    bad_ipc({"a message of kind ", message.kind, " is no batch of rows"}, place.begin);
  }
}

PENSTOCK_INLINE ipc_file read_ipc_stream(ipc_reader from) {
  ipc_file made;
  std::uint64_t at = from.start;
  ipc_place place;
  bool first = true;
  while (const auto message = from.next(at, place)) {
    if (first != (message->kind == static_cast<std::uint8_t>(ipc_kind::schema)))
      bad_ipc({first ? "the stream does not begin with a schema" : "the stream has a second schema"},
              place.begin);
    if (first)
      take_ipc_schema(made, message->header, message->version);
    else
      take_ipc_batch(made, *message, place);
    first = false;
  }
  if (first) bad_ipc({"the stream has no schema: the file is empty"}, from.start);
  return made;
}

PENSTOCK_INLINE ipc_file read_ipc_footer(ipc_reader from) {
  constexpr std::uint64_t head = 8, tail = 10;
  object_bytes last;
  if (from.size - from.start >= head + tail) last = from.session.range(from.object, from.size - tail, tail);
  const bytes_view end = last;
  if (end.empty() || text_of(end.subspan(4)) != "ARROW1")
    bad_ipc({"the file begins as an Arrow file and does not end as one: it is cut off"}, from.size);
  const std::uint64_t size = load_little<std::uint32_t>(end.data());
  if (size > from.size - from.start - head - tail)
    bad_ipc({"the footer has ", size, " bytes, which is more than the file has"}, from.size - tail);
  const std::uint64_t footer_begin = from.size - tail - size;
  ipc_file made;
  struct block {
    std::uint64_t offset, metadata, body;
  };
  std::array<std::vector<block>, 2> blocks;  // dictionaries, batches
  try {
    const object_bytes kept = from.session.range(from.object, footer_begin, size);
    const flat_table footer(kept);
    const auto schema = footer.table(1);
    if (!schema) bad_ipc({"the footer has no schema"}, 0);
    take_ipc_schema(made, *schema, footer.number<std::int16_t>(0));
    for (std::size_t which = 0; which < 2; ++which) {
      const flat_table::vector all = footer.list(2 + which, 24);
      for (std::size_t i = 0; i < all.size(); ++i)
        blocks[which].push_back({all.number<std::uint64_t>(i, 0), all.number<std::uint32_t>(i, 8),
                                 all.number<std::uint64_t>(i, 16)});
    }
  } catch (error& e) {
    if (e.offset()) e.within("the footer", footer_begin);
    e.at_offset(footer_begin);
    throw;
  }
  for (const auto& list : blocks)
    for (const block& one : list) {
      ipc_place place;
      if (one.offset > footer_begin - from.start)
        bad_ipc({"the footer names a batch at ", one.offset, ", which is behind the last"}, footer_begin);
      std::uint64_t at = from.start + one.offset;
      const auto message = from.next(at, place);
      const bool dictionary = &list == blocks.data();
      if (!message || (message->kind == static_cast<std::uint8_t>(ipc_kind::dictionary)) != dictionary)
        bad_ipc({"the footer names a ", dictionary ? "dictionary" : "batch", " where there is none"},
                from.start + one.offset);
      take_ipc_batch(made, *message, place);
    }
  return made;
}

// Finds the file or stream at the end of a chunk of LitData, whose size and a mark are behind it.
// Source: litdata, streaming/item_loader.py (append_arrow_row_footer).
PENSTOCK_INLINE void find_ipc_of_litdata(ipc_reader& from) {
  constexpr std::uint64_t tail = 12;
  if (from.size < tail) return;
  const object_bytes last = from.session.range(from.object, from.size - tail, tail);
  const bytes_view end = last;
  if (!is_end_of_litdata_rows(end.subspan(4))) return;
  const std::uint64_t size = load_little<std::uint32_t>(end.data());
  from.size -= tail;
  if (size > from.size)
    bad_ipc(
        {"the chunk's rows of Arrow have ", size, " bytes, and ", from.size, " are in front of their end"},
        from.size);
  from.start = from.size - size;
}

PENSTOCK_INLINE ipc_file ipc_file::read(session_view session, object_id object) {
  ipc_reader from{session, object, 0, session.size(object)};
  const auto head_of = [&] {
    const object_bytes first =
        session.range(object, from.start, std::min<std::uint64_t>(from.size - from.start, 6));
    return std::string(text_of(first));
  };
  std::string head = head_of();
  if (head != "ARROW1" && !head.starts_with("\xff\xff\xff\xff")) {
    find_ipc_of_litdata(from);
    head = head_of();
  }
  if (head == "ARROW1") return read_ipc_footer(std::move(from));
  if (!head.starts_with("\xff\xff\xff\xff") && !head.starts_with("FEA1")) {
    const object_bytes more =
        session.range(object, from.start, std::min<std::uint64_t>(from.size - from.start, 512));
    if (!known_format(more).empty()) throw not_a("an Arrow file", more, {});
    head = text_of(more);
  }
  if (head.starts_with("FEA1"))
    bad_ipc({"this is a Feather file of version 1: write it again with pyarrow.feather.write_feather, which "
             "writes version 2"},
            0);
  return read_ipc_stream(std::move(from));
}

}  // namespace penstock::inline v0_1::detail
