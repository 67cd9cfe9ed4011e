// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/tf_sequence_example.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"

#include <penstock/core/random.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;

namespace tf_sequence_example_test {

/// What the classes generated from TensorFlow's example.proto serialise (the package tfrecord 1.14.6):
/// context label 7, tags ["cat", "", "dog"]; lists frames ["f0", "f1", "f2"], rgb [[0, 0.5], [1, 1.5], [2,
/// 2.5]], ids [[], [0], [0, 1]], step [5, -6, 7].
std::string sample() {
  return std::string(
      ps::text_of(codec_test::from_base64("CigKDgoFbGFiZWwSBRoDCgEHChYKBHRhZ3MSDgoMCgNjYXQKAAoDZG9nEpsBCiIKBm"
                                          "ZyYW1lcxIYCgYKBAoCZjAKBgoECgJmMQoGCgQKAmYy"
                                          "ChoKA2lkcxITCgIaAAoFGgMKAQAKBhoECgIAAQoxCgNyZ2ISKgoMEgoKCAAAAAAAAA"
                                          "A/CgwSCgoIAACAPwAAwD8KDBIKCggAAABAAAAgQAom"
                                          "CgRzdGVwEh4KBRoDCgEFCg4aDAoK+v//////////AQoFGgMKAQc=")));
}
template <class Example>
auto decoded(std::string_view bytes) {
  static typename Example::scratch scratch;
  return Example{}.decode(bytes, scratch);
}
template <class Example>
std::string refusal(std::string_view bytes) {
  return penstock_test::error_of([&] { (void)decoded<Example>(bytes); });
}
template <class T>
using steps = ps::tf_sequence_example<ps::feature_list<"step", T>>;

TEST_CASE("codec/tf_sequence_example: the context and lists of every form") {
  using clip = ps::tf_sequence_example<
      ps::feature<"label", std::int64_t>, ps::feature<"tags", std::span<const std::string_view>>,
      ps::feature_list<"frames", ps::bytes>, ps::feature_list<"rgb", std::array<float, 2>>,
      ps::feature_list<"ids", std::vector<std::int32_t>>, ps::feature_list<"step", std::int8_t>>;
  static_assert(ps::codec<clip>);
  const std::string bytes = sample();
  const auto found = decoded<clip>(bytes);
  CHECK(ps::get<"label">(found) == 7);
  CHECK(ps::get<"tags">(found)[2] == "dog");
  const auto frames = ps::get<"frames">(found);
  REQUIRE(frames.size() == 3);
  CHECK(ps::text_of(frames[1]) == "f1");
  const auto rgb = ps::get<"rgb">(found);
  CHECK(rgb.shape() == ps::extents(3, 2));
  CHECK(rgb.data()[5] == 2.5f);
  CHECK(ps::get<"ids">(found) == std::vector<std::vector<std::int32_t>>{{}, {0}, {0, 1}});
  const auto step = ps::get<"step">(found);
  REQUIRE(step.size() == 3);
  CHECK(step[1] == -6);
  CHECK(ps::get<"step">(decoded<steps<std::int64_t>>(bytes))[1] == -6);
  CHECK(ps::get<"label">(decoded<ps::tf_example<ps::feature<"label", int>>>(bytes)) == 7);
  // a list that is missing has no steps, and a list is not the context
  CHECK(ps::get<"none">(decoded<ps::tf_sequence_example<ps::feature_list<"none", float>>>(bytes)).empty());
  CHECK(ps::get<"label">(decoded<ps::tf_sequence_example<ps::feature_list<"label", int>>>(bytes)).empty());
  CHECK_THAT((refusal<ps::tf_sequence_example<ps::feature<"step", int>>>(bytes)), contains("no value for"));
}

TEST_CASE("codec/tf_sequence_example: what does not fit is an error that names the list and the step") {
  const std::string bytes = sample();
  CHECK_THAT((refusal<ps::tf_sequence_example<ps::feature_list<"ids", int>>>(bytes)),
             contains("step 0 of the feature list 'ids' has 0 values, but 1 was asked for"));
  CHECK_THAT((refusal<ps::tf_sequence_example<ps::feature_list<"rgb", std::array<float, 3>>>>(bytes)),
             contains("step 0 of the feature list 'rgb' has 2 values, but 3 were asked for"));
  CHECK_THAT(refusal<steps<float>>(bytes), contains("'step' has integers, but floats were asked for"));
  CHECK_THAT(refusal<steps<std::uint8_t>>(bytes), contains("'step' is out of the range of its type"));
}

TEST_CASE("codec/tf_sequence_example: lists in batches") {
  const std::vector<std::string> records(4, sample());
  using clip =
      ps::tf_sequence_example<ps::feature_list<"rgb", std::array<float, 2>>, ps::feature_list<"step", int>>;
  std::size_t batches = 0;
  for (auto&& b : (ps::from(records) | ps::decode<clip> | ps::batch(2)).epoch(0)) {
    CHECK(ps::get<"rgb">(b).shape() == ps::extents(2, 3, 2));
    CHECK(ps::get<"step">(b).shape() == ps::extents(2, 3));
    ++batches;
  }
  CHECK(batches == 2);
}

TEST_CASE("codec/tf_sequence_example: randomly changed bytes do no harm") {
  using clip =
      ps::tf_sequence_example<ps::feature<"label", int, 0>, ps::feature_list<"frames", std::string_view>,
                              ps::feature_list<"rgb", std::vector<float>>, ps::feature_list<"step", int>>;
  const std::string good = sample();
  ps::rng random(6, 6, 6);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (auto n = 1 + random.below(4); n > 0; --n)
      bytes[static_cast<std::size_t>(random.below(bytes.size()))] = static_cast<char>(random.below(256));
    if (random.chance(0.2)) bytes.resize(static_cast<std::size_t>(random.below(bytes.size())));
    read += refusal<clip>(bytes).empty() ? 1 : 0;
  }
  CHECK(read > 100);
  CHECK(read < 2900);
}

}  // namespace tf_sequence_example_test
