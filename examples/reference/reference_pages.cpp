// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The examples of docs/reference, one per room. They check themselves.

#include <penstock/all.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

int wrong = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  ++wrong;
}

void core() {
  using sample = ps::record<ps::field<"id", int>, ps::field<"name", std::string>>;
  const sample s(7, "seven");
  expect(ps::get<"id">(s) == 7 && ps::get<"name">(s) == "seven", "get by name");

  const auto plan = ps::from({1, 2, 3}) | ps::map([](int x) { return x * x; });
  static_assert(ps::indexed<decltype(plan)> && ps::elastic<decltype(plan)>);
  static_assert(ps::can_connect<decltype(plan), decltype(ps::batch(2))>);
}

void order() {
  const auto loader =
      ps::from({1, 2, 3, 4, 5, 6, 7, 8}) | ps::shuffle(ps::seed(7)) | ps::shard(1, 2) | ps::batch(2);
  std::size_t mine = 0;
  for (auto&& b : loader.epoch(0)) mine += b.size();
  expect(mine == 4, "rank 1 of 2 has half of each global step");

  const ps::permutation order(1'000'000, 42);
  expect(order.inverse(order(5)) == 5, "any place, both ways, without a table");
}

void storage() {
  ps::memory_files files;
  files.add("a.txt", std::vector<std::byte>{std::byte{'x'}});
  expect(ps::expand_braces("train-{00..02}.tar").size() == 3, "three names");

  const ps::simulated_storage far(files, {.latency = std::chrono::microseconds(50), .failing = 0.1});
  const auto retried = ps::retrying(ps::throttled(ps::hedged(far), {.max_in_flight = 32}), {.attempts = 5});
  std::byte one{};
  retried.connect().read(0, 0, {&one, 1});
  expect(one == std::byte{'x'}, "the bytes of the store");
}

void codec() {
  const std::vector<std::string> texts = {"1", "22", "333"};
  std::int64_t sum = 0;
  for (auto&& b : ps::from(texts) | ps::decode<ps::integer> | ps::batch(3))
    for (const std::int64_t x : b.values()) sum += x;
  expect(sum == 356, "numbers of texts");
}

void source() {
  const auto squares = ps::generated(100, [](std::uint64_t i) { return i * i; });
  expect(squares.size() == 100, "the size is known");
  std::uint64_t last = 0;
  for (auto&& b : squares | ps::batch(10)) last = b.values()[9];
  expect(last == 99 * 99, "samples made on demand");
}

void stage() {
  const auto noisy = ps::map([](int x, ps::rng& random) { return x + static_cast<int>(random.below(10)); });
  const auto loader =
      ps::from({10, 20, 30, 40}) | noisy | ps::filter([](int x) { return x >= 20; }) | ps::batch(3);
  std::vector<int> first, second;
  for (auto&& b : (loader | ps::workers(0)).epoch(0)) first.insert(first.end(), b.begin(), b.end());
  for (auto&& b : (loader | ps::workers(2)).epoch(0)) second.insert(second.end(), b.begin(), b.end());
  expect(first == second, "the same numbers on any number of threads");
}

void run() {
  const auto loader = ps::from({1, 2, 3, 4, 5, 6}) | ps::shuffle(ps::seed(3)) | ps::batch(2);
  std::string saved;
  std::vector<int> rest, again;
  {
    auto run = loader.open();
    for (auto&& b : run.epoch(0)) {
      if (saved.empty())
        saved = to_string(run.state());  // after the first batch
      else
        rest.insert(rest.end(), b.begin(), b.end());
    }
  }
  auto run = loader.open(ps::state_from_string(saved));
  for (auto&& b : run.epoch(0)) again.insert(again.end(), b.begin(), b.end());
  expect(rest == again && rest.size() == 4, "what was left, and nothing twice");
}

void device() {
  const ps::simulated accelerator({.step = std::chrono::microseconds(50)});
  for (auto&& b : ps::from({1, 2, 3, 4}) | ps::batch(2) | ps::pin_and_copy(accelerator)) {
    expect(b.device_data() != nullptr, "where the column is on the device");
    accelerator.step();
  }
  expect(accelerator.steps() == 2, "two batches");
}

void observe() {
  auto run = (ps::from({1, 2, 3, 4}) | ps::batch(2)).open();
  for (auto&& b : run.epoch(0)) static_cast<void>(b.size());
  expect(run.counters().samples == 4, "what was delivered");
  expect(!ps::report(run.counters()).empty(), "what holds the loop back, in words");
}

void integration() {
  struct numbers {
    std::span<const int> values;
  };
  ps::any_loader<numbers> loader(ps::from({1, 2, 3, 4}) | ps::batch(2),
                                 [](auto& b) { return numbers{b.values()}; });
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values) sum += x;
  expect(sum == 10, "a type without the plan in it");

  for (auto epoch : loader.epochs(3)) {
    ps::progress bar("epoch " + std::to_string(epoch.number()), loader.steps_per_epoch());
    bar.begin(loader.counters());
    for ([[maybe_unused]] auto& b : epoch) bar.tick([&] { return loader.counters(); });
    bar.finish(loader.counters());
  }
  expect(loader.counters().samples == 12, "three epochs, the first of them before");
}

}  // namespace

int main() {
  core();
  order();
  storage();
  codec();
  source();
  stage();
  run();
  device();
  observe();
  integration();
  return wrong == 0 ? 0 : 1;
}
