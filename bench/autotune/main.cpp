// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 66: a run with `autotune`, once it is quiet, against the best of a grid of workers, batches in flight
// and samples read ahead, and against the defaults. Each point of the grid is measured once, and the best one
// again, in turn with the other two. Six made-up loads, and two real ones: photos, and a store 20 ms away.

#include "support/harness.hpp"
#include "support/made_photos.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/image.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

using namespace std::chrono_literals;
using namespace ps::literals;

/// Work of a fixed amount, which takes longer where others have the processor.
void compute(std::uint64_t rounds) {
  std::uint64_t x = rounds;
  for (std::uint64_t i = 0; i < rounds; ++i) x = ps::mix64(x);
  bench::escape(&x);
}
/// The rounds of 5 ms, by the fastest of several takes.
std::uint64_t rounds_of_a_step() {
  constexpr std::uint64_t rounds = 500'000;
  double best = 1;
  for (int i = 0; i < 10; ++i) {
    const double begin = bench::seconds_now();
    compute(rounds);
    best = std::min(best, bench::seconds_now() - begin);
  }
  return static_cast<std::uint64_t>(5e-3 / best * static_cast<double>(rounds));
}

/// A loop over a run: each call takes a batch, does a step, and returns the number of samples.
struct loop {
  std::function<std::uint64_t()> step;
  std::function<ps::run_counters()> counters;

  template <class Plan>
  static loop over(const Plan& plan, const std::function<void()>& work) {
    auto run = std::make_shared<decltype(plan.open())>(plan.open());
    return {[run, work]() -> std::uint64_t {
              auto b = run->next();
              if (!b) throw std::runtime_error("the run has ended");
              work();
              return b->size();
            },
            [run] { return run->counters(); }};
  }
  /// Samples a second, after what was ready when it began.
  double rate(double seconds) {
    double begin = bench::seconds_now();
    const double ready = begin + seconds / 4;
    while (bench::seconds_now() < ready) step();
    begin = bench::seconds_now();
    std::uint64_t samples = 0;
    double now = begin;
    do {
      samples += step();
      now = bench::seconds_now();
    } while (now < begin + seconds);
    return static_cast<double>(samples) / (now - begin);
  }
};

struct point {
  std::int64_t workers, depth, ahead;  ///< depth and ahead: 0 for the default
};

/// `make(point)` opens a loop; `tuned()` and `usual()` open the other two.
struct load {
  std::string id, against_usual, what;
  std::vector<point> grid;
  std::function<loop(const point&)> make;
  std::function<loop()> usual;
  std::function<loop(std::chrono::milliseconds)> tuned;
};

void measure_load(const bench::options& o, const load& one) {
  const bool wanted = o.wants(one.id) || o.wants(one.against_usual);
  if (!wanted) return;
  const std::chrono::milliseconds within = o.quick ? 500ms : 5000ms;
  const double look = o.quick ? 0.05 : 1.0;
  point best{};
  double best_rate = 0;
  for (const point& at : one.grid) {
    if (o.quick && &at != &one.grid.front()) break;
    if (const double rate = one.make(at).rate(look); rate > best_rate) {
      best_rate = rate;
      best = at;
    }
  }
  loop tuned = one.tuned(within), usual = one.usual(), grid = one.make(best);
  for (const double end = bench::seconds_now() + 1.5 * std::chrono::duration<double>(within).count();
       bench::seconds_now() < end;)
    tuned.step();
  std::vector<double> to_best, to_usual, rates;
  const int turns = o.quick ? 1 : 5;
  for (int i = 0; i < turns; ++i) {
    const double ours = tuned.rate(look), theirs = grid.rate(look), plain = usual.rate(look);
    rates.push_back(ours);
    to_best.push_back(ours / theirs);
    to_usual.push_back(ours / plain);
  }
  const ps::autotune_counters found = tuned.counters().autotune;
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "%.0f samples/s with %s after %llu trials",
                bench::quantile(rates, 0.5), found.stages.empty() ? "the defaults" : found.stages.c_str(),
                static_cast<unsigned long long>(found.trials));
  char grid_best[80];
  std::snprintf(grid_best, sizeof grid_best, "; best of %zu: workers(%lld), depth %lld, ahead %lld",
                one.grid.size(), static_cast<long long>(best.workers), static_cast<long long>(best.depth),
                static_cast<long long>(best.ahead));
  if (o.wants(one.id))
    bench::print_row({one.id, one.what + ", tuned / best of a grid", 0.95}, bench::quantile(to_best, 0.5),
                     bench::quantile(to_best, 0.5), std::string(numbers) + grid_best);
  if (o.wants(one.against_usual))
    bench::print_row({one.against_usual, "the same, tuned / the defaults", 0.98},
                     bench::quantile(to_usual, 0.5), bench::quantile(to_usual, 0.5),
                     std::to_string(turns) + " turns");
}

std::vector<point> grid_of(const std::vector<std::int64_t>& workers, const std::vector<std::int64_t>& depths,
                           const std::vector<std::int64_t>& ahead = {0}) {
  std::vector<point> all;
  for (const std::int64_t w : workers)
    for (const std::int64_t d : depths)
      for (const std::int64_t a : ahead) all.push_back({w, d, a});
  return all;
}

