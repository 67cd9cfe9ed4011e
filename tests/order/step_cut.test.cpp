// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/step_cut.hpp>

#include <penstock/inspection/consumed.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/prefetch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::error_of;

namespace {

using numbers = std::vector<std::uint64_t>;
using batches = std::vector<numbers>;

const auto itself = [](std::uint64_t i) { return i; };

static_assert(ps::epoch_cut<ps::cut> && ps::step_cut<ps::cut> && !ps::listing_cut<ps::cut>);
static_assert(ps::epoch_cut<ps::any_epoch_cut>);
static_assert(ps::step_cut<ps::any_step_cut>);

/// The arithmetic cut as a rule, as if a user had written it.
struct fixed_rule {
  std::uint64_t each = 1;
  ps::tail policy = ps::tail::keep;

  template <class Orders>
  [[nodiscard]] ps::cut make(const Orders& orders, const ps::cut_input& in) const {
    return {.size = orders.size(),
            .global = each * in.world,
            .world = in.world,
            .rank = in.rank,
            .lanes = orders.lanes(),
            .policy = policy};
  }
  [[nodiscard]] std::string describe() const { return "fixed(" + std::to_string(each) + ")"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("fixed", each, policy);
  }
};

/// Buckets: a batch holds two samples of one class, and the classes take turns. A step holds positions
/// from anywhere.
struct bucket_cut {
  std::uint64_t size, classes, world, rank;

  struct epoch {
    std::vector<numbers> all;  // batches
    std::uint64_t world, rank;

    [[nodiscard]] std::uint64_t steps() const { return (all.size() + world - 1) / world; }
    [[nodiscard]] std::uint64_t before(std::uint64_t step) const {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < all.size() && i < step * world; ++i) sum += all[i].size();
      return sum;
    }
    [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return before(step + 1) - before(step); }
    [[nodiscard]] ps::step_view at(std::uint64_t step) const {
      const std::uint64_t mine = step * world + rank;
      return {0, mine < all.size() ? all[mine].size() : 0};
    }
    void list(std::uint64_t step, numbers& into) const {
      const std::uint64_t mine = step * world + rank;
      if (mine < all.size()) into.insert(into.end(), all[mine].begin(), all[mine].end());
    }
  };

  [[nodiscard]] epoch bind(std::uint64_t number) const {
    epoch made{{}, world, rank};
    std::vector<numbers> open(classes);
    for (std::uint64_t p = 0; p < size; ++p) {
      numbers& bucket = open[(p + number) % classes];
      bucket.push_back(p);
      if (bucket.size() == 2) {
        made.all.push_back(bucket);
        bucket.clear();
      }
    }
    for (const numbers& left : open)
      if (!left.empty()) made.all.push_back(left);
    return made;
  }
  [[nodiscard]] bucket_cut on(std::uint64_t ranks, std::uint64_t which) const {
    return {size, classes, ranks, which};
  }
  [[nodiscard]] std::uint64_t usual() const { return 2; }
};
static_assert(ps::step_cut<bucket_cut> && ps::listing_cut<bucket_cut::epoch>);

struct bucket_rule {
  std::uint64_t classes = 3;
  template <class Orders>
  [[nodiscard]] bucket_cut make(const Orders& orders, const ps::cut_input& in) const {
    return {orders.size(), classes, in.world, in.rank};
  }
  [[nodiscard]] std::string describe() const { return "buckets"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("buckets", classes);
  }
};

