// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/compat/detail/numpy_generator.hpp>
#include <penstock/order/compat/mosaic_resampled.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;

static_assert(ps::order<ps::mosaic_resampled_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::mosaic_resampled_stage>, "mosaic_resampled is an order stage");

namespace mosaic_resampled_test {

using numbers = std::vector<std::uint64_t>;

ps::order_input shard_sizes(const numbers& sizes) {
  numbers starts{0};
  for (const std::uint64_t size : sizes) starts.push_back(starts.back() + size);
  return {starts.back(), std::make_shared<const numbers>(starts)};
}
numbers ids_of(const ps::mosaic_resampled_order& made, std::uint64_t epoch) {
  const auto bound = made.bind(epoch);
  numbers all;
  for (std::uint64_t p = 0; p < made.size(); ++p) all.push_back(bound(p).index);
  return all;
}
constexpr ps::mosaic_options alone{.num_canonical_nodes = 1, .ranks_per_node = 1};

}  // namespace mosaic_resampled_test
using namespace mosaic_resampled_test;

TEST_CASE("order/mosaic_resampled: numpy's choice without replacement") {
  const auto choice = [](std::uint64_t from, std::uint64_t count) {
    return ps::detail::numpy_generator(9176).choice(from, count);
  };
  CHECK(choice(10, 4) == numbers{7, 1, 8, 6});
  CHECK(choice(20'000, 4) == numbers{16'114, 2'752, 19'860, 19'118});
  CHECK(choice(3, 0).empty());
  for (const std::uint64_t count : {10'001u, 10'000u, 300u}) {  // the end of a shuffle
    numbers all = choice(10'001, count);
    REQUIRE(all.size() == count);
    std::sort(all.begin(), all.end());
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
    CHECK(all.back() <= 10'000);
  }
}

TEST_CASE("order/mosaic_resampled: the number of samples from each shard") {
  const auto counts = [](std::uint64_t size, std::uint64_t granularity) {
    return ps::detail::mosaic_draw(shard_sizes({5, 7, 4, 8}).starts,
                                   {.epoch_size = size, .granularity = granularity}, true, 9176)
        .counts_of(0, 1);
  };
  CHECK(counts(30, 1) == numbers{6, 9, 6, 9});
  CHECK(counts(10, 3) == numbers{0, 7, 0, 3});
  CHECK(counts(48, 1) == numbers{10, 14, 8, 16});
  for (const std::uint64_t size : {1u, 7u, 23u, 24u, 25u, 100u}) {
    const numbers all = counts(size, 3);
    CHECK(std::accumulate(all.begin(), all.end(), std::uint64_t{0}) == size);
  }
}

TEST_CASE("order/mosaic_resampled: streams contribute according to their weights") {
  const numbers sizes{10, 10, 30};
  const auto of_stream = [&](const ps::mosaic_sampling& sampling) {
    const auto made = ps::mosaic_resampled(alone, sampling).make(shard_sizes(sizes));
    numbers found(2);
    for (const std::uint64_t id : ids_of(made, 0)) ++found[id < 20 ? 0 : 1];
    return found;
  };
  CHECK(of_stream({.streams = {{.shards = 2, .proportion = 3}, {.shards = 1, .proportion = 1}}}) ==
        numbers{37, 13});  // 37.5 and 12.5: the remaining one is drawn
  CHECK(of_stream({.epoch_size = 80,
                   .streams = {{.shards = 2, .proportion = 0.75}, {.shards = 1, .proportion = 0.25}}}) ==
        numbers{60, 20});
  CHECK(of_stream({.streams = {{.shards = 2, .repeat = 2.5}, {.shards = 1, .choose = 7}}}) == numbers{50, 7});
  CHECK(of_stream({.streams = {{.shards = 2}, {.shards = 1, .choose = 0}}}) == numbers{20, 0});
  CHECK(of_stream({.epoch_size = 25, .streams = {{.shards = 2}, {.shards = 1}}}) == numbers{10, 15});
}

TEST_CASE("order/mosaic_resampled: fixed samples are common to all epochs, balanced ones differ") {
  ps::mosaic_options o = alone;
  o.shuffle = true;
  ps::mosaic_sampling sampling{.epoch_size = 12};
  const auto samples = [&](std::uint64_t epoch) {
    numbers all = ids_of(ps::mosaic_resampled(o, sampling).make(shard_sizes({20, 20})), epoch);
    std::sort(all.begin(), all.end());
    return all;
  };
  CHECK(samples(0) != samples(1));
  sampling.method = ps::mosaic_sampling_method::fixed;
  CHECK(samples(0) == samples(1));
}

TEST_CASE("order/mosaic_resampled: a plan's global steps do not depend on the ranks") {
  numbers data(50);
  std::iota(data.begin(), data.end(), std::uint64_t{0});
  const ps::mosaic_options o{.num_canonical_nodes = 2, .ranks_per_node = 2, .shuffle = true};
  const auto ordered = ps::from(data) | ps::mosaic_resampled(o, {.epoch_size = 72});
  using plan = decltype(ordered | ps::shard(0, 4) | ps::batch(6));
  static_assert(ps::indexed<plan> && ps::deterministic<plan> && ps::resumable<plan> && ps::elastic<plan> &&
                    ps::lockstep<plan>,
                "mosaic_resampled keeps every guarantee");
  const auto step = [&](std::uint64_t ranks, std::size_t number) {
    numbers all;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      const auto mine = penstock_test::batches_of(ordered | ps::shard(r, ranks) |
                                                  ps::batch(static_cast<std::size_t>(24 / ranks)))[number];
      all.insert(all.end(), mine.begin(), mine.end());
    }
    return all;
  };
  for (const std::uint64_t ranks : {1u, 2u, 3u, 6u}) CHECK(step(ranks, 1) == step(4, 1));
  const auto made = ps::mosaic_resampled(o, {.epoch_size = 72}).make({50, nullptr});
  const auto bound = made.bind(0);
  const auto place = made.position_of(bound(40));
  REQUIRE(place.has_value());
  CHECK(bound(place->index) == bound(40));
}

TEST_CASE("order/mosaic_resampled: impossible options are errors that say what to write") {
  const auto wrong = [](const ps::mosaic_sampling& sampling, const numbers& sizes = {5, 5}) {
    return penstock_test::error_of(
        [&] { static_cast<void>(ps::mosaic_resampled(alone, sampling).make(shard_sizes(sizes))); });
  };
  using penstock_test::contains;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(wrong({.granularity = 0}), contains("granularity"));
  CHECK_THAT(wrong({.streams = {{.shards = 3}}}), contains("more than the 2 shards"));
  CHECK_THAT(wrong({.streams = {{.shards = 1}}}), contains("1 of the 2 shards"));
  CHECK_THAT(wrong({.streams = {{.shards = 2, .repeat = 1, .choose = 1}}}), contains("more than one of"));
  CHECK_THAT(wrong({.streams = {{.shards = 2, .proportion = -1}}}), contains("a weight of stream 0"));
  CHECK_THAT(wrong({.streams = {{.shards = 2, .repeat = nan}}}), contains("a weight of stream 0"));
  CHECK_THAT(wrong({.streams = {{.shards = 2, .proportion = 0}}}), contains("all proportions are 0"));
  CHECK_THAT(wrong({.streams = {{.shards = 1, .proportion = 1}, {.shards = 1}}}), contains("1 of 2 streams"));
  CHECK_THAT(wrong({.epoch_size = 4, .streams = {{.shards = 2, .choose = 1}}}),
             contains("epoch_size goes with"));
  CHECK_THAT(wrong({.streams = {{.shards = 1}, {.shards = 1, .choose = 3}}}, {5, 0}),
             contains("stream 1 has no samples"));
  CHECK_THAT(wrong({.epoch_size = std::uint64_t{1} << 40}), contains("at most 2^32"));
  CHECK_THAT(wrong({.streams = {{.shards = 2, .repeat = 1e15}}}), contains("more than 2^53"));
}

TEST_CASE("order/mosaic_resampled: describes itself") {
  CHECK(ps::mosaic_resampled(alone, {.epoch_size = 7}).describe() ==
        "mosaic_resampled(epoch_size 7, 1 canonical nodes, 1 x 1 ranks, in order)");
  CHECK(ps::mosaic_resampled(alone, {.streams = {{.shards = 1}, {.shards = 2}}}).describe() ==
        "mosaic_resampled(2 streams, 1 canonical nodes, 1 x 1 ranks, in order)");
}

TEST_CASE("order/mosaic_resampled: epochs are those of Streaming's own code") {
  const penstock_test::temp_dir dir;
  // The package needs PyTorch; its functions that sample and order need only numpy, and are run
  // unchanged.
  constexpr const char* epochs_in_python = R"py(import ast, importlib.util, pathlib, sys, types, warnings
root = pathlib.Path(list(importlib.util.find_spec("streaming").submodule_search_locations)[0])
for name in ("", ".base"):
    made = types.ModuleType("streaming" + name)
    made.__path__ = [str(root / name.strip("."))]
    sys.modules["streaming" + name] = made
import numpy as np
from streaming.base.partition.orig import get_partitions_orig
from streaming.base.sampling import get_sampling
from streaming.base.shuffle import get_shuffle
warnings.simplefilter("ignore")
def taken(file, *names):
    tree = ast.parse((root / "base" / file).read_text())
    there = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in names]
    for one in there:
        one.decorator_list, one.returns = [], None
        for argument in one.args.args:
            argument.annotation = None
    scope = {"np": np, "get_sampling": get_sampling}
    exec(compile(ast.Module(there, []), file, "exec"), scope)
    return [scope[name] for name in names]
validate, apply_weights = taken("stream.py", "validate_weights", "apply_weights")
(resample,) = taken("dataset.py", "resample_streams")
class Stream:
    validate_weights = classmethod(validate)
out = open(sys.argv[2], "w")
for line in open(sys.argv[1]) if len(sys.argv) > 1 else ():
    algo, method, *rest = line.split()
    C, P, R, seed, epoch, block, size, grain, streams, *rest = map(float, rest)
    C, P, R, seed, epoch, block, grain = map(int, (C, P, R, seed, epoch, block, grain))
    d = types.SimpleNamespace(shuffle_seed=seed, sampling_method=method, sampling_granularity=grain)
    d.num_streams, d.streams, d.shards_per_stream = int(streams), [], []
    for _ in range(d.num_streams):
        shards, kind, weight, *rest = rest
        d.shards_per_stream.append(int(shards))
        d.streams.append(Stream())
        if kind:
            name = ("proportion", "repeat", "choose")[int(kind) - 1]
            setattr(d.streams[-1], name, weight if kind < 3 else int(weight))
    d.shards_per_stream = np.array(d.shards_per_stream)
    d.samples_per_shard = np.array(rest, np.int64)
    d.shard_offset_per_stream = d.shards_per_stream.cumsum() - d.shards_per_stream
    d.sample_offset_per_shard = d.samples_per_shard.cumsum() - d.samples_per_shard
    d.epoch_seed_change = algo != "none" and method == "balanced"
    places = zip(d.shard_offset_per_stream, d.shards_per_stream)
    each = np.array([d.samples_per_shard[at:at + count].sum() for at, count in places])
    try:
        n = apply_weights(Stream, d.streams, each, int(size) or None, seed)
        units, small = resample(d, epoch)
        ids = get_partitions_orig(n, C, P, R, 1, 1, 0)
        if algo != "none":
            ids = np.where(ids == -1, -1, get_shuffle(algo, units, C, seed, epoch, block)[ids])
        ids = np.where(ids == -1, -1, small[ids])
    except Exception:
        print(-3, file=out)
        continue
    for rank in ids.reshape(P * R, -1):
        print(*rank[rank != -1], file=out, end=" ")
        print(-1, file=out)
    print(-2, file=out)
)py";
  std::ofstream(dir / "epochs.py") << epochs_in_python;
  std::ofstream(dir / "nothing").close();
  const std::string probe =
      (dir / "epochs.py").string() + " " + (dir / "nothing").string() + " " + (dir / "out").string();
  const std::string python = penstock_test::python_for(probe);
  if (!penstock_test::have_program("MosaicML Streaming and numpy", python + " " + probe)) return;
  const std::string program = python + " " + (dir / "epochs.py").string() + " ";
  struct one_case {
    ps::mosaic_options o;
    ps::mosaic_sampling sampling;
    numbers sizes;
  };
  constexpr ps::mosaic_algorithm algorithms[] = {ps::mosaic_algorithm::py1e, ps::mosaic_algorithm::py1br,
                                                 ps::mosaic_algorithm::py1s, ps::mosaic_algorithm::py2s,
                                                 ps::mosaic_algorithm::naive};
  ps::rng random(15, 0, 0);
  std::vector<one_case> cases;
  std::ofstream list(dir / "list");
  list.precision(17);
  for (int i = 0; i < 1000; ++i) {
    one_case made{.o = {.num_canonical_nodes = 1 + random.below(4),
                        .ranks_per_node = 1 + random.below(5),
                        .shuffle = random.chance(0.7),
                        .shuffle_algo = algorithms[random.below(5)],
                        .shuffle_seed = random.chance(0.5) ? 9176 : random() >> 20,
                        .shuffle_block_size = 1 + random.below(random.chance(0.1) ? 2 : 100),
                        .epoch = random.below(20)},
                  .sampling = {.epoch_size = random.chance(0.5) ? 1 + random.below(400) : 0,
                               .method = random.chance(0.7) ? ps::mosaic_sampling_method::balanced
                                                            : ps::mosaic_sampling_method::fixed,
                               .granularity = 1 + random.below(6)},
                  .sizes = {}};
    made.o.physical_nodes = made.o.num_canonical_nodes;
    const std::uint64_t relative = random.below(3), large = i % 500 == 0 ? 30'000 : 0;
    // In some cases more streams than numpy sums one by one.
    const std::uint64_t streams = 1 + random.below(i % 10 == 0 ? 150 : 6);
    for (std::uint64_t s = 0; s < streams; ++s) {
      ps::mosaic_stream one{.shards = 1 + random.below(4)};
      if (relative == 1) one.proportion = random.uniform(0, 1);
      if (relative == 2 && made.sampling.epoch_size == 0) {
        if (random.chance(0.4))
          one.repeat = random.uniform(0, 3);
        else if (random.chance(0.6))
          one.choose = random.below(100);
      }
      for (std::uint64_t k = 0; k < one.shards; ++k) made.sizes.push_back(1 + random.below(40) + large);
      made.sampling.streams.push_back(one);
    }
    if (large != 0 && made.sampling.epoch_size != 0) made.sampling.epoch_size *= 200;
    list << (made.o.shuffle ? ps::to_string(made.o.shuffle_algo) : "none") << " "
         << (made.sampling.method == ps::mosaic_sampling_method::balanced ? "balanced" : "fixed");
    for (const std::uint64_t number :
         {made.o.num_canonical_nodes, made.o.physical_nodes, made.o.ranks_per_node, made.o.shuffle_seed,
          made.o.epoch, made.o.shuffle_block_size, made.sampling.epoch_size, made.sampling.granularity,
          streams})
      list << " " << number;
    for (const ps::mosaic_stream& one : made.sampling.streams) {
      list << " " << one.shards << " " << (one.proportion ? 1 : one.repeat ? 2 : one.choose ? 3 : 0) << " ";
      if (one.choose)
        list << *one.choose;
      else
        list << one.proportion.value_or(one.repeat.value_or(0));
    }
    for (const std::uint64_t size : made.sizes) list << " " << size;
    list << "\n";
    cases.push_back(std::move(made));
  }
  list.close();
  const auto ran =
      penstock_test::run_program(program + (dir / "list").string() + " " + (dir / "out").string());
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  std::ifstream out(dir / "out");
  int refused = 0;
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
    const ps::mosaic_resampled_stage stage = ps::mosaic_resampled(one.o, one.sampling);
    INFO(stage.describe() << ", shards " << one.sizes.size());
    if (failed) {  // Streaming has no empty epochs, and py1e none with empty nodes
      ++refused;
      continue;
    }
    const auto made = stage.make(shard_sizes(one.sizes));
    const numbers all = ids_of(made, 0);
    std::vector<numbers> ours(static_cast<std::size_t>(made.lanes()));
    for (std::size_t p = 0; p < all.size(); ++p) ours[p % ours.size()].push_back(all[p]);
    CHECK(ours == theirs);
  }
  CHECK(refused < 60);
}
