// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/avro_record.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <bit>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::int64_t avro_walk::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at == bytes.size()) damaged("a number of Avro is cut off");
    const auto one = std::to_integer<std::uint64_t>(bytes[at++]);
    if (shift == 63 && one > 1) break;
    value |= (one & 127) << shift;
    // The sign is the lowest bit.
    if (one < 128) return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
  }
  damaged("a number of Avro has more than 64 bits");
}

PENSTOCK_INLINE bytes_view avro_walk::sized() {
  const std::int64_t size = number();
  if (size < 0) damaged("a value of Avro has a length below zero");
  return take(static_cast<std::uint64_t>(size));
}

PENSTOCK_INLINE bytes_view avro_walk::take(std::uint64_t size) {
  if (size > bytes.size() - at) damaged("a value of Avro is longer than what is left");
  const bytes_view taken = bytes.subspan(at, to_size(size));
  at += taken.size();
  return taken;
}

PENSTOCK_INLINE void avro_walk::damaged(std::string_view what) const {
  throw error(errc::format, {what, ": the file is damaged"}).at_offset(at);
}

PENSTOCK_INLINE avro_record::avro_record(avro_walk where, std::size_t type) : walk_(where), type_(type) {
  const avro_type& its = (*walk_.schema)[type_];
  places_.reserve(its.fields.size());
  for (const avro_field& field : its.fields) {
    place found{field.type, walk_.at};
    const avro_type& of_field = (*walk_.schema)[field.type];
    if (of_field.kind == avro_kind::one_of) {
      avro_walk inside = walk_;
      const auto branch = static_cast<std::uint64_t>(inside.number());
      if (branch < of_field.fields.size()) found = {of_field.fields[to_size(branch)].type, inside.at};
    }
    walk_.skip(field.type);
    places_.push_back(found);
  }
}

PENSTOCK_INLINE std::optional<std::int64_t> avro_record::number(avro_name field) const {
  const auto found = find(field);
  if (!found) return std::nullopt;
  const avro_kind kind = (*walk_.schema)[found->type].kind;
  if (kind != avro_kind::int32 && kind != avro_kind::int64) other_kind(field, *found);
  return walk_at(*found).number();
}

PENSTOCK_INLINE std::optional<std::string_view> avro_record::text(avro_name field) const {
  const auto found = find(field);
  if (!found) return std::nullopt;
  const avro_kind kind = (*walk_.schema)[found->type].kind;
  if (kind != avro_kind::string && kind != avro_kind::bytes) other_kind(field, *found);
  return text_of(walk_at(*found).sized());
}

PENSTOCK_INLINE std::optional<avro_record> avro_record::record(avro_name field) const {
  const auto found = find(field);
  if (!found) return std::nullopt;
  if ((*walk_.schema)[found->type].kind != avro_kind::record) other_kind(field, *found);
  return avro_record(walk_at(*found), found->type);
}

PENSTOCK_INLINE bool avro_record::has(avro_name field) const { return find(field).has_value(); }

PENSTOCK_INLINE std::optional<std::string> avro_record::spelled(avro_name field) const {
  const auto found = find(field);
  if (!found) return std::nullopt;
  avro_walk walk = walk_at(*found);
  const avro_type& its = (*walk_.schema)[found->type];
  switch (its.kind) {
    case avro_kind::boolean:
      return walk.take(1).front() == std::byte{} ? "false" : "true";
    case avro_kind::int32:
    case avro_kind::int64:
    case avro_kind::enumeration:
      return detail::text({walk.number()});
    case avro_kind::float32:
      return detail::text({std::bit_cast<std::uint64_t>(
          double{std::bit_cast<float>(load_little<std::uint32_t>(walk.take(4).data()))})});
    case avro_kind::float64:
      return detail::text({load_little<std::uint64_t>(walk.take(8).data())});
    case avro_kind::bytes:
    case avro_kind::string:
      return std::string(text_of(walk.sized()));
    case avro_kind::fixed: {
      std::string_view value = text_of(walk.take(its.size));
      const auto repeats_sign = [&] {
        if (value.size() < 2) return false;
        const bool negative = (static_cast<unsigned char>(value[1]) & 0x80) != 0;
        return value[0] == (negative ? '\xff' : '\0');
      };
      while (repeats_sign()) value.remove_prefix(1);
      return std::string(value);
    }
    default:
      other_kind(field, *found);
  }
}

PENSTOCK_INLINE std::size_t avro_record::place_of(avro_name field) const noexcept {
  const std::vector<avro_field>& fields = (*walk_.schema)[type_].fields;
  std::size_t i = 0;
  while (i < fields.size() && (fields[i].id >= 0 ? fields[i].id != field.id : fields[i].name != field.name))
    ++i;
  return i;
}

PENSTOCK_INLINE std::optional<avro_record::place> avro_record::find(avro_name field) const {
  const std::size_t i = place_of(field);
  if (i == places_.size() || (*walk_.schema)[places_[i].type].kind == avro_kind::null) return std::nullopt;
  return places_[i];
}

PENSTOCK_INLINE void avro_record::other_kind(avro_name field, const place& where) const {
  throw error(errc::format,
              {"the field '", field.name, "' is not of the kind that it has in tables of Iceberg"})
      .at_offset(where.at);
}

PENSTOCK_INLINE void avro_walk::skip(std::size_t type, std::size_t level) {
  constexpr std::size_t max_levels = 64;
  if (*steps == 0 || level == max_levels)
    throw error(errc::limit, "the schema of Avro asks for more work than the file's bytes explain")
        .at_offset(at);
  --*steps;
  const avro_type& its = (*schema)[type];
  switch (its.kind) {
    case avro_kind::null:
      return;
    case avro_kind::boolean:
      return void(take(1));
    case avro_kind::int32:
    case avro_kind::int64:
    case avro_kind::enumeration:
      return void(number());
    case avro_kind::float32:
      return void(take(4));
    case avro_kind::float64:
      return void(take(8));
    case avro_kind::bytes:
    case avro_kind::string:
      return void(sized());
    case avro_kind::fixed:
      return void(take(its.size));
    case avro_kind::array:
    case avro_kind::map:
      while (const std::int64_t count = number()) {
        if (count < 0) {  // then there is a size
          (void)sized();
          continue;
        }
        for (std::int64_t i = 0; i < count; ++i) {
          const std::size_t before = at;
          if (its.kind == avro_kind::map) (void)sized();
          skip(its.fields.front().type, level + 1);
          if (at == before) break;  // they all have no bytes
        }
      }
      return;
    case avro_kind::one_of: {
      const auto branch = static_cast<std::uint64_t>(number());
      if (branch >= its.fields.size()) damaged("a union of Avro has a branch that is not there");
      return skip(its.fields[to_size(branch)].type, level + 1);
    }
    case avro_kind::record:
      for (const avro_field& field : its.fields) skip(field.type, level + 1);
  }
}

}  // namespace penstock::inline v0_1::detail
