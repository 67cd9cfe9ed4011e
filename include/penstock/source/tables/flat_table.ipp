// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/flat_table.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void flat_table::lead_out(std::size_t at) {
  throw error(errc::format, "the message's metadata lead out of it: the file is damaged").at_offset(at);
}

PENSTOCK_INLINE std::uint64_t flat_table::read(bytes_view message, std::size_t at, std::size_t size) {
  if (at > message.size() || size > message.size() - at) lead_out(at);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(message[at + i]) << (8 * i);
  return value;
}
PENSTOCK_INLINE std::size_t flat_table::follow(bytes_view message, std::size_t at) {
  const std::uint64_t forward = read(message, at, 4);
  if (forward == 0 || forward > message.size() - at) lead_out(at);
  return at + to_size(forward);
}

PENSTOCK_INLINE flat_table::flat_table(bytes_view message) : message_(message) {
  *this = flat_table(message, follow(message, 0));
}
PENSTOCK_INLINE flat_table::flat_table(bytes_view message, std::size_t at) : message_(message), at_(at) {
  const auto back = static_cast<std::int32_t>(static_cast<std::uint32_t>(read(message, at, 4)));
  const std::int64_t fields = static_cast<std::int64_t>(at) - back;
  if (fields < 0) lead_out(at);
  fields_ = static_cast<std::size_t>(fields);
  fields_size_ = to_size(read(message, fields_, 2));
  constexpr std::size_t head = 4;
  if (fields_size_ < head) lead_out(fields_);
}

PENSTOCK_INLINE std::size_t flat_table::find(std::size_t field, std::size_t size) const {
  const std::size_t entry = 4 + 2 * field;
  if (entry + 2 > fields_size_) return 0;
  const std::uint64_t offset = read(message_, fields_ + entry, 2);
  if (offset == 0) return 0;
  const std::size_t at = at_ + to_size(offset);
  if (at > message_.size() || size > message_.size() - at) lead_out(fields_ + entry);
  return at;
}

PENSTOCK_INLINE std::optional<flat_table> flat_table::table(std::size_t field) const {
  const std::size_t at = find(field, 4);
  if (at == 0) return std::nullopt;
  return flat_table(message_, follow(message_, at));
}
PENSTOCK_INLINE std::string_view flat_table::text(std::size_t field) const {
  const std::size_t at = find(field, 4);
  if (at == 0) return {};
  const std::size_t begin = follow(message_, at);
  const std::uint64_t size = read(message_, begin, 4);
  if (size > message_.size() - begin - 4) lead_out(begin);
  return text_of(message_.subspan(begin + 4, to_size(size)));
}
PENSTOCK_INLINE flat_table::vector flat_table::list(std::size_t field, std::size_t element_size) const {
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
PENSTOCK_INLINE flat_table flat_table::vector::table(std::size_t i) const {
  return flat_table(message_, flat_table::follow(message_, begin_ + i * element_));
}

}  // namespace penstock::inline v0_1::detail
