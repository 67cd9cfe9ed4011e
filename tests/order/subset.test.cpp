// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/take.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/listed_order.hpp"
#include "support/order_input.hpp"

namespace ps = penstock;
using penstock_test::check_keeps_order;
using penstock_test::each_once;
using penstock_test::epoch_of;
using penstock_test::error_of;
using penstock_test::input;
using penstock_test::plain_input;
using numbers = std::vector<std::uint64_t>;

static_assert(ps::order<ps::detail::listed_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::subset_stage>, "subset is an order stage");

namespace {

ps::sample_list<int> labels_of(ps::rng& random, std::uint64_t n, std::uint64_t classes, std::uint64_t run) {
  std::vector<int> all;
  while (all.size() < n) {
    const int label = static_cast<int>(random.below(classes));
    for (std::uint64_t k = 1 + random.below(run); k != 0 && all.size() < n; --k) all.push_back(label);
  }
  return ps::sample_list(all);
}

/// Values that tell where they change, and count how often they are read.
struct in_runs {
  using value_type = int;
  std::uint64_t samples = 0, length = 1;
  [[nodiscard]] int operator[](std::uint64_t i) const { return static_cast<int>(i / length); }
  [[nodiscard]] std::uint64_t same_until(std::uint64_t i) const { return i / length * length + length; }
  [[nodiscard]] std::uint64_t size() const { return samples; }
  [[nodiscard]] std::uint64_t dataset() const { return 0; }
  [[nodiscard]] std::uint64_t fingerprint() const { return 1; }
  [[nodiscard]] std::string describe() const { return "runs"; }
};

template <class Stage>
std::uint64_t mark(const Stage& stage) {
  ps::fingerprint h;
  stage.fingerprint(h);
  return h.value();
}

}  // namespace

TEST_CASE("order/subset: keeps the samples whose value the predicate accepts, in order") {
  ps::rng random(1, 0, 0);
  for (int round = 0; round < 1500; ++round) {
    const auto in = input({random.below(150), random.below(40), 0, random.below(150)});
    const auto labels = labels_of(random, in.size, 1 + random.below(5), random.chance(0.5) ? 1 : 60);
    const int wanted = static_cast<int>(random.below(5));
    const auto stage = ps::subset(labels, ps::equals(wanted));
    const auto others = ps::subset(labels, [&](int label) { return label != wanted; });
    std::vector<unsigned> times(static_cast<std::size_t>(in.size));
    const std::uint64_t kept = check_keeps_order(stage.make(in), in, times);
    check_keeps_order(others.make(in), in, times);
    CHECK(each_once(times));
    CHECK(kept == stage.size());
    bool right = true;
    for (const std::uint64_t p : epoch_of(stage.make(in))) right = right && labels[p] == wanted;
    CHECK(right);
  }
}

TEST_CASE("order/subset: after split, fold, take, skip and other subsets it knows its samples") {
  ps::rng random(2, 0, 0);
  for (int round = 0; round < 400; ++round) {
    const auto in = input({random.below(150), random.below(150)});
    const auto labels = labels_of(random, in.size, 4, 5);
    const auto even = ps::subset(labels, [](int label) { return label % 2 == 0; });
    const auto check = [&](const auto& first) {
      const auto before = first.make(in);
      const auto after = even.make(before.output());
      std::vector<unsigned> times(static_cast<std::size_t>(before.size()));
      check_keeps_order(after, before.output(), times);
      numbers got, wanted;
      for (const std::uint64_t p : epoch_of(after)) got.push_back(before.bind(0)(p).index);
      for (const std::uint64_t p : epoch_of(before))
        if (labels[p] % 2 == 0) wanted.push_back(p);
      INFO(first.describe());
      CHECK(got == wanted);
    };
    check(ps::split(0.3, ps::seed(random())));
    check(ps::split(0.3, ps::seed(random())).complement());
    check(ps::fold(1, 3, ps::seed(random())));
    check(ps::take(random.below(200)));
    check(ps::skip(random.below(200)));
    check(ps::subset(labels, ps::one_of({1, 2})));
  }
}

