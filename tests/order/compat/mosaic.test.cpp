// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/compat/detail/numpy_generator.hpp>
#include <penstock/order/compat/mosaic.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;

static_assert(ps::order<ps::mosaic_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::mosaic_stage>, "mosaic is an order stage");

namespace {

using numbers = std::vector<std::uint64_t>;

ps::order_input shards_of(const numbers& sizes) {
  numbers starts{0};
  for (const std::uint64_t size : sizes) starts.push_back(starts.back() + size);
  return {starts.back(), std::make_shared<const numbers>(starts)};
}

/// The epoch by rank: rank r's samples, then those of rank r + 1.
std::vector<numbers> mosaic_ranks_of(const ps::mosaic_order& made, std::uint64_t epoch) {
  const auto bound = made.bind(epoch);
  std::vector<numbers> ranks(static_cast<std::size_t>(made.lanes()));
  for (std::uint64_t p = 0; p < made.size(); ++p)
    ranks[static_cast<std::size_t>(p % made.lanes())].push_back(bound(p).index);
  return ranks;
}

numbers mosaic_shuffle_of(const numbers& sizes, std::uint64_t nodes, ps::mosaic_algorithm algo,
                          std::uint64_t epoch, std::uint64_t block, std::uint64_t seed = 9176) {
  const auto in = shards_of(sizes);
  const auto ids = ps::detail::mosaic_shuffle(*in.starts, nodes, seed, epoch, block).make(algo);
  return {ids.begin(), ids.end()};
}

constexpr ps::mosaic_algorithm mosaic_algorithms[] = {ps::mosaic_algorithm::py1e, ps::mosaic_algorithm::py1br,
                                                      ps::mosaic_algorithm::py1s, ps::mosaic_algorithm::py2s,
                                                      ps::mosaic_algorithm::naive};

}  // namespace

TEST_CASE("order/mosaic: the generator is numpy's default_rng") {
  CHECK(ps::detail::numpy_generator::seed_words(9176) ==
        std::array<std::uint64_t, 4>{0x843c62eb0dd64448u, 0xfd951d81e345305fu, 0x81ddf06a9fa2424cu,
                                     0x015c41789371fd9bu});
  ps::detail::numpy_generator raw(9176);
  CHECK(raw.next64() == 0xce488e5ff4c10304u);
  CHECK(raw.next64() == 0x233a25e3fe3960b0u);
  CHECK(raw.next64() == 0xbc04ca4c34b5a59cu);
  numbers ten(10);
  std::iota(ten.begin(), ten.end(), std::uint64_t{0});
  ps::detail::numpy_generator(9176).shuffle(ten.begin(), ten.size());
  CHECK(ten == numbers{8, 1, 2, 7, 5, 6, 9, 3, 0, 4});
  ps::detail::numpy_generator real(9176);
  CHECK(real.next_double() == 0.8057946190135716);
  CHECK(real.next_double() == 0.1376060182212533);
  CHECK(real.next_double() == 0.7344480930375625);
  ps::detail::numpy_generator halves(9176);
  CHECK(halves.next32() == 0xf4c10304u);
  CHECK(halves.next64() == 0x233a25e3fe3960b0u);
  CHECK(halves.next32() == 0xce488e5fu);
}

TEST_CASE("order/mosaic: shuffles are those of Streaming") {
  const numbers sizes{5, 7, 4, 8};
  const auto of = [&](ps::mosaic_algorithm algo) { return mosaic_shuffle_of(sizes, 2, algo, 1, 8); };
  CHECK(of(ps::mosaic_algorithm::naive) ==
        numbers{11, 13, 15, 7, 3, 19, 2, 18, 20, 1, 22, 9, 12, 4, 16, 8, 10, 21, 6, 5, 14, 17, 23, 0});
  CHECK(of(ps::mosaic_algorithm::py1s) ==
        numbers{5, 8, 9, 7, 6, 10, 11, 16, 15, 12, 14, 13, 23, 20, 17, 18, 22, 21, 19, 4, 1, 3, 2, 0});
  CHECK(of(ps::mosaic_algorithm::py2s) ==
        numbers{7, 8, 11, 5, 9, 6, 10, 18, 12, 14, 15, 13, 1, 4, 2, 3, 0, 20, 17, 23, 16, 19, 21, 22});
  CHECK(of(ps::mosaic_algorithm::py1br) ==
        numbers{9, 5, 6, 10, 8, 7, 14, 15, 12, 16, 11, 13, 17, 21, 18, 20, 23, 19, 22, 0, 1, 4, 3, 2});
  CHECK(of(ps::mosaic_algorithm::py1e) ==
        numbers{5, 8, 9, 7, 6, 16, 10, 11, 15, 12, 14, 13, 17, 22, 20, 21, 19, 18, 23, 3, 4, 1, 2, 0});
}

