// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace penstock_test {

/// `key: suffix=bytes suffix=bytes`
template <class Sample>
std::string line_of(const Sample& s) {
  std::string line(s.key());
  line += ":";
  for (std::size_t m = 0; m < s.size(); ++m)
    line.append(" ").append(s.name(m)).append("=").append(penstock::text_of(s.member(m).finish()));
  return line;
}

/// The samples that a reader delivers until its end, as lines.
template <class Reader, class Element>
std::vector<std::string> rest_of(Reader& reader, Element& sample) {
  std::vector<std::string> lines;
  while (reader.next(sample)) lines.push_back(line_of(sample));
  return lines;
}

/// All samples of a forward source, as lines.
template <class Source>
std::vector<std::string> forward_listing(const Source& data) {
  auto reader = data.connect();
  typename Source::element sample;
  return rest_of(reader, sample);
}

}  // namespace penstock_test
