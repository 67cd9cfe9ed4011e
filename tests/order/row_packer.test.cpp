// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/row_packer.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

namespace row_packer_test {

namespace ps = penstock;

namespace {

using lengths = std::vector<std::uint32_t>;
using rows = std::vector<std::vector<std::uint32_t>>;

rows packed(ps::row_packer& packer, const lengths& of) {
  packer.pack(of);
  rows all;
  for (std::size_t r = 0; r < packer.rows(); ++r) {
    const auto items = packer.items(r);
    all.emplace_back(items.begin(), items.end());
  }
  return all;
}

/// The slow way: each sample goes to the open row that is best by `better(candidate, best)`.
class plain_rows {
 public:
  explicit plain_rows(ps::row_limits limits)
      : capacity_(limits.capacity), most_(limits.max_samples == 0 ? ~std::uint64_t{0} : limits.max_samples) {}

  void put(std::uint32_t sample, std::uint32_t length, const auto& better) {
    std::size_t best = made.size();
    for (std::size_t r = 0; r < made.size(); ++r) {
      if (room[r] < length || made[r].size() == most_) continue;
      if (best == made.size() || better(r, best)) best = r;
    }
    if (best == made.size()) {
      made.emplace_back();
      room.push_back(capacity_);
      since.push_back(0);
    }
    made[best].push_back(sample);
    room[best] -= length;
    since[best] = ++clock_;
  }

  rows made;
  std::vector<std::uint64_t> room, since;  // since when a row has had its room

 private:
  std::uint64_t capacity_, most_, clock_ = 0;
};

rows plainly_packed(const ps::row_limits& limits, const lengths& of) {
  plain_rows plain(limits);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < of.size(); ++i) order.push_back(i);
  if (limits.how == ps::packing::best_fit) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return of[a] > of[b]; });
  }
  for (const std::uint32_t i : order) {
    plain.put(i, of[i], [&](std::size_t r, std::size_t best) {
      if (limits.how == ps::packing::first_fit || of[i] == 0) return false;
      if (limits.how == ps::packing::in_order) return true;
      return plain.room[r] != plain.room[best] ? plain.room[r] < plain.room[best]
                                               : plain.since[r] > plain.since[best];
    });
  }
  return plain.made;
}

/// Next fit has one open row, so `plain_rows` does not describe it.
rows next_fit(const ps::row_limits& limits, const lengths& of) {
  rows made;
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < of.size(); ++i) {
    if (made.empty() || used + of[i] > limits.capacity ||
        (limits.max_samples != 0 && made.back().size() == limits.max_samples)) {
      made.emplace_back();
      used = 0;
    }
    made.back().push_back(i);
    used += of[i];
  }
  return made;
}

/// Empty if every sample is in one row and no row has too much.
std::string fault(const ps::row_limits& limits, const lengths& of, const rows& made) {
  std::vector<int> seen(of.size(), 0);
  for (const auto& row : made) {
    std::uint64_t used = 0;
    for (const std::uint32_t i : row) {
      if (i >= of.size()) return "no such sample";
      ++seen[i];
      used += of[i];
    }
    if (row.empty()) return "an empty row";
    if (used > limits.capacity) return "a row of " + std::to_string(used);
    if (limits.max_samples != 0 && row.size() > limits.max_samples) return "too many samples";
  }
  return std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }) ? "" : "lost or twice";
}

lengths made_lengths(ps::rng& random, std::uint64_t capacity, std::size_t n) {
  const std::uint64_t kind = random.below(7);
  lengths made;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t length = random.below(capacity + 1);
    if (kind == 0) length = capacity;
    if (kind == 1) length = 0;
    if (kind == 2) length = 1;
    if (kind == 3) length = random.below(std::min<std::uint64_t>(capacity, 3) + 1);
    if (kind == 4 && random.below(3) != 0) length = random.below(2) == 0 ? capacity : 0;
    if (kind == 5) length = std::min(capacity, 1 + random.below(1 + capacity / (1 + random.below(20))));
    made.push_back(static_cast<std::uint32_t>(length));
  }
  return made;
}

constexpr ps::packing all_kinds[] = {ps::packing::best_fit, ps::packing::first_fit, ps::packing::in_order};

}  // namespace

TEST_CASE("order/row_packer: no row above its capacity, and no sample lost or twice, for every capacity") {
  ps::rng random(1, 0, 0);
  std::vector<std::uint64_t> capacities;
  for (std::uint64_t c = 1; c <= 4097; ++c) capacities.push_back(c);
  for (int k = 13; k <= 20; ++k)
    for (const int off : {-1, 0, 1})
      capacities.push_back((std::uint64_t{1} << k) + static_cast<std::uint64_t>(off));
  for (const std::uint64_t c : {(1u << 24) + 1, (1u << 30) + 1, 0x7fffffffu}) capacities.push_back(c);
  for (const std::uint64_t capacity : capacities) {
    for (const ps::packing how : all_kinds) {
      const std::uint64_t most = random.below(2) == 0 ? 0 : 1 + random.below(9);
      const ps::row_limits limits{capacity, most, how};
      ps::row_packer packer(limits);
      for (int round = 0; round < 4; ++round) {
        const lengths of = made_lengths(random, capacity, random.below(round == 0 ? 150 : 60));
        const rows made = packed(packer, of);
        INFO("capacity " << capacity << ", at most " << most << ", kind " << static_cast<int>(how));
        REQUIRE(fault(limits, of, made).empty());
        const rows expected =
            how == ps::packing::in_order ? next_fit(limits, of) : plainly_packed(limits, of);
        // Row for row and sample for sample: ties, too, are as documented.
        REQUIRE(made == expected);
        REQUIRE(packer.count(of) == expected.size());
        REQUIRE(packer.rows() == 0);
      }
    }
  }
}

