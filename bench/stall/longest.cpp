// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 65: the share of time that a simulated accelerator waits for data, if 2 % of the samples take 50 times
// as long as the others and the workers have 10 % more time than all samples take: with longest_first by
// given costs, and in the second epoch of a run that learned them; beside it the same plan in its order, and
// a loader that batches samples in the order in which they are finished, as MinatoLoader does. Bar: 5 % where
// the longest sample takes less time than the workers take for the batches in flight (65a to 65f); 65g is one
// where it does not, for the advice of `report`.

#include "support/harness.hpp"

#include <penstock/core/random.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/longest_first.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

using namespace std::chrono_literals;
using sample = std::array<std::uint64_t, 64>;

constexpr std::uint64_t tail = 50;

/// 1 or 50: so many times as long as most.
std::uint64_t times(std::uint64_t i) { return i % 50 == 0 ? tail : 1; }

/// Samples that sleep, on any number of processors.
sample waits(std::uint64_t i) {
  std::this_thread::sleep_for(times(i) * 1ms);
  return {i};
}
/// Samples that compute, about a quarter of a millisecond.
sample computes(std::uint64_t i) {
  sample made{i};
  for (std::uint64_t k = 0; k < times(i) * 100'000; ++k) made[k % 64] = ps::mix64(made[k % 64] ^ k);
  return made;
}

struct load {
  sample (*make)(std::uint64_t);
  unsigned workers;
  std::uint64_t batch, ahead, batches;
};

/// Seconds of the workers for a batch, from samples made one after another.
double seconds_of_batch(const load& of) {
  const std::uint64_t samples = 250;
  const double begin = bench::seconds_now();
  for (std::uint64_t i = 0; i < samples; ++i) {
    const sample made = of.make(i);
    bench::escape(&made);
  }
  return (bench::seconds_now() - begin) / samples * static_cast<double>(of.batch) / of.workers;
}

/// A training loop on a simulated accelerator, which looks at its stall once the batches in flight have
/// turned over twice.
class loop {
 public:
  loop(const load& of, double step)
      : warm_(2 * of.ahead), before_(options_of(step)), accelerator_(options_of(step)) {}
  void step() { (steps_++ < warm_ ? before_ : accelerator_).step(); }
  [[nodiscard]] double stall() const { return 100 * accelerator_.stall(); }

 private:
  static ps::simulated::options options_of(double step) {
    return {.step = std::chrono::microseconds(static_cast<std::int64_t>(step * 1e6))};
  }
  std::uint64_t warm_, steps_ = 0;
  ps::simulated before_, accelerator_;
};

/// The stall of the last of so many epochs, in percent.
template <class Plan>
double stall_of(const load& of, const Plan& plan, double step, std::uint64_t epochs,
                std::string* said = nullptr) {
  auto run = plan.open();
  double stall = 0;
  for (std::uint64_t e = 0; e < epochs; ++e) {
    loop training(of, step);
    for (auto&& b : run.epoch(e)) {
      bench::escape(&b);
      training.step();
    }
    stall = training.stall();
  }
  if (said != nullptr) *said = ps::judge(run.counters()).advice;
  return stall;
}

/// A loader whose batches are the samples that are finished first: as many threads, and as many samples in
/// flight.
double stall_of_overtaking(const load& of, double step) {
  std::mutex lock;
  std::condition_variable room, there;
  std::vector<sample> finished;
  std::uint64_t begun = 0, taken = 0;
  const std::uint64_t all = of.batch * of.batches, in_flight = of.batch * of.ahead;
  std::vector<std::uint64_t> order(all);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::sort(order.begin(), order.end(), [](auto a, auto b) { return ps::mix64(a) < ps::mix64(b); });
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < of.workers; ++w)
    threads.emplace_back([&] {
      std::unique_lock guard(lock);
      while (true) {
        room.wait(guard, [&] { return begun == all || begun < taken + in_flight; });
        if (begun == all) return;
        const std::uint64_t i = order[begun++];
        guard.unlock();
        const sample made = of.make(i);
        guard.lock();
        finished.push_back(made);
        there.notify_one();
      }
    });
  loop training(of, step);
  for (std::uint64_t b = 0; b < of.batches; ++b) {
    std::unique_lock guard(lock);
    there.wait(guard, [&] { return finished.size() >= of.batch; });
    const std::vector<sample> batch(finished.begin(),
                                    finished.begin() + static_cast<std::ptrdiff_t>(of.batch));
    finished.erase(finished.begin(), finished.begin() + static_cast<std::ptrdiff_t>(of.batch));
    taken += of.batch;
    guard.unlock();
    room.notify_all();
    bench::escape(batch.data());
    training.step();
  }
  for (std::thread& one : threads) one.join();
  return training.stall();
}

