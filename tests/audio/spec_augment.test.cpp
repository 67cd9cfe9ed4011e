// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/spec_augment.hpp>

#include "support/catch.hpp"

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace spec_augment_test {

namespace ps = penstock;

namespace {

using view = ps::tensor_view<const float>;

/// Features of which none is 0, as they are after masking; 0 is a mask.
std::vector<float> masked(const ps::spec_augment_options& options, std::size_t rows, std::size_t columns,
                          std::uint64_t index, std::vector<float> features = {}) {
  if (features.empty()) features.assign(rows * columns, 3.0f);
  const ps::spec_augment_operation operation(options);
  ps::spec_augment_operation::scratch scratch;
  const auto made =
      operation(view(features.data(), ps::extents(rows, columns)), {{0, index}, 0, 1, 0, scratch}).finish();
  return {made.flat().begin(), made.flat().end()};
}

/// The runs of rows, or of columns, that are masked all over.
std::vector<std::size_t> runs(const std::vector<float>& made, std::size_t rows, std::size_t columns,
                              bool of_rows) {
  std::vector<std::size_t> lengths;
  bool before = false;
  for (std::size_t a = 0; a < (of_rows ? rows : columns); ++a) {
    bool all = true;
    for (std::size_t b = 0; b < (of_rows ? columns : rows); ++b)
      all = all && made[of_rows ? a * columns + b : b * columns + a] == 0;
    if (all && !before) lengths.push_back(0);
    if (all) ++lengths.back();
    before = all;
  }
  return lengths;
}

}  // namespace

TEST_CASE("audio/spec_augment: masks are as wide as asked for, and anywhere") {
  constexpr std::size_t frames = 60, mels = 20;
  std::set<std::size_t> widths, bands;
  std::size_t first = 0, last = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto made =
        masked({.time_masks = 1, .time_width = 9, .freq_masks = 1, .freq_width = 4}, frames, mels, i);
    const auto stretches = runs(made, frames, mels, true), columns = runs(made, frames, mels, false);
    REQUIRE(stretches.size() <= 1);
    REQUIRE(columns.size() <= 1);
    const std::size_t width = stretches.empty() ? 0 : stretches[0], band = columns.empty() ? 0 : columns[0];
    widths.insert(width), bands.insert(band);
    first += made[mels - 1] == 0 && made[0] == 0 ? 1 : 0;
    last += made.back() == 0 && made[(frames - 1) * mels] == 0 ? 1 : 0;
    std::size_t zeros = 0;
    for (const float value : made) zeros += value == 0 ? 1 : 0;
    REQUIRE(zeros == width * mels + band * frames - width * band);
  }
  CHECK(widths == std::set<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(bands == std::set<std::size_t>{0, 1, 2, 3, 4});
  CHECK((first > 0 && last > 0));
}

TEST_CASE("audio/spec_augment: several masks, a share of the frames, and the other layout") {
  std::size_t most = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto made =
        masked({.time_masks = 3, .time_width = 50, .time_share = 0.1, .freq_masks = 0}, 80, 10, i);
    for (const std::size_t width : runs(made, 80, 10, true)) REQUIRE(width <= 3 * 8);
    most = std::max(most, runs(made, 80, 10, true).size());
    REQUIRE(runs(made, 80, 10, false).empty());
    const auto turned =
        masked({.time_masks = 3, .time_width = 50, .time_share = 0.1, .freq_masks = 0, .mels_first = true},
               10, 80, i);
    for (std::size_t f = 0; f < 80; ++f)
      for (std::size_t m = 0; m < 10; ++m) REQUIRE(made[f * 10 + m] == turned[m * 80 + f]);
  }
  CHECK(most == 3);
}

