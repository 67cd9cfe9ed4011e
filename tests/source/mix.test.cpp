// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/text.hpp>
#include <penstock/inspection/peek.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/engine_test.hpp"
#include "support/raw_tar.hpp"
#include "support/resume_test.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace mix_test {

using engine_test::numbers;

/// Values that show their origin: source * 1,000,000 + index.
auto numbered(std::uint64_t size, std::uint64_t source) {
  return ps::generated(
      size, [source](std::uint64_t i) { return source * 1'000'000 + i; }, {}, ps::seed(source));
}
auto sharded(std::uint64_t size, std::uint64_t source) {
  std::vector<std::uint64_t> starts;
  for (std::uint64_t at = 0; at < size; at += 17) starts.push_back(at);
  starts.push_back(size);
  return ps::generated(
      size, [source](std::uint64_t i) { return source * 1'000'000 + i; }, starts, ps::seed(source));
}
/// Four kinds of source with one type of element.
auto four(const auto& rule, const auto&... options) {
  return ps::mix(rule, numbered(3'000, 0), numbered(900, 1) | ps::shuffle(ps::seed(5)), options...,
                 sharded(500, 2) | ps::shuffle(ps::seed(6), ps::window(3)) | ps::repeat(2),
                 numbered(700, 3) | ps::seed(9) | ps::map(engine_test::noisy) |
                     ps::map([](std::uint64_t x, ps::rng& r) { return x + (r.below(2) << 60); }));
}
const ps::weights uneven{0.5, 0.2, 0.2, 0.1};

/// Each sample of an epoch, computed from the mixture and the sources alone.
template <class Mix, class... Plans>
numbers by_hand(const Mix& mixed, std::uint64_t epoch, std::uint64_t count, const Plans&... plans) {
  std::vector<std::map<std::uint64_t, numbers>> epochs(sizeof...(Plans));
  numbers all;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto found = mixed.order().at({epoch, i});
    std::uint32_t k = 0;
    const auto look = [&](const auto& plan) {
      if (k++ != found.source) return;
      numbers& samples = epochs[found.source][found.at.epoch];
      if (samples.empty()) {
        auto run = (plan | ps::workers(0)).open();
        for (auto&& x : run.epoch(found.at.epoch)) samples.push_back(x);
      }
      all.push_back(samples.at(static_cast<std::size_t>(found.at.index)));
    };
    (look(plans), ...);
  }
  return all;
}

