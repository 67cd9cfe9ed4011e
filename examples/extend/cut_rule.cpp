// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A rule of your own that cuts batches: batches that grow in the course of an epoch, twice as large after
// every ten steps. Workers, ranks and states work as with any batch.

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;

namespace mine {

/// The cut of one epoch: an `epoch_cut`. Step s has the positions from `starts[s]` up to `starts[s + 1]`, and
/// the ranks divide them. A cut whose steps have positions from anywhere has a function `list`, too.
struct growing_steps {
  std::vector<std::uint64_t> starts;
  std::uint64_t world, rank;

  [[nodiscard]] std::uint64_t steps() const { return starts.size() - 1; }
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const {
    return starts[static_cast<std::size_t>(std::min(step, steps()))];
  }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return before(step + 1) - before(step); }
  [[nodiscard]] ps::step_view at(std::uint64_t step) const {
    const std::uint64_t first = count(step) * rank / world, last = count(step) * (rank + 1) / world;
    return {before(step) + first, last - first};
  }
};

/// All epochs: a `step_cut`. Its user keeps what it binds.
struct growing_cut {
  std::uint64_t samples, smallest, largest, world, rank;

  [[nodiscard]] growing_steps bind(std::uint64_t /*epoch*/) const {
    growing_steps made{{0}, world, rank};
    while (made.starts.back() < samples) {
      const std::uint64_t doublings = std::min<std::uint64_t>(made.steps() / 10, 20);
      const std::uint64_t size = std::min(largest, smallest << doublings);
      made.starts.push_back(std::min(samples, made.starts.back() + size));
    }
    return made;
  }
  [[nodiscard]] growing_cut on(std::uint64_t ranks, std::uint64_t which) const {
    return {samples, smallest, largest, ranks, which};
  }
  [[nodiscard]] std::uint64_t usual() const { return largest / world; }
};

/// The argument of `batch_by`: a `cut_rule`. The sizes are those of a step, over all ranks.
struct growing {
  std::uint64_t smallest, largest;

  template <class Orders>
  [[nodiscard]] growing_cut make(const Orders& orders, const ps::cut_input& in) const {
    return {orders.size(), smallest, largest, in.world, in.rank};
  }
  [[nodiscard]] std::string describe() const {
    return "growing(" + std::to_string(smallest) + ", " + std::to_string(largest) + ")";
  }
  template <class Hash>
  void fingerprint(Hash& h) const {  // so that a state of other batches is refused
    h.add("growing", smallest, largest);
  }
};

}  // namespace mine

int main() {
  const auto numbers = ps::generated(1000, [](std::uint64_t i) { return i; });
  bool works = true;
  std::uint64_t seen = 0, steps = 0;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto run = (numbers | ps::shuffle(ps::seed(7)) | ps::shard(rank, 2) | ps::batch_by(mine::growing{8, 32}) |
                ps::workers(2))
                   .open();
    for (auto&& b : run) {
      const std::uint64_t size = b.step() < 10 ? 4 : b.step() < 20 ? 8 : 16;
      works = works && (b.size() == size || b.step() + 1 == run.steps_per_epoch());
      seen += b.size();
    }
    steps += run.steps_per_epoch();
  }
  works = works && seen == 1000;
  std::printf("%s: %llu samples in %llu batches\n", works ? "works" : "wrong",
              static_cast<unsigned long long>(seen), static_cast<unsigned long long>(steps));
  return works ? 0 : 1;
}
