// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/channels.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/test_sound.hpp"

#include <algorithm>
#include <vector>

namespace audio_channels_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("audio/channels: mono is the mean of the channels") {
  sound_call call;
  const test_sound stereo({3, 8'000, 2}, {0.5f, -1, 0.25f, 0.25f, 1, 0.75f});
  const auto mixed = ps::mono()(stereo, call.at(0));
  CHECK(mixed.form() == ps::sound_form{3, 8'000, 1});
  CHECK(samples_of(mixed) == std::vector<float>{0.375f, 0, 0.5f});
  const test_sound three({2, 8'000, 3}, {1, 2, 3, 4, 5, 9});
  CHECK(samples_of(ps::mono()(three, call.at(0))) == std::vector<float>{3, 5});
  const test_sound one({50, 8'000, 1}, 3);
  CHECK(samples_of(ps::mono()(one, call.at(0))) == samples_of(one));
  for (std::uint32_t channels = 1; channels < 6; ++channels)
    CHECK(parts_agree(ps::mono()(test_sound({100, 8'000, channels}, channels), call.at(0))));
}

TEST_CASE("audio/channels: one channel of several") {
  sound_call call;
  const test_sound stereo({3, 8'000, 2}, {1, 2, 3, 4, 5, 6});
  CHECK(samples_of(ps::channel(0)(stereo, call.at(0))) == std::vector<float>{1, 2, 3});
  CHECK(samples_of(ps::channel(1)(stereo, call.at(0))) == std::vector<float>{4, 5, 6});
  CHECK(ps::channel(1)(stereo, call.at(0)).form() == ps::sound_form{3, 8'000, 1});
  CHECK(parts_agree(ps::channel(2)(test_sound({100, 8'000, 4}), call.at(0))));
  CHECK(parts_agree(ps::channel(0)(test_sound({100, 8'000, 1}), call.at(0))));
  CHECK_THAT(error_of([&] { (void)ps::channel(2)(stereo, call.at(0)); }),
             contains("channel(2) of a sound of 2 channels, which are counted from 0"));
  CHECK_THROWS_AS(ps::channel(-1), ps::error);
}

TEST_CASE("audio/channels: squeeze makes one channel an array of one dimension") {
  sound_call call;
  const test_sound one({50, 8'000, 1}, 3);
  const auto array = ps::squeeze()(one, call.at(0));
  CHECK(array.shape() == ps::extents(50));
  const auto wanted = samples_of(one);
  CHECK(std::ranges::equal(array.finish().values(), wanted));
  std::vector<float> dense(50), apart(100, 9);
  array.write_to(ps::destination<float>(dense.data(), ps::extents(50)));
  CHECK(dense == wanted);
  array.write_to(ps::destination<float>(apart.data(), ps::extents(50), {2}));
  CHECK((apart[98] == wanted[49] && apart[99] == 9));
  CHECK_THAT(error_of([&] {
               (void)ps::squeeze()(test_sound({3, 8'000, 2}), call.at(0));
             }),
             contains("squeeze() of a sound of 2 channels; write mono() or channel(0) before it"));
}

TEST_CASE("audio/channels: nothing is allocated once the scratch has grown") {
  sound_call call;
  const test_sound stereo({1'000, 8'000, 2});
  ps::kept_sound kept;
  kept.assign(stereo);
  std::vector<float> into(1'000);
  const auto mix = [&] { ps::mono()(kept.shown(), call.at(0)).draw({0, 1'000}, {into.data(), 1'000}); };
  mix();
  CHECK(allocations_of(mix) == 0);
}

}  // namespace audio_channels_test
