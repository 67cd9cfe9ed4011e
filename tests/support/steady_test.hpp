// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/run.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <atomic>
#include <cstdint>

namespace penstock_test {

/// The calls of operator new of all threads, which steady_state.test.cpp counts for its program.
extern std::atomic<std::uint64_t> calls_of_new;

/// Checks that no thread allocates while the consumer takes the batches of sixty epochs, after a warm-up.
/// The epochs are short, so that their ends are covered; the warm-up is long enough for each block to have
/// held every batch. A worker that the machine starts late allocates its own memory late: then the sixty
/// epochs after that count. Without workers nothing is late.
template <class Plan>
void check_steady(const Plan& plan, const char* name) {
  const deadline guard(name);
  for (const unsigned workers : {0u, 1u, 3u}) {
    INFO(name << " with " << workers << " workers");
    auto run = (plan | penstock::workers(workers)).open();
    std::uint64_t seen = 0, before = 0, since = 59, last = 0;
    for (auto epoch : run.epochs(workers == 0 ? 120 : 800)) {
      for (auto&& b : epoch) {
        seen += b.valid_size();
        (void)b.template field<0>();
      }
      last = epoch.number();
      if (last < 59) continue;
      const std::uint64_t now = calls_of_new.load();
      if (now != before) since = last;
      before = now;
      if (last - since == 60) break;
    }
    CHECK(seen > 0);
    CHECK(last - since == 60);
  }
}

}  // namespace penstock_test
