// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <concepts>
#include <optional>

namespace penstock::inline v0_1::detail {

/// A table of a FlatBuffers message, in which every offset is checked before it is followed. Throws
/// errc::format, with the offset in the message, for one that leads out of it.
///
/// Source: FlatBuffers, "FlatBuffer Internals"
class flat_table {
 public:
  class vector;

  /// The root of a message.
  explicit flat_table(bytes_view message);

  /// A number, or what the schema says for one that is left out.
  template <std::integral T>
  [[nodiscard]] T number(std::size_t field, T otherwise = 0) const {
    const std::size_t at = find(field, sizeof(T));
    return at == 0 ? otherwise : static_cast<T>(read(message_, at, sizeof(T)));
  }
  [[nodiscard]] bool flag(std::size_t field) const { return number<std::uint8_t>(field) != 0; }
  [[nodiscard]] std::optional<flat_table> table(std::size_t field) const;
  /// Empty if it is left out.
  [[nodiscard]] std::string_view text(std::size_t field) const;
  /// A vector of elements of this size; empty if it is left out.
  [[nodiscard]] vector list(std::size_t field, std::size_t element_size) const;
  /// The bytes of the message.
  [[nodiscard]] std::size_t message_size() const noexcept { return message_.size(); }

 private:
  flat_table(bytes_view message, std::size_t at);

  [[nodiscard]] static std::uint64_t read(bytes_view message, std::size_t at, std::size_t size);
  [[nodiscard]] static std::size_t follow(bytes_view message, std::size_t at);
  // Where a field is; 0 if it is left out.
  [[nodiscard]] std::size_t find(std::size_t field, std::size_t size) const;
  [[noreturn, gnu::cold]] static void lead_out(std::size_t at);

  bytes_view message_;
  std::size_t at_ = 0;
  std::size_t fields_ = 0;  // where the table's vtable begins
  std::size_t fields_size_ = 0;
};

class flat_table::vector {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// A number in an element, at its offset there.
  template <std::integral T>
  [[nodiscard]] T number(std::size_t i, std::size_t offset = 0) const {
    return static_cast<T>(flat_table::read(message_, begin_ + i * element_ + offset, sizeof(T)));
  }
  /// An element that is a table.
  [[nodiscard]] flat_table table(std::size_t i) const;

 private:
  friend flat_table;
  bytes_view message_;
  std::size_t begin_ = 0, size_ = 0, element_ = 0;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/flat_table.ipp>
#endif