TEST_CASE("audio/spec_augment: values, the mean, and small features") {
  const auto written = masked({.time_width = 5, .freq_masks = 5, .freq_width = 5, .value = -9}, 10, 10, 1);
  for (const float value : written) REQUIRE((value == -9 || value == 3));
  std::vector<float> features(100, 1.0f);
  features[37] = 101;
  bool seen = false;
  for (std::uint64_t i = 0; i < 20; ++i)
    for (const float value : masked({.time_width = 5, .freq_width = 5, .mean = true}, 10, 10, i, features)) {
      REQUIRE((value == 1 || value == 101 || value == 2));
      seen = seen || value == 2;
    }
  CHECK(seen);
  for (std::uint64_t i = 0; i < 50; ++i) {
    CHECK(masked({}, 1, 1, i).size() == 1);
    CHECK(masked({.mean = true}, 0, 80, i).empty());
    CHECK(masked({.time_masks = 0, .freq_masks = 0}, 4, 3, i) == std::vector<float>(12, 3.0f));
    CHECK(masked({.time_share = 0, .freq_width = 0}, 4, 3, i) == std::vector<float>(12, 3.0f));
  }
}

TEST_CASE("audio/spec_augment: masks belong to the sample, not to the worker") {
  const std::vector<float> features(50 * 20, 1.0f);
  const auto plan =
      ps::generated(40,
                    [&](std::uint64_t) {
                      return ps::record<ps::field<"mels", view>>(view(features.data(), ps::extents(50, 20)));
                    }) |
      ps::map<"mels">(ps::spec_augment({.time_width = 20, .freq_width = 8}));
  const auto all = [](auto loader) {
    std::vector<float> values;
    for (auto&& b : loader.epoch(0)) {
      const auto some = ps::get<"mels">(b).flat();
      values.insert(values.end(), some.begin(), some.end());
    }
    return values;
  };
  const auto one = all(plan | ps::batch(8) | ps::workers(1));
  CHECK(one.size() == 40 * 50 * 20);
  CHECK(one == all(plan | ps::batch(8) | ps::workers(3)));
  CHECK(std::vector<float>(one.begin(), one.begin() + 1000) !=
        std::vector<float>(one.begin() + 1000, one.begin() + 2000));
}

TEST_CASE("audio/spec_augment: features that are not computed yet, into a place with gaps") {
  const std::vector<float> features(30 * 8, 1.0f);
  const ps::spec_augment_operation operation({.time_width = 9, .freq_width = 3});
  ps::spec_augment_operation::scratch scratch, other;
  const auto once = operation(view(features.data(), ps::extents(30, 8)), {{0, 1}, 0, 1, 0, scratch});
  const auto twice = operation(once, {{0, 2}, 0, 1, 0, other});
  std::vector<float> room(30 * 10, -7);
  ps::element_strides strides{};
  strides[0] = 10, strides[1] = 1;
  twice.write_to(ps::destination<float>(room.data(), twice.shape(), strides));
  const auto finished = twice.finish(), before = once.finish();
  std::size_t more = 0;
  for (std::size_t f = 0; f < 30; ++f)
    for (std::size_t m = 0; m < 10; ++m) {
      REQUIRE(room[f * 10 + m] == (m < 8 ? finished(f, m) : -7));
      if (m < 8 && before(f, m) == 0) REQUIRE(finished(f, m) == 0);
      more += m < 8 && before(f, m) != finished(f, m) ? 1 : 0;
    }
  CHECK(more > 0);
}

TEST_CASE("audio/spec_augment: what is refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(ps::spec_augment({.time_share = 1.5}), ps::error);
  CHECK_THROWS_AS(ps::spec_augment({.time_share = nan}), ps::error);
  CHECK_THROWS_AS(ps::spec_augment({.value = INFINITY}), ps::error);
  const ps::spec_augment_operation operation = ps::spec_augment();
  ps::spec_augment_operation::scratch scratch;
  const std::vector<float> features(8, 1.0f);
  try {
    static_cast<void>(operation(view(features.data(), ps::extents(2, 2, 2)), {{0, 0}, 0, 1, 0, scratch}));
    FAIL("three dimensions");
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::shape);
  }
}

}  // namespace spec_augment_test
