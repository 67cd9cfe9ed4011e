// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/to_int16.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace audio_to_int16_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/to_int16: every integer of 16 bits is what it was, and others are rounded") {
  sound_call call;
  std::vector<float> all;
  for (int i = -32'768; i < 32'768; ++i) all.push_back(static_cast<float>(i) / 32'768.0f);
  const auto exact = ps::to_int16()(test_sound({65'536, 8'000, 1}, all), call.at(0));
  const auto found = exact.finish().values();
  bool same = true;
  for (int i = 0; i < 65'536; ++i) same = same && found[static_cast<std::size_t>(i)] == i - 32'768;
  CHECK(same);

  const float one = 1.0f / 32'768.0f;
  const auto rounded = ps::to_int16()(
      test_sound({8, 8'000, 1},
                 {1.0f, -1.5f, 0.49f * one, 0.5f * one, 1.5f * one, -0.51f * one, 1e30f, std::nanf("")}),
      call.at(0));
  const auto values = rounded.finish().values();
  CHECK(std::vector<int>(values.begin(), values.end()) ==
        std::vector<int>{32'767, -32'768, 0, 0, 2, -1, 32'767, -32'768});
}

TEST_CASE("audio/to_int16: written to any place") {
  sound_call call;
  const float one = 1.0f / 32'768.0f;
  const auto array = ps::to_int16()(test_sound({2, 8'000, 2}, {one, 2 * one, 3 * one, 4 * one}), call.at(0));
  CHECK(array.shape() == ps::extents(2, 2));
  std::vector<std::int16_t> turned(4), gaps(6, 9);
  array.write_to(ps::destination<std::int16_t>(turned.data(), ps::extents(2, 2), ps::element_strides{1, 2}));
  CHECK(turned == std::vector<std::int16_t>{1, 3, 2, 4});
  array.write_to(ps::destination<std::int16_t>(gaps.data(), ps::extents(2, 2), ps::element_strides{3, 1}));
  CHECK(gaps == std::vector<std::int16_t>{1, 2, 9, 3, 4, 9});
}

}  // namespace audio_to_int16_test