/// A load of batches of a plan without `batch`.
template <class Samples>
load load_of(std::string id, std::string against, std::string what, const Samples& samples,
             std::uint64_t batch, unsigned processors, std::optional<std::uint64_t> memory,
             std::function<void()> work, std::vector<point> grid) {
  const std::uint64_t bound = memory.value_or(1_GiB);
  load one{std::move(id), std::move(against), std::move(what), std::move(grid), {}, {}, {}};
  const auto batches = samples | ps::batch(batch);
  one.make = [=](const point& at) {
    const auto with_workers = batches | ps::memory(bound) | ps::workers(at.workers);
    if (at.ahead != 0)
      return loop::over(samples | ps::prefetch(at.ahead) | ps::batch(batch) | ps::memory(bound) |
                            ps::prefetch(at.depth) | ps::workers(at.workers),
                        work);
    if (at.depth == 0) return loop::over(with_workers, work);
    return loop::over(with_workers | ps::prefetch(at.depth), work);
  };
  one.usual = [=] { return loop::over(batches | ps::memory(bound), work); };
  one.tuned = [=](std::chrono::milliseconds within) {
    return loop::over(batches | ps::autotune({.processors = processors, .memory = memory, .within = within}),
                      work);
  };
  return one;
}

void measure(const bench::options& o) {
  constexpr std::uint64_t many = std::uint64_t{1} << 40;
  const auto wait = [](std::chrono::microseconds time) {
    return [time] { std::this_thread::sleep_for(time); };
  };
  measure_load(
      o, load_of("66a", "66i", "samples that wait 1 ms, 8 threads allowed",
                 ps::synthetic(
                     {.samples = many, .bytes = 10'000, .cost = 1ms, .wait = ps::synthetic_wait::sleep}),
                 16, 8, {}, wait(4ms), grid_of({1, 2, 4, 8}, {0, 16})));
  measure_load(o, load_of("66b", "66j", "samples that compute 100 us, 4 threads allowed",
                          ps::synthetic({.samples = many, .bytes = 10'000, .cost = 100us}), 32, 4, {},
                          wait(500us), grid_of({1, 2, 4}, {0, 16})));
  measure_load(o, load_of("66c", "66k", "uneven samples, one in 200 waits for 20 ms",
                          ps::synthetic({.samples = many,
                                         .bytes = 100'000,
                                         .cost = 100us,
                                         .jitter = 0.5,
                                         .tail_probability = 0.005,
                                         .tail_factor = 200,
                                         .wait = ps::synthetic_wait::sleep}),
                          32, 4, {}, wait(5ms), grid_of({2, 4}, {0, 16, 48})));
  measure_load(o, load_of(
                      "66d", "66l", "a step that computes 5 ms, beside samples that compute 50 us",
                      ps::synthetic({.samples = many, .bytes = 10'000, .cost = 50us}), 32, 4, {},
                      [rounds = rounds_of_a_step()] { compute(rounds); }, grid_of({1, 2, 4}, {0, 16})));
  measure_load(o, load_of(
                      "66e", "66m", "numbers",
                      ps::generated(many, [](std::uint64_t i) { return static_cast<float>(i % 1000); }) |
                          ps::map([](float x) { return x * 0.5f; }),
                      256, 4, {}, [] {}, grid_of({1, 2, 4}, {0, 16})));
  measure_load(o, load_of("66f", "66n", "samples of 1 MB, 256 MiB allowed",
                          ps::synthetic({.samples = many,
                                         .bytes = 1'000'000,
                                         .cost = 1ms,
                                         .jitter = 1,
                                         .wait = ps::synthetic_wait::sleep}),
                          16, 8, std::uint64_t{256_MiB}, wait(10ms), grid_of({1, 2, 4}, {0, 8, 13})));
  if (o.wants("66g") || o.wants("66o")) {
    const ps::memory_files photos = bench::made_photos(64, [](std::size_t i) {
      return ps::image_size{static_cast<std::uint32_t>(300 + i % 7 * 40), 375};
    });
    measure_load(o, load_of("66g", "66o", "photos to crops of 224",
                            ps::webdataset(photos) | ps::repeat() | ps::fields<"jpg"> |
                                ps::decode<ps::field<"jpg", ps::jpeg>> |
                                ps::map<"jpg">(ps::random_resized_crop(224), ps::horizontal_flip(),
                                               ps::normalize(ps::imagenet), ps::to_chw(), ps::key("crop")) |
                                ps::seed(7),
                            16, 4, {}, wait(5ms), grid_of({1, 2, 4}, {0, 16})));
  }
  if (o.wants("66h") || o.wants("66p")) {
    std::vector<std::byte> bytes;
    ps::tar_writer out(
        [&bytes](ps::bytes_view more) { bytes.insert(bytes.end(), more.begin(), more.end()); });
    const std::vector<std::byte> body(20'000);
    for (int i = 0; i < 2000; ++i) out.write(std::to_string(i), {{"bin", ps::bytes_view(body)}});
    out.close();
    const auto shard = ps::memory_files().add("a.tar", ps::bytes_view(bytes));
    measure_load(
        o, load_of("66h", "66p", "samples of 20 kB from a store 20 ms away",
                   ps::webdataset(ps::simulated_storage(shard, {.latency = 20ms, .max_in_flight = 256})) |
                       ps::shuffle(ps::seed(3)) | ps::repeat() | ps::fields<"bin">,
                   32, 4, {}, wait(1ms), grid_of({1, 2, 4}, {6, 16}, {256, 1024, 4096})));
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
