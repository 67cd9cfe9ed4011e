// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 1 and 2: a chain of stages without workers, against the same loop written by hand into a batch buffer.

#include "support/harness.hpp"

#include <penstock/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 256;

// Two cheap functions: the cost of composition shows best when the work is small.
struct spread {
  std::uint32_t operator()(int x) const { return static_cast<std::uint32_t>(x) * 1664525u + 1013904223u; }
};
struct scale {
  float operator()(std::uint32_t x) const {
    return static_cast<float>(static_cast<int>(x >> 8)) * (1.0f / 16777216.0f);
  }
};
// Two functions of about a nanosecond each, like decoding a token or drawing a number.
struct stir {
  std::uint64_t operator()(int x) const {
    auto z = static_cast<std::uint64_t>(x) + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};
struct pick {
  std::uint32_t operator()(std::uint64_t x) const {
    return static_cast<std::uint32_t>(((x >> 32) * 50257u) >> 32);
  }
};
struct kept {
  bool operator()(int x) const { return (x & 3) != 0; }
};

template <class T>
std::uint64_t look(const T* values, std::size_t count) {
  bench::escape(values);
  std::uint64_t sum = count;
  if (count != 0)
    sum += static_cast<std::uint64_t>(values[0] * 1000) +
           31 * static_cast<std::uint64_t>(values[count - 1] * 1000);
  return sum;
}
struct look_at_batch {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    const auto values = b.values();
    return look(values.data(), values.size());
  }
};

template <class T, class First, class Second>
std::uint64_t by_hand(std::span<const int> from, std::vector<T>& into, First first, Second second) {
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < from.size(); begin += batch_size) {
    const std::size_t count = std::min(batch_size, from.size() - begin);
    for (std::size_t i = 0; i < count; ++i) into[i] = second(first(from[begin + i]));
    sum += look(into.data(), count);
  }
  return sum;
}

template <class T, class First, class Second, class Keep>
std::uint64_t by_hand_filtered(std::span<const int> from, std::vector<T>& into, Keep keep, First first,
                               Second second) {
  std::uint64_t sum = 0;
  std::size_t count = 0;
  for (const int x : from) {
    if (!keep(x)) continue;
    into[count++] = second(first(x));
    if (count == batch_size) {
      sum += look(into.data(), count);
      count = 0;
    }
  }
  if (count != 0) sum += look(into.data(), count);
  return sum;
}

void measure(const bench::options& o) {
  std::vector<int> values(1u << 20);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int>(stir{}(static_cast<int>(i)) & 0xffffff);
  const std::span<const int> data(values);
  const auto source = ps::from(data);
  std::vector<float> floats(batch_size);
  std::vector<std::uint32_t> tokens(batch_size);

  {
    auto run = (source | ps::map(stir{}) | ps::map(pick{}) | ps::batch(batch_size) | ps::workers(0)).open();
    bench::compare(o, {"1", "from | map | map | batch(256), maps of 1 ns, no workers / loop by hand", 0.9},
                   bench::epochs_of(run, look_at_batch{}),
                   [&] { return by_hand(data, tokens, stir{}, pick{}); });
  }
  {
    auto run =
        (source | ps::map(spread{}) | ps::map(scale{}) | ps::batch(batch_size) | ps::workers(0)).open();
    bench::compare(o, {"1b", "the same, maps that vectorise", 0}, bench::epochs_of(run, look_at_batch{}),
                   [&] { return by_hand(data, floats, spread{}, scale{}); });
  }
  {
    auto run = (source | ps::map(spread{}) | ps::map(scale{}) | ps::batch(4096) | ps::workers(0)).open();
    std::vector<float> large(4096);
    bench::compare(o, {"1c", "the same, batch(4096)", 0}, bench::epochs_of(run, look_at_batch{}), [&] {
      std::uint64_t sum = 0;
      for (std::size_t begin = 0; begin < data.size(); begin += 4096) {
        for (std::size_t i = 0; i < 4096; ++i) large[i] = scale{}(spread{}(data[begin + i]));
        sum += look(large.data(), std::size_t{4096});
      }
      return sum;
    });
  }
  {
    auto run = (source | ps::filter(kept{}) | ps::map(stir{}) | ps::map(pick{}) | ps::batch(batch_size) |
                ps::workers(0))
                   .open();
    bench::compare(o, {"2", "from | filter | map | map | batch(256), no workers / loop by hand", 0.8},
                   bench::epochs_of(run, look_at_batch{}),
                   [&] { return by_hand_filtered(data, tokens, kept{}, stir{}, pick{}); });
  }
  {
    auto run = (source | ps::filter(kept{}) | ps::map(spread{}) | ps::map(scale{}) | ps::batch(batch_size) |
                ps::workers(0))
                   .open();
    bench::compare(o, {"2b", "the same, maps of less than a nanosecond", 0},
                   bench::epochs_of(run, look_at_batch{}),
                   [&] { return by_hand_filtered(data, floats, kept{}, spread{}, scale{}); });
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
