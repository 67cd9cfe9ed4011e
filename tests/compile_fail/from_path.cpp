// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: from(range) is a dataset in memory, and this is a text; write lines(path)

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/lines.hpp>

#include <cstddef>
#include <filesystem>

int main() {
  const std::filesystem::path file = "train.txt";
  std::size_t length = 0;
#ifdef PENSTOCK_WRONG
  for (auto&& line : penstock::from(file)) length += line.size();
#else
  for (auto&& line : penstock::lines(file.string())) length += line.size();
#endif
  return length == 0;
}
