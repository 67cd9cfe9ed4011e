// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which blocks a node's cache keeps: the orders of real plans, and the code that chooses in real runs,
// without a byte that is read. Prints a table in Markdown; `--chart` prints the figures of the chart instead.

#include <penstock/core/random.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/mixture.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace blocks = ps::detail::blocks;

namespace {

// 2,048 shards of 2 blocks of 16 samples: with blocks of 8 MiB 32 GiB, in samples of 512 KiB.
constexpr std::uint64_t shards = 2048, blocks_of_shard = 2, samples_of_block = 16,
                        data_blocks = shards * blocks_of_shard, samples = data_blocks * samples_of_block;
constexpr std::uint64_t ranks_of_node = 8, batch = 4, epochs = 10;

/// The blocks that each rank of a node reads, turn by turn.
struct reads_of_node {
  std::vector<std::vector<std::uint32_t>> ranks;
  std::uint64_t per_epoch = 0;  // turns
};

template <class MakeOrder>
std::vector<std::uint32_t> reads_of_rank(std::uint64_t rank, std::uint64_t world, const MakeOrder& order) {
  const auto plan = order(ps::synthetic({.samples = samples, .bytes = 8, .shards = shards})) |
                    ps::shard(rank, world) | ps::batch(batch, ps::tail::drop);
  const auto orders = ps::make_sample_orders(plan);
  ps::feed all(ps::make_feed_facts(plan, orders));
  all.limit(epochs);
  ps::placement next;
  typename std::remove_cvref_t<decltype(orders)>::binding bound;
  std::vector<std::uint32_t> reads;
  while (all.more()) {
    all.prepare(next, 1);
    next.bind(orders, bound);
    for (std::uint64_t slot = 0; slot < next.batches[0].valid; ++slot)
      reads.push_back(static_cast<std::uint32_t>(bound(next.index(slot)).index / samples_of_block));
  }
  return reads;
}

template <class MakeOrder>
reads_of_node reads_of(std::uint64_t node, std::uint64_t nodes, const MakeOrder& order) {
  reads_of_node made;
  for (std::uint64_t rank = 0; rank < ranks_of_node; ++rank)
    made.ranks.push_back(reads_of_rank(node * ranks_of_node + rank, nodes * ranks_of_node, order));
  made.per_epoch = made.ranks[0].size() / epochs;
  return made;
}

/// Two sources, mixed by 7 to 3: the first has three quarters of the shards. Each is shuffled for itself.
reads_of_node mixed(std::uint64_t node, std::uint64_t nodes) {
  const std::uint64_t first = samples / 4 * 3;
  const ps::mixture both({first, samples - first}, ps::weights{0.7, 0.3}, ps::stopping::first_exhausted, 3);
  const ps::shuffle_order orders[2] = {ps::shuffle_order({.size = first}, 5),
                                       ps::shuffle_order({.size = samples - first}, 6)};
  reads_of_node made;
  const std::uint64_t world = nodes * ranks_of_node;
  made.per_epoch = both.size() / world / batch * batch;
  for (std::uint64_t rank = 0; rank < ranks_of_node; ++rank) {
    auto& reads = made.ranks.emplace_back();
    ps::mixture::cursor cursor;
    for (std::uint64_t e = 0; e < epochs; ++e)
      for (std::uint64_t i = 0; i < made.per_epoch; ++i) {
        const std::uint64_t step = i / batch, of_rank = (node * ranks_of_node + rank) * batch + i % batch;
        const auto found = both.at({e, step * world * batch + of_rank}, cursor);
        const std::uint64_t index = orders[found.source].bind(found.at.epoch)(found.at.index).index;
        reads.push_back(static_cast<std::uint32_t>((found.source * first + index) / samples_of_block));
      }
  }
  return made;
}

/// The reads of the node in the order in which its ranks, which are as fast as each other, make them.
std::vector<std::uint32_t> in_turn(const reads_of_node& all) {
  std::vector<std::uint32_t> made;
  for (std::size_t turn = 0; turn < all.ranks[0].size(); ++turn)
    for (const auto& rank : all.ranks) made.push_back(rank[turn]);
  return made;
}
std::uint64_t touched(const std::vector<std::uint32_t>& reads, std::size_t count) {
  return std::set(reads.begin(), reads.begin() + static_cast<std::ptrdiff_t>(count)).size();
}

struct result {
  std::uint64_t hits = 0, reads = 0;  // from the second epoch on
  std::uint64_t fetched_first = 0;    // in the first one
  [[nodiscard]] double rate() const { return static_cast<double>(hits) / static_cast<double>(reads); }
};

/// The most hits that any cache of so many blocks can have, which knows all reads and need not keep a block
/// that it reads.
result best(const reads_of_node& all, std::size_t slots) {
  const std::vector<std::uint32_t> reads = in_turn(all);
  std::vector<std::size_t> next(reads.size());
  std::vector<std::size_t> seen(data_blocks, 0);
  for (std::size_t i = reads.size(); i-- > 0;) {
    next[i] = seen[reads[i]] != 0 ? seen[reads[i]] : reads.size() + i;
    seen[reads[i]] = i;
  }
  std::vector<std::size_t> in(data_blocks, 0);         // the next use and 1 of those that are there
  std::set<std::pair<std::size_t, std::uint32_t>> by;  // the same, by use
  result found;
  const std::size_t first = reads.size() / epochs;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const std::uint32_t block = reads[i];
    if (in[block] != 0) {
      if (i >= first) ++found.hits;
      by.erase({in[block] - 1, block});
    } else if (i < first) {
      ++found.fetched_first;
    }
    in[block] = next[i] + 1;
    by.insert({next[i], block});
    if (by.size() > slots) {
      const auto last = std::prev(by.end());
      in[last->second] = 0;
      by.erase(last);
    }
  }
  found.reads = reads.size() - first;
  return found;
}

