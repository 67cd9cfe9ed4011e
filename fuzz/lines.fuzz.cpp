// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Lines of two texts, against a plain split: [bytes of a first file, 16 bits][first file][second file]

#include <penstock/source/lines.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/fuzz.hpp"

#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const ps::bytes_view first = in.take(in.number<std::uint16_t>());
  const ps::bytes_view second = in.rest();
  std::vector<std::string_view> wanted;
  for (std::string_view text : {ps::text_of(first), ps::text_of(second)}) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      if (end < text.size() && line.ends_with('\r')) line.remove_suffix(1);
      wanted.push_back(line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  const std::string problem = outcome([&] {
    const auto source =
        ps::lines(ps::memory_files().add_view("a", first).add_view("b", second), {.threads = 1});
    must(source.size() == wanted.size(), "as many lines as there are");
    const auto reader = source.connect();
    decltype(source.connect())::worker worker;
    for (std::uint64_t i = 0; i < wanted.size(); ++i) {
      // forward, and back, which needs the table
      for (const std::uint64_t at : {i, wanted.size() - 1 - i}) {
        reader.evaluate({0, at}, worker, [&](std::string_view line) {
          must(line == wanted[at], "lines are those of a split");
        });
      }
    }
  });
  if (problem.find("is compressed with") != std::string::npos) return 0;
  must(problem.empty() != wanted.empty(), "texts with lines are good");
  return 0;
}
