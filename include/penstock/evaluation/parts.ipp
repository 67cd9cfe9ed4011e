// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/parts.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void add_text(std::vector<std::string>& all, std::string_view one) { all.emplace_back(one); }

PENSTOCK_INLINE std::string word_of_data(std::string words) {
  constexpr std::size_t maximum = 1000;
  if (words.size() > maximum) words = words.substr(0, maximum) + "...";
  return as_utf8(words);
}

PENSTOCK_INLINE std::string first_difference(std::span<const std::string> theirs,
                                             std::span<const std::string> ours, bool same_data) {
  for (std::size_t i = same_data ? 1 : 0; i < std::max(theirs.size(), ours.size()); ++i) {
    if (i < theirs.size() && i < ours.size() && theirs[i] == ours[i]) continue;
    return text({"it has ", i < theirs.size() ? std::string_view(theirs[i]) : "no more stages",
                 " where this plan has ", i < ours.size() ? std::string_view(ours[i]) : "no more"});
  }
  return {};
}

}  // namespace penstock::inline v0_1::detail