TEST_CASE("order/mosaic: blocks of one sample are not spread, as in Streaming") {
  const auto in = shards_of({5, 7, 4, 8});
  const auto of = [&](ps::mosaic_algorithm algo) {
    const auto made = ps::mosaic({.num_canonical_nodes = 2,
                                  .physical_nodes = 2,
                                  .ranks_per_node = 1,
                                  .shuffle = true,
                                  .shuffle_algo = algo,
                                  .shuffle_block_size = 1})
                          .make(in);
    numbers all;
    for (const numbers& rank : mosaic_ranks_of(made, 1)) all.insert(all.end(), rank.begin(), rank.end());
    return all;
  };
  // computed with version 0.13 of mosaicml-streaming
  CHECK(of(ps::mosaic_algorithm::py1e) ==
        numbers{5, 8, 9, 7, 6, 10, 11, 16, 15, 12, 14, 13, 21, 22, 19, 20, 18, 17, 23, 1, 4, 0, 2, 3});
  CHECK(of(ps::mosaic_algorithm::py1s) ==
        numbers{5, 8, 9, 7, 6, 10, 11, 16, 15, 12, 14, 13, 23, 20, 17, 18, 22, 21, 19, 4, 1, 3, 2, 0});
}

TEST_CASE("order/mosaic: every shuffle has every sample once, also with empty shards and few samples") {
  ps::rng random(6, 0, 0);
  for (int round = 0; round < 300; ++round) {
    numbers sizes(static_cast<std::size_t>(1 + random.below(12)));
    for (auto& size : sizes) size = random.chance(0.2) ? 0 : random.below(30);
    const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    const std::uint64_t nodes = 1 + random.below(5), block = 2 + random.below(60);
    for (const ps::mosaic_algorithm algo : mosaic_algorithms) {
      if (algo == ps::mosaic_algorithm::py1e && total < nodes) continue;
      numbers all = mosaic_shuffle_of(sizes, nodes, algo, 3, block, random());
      std::sort(all.begin(), all.end());
      numbers expected(static_cast<std::size_t>(total));
      std::iota(expected.begin(), expected.end(), std::uint64_t{0});
      CHECK(all == expected);
    }
  }
}

TEST_CASE("order/mosaic: samples are divided over ranks as in Streaming") {
  const auto made = ps::mosaic({.num_canonical_nodes = 2, .ranks_per_node = 2}).make({10, nullptr});
  CHECK(mosaic_ranks_of(made, 0) == std::vector<numbers>{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}});
  // Two workers of each rank take its batches of two in turn, as in Streaming's partition.
  const auto workers = [&](std::size_t rank) {
    const numbers mine = mosaic_ranks_of(made, 0)[rank];
    std::vector<std::vector<numbers>> dealt(2);
    for (std::size_t first = 0; first < mine.size(); first += 2)
      dealt[first / 2 % 2].emplace_back(
          mine.begin() + static_cast<std::ptrdiff_t>(first),
          mine.begin() + static_cast<std::ptrdiff_t>(std::min(first + 2, mine.size())));
    return dealt;
  };
  CHECK(workers(0) == std::vector<std::vector<numbers>>{{{0, 1}, {4}}, {{2, 3}}});
  CHECK(workers(1) == std::vector<std::vector<numbers>>{{{5, 6}, {9}}, {{7, 8}}});
  CHECK(made.position_of({0, 6}) == ps::position{0, 3});
  CHECK_FALSE(made.position_of({0, 10}).has_value());
  CHECK(ps::mosaic({.num_canonical_nodes = 2, .ranks_per_node = 2}).make({0, nullptr}).size() == 0);
}

