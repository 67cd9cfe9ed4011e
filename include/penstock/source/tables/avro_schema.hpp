// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <cstddef>
#include <cstdint>
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

}  // namespace penstock::inline v0_1::detail
