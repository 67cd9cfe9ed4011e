// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/mixing_plan.hpp>
#include <penstock/order/detail/wide.hpp>
#include <penstock/order/mixture.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

namespace mixture_test {

using numbers = std::vector<std::uint64_t>;
using options = ps::detail::mixing_options;

double sum_of(const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

/// One epoch, position by position; checks the inverse, and look-ups with and without a cursor.
std::vector<ps::mixture::place> walk(const ps::mixture& m, std::uint64_t epoch) {
  std::vector<ps::mixture::place> all;
  ps::mixture::cursor c;
  for (std::uint64_t i = 0; i < m.size(); ++i) {
    const auto found = m.at({epoch, i});
    REQUIRE(found == m.at({epoch, i}, c));
    REQUIRE(m.position_of(found.source, found.at) == ps::position{epoch, i});
    all.push_back(found);
  }
  return all;
}

numbers counts_of(const std::vector<ps::mixture::place>& all, std::size_t sources) {
  numbers counts(sources);
  for (const auto& p : all) ++counts[p.source];
  return counts;
}

/// Checks that each source's samples in an epoch are consecutive, none twice.
void check_runs(const std::vector<ps::mixture::place>& all, const numbers& sizes) {
  std::vector<numbers> ordinals(sizes.size());
  for (const auto& p : all) {
    REQUIRE(p.at.index < sizes[p.source]);
    ordinals[p.source].push_back(p.at.epoch * sizes[p.source] + p.at.index);
  }
  for (numbers& one : ordinals) {
    std::sort(one.begin(), one.end());
    for (std::size_t i = 1; i < one.size(); ++i) REQUIRE(one[i] == one[i - 1] + 1);
  }
}

/// The integral of a source's share over the first p samples, in the widest floating type.
long double integral(const std::vector<ps::weight_knot>& knots, std::size_t k, std::uint64_t p) {
  const auto part = [&](std::size_t i) {
    long double sum = 0;
    for (const double w : knots[i].weights) sum += static_cast<long double>(w);
    return static_cast<long double>(knots[i].weights[k]) / sum;
  };
  const auto at = static_cast<long double>(p);
  long double total = part(0) * std::min(at, static_cast<long double>(knots[0].sample));
  for (std::size_t i = 0; i + 1 < knots.size() && knots[i].sample < p; ++i) {
    const auto length = static_cast<long double>(knots[i + 1].sample - knots[i].sample);
    const long double x = std::min(at - static_cast<long double>(knots[i].sample), length);
    total += part(i) * x + (part(i + 1) - part(i)) * x * x / (2 * length);
  }
  if (p > knots.back().sample)
    total += part(knots.size() - 1) * (at - static_cast<long double>(knots.back().sample));
  return total;
}

void check_within_one(const ps::mixture& m, const std::vector<ps::weight_knot>& knots, std::uint64_t p,
                      long double rounding) {
  std::uint64_t sum = 0;
  for (std::uint32_t k = 0; k < m.sources(); ++k) {
    const std::uint64_t count = m.count(k, p);
    const long double wanted = integral(knots, k, p);
    INFO("source " << k << " at " << p << ": " << count << " of " << static_cast<double>(wanted));
    REQUIRE(std::abs(static_cast<long double>(count) - wanted) < 1 + rounding);
    REQUIRE(count + 1 >= m.share(k, p));
    REQUIRE(count <= m.share(k, p) + 1);
    sum += count;
  }
  REQUIRE(sum == p);
}

/// Checks that no count decreases between neighbouring blocks from number `first` on.
void check_forward(const ps::mixture& m, std::uint64_t first, std::uint64_t blocks) {
  for (std::uint32_t k = 0; k < m.sources(); ++k) {
    for (std::uint64_t b = first; b < first + blocks; ++b)
      REQUIRE(m.count(k, b * m.block()) <= m.count(k, (b + 1) * m.block()));
  }
}

std::string sentence(const numbers& sizes, const ps::detail::mixing_rule& rule, const options& with = {}) {
  try {
    const ps::mixture made(sizes, rule, with);
  } catch (const ps::error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("order/mixture: both divisions of two words by one agree with a wider type") {
  ps::rng random(1, 0, 0);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t d = std::max<std::uint64_t>(1, random() >> random.below(64));
    const ps::detail::wide n{random() % d, random() >> random.below(64)};
    const auto found = ps::detail::divide_in_halves(n, d);
    CHECK(found.remainder < d);
    CHECK(ps::detail::product(found.quotient, d) + ps::detail::wide{0, found.remainder} == n);
    const auto other = ps::detail::divide(n, d);
    CHECK(other.quotient == found.quotient);
    CHECK(other.remainder == found.remainder);
  }
  const std::uint64_t top = ~std::uint64_t{0};
  CHECK(ps::detail::divide_in_halves({top - 1, top}, top).quotient == top);
  CHECK(ps::detail::divide_in_halves({0, 7}, 1).quotient == 7);
  CHECK(ps::detail::wide{1, 0} - ps::detail::wide{0, 1} == ps::detail::wide{0, top});
}

TEST_CASE("order/mixture: the integral of lines is exact") {
  // Weights in sixteenths, so that 128-bit integers can compute the definition exactly.
  ps::rng random(2, 0, 0);
  __extension__ using integer = __int128;
  for (int round = 0; round < 300; ++round) {
    numbers knots{0}, values{random.below(17)};
    for (std::uint64_t i = random.below(5); i != 0; --i) {
      knots.push_back(knots.back() + 1 + random.below(5000));
      values.push_back(random.below(17));
    }
    const ps::detail::weight_integrals made(16, knots, values);
    for (int probe = 0; probe < 40; ++probe) {
      const std::uint64_t p = random.below(knots.back() + 3000);
      // over 32 * length: the trapezoids before p, then the one that p cuts
      std::size_t i = 0;
      integer before = 0;
      while (i + 1 < knots.size() && knots[i + 1] <= p) {
        before += static_cast<integer>(values[i] + values[i + 1]) * (knots[i + 1] - knots[i]);
        ++i;
      }
      const bool last = i + 1 == knots.size();
      const auto length = static_cast<integer>(last ? 1 : knots[i + 1] - knots[i]);
      const auto x = static_cast<integer>(p - knots[i]), a = static_cast<integer>(values[i]);
      const integer slope = last ? 0 : static_cast<integer>(values[i + 1]) - a;
      const integer above = before * length + 2 * a * x * length + slope * x * x, below = 32 * length;
      const auto found = made.at(0, p);
      CHECK(found.floor == static_cast<std::uint64_t>(above / below));
      CHECK(found.exact == (above % below == 0));
    }
  }
}

TEST_CASE("order/mixture: decimal weights are exact") {
  const ps::mixture m({1'000'000, 1'000'000, 1'000'000}, ps::weights{0.7, 0.2, 0.1}, ps::stopping::cycle);
  for (std::uint64_t b = 10; b <= 100'000'000'000; b *= 10) {
    CHECK(m.count(0, b) == b / 10 * 7);
    CHECK(m.count(1, b) == b / 10 * 2);
    CHECK(m.count(2, b) == b / 10);
  }
  const ps::mixture same({1'000'000, 1'000'000, 1'000'000}, ps::weights{7, 2, 1}, ps::stopping::cycle);
  for (std::uint64_t i = 0; i < 3000; ++i) CHECK(m.at({0, i}) == same.at({0, i}));
}

TEST_CASE("order/mixture: every position is a sample and every sample a position, for each policy") {
  ps::rng random(3, 0, 0);
  for (int round = 0; round < 250; ++round) {
    numbers sizes;
    std::vector<double> parts;
    for (std::uint64_t k = 1 + random.below(7); k != 0; --k) {
      sizes.push_back(1 + random.below(random.below(2) == 0 ? 20 : 900));
      parts.push_back(0.05 + random.uniform());
    }
    const std::uint64_t seed = random();
    std::uint64_t all_samples = 0;
    for (const std::uint64_t n : sizes) all_samples += n;
    const std::uint64_t cut = 1 + random.below(3000), epoch = random.below(4);
    INFO("round " << round);

    {
      const ps::mixture m(sizes, ps::weights(parts), ps::stopping::first_exhausted, seed);
      const auto found = walk(m, epoch);
      check_runs(found, sizes);
      const numbers counts = counts_of(found, sizes.size());
      bool exhausted = false;
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        CHECK(counts[k] <= sizes[k]);
        exhausted = exhausted || counts[k] == sizes[k];
      }
      CHECK(exhausted);
      for (const auto& p : found) CHECK(p.at.epoch == epoch);
      // computed directly: the longest epoch in which no share exceeds its source
      std::uint64_t n = 0;
      const auto fits = [&](std::uint64_t length) {
        for (std::size_t k = 0; k < sizes.size(); ++k)
          if (parts[k] / sum_of(parts) * static_cast<double>(length) > static_cast<double>(sizes[k]) + 1e-9)
            return false;
        return true;
      };
      while (fits(n + 1)) ++n;
      CHECK(m.size() == n);
    }
    {
      numbers few = sizes;
      for (std::uint64_t& n : few) n = n % 60 + 1;
      const ps::mixture m(few, ps::weights(parts), ps::stopping::all_exhausted, seed);
      const auto found = walk(m, epoch);
      check_runs(found, few);
      const numbers counts = counts_of(found, few.size());
      bool just = false;
      std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
      for (const auto& p : found) seen.insert({p.source, p.at.index});
      for (std::size_t k = 0; k < few.size(); ++k) {
        CHECK(counts[k] >= few[k]);
        just = just || counts[k] == few[k];
      }
      CHECK(just);
      CHECK(seen.size() == std::accumulate(few.begin(), few.end(), std::uint64_t{0}));
      std::uint64_t n = 0;
      const auto done = [&](std::uint64_t length) {
        for (std::size_t k = 0; k < few.size(); ++k)
          if (parts[k] / sum_of(parts) * static_cast<double>(length) < static_cast<double>(few[k]) - 1e-9)
            return false;
        return true;
      };
      while (!done(n)) ++n;
      CHECK(m.size() == n);
      // the next epoch continues each source after this one's samples
      for (std::uint64_t i = 0; i < m.size(); i += 7) {
        const auto next = m.at({epoch + 1, i});
        for (const auto& p : found)
          if (p.source == next.source) CHECK(p.at.epoch < next.at.epoch);
      }
    }
    {
      const ps::mixture m(sizes, ps::weights(parts), options{std::nullopt, cut, seed});
      const ps::mixture endless(sizes, ps::weights(parts), ps::stopping::cycle, seed);
      CHECK(m.size() == cut);
      const auto found = walk(m, epoch);
      for (std::uint64_t i = 0; i < cut; ++i)
        CHECK(found[static_cast<std::size_t>(i)] == endless.at({0, epoch * cut + i}));
      for (std::uint32_t k = 0; k < sizes.size(); ++k) CHECK(m.count(k, 4096) == endless.count(k, 4096));
    }
    {
      numbers more = sizes;
      for (std::uint64_t& n : more) n += 40;
      const ps::mixture m(more, ps::proportions(parts), options{std::nullopt, std::nullopt, seed});
      CHECK(m.size() == all_samples + 40 * sizes.size());
      const auto found = walk(m, epoch);
      check_runs(found, more);
      const numbers counts = counts_of(found, sizes.size()),
                    again = counts_of(walk(m, epoch + 1), sizes.size());
      CHECK(counts == again);
      for (std::size_t k = 0; k < sizes.size(); ++k)
        CHECK(std::abs(static_cast<double>(counts[k]) -
                       parts[k] / sum_of(parts) * static_cast<double>(m.size())) < 1.000001);
    }
    {
      std::vector<double> times;
      numbers chosen;
      for (const std::uint64_t n : sizes) {
        times.push_back(static_cast<double>(1 + random.below(8)) / 4);
        chosen.push_back(std::max<std::uint64_t>(1, n * random.below(300) / 100));
      }
      if (sizes[0] > 3) {
        numbers fours = sizes;
        for (std::uint64_t& n : fours) n *= 4;
        const ps::mixture m(fours, ps::repeats(times), options{std::nullopt, std::nullopt, seed});
        const numbers counts = counts_of(walk(m, epoch), sizes.size());
        for (std::size_t k = 0; k < sizes.size(); ++k)
          CHECK(static_cast<double>(counts[k]) == times[k] * static_cast<double>(fours[k]));
      }
      const ps::mixture m(sizes, ps::choose(chosen), options{std::nullopt, std::nullopt, seed});
      const auto found = walk(m, epoch);
      check_runs(found, sizes);
      CHECK(counts_of(found, sizes.size()) == chosen);
    }
  }
}

TEST_CASE("order/mixture: samples left out of one epoch of choose come in the next") {
  const ps::mixture m({10, 7}, ps::choose{4, 3});
  std::vector<std::set<std::uint64_t>> seen(2);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
    for (const auto& p : walk(m, epoch))
      if (p.at.epoch == 0) seen[p.source].insert(p.at.index);
  CHECK(seen[0].size() == 10);
  CHECK(seen[1].size() == 7);
}

TEST_CASE("order/mixture: counts are within one of the exact share, up to 10^12 and down to 10^-6") {
  ps::rng random(4, 0, 0);
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = 2 + static_cast<std::size_t>(random.below(9));
    ps::weight_knot one;
    numbers sizes;
    for (std::size_t k = 0; k < count; ++k) {
      one.weights.push_back(random.below(2) == 0 ? 1e-6 * (1 + random.uniform()) : 0.05 + random.uniform());
      sizes.push_back(1 + random.below(1'000'000'000));
    }
    one.weights[0] = 1;
    const ps::mixture m(sizes, ps::weights(one.weights), ps::stopping::cycle, random());
    CHECK(m.block() <= std::uint64_t{1} << 24);
    for (int probe = 0; probe < 200; ++probe) {
      std::uint64_t p = random.below(std::uint64_t{1} << (10 + probe % 30)) / m.block() * m.block();
      if (probe % 4 == 0) p = (1'000'000'000'000 / m.block() - random.below(1000)) * m.block();
      check_within_one(m, {one}, p, 1e-4L);
    }
    check_forward(m, 0, 200);
    check_forward(m, 1'000'000'000'000 / m.block(), 200);
    // and every sample near 10^12 has exactly one place
    for (int probe = 0; probe < 50; ++probe) {
      const ps::position p{0, 1'000'000'000'000 - random.below(1'000'000)};
      const auto found = m.at(p);
      CHECK(m.position_of(found.source, found.at) == p);
    }
  }
}

TEST_CASE("order/mixture: the third lightest weight sets the length of blocks") {
  const auto block_of = [](const std::vector<double>& parts) {
    return ps::mixture(numbers(parts.size(), 100), ps::weights(parts), ps::stopping::cycle).block();
  };
  CHECK(block_of({1, 1e-6, 1e-6}) == 1024);
  CHECK(block_of({1, 1e-6, 1e-6, 1e-6}) == 1u << 20);
  CHECK(block_of({1, 1, 1, 1, 1}) == 1024);
  CHECK(block_of({1, 1e-9, 1e-9, 1e-9}) == 1u << 30);
}

TEST_CASE("order/mixture: schedules give the integral of their weights") {
  ps::rng random(5, 0, 0);
  for (int round = 0; round < 120; ++round) {
    const std::size_t count = 2 + static_cast<std::size_t>(random.below(6));
    const unsigned scale = static_cast<unsigned>(8 + random.below(31));
    std::vector<ps::weight_knot> knots;
    std::uint64_t at = random.below(std::uint64_t{1} << scale);
    // some sources come in later; two may leave again
    numbers comes(count);
    for (std::uint64_t& c : comes) c = random.below(3);
    comes[random.below(count)] = 0;
    const std::uint64_t goes = random.below(count);
    const std::uint64_t length = 1 + random.below(5);
    for (std::uint64_t i = 0; i < length; ++i) {
      ps::weight_knot knot{at, {}};
      for (std::size_t k = 0; k < count; ++k) {
        const bool there = i >= std::min(comes[k], length - 1) && (k != goes || i % 2 == 0);
        knot.weights.push_back(there ? 0.02 + random.uniform() : 0.0);
      }
      if (sum_of(knot.weights) == 0) knot.weights[goes] = 1;
      knots.push_back(knot);
      at += 1 + random.below(std::uint64_t{1} << scale);
    }
    numbers sizes;
    for (std::size_t k = 0; k < count; ++k) {
      sizes.push_back(1 + random.below(100'000));
      bool ever = false;
      for (const auto& knot : knots) ever = ever || knot.weights[k] != 0;
      if (!ever) knots.back().weights[k] = 1;
    }
    const std::string wrong = sentence(sizes, ps::weight_schedule(knots), {ps::stopping::cycle, {}, 0});
    INFO("round " << round << ", scale " << scale << ": " << wrong);
    REQUIRE(wrong.empty());
    const ps::mixture m(sizes, ps::weight_schedule(knots), ps::stopping::cycle, random());
    const std::uint64_t blocks = knots.back().sample / m.block() + 3;
    check_forward(m, 0, std::min<std::uint64_t>(blocks, 400));
    for (const auto& knot : knots) check_forward(m, knot.sample / m.block(), 50);
    for (int probe = 0; probe < 200; ++probe) {
      const std::uint64_t b = random.below(blocks);
      check_within_one(m, knots, b * m.block(), 1e-4L);
      check_forward(m, b, 1);
    }
    for (int probe = 0; probe < 300; ++probe) {
      const ps::position p{0, random.below(blocks * m.block())};
      const auto found = m.at(p);
      REQUIRE(m.position_of(found.source, found.at) == p);
    }
  }
}

TEST_CASE("order/mixture: a curriculum of three phases, sample by sample") {
  const ps::weight_schedule phases({{2'000, {1, 0, 0}}, {20'000, {0, 1, 0}}, {40'000, {0, 0, 1}}});
  const ps::mixture m({500, 600, 700}, phases, ps::stopping::cycle, 9);
  ps::mixture::cursor c;
  numbers counts(3);
  std::vector<std::set<std::pair<std::uint64_t, std::uint64_t>>> seen(3);
  for (std::uint64_t i = 0; i < 60 * m.block(); ++i) {
    if (i % m.block() == 0) {
      check_within_one(m, phases.knots(), i, 1e-9L);
      for (std::uint32_t k = 0; k < 3; ++k) CHECK(counts[k] == m.count(k, i));
    }
    const auto p = m.at({0, i}, c);
    CHECK(seen[p.source].insert({p.at.epoch, p.at.index}).second);
    ++counts[p.source];
  }
  for (std::uint64_t i = 0; i < 1024; ++i) CHECK(m.at({0, i}).source == 0);
  for (std::uint64_t i = 42 * m.block(); i < 43 * m.block(); ++i) CHECK(m.at({0, i}).source == 2);
}

TEST_CASE("order/mixture: a schedule continues over the epochs of samples_per_epoch") {
  const ps::weight_schedule fade({{0, {1, 0}}, {10'000, {0, 1}}});
  const ps::mixture m({500, 600}, fade, options{std::nullopt, 1'000, 3});
  const numbers early = counts_of(walk(m, 0), 2), late = counts_of(walk(m, 12), 2);
  CHECK(early[0] > 900);
  CHECK(late[1] == 1'000);
}

TEST_CASE("order/mixture: sources are spread over a block as in a random order") {
  // The gaps between samples of a source with weight 1/4: their mean square is that of a shuffled deck.
  const ps::mixture m({1'000'000, 1'000'000}, ps::weights{3, 1}, ps::stopping::cycle, 11);
  ps::mixture::cursor c;
  double squares = 0, pairs = 0, gaps = 0;
  std::uint64_t before = 0, last = 0, adjacent = 0;
  numbers in_quarter(4);
  const std::uint64_t n = 400 * m.block();
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint32_t source = m.at({0, i}, c).source;
    if (source == 1) {
      const auto gap = static_cast<double>(i - last);
      squares += gap * gap;
      ++gaps;
      adjacent += before == 1;
      ++in_quarter[static_cast<std::size_t>(i % m.block() * 4 / m.block())];
      last = i;
    }
    pairs += source == 1;
    before = source;
  }
  CHECK(pairs == static_cast<double>(n) / 4);
  // geometric gaps have mean square (2 - w) / w^2 = 28; the deviation over 100,000 gaps is about 0.3
  CHECK(std::abs(squares / gaps - 28) < 1.2);
  CHECK(std::abs(static_cast<double>(adjacent) / gaps - 0.25) < 0.008);
  for (const std::uint64_t q : in_quarter) CHECK(std::abs(static_cast<double>(q) - 25'600) < 800);
}

TEST_CASE(
    "order/mixture: a count is within one of its share at the ends of blocks, and may stray between them") {
  const std::vector<double> parts{0.5, 0.3, 0.2};
  const ps::mixture m({1'000'000, 1'000'000, 1'000'000}, ps::weights(parts), ps::stopping::cycle, 5);
  const auto block = static_cast<double>(m.block());
  ps::mixture::cursor c;
  numbers counts(3);
  double furthest = 0, squares = 0, middles = 0;
  for (std::uint64_t p = 0; p < 200 * m.block(); ++p) {
    const std::uint64_t inside = p % m.block();
    for (std::uint32_t k = 0; k < 3; ++k) {
      const double off = static_cast<double>(counts[k]) - parts[k] * static_cast<double>(p);
      if (inside == 0) REQUIRE(std::abs(off) < 1);
      furthest = std::max(furthest, std::abs(off));
      // with a normal distribution none of 600 blocks and sources strays beyond six deviations
      const double i = static_cast<double>(inside), w = parts[k];
      REQUIRE(std::abs(off) < 2 + 6 * std::sqrt(w * (1 - w) * i * (block - i) / block));
      if (k == 0 && inside == m.block() / 2) squares += off * off, ++middles;
    }
    ++counts[m.at({0, p}, c).source];
  }
  CHECK(furthest > 20);  // shows that "within one" does not hold for every p
  CHECK(std::abs(std::sqrt(squares / middles) - 8) < 2);
}

TEST_CASE("order/mixture: a whole number of blocks, cut by samples_per_epoch, has shares within one") {
  const ps::mixture m({50'000, 3'000, 8'000}, ps::weights{0.6, 0.3, 0.1}, options{std::nullopt, 2'048, 4});
  REQUIRE(m.block() == 1'024);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    numbers counts(3);
    for (std::uint64_t i = 0; i < m.size(); ++i) ++counts[m.at({epoch, i}).source];
    for (std::uint32_t k = 0; k < 3; ++k) {
      const std::uint64_t begin = epoch * 2'048;
      CHECK(counts[k] == m.count(k, begin + 2'048) - m.count(k, begin));
    }
  }
}

TEST_CASE("order/mixture: seeds and epochs change the order, and fingerprints tell mixtures apart") {
  const auto of = [](const ps::detail::mixing_rule& rule, const options& with,
                     numbers sizes = {5'000, 4'000}) {
    const ps::mixture m(std::move(sizes), rule, with);
    ps::fingerprint h;
    m.fingerprint(h);
    return h.value();
  };
  const options cycle{ps::stopping::cycle, {}, 1};
  std::set<std::uint64_t> all{of(ps::weights{1, 2}, cycle),
                              of(ps::weights{1, 3}, cycle),
                              of(ps::weights{1, 2}, {ps::stopping::cycle, {}, 2}),
                              of(ps::weights{1, 2}, {ps::stopping::first_exhausted, {}, 1}),
                              of(ps::weights{1, 2}, {ps::stopping::all_exhausted, {}, 1}),
                              of(ps::weights{1, 2}, {{}, 100, 1}),
                              of(ps::weights{1, 2}, cycle, {5'000, 4'001}),
                              of(ps::repeats{1, 2}, {{}, {}, 1}),
                              of(ps::choose{5'000, 9'000}, {{}, {}, 1}),
                              of(ps::weight_schedule({{0, {1, 2}}, {10, {1, 3}}}), cycle),
                              of(ps::weight_schedule({{0, {1, 2}}, {11, {1, 3}}}), cycle)};
  CHECK(all.size() == 11);
  const ps::mixture a({5'000, 4'000}, ps::weights{1, 1}, ps::stopping::first_exhausted, 1);
  const ps::mixture b({5'000, 4'000}, ps::weights{1, 1}, ps::stopping::first_exhausted, 2);
  int same_seed = 0, same_epoch = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    same_seed += a.at({0, i}).source == b.at({0, i}).source;
    same_epoch += a.at({0, i}).source == a.at({1, i}).source;
  }
  CHECK(std::abs(same_seed - 500) < 100);
  CHECK(std::abs(same_epoch - 500) < 100);
}

TEST_CASE("order/mixture: a cursor can jump as well as step") {
  ps::rng random(6, 0, 0);
  const ps::mixture m({700, 900, 1'100}, ps::weights{1, 2, 3}, options{std::nullopt, 5'000, 4});
  ps::mixture::cursor c;
  for (int i = 0; i < 20'000; ++i) {
    const ps::position p{random.below(3), random.below(i % 7 == 0 ? 5'000 : 1'100)};
    REQUIRE(m.at(p, c) == m.at(p));
  }
}

TEST_CASE("order/mixture: errors are one sentence") {
  using penstock_test::contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinite = std::numeric_limits<double>::infinity();
  const numbers two{100, 100};
  CHECK_THAT(sentence(two, ps::weights{0.5, -0.1}), contains("the weight of source 1 is -0.1; weights are"));
  CHECK_THAT(sentence(two, ps::weights{0.0, 1.0}),
             contains("the weight of source 0 is 0; leave the source out"));
  CHECK_THAT(sentence(two, ps::weights{1.0, nan}), contains("the weight of source 1 is not a number"));
  CHECK_THAT(sentence(two, ps::weights{1.0, infinite}), contains("the weight of source 1 is inf"));
  CHECK_THAT(sentence(two, ps::weights{1e-300, 0.3}), contains("too small compared with 0.3"));
  CHECK_THAT(sentence(two, ps::weights{1, 2, 3}), contains("weights has 3 numbers, but there are 2 sources"));
  CHECK_THAT(sentence({100, 0}, ps::weights{1, 2}), contains("source 1 has no samples"));
  CHECK_THAT(sentence({100, std::uint64_t{1} << 63}, ps::weights{1, 2}), contains("write no repeat()"));
  CHECK_THAT(sentence({}, ps::weights(std::vector<double>{})), contains("no sources"));
  CHECK_THAT(sentence(two, ps::repeats{1, 0.001}), contains("repeats gives no sample of source 1"));
  CHECK_THAT(sentence(two, ps::choose{1, 0}), contains("choose gives no sample of source 1"));
  CHECK_THAT(sentence(two, ps::repeats{1, -1}), contains("is -1"));
  CHECK_THAT(sentence(two, ps::repeats{1e30, 1e30}), contains("more than 2^60"));
  CHECK_THAT(sentence(two, ps::proportions{1, nan}), contains("not a number"));
  CHECK_THAT(sentence(two, ps::proportions{1e-9, 1}), contains("proportions gives no sample of source 0"));
  CHECK_THAT(sentence(two, ps::choose{1, 1}, {ps::stopping::cycle, {}, 0}), contains("already says where"));
  CHECK_THAT(sentence(two, ps::choose{1, 1}, {{}, 10, 0}), contains("already says how long"));
  CHECK_THAT(sentence(two, ps::weights{1, 1}, {ps::stopping::all_exhausted, 10, 0}), contains("write one"));
  CHECK_THAT(sentence(two, ps::weights{1, 1}, {{}, 0, 0}), contains("is not in [1, 2^62]"));
  CHECK_THAT(sentence(two, ps::weight_schedule(std::vector<ps::weight_knot>{})), contains("has no knots"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1, 1}}, {0, {1, 2}}})), contains("does not come after"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1}}})), contains("a knot has 1 numbers"));
  CHECK_THAT(sentence(two, ps::weights{0, -0.0}), contains("the weight of source 0 is 0; leave"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1, 1}}, {5, {0, 0}}})),
             contains("all weights at knot 1 are 0"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1, 1}}, {5, {1, 1}}, {6, {1, nan}}})),
             contains("the weight of source 1 at knot 2 is not a number"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1, 0}}, {5, {1, 0}}})), contains("0 at every knot"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1, 0}}, {5, {1, -1}}})), contains("is -1"));
  CHECK_THAT(sentence(two, ps::weight_schedule({{0, {1, 1}}, {5, {1, nan}}})), contains("not a number"));
  CHECK_THAT(sentence({9, 9, 9, 9}, ps::weight_schedule({{0, {1, 1, 1, 1}}, {5'000, {0, 0, 0, 1}}}),
                      {ps::stopping::cycle, {}, 0}),
             contains("returns to 0, and so do those of two others"));
  CHECK_THAT(sentence({9, 9, 9, 9}, ps::weights{1, 1e-12, 1e-12, 1e-12}, {ps::stopping::cycle, {}, 0}),
             contains("less than one in 2^31 samples"));
  CHECK_THAT(
      sentence(two, ps::weight_schedule({{0, {1, 1}}, {10, {1, 0}}}), {ps::stopping::all_exhausted, {}, 0}),
      contains("more than 2^62"));
  const ps::mixture endless(two, ps::weights{1, 1}, ps::stopping::cycle);
  CHECK_THROWS_WITH(endless.at({1, 0}), contains("has no epoch 1"));
  CHECK_THROWS_WITH(endless.at({1, 0}), contains("write samples_per_epoch(n)"));
  CHECK_FALSE(endless.position_of(0, {0, 100}).has_value());
  CHECK_FALSE(endless.position_of(0, {~std::uint64_t{0}, 1}).has_value());
  const ps::mixture first({10, 1000}, ps::weights{1, 1});
  CHECK_FALSE(first.position_of(1, {0, 500}).has_value());
}

}  // namespace mixture_test
