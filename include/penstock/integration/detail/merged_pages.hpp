// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Pages of metrics as one: each metric once, with its series of all pages.
[[nodiscard]] inline std::string merged_pages(const std::vector<std::string_view>& pages) {
  struct family {
    std::string lines;
    std::size_t from = 0;  ///< the page that describes it
  };
  std::map<std::string_view, family> all;
  std::vector<std::string_view> order;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    family* now = nullptr;
    for (std::string_view rest = pages[i]; !rest.empty();) {
      const std::string_view line = rest.substr(0, std::min(rest.size(), rest.find('\n') + 1));
      rest.remove_prefix(line.empty() ? rest.size() : line.size());
      const bool tells = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
      if (tells) {
        const std::string_view name = line.substr(7, line.find(' ', 7) - 7);
        const auto [place, fresh] = all.try_emplace(name);
        if (fresh) {
          place->second.from = i;
          order.push_back(name);
        }
        now = &place->second;
      }
      if (now != nullptr && (tells ? now->from == i : !line.starts_with('#'))) now->lines += line;
    }
  }
  std::string made;
  for (const std::string_view name : order) made += all[name].lines;
  return made;
}

}  // namespace penstock::inline v0_1::detail
