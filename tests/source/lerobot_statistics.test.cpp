// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/lerobot_statistics.hpp>

#include <penstock/image/values.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"

#include <algorithm>
#include <vector>

namespace ps = penstock;
using codec_test::caught;

namespace lerobot_statistics_test {
namespace {

struct made_array {
  using unfinished = void;
  using value_type = float;
  std::vector<float> values;
  ps::extents all;

  [[nodiscard]] ps::extents shape() const { return all; }
  void write_to(float* to) const { std::copy(values.begin(), values.end(), to); }
  [[nodiscard]] ps::tensor_view<const float> finish() const { return {values.data(), all}; }
};

std::vector<float> scaled(const ps::statistics_scaling& by, const made_array& array) {
  ps::statistics_scaling::scratch scratch;
  const auto made = by(array, ps::call<ps::statistics_scaling::scratch>{{0, 0}, 0, 0, 0, scratch});
  static_assert(ps::array_expression<decltype(made)>);
  std::vector<float> values(array.values.size());
  made.write_to(values.data());
  CHECK(made.shape() == array.all);
  CHECK(std::ranges::equal(made.finish().flat(), values));
  return values;
}

}  // namespace

TEST_CASE("source/lerobot_statistics: vectors are scaled in 32 bits, as LeRobot does it") {
  const ps::lerobot_statistics stats{.mean = {1, 0.1}, .std = {3, 0}, .min = {0, 3}, .max = {4, 3}};
  const made_array rows{{2, 0.1f, 4, 3}, ps::extents(2, 2)};  // two rows of a window
  CHECK(scaled(ps::mean_std(stats), rows) ==
        std::vector<float>{1.0f / (3.0f + 1e-8f), 0, 3.0f / (3.0f + 1e-8f), (3.0f - 0.1f) / 1e-8f});
  CHECK(scaled(ps::min_max(stats), rows) ==
        std::vector<float>{0, 2 * (0.1f - 3) / 1e-8f - 1, 1, -1});  // what is always the same is -1
  CHECK(caught([&] { scaled(ps::mean_std(stats), {{1, 2, 3}, ps::extents(3)}); }).code == ps::errc::shape);
  CHECK(caught([] { static_cast<void>(ps::mean_std({.mean = {1}})); }).code == ps::errc::argument);
  CHECK(caught([] { static_cast<void>(ps::min_max({})); }).code == ps::errc::argument);

  const ps::channel_statistics<3> camera =
      ps::lerobot_statistics{.mean = {0.5, 0.25, 0.125}, .std = {1, 2, 4}};
  CHECK(camera.mean[2] == 0.125);
  CHECK(camera.std[1] == 2);
  CHECK(caught([&] { static_cast<void>(ps::normalize<3>(stats)); }).code == ps::errc::argument);
}

}  // namespace lerobot_statistics_test
