// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/text/csv_rows.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;
using ps::detail::csv_marks;

namespace {

/// The rows of a text that comes in pieces of a size.
std::vector<std::string> rows_of(std::string_view text, std::size_t piece, csv_marks marks = {}) {
  ps::detail::csv_row_ends ends(marks);
  std::vector<std::string> made(1);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    std::string_view left = text.substr(at, piece);
    while (!left.empty()) {
      const std::size_t end = ends.find(left, true);
      made.back() += left.substr(0, end == 0 ? left.size() : end);
      if (end != 0) made.emplace_back();
      left.remove_prefix(end == 0 ? left.size() : end);
    }
  }
  if (made.back().empty()) made.pop_back();
  return made;
}

}  // namespace

TEST_CASE("source/csv_rows: rows end where no quote is open, in pieces of any size") {
  const std::vector<std::string> rows{
      "a,b\r\n", "\"x\ny\",\"say \"\"\n\"\"\"\n", "5\" wide,\"\"\n", "\n", "\"\",\"\n\"\n", "end"};
  std::string text;
  for (const std::string& one : rows) text += one;
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    CAPTURE(piece);
    CHECK(rows_of(text, piece) == rows);
    ps::detail::csv_row_ends ends{csv_marks{}};
    CHECK(ends.find(text, false) == text.size() - rows.back().size());
  }
  const std::vector<std::string> escaped{"'a\\'\n',1\n", "\\'b\n", "c\n"};
  for (std::size_t piece = 1; piece < 8; ++piece)
    CHECK(rows_of(escaped[0] + escaped[1] + escaped[2], piece, {',', '\'', '\\'}) == escaped);

  ps::detail::csv_row_ends open{csv_marks{}};
  CHECK(open.find("a,\"b\n", false) == 0);
  CHECK(open.quoted());
  CHECK(open.find("\"\n", false) == 2);
  CHECK_FALSE(open.quoted());
}
