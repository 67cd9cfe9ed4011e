// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Features of sounds allocate nothing in the steady state.

#include "support/catch.hpp"
#include "support/steady_test.hpp"

#include <penstock/audio/log_mel.hpp>
#include <penstock/audio/spec_augment.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ps = penstock;
using penstock_test::check_steady;

namespace steady_features_test {

const std::vector<float> sound(4000, 0.25f);
const auto plan =
    ps::generated(80, [](std::uint64_t) { return std::span<const float>(sound); }) | ps::shuffle(ps::seed(3));

TEST_CASE("steady/steady_features: log mel features, coefficients and masks") {
  check_steady(plan | ps::map(ps::log_mel(ps::log_mel_options::whisper())) | ps::batch(8), "log_mel");
  check_steady(plan | ps::map(ps::mfcc(ps::mfcc_options::kaldi())) | ps::batch(8), "mfcc");
  check_steady(plan | ps::map(ps::log_mel({.n_mels = 40}), ps::spec_augment({.mean = true})) | ps::batch(8),
               "spec_augment");
}

}  // namespace steady_features_test
