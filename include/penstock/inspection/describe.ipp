// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/describe.hpp>

#include <cstddef>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string description_line(std::string name, std::string_view kind,
                                             const std::string& note) {
  const auto fill = [](std::string& line, std::size_t width) {
    if (line.size() < width) line.resize(width, ' ');
  };
  fill(name, 46);
  std::string line = "  " + name + " " + std::string(kind);
  fill(line, 2 + name.size() + 1 + 11);
  line += note;
  while (line.back() == ' ') line.pop_back();
  return line + "\n";
}

PENSTOCK_INLINE std::string used_fields_line(const projection& used) {
  if (used.everything()) return {};
  std::string line = "uses of a sample:";
  for (std::size_t i = 0; i < used.names().size(); ++i)
    line.append(i == 0 ? " " : ", ").append(used.names()[i]);
  return line + "\n";
}

}  // namespace penstock::inline v0_1::detail