TEST_CASE("order/row_packer: many samples of few lengths are as they would be one by one") {
  ps::rng random(2, 0, 0);
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t capacity = 1 + random.below(300), most = random.below(3) * random.below(8);
    lengths few, of;
    for (std::uint64_t k = 1 + random.below(6); k != 0; --k)
      few.push_back(static_cast<std::uint32_t>(random.below(capacity + 1)));
    for (std::uint64_t i = random.below(600); i != 0; --i)
      of.push_back(few[ps::detail::to_size(random.below(few.size()))]);
    for (const ps::packing how : {ps::packing::best_fit, ps::packing::first_fit}) {
      const ps::row_limits limits{capacity, most, how};
      ps::row_packer packer(limits);
      const rows expected = plainly_packed(limits, of);
      CHECK(packed(packer, of) == expected);
      CHECK(packer.count(of) == expected.size());
    }
  }
}

TEST_CASE("order/row_packer: a packer that is used again forgets what it packed, and allocates nothing") {
  for (const ps::packing how : all_kinds) {
    for (const std::uint64_t capacity : {std::uint64_t{100}, std::uint64_t{1} << 20}) {
      const ps::row_limits limits{capacity, 5, how};
      ps::row_packer reused(limits);
      ps::rng random(3, 0, 0);
      lengths large;
      for (int i = 0; i < 3000; ++i) large.push_back(static_cast<std::uint32_t>(random.below(capacity + 1)));
      reused.pack(large);
      reused.pack({});
      CHECK(reused.rows() == 0);
      const lengths small(large.begin(), large.begin() + 700);
      ps::row_packer fresh(limits);
      CHECK(packed(reused, small) == packed(fresh, small));
      static_cast<void>(reused.count(large));
      const std::uint64_t before = penstock_test::allocations;
      reused.pack(large);
      reused.pack(small);
      CHECK(reused.count(large) > reused.count(small));
      CHECK(penstock_test::allocations == before);
    }
  }
}

TEST_CASE("order/row_packer: without memory there are no rows, and later there are") {
  lengths of;
  ps::rng random(4, 0, 0);
  for (int i = 0; i < 500; ++i) of.push_back(static_cast<std::uint32_t>(random.below(5001)));
  for (const ps::packing how : all_kinds) {
    ps::row_packer fresh({5000, 0, how});
    const rows expected = packed(fresh, of);
    int failed = 0;
    for (std::uint64_t number = 1;; ++number) {
      ps::row_packer packer({5000, 0, how});
      penstock_test::failing_allocation = number;
      bool thrown = false;
      try {
        packer.pack(of);
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      penstock_test::failing_allocation = 0;
      if (!thrown) break;
      ++failed;
      REQUIRE(packer.rows() == 0);
      REQUIRE(packed(packer, of) == expected);
    }
    CHECK(failed > 5);
  }
}

TEST_CASE("order/row_packer: what it makes of a few lengths") {
  const lengths of{5, 3, 8, 0, 2, 3, 10, 7};
  ps::row_packer best({10, 0, ps::packing::best_fit});
  CHECK(packed(best, of) == rows{{6, 3}, {2}, {7, 1}, {0, 5, 4}});
  ps::row_packer two({10, 2, ps::packing::first_fit});
  CHECK(packed(two, of) == rows{{0, 1}, {2, 3}, {4, 5}, {6}, {7}});
  ps::row_packer order({10, 0, ps::packing::in_order});
  CHECK(packed(order, of) == rows{{0, 1}, {2, 3, 4}, {5}, {6}, {7}});
}

TEST_CASE("order/row_packer: best fit decreasing fills rows as it is known to") {
  // Plain best fit decreasing on lengths uniform in 1..512 with a capacity of 512 pads about half a percent.
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ps::rng random(seed, 0, 0);
    lengths of;
    std::uint64_t tokens = 0;
    for (int i = 0; i < 10'000; ++i) {
      of.push_back(static_cast<std::uint32_t>(1 + random.below(512)));
      tokens += of.back();
    }
    ps::row_packer packer({.capacity = 512});
    packer.pack(of);
    const std::uint64_t slots = packer.rows() * 512;
    CHECK(slots >= tokens);
    CHECK((slots - tokens) * 100 <= slots);
  }
}

TEST_CASE("order/row_packer: impossible limits and samples are refused") {
  CHECK_THROWS_WITH(ps::row_packer({.capacity = 0}),
                    Catch::Contains("a row with a capacity of 0 holds no sample; give it at least 1"));
  CHECK_THROWS_WITH(ps::row_packer({.capacity = std::uint64_t{1} << 31}),
                    Catch::Contains("the capacity of a row is 2147483648, and it is below 2^31"));
  for (const ps::packing how : all_kinds) {
    ps::row_packer packer({4, 0, how});
    packer.pack(lengths{1, 2});
    CHECK_THROWS_WITH(
        packer.pack(lengths{4, 1, 5, 6}),
        Catch::Contains("sample 2 has a length of 5, and a row holds 4; truncate it, split it"));
    CHECK(packer.rows() == 0);
    CHECK(packed(packer, {4}) == rows{{0}});
  }
}

}  // namespace row_packer_test