template <class Plan>
batches got(const Plan& plan, std::uint64_t epoch = 0) {
  batches all;
  auto run = plan.open();
  for (auto&& b : run.epoch(epoch)) {
    const auto values = b.values();
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("order/step_cut: the arithmetic cut gives the number of positions before a step") {
  for (const ps::tail policy : {ps::tail::keep, ps::tail::drop, ps::tail::pad}) {
    for (const std::uint64_t size : {0u, 1u, 12u, 13u}) {
      const ps::cut c{.size = size, .global = 4, .world = 2, .rank = 1, .policy = policy};
      std::uint64_t before = 0;
      for (std::uint64_t s = 0; s <= c.steps() + 1; ++s) {
        CHECK(c.before(s) == before);
        before += c.count(s);
      }
      CHECK(c.on(4, 3).rank == 3);
      CHECK(c.bind(7).steps() == c.steps());
      const ps::any_epoch_cut any = ps::any_step_cut(c).bind(7);
      CHECK(any.steps() == c.steps());
      CHECK(!any.lists());
      CHECK_NOTHROW(any.check());
      for (std::uint64_t s = 0; s < c.steps(); ++s) {
        CHECK(any.count(s) == c.count(s));
        CHECK(any.before(s) == c.before(s));
        REQUIRE(any.at(s).valid() == c.at(s).valid());
        for (std::uint64_t i = 0; i < c.at(s).valid(); ++i) CHECK(any.at(s)[i] == c.at(s)[i]);
      }
    }
  }
  CHECK(!ps::any_step_cut().any());
}

namespace {

/// The arithmetic cut with a count of its bindings.
struct counted_cut {
  ps::cut made;
  int* bound;

  [[nodiscard]] ps::cut bind(std::uint64_t) const {
    ++*bound;
    return made;
  }
  [[nodiscard]] counted_cut on(std::uint64_t world, std::uint64_t rank) const {
    return {made.on(world, rank), bound};
  }
  [[nodiscard]] std::uint64_t usual() const { return 1; }
};

}  // namespace

TEST_CASE("order/step_cut: copies share bindings, as long as one of them needs them") {
  int bound = 0;
  const ps::any_step_cut first(counted_cut{{.size = 10, .global = 2}, &bound});
  const ps::any_step_cut copy = first;  // NOLINT: the test needs a copy
  {
    const ps::any_epoch_cut one = first.bind(3), again = copy.bind(3), other = copy.bind(4);
    CHECK(bound == 2);
    CHECK(first.bind(3).steps() == 5);
    CHECK(bound == 2);
  }
  (void)first.bind(4);  // the latest binding is kept in any case
  CHECK(bound == 2);
  CHECK(first.on(2, 1).bind(4).at(0).base() == 1);
  CHECK(bound == 3);
}

namespace {

/// The arithmetic cut, listed.
struct listed_cut : ps::cut {
  bool same_steps = true;

  void list(std::uint64_t step, numbers& into) const {
    for (std::uint64_t slot = 0; slot < valid(step); ++slot) into.push_back(at(step)[slot]);
  }
  [[nodiscard]] bool elastic() const noexcept { return same_steps; }
};

}  // namespace

TEST_CASE("order/step_cut: a listing cut is elastic only if it says so") {
  CHECK(ps::any_epoch_cut(ps::cut{.size = 4}).elastic());
  CHECK_FALSE(ps::any_epoch_cut(bucket_cut{4, 2, 1, 0}.bind(0)).elastic());
  CHECK(ps::any_epoch_cut(listed_cut{{.size = 4}, true}).elastic());
  CHECK_FALSE(ps::any_epoch_cut(listed_cut{{.size = 4}, false}).elastic());
}

TEST_CASE("order/step_cut: a rule with the arithmetic cut gives the batches of batch") {
  const auto all = [&](const auto& source) {
    for (const std::uint64_t world : {1u, 3u}) {
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        const auto share = source | ps::shard(rank, world);
        for (const ps::tail policy : {ps::tail::keep, ps::tail::drop}) {
          const auto ours = share | ps::batch_by(fixed_rule{5, policy}) | ps::workers(2);
          CHECK(got(ours, 1) == got(share | ps::batch(5, policy), 1));
        }
        CHECK(got(share | ps::batch_by(fixed_rule{5, ps::tail::pad}), 1) ==
              got(share | ps::batch(5, ps::tail::pad), 1));
      }
    }
  };
  const auto source = ps::generated(101, itself);
  all(source | ps::shuffle(ps::seed(3)));
  all(source | ps::shuffle(ps::seed(3), ps::window(8), ps::lanes(4)));
  const auto plan = source | ps::shuffle(ps::seed(3)) | ps::shard(1, 2) | ps::batch_by(fixed_rule{7});
  engine_test::check_all_stops(plan, plan | ps::workers(0), 2);
}

TEST_CASE("order/step_cut: a step may hold positions from anywhere") {
  const auto source = ps::generated(20, itself);
  const bucket_rule rule{3};
  CHECK(got(source | ps::batch_by(rule))[1] == numbers{1, 4});
  CHECK(got(source | ps::batch_by(rule), 1)[0] == numbers{0, 3});
  numbers had;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    const batches mine =
        got(source | ps::shuffle(ps::seed(5)) | ps::shard(rank, 3) | ps::batch_by(rule) | ps::workers(2));
    CHECK(mine.size() == 4);
    for (const numbers& b : mine) had.insert(had.end(), b.begin(), b.end());
  }
  std::sort(had.begin(), had.end());
  numbers expected;
  for (std::uint64_t i = 0; i < 20; ++i) expected.push_back(i);
  CHECK(had == expected);

  const auto plan = source | ps::shuffle(ps::seed(5)) | ps::shard(1, 3) | ps::batch_by(rule);
  engine_test::check_all_stops(plan | ps::workers(2), plan | ps::prefetch(4), 2);
  CHECK(ps::prove(plan, std::vector<ps::topology>{{1, 1}, {3, 2}}, {.epochs = 2}).holds());

  auto run = plan.open();
  auto epoch = run.epoch(0);
  std::size_t step = 0;
  for (auto it = epoch.begin(); step < 2 && it != epoch.end(); ++it) ++step;
  std::uint64_t consumed = 0;
  ps::for_each_consumed(plan, run.state(), [&](const ps::consumed_range& range) { consumed += range.count; });
  CHECK(consumed == 12);
  const auto fewer = source | ps::shuffle(ps::seed(5)) | ps::shard(0, 2) | ps::batch_by(rule);
  CHECK_THAT(error_of([&] { (void)fewer.open(run.state()); }), contains("resume on another number of ranks"));
}

