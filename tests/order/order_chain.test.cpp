// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/sequential.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/order_input.hpp"

namespace ps = penstock;
using penstock_test::input;

namespace {

using numbers = std::vector<std::uint64_t>;

/// Empty if bindings, single look-ups and the inverse agree over an epoch; otherwise what is wrong.
template <class Chain>
std::string fault(const Chain& chain, std::uint64_t epoch, ps::rng& random) {
  const std::uint64_t n = chain.size();
  std::set<ps::position> seen;
  typename Chain::binding reused;
  const std::uint64_t stride = 1 + random.below(n + 1);
  for (std::uint64_t first = 0; first < n; first += stride) {
    const std::uint64_t last = std::min(n, first + stride);
    chain.rebind(reused, epoch, first, last);
    const auto fresh = chain.bind(epoch, first, last);
    for (std::uint64_t i = first; i < last; ++i) {
      const ps::position source = reused(i);
      const std::string where = " at " + std::to_string(epoch) + ":" + std::to_string(i);
      if (source.index >= chain.input().size) return "outside" + where;
      if (source != fresh(i) || source != chain.sample_at({epoch, i})) return "bindings differ" + where;
      if (!seen.insert(source).second) return "twice" + where;
      if (chain.position_of(source) != ps::position{epoch, i}) return "wrong inverse" + where;
    }
  }
  return "";
}

template <class... Stages>
void check(const ps::order_input& in, ps::rng& random, const Stages&... stages) {
  const auto chain = ps::make_order_chain(in, stages...);
  static_assert(std::is_same_v<decltype(chain), const ps::order_chain_of<Stages...>>,
                "one type for one list");
  for (const std::uint64_t epoch : {random.below(3), std::uint64_t{1000}}) {
    const std::string wrong = fault(chain, epoch, random);
    if (!wrong.empty())
      FAIL(wrong << ", size " << in.size << (std::string() + ... + (" | " + stages.describe())));
  }
}

}  // namespace

TEST_CASE("order/chain: no stages are the identity") {
  const auto chain = ps::make_order_chain({5, nullptr});
  CHECK(chain.size() == 5);
  CHECK(chain.output().size == 5);
  CHECK(chain.lanes() == 1);
  CHECK(chain.sample_at({3, 4}) == ps::position{3, 4});
  CHECK(chain.position_of({3, 4}) == ps::position{3, 4});
  CHECK_FALSE(chain.position_of({3, 5}).has_value());
  CHECK(chain.bind(3, 0, 5)(4) == ps::position{3, 4});
}

TEST_CASE("order/chain: stages act in the order written") {
  const auto chain = ps::make_order_chain({10, nullptr}, ps::skip(2), ps::take(3));
  CHECK(chain.size() == 3);
  CHECK(chain.sample_at({0, 0}) == ps::position{0, 2});
  CHECK(chain.sample_at({0, 2}) == ps::position{0, 4});
  const auto turned = ps::make_order_chain({10, nullptr}, ps::take(3), ps::skip(2));
  CHECK(turned.size() == 1);
  CHECK(turned.sample_at({0, 0}) == ps::position{0, 2});
}

TEST_CASE("order/chain: position_of inverts sample_at, for compositions over unequal shards") {
  ps::rng random(6, 0, 0);
  const int rounds = std::getenv("PENSTOCK_LONG_TESTS") != nullptr ? 10'000 : 300;
  for (int round = 0; round < rounds; ++round) {
    numbers sizes(static_cast<std::size_t>(random.below(12)));
    for (auto& size : sizes) size = random.chance(0.2) ? 0 : random.below(20);
    const auto in = input(sizes);
    const std::uint64_t n = in.size + 1;
    const auto full = ps::shuffle(ps::seed(random()));
    const auto windowed =
        ps::shuffle(ps::seed(random()), ps::window(1 + random.below(5)), ps::lanes(1 + random.below(7)));
    const auto take = ps::take(random.below(n + n / 4 + 1));
    const auto skip = ps::skip(random.below(n));
    const auto few = ps::repeat(random.below(4));
    const auto some = ps::repeat(1 + random.below(3));
    check(in, random, full);
    check(in, random, windowed);
    check(in, random, ps::sequential, take);
    check(in, random, full, take, skip);
    check(in, random, skip, take, windowed);
    check(in, random, full, few);
    check(in, random, windowed, some, take, skip);
    check(in, random, few, full);
    check(in, random, some, windowed);
    check(in, random, windowed, some, full, few);
    check(in, random, some, few, skip, windowed);
    check(in, random, windowed, skip, some, take, some);
  }
  SUCCEED("no fault");
}

