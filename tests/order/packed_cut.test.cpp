// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/order/packed_cut.hpp>

#include <penstock/core/random.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/shuffle.hpp>

#include "support/catch.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace packed_cut_test {

namespace ps = penstock;

namespace {

/// A random plan of packed rows.
struct drawn_plan {
  std::uint64_t samples = 0;
  std::vector<std::uint32_t> lengths;
  ps::packed_facts facts;
  bool shuffled = false;
  std::uint64_t seed = 0;
};

drawn_plan draw(ps::rng& random) {
  drawn_plan p;
  p.samples = random.below(400);
  p.shuffled = random.chance(0.7);
  p.seed = random();
  ps::pack_options& o = p.facts.options;
  o.how = static_cast<ps::packing>(random.below(3));
  o.overlong = static_cast<ps::overlong>(1 + random.below(3));
  o.window = 1 + random.below(120);
  o.align = random.chance(0.5) ? 1 : 1 + random.below(8);
  o.max_samples = random.chance(0.3) ? 1 + random.below(6) : 0;
  const std::uint64_t capacity = o.align * (1 + random.below(60));
  p.facts.capacity = capacity;
  p.facts.rows = {.size = 1 + random.below(24), .global = true};
  if (random.chance(0.3)) p.facts.rows.dealt_by = ps::work_weights{1, 1};
  for (std::uint64_t i = 0; i < p.samples; ++i) {
    const std::uint64_t kind = random.below(10);
    const std::uint64_t length = kind == 0   ? 0
                                 : kind == 1 ? capacity
                                 : kind == 2 ? capacity + 1 + random.below(3 * capacity)
                                             : random.below(capacity + 1);
    p.lengths.push_back(static_cast<std::uint32_t>(length));
  }
  return p;
}

auto cut_of(const drawn_plan& p, std::uint64_t world, std::uint64_t rank, ps::tail at_end) {
  const auto orders = ps::make_order_chain({p.samples}, ps::shuffle(ps::seed(p.seed)));
  ps::packed_facts facts = p.facts;
  facts.rows.at_end = at_end;
  const auto length = [lengths = p.lengths](std::uint64_t i) -> std::uint64_t { return lengths[i]; };
  return ps::packed_cut(orders, length, facts,
                        {.world = world, .rank = rank, .samples = p.samples, .seed = 3});
}

using row = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t>>;

/// The rows of one rank's step: of each sample position, first token, length and place.
std::vector<row> rows_of(const ps::detail::packed_epoch& cut, std::uint64_t step) {
  std::vector<std::uint64_t> positions;
  cut.list(step, positions);
  ps::packed_step there;
  cut.pack(step, there);
  CHECK(there.documents.size() == positions.size());
  CHECK(cut.at(step).slots() == positions.size());
  std::vector<row> rows(there.rows);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const ps::packed_document& d = there.documents[i];
    rows.at(d.row).emplace_back(positions[i], d.first, d.length, d.begin);
  }
  return rows;
}

}  // namespace

TEST_CASE("any plan has every sample once, in the same rows on any number of ranks") {
  ps::rng random(17, 0, 0);
  const std::uint64_t plans = penstock_test::long_tests() ? 1000 : 120;
  for (std::uint64_t number = 0; number < plans; ++number) {
    const drawn_plan p = draw(random);
    const std::uint64_t capacity = p.facts.capacity.fixed(), align = p.facts.options.align,
                        epoch = random.below(3);
    CAPTURE(number, p.samples, capacity);
    std::vector<std::vector<row>> expected;  // by step
    for (const std::uint64_t world : {std::uint64_t{1}, 1 + random.below(12)}) {
      if (world > p.facts.rows.size) continue;
      std::vector<ps::detail::packed_epoch> ranks;
      for (std::uint64_t r = 0; r < world; ++r)
        ranks.push_back(cut_of(p, world, r, ps::tail::keep).bind(epoch));
      std::map<std::uint64_t, std::uint64_t> tokens;
      std::uint64_t before = 0;
      for (std::uint64_t step = 0; step < ranks[0].steps(); ++step) {
        std::vector<row> all;
        std::uint64_t samples = 0, least = ~std::uint64_t{0}, most = 0;
        for (const auto& rank : ranks) {
          REQUIRE(rank.steps() == ranks[0].steps());
          CHECK(rank.before(step) == before);
          const auto rows = rows_of(rank, step);
          least = std::min<std::uint64_t>(least, rows.size());
          most = std::max<std::uint64_t>(most, rows.size());
          for (const row& one : rows) {
            if (!one.empty()) all.push_back(one);
            samples += one.size();
          }
        }
        CHECK(most - least <= (p.facts.rows.dealt_by ? 0 : 1));
        CHECK(ranks[0].count(step) == samples);
        before += samples;
        for (const row& one : all) {
          std::uint64_t end = 0;
          CHECK((p.facts.options.max_samples == 0 || one.size() <= p.facts.options.max_samples));
          for (const auto& [position, first, length, begin] : one) {
            CHECK(begin == end);
            CHECK(begin % align == 0);
            end = begin + (length + align - 1) / align * align;
            tokens[position] += length;
          }
          CHECK(end <= capacity);
        }
        if (p.facts.rows.dealt_by) std::sort(all.begin(), all.end());
        if (world == 1)
          expected.push_back(all);
        else
          CHECK(all == expected.at(step));
      }
      CHECK(ranks[0].before(ranks[0].steps()) == before);
      const auto orders = ps::make_order_chain({p.samples}, ps::shuffle(ps::seed(p.seed)));
      for (std::uint64_t i = 0; i < p.samples; ++i) {
        const std::uint64_t length = p.lengths[orders.sample_at({epoch, i}).index];
        const bool dropped = length > capacity && p.facts.options.overlong == ps::overlong::drop;
        CHECK(tokens.count(i) == (dropped ? 0 : 1));
        if (dropped) continue;
        CHECK(tokens[i] ==
              (p.facts.options.overlong == ps::overlong::truncate ? std::min(length, capacity) : length));
      }
    }
  }
}

