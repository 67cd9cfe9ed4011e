// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 11: the cost of a position. The keyed permutation and the windowed shuffle, as ratios to four
// dependent 64-bit multiplications and one division remainder, in the same program; the ratios of all sizes
// are printed, and the worst are the rows of the table.
//   "stream": every index is known beforehand, so neighbouring calls overlap, as in a loader's loop.
//   "chain": every index is the result of the previous call.

#include "support/harness.hpp"

#include <penstock/order.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace ps = penstock;

namespace {

volatile std::uint64_t keep = 0;
volatile std::uint64_t hide = 0;

std::uint64_t hidden(std::uint64_t x) {
  hide = x;
  return hide;
}

struct reference {
  std::uint64_t n;
  std::uint64_t operator()(std::uint64_t i) const {
    i *= 0x9e3779b97f4a7c15u;
    i *= i ^ 0xbf58476d1ce4e5b9u;
    i *= i ^ 0x94d049bb133111ebu;
    i *= i ^ 0xd6e8feb86659fd93u;
    return i % n;
  }
};

template <class F>
double stream(const F& f, std::uint64_t n, std::uint64_t calls) {
  std::uint64_t sum = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t left = calls; left != 0;) {
    const std::uint64_t now = std::min(left, n);
    for (std::uint64_t i = 0; i < now; ++i) sum += f(i);
    left -= now;
  }
  const auto end = std::chrono::steady_clock::now();
  keep = sum;
  return std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(calls);
}

template <class F>
double chained(const F& f, std::uint64_t n, std::uint64_t calls) {
  std::uint64_t at = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < calls; ++i) {
    at = f(at) + 1;
    if (at >= n) at = 0;
  }
  const auto end = std::chrono::steady_clock::now();
  keep = at;
  return std::chrono::duration<double, std::nano>(end - begin).count() / static_cast<double>(calls);
}

/// The ratios of one order to the reference: upper quartiles, because small ratios are good.
struct ratios {
  double stream = 0, chain = 0, stream_median = 0, chain_median = 0;
};
double upper(const std::vector<double>& values) { return bench::quantile(values, 0.75); }
double median(const std::vector<double>& values) { return bench::quantile(values, 0.5); }

template <class F>
ratios measure(const char* name, const F& f, std::uint64_t n, int pairs) {
  constexpr std::uint64_t calls = 200'000;
  const reference plain{hidden(n)};
  std::vector<double> stream_ratio, chain_ratio, stream_ns, chain_ns, plain_ns;
  for (int pair = 0; pair < pairs; ++pair) {
    double ours = 0, theirs = 0, ours_chained = 0, theirs_chained = 0;
    const auto run_ours = [&] { ours = stream(f, n, calls), ours_chained = chained(f, n, calls); };
    const auto run_theirs = [&] {
      theirs = stream(plain, n, calls), theirs_chained = chained(plain, n, calls);
    };
    if (pair % 2 == 0) {
      run_ours();
      run_theirs();
    } else {
      run_theirs();
      run_ours();
    }
    stream_ratio.push_back(ours / theirs);
    chain_ratio.push_back(ours_chained / theirs_chained);
    stream_ns.push_back(ours);
    chain_ns.push_back(ours_chained);
    plain_ns.push_back(theirs);
  }
  std::printf(
      "%-22s %12llu  stream %6.2f ns  ratio %5.2f   chain %6.2f ns  ratio %5.2f   (reference %.2f ns)\n",
      name, static_cast<unsigned long long>(n), median(stream_ns), upper(stream_ratio), median(chain_ns),
      upper(chain_ratio), median(plain_ns));
  return {upper(stream_ratio), upper(chain_ratio), median(stream_ratio), median(chain_ratio)};
}

struct index_of_position {
  const ps::windowed_shuffle_order::bound* bound;
  std::uint64_t operator()(std::uint64_t i) const { return (*bound)(i).index; }
};

void windowed(const char* name, std::uint64_t window, std::uint64_t lanes, int pairs) {
  std::vector<std::uint64_t> starts{0};
  ps::rng sizes(1, 0, 0);
  for (int i = 0; i < 10'000; ++i) starts.push_back(starts.back() + 500 + sizes.below(1000));
  const std::uint64_t n = starts.back();
  const ps::windowed_shuffle_order made(
      {n, std::make_shared<const std::vector<std::uint64_t>>(std::move(starts))}, 7, window, lanes);
  std::vector<double> bind;
  for (std::uint64_t epoch = 0; epoch < 31; ++epoch) {
    const auto begin = std::chrono::steady_clock::now();
    static_cast<void>(made.bind(100 + epoch));
    bind.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  const auto bound = made.bind(0);
  measure(name, index_of_position{&bound}, n, pairs);
  std::printf("%-22s bind %.3f ms an epoch\n", "", median(bind));
}

void all(const bench::options& o) {
  if (!o.wants("11") && !o.wants("11a") && !o.wants("11b")) return;
  ratios worst;
  double jump = 0;  // the larger of the ratios just below and just above a power of two
  for (const unsigned bits : {10u, 12u, 14u, 16u, 20u, 24u, 28u, 32u}) {
    const auto of_size = [&](std::uint64_t n) {
      const ratios r = measure("permutation", ps::permutation(hidden(n), hidden(42)), n, o.pairs);
      worst = {std::max(worst.stream, r.stream), std::max(worst.chain, r.chain),
               std::max(worst.stream_median, r.stream_median), std::max(worst.chain_median, r.chain_median)};
      return r;
    };
    const ratios below = of_size((std::uint64_t{1} << bits) - 1),
                 above = of_size((std::uint64_t{1} << bits) + 1);
    jump = std::max(
        {jump, above.stream_median / below.stream_median, below.stream_median / above.stream_median});
  }
  measure("permutation", ps::permutation(hidden(100), hidden(42)), 100, o.pairs);
  measure("permutation", ps::permutation(hidden(500), hidden(42)), 500, o.pairs);
  if (!o.quick) {
    windowed("window 16", 16, 1, o.pairs);
    windowed("window 16, lanes 64", 16, 64, o.pairs);
    windowed("window 64, lanes 512", 64, 512, o.pairs);
  }
  if (o.wants("11a") || o.wants("11"))
    bench::print_row(
        {"11a", "shuffle(seed(7)) per position, 2^b - 1 against 2^b + 1, the larger ratio of medians", 1.5,
         true},
        jump, jump, "the worst of b = 10, 12, 14, 16, 20, 24, 28, 32");
  if (o.wants("11b") || o.wants("11"))
    bench::print_row(
        {"11b", "shuffle(seed(7)) per position / four dependent multiplications and a remainder", 2, true},
        worst.stream, worst.stream_median,
        "the worst size; each index after the other: " + std::to_string(worst.chain) + ", upper quartiles");
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, all); }
