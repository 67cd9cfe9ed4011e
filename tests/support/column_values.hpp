// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/arrow_value.hpp>
#include <penstock/stage/decode.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// A column of a table, as `arrow_value<T>` reads it. The reader is asked, and no run is compiled.
template <class T, class Source>
[[nodiscard]] std::vector<T> column_values(const Source& source, std::string_view name) {
  const auto reader = source.connect();
  typename decltype(source.connect())::worker worker;
  typename penstock::arrow_value<T>::scratch scratch;
  std::vector<T> all;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& row) {
      std::size_t column = 0;
      while (column < row.size() && row.name(column) != name) ++column;
      if (column == row.size()) throw std::invalid_argument("no column " + std::string(name));
      all.push_back(penstock::detail::run_codec(penstock::arrow_value<T>{}, row.member(column), scratch));
    });
  return all;
}

}  // namespace penstock_test