TEST_CASE("order/subset: predicates compare numbers as numbers and texts as texts") {
  const auto kept = [](const auto& values, const auto& keep) {
    return epoch_of(ps::subset(values, keep).make(plain_input(values.size())));
  };
  const ps::sample_list whole(std::vector<std::int64_t>{-1, 0, 1, 2, 3});
  CHECK(kept(whole, ps::equals(2u)) == numbers{3});
  CHECK(kept(whole, ps::equals(std::numeric_limits<std::uint64_t>::max())).empty());  // the maximum is not -1
  CHECK(kept(whole, ps::equals(1.0)) == numbers{2});
  CHECK(kept(whole, ps::one_of({-1, 3})) == numbers{0, 4});
  CHECK(kept(whole, ps::one_of(std::vector<int>{})).empty());
  CHECK(kept(whole, ps::between(0, 2)) == numbers{1, 2, 3});
  CHECK(kept(whole, ps::between(-0.5, 1.5)) == numbers{1, 2});
  CHECK(kept(whole, ps::differs_from(1)) == numbers{0, 1, 3, 4});
  CHECK(kept(whole, ps::less_than(1u)) == numbers{0, 1});
  CHECK(kept(whole, ps::at_most(0.5)) == numbers{0, 1});
  CHECK(kept(whole, ps::greater_than(1)) == numbers{3, 4});
  CHECK(kept(whole, ps::at_least(1)) == numbers{2, 3, 4});
  const ps::sample_list letters(std::vector<char>{'a', 'b', 'a'});  // numbers too
  CHECK(kept(letters, ps::equals('a')) == numbers{0, 2});
  CHECK(kept(letters, ps::one_of({int{'b'}, 1})) == numbers{1});
  CHECK(kept(letters, ps::between('b', 200)) == numbers{1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ps::sample_list real(std::vector<double>{0.5, nan, -1, 2});
  CHECK(kept(real, ps::between(-1, 1)) == numbers{0, 2});
  CHECK(kept(real, ps::equals(nan)).empty());
  CHECK(kept(real, ps::differs_from(2)) == numbers{0, 1, 2});
  CHECK(kept(real, ps::at_least(-1)) == numbers{0, 2, 3});
  CHECK(kept(real, ps::greater_than(nan)).empty());
  CHECK(kept(real, ps::at_most(nan)).empty());
  const ps::sample_list texts(std::vector<std::string>{"cat", "dog", "", "cow"});
  CHECK(kept(texts, ps::equals("cat")) == numbers{0});
  CHECK(kept(texts, ps::one_of({"", "dog"})) == numbers{1, 2});
  CHECK(kept(texts, ps::between("cat", "cow")) == numbers{0, 3});
  CHECK(kept(texts, [](std::string_view t) { return t.starts_with("c"); }) == numbers{0, 3});
  const bool mixed = std::predicate<decltype(ps::equals("cat")), int>;
  CHECK_FALSE(mixed);
}

TEST_CASE("order/subset: values in runs are read once per run, and kept as runs") {
  const in_runs values{1000, 100};
  int asked = 0;
  const auto stage = ps::subset(values, [&](int number) {
    ++asked;
    return number % 3 == 1;
  });
  CHECK(asked == 10);
  CHECK(stage.size() == 300);
  const auto in = plain_input(1000);
  std::vector<unsigned> times(1000);
  check_keeps_order(stage.make(in), in, times);
  CHECK(epoch_of(stage.make(in)).front() == 100);
  CHECK(epoch_of(stage.make(in)).back() == 799);
}

TEST_CASE("order/subset: the fingerprint covers the samples kept") {
  const ps::sample_list labels(std::vector<int>{1, 2, 3, 1});
  CHECK(mark(ps::subset(labels, ps::equals(1))) == mark(ps::subset(labels, [](int x) { return x < 2; })));
  CHECK(mark(ps::subset(labels, ps::equals(1))) != mark(ps::subset(labels, ps::equals(2))));
  CHECK(mark(ps::subset(labels, ps::equals(7))) != mark(ps::subset(labels, ps::equals(2))));
  const in_runs values{1000, 100};
  const auto all = [](int) { return true; };
  CHECK(mark(ps::subset(values, all)) == mark(ps::subset(ps::sample_list(std::vector<int>(1000)), all)));
}

TEST_CASE("order/subset: values of another source's samples are refused") {
  const ps::sample_list labels(std::vector<int>{1, 2, 3, 1});
  const auto stage = ps::subset(labels, ps::equals(1));
  CHECK(
      error_of([&] { (void)stage.make(plain_input(5)); }) ==
      "penstock: a list of 4 has 4 values, but the dataset has 5 samples; there must be one for each [stage "
      "subset]");
  const auto shuffled = ps::shuffle(ps::seed(1)).make(plain_input(4)).output();
  CHECK_THAT(error_of([&] { (void)stage.make(shuffled); }),
             penstock_test::contains("that changes from epoch to epoch; write subset before it"));
  CHECK_FALSE(error_of([&] { (void)stage.make(ps::repeat(2).make(plain_input(4)).output()); }).empty());
  CHECK(error_of([&] { (void)stage.make(ps::take(3).make(plain_input(4)).output()); }).empty());
}

TEST_CASE("order/subset: describes itself") {
  const ps::sample_list labels(std::vector<int>{1, 2});
  CHECK(ps::subset(labels, ps::equals(1)).describe() == "subset(a list of 2: 1)");
  CHECK(ps::subset(labels, ps::one_of({1, 2, 3, 4, 5})).describe() ==
        "subset(a list of 2: one of 1, 2, 3, 4, ...)");
  CHECK(ps::subset(labels, ps::between(0.5, 2)).describe() == "subset(a list of 2: from 0.5 to 2)");
  CHECK(ps::subset(labels, [](int) { return true; }).describe() == "subset(a list of 2: a function)");
  CHECK(ps::equals("cat").describe() == "'cat'");
}