TEST_CASE("order/chain: endless repeat is bound where it is read") {
  const auto chain = ps::make_order_chain({100, nullptr}, ps::shuffle(ps::seed(7)), ps::repeat());
  CHECK(chain.size() == std::uint64_t{1} << 63);
  const auto far = chain.bind(0, 1'000'000'050, 1'000'000'250);
  for (std::uint64_t i = 1'000'000'050; i < 1'000'000'250; ++i) {
    REQUIRE(far(i).epoch == i / 100);
    REQUIRE(far(i) == chain.sample_at({0, i}));
    REQUIRE(chain.position_of(far(i)) == ps::position{0, i});
  }
  CHECK_THROWS_WITH(chain.bind(1, 0, 10), penstock_test::contains("only epoch 0"));
  const auto taken =
      ps::make_order_chain({100, nullptr}, ps::repeat(), ps::take(250), ps::shuffle(ps::seed(7)));
  CHECK(taken.size() == 250);
  CHECK(taken.bind(0, 0, 250)(17) == taken.sample_at({0, 17}));
}

TEST_CASE("order/chain: a binding that moves on keeps what it can, and allocates nothing") {
  const auto chain =
      ps::make_order_chain(input(numbers(40, 10)), ps::shuffle(ps::seed(1), ps::window(4), ps::lanes(4)),
                           ps::shuffle(ps::seed(2)), ps::repeat(50), ps::take(15'000));
  auto binding = chain.bind(0, 0, 900);
  chain.rebind(binding, 0, 800, 1700);
  std::uint64_t sum = 0;
  const auto steady = penstock_test::allocations_of([&] {
    for (int again = 0; again < 100; ++again) {
      chain.rebind(binding, 0, 801, 1690);
      for (std::uint64_t i = 801; i < 1690; ++i) sum += binding(i).index;
    }
  });
  CHECK(steady == 0);
  CHECK(sum != 0);
}

TEST_CASE("order/chain: binding backwards, nothing, and past the end") {
  const auto chain = ps::make_order_chain({30, nullptr}, ps::shuffle(ps::seed(1)), ps::repeat(10));
  auto binding = chain.bind(2, 200, 300);
  chain.rebind(binding, 2, 0, 100);
  CHECK(binding(5) == chain.sample_at({2, 5}));
  chain.rebind(binding, 1, 0, 1'000'000);
  CHECK(binding(299) == chain.sample_at({1, 299}));
  chain.rebind(binding, 1, 10, 10);
  CHECK_THROWS_WITH(chain.sample_at({0, 300}), penstock_test::contains("not below"));
}

TEST_CASE("order/chain: a binding outlives its chain, and copies are independent") {
  using chain_type = ps::order_chain_of<ps::windowed_shuffle_stage, ps::take_stage>;
  chain_type::binding kept;
  numbers expected;
  {
    const auto chain =
        ps::make_order_chain(input({5, 6, 7}), ps::shuffle(ps::seed(1), ps::window(2)), ps::take(10));
    kept = chain.bind(4, 0, 10);
    for (std::uint64_t i = 0; i < 10; ++i) expected.push_back(chain.sample_at({4, i}).index);
  }
  const auto copy = kept;
  for (std::uint64_t i = 0; i < 10; ++i) {
    CHECK(kept(i).index == expected[static_cast<std::size_t>(i)]);
    CHECK(copy(i) == kept(i));
  }
  CHECK(kept.epoch() == 4);
}

TEST_CASE("order/chain: the lanes are those of the last stage that sets them") {
  const auto windowed = ps::shuffle(ps::seed(1), ps::window(2), ps::lanes(8));
  CHECK(ps::make_order_chain({100, nullptr}, windowed, ps::take(50), ps::repeat(2)).lanes() == 8);
  CHECK(ps::make_order_chain({100, nullptr}, windowed, ps::shuffle(ps::seed(1))).lanes() == 1);
  CHECK(ps::make_order_chain({100, nullptr}, ps::take(5)).lanes() == 1);
}

TEST_CASE(
    "order/chain: shuffling over too many repeated epochs is an error, not an allocation of terabytes") {
  const auto chain = ps::make_order_chain({10, nullptr}, ps::shuffle(ps::seed(1)), ps::repeat(1'000'000'000),
                                          ps::shuffle(ps::seed(2)));
  CHECK_THROWS_WITH(chain.bind(0, 0, 10), penstock_test::contains("write shuffle before repeat"));
}
