// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: tokenised writes sequences of whole numbers

#include <penstock/inspection/tokenised.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>
#include <string>
#include <vector>

int main() {
  const auto texts = penstock::from(std::vector<std::string>{"a", "text"});
#ifdef PENSTOCK_WRONG
  const auto docs = penstock::tokenised<std::uint16_t>(texts, "mine", "/dev/null/nothing");
#else
  const auto letters = texts | penstock::map([](const std::string& text) {
                         return std::vector<std::uint8_t>(text.begin(), text.end());
                       });
  const auto docs = penstock::tokenised<std::uint16_t>(letters, "mine", "/dev/null/nothing");
#endif
  return docs.size() == 0;
}