TEST_CASE(
    "order/mosaic: a plan has the batches of each rank, and a step's samples do not depend on the ranks") {
  numbers data(96);
  std::iota(data.begin(), data.end(), std::uint64_t{0});
  const ps::mosaic_options o{
      .num_canonical_nodes = 2, .physical_nodes = 2, .ranks_per_node = 2, .shuffle = true};
  const auto expected = mosaic_ranks_of(ps::mosaic(o).make({96, nullptr}), 0);
  const auto ordered = ps::from(data) | ps::mosaic(o);
  using plan = decltype(ordered | ps::shard(0, 4) | ps::batch(6));
  static_assert(ps::indexed<plan> && ps::deterministic<plan> && ps::resumable<plan> && ps::elastic<plan> &&
                    ps::lockstep<plan>,
                "mosaic keeps every guarantee");
  for (std::uint64_t rank = 0; rank < 4; ++rank)
    CHECK(penstock_test::values_of(ordered | ps::shard(rank, 4) | ps::batch(6)) ==
          expected[static_cast<std::size_t>(rank)]);
  const auto step = [&](std::uint64_t ranks, std::size_t number) {
    numbers all;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      const auto mine = penstock_test::batches_of(ordered | ps::shard(r, ranks) |
                                                  ps::batch(static_cast<std::size_t>(24 / ranks)))[number];
      all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
  };
  for (const std::uint64_t ranks : {1u, 2u, 3u, 6u}) CHECK(step(ranks, 2) == step(4, 2));
}

TEST_CASE("order/mosaic: a run started in Streaming resumes at its next step, and epochs are Streaming's") {
  numbers data(60);
  std::iota(data.begin(), data.end(), std::uint64_t{0});
  ps::mosaic_options o{.num_canonical_nodes = 1, .ranks_per_node = 2, .shuffle = true, .shuffle_seed = 4};
  const auto plan = ps::from(data) | ps::mosaic(o) | ps::shard(1, 2) | ps::batch(5);
  auto at = plan.open().state();
  at.epoch = 7;
  at.step = 4;
  auto run = plan.open(at);
  numbers rest;
  for (auto&& b : run.epoch(7)) {
    const auto values = b.values();
    rest.insert(rest.end(), values.begin(), values.end());
  }
  const auto whole = mosaic_ranks_of(ps::mosaic(o).make({60, nullptr}), 7)[1];
  CHECK(rest == numbers(whole.begin() + 20, whole.end()));
  o.epoch = 5;
  CHECK(mosaic_ranks_of(ps::mosaic(o).make({60, nullptr}), 2)[1] == whole);
}

TEST_CASE("order/mosaic: impossible arguments are errors that say what to write") {
  const auto wrong = [](const ps::mosaic_options& o, std::uint64_t samples = 100) {
    return penstock_test::error_of([&] { static_cast<void>(ps::mosaic(o).make({samples, nullptr})); });
  };
  using penstock_test::contains;
  CHECK_THAT(wrong({.ranks_per_node = 1}), contains("num_canonical_nodes is not given"));
  CHECK_THAT(wrong({.num_canonical_nodes = 1}), contains("ranks_per_node is not given"));
  CHECK_THAT(wrong({.num_canonical_nodes = 1u << 25, .ranks_per_node = 1}), contains("not in [1, 2^24]"));
  CHECK_THAT(wrong({.num_canonical_nodes = 1, .physical_nodes = 0, .ranks_per_node = 1}),
             contains("physical_nodes * ranks_per_node"));
  CHECK_THAT(wrong({.num_canonical_nodes = 2, .physical_nodes = 3, .ranks_per_node = 1}),
             contains("neither of 2 canonical and 3 physical nodes"));
  CHECK_THAT(wrong({.num_canonical_nodes = 1, .ranks_per_node = 1, .shuffle_block_size = (1ull << 32) + 1}),
             contains("shuffle_block_size 4294967297 is not in [1, 2^32]"));
  CHECK_THAT(wrong({.num_canonical_nodes = 1,
                    .ranks_per_node = 1,
                    .shuffle = true,
                    .shuffle_algo = ps::mosaic_algorithm::py1br,
                    .shuffle_block_size = 1}),
             contains("py1br cannot use a shuffle_block_size of 1"));
  CHECK_THAT(wrong({.num_canonical_nodes = 8, .ranks_per_node = 1, .shuffle = true}, 5), contains("py1e"));
  CHECK_THAT(wrong({.num_canonical_nodes = 2, .physical_nodes = 16, .ranks_per_node = 1}, 5),
             contains("too few"));
  CHECK_THAT(wrong({.num_canonical_nodes = 1, .ranks_per_node = 1}, std::uint64_t{1} << 33),
             contains("at most 2^32 samples"));
  CHECK_THROWS_WITH(ps::mosaic({.num_canonical_nodes = 1, .ranks_per_node = 1})
                        .make({10, std::make_shared<const numbers>(numbers{0, 4})}),
                    contains("shard boundaries"));
}

