// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A rule of your own that cuts batches: buckets. Samples of similar length share a batch, so there is little
// padding. Workers, ranks and states work as with any batch.

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;

namespace mine {

constexpr std::uint64_t edge = 32;  // lengths of a bucket: 0 to 31, 32 to 63
std::uint64_t length_of(std::uint64_t sample) { return sample * 7 % 64; }

/// The cut of one epoch: an `epoch_cut`, and because a batch has positions from anywhere, a `listing_cut`.
struct epoch_in_buckets {
  std::vector<std::vector<std::uint64_t>> batches;  // of all ranks
  std::uint64_t world, rank;

  /// Rank r of W takes batches r, r + W, ...: all ranks have equally many steps; in the last step some get an
  /// empty batch.
  [[nodiscard]] std::uint64_t steps() const { return (batches.size() + world - 1) / world; }
  [[nodiscard]] std::uint64_t before(std::uint64_t step) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < batches.size() && i < step * world; ++i) sum += batches[i].size();
    return sum;
  }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return before(step + 1) - before(step); }
  /// The number of slots; `list` gives their positions.
  [[nodiscard]] ps::step_view at(std::uint64_t step) const { return {0, ours(step).size()}; }
  void list(std::uint64_t step, std::vector<std::uint64_t>& into) const {
    into.insert(into.end(), ours(step).begin(), ours(step).end());
  }

 private:
  [[nodiscard]] const std::vector<std::uint64_t>& ours(std::uint64_t step) const {
    static const std::vector<std::uint64_t> nothing;
    const std::uint64_t batch = step * world + rank;
    return batch < batches.size() ? batches[static_cast<std::size_t>(batch)] : nothing;
  }
};

/// All epochs: a `step_cut`. Its user keeps what it binds.
template <class Orders>
struct cut_into_buckets {
  Orders orders;
  std::uint64_t size, world, rank;

  [[nodiscard]] epoch_in_buckets bind(std::uint64_t epoch) const {
    epoch_in_buckets made{{}, world, rank};
    std::array<std::vector<std::uint64_t>, 2> open;
    const auto samples = orders.bind(epoch, 0, orders.size());
    for (std::uint64_t p = 0; p < orders.size(); ++p) {
      auto& bucket = open[length_of(samples(p).index) / edge];
      bucket.push_back(p);
      if (bucket.size() < size) continue;
      made.batches.push_back(bucket);
      bucket.clear();
    }
    for (const auto& rest : open)
      if (!rest.empty()) made.batches.push_back(rest);
    return made;
  }
  [[nodiscard]] cut_into_buckets on(std::uint64_t ranks, std::uint64_t which) const {
    return {orders, size, ranks, which};
  }
  [[nodiscard]] std::uint64_t usual() const { return size; }
};

/// The argument of `batch_by`: a `cut_rule`.
struct buckets {
  std::uint64_t size;

  template <class Orders>
  [[nodiscard]] cut_into_buckets<Orders> make(const Orders& orders, const ps::cut_input& in) const {
    return {orders, size, in.world, in.rank};
  }
  [[nodiscard]] std::string describe() const { return "buckets(" + std::to_string(size) + ")"; }
  template <class Hash>
  void fingerprint(Hash& h) const {  // so that a state of other batches is refused
    h.add("buckets", size, edge);
  }
};

}  // namespace mine

int main() {
  const auto texts = ps::generated(1000, mine::length_of);  // here a text is just its length
  bool works = true;
  std::uint64_t seen = 0, steps = 0;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    auto run = (texts | ps::shuffle(ps::seed(7)) | ps::shard(rank, 2) | ps::batch_by(mine::buckets{16}) |
                ps::workers(2))
                   .open();
    for (auto&& b : run) {
      const auto lengths = b.values();
      if (b.size() == 0) continue;  // in the last step
      const auto [least, maximum] = std::minmax_element(lengths.begin(), lengths.end());
      works = works && *least / mine::edge == *maximum / mine::edge && b.size() <= 16;
      seen += b.size();
    }
    steps += run.steps_per_epoch();
  }
  works = works && seen == 1000;
  std::printf("%s: %llu texts in %llu batches\n", works ? "works" : "wrong",
              static_cast<unsigned long long>(seen), static_cast<unsigned long long>(steps));
  return works ? 0 : 1;
}
