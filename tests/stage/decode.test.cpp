// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/decode.hpp>

#include <penstock/codec/identity.hpp>
#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/open_samples.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace decode_test {

int copies = 0;
struct counted {
  std::size_t size = 0;
  explicit counted(std::size_t given) : size(given) {}
  counted(const counted& other) : size(other.size) { ++copies; }
  counted& operator=(const counted&) = delete;
};
/// The size of what it gets, as a value that counts how often it is copied.
struct counting_codec {
  static constexpr std::string_view codec_name = "counting";
  [[nodiscard]] counted decode(const auto& in, ps::no_scratch&) const {
    return counted(ps::as_bytes(in).size());
  }
};

}  // namespace decode_test
using namespace decode_test;

TEST_CASE("stage/decode: bytes become values; an error names codec and position") {
  const std::vector<std::string> words{"1", "-7", " 42 "};
  CHECK(values_of(ps::from(words) | ps::decode<ps::integer> | ps::batch(2)) ==
        std::vector<std::int64_t>{1, -7, 42});
  const std::vector<std::string> bad{"1", "2", "three"};
  const auto said =
      error_of([&] { (void)values_of(ps::from(bad) | ps::decode<ps::integer> | ps::batch(1)); });
  CHECK_THAT(said, contains("stage decode<integer>"));
  CHECK_THAT(said, contains("position 0:2"));
}

TEST_CASE("stage/decode: fields of a record are decoded in place") {
  using sample = ps::record<ps::field<"a", std::string>, ps::field<"b", std::string>>;
  const std::vector<sample> samples{sample("1", "x"), sample("2", "yz")};
  for (auto&& b : (ps::from(samples) | ps::decode<ps::field<"a", ps::integer>, ps::field<"b", ps::text>> |
                   ps::batch(2, ps::collate<"b">(ps::ragged)))
                      .epoch(0)) {
    CHECK(ps::get<"a">(b)[1] == 2);
    CHECK(ps::get<"b">(b)[1].size() == 2);
  }
  const std::vector<ps::record<ps::field<"only", std::string>>> one{
      ps::record<ps::field<"only", std::string>>("5")};
  for (auto&& b : (ps::from(one) | ps::decode<ps::integer> | ps::batch(1)).epoch(0))
    CHECK(ps::get<"only">(b)[0] == 5);
}

TEST_CASE("stage/decode: of a record decode<Codec> takes the only field that is bytes") {
  using sample = ps::record<ps::field<"text", std::string>, ps::field<"weight", double>>;
  const std::vector<sample> samples{sample("7", 0.5), sample("8", 1.5)};
  for (auto&& b : ps::from(samples) | ps::decode<ps::integer> | ps::batch(2)) {
    CHECK(ps::get<"text">(b)[1] == 8);
    CHECK(ps::get<"weight">(b)[1] == 1.5);
  }
}