TEST_CASE("order/mosaic: describes itself") {
  CHECK(ps::mosaic({.num_canonical_nodes = 2, .physical_nodes = 2, .ranks_per_node = 8, .shuffle = true})
            .describe() == "mosaic(2 canonical nodes, 2 x 8 ranks, py1e, seed 9176)");
  CHECK(ps::mosaic({.num_canonical_nodes = 1, .ranks_per_node = 1, .epoch = 3}).describe() ==
        "mosaic(1 canonical nodes, 1 x 1 ranks, in order, epochs from 3)");
}

TEST_CASE("order/mosaic: samples of each rank are those of Streaming's own code") {
  const penstock_test::temp_dir dir;
  // The package itself needs PyTorch and much more; its shuffles and partitions need numpy.
  constexpr const char* orders_in_python = R"py(import importlib.util, pathlib, sys, types, warnings
root = pathlib.Path(list(importlib.util.find_spec("streaming").submodule_search_locations)[0])
for name in ("", ".base"):
    made = types.ModuleType("streaming" + name)
    made.__path__ = [str(root / name.strip("."))]
    sys.modules["streaming" + name] = made
import numpy as np
from streaming.base.partition.orig import get_partitions_orig
from streaming.base.partition.relaxed import get_partitions_relaxed
from streaming.base.shuffle import get_shuffle
warnings.simplefilter("ignore")
out = open(sys.argv[2], "w")
for line in open(sys.argv[1]) if len(sys.argv) > 1 else ():
    algo, *rest = line.split()
    C, P, R, W, B, seed, epoch, block, P0, drop, *sizes = map(int, rest)
    try:
        n = sum(sizes)
        if P == P0:
            ids = get_partitions_orig(n, C, P, R, W, B, drop)
        else:
            ids = get_partitions_relaxed(n, C, P, R, W, B, drop, P0)
        if algo != "none":
            ids = np.where(ids == -1, -1, get_shuffle(algo, np.array(sizes), C, seed, epoch, block)[ids])
    except Exception:
        print(-3, file=out)
        continue
    for rank in ids.reshape(P * R, W, -1, B):
        for batch in rank.transpose(1, 0, 2).reshape(-1, B):
            print(*batch[batch != -1], file=out, end=" ")
        print(-1, file=out)
    print(-2, file=out)
)py";
  std::ofstream(dir / "order.py") << orders_in_python;
  std::ofstream(dir / "nothing").close();
  const std::string probe =
      (dir / "order.py").string() + " " + (dir / "nothing").string() + " " + (dir / "out").string();
  const std::string python = penstock_test::python_for(probe);
  if (!penstock_test::have_program("MosaicML Streaming and numpy", python + " " + probe)) return;
  const std::string program = python + " " + (dir / "order.py").string() + " ";
  struct one_case {
    ps::mosaic_options o;
    numbers sizes;
    std::uint64_t epoch, batch, nodes, steps;
  };
  ps::rng random(12, 0, 0);
  std::vector<one_case> cases;
  std::ofstream list(dir / "list");
  for (int i = 0; i < 1500; ++i) {
    const std::uint64_t canonical = 1 + random.below(8);
    const bool more = random.chance(0.5);
    const std::uint64_t factor = 1 + random.below(4);
    one_case made{.o = {.num_canonical_nodes = more ? canonical * factor : canonical,
                        .physical_nodes = more ? canonical : canonical * factor,
                        .ranks_per_node = 1 + random.below(8),
                        .shuffle = random.chance(0.85),
                        .shuffle_algo = mosaic_algorithms[random.below(5)],
                        .shuffle_seed = random.chance(0.5) ? 9176 : random() >> 20,
                        .shuffle_block_size = 1 + random.below(random.chance(0.1) ? 2 : 100)},
                  .sizes = numbers(static_cast<std::size_t>(1 + random.below(20))),
                  .epoch = random.below(20),
                  .batch = 1 + random.below(9),
                  .nodes = 0,
                  .steps = 0};
    for (auto& size : made.sizes) size = random.chance(0.1) ? 0 : random.below(random.chance(0.3) ? 120 : 12);
    made.nodes = made.o.physical_nodes;
    if (i % 3 == 0) {  // on other nodes, with an equal global batch
      made.nodes = 1 + random.below(12);
      made.batch *= made.nodes;
    }
    const std::uint64_t now_each = made.batch * made.o.physical_nodes / made.nodes;
    // Every other run is resumed after some steps; at least two samples per rank remain, because otherwise
    // they would be padded anew.
    const std::uint64_t samples = std::accumulate(made.sizes.begin(), made.sizes.end(), std::uint64_t{0});
    const std::uint64_t ranks = made.nodes * made.o.ranks_per_node, global = ranks * now_each;
    if (i % 2 == 0 && samples > 2 * ranks) made.steps = random.below((samples - 2 * ranks) / global + 1);
    list << (made.o.shuffle ? ps::to_string(made.o.shuffle_algo) : "none");
    for (const std::uint64_t number : {made.o.num_canonical_nodes, made.nodes, made.o.ranks_per_node,
                                       1 + random.below(4), now_each, made.o.shuffle_seed, made.epoch,
                                       made.o.shuffle_block_size, made.o.physical_nodes, made.steps * global})
      list << " " << number;
    for (const std::uint64_t size : made.sizes) list << " " << size;
    list << "\n";
    made.batch = now_each;
    // If the nodes divide the canonical ones or are a multiple of them, the result is as if the run had
    // started there.
    if (made.o.num_canonical_nodes % made.nodes == 0 || made.nodes % made.o.num_canonical_nodes == 0)
      made.o.physical_nodes = made.nodes;
    cases.push_back(made);
  }
  list.close();
  const auto ran =
      penstock_test::run_program(program + (dir / "list").string() + " " + (dir / "out").string());
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  std::ifstream out(dir / "out");
  int refused = 0, elsewhere = 0, gone_on = 0;
  for (const one_case& one : cases) {
    std::vector<numbers> theirs(1);
    bool failed = false;
    for (std::int64_t number = 0; out >> number && number != -2;) {
      failed = number == -3;
      if (failed) break;
      if (number == -1)
        theirs.emplace_back();
      else
        theirs.back().push_back(static_cast<std::uint64_t>(number));
    }
    theirs.pop_back();
    INFO(ps::mosaic(one.o).describe() << ", on nodes " << one.nodes << ", shards " << one.sizes.size());
    const auto in = shards_of(one.sizes);
    if (failed) {
      ++refused;
      if (in.size != 0) CHECK_THROWS_AS(ps::mosaic(one.o).make(in), ps::error);
      continue;
    }
    const auto made = ps::mosaic(one.o).make(in);
    if (one.nodes == one.o.physical_nodes) {
      auto ours = mosaic_ranks_of(made, one.epoch);
      for (numbers& rank : ours)
        rank.erase(rank.begin(), rank.begin() + static_cast<std::ptrdiff_t>(one.steps * one.batch));
      CHECK(ours == theirs);
      gone_on += one.steps != 0 ? 1 : 0;
      continue;
    }
    // Relaxed: only the steps that are full on all ranks.
    const std::uint64_t ranks = one.nodes * one.o.ranks_per_node;
    ps::cut part{.size = made.size(),
                 .global = ranks * one.batch,
                 .world = ranks,
                 .rank = 0,
                 .lanes = made.lanes(),
                 .policy = ps::tail::drop};
    const auto bound = made.bind(one.epoch);
    bool same = true;
    for (; part.rank < ranks; ++part.rank) {
      numbers mine;
      for (std::uint64_t s = one.steps; s < part.steps(); ++s)
        for (std::uint64_t slot = 0; slot < part.slots(s); ++slot)
          mine.push_back(bound(part.at(s)[slot]).index);
      const numbers& other = theirs[static_cast<std::size_t>(part.rank)];
      same = same && mine.size() <= other.size() && std::equal(mine.begin(), mine.end(), other.begin());
      elsewhere += mine.empty() ? 0 : 1;
    }
    CHECK(same);
  }
  CHECK(refused < 100);
  CHECK(elsewhere > 100);
  CHECK(gone_on > 100);
}