TEST_CASE("drop leaves out a step that is not full, and pad fills it with rows") {
  drawn_plan p;
  p.samples = 10;
  p.lengths.assign(10, 7);
  p.facts.capacity = 10;
  p.facts.rows = {.size = 4, .global = true};
  const auto dropped = cut_of(p, 2, 0, ps::tail::drop).bind(0);
  CHECK(dropped.steps() == 2);
  CHECK(dropped.before(2) == 8);
  CHECK(dropped.before(3) == 8);
  const auto padded = cut_of(p, 2, 1, ps::tail::pad).bind(0);
  CHECK(padded.steps() == 3);
  ps::packed_step last;
  padded.pack(2, last);
  CHECK(last.rows == 2);
  CHECK(last.documents.empty());
  cut_of(p, 2, 0, ps::tail::pad).bind(0).pack(2, last);
  CHECK(last.rows == 2);
  CHECK(last.documents.size() == 2);
}

TEST_CASE("an epoch whose samples cannot all be packed fails in the step of the first that cannot") {
  drawn_plan p;
  p.samples = 100;
  p.lengths.assign(100, 5);
  p.lengths[42] = 11;
  p.facts.capacity = 10;
  p.facts.options.window = 10;
  p.facts.rows = {.size = 4, .global = true};
  const auto cut = cut_of(p, 1, 0, ps::tail::keep).bind(0);
  CHECK_THROWS_WITH(cut.check(), Catch::Contains("sample 42 has 11 tokens, but a row holds 10"));
  const std::uint64_t last = cut.steps() - 1;
  CHECK(last < 13);
  for (std::uint64_t step = 0; step < last; ++step) CHECK_NOTHROW(cut.at(step));
  CHECK_THROWS_WITH(cut.at(last), Catch::Contains("sample 42 has 11 tokens"));
}

TEST_CASE("a stop ends the pass over an epoch") {
  drawn_plan p;
  p.samples = 50;
  p.lengths.assign(50, 5);
  p.facts.capacity = 10;
  p.facts.rows = {.size = 4, .global = true};
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(cut_of(p, 1, 0, ps::tail::keep).bind(0, &stop), ps::pass_stopped);
}

TEST_CASE("lengths that change under way are an error") {
  drawn_plan p;
  p.samples = 200;
  p.facts.capacity = 10;
  p.facts.rows = {.size = 4, .global = true};
  p.facts.lengths = "the lengths";
  for (const std::uint64_t later : {1u, 10u, 11u}) {
    std::atomic<std::uint64_t> calls{0};
    const auto length = [&](std::uint64_t) { return calls++ < 200 ? std::uint64_t{5} : later; };
    const ps::packed_cut cut(ps::make_order_chain({p.samples}, ps::shuffle(ps::seed(1))), length, p.facts,
                             {.samples = p.samples});
    const auto epoch = cut.bind(0);
    CHECK(epoch.steps() == 25);
    CHECK_THROWS_WITH(epoch.at(3), Catch::Contains("other lengths in the lengths"));
    CHECK_THROWS_WITH(epoch.before(3), Catch::Contains("other lengths in the lengths"));
  }
}

TEST_CASE("a sample of more pieces than a window may have is refused") {
  drawn_plan p;
  p.samples = 2;
  p.facts.capacity = 4;
  p.facts.rows = {.size = 4, .global = true};
  p.facts.options.overlong = ps::overlong::split;
  const auto length = [](std::uint64_t i) { return i == 0 ? std::uint64_t{4} : std::uint64_t{1} << 30; };
  const ps::packed_cut cut(ps::make_order_chain({p.samples}), length, p.facts, {.samples = p.samples});
  CHECK_THROWS_WITH(cut.bind(0).check(), Catch::Contains("too many to split into rows of 4"));
}

}  // namespace packed_cut_test
