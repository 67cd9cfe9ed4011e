// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/synthetic.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

namespace ps = penstock;
using codec_test::byte_vector;
using penstock_test::contains;
using namespace std::chrono_literals;

static_assert(ps::indexed_source<ps::synthetic_source>);
static_assert(ps::blob<ps::synthetic_source::element>);

namespace synthetic_test {

byte_vector sample(const ps::synthetic_source& source, ps::position p) {
  ps::synthetic_source::reader::worker worker;
  byte_vector out;
  source.connect().evaluate(p, worker, [&](const ps::synthetic_bytes& blob) {
    out.resize(static_cast<std::size_t>(blob.size()));
    blob.read_into(out);
    CHECK(codec_test::to_vector(blob.finish()) == out);
  });
  return out;
}

}  // namespace synthetic_test

TEST_CASE("source/synthetic: samples have the requested size and distinct contents, equal in every epoch") {
  std::set<byte_vector> seen;
  for (const std::uint64_t bytes : {0u, 1u, 7u, 8u, 9u, 1000u}) {
    const auto source = ps::synthetic({.samples = 100, .bytes = bytes});
    CHECK(source.size() == 100);
    CHECK(source.connect().bytes_per_sample() == bytes);
    CHECK(synthetic_test::sample(source, {0, 3}).size() == bytes);
    CHECK(synthetic_test::sample(source, {0, 3}) == synthetic_test::sample(source, {5, 3}));
    if (bytes >= 8) {
      CHECK(synthetic_test::sample(source, {0, 3}) != synthetic_test::sample(source, {0, 4}));
      const auto other = ps::synthetic({.samples = 100, .bytes = bytes, .seed = 1});
      CHECK(synthetic_test::sample(source, {0, 3}) != synthetic_test::sample(other, {0, 3}));
    }
  }
  // the documented rule
  const byte_vector content =
      synthetic_test::sample(ps::synthetic({.samples = 10, .bytes = 24, .seed = 7}), {0, 2});
  const auto word = ps::detail::load_little<std::uint64_t>(content.data() + 16);
  CHECK(word == ps::mix64(7 ^ ps::mix64(2)) + 2 * 0x9e3779b97f4a7c15u);
}

TEST_CASE("source/synthetic: a sample's cost depends on its position and stays within the jitter") {
  const auto reader = ps::synthetic({.samples = 1, .cost = 100us, .jitter = 0.25}).connect();
  auto least = reader.cost_of({0, 0}), maximum = least, sum = 0ns;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const auto cost = reader.cost_of({1, i});
    CHECK(cost == reader.cost_of({1, i}));
    least = std::min(least, cost);
    maximum = std::max(maximum, cost);
    sum += cost;
  }
  CHECK((least >= 75us && least < 77us));
  CHECK((maximum <= 125us && maximum > 123us));
  CHECK((sum / 1000 > 97us && sum / 1000 < 103us));
  CHECK(reader.cost_of({1, 5}) != reader.cost_of({2, 5}));
  const auto tail =
      ps::synthetic({.samples = 1, .cost = 100us, .tail_probability = 0.1, .tail_factor = 20}).connect();
  int slow = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto cost = tail.cost_of({0, i});
    CHECK((cost == 100us || cost == 2000us));
    slow += cost == 2000us ? 1 : 0;
  }
  CHECK((slow > 140 && slow < 260));
  CHECK(ps::synthetic({.samples = 1}).connect().cost_of({0, 0}) == 0ns);
}

TEST_CASE("source/synthetic: the cost is spent before the sample is delivered, spinning or asleep") {
  for (const auto wait : {ps::synthetic_wait::spin, ps::synthetic_wait::sleep}) {
    const auto reader = ps::synthetic({.samples = 1, .bytes = 8, .cost = 2ms, .wait = wait}).connect();
    ps::synthetic_source::reader::worker worker;
    const auto before = std::chrono::steady_clock::now();
    auto at = before;
    reader.evaluate({0, 0}, worker, [&](const auto&) { at = std::chrono::steady_clock::now(); });
    CHECK(at - before >= 2ms);
  }
}

TEST_CASE("source/synthetic: shards are equal in size to within one sample") {
  CHECK(ps::synthetic({.samples = 10}).starts() == nullptr);
  CHECK(*ps::synthetic({.samples = 10, .shards = 3}).starts() == std::vector<std::uint64_t>{0, 4, 7, 10});
  CHECK(*ps::synthetic({.samples = 4, .shards = 4}).starts() == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("source/synthetic: refuses options out of range") {
  const auto refused = [](const ps::synthetic_options& options) {
    return codec_test::caught([&] { static_cast<void>(ps::synthetic(options)); }).code == ps::errc::argument;
  };
  CHECK(refused({.jitter = 1.5}));
  CHECK(refused({.jitter = -0.1}));
  CHECK(refused({.cost = -1ns}));
  CHECK(refused({.tail_probability = 2}));
  CHECK(refused({.tail_factor = -1}));
  CHECK(refused({.samples = 2, .shards = 3}));
  CHECK_THAT(ps::synthetic({.samples = 2, .bytes = 3, .cost = 4ns}).describe(),
             contains("2 samples of 3 bytes, 4 ns each"));
}

TEST_CASE("source/synthetic: the fingerprint covers the content and not its cost") {
  const auto print = [](const ps::synthetic_options& options) {
    return ps::synthetic(options).fingerprint();
  };
  const auto base = print({.samples = 10, .bytes = 8});
  CHECK(base == print({.samples = 10, .bytes = 8, .cost = 1ms, .jitter = 0.5}));
  CHECK(base != print({.samples = 11, .bytes = 8}));
  CHECK(base != print({.samples = 10, .bytes = 9}));
  CHECK(base != print({.samples = 10, .bytes = 8, .seed = 1}));
  CHECK(base != print({.samples = 10, .bytes = 8, .shards = 2}));
}

TEST_CASE("source/synthetic: evaluating allocates nothing once the scratch has grown") {
  const auto reader = ps::synthetic({.samples = 10, .bytes = 1000, .cost = 10ns}).connect();
  ps::synthetic_source::reader::worker worker;
  std::size_t sum = 0;
  const auto all = [&] {
    for (std::uint64_t i = 0; i < 10; ++i)
      reader.evaluate({0, i}, worker, [&](const auto& blob) { sum += blob.finish().size(); });
  };
  all();
  CHECK(penstock_test::allocations_of(all) == 0);
  CHECK(sum == 20'000);
}
