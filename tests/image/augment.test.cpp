// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/augment.hpp>

#include <penstock/image/random_erasing.hpp>
#include <penstock/image/rotate.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"
#include "support/warp_oracles.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace augment_test {

namespace ps = penstock;
using penstock_test::all_ways_agree;
using penstock_test::drawn_values;
using penstock_test::read_values;
using penstock_test::test_image;

namespace {

template <std::size_t Channels>
ps::augmented_image<test_image<std::uint8_t, Channels>> augmented(
    const test_image<std::uint8_t, Channels>& image, const std::vector<ps::augmentation_step>& steps,
    ps::augment_scratch& scratch) {
  ps::detail::augmentation_steps all;
  for (const auto& step : steps) all.all[all.count++] = step;
  return {image, all, {}, scratch};
}
template <std::size_t Channels>
void compare(const penstock_test::warp_case& one) {
  ps::augment_scratch scratch;
  const ps::augmentation_step step{static_cast<ps::augmentation>(one.numbers[0]), one.numbers[1]};
  INFO(to_string(step.what) << ' ' << step.magnitude);
  const auto made = augmented(one.image<Channels>(), {step}, scratch);
  const auto got = read_values(made), expected = one.expected();
  const bool moves = step.what >= ps::augmentation::shear_x && step.what <= ps::augmentation::rotate;
  // pixels that are halfway between two may be either
  CHECK(penstock_test::differing(got, expected, moves ? 1 : 0) <= (moves ? expected.size() / 100 : 0));
  CHECK(all_ways_agree(made));
}

}  // namespace

TEST_CASE("image/augment: each operation is torchvision's") {
  std::size_t compared = 0;
  for (const auto& one : penstock_test::warp_cases()) {
    if (one.kind != "augment") continue;
    if (one.channels == 3)
      compare<3>(one);
    else
      compare<1>(one);
    ++compared;
  }
  CHECK(compared == 2 * 2 * ps::augmentation_count);
}

TEST_CASE("image/augment: steps are applied one after another") {
  ps::augment_scratch scratch, other;
  const test_image<std::uint8_t, 3> image({23, 17}, 5, 4);
  const std::vector<ps::augmentation_step> steps = {
      {ps::augmentation::rotate, 20},     {ps::augmentation::equalize, 0}, {ps::augmentation::identity, 0},
      {ps::augmentation::sharpness, 0.5}, {ps::augmentation::color, -0.5}, {ps::augmentation::translate_x, 3},
      {ps::augmentation::contrast, 0.5}};
  for (std::size_t count = 0; count <= steps.size(); ++count) {
    const std::vector<ps::augmentation_step> first(steps.begin(),
                                                   steps.begin() + static_cast<std::ptrdiff_t>(count));
    test_image<std::uint8_t, 3> by_hand = image;
    for (const auto& step : first)
      by_hand = test_image<std::uint8_t, 3>(image.size(), read_values(augmented(by_hand, {step}, other)));
    const auto made = augmented(image, first, scratch);
    CHECK(read_values(made) == by_hand.values());
    CHECK(all_ways_agree(made));
  }
  const test_image<std::uint8_t, 4> alpha({9, 7}, 5);
  const test_image<std::uint8_t, 1> one({1, 1}, 5), none({0, 0}, 5);
  CHECK(all_ways_agree(augmented(alpha, steps, scratch)));
  CHECK(all_ways_agree(augmented(one, steps, scratch)));
  CHECK(augmented(none, steps, scratch).finish().size() == 0);
}

TEST_CASE("image/augment: what is drawn has torchvision's magnitudes") {
  // trivial: every operation, and every magnitude
  std::array<std::set<double>, ps::augmentation_count> magnitudes;
  std::array<int, ps::augmentation_count> counts{};
  for (std::uint64_t i = 0; i < 28'000; ++i) {
    const auto steps = ps::detail::draw(ps::trivial_augment_options{}, {}, ps::rng(1, 0, i));
    REQUIRE(steps.count == 1);
    const auto what = static_cast<std::size_t>(steps.all[0].what);
    magnitudes[what].insert(steps.all[0].magnitude);
    ++counts[what];
  }
  for (const int count : counts) CHECK(std::abs(count - 2000) < 250);
  const auto of = [&](ps::augmentation what) { return magnitudes[static_cast<std::size_t>(what)]; };
  CHECK(of(ps::augmentation::identity) == std::set<double>{0});
  CHECK(of(ps::augmentation::posterize) == std::set<double>{2, 3, 4, 5, 6, 7, 8});
  CHECK(of(ps::augmentation::shear_x).size() == 61);
  CHECK(*of(ps::augmentation::shear_y).begin() == -0.99);
  CHECK(*of(ps::augmentation::translate_x).rbegin() == 32);
  CHECK(*of(ps::augmentation::rotate).rbegin() == 135);
  CHECK(of(ps::augmentation::solarize).size() == 31);
  CHECK(*of(ps::augmentation::brightness).rbegin() == 0.99);

  // rand: the magnitudes of the cases, which are torchvision's
  std::array<double, ps::augmentation_count> expected{};
  for (const auto& one : penstock_test::warp_cases())
    if (one.kind == "augment" && one.channels == 3 && one.numbers[2] == 9)
      expected[static_cast<std::size_t>(one.numbers[0])] = one.numbers[1];
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto steps =
        ps::detail::draw(ps::rand_augment_options{.operations = 8}, {19, 14}, ps::rng(1, 0, i));
    REQUIRE(steps.count == 8);
    for (const auto& step : steps.all)
      REQUIRE(std::abs(std::abs(step.magnitude) - expected[static_cast<std::size_t>(step.what)]) < 1e-4);
  }
}