enum class policy { fifo, lru, belady };

/// What the cache of a node does, of which the ranks are as fast as each other.
result simulate(const reads_of_node& all, std::uint64_t slots, policy how) {
  const blocks::shape shape{128 << 10, 128 << 10, slots};
  std::vector<std::uint64_t> memory(blocks::block_index::bytes(shape) / 8 + 1);
  const auto head = blocks::block_index::index_head_of(shape, 1);
  std::memcpy(memory.data(), head.data(), head.size());
  const blocks::block_index table(reinterpret_cast<std::byte*>(memory.data()), shape);
  const auto key_of = [](std::uint64_t block) { return blocks::key{ps::mix64(block), ps::mix64(~block)}; };
  std::vector<blocks::key> keys;
  for (std::uint64_t block = 0; block < data_blocks; ++block) keys.push_back(key_of(block));
  std::vector<std::unique_ptr<blocks::block_plan>> plans;
  const std::size_t ranks = all.ranks.size(), turns = all.ranks[0].size();
  if (how == policy::belady)
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      auto& plan = *plans.emplace_back(std::make_unique<blocks::block_plan>());
      (void)plan.add(keys);  // numbered from 0 on
      table.next().begin(static_cast<std::uint32_t>(rank));
    }
  // A run tells what it reads to the end of the eighth epoch after this one.
  std::vector<std::uint64_t> told(ranks);
  const auto stand_at = [&](std::size_t rank, std::uint64_t turn) {
    const std::uint64_t end = std::min<std::uint64_t>((turn / all.per_epoch + 9) * all.per_epoch, turns);
    for (; told[rank] < end; ++told[rank]) plans[rank]->plan_read(all.ranks[rank][told[rank]], told[rank]);
    plans[rank]->stand_at(turn, end, end == turns);
    table.stand_at(
        static_cast<std::uint32_t>(rank), turn, 1,
        [](const void* plan, const blocks::key& block) {
          return static_cast<const blocks::block_plan*>(plan)->next(block);
        },
        plans[rank].get());
  };
  result found;
  table.begin_change();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (std::size_t rank = 0; rank < plans.size(); ++rank) stand_at(rank, turn);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t block = all.ranks[rank][turn];
      const bool counts = turn >= all.per_epoch;
      if (counts) ++found.reads;
      if (const auto there = table.find(keys[block])) {
        if (counts) ++found.hits;
        if (how != policy::fifo) table.touch(there->slot);
        continue;
      }
      if (!counts) ++found.fetched_first;
      blocks::outlook future;
      for (std::size_t other = 0; other < plans.size(); ++other)
        future.add(table.next(), static_cast<std::uint32_t>(other));
      future.settle();
      const auto old = table.least_needed(future);
      const blocks::place mine = table.take(old->slot, keys[block]);
      for (std::size_t other = 0; other < plans.size(); ++other)
        table.next().set(static_cast<std::uint32_t>(other), mine.slot, plans[other]->next(block));
      (void)table.publish(mine);
    }
  }
  return found;
}

void line(const char* name, std::uint64_t nodes, const reads_of_node& all, bool chart) {
  const std::vector<std::uint32_t> reads = in_turn(all);
  const std::uint64_t of_node = touched(reads, reads.size() / epochs);
  for (const unsigned percent : {10u, 25u, 50u, 75u, 90u}) {
    const std::uint64_t slots = std::max<std::uint64_t>(1, of_node * percent / 100);
    const result fifo = simulate(all, slots, policy::fifo), lru = simulate(all, slots, policy::lru),
                 ours = simulate(all, slots, policy::belady), maximum = best(all, slots);
    std::printf(chart ? "%s;%llu;%u;%.4f;%.4f;%.4f;%.4f;%.4f\n"
                      : "| %s | %llu | %u %% | %.3f | %.3f | %.3f | %.3f | %.3f |\n",
                name, static_cast<unsigned long long>(nodes), percent, fifo.rate(), lru.rate(), ours.rate(),
                maximum.rate(), ours.rate() / maximum.rate());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool chart = argc > 1 && std::strcmp(argv[1], "--chart") == 0;
  const auto full = [](const auto& source) { return source | ps::shuffle(ps::seed(7)); };
  const auto window = [](const auto& source) { return source | ps::shuffle(ps::seed(7), ps::window(16)); };
  const auto lanes = [](const auto& source) {
    return source | ps::shuffle(ps::seed(7), ps::window(16), ps::lanes(64));
  };
  if (!chart)
    std::puts(
        "| order | nodes | cache | fifo | lru | belady | optimum | of the optimum |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|");
  for (const std::uint64_t nodes : {1u, 4u, 32u}) {
    line("shuffle", nodes, reads_of(0, nodes, full), chart);
    line("window(16)", nodes, reads_of(0, nodes, window), chart);
    line("window(16), lanes(64)", nodes, reads_of(0, nodes, lanes), chart);
    line("mix of two shuffles", nodes, mixed(0, nodes), chart);
  }
  if (chart) return 0;
  constexpr std::uint64_t nodes = 32, share = data_blocks / nodes;
  std::uint64_t maximum = 0;
  for (std::uint64_t node = 0; node < nodes; ++node)
    maximum =
        std::max(maximum, simulate(reads_of(node, nodes, lanes), share / 2, policy::belady).fetched_first);
  std::printf(
      "\nWith lanes and a cache of half its share, a node of %llu fetches at most %.3f times its share of\n"
      "the data in the first epoch.\n",
      static_cast<unsigned long long>(nodes), static_cast<double>(maximum) / static_cast<double>(share));
  return 0;
}
