// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/generated.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;

namespace generated_test {

template <class Source>
auto sample(const Source& source, ps::position p) {
  typename Source::reader::worker worker;
  typename Source::element out{};
  source.connect().evaluate(p, worker, [&](auto&& value) { out = std::forward<decltype(value)>(value); });
  return out;
}
constexpr auto square = [](std::uint64_t i) { return i * i; };
constexpr auto draw = [](std::uint64_t, ps::rng& random) { return random(); };

}  // namespace generated_test

static_assert(ps::indexed_source<decltype(ps::generated(3, generated_test::square))>);
static_assert(ps::indexed_source<decltype(ps::generated(3, generated_test::draw))>);
static_assert(std::is_same_v<decltype(ps::generated(3, generated_test::square))::element, std::uint64_t>);

TEST_CASE("source/generated: sample i is f(i), in every epoch") {
  const auto source = ps::generated(1000, generated_test::square);
  CHECK(source.size() == 1000);
  CHECK(source.starts() == nullptr);
  CHECK_THAT(source.describe(), contains("generated(1000)"));
  CHECK(source.connect().key(17) == "17");
  for (const std::uint64_t epoch : {0u, 1u, 7u}) CHECK(generated_test::sample(source, {epoch, 31}) == 961);
  const auto texts = ps::generated(
      5, [prefix = std::string("sample ")](std::uint64_t i) { return prefix + std::to_string(i); });
  CHECK(generated_test::sample(texts, {0, 4}) == "sample 4");
}

TEST_CASE("source/generated: a reference returned by f is delivered without a copy") {
  const std::vector<std::string> words = {"one", "two"};
  const auto source = ps::generated(2, [&words](std::uint64_t i) -> const std::string& { return words[i]; });
  static_assert(std::is_same_v<decltype(source)::element, std::string>);
  decltype(source)::reader::worker worker;
  source.connect().evaluate({0, 1}, worker, [&](const std::string& s) { CHECK(&s == &words[1]); });
}

TEST_CASE("source/generated: random numbers depend on sample and seed, not on the worker") {
  const auto source = ps::generated(1000, generated_test::draw);
  std::set<std::uint64_t> values;
  const auto reader = source.connect();
  decltype(reader)::worker worker;
  for (std::uint64_t i = 0; i < 1000; ++i)
    reader.evaluate({0, i}, worker, [&](std::uint64_t x) { values.insert(x); });
  CHECK(values.size() == 1000);
  CHECK(generated_test::sample(source, {0, 5}) == generated_test::sample(source, {8, 5}));
  CHECK(generated_test::sample(source, {0, 5}) !=
        generated_test::sample(ps::generated(1000, generated_test::draw, {}, ps::seed(1)), {0, 5}));
}

TEST_CASE("source/generated: accepts only matching shards") {
  const auto source = ps::generated(10, generated_test::square, {0, 3, 3, 10});
  REQUIRE(source.starts() != nullptr);
  CHECK(*source.starts() == std::vector<std::uint64_t>{0, 3, 3, 10});
  for (const std::vector<std::uint64_t>& bad :
       {std::vector<std::uint64_t>{0}, {1, 10}, {0, 9}, {0, 11}, {0, 7, 5, 10}, {10, 0}}) {
    const auto error =
        codec_test::caught([&] { static_cast<void>(ps::generated(10, generated_test::square, bad)); });
    CHECK(error.code == ps::errc::argument);
    CHECK_THAT(error.line, contains("generated") && contains("from 0 to the number of samples, 10"));
  }
}

TEST_CASE("source/generated: the fingerprint covers size, seed and shards") {
  const auto print = [](std::uint64_t n, std::vector<std::uint64_t> starts, std::uint64_t seed) {
    return ps::generated(n, generated_test::square, std::move(starts), ps::seed(seed)).fingerprint();
  };
  const std::set<std::uint64_t> all = {print(10, {}, 0),      print(11, {}, 0),         print(10, {}, 1),
                                       print(10, {0, 10}, 0), print(10, {0, 5, 10}, 0), print(0, {}, 0)};
  CHECK(all.size() == 6);
  CHECK(print(10, {0, 5, 10}, 3) == print(10, {0, 5, 10}, 3));
}

TEST_CASE("source/generated: evaluating allocates nothing of its own") {
  const auto source = ps::generated(10, generated_test::draw);
  const auto reader = source.connect();
  decltype(reader)::worker worker;
  std::uint64_t sum = 0;
  CHECK(penstock_test::allocations_of([&] {
          for (std::uint64_t i = 0; i < 10; ++i)
            reader.evaluate({0, i}, worker, [&](std::uint64_t x) { sum ^= x; });
        }) == 0);
  CHECK(sum != 0);
}