namespace {

// A pipeline that is a template over its codec, as in the first line of the documents.
template <class Codec>
auto pipeline(const auto& source, Codec = {}) {
  return source | ps::shard(0, 1) | ps::prefetch(8) | ps::decode<Codec> | ps::shuffle_buffer(4) |
         ps::batch(2) | ps::pin_and_copy;
}
template <class Plan>
std::vector<double> sorted_values(const Plan& plan) {
  std::vector<double> all;
  for (auto&& b : plan.epoch(0))
    for (const double x : b.values()) all.push_back(x);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("stage/decode: decode<identity> passes values that are already decoded") {
  const std::vector<double> numbers{3, 1, 2};
  CHECK(sorted_values(pipeline<ps::identity>(ps::from(numbers))) == std::vector<double>{1, 2, 3});
  CHECK(sorted_values(ps::from(numbers) | ps::decode<ps::identity> | ps::batch(2)) ==
        std::vector<double>{1, 2, 3});

  // A value passes by reference, and is not copied on the way to what uses it.
  std::vector<std::array<float, 3>> rows{{1, 2, 3}, {4, 5, 6}};
  const auto passed = ps::from(rows) | ps::decode<ps::identity>;
  float sum = 0;
  for (auto&& b : passed | ps::batch(2)) sum += b.values()(1, 2);
  for (auto&& row : passed) sum += row[0];
  for (auto&& kept : passed | ps::filter([](const auto& row) { return row[0] > 1; })) sum += kept[1];
  CHECK(sum == 6 + 5 + 5);

  using sample = ps::record<ps::field<"x", std::array<float, 2>>, ps::field<"y", int>>;
  const std::vector<sample> samples{sample(std::array<float, 2>{1, 2}, 3)};
  for (auto&& b : pipeline<ps::identity>(ps::from(samples)).epoch(0)) {
    CHECK(ps::get<"x">(b)(0, 1) == 2);
    CHECK(ps::get<"y">(b)[0] == 3);
  }
  for (auto&& b : ps::from(samples) | ps::decode<ps::field<"y", ps::identity>> | ps::batch(1))
    CHECK(ps::get<"y">(b)[0] == 3);
}

TEST_CASE("stage/decode: what a codec returns is made where it stays") {
  using sample = ps::record<ps::field<"x", std::string>, ps::field<"y", std::string>>;
  copies = 0;
  int sum = 0;
  for (auto&& s : ps::from({sample("a", "12"), sample("b", "34")}) |
                      ps::decode<ps::field<"y", counting_codec>> |
                      ps::map([](const auto& s) { return static_cast<int>(get<"y">(s).size); }))
    sum += s;
  CHECK(sum == 4);
  CHECK(copies == 0);
}

TEST_CASE("stage/decode: fields that pass are moved, not copied") {
  struct moved_only {
    std::unique_ptr<int> value;
  };
  using sample = ps::record<ps::field<"owner", moved_only>, ps::field<"text", std::string>>;
  const auto owners = ps::from({1, 2}) | ps::map([](int x) {
                        return sample(moved_only{std::make_unique<int>(x)}, std::to_string(10 * x));
                      });
  int sum = 0;
  for (auto&& s : owners | ps::decode<ps::field<"text", ps::integer>> | ps::map([](const auto& s) {
                    return *get<"owner">(s).value + static_cast<int>(get<"text">(s));
                  }))
    sum += s;
  CHECK(sum == 33);
  sum = 0;
  for (auto&& s : owners | ps::decode<ps::integer> |
                      ps::map([](const auto& s) { return static_cast<int>(get<"text">(s)); }))
    sum += s;
  CHECK(sum == 30);
}

TEST_CASE(
    "stage/decode: of an open sample it takes the members named, the only one, or the one the codec claims") {
  const open_samples source({{"k0", {{"cls", "3"}, {"txt", "abc"}}}, {"k1", {{"txt", "d"}, {"cls", "4"}}}});
  for (auto&& b : (source | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(2)).epoch(0))
    CHECK(ps::get<"cls">(b)[1] == 4);
  CHECK(values_of(source | ps::decode<ps::integer> | ps::batch(2)) == std::vector<std::int64_t>{3, 4});
  const open_samples lone({{"k0", {{"whatever", "9"}}}});
  CHECK(values_of(lone | ps::decode<ps::integer> | ps::batch(1)) == std::vector<std::int64_t>{9});
}

TEST_CASE(
    "stage/decode: a field takes the first of its alternatives that exists, and is called by the first") {
  const auto numbers = ps::decode<ps::field<"jpg;jpeg", ps::integer>, ps::field<"cls", ps::integer>>;
  CHECK(numbers.describe() == "decode<jpg;jpeg: integer, cls: integer>");
  const open_samples source({{"a", {{"jpeg", "3"}, {"cls", "1"}, {"big", "never"}}},
                             {"b", {{"cls", "2"}, {"jpeg", "5"}, {"jpg", "4"}}}});
  std::int64_t images = 0, labels = 0;
  for (auto&& b : (source | numbers | ps::batch(2) | ps::workers(0)).epoch(0))
    for (std::size_t i = 0; i < 2; ++i) {
      images = images * 10 + ps::get<"jpg">(b)[i];
      labels = labels * 10 + ps::get<"cls">(b)[i];
    }
  CHECK(images == 34);
  CHECK(labels == 12);
  CHECK(source.reads() == 4);  // no other member was read
  const open_samples other({{"c", {{"cls", "2"}, {"png", "5"}}}});
  const auto said = error_of([&] {
    for (auto&& b : (other | numbers | ps::batch(1)).epoch(0)) (void)b;
  });
  CHECK_THAT(said, contains("no member 'jpg;jpeg'; it has: cls, png") && contains("key c"));
}

TEST_CASE("stage/decode: a member that is missing or not the only candidate is an error with the key") {
  const open_samples missing({{"k0", {{"cls", "3"}}}, {"k1", {{"txt", "d"}}}});
  const auto said = error_of([&] {
    for (auto&& b : (missing | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(1)).epoch(0)) (void)b;
  });
  CHECK_THAT(said, contains("no member 'cls'; it has: txt"));
  CHECK_THAT(said, contains("key k1"));
  const open_samples two({{"k0", {{"cls", "3"}, {"id", "4"}}}});
  CHECK_THAT(error_of([&] { (void)values_of(two | ps::decode<ps::integer> | ps::batch(1)); }),
             contains("two members suit"));
  const open_samples none({{"k0", {{"jpg", "3"}, {"png", "4"}}}});
  CHECK_THAT(error_of([&] { (void)values_of(none | ps::decode<ps::integer> | ps::batch(1)); }),
             contains("no single member suits"));
}

TEST_CASE("stage/decode: options are passed in a call") {
  const auto lenient = ps::decode<ps::text>(ps::text{.check = false});
  const std::vector<std::string> bad{"\xff"};
  for (auto&& b : (ps::from(bad) | lenient | ps::batch(1, ps::ragged)).epoch(0))
    CHECK(b.values()[0].size() == 1);
  CHECK(error_of([&] {
          for (auto&& b : (ps::from(bad) | ps::decode<ps::text> | ps::batch(1, ps::ragged)).epoch(0)) (void)b;
        }) != "");
}
