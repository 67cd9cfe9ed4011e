// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/bad_samples.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <charconv>

namespace penstock::inline v0_1::bad_samples {

PENSTOCK_INLINE fraction::fraction(double part) : value(part) {
  if (!(part >= 0 && part <= 1))
    throw error(errc::argument, {"bad_samples: ", describe(),
                                 " is not between 0 and 1; write fraction(0.001) for one in a thousand"})
        .in_stage("bad_samples");
}
PENSTOCK_INLINE std::string fraction::describe() const {
  char digits[32];
  return detail::text({"fraction(",
                       std::string_view(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr),
                       ")"});
}

PENSTOCK_INLINE budget::budget(std::uint64_t count, bool negative) : count_(count) {
  if (negative)
    throw error(errc::argument, "bad_samples: a budget cannot be negative").in_stage("bad_samples");
}
PENSTOCK_INLINE std::uint64_t budget::limit(std::optional<std::uint64_t> samples) const {
  if (!part_) return count_;
  if (*part_ == 0) return 0;
  if (!samples)
    throw error(errc::argument,
                "bad_samples: the number of samples per epoch is unknown after a source that is read "
                "forward, with steps(n) after filter and unbatch, or if an epoch has no end; give a count "
                "instead of a fraction")
        .in_stage("bad_samples");
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(*part_ * static_cast<double>(*samples) + 0.5));
}
PENSTOCK_INLINE std::string budget::describe() const {
  if (!part_) return std::to_string(count_);
  return fraction(*part_).describe();
}

}  // namespace penstock::inline v0_1::bad_samples
