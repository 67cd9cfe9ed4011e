// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/episodes.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE episodes::episodes(std::span<const std::uint64_t> lengths, std::vector<double> times) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 62;
  tables made;
  made.starts.reserve(lengths.size() + 1);
  made.starts.push_back(0);
  class fingerprint h;
  h.add("episodes");
  for (const std::uint64_t length : lengths) {
    const std::uint64_t first = made.starts.back();
    if (length > maximum - first)
      throw error(errc::argument, "the episodes have more than 2^62 rows").in_stage("windows");
    made.starts.push_back(first + length);
    made.longest = std::max(made.longest, length);
    h.add(length);
  }
  if (!times.empty() && times.size() != made.starts.back())
    throw error(errc::argument, {"there are ", times.size(), " times for ", made.starts.back(),
                                 " rows; give one for each row"})
        .in_stage("windows");
  for (std::size_t e = 0; !times.empty() && e < lengths.size(); ++e) {
    for (std::uint64_t row = made.starts[e]; row < made.starts[e + 1]; ++row) {
      const double time = times[detail::to_size(row)];
      const bool first = row == made.starts[e];
      if (std::isfinite(time) && (first || time > times[detail::to_size(row - 1)])) continue;
      throw error(errc::argument,
                  {"row ", row, " has the time ", detail::number_text(time),
                   first ? std::string() : " after " + detail::number_text(times[detail::to_size(row - 1)]),
                   "; the times of an episode must ascend"})
          .in_stage("windows");
    }
  }
  for (const double time : times) h.add(std::bit_cast<std::uint64_t>(time));
  made.times = std::move(times);
  made.fingerprint = h.value();
  tables_.reset(new const tables(std::move(made)));
}

}  // namespace penstock::inline v0_1
