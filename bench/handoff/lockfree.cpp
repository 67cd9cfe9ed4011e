// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 3c to 3e: the engine with its own ring, against the same engine with the queues of Boost.Lockfree.

#include "support/harness.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/run/lockfree.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ps = penstock;

namespace {

constexpr auto look_at_all = [](auto& b) {
  std::uint64_t sum = 0;
  for (const std::uint32_t value : b.values()) sum += value;
  return sum;
};

template <class Plan, class Look>
void compare_rings(const bench::options& o, const bench::row& r, const Plan& plan, Look look) {
  if (!o.wants(r.id)) return;
  auto ours = plan.open();
  auto queues = (plan | ps::lockfree).open();
  bench::compare(o, r, bench::epochs_of(ours, look), bench::epochs_of(queues, look));
}

void measure(const bench::options& o) {
  std::vector<std::uint32_t> values(o.quick ? 1u << 20 : 1u << 22);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(ps::mix64(i));
  const std::span<const std::uint32_t> data(values);
  compare_rings(o, {"3c", "4-byte samples, batch(256), 1 worker: our ring / queues of Boost.Lockfree"},
                ps::from(data) | ps::batch(256) | ps::workers(1), look_at_all);
  // An explicit depth makes each batch a block of its own, so only hand-overs are measured.
  compare_rings(o, {"3d", "as 3c, each batch handed over by itself"},
                ps::from(data) | ps::batch(256) | ps::prefetch(7) | ps::workers(1), look_at_all);

  using kilobyte = std::array<std::uint64_t, 128>;
  std::vector<kilobyte> large(o.quick ? 1u << 14 : 1u << 16);
  for (std::size_t i = 0; i < large.size(); ++i) large[i].fill(ps::mix64(i));
  compare_rings(
      o, {"3e", "1 KB samples, shuffled, batch(64), 2 workers: our ring / the queues"},
      ps::from(std::span<const kilobyte>(large)) | ps::shuffle(ps::seed(7)) | ps::batch(64) | ps::workers(2),
      [](auto& b) {
        const auto rows = b.values();
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < b.size(); ++i) sum += rows[i].values()[0];
        return sum;
      });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
