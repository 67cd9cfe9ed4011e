// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Lengths of samples, and what the batches hold into which these are cut.

#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cut_batches {

namespace ps = penstock;

using numbers = std::vector<std::uint64_t>;
using batches = std::vector<numbers>;

inline constexpr auto same = [](std::uint64_t i) { return i; };
/// Lengths from 1 to 36, distributed as in texts: many short ones.
inline constexpr auto length = [](std::uint64_t i) -> std::uint64_t {
  return 1 + ps::mix64(i) % 8 * (ps::mix64(i) >> 60) / 3;
};

template <class B>
numbers samples_of(const B& b) {
  const auto values = b.values();
  return {values.begin(), values.end()};
}
/// The samples a rank gets of an epoch, batch by batch.
template <class Plan>
batches got(const Plan& plan, std::uint64_t epoch = 0) {
  batches all;
  auto run = (plan | ps::allow_empty).open();
  for (auto&& b : run.epoch(epoch)) {
    CHECK(b.valid_size() == b.size());
    CHECK(b.step() == all.size());
    all.push_back(samples_of(b));
  }
  return all;
}
/// The same from a run whose workers and depth change after every batch.
template <class Run>
batches got_while_adjusted(Run& run) {
  batches all;
  for (auto&& b : run) {
    all.push_back(samples_of(b));
    run.adjust({.workers = static_cast<std::int64_t>(all.size() % 3 + 1),
                .depth = static_cast<std::int64_t>(all.size() % 2 + 2)});
  }
  return all;
}
/// The samples of an epoch of a plan without batches.
template <class Orders>
numbers in_order(const Orders& plan, std::uint64_t epoch) {
  numbers all;
  auto run = (plan | ps::workers(0)).open();
  for (const std::uint64_t sample : run.epoch(epoch)) all.push_back(sample);
  return all;
}
/// The state of a run that stops after so many steps of an epoch.
template <class Plan>
ps::state state_after(const Plan& plan, std::uint64_t steps, std::uint64_t number = 0) {
  auto run = plan.open();
  auto epoch = run.epoch(number);
  std::uint64_t step = 0;
  for (auto it = epoch.begin(); step < steps && it != epoch.end(); ++it) ++step;
  return run.state();
}

}  // namespace cut_batches