TEST_CASE("image/augment: the draw belongs to the sample") {
  ps::augment_scratch scratch, other;
  const test_image<std::uint8_t, 3> image({40, 30}, 5);
  const auto trivial = ps::trivial_augment({.how = ps::interpolation::bilinear, .fill = {1, 2, 3}});
  const auto rand = ps::rand_augment({.operations = 3});
  std::set<std::vector<std::uint8_t>> different;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const ps::call<ps::augment_scratch> c{{0, i}, 0, 1, 4, scratch}, again{{0, i}, 0, 1, 4, other};
    const auto one = read_values(trivial(image, c));
    CHECK(one == drawn_values(trivial(image, again)));
    const auto several = read_values(rand(image, c));
    CHECK(several == drawn_values(rand(image, again), penstock_test::layout::chw));
    different.insert(several);
  }
  CHECK(different.size() > 45);
  CHECK(read_values(ps::rand_augment({.operations = 0})(image, {{0, 1}, 0, 1, 4, scratch})) ==
        image.values());
}

TEST_CASE("image/augment: names, and what is refused") {
  CHECK(to_string(ps::augmentation::identity) == "identity");
  CHECK(to_string(ps::augmentation::equalize) == "equalize");
  CHECK(to_string(static_cast<ps::augmentation>(99)) == "unknown");
  CHECK_THROWS_AS(ps::trivial_augment({.bins = 1}), ps::error);
  CHECK_THROWS_AS(ps::trivial_augment({.bins = 70'000}), ps::error);
  CHECK_THROWS_AS(ps::trivial_augment({.how = ps::interpolation::area}), ps::error);
  CHECK_THROWS_AS(ps::rand_augment({.operations = 9}), ps::error);
  CHECK_THROWS_AS(ps::rand_augment({.magnitude = 31}), ps::error);
  CHECK_THROWS_AS(ps::rand_augment({.bins = 0}), ps::error);
  CHECK_THROWS_AS(ps::rand_augment({.how = ps::interpolation::bicubic}), ps::error);
  ps::augment_scratch scratch;
  const test_image<std::uint8_t, 3> image({4, 3}, 5);
  CHECK_THROWS_AS(ps::trivial_augment({.fill = {1, 2}})(image, {{0, 1}, 0, 1, 4, scratch}), ps::error);
}

TEST_CASE("image/augment: in a pipeline, the same bytes for any number of workers, and after a restore") {
  const auto plan = ps::generated(40, [](std::uint64_t i) { return i; }) | ps::map([](std::uint64_t i) {
                      return test_image<std::uint8_t, 3>({24, 20}, i);
                    }) |
                    ps::map(ps::trivial_augment(), ps::rand_augment({.operations = 3}), ps::rotate({-20, 20}),
                            ps::random_erasing({.value = ps::random_pixels})) |
                    ps::batch(6);
  std::vector<std::vector<std::uint8_t>> whole;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    std::vector<std::vector<std::uint8_t>> all;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0))
      all.emplace_back(b.values().flat().begin(), b.values().flat().end());
    REQUIRE(all.size() == 7);
    if (whole.empty()) whole = all;
    CHECK(all == whole);
  }
  auto run = (plan | ps::workers(2)).open();
  for (int i = 0; i < 3; ++i) REQUIRE(run.next());
  auto resumed = (plan | ps::workers(0)).open(ps::state_from_string(to_string(run.state())));
  std::size_t step = 3;
  for (auto&& b : resumed.rest()) {
    const auto values = b.values().flat();
    CHECK(std::vector<std::uint8_t>(values.begin(), values.end()) == whole.at(step++));
  }
  CHECK(step == 7);
}

}  // namespace augment_test