namespace {

/// Two positions a step on one rank, and in another order on several, though it says that it is elastic.
struct lying_cut {
  std::uint64_t size, world, rank;
  bool lies;

  [[nodiscard]] std::uint64_t steps() const { return size / 2; }
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const { return 2 * std::min(step, steps()); }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return step < steps() ? 2 : 0; }
  [[nodiscard]] ps::step_view at(std::uint64_t) const { return {0, rank == 0 ? 2u : 0u}; }
  void list(std::uint64_t step, numbers& into) const {
    const std::uint64_t first = lies && world == 3 ? step + 1 : step;
    for (std::uint64_t i = 0; i < 2 && rank == 0; ++i) into.push_back((2 * first + i) % size);
  }
  [[nodiscard]] bool elastic() const { return true; }
  [[nodiscard]] lying_cut bind(std::uint64_t) const { return *this; }
  [[nodiscard]] lying_cut on(std::uint64_t ranks, std::uint64_t which) const {
    return {size, ranks, which, lies};
  }
  [[nodiscard]] std::uint64_t usual() const { return 2; }
};

struct lying_rule {
  bool lies;
  template <class Orders>
  [[nodiscard]] lying_cut make(const Orders& orders, const ps::cut_input& in) const {
    return {orders.size(), in.world, in.rank, lies};
  }
  [[nodiscard]] std::string describe() const { return "lying"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("lying");
  }
};

}  // namespace

TEST_CASE("order/step_cut: prove finds a cut that says it is elastic and is not") {
  const std::vector<ps::topology> shapes{{1, 1}, {1, 2}, {1, 3}};
  const auto source = ps::generated(20, itself) | ps::shuffle(ps::seed(5)) | ps::shard(0, 2);
  CHECK(ps::prove(source | ps::batch_by(lying_rule{false}), shapes).holds());
  const ps::proof found = ps::prove(source | ps::batch_by(lying_rule{true}), shapes);
  CHECK_FALSE(found.holds());
  CHECK_THAT(
      to_string(found),
      contains("step 1 on 3 ranks starts after other samples than step 1 on one, though a state would"));
}