TEST_CASE("source/mix: delivers from each source what it would deliver alone, by the mixture") {
  const auto a = numbered(300, 0) | ps::shuffle(ps::seed(1));
  const auto b =
      sharded(200, 1) | ps::shuffle(ps::seed(2), ps::window(2)) | ps::map(engine_test::noisy) | ps::seed(8);
  const auto c = numbered(100, 2) | ps::shuffle(ps::seed(3)) | ps::repeat(3) | ps::take(250);
  const auto check = [&](const auto& mixed, std::uint64_t epochs) {
    auto run = (mixed | ps::batch(64, ps::tail::keep) | ps::workers(2)).open();
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      numbers found;
      for (auto&& part : run.epoch(epoch)) {
        for (const std::uint64_t x : engine_test::values_of(part)) found.push_back(x);
      }
      CHECK(found == by_hand(mixed, epoch, mixed.size(), a, b, c));
    }
  };
  check(ps::mix(ps::weights{3, 2, 1}, a, b, c, ps::seed(4)), 3);
  check(ps::mix(ps::weights{3, 2, 1}, a, b, c, ps::stopping::all_exhausted), 3);
  check(ps::mix(ps::weights{3, 2, 1}, a, b, c, ps::samples_per_epoch(1'500)), 3);
  check(ps::mix(ps::proportions{3, 2, 1}, a, b, c), 2);
  check(ps::mix(ps::repeats{2, 1, 0.5}, a, b, c), 3);
  check(ps::mix(ps::choose{20, 30, 500}, a, b, c), 3);
  check(ps::mix(ps::weight_schedule({{0, {1, 1, 0}}, {3'000, {0, 1, 1}}}), a, b, c,
                ps::samples_per_epoch(2'000)),
        2);
}

TEST_CASE("source/mix: equal bytes with any number of workers") {
  const auto plan = four(uneven, ps::seed(3)) | ps::map(engine_test::slowly{}) | ps::batch(50);
  static_assert(ps::indexed<decltype(plan)> && ps::deterministic<decltype(plan)> &&
                    ps::resumable<decltype(plan)> && ps::elastic<decltype(plan)> &&
                    ps::lockstep<decltype(plan)>,
                "a mixture of indexed sources keeps all five guarantees");
  const auto wanted = engine_test::read_plan(plan | ps::workers(0), 2);
  REQUIRE(wanted.size() == 2);
  CHECK(wanted[0].size() > 40);
  engine_test::on_each_setting(plan, [&](const auto& one, const std::string& name) {
    INFO(name);
    CHECK(engine_test::read_plan(one, 2) == wanted);
  });
}

TEST_CASE("source/mix: a state at any place resumes with the rest") {
  engine_test::check_all_stops(four(uneven) | ps::take(1'100) | ps::batch(30));
  engine_test::check_all_stops(
      four(ps::weight_schedule({{0, {1, 0, 1, 1}}, {900, {0, 1, 1, 1}}}), ps::samples_per_epoch(700)) |
      ps::shuffle(ps::seed(8)) | ps::batch(20));
  engine_test::check_all_stops(four(ps::choose{50, 40, 30, 20}) | ps::filter(engine_test::odd_thirds));
  engine_test::check_all_stops(four(ps::choose{50, 40, 30, 20}) | ps::shuffle_buffer(17) | ps::batch(10));
}

TEST_CASE("source/mix: the global steps do not depend on the world, also if it changes") {
  const auto make = [](std::uint64_t rank, std::uint64_t world, std::uint64_t size) {
    return four(uneven, ps::samples_per_epoch(1'440)) | ps::shard(rank, world) | ps::batch(size);
  };
  for (const std::uint64_t before : {1u, 2u, 3u, 5u, 8u}) {
    for (const std::uint64_t after : {1u, 2u, 4u, 6u, 8u})
      if (before != after) engine_test::check_elastic(make, 120, before, after, 5);
  }
}

TEST_CASE("source/mix: a state of other weights, another schedule or another seed is refused") {
  const auto state_of = [](const auto& source) { return (source | ps::batch(10)).open().state(); };
  const auto of = [](const auto& rule, std::uint64_t seed) {
    return four(rule, ps::seed(seed), ps::samples_per_epoch(500));
  };
  const ps::weight_schedule one({{0, {1, 1, 1, 1}}, {900, {1, 2, 3, 4}}}),
      other({{0, {1, 1, 1, 1}}, {901, {1, 2, 3, 4}}});
  const ps::state held = state_of(of(one, 1));
  CHECK_NOTHROW((of(one, 1) | ps::batch(10)).open(held));
  const auto refused = [&held](const auto& source) {
    return penstock_test::error_of([&] { static_cast<void>((source | ps::batch(10)).open(held)); });
  };
  CHECK_THAT(refused(of(other, 1)), penstock_test::contains("state"));
  CHECK_THAT(refused(of(one, 2)), penstock_test::contains("state"));
  CHECK_THAT(refused(of(uneven, 1)), penstock_test::contains("state"));
  CHECK_THAT(refused(of(other, 1)), penstock_test::contains("901"));
  // Stages inside a source are not stages of the plan: the message shows the whole comparison.
  const auto two = [](const auto& second) {
    return ps::mix(ps::weights{1, 2}, numbered(30, 0), second) | ps::batch(10);
  };
  const ps::state plain = two(numbered(40, 1)).open().state();
  CHECK_THAT(
      penstock_test::error_of([&] { (void)two(numbered(40, 1) | ps::shuffle(ps::seed(3))).open(plain); }),
      penstock_test::contains("it has mix(weights{1, 2}, generated(30), generated(40)) where this plan has "
                              "mix(weights{1, 2}, generated(30), generated(40) | shuffle(seed 3))"));
  const ps::state shuffled = two(numbered(40, 1) | ps::shuffle(ps::seed(3))).open().state();
  CHECK_THAT(
      penstock_test::error_of([&] {
        (void)(ps::mix(ps::weights{1, 3}, numbered(30, 0), numbered(40, 1) | ps::shuffle(ps::seed(3))) |
               ps::batch(10))
            .open(shuffled);
      }),
      penstock_test::contains("it has weights{1, 2} where this plan has weights{1, 3}"));
  CHECK(refused(of(one, 1)).empty());
}

TEST_CASE("source/mix: a list of sources of one type, known at run time") {
  std::vector<decltype(numbered(1, 0))> sources;
  std::vector<double> parts;
  for (std::uint64_t k = 0; k < 12; ++k) {
    sources.push_back(numbered(100 + 20 * k, k));
    parts.push_back(static_cast<double>(k + 1));
  }
  const auto mixed = ps::mix(ps::weights(parts), sources, ps::stopping::all_exhausted);
  std::set<std::uint64_t> seen;
  for (const std::uint64_t x : penstock_test::values_of(mixed | ps::batch(16, ps::tail::keep), 2))
    seen.insert(x);
  std::uint64_t all = 0;
  for (const auto& one : sources) all += one.size();
  CHECK(seen.size() == all);
  // arguments of equal types give the same result
  const auto two = ps::mix(ps::weights{1, 2}, std::vector{sources[0], sources[1]});
  const auto side_by_side = ps::mix(ps::weights{1, 2}, sources[0], sources[1]);
  CHECK(penstock_test::values_of(two | ps::batch(8)) ==
        penstock_test::values_of(side_by_side | ps::batch(8)));
  CHECK(two.fingerprint() == side_by_side.fingerprint());
  CHECK_THROWS_WITH(ps::mix(ps::weights{1}, sources), penstock_test::contains("weights has 1 numbers"));
}

TEST_CASE("source/mix: nested in each other") {
  const auto pairs = ps::zip<"a", "b">(numbered(400, 1), numbered(400, 2));
  const auto sum = ps::map([](const auto& r) { return ps::get<"a">(r) * 10'000'000 + ps::get<"b">(r); });
  const auto mixed =
      ps::mix(ps::weights{1, 1}, ps::concat(pairs | sum, numbered(100, 3)),
              ps::mix(ps::weights{1, 1}, numbered(200, 4), numbered(200, 5)) | ps::shuffle(ps::seed(1))) |
      ps::shuffle(ps::seed(7)) | ps::batch(20);
  engine_test::check_all_stops(mixed, 2);
}

TEST_CASE("source/mix: keys are those of the sources, in every epoch") {
  const auto mixed = ps::mix(ps::weights{1, 1}, numbered(60, 1) | ps::shuffle(ps::seed(1)), numbered(80, 2),
                             ps::samples_per_epoch(50));
  auto run = (mixed | ps::batch(10)).open();
  for (auto epoch : run.epochs(3)) {
    for (auto&& b : epoch) {
      const auto keys = b.keys();
      const auto values = b.values();
      for (std::size_t i = 0; i < keys.size(); ++i) CHECK(keys[i] == std::to_string(values[i] % 1'000'000));
    }
  }
  CHECK_THAT(ps::peek(mixed), penstock_test::contains("key"));
}

/// A source that records its hints and knows its samples' bytes.
struct noting_source {
  using penstock_part = ps::source_tag;
  using element = std::uint64_t;
  static constexpr std::string_view source_name = "noting";
  struct reader {
    struct worker {};
    std::vector<std::uint64_t>* hints;
    std::uint64_t bytes;
    template <class Sink>
    void evaluate(ps::position p, worker&, Sink&& sink) const {
      sink(p.index);
    }
    void will_need(std::uint64_t index) const { hints->push_back(index); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const { return bytes; }
  };
  std::vector<std::uint64_t>* hints;
  std::uint64_t bytes;
  [[nodiscard]] std::uint64_t size() const { return 1'000; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "noting"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return bytes; }
  [[nodiscard]] reader connect() const { return {hints, bytes}; }
};

TEST_CASE("source/mix: read-ahead and the size of samples reach the sources") {
  std::vector<std::uint64_t> first, second;
  const auto mixed = ps::mix(ps::weights{1, 3}, noting_source{&first, 100} | ps::shuffle(ps::seed(4)),
                             noting_source{&second, 500}, ps::stopping::all_exhausted);
  CHECK(mixed.connect().bytes_per_sample() == 400);
  numbers read;
  {
    auto run = (mixed | ps::prefetch(64) | ps::batch(16, ps::tail::keep) | ps::workers(0)).open();
    for (auto&& b : run.epoch(0))
      for (const std::uint64_t x : engine_test::values_of(b)) read.push_back(x);
  }
  CHECK(first.size() >= 1'000);
  CHECK(second.size() >= 3'000);
  numbers hinted(first.begin(), first.begin() + 1'000), wanted;
  for (std::uint64_t i = 0; i < mixed.size(); ++i)
    if (mixed.order().at({0, i}).source == 0) wanted.push_back(read[static_cast<std::size_t>(i)]);
  CHECK(hinted == wanted);
}

TEST_CASE("source/mix: shards of a tar and made-up samples as one") {
  penstock_test::raw_tar tar;
  for (int i = 0; i < 40; ++i) tar.member("sample" + std::to_string(i) + ".txt", "tar " + std::to_string(i));
  tar.end();
  const auto packed = ps::webdataset(ps::memory_files().add("t.tar", tar.bytes)) | ps::fields<"txt"> |
                      ps::decode<ps::text> | ps::shuffle(ps::seed(2), ps::window(1)) |
                      ps::map([](const auto& r) { return std::string(ps::get<"txt">(r)); });
  const auto made = ps::generated(60, [](std::uint64_t i) { return "made " + std::to_string(i); });
  const auto mixed = ps::mix(ps::weights{1, 1}, packed, made, ps::stopping::all_exhausted);
  const auto reader = mixed.connect();
  for (std::uint64_t i = 0; i < mixed.size(); ++i)
    CHECK(reader.url({0, i}) == (mixed.order().at({0, i}).source == 0 ? "t.tar" : ""));
  std::set<std::string> seen;
  for (const auto& s : (mixed | ps::workers(2)).epoch(0)) seen.insert(std::string(s));
  CHECK(seen.size() == 100);
  auto run = (mixed | ps::batch(8, ps::ragged)).open();
  for (auto&& b : run.epoch(0)) {
    for (const std::string& key : b.keys()) CHECK((key.find("sample") == 0 || std::stoi(key) < 60));
  }
}

TEST_CASE("source/mix: nothing is allocated for a sample") {
  const auto mixed = ps::mix(ps::weights{3, 2, 1}, numbered(5'000, 0) | ps::shuffle(ps::seed(1)),
                             sharded(4'000, 1) | ps::shuffle(ps::seed(2), ps::window(4)), numbered(50, 2));
  const auto reader = mixed.connect();
  decltype(mixed)::reader::worker worker;
  std::uint64_t sum = 0;
  const auto read = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i)
      reader.evaluate({0, i}, worker, [&sum](std::uint64_t x) { sum += x; });
  };
  const auto far = ps::mix(ps::weights{3, 2, 1}, numbered(50'000, 0), numbered(40'000, 1), numbered(50, 2),
                           ps::samples_per_epoch(60'000));
  const auto far_reader = far.connect();
  decltype(far)::reader::worker far_worker;
  const auto read_far = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i)
      far_reader.evaluate({0, i}, far_worker, [&sum](std::uint64_t x) { sum += x; });
  };
  read(0, 10);
  read_far(0, 10);
  CHECK(penstock_test::allocations_of([&] { read(10, mixed.size()); }) == 0);
  CHECK(penstock_test::allocations_of([&] { read_far(10, 20'000); }) == 0);
  CHECK(sum != 0);
}

TEST_CASE("source/mix: an error says which source it came from, and an error after mix does not") {
  const auto broken = ps::map([](std::uint64_t x) {
    if (x == 1'000'005) throw ps::error(ps::errc::format, "the sample is broken");
    return x;
  });
  const auto inner = ps::mix(ps::weights{1, 1}, numbered(50, 0), numbered(50, 1) | broken);
  const auto said = [](const auto& plan) {
    return penstock_test::error_of([&] { static_cast<void>(penstock_test::values_of(plan, 2)); });
  };
  CHECK_THAT(said(inner | ps::batch(10)),
             penstock_test::contains("the sample is broken, in source 1 of mix (generated(50))"));
  CHECK_THAT(said(ps::concat(numbered(5, 2), inner) | ps::batch(5)),
             penstock_test::contains(
                 "in source 1 of mix (generated(50)), in source 1 of concat (mix(weights{1, 1}, "));
  const auto sound = ps::mix(ps::weights{1, 1}, numbered(50, 0), numbered(50, 1));
  const std::string behind = said(sound | broken | ps::batch(10));
  CHECK_THAT(behind, penstock_test::contains("the sample is broken"));
  CHECK(behind.find("source 1") == std::string::npos);
}

TEST_CASE("source/mix: bad weights are a sentence when the source is made") {
  using penstock_test::contains;
  const auto a = numbered(10, 0), b = numbered(10, 1);
  CHECK_THROWS_WITH(ps::mix(ps::weights({1.0, -2.0}), a, b), contains("the weight of source 1 is -2"));
  CHECK_THROWS_WITH(ps::mix(ps::weights({1.0, 0.0}), a, b), contains("the weight of source 1 is 0"));
  CHECK_THROWS_WITH(ps::mix(ps::weights({std::numeric_limits<double>::quiet_NaN(), 1.0}), a, b),
                    contains("the weight of source 0 is not a number"));
  CHECK_THROWS_WITH(ps::mix(ps::weights{1, 1}, a, numbered(0, 1)), contains("source 1 has no samples"));
  CHECK_THROWS_WITH(ps::mix(ps::weights{1, 1}, a, b | ps::repeat()), contains("source 1 is endless"));
}

/// A stage that declares that it is not deterministic.
struct careless {
  using penstock_part = ps::pointwise_tag;
  static consteval ps::guarantee_set loses(ps::place) {
    return ps::guarantee_set(ps::guarantee::deterministic);
  }
  std::uint64_t apply(std::uint64_t x, const auto&) const { return x; }
};

TEST_CASE("source/mix: guarantees that a source lost are lost") {
  using plan =
      decltype(ps::mix(ps::weights{1, 1}, numbered(1, 0), numbered(1, 1) | careless{}) | ps::batch(2));
  CHECK_FALSE(ps::deterministic<plan>);
  CHECK(ps::elastic<plan>);
}

}  // namespace mix_test
