// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/lazy_sound.hpp>
#include <penstock/image/values.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/test_sound.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace audio_lazy_sound_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/lazy_sound: a sound is an array of channels and frames, at any place") {
  const test_sound sound({5, 8'000, 2}, {0, 1, 2, 3, 4, 10, 11, 12, 13, 14});
  STATIC_REQUIRE(ps::lazy_sound<test_sound>);
  STATIC_REQUIRE(ps::placed_expression<test_sound>);
  STATIC_REQUIRE_FALSE(ps::lazy_sound<std::vector<float>>);
  CHECK(sound.shape() == ps::extents(2, 5));
  CHECK(sound.form().seconds() == 5.0 / 8'000);
  CHECK(ps::sound_form{}.seconds() == 0);
  const auto whole = sound.finish();
  CHECK(std::vector<float>(whole.values().begin(), whole.values().end()) == samples_of(sound));

  std::vector<float> gaps(20, -1), turned(10);
  sound.write_to(ps::destination<float>(gaps.data(), ps::extents(2, 5), ps::element_strides{8, 1}));
  CHECK(gaps ==
        std::vector<float>{0, 1, 2, 3, 4, -1, -1, -1, 10, 11, 12, 13, 14, -1, -1, -1, -1, -1, -1, -1});
  sound.write_to(ps::destination<float>(turned.data(), ps::extents(2, 5), ps::element_strides{1, 2}));
  CHECK(turned == std::vector<float>{0, 10, 1, 11, 2, 12, 3, 13, 4, 14});
  sound.write_to(ps::destination<float>(turned.data() + 5, ps::extents(2, 5), ps::element_strides{-5, 1}));
  CHECK(turned == std::vector<float>{10, 11, 12, 13, 14, 0, 1, 2, 3, 4});
  const test_sound mono({3, 8'000, 1}, {7, 8, 9});
  mono.write_to(ps::destination<float>(turned.data() + 2, ps::extents(1, 3), ps::element_strides{-10, 1}));
  CHECK(turned == std::vector<float>{10, 11, 7, 8, 9, 0, 1, 2, 3, 4});
}

TEST_CASE("audio/lazy_sound: parts lie within") {
  const ps::sound_form form{10, 8'000, 1};
  CHECK(ps::sound_part{0, 10}.within(form));
  CHECK(ps::sound_part{10, 0}.within(form));
  CHECK_FALSE(ps::sound_part{1, 10}.within(form));
  CHECK_FALSE(ps::sound_part{11, 0}.within(form));
  CHECK_FALSE(ps::sound_part{5, ~std::uint64_t{0}}.within(form));
}

TEST_CASE("audio/lazy_sound: what is kept in memory is shown again") {
  const test_sound sound({100, 8'000, 3}, 5);
  ps::kept_as<test_sound>::type kept;
  kept.assign(sound);
  CHECK(kept.form() == sound.form());
  CHECK(kept.bytes() == 1'200);
  CHECK(samples_of(kept.shown()) == samples_of(sound));
  CHECK(parts_agree(kept.shown()));
  CHECK(std::ranges::equal(kept.shown().finish().values(), samples_of(sound)));
  CHECK_THROWS_AS(kept.assign({1, 2, 3}, ps::sound_form{2, 8'000, 1}), ps::error);

  const auto plan =
      ps::from({1, 2, 3}) | ps::map([&](int) { return kept.shown(); }) | ps::keep_in_memory(1'000'000);
  CHECK(values_of(plan | ps::batch(3)).size() == 900);
}

TEST_CASE("audio/lazy_sound: to_float leaves a sound as it is, and other numbers are left to images") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> call{{}, 0, 0, 0, scratch};
  const test_sound sound({100, 8'000, 1}, 5);
  CHECK(samples_of(ps::to_float()(sound, call)) == samples_of(sound));
  using to_half = decltype(ps::to_half());
  STATIC_REQUIRE_FALSE(std::is_invocable_v<to_half, const test_sound&, const ps::call<ps::image_scratch>&>);
}

}  // namespace audio_lazy_sound_test
