// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 15: the cost of a position of a mixture, relative to one of `shuffle(seed(7))`: eight sources of
// unequal sizes and weights, an epoch in order; as arithmetic alone, with positions in random order, and as a
// plan.
// The bars apply to the instructions, rows i15a and i15b.

#include "support/harness.hpp"

#include <penstock/order/mixture.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t samples = 1u << 20;
template <std::size_t K>
using at = std::integral_constant<std::size_t, K>;

volatile std::uint64_t hide = 0;

std::uint64_t hidden(std::uint64_t x) {
  hide = x;
  return hide;
}

std::vector<std::uint64_t> sizes() {
  std::vector<std::uint64_t> all;
  for (std::uint64_t k = 0; k < 8; ++k) all.push_back(hidden(50'000 + 30'011 * k));
  return all;
}
std::vector<double> parts() { return {0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02}; }

struct look_at_batch {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    const auto values = b.values();
    bench::escape(values.data());
    return values[0] + 31 * values[values.size() - 1];
  }
};

void measure(const bench::options& o) {
  const ps::shuffle_order order({samples, nullptr}, hidden(7));
  std::uint64_t epoch_of_mix = 0, epoch_of_shuffle = 0;
  const auto shuffled = [&] {
    const auto bound = order.bind(epoch_of_shuffle++);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < samples; ++i) sum += bound(i).index;
    bench::escape(&sum);
    return sum;
  };
  const ps::detail::mixing_options cut{std::nullopt, samples, hidden(7)};
  const ps::mixture mixed(sizes(), ps::weights(parts()), cut);
  const ps::mixture scheduled(
      sizes(), ps::weight_schedule({{0, {8, 7, 6, 5, 4, 3, 2, 1}}, {hidden(1u << 30), parts()}}), cut);
  const auto positions_of = [&](const ps::mixture& m, std::uint64_t stride) {
    return [&, stride] {
      ps::mixture::cursor place;
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0, at = 0; i < samples; ++i, at = (at + stride) % samples) {
        const auto found = m.at({epoch_of_mix, at}, place);
        sum += found.at.index + found.source;
      }
      ++epoch_of_mix;
      bench::escape(&sum);
      return sum;
    };
  };
  const auto none = [] {};
  bench::compare(o, {"15a", "a position of shuffle(seed(7)) / of a mixture of 8 sources", 0},
                 positions_of(mixed, 1), shuffled, none, bench::sums::unknown);
  bench::compare(o, {"15b", "the same, weights that follow a schedule", 0}, positions_of(scheduled, 1),
                 shuffled, none, bench::sums::unknown);
  bench::compare(o, {"15c", "the same, each position in another block", 0}, positions_of(mixed, 1'000'003),
                 shuffled, none, bench::sums::unknown);

  const auto identity = [](std::uint64_t i) { return i; };
  using source = decltype(ps::generated(1, identity));
  std::vector<source> eight;
  for (const std::uint64_t size : sizes()) eight.push_back(ps::generated(size, identity));
  // sources of eight types
  const auto typed = [&](auto k) {
    return ps::generated(sizes()[k], [](std::uint64_t i) { return i + decltype(k)::value; });
  };
  auto plain =
      (ps::generated(samples, identity) | ps::shuffle(ps::seed(7)) | ps::batch(256) | ps::workers(0)).open();
  auto reference = bench::epochs_of(plain, look_at_batch{});
  {
    auto run = (ps::mix(ps::weights(parts()), typed(at<0>{}), typed(at<1>{}), typed(at<2>{}), typed(at<3>{}),
                        typed(at<4>{}), typed(at<5>{}), typed(at<6>{}), typed(at<7>{}),
                        ps::samples_per_epoch(samples)) |
                ps::batch(256) | ps::workers(0))
                   .open();
    bench::compare(
        o, {"15d", "generated | shuffle(seed(7)) | batch(256) / mix of 8 types of source | batch(256)", 0},
        bench::epochs_of(run, look_at_batch{}), reference, none, bench::sums::unknown);
  }
  {
    auto run = (ps::mix(ps::weights(parts()), eight, ps::samples_per_epoch(samples)) | ps::batch(256) |
                ps::workers(0))
                   .open();
    bench::compare(o, {"15e", "the same, sources of one type", 0}, bench::epochs_of(run, look_at_batch{}),
                   reference, none, bench::sums::unknown);
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
