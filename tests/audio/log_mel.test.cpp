// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/audio/log_mel.hpp>

#include "support/catch.hpp"
#include "support/feature_oracles.hpp"

#include <penstock/core/error.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace log_mel_test {

namespace ps = penstock;
using penstock_test::made_sound;

namespace {

/// A sound that is not decoded yet and counts how often it is.
struct lazy {
  using unfinished = void;
  using value_type = float;
  struct sound_form {
    std::uint32_t rate;
  };

  const std::vector<float>* samples;
  std::uint32_t channels = 1, rate = 16'000;
  int* decoded = nullptr;

  [[nodiscard]] sound_form form() const { return {rate}; }
  [[nodiscard]] ps::extents shape() const { return ps::extents(channels, samples->size() / channels); }
  void write_to(const ps::destination<float>& into) const {
    into.copy_from(std::span<const float>(*samples));
  }
  [[nodiscard]] ps::tensor_view<const float> finish() const {
    if (decoded != nullptr) ++*decoded;
    return {samples->data(), shape()};
  }
};

template <class Operation, class V>
std::string refusal(const Operation& operation, const V& sound) {
  typename Operation::scratch scratch;
  try {
    static_cast<void>(operation(sound, {{0, 0}, 0, 1, 0, scratch}));
  } catch (const ps::error& e) {
    return e.code() == ps::errc::shape ? e.what() : "another error";
  }
  return "none";
}

}  // namespace

TEST_CASE("audio/log_mel: sounds of a batch, whatever holds their samples") {
  using sample =
      ps::record<ps::field<"vector", std::vector<float>>, ps::field<"span", std::span<const float>>>;
  const auto sound = made_sound(16'000, 1);
  const ps::log_mel_features features(ps::log_mel_options::kaldi());
  ps::log_mel_features::scratch scratch;
  std::vector<float> wanted(features.shape(16'000).elements());
  features(sound, wanted, scratch);
  const auto kaldi = ps::log_mel(ps::log_mel_options::kaldi());
  auto loader =
      ps::generated(6, [&](std::uint64_t) { return sample(sound, std::span<const float>(sound)); }) |
      ps::map<"vector">(kaldi) | ps::map<"span">(kaldi) | ps::batch(3) | ps::workers(2);
  std::size_t seen = 0;
  for (auto&& b : loader.epoch(0)) {
    REQUIRE(ps::get<"vector">(b).shape() == ps::extents(3, 98, 23));
    for (std::size_t i = 0; i < 3; ++i, ++seen) {
      const auto first = ps::get<"vector">(b)[i].flat(), second = ps::get<"span">(b)[i].flat();
      CHECK(std::equal(wanted.begin(), wanted.end(), first.begin(), first.end()));
      CHECK(std::equal(wanted.begin(), wanted.end(), second.begin(), second.end()));
    }
  }
  CHECK(seen == 6);
}

TEST_CASE("audio/log_mel: the shape is known before the sound is decoded, and it is decoded once") {
  const auto samples = made_sound(4000, 2);
  int decoded = 0;
  const auto operation = ps::log_mel(ps::log_mel_options::whisper());
  std::remove_const_t<decltype(operation)>::scratch scratch;
  const auto made = operation(lazy{&samples, 1, 16'000, &decoded}, {{0, 0}, 0, 1, 0, scratch});
  CHECK(made.shape() == ps::extents(80, 25));
  CHECK(decoded == 0);
  const auto finished = made.finish();
  CHECK(decoded == 1);
  // Into a place with gaps.
  std::vector<float> room(80 * 30, -7);
  ps::element_strides strides{};
  strides[0] = 30, strides[1] = 1;
  made.write_to(ps::destination<float>(room.data(), made.shape(), strides));
  for (std::size_t m = 0; m < 80; ++m)
    for (std::size_t f = 0; f < 30; ++f) REQUIRE(room[m * 30 + f] == (f < 25 ? finished(m, f) : -7));
}

TEST_CASE("audio/log_mel: mfcc, too") {
  const auto samples = made_sound(4000, 2);
  const auto operation = ps::mfcc(ps::mfcc_options::kaldi());
  std::remove_const_t<decltype(operation)>::scratch scratch;
  const auto finished = operation(samples, {{0, 0}, 0, 1, 0, scratch}).finish();
  REQUIRE(finished.shape() == ps::extents(23, 13));
  ps::mfcc_features::scratch other;
  std::vector<float> wanted(23 * 13);
  operation.features()(samples, wanted, other);
  CHECK(std::equal(wanted.begin(), wanted.end(), finished.flat().begin()));
}

TEST_CASE("audio/log_mel: several channels and other rates are refused") {
  const auto samples = made_sound(4000, 2);
  const auto operation = ps::log_mel();
  CHECK(refusal(operation, lazy{&samples, 2}).find("mono()") != std::string::npos);
  CHECK(refusal(operation, lazy{&samples, 1, 44'100}).find("resample(16000)") != std::string::npos);
  CHECK(refusal(ps::mfcc(), lazy{&samples, 1, 8000}).find("mfcc is for sounds of 16000 Hz") !=
        std::string::npos);
  CHECK(refusal(operation, lazy{&samples}) == "none");
  CHECK(refusal(operation, ps::tensor_view<const float>(samples.data(), ps::extents(1, 4000))) == "none");
  CHECK(refusal(operation, ps::tensor_view<const float>(samples.data(), ps::extents(40, 100)))
            .find("(40, 100)") != std::string::npos);
}

}  // namespace log_mel_test