std::string percent(std::vector<double> values) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2g %%", bench::quantile(std::move(values), 0.5));
  return text;
}

/// `given`: by given costs, and in `learned`, the same where the run learns.
void one(const bench::options& o, const bench::row& given, const bench::row& learned, load of) {
  if (!o.wants(given.id) && !o.wants(learned.id)) return;
  if (o.quick) of.batches = 30;
  const double step = seconds_of_batch(of) / 0.9;
  const auto plan = ps::generated(of.batch * of.batches, of.make) | ps::shuffle(ps::seed(3)) |
                    ps::batch(of.batch) | ps::prefetch(of.ahead) | ps::workers(of.workers);
  std::vector<double> by_cost, by_time, in_turn, overtaking;
  for (int i = 0; i < (o.quick ? 1 : 5); ++i) {
    if (o.wants(given.id)) by_cost.push_back(stall_of(of, plan | ps::longest_first(times), step, 1));
    in_turn.push_back(stall_of(of, plan, step, 1));
    overtaking.push_back(stall_of_overtaking(of, step));
    if (o.wants(learned.id)) by_time.push_back(stall_of(of, plan | ps::longest_first, step, 2));
  }
  const std::string notes = "in their turn " + percent(in_turn) + ", overtaking " + percent(overtaking) +
                            "; batch(" + std::to_string(of.batch) + "), prefetch(" +
                            std::to_string(of.ahead) + "), " + bench::milliseconds(step) + " a step, " +
                            std::to_string(in_turn.size()) + " runs";
  for (const auto& [row, stalls] : {std::pair(&given, &by_cost), std::pair(&learned, &by_time)})
    if (o.wants(row->id))
      bench::print_row(*row, bench::quantile(*stalls, 0.75), bench::quantile(*stalls, 0.5), notes);
}

void measure(const bench::options& o) {
  one(o,
      {"65a", "stall if 2 % of samples take 50 times as long, longest_first(cost), 2 waiting workers, %", 5,
       true},
      {"65b", "the same, longest_first in its second epoch, %", 5, true}, {waits, 2, 32, 3, 150});
  one(o, {"65c", "the same as 65a, 2 computing workers, %", 5, true},
      {"65d", "the same, longest_first in its second epoch, %", 5, true}, {computes, 2, 32, 3, 600});
  one(o, {"65e", "the same as 65a, 8 waiting workers, %", 5, true},
      {"65f", "the same, longest_first in its second epoch, %", 5, true}, {waits, 8, 32, 7, 300});
  const bench::row short_of{"65g",
                            "the same as 65e, 3 batches in flight: less than the longest sample takes, %", 0};
  if (!o.wants(short_of.id)) return;
  const load of{waits, 8, 32, 3, o.quick ? 30u : 300u};
  const double step = seconds_of_batch(of) / 0.9;
  std::string said;
  const double stall = stall_of(of,
                                ps::generated(of.batch * of.batches, of.make) | ps::shuffle(ps::seed(3)) |
                                    ps::batch(of.batch) | ps::prefetch(of.ahead) | ps::workers(of.workers) |
                                    ps::longest_first(times),
                                step, 1, &said);
  bench::print_row(short_of, stall, stall, said);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
