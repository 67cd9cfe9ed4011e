// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a position costs: the keyed permutation and the windowed shuffle, as ratios to four dependent 64-bit
// multiplications and one division remainder, in the same program. Pairs of runs alternate; the lower
// quartile of their ratios is printed.
//   "stream": every index is known beforehand, so neighbouring calls overlap, as in a loader's loop.
//   "chain": every index is the result of the call before.
// Usage: permutation [pairs, 31 or more]

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

double quartile(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 4];
}

template <class F>
void row(const char* name, const F& f, std::uint64_t n, int pairs) {
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
      "%-22s %12llu  stream %6.2f ns  ratio %5.2f   chain %6.2f ns  ratio %5.2f   (reference stream %.2f "
      "ns)\n",
      name, static_cast<unsigned long long>(n), quartile(stream_ns), quartile(stream_ratio),
      quartile(chain_ns), quartile(chain_ratio), quartile(plain_ns));
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
  row(name, index_of_position{&bound}, n, pairs);
  std::printf("%-22s bind %.3f ms an epoch\n", "", quartile(bind));
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = std::max(31, argc > 1 ? std::atoi(argv[1]) : 31);
  for (const unsigned bits : {10u, 12u, 14u, 16u, 20u, 24u, 28u, 32u}) {
    for (const std::uint64_t n : {(std::uint64_t{1} << bits) - 1, (std::uint64_t{1} << bits) + 1}) {
      const ps::permutation shuffled(hidden(n), hidden(42));
      row("permutation", shuffled, n, pairs);
    }
  }
  row("permutation", ps::permutation(hidden(100), hidden(42)), 100, pairs);
  row("permutation", ps::permutation(hidden(500), hidden(42)), 500, pairs);
  windowed("window 16", 16, 1, pairs);
  windowed("window 16, lanes 64", 16, 64, pairs);
  windowed("window 64, lanes 512", 64, 512, pairs);
}
