// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/processor_set.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <bit>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void processor_set::add(any_count number) {
  const std::uint64_t wanted = number.of("processors");
  if (wanted >= max_processors)
    throw error(errc::argument,
                {"there is no processor ", wanted, "; their numbers go from 0 to ", max_processors - 1});
  const auto place = static_cast<unsigned>(wanted);
  if (contains(place))
    throw error(errc::argument, {"processor ", place, " is listed twice; list each processor once"});
  words_[place / 64] |= std::uint64_t{1} << place % 64;
}

PENSTOCK_INLINE void processor_set::refuse_empty() {
  throw error(errc::argument, "the list of processors is empty; list at least one, or leave out .processors");
}

PENSTOCK_INLINE unsigned processor_set::size() const noexcept {
  unsigned count = 0;
  for (const std::uint64_t word : words_) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

PENSTOCK_INLINE std::string processor_set::describe() const {
  std::string line;
  for (unsigned first = 0; first < max_processors; ++first) {
    if (!contains(first)) continue;
    unsigned last = first;
    while (contains(last + 1)) ++last;
    detail::append(line, {line.empty() ? "" : ", ", first});
    if (last != first) detail::append(line, {"-", last});
    first = last;
  }
  return line;
}

}  // namespace penstock::inline v0_1
