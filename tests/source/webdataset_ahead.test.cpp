// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Where samples are read in another order, their index entries and bytes are looked up and prefetched ahead.
// That changes nothing: not the samples, nor what becomes of bad ones.

#include <penstock/codec/integer.hpp>
#include <penstock/core/random.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;
using penstock_test::raw_tar;

namespace webdataset_ahead_test {

static_assert(ps::looks_ahead<ps::webdataset<ps::file>::reader> &&
                  ps::looks_ahead<ps::webdataset<ps::mapped_file>::reader> &&
                  !ps::looks_ahead<ps::webdataset<ps::memory_files>::reader>,
              "who looks ahead is told by the session");

constexpr int shards = 3, per_shard = 1500;

/// Shards above 1 MiB, which `file` maps; one more is empty. Each sample has two members, and every hundredth
/// number is not one.
std::vector<std::string> write(const penstock_test::temp_dir& dir) {
  std::vector<std::string> names;
  for (int shard = 0; shard < shards; ++shard) {
    raw_tar tar;
    for (int i = 0; i < per_shard; ++i) {
      const std::string number = std::to_string(shard * per_shard + i);
      tar.member(number + ".txt", std::string(static_cast<std::size_t>(i % 7) * 300, 'x'));
      tar.member(number + ".cls", i % 100 == 50 ? "bad" : number);
    }
    names.push_back((dir / ("s-" + std::to_string(shard) + ".tar")).string());
    tar.end().save(names.back());
  }
  names.insert(names.begin() + 1, (dir / "empty.tar").string());
  raw_tar().end().save(names[1]);
  return names;
}

template <class Storage>
std::vector<std::int64_t> read(Storage where, const auto& bad, unsigned workers) {
  auto run = (ps::webdataset(where) | ps::decode<ps::field<"cls", ps::integer>> | ps::shuffle(ps::seed(5)) |
              bad | ps::batch(32) | ps::workers(workers))
                 .open();
  std::vector<std::int64_t> all;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch)
    for (auto&& b : run.epoch(epoch))
      for (const std::int64_t number : ps::get<"cls">(b)) all.push_back(number);
  return all;
}

TEST_CASE("source/webdataset_ahead: a reader gives the sample it is asked for, announced or not") {
  const penstock_test::temp_dir dir;
  const auto data = ps::webdataset(ps::file(write(dir), {.access = ps::file_access::map}));
  const auto reader = data.connect();
  decltype(data.connect())::worker worker;
  ps::rng random(9, 0, 0);
  std::vector<ps::position> order(shards * per_shard);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = {0, i};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::size_t wrong = 0;
  const auto check = [&](ps::position p) {
    reader.evaluate(p, worker, [&](const auto& sample) {
      wrong += sample.key() == std::to_string(p.index) ? 0 : 1;
      wrong += sample.size() == 2 && sample.member(0).size() == p.index % per_shard % 7 * 300 ? 0 : 1;
    });
  };
  for (std::size_t first = 0; first < order.size(); first += 100) {  // more than are looked up at once
    const auto next = std::span(order).subspan(first, std::min<std::size_t>(100, order.size() - first));
    reader.look_ahead(next, worker);
    for (std::size_t i = 0; i < next.size(); ++i) {
      reader.prefetch_ahead(i + 4, worker, 1);
      if (i % 10 == 3) check(order[random.below(order.size())]);  // one that was not announced
      if (i % 10 != 7) check(next[i]);                            // one that is left out
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("source/webdataset_ahead: the same samples from mapped and read files, with bad ones among them") {
  const penstock_test::temp_dir dir;
  const std::vector<std::string> names = write(dir);
  const auto check = [&](const auto& bad) {
    const auto expected = read(ps::file(names, {.access = ps::file_access::read}), bad, 0);
    CHECK(expected.size() == std::size_t{2} * shards * per_shard);
    for (const unsigned workers : {0u, 1u, 3u}) {
      CHECK(read(ps::file(names, {.access = ps::file_access::map}), bad, workers) == expected);
      CHECK(read(ps::mapped_file(names), bad, workers) == expected);
    }
  };
  check(ps::bad_samples::skip(90));
  check(ps::bad_samples::replace(90));
}

}  // namespace webdataset_ahead_test
