// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Name patterns; what would take long is measured only: [pattern]

#include <penstock/storage/braces.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;
namespace braces = penstock::detail::braces;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pattern = ps::text_of(input(data, size).rest());
  outcome([&] {
    const auto expected = braces::measure(pattern);
    if (expected.names > 10'000 || expected.text > 1 << 20) return;
    const auto names = ps::expand_braces(pattern);
    std::uint64_t text = 0;
    for (const std::string& name : names) text += name.size();
    must(names.size() == expected.names, "as many names as were foreseen");
    must(text <= expected.text, "no more text than was foreseen");
  });
  return 0;
}
