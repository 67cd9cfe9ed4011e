// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The codecs of numbers and texts: [text]

#include <penstock/codec/floating.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>

#include "support/fuzz.hpp"

using namespace penstock_fuzz;
namespace ps = penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ps::bytes_view bytes = input(data, size).rest();
  ps::no_scratch none;
  outcome([&] {
    const std::int64_t value = ps::integer{}.decode(bytes, none);
    must(ps::integer{}.decode(ps::bytes_of(std::to_string(value)), none) == value, "a number is read back");
  });
  outcome([&] { (void)ps::integer_as<std::uint8_t>{}.decode(bytes, none); });
  outcome([&] { (void)ps::floating{}.decode(bytes, none); });
  outcome([&] { must(ps::text{}.decode(bytes, none).size() == bytes.size(), "a text is all its bytes"); });
  return 0;
}
