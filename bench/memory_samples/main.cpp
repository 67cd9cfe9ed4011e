// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 4, 5 and 64: samples of 1 KB in memory, shuffled, in batches of 64: against a loop that copies these
// samples in this order into as many batch buffers in turn, with `shuffle_buffer` against without, and
// with another thread that makes a page of metrics ten times a second against without.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/observe/metrics.hpp>
#include <penstock/order/permutation.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 64;
constexpr std::uint64_t seed = 7;
using sample = std::array<std::byte, 1024>;

struct look_at_batch {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    return bench::first_words(b.values().data(), b.size(), sizeof(sample));
  }
};

/// The order of `shuffle(seed(7))` in an epoch, computed beforehand, so that it costs the reference
/// nothing.
class orders {
 public:
  orders(std::uint64_t size, std::uint64_t epochs) {
    const ps::shuffle_order order({size, nullptr}, seed);
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const auto bound = order.bind(epoch);
      auto& list = lists_.emplace_back(size);
      for (std::uint64_t i = 0; i < size; ++i) list[i] = static_cast<std::uint32_t>(bound(i).index);
    }
  }
  [[nodiscard]] std::span<const std::uint32_t> epoch(std::uint64_t number) const {
    return lists_[number % lists_.size()];
  }

 private:
  std::vector<std::vector<std::uint32_t>> lists_;
};

/// The number of batch buffers of a run, counted after an epoch: the reference gets as many.
template <class Run, class Side>
std::size_t buffers_of(const Run& run, Side& side) {
  side();
  return static_cast<std::size_t>(run.counters().bytes_held / (batch_size * sizeof(sample)));
}

std::uint64_t copy_loop(std::span<const sample> data, std::span<const std::uint32_t> order,
                        bench::buffers_in_turn& buffers) {
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    std::byte* into = buffers.next();
    const std::size_t count = std::min(batch_size, order.size() - begin);
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(into + i * sizeof(sample), data[order[begin + i]].data(), sizeof(sample));
    bench::escape(into);
    sum += bench::first_words(into, count, sizeof(sample));
  }
  return sum;
}

/// Asks for a page of metrics ten times a second while `on`.
class scraper {
 public:
  explicit scraper(ps::run_monitor of)
      : thread_([this, of](const std::stop_token& end) {
          for (; !end.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(100)))
            if (on) bytes += ps::metrics_text(of.counters()).size();
        }) {}

  std::atomic<bool> on{false};
  std::atomic<std::uint64_t> bytes{0};

 private:
  std::jthread thread_;
};

void measure(const bench::options& o) {
  std::vector<sample> samples(1u << 18);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::uint64_t word = ps::mix64(i);
    for (std::size_t at = 0; at < sizeof(sample); at += 8, word += 0x9e3779b97f4a7c15u)
      std::memcpy(samples[i].data() + at, &word, 8);
  }
  const std::span<const sample> data(samples);
  const orders order(data.size(), 4);
  const auto loader = ps::from(data) | ps::shuffle(ps::seed(seed)) | ps::batch(batch_size);
  const std::size_t batch_bytes = batch_size * sizeof(sample);

  if (o.wants("4a")) {
    auto run = (loader | ps::workers(1)).open();
    auto ours = bench::epochs_of(run, look_at_batch{});
    bench::buffers_in_turn buffers(buffers_of(run, ours), batch_bytes);
    std::uint64_t epoch = 1;  // the first epoch is over
    bench::compare(o, {"4a", "1 KB samples in memory, shuffled, batch(64), 1 worker / copying loop", 0.9},
                   ours, [&] { return copy_loop(data, order.epoch(epoch++), buffers); });
  }
  if (o.wants("4b")) {
    auto run = (loader | ps::workers(2)).open();
    auto ours = bench::epochs_of(run, look_at_batch{});
    const std::size_t half_of_them = buffers_of(run, ours) / 2;
    std::array<bench::buffers_in_turn, 2> buffers{{{half_of_them, batch_bytes}, {half_of_them, batch_bytes}}};
    std::uint64_t epoch = 1;
    bench::compare(
        o, {"4b", "the same, 2 workers / two bare threads with half of the loop and the buffers each", 0.85},
        ours, [&] {
          const auto all = order.epoch(epoch++);
          return bench::on_two_threads([&](std::size_t half) {
            return copy_loop(data, all.subspan(half * all.size() / 2, all.size() / 2), buffers[half]);
          });
        });
  }
  if (o.wants("64")) {
    auto watched = (loader | ps::workers(2)).open(), alone = (loader | ps::workers(2)).open();
    scraper page(watched.monitor());
    const auto some_epochs = [](auto side) {  // so long that pages are asked for in each
      return [side]() mutable {
        std::uint64_t sum = 0;
        for (int i = 0; i < 10; ++i) sum += side();
        return sum;
      };
    };
    auto ours = some_epochs(bench::epochs_of(watched, look_at_batch{}));
    bench::compare(
        o, {"64", "the same, 2 workers, with a page of metrics ten times a second / without", 0.995},
        [&] {
          page.on = true;
          const std::uint64_t sum = ours();
          page.on = false;
          return sum;
        },
        some_epochs(bench::epochs_of(alone, look_at_batch{})));
  }
  if (o.wants("5")) {
    auto with = (ps::from(data) | ps::shuffle(ps::seed(seed)) | ps::shuffle_buffer(10'000) |
                 ps::batch(batch_size) | ps::workers(1))
                    .open();
    auto without = (loader | ps::workers(1)).open();
    bench::compare(o, {"5", "the same, 1 worker, with shuffle_buffer(10'000) / without", 0.9},
                   bench::epochs_of(with, look_at_batch{}), bench::epochs_of(without, look_at_batch{}));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
