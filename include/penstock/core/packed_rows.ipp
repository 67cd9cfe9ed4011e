// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/packed_rows.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void packed_rows::check_offsets() const {
  constexpr std::size_t most = 0x7fffffff;
  if (capacity() != 0 && rows_ > most / capacity())
    throw error(errc::argument, {"cu_seqlens: ", rows_, " rows of ", capacity(),
                                 " tokens have more places than 2^31 - 1; put fewer rows in a batch"});
}

PENSTOCK_INLINE std::vector<std::int32_t> packed_rows::cu_seqlens() const {
  check_offsets();
  std::vector<std::int32_t> sums(1, 0);
  for_each_sequence([&](const packed_document& d, std::size_t) {
    sums.push_back(sums.back() + static_cast<std::int32_t>(length(d)));
  });
  return sums;
}

PENSTOCK_INLINE std::vector<std::int32_t> packed_rows::cu_seqlens_padded() const {
  check_offsets();
  std::vector<std::int32_t> places;
  for_each_sequence(
      [&](const packed_document&, std::size_t place) { places.push_back(static_cast<std::int32_t>(place)); });
  places.push_back(static_cast<std::int32_t>(rows_ * capacity()));
  return places;
}

PENSTOCK_INLINE std::int32_t packed_rows::max_seqlen() const noexcept {
  std::uint32_t longest = 0;
  for (std::size_t i = 0; i < count_; ++i) longest = std::max(longest, length(documents_[i]));
  return static_cast<std::int32_t>(longest);
}

PENSTOCK_INLINE std::int32_t packed_rows::max_seqlen_padded() const {
  std::int32_t longest = 0;
  const std::vector<std::int32_t> places = cu_seqlens_padded();
  for (std::size_t i = 1; i < places.size(); ++i) longest = std::max(longest, places[i] - places[i - 1]);
  return longest;
}

PENSTOCK_INLINE std::vector<std::int32_t> packed_rows::position_ids() const {
  std::vector<std::int32_t> ids(rows_ * capacity(), 0);
  for_each_token([&](std::size_t, std::size_t place, std::uint32_t token) {
    ids[place] = static_cast<std::int32_t>(token);
  });
  return ids;
}

PENSTOCK_INLINE std::vector<std::int32_t> packed_rows::document_ids() const {
  std::vector<std::int32_t> ids(rows_ * capacity(), -1);
  for_each_token([&](std::size_t document, std::size_t place, std::uint32_t) {
    ids[place] = static_cast<std::int32_t>(document);
  });
  return ids;
}

PENSTOCK_INLINE std::vector<std::uint8_t> packed_rows::mask() const {
  std::vector<std::uint8_t> used(rows_ * capacity(), 0);
  for_each_token([&](std::size_t, std::size_t place, std::uint32_t) { used[place] = 1; });
  return used;
}

PENSTOCK_INLINE double packed_rows::fill() const noexcept {
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < count_; ++i) tokens += length(documents_[i]);
  const std::uint64_t places = rows_ * capacity();
  return places == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(places);
}

}  // namespace penstock::inline v0_1
