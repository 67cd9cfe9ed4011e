// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <concepts>
#include <optional>

namespace penstock::inline v0_1::detail {

/// A table of a FlatBuffers message, in which every offset is checked before it is followed. Throws
/// errc::format, with the offset in the message, for one that leads out of it.
///
/// Source: FlatBuffers, "FlatBuffer Internals"
class flat_table {
 public:
  class vector {
   public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// A number in an element, at its offset there.
    template <std::integral T>
    [[nodiscard]] T number(std::size_t i, std::size_t offset = 0) const {
      return static_cast<T>(flat_table::read(message_, begin_ + i * element_ + offset, sizeof(T)));
    }
    /// An element that is a table.
    [[nodiscard]] flat_table table(std::size_t i) const {
      return flat_table(message_, flat_table::follow(message_, begin_ + i * element_));
    }

   private:
    friend flat_table;
    bytes_view message_;
    std::size_t begin_ = 0, size_ = 0, element_ = 0;
  };

  /// The root of a message.
  explicit flat_table(bytes_view message) : message_(message) {
    *this = flat_table(message, follow(message, 0));
  }

  /// A number, or what the schema says for one that is left out.
  template <std::integral T>
  [[nodiscard]] T number(std::size_t field, T otherwise = 0) const {
    const std::size_t at = find(field, sizeof(T));
    return at == 0 ? otherwise : static_cast<T>(read(message_, at, sizeof(T)));
  }
  [[nodiscard]] bool flag(std::size_t field) const { return number<std::uint8_t>(field) != 0; }
  [[nodiscard]] std::optional<flat_table> table(std::size_t field) const {
    const std::size_t at = find(field, 4);
    if (at == 0) return std::nullopt;
    return flat_table(message_, follow(message_, at));
  }
  /// Empty if it is left out.
  [[nodiscard]] std::string_view text(std::size_t field) const {
    const std::size_t at = find(field, 4);
    if (at == 0) return {};
    const std::size_t begin = follow(message_, at);
    const std::uint64_t size = read(message_, begin, 4);
    if (size > message_.size() - begin - 4) lead_out(begin);
    return text_of(message_.subspan(begin + 4, to_size(size)));
  }
  /// A vector of elements of this size; empty if it is left out.
  [[nodiscard]] vector list(std::size_t field, std::size_t element_size) const {
    vector found;
    found.message_ = message_;
    found.element_ = element_size;
    const std::size_t at = find(field, 4);
    if (at == 0) return found;
    const std::size_t begin = follow(message_, at);
    const std::uint64_t size = read(message_, begin, 4);
    if (size > (message_.size() - begin - 4) / element_size) lead_out(begin);
    found.begin_ = begin + 4;
    found.size_ = to_size(size);
    return found;
  }
  /// The bytes of the message.
  [[nodiscard]] std::size_t message_size() const noexcept { return message_.size(); }

 private:
  flat_table(bytes_view message, std::size_t at) : message_(message), at_(at) {
    const auto back = static_cast<std::int32_t>(static_cast<std::uint32_t>(read(message, at, 4)));
    const std::int64_t fields = static_cast<std::int64_t>(at) - back;
    if (fields < 0) lead_out(at);
    fields_ = static_cast<std::size_t>(fields);
    fields_size_ = to_size(read(message, fields_, 2));
    constexpr std::size_t head = 4;
    if (fields_size_ < head) lead_out(fields_);
  }

  [[nodiscard]] static std::uint64_t read(bytes_view message, std::size_t at, std::size_t size) {
    if (at > message.size() || size > message.size() - at) lead_out(at);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= std::to_integer<std::uint64_t>(message[at + i]) << (8 * i);
    return value;
  }
  [[nodiscard]] static std::size_t follow(bytes_view message, std::size_t at) {
    const std::uint64_t forward = read(message, at, 4);
    if (forward == 0 || forward > message.size() - at) lead_out(at);
    return at + to_size(forward);
  }
  // Where a field is; 0 if it is left out.
  [[nodiscard]] std::size_t find(std::size_t field, std::size_t size) const {
    const std::size_t entry = 4 + 2 * field;
    if (entry + 2 > fields_size_) return 0;
    const std::uint64_t offset = read(message_, fields_ + entry, 2);
    if (offset == 0) return 0;
    const std::size_t at = at_ + to_size(offset);
    if (at > message_.size() || size > message_.size() - at) lead_out(fields_ + entry);
    return at;
  }
  [[noreturn, gnu::cold]] static void lead_out(std::size_t at) {
    throw error(errc::format, "the message's metadata lead out of it: the file is damaged").at_offset(at);
  }

  bytes_view message_;
  std::size_t at_ = 0;
  std::size_t fields_ = 0;  // where the table's vtable begins
  std::size_t fields_size_ = 0;
};

}  // namespace penstock::inline v0_1::detail
