// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <optional>
#include <string>
#include <vector>

namespace penstock::inline v0_1::detail {

enum class avro_kind : std::uint8_t {
  null,
  boolean,
  int32,
  int64,
  float32,
  float64,
  bytes,
  string,
  fixed,
  enumeration,
  array,
  map,
  one_of,  // a union
  record
};

/// A field of a record, a branch of a union, or what an array or a map has.
struct avro_field {
  std::string name;
  std::int64_t id;   // as Iceberg numbers fields; -1 for none
  std::size_t type;  // its number in the schema
};

struct avro_type {
  avro_kind kind = avro_kind::null;
  std::uint64_t size = 0;  // of `fixed`, in bytes
  std::vector<avro_field> fields;
};

/// The types of a schema of Avro, by their numbers.
struct avro_schema {
  std::vector<avro_type> types;
  std::size_t root = 0;

  [[nodiscard]] const avro_type& operator[](std::size_t type) const noexcept { return types[type]; }
};

/// Where values of a block are read. Every length is checked before it is used, and the steps that a block
/// may take are counted: a schema can ask for any number of values that have no bytes.
struct avro_walk {
  const avro_schema* schema;
  bytes_view bytes;
  std::size_t at;
  std::uint64_t* steps;  // left

  [[nodiscard]] std::int64_t number();
  /// A length, and that many bytes.
  [[nodiscard]] bytes_view sized();
  [[nodiscard]] bytes_view take(std::uint64_t size);
  /// Passes over a value.
  void skip(std::size_t type, std::size_t level = 0);
  [[noreturn, gnu::cold]] void damaged(std::string_view what) const;
};

/// A field, by its number, or by its name if the schema has no numbers.
struct avro_name {
  std::int64_t id;
  std::string_view name;
};

/// A record in a block. Views are valid as long as the block is.
class avro_record {
 public:
  /// Throws errc::format, with the offset in the block, for what is damaged.
  avro_record(avro_walk where, std::size_t type);

  /// Behind the record.
  [[nodiscard]] std::size_t end() const noexcept { return walk_.at; }
  /// The values of fields; none for a field that is null, or not there. Throws errc::format if a field is of
  /// another kind.
  [[nodiscard]] std::optional<std::int64_t> number(avro_name field) const;
  [[nodiscard]] std::optional<std::string_view> text(avro_name field) const;
  [[nodiscard]] std::optional<avro_record> record(avro_name field) const;
  /// Whether the field is there and not null.
  [[nodiscard]] bool has(avro_name field) const;
  /// Whether the schema has the field.
  [[nodiscard]] bool declares(avro_name field) const noexcept { return place_of(field) != places_.size(); }
  /// A plain value as text, equal for equal values even if the column's type was promoted in between: a
  /// number's digits, true or false, a text or bytes; the bits of a real number; a fixed value, which may be
  /// a decimal, without bytes that only repeat its sign.
  [[nodiscard]] std::optional<std::string> spelled(avro_name field) const;

 private:
  struct place {
    std::size_t type, at;
  };

  // Its number in the record, or how many there are.
  [[nodiscard]] std::size_t place_of(avro_name field) const noexcept;
  [[nodiscard]] std::optional<place> find(avro_name field) const;
  [[nodiscard]] avro_walk walk_at(const place& where) const noexcept {
    return {walk_.schema, walk_.bytes, where.at, walk_.steps};
  }
  [[noreturn, gnu::cold]] void other_kind(avro_name field, const place& where) const;

  avro_walk walk_;
  std::size_t type_;
  std::vector<place> places_;  // by field; of a union, its branch
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/avro_record.ipp>
#endif
