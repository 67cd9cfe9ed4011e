// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/batch.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/raw_tar.hpp"

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/batch: the tail is kept, dropped or padded") {
  const auto source = ps::from(first_ints(10));
  CHECK(batches_of(source | ps::batch(4)) ==
        std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(batches_of(source | ps::batch(4, ps::tail::drop)) ==
        std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}});
  const auto padded = source | ps::batch(4, ps::tail::pad);
  CHECK(batches_of(padded) == std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 0, 0}});
  auto run = padded.open();
  CHECK(run.steps_per_epoch() == 3);
  for (auto&& b : run) {
    const auto mask = b.valid();
    CHECK(mask.size() == 4);
    CHECK(static_cast<std::size_t>(std::accumulate(mask.begin(), mask.end(), 0)) == b.valid_size());
    CHECK(b.global_size() == (b.step() == 2 ? 2 : 4));
  }
}

TEST_CASE("stage/batch: all ranks get equally many batches, and together they get all samples once") {
  for (const int n : {0, 1, 5, 12, 37, 100})
    for (std::uint64_t world = 1; world <= 7; ++world) {
      std::vector<int> seen;
      std::size_t steps = 0;
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        const auto mine = batches_of(ps::from(first_ints(n)) | ps::shard(rank, world) | ps::batch(3), 2);
        if (rank == 0) steps = mine.size();
        REQUIRE(mine.size() == steps);
        for (const auto& b : mine) seen.insert(seen.end(), b.begin(), b.end());
      }
      std::sort(seen.begin(), seen.end());
      REQUIRE(seen == first_ints(n));
    }
}

TEST_CASE("stage/batch: arrays of equal shape are stacked, others are an error at their position") {
  std::vector<std::vector<float>> rows(10, std::vector<float>(6));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i][0] = static_cast<float>(i);
  for (auto&& b : (ps::from(rows) | ps::batch(4)).epoch(0)) {
    const auto view = b.values();
    CHECK(view.shape() == ps::extents(b.size(), 6));
    for (std::size_t i = 0; i < b.size(); ++i)
      CHECK(view[i].data()[0] == static_cast<float>(b.step() * 4 + i));
  }
  rows[6].resize(5);
  std::size_t delivered = 0;
  const auto said = error_of([&] {
    for (auto&& b : (ps::from(rows) | ps::batch(4)).epoch(0)) delivered += b.size();
  });
  CHECK(delivered == 4);
  CHECK_THAT(said, contains("cannot stack a value of shape (5,) with one of shape (6,)"));
  CHECK_THAT(said, contains("position 0:6"));
}

TEST_CASE("stage/batch: a shape that does not match the others is an error of its sample, by file and key") {
  penstock_test::raw_tar shards[2];
  for (int i = 0; i < 12; ++i)
    shards[i / 6].member("s" + std::to_string(i) + ".bin", i == 7 ? "123" : "1234");
  const auto samples = ps::webdataset(ps::memory_files()
                                          .add("0.tar", ps::bytes_of(shards[0].end().bytes))
                                          .add("1.tar", ps::bytes_of(shards[1].end().bytes))) |
                       ps::fields<"bin">;
  const auto failure_of = [](const auto& plan) -> std::optional<ps::error> {
    try {
      for (auto&& b : plan.epoch(0)) static_cast<void>(b);
    } catch (const ps::error& e) {
      return e;
    }
    return {};
  };
  const auto all = [](const auto&) { return true; };
  // with some seeds it is the first of its batch
  for (const unsigned seed : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
    const auto data = samples | ps::shuffle(ps::seed(seed));
    const unsigned workers = seed % 3;
    for (const auto& e :
         {failure_of(data | ps::batch(6) | ps::workers(workers)),
          failure_of(data | ps::filter(all) | ps::batch(6) | ps::workers(workers)),
          failure_of(data | ps::batch(12, ps::tail::pad) | ps::take(1) | ps::workers(workers))}) {
      REQUIRE(e.has_value());
      CHECK((e->code() == ps::errc::shape));
      CHECK(e->file() == "1.tar");
      CHECK(e->key() == "s7");
      CHECK(e->at().has_value());
    }
  }
}

TEST_CASE("stage/batch: shapes may change from batch to batch") {
  std::vector<std::vector<int>> rows;
  for (int i = 0; i < 12; ++i) rows.emplace_back(static_cast<std::size_t>(i / 4 + 1), i);
  std::vector<std::string> shapes;
  for (auto&& b : (ps::from(rows) | ps::batch(4) | ps::workers(1)).epoch(0)) {
    shapes.push_back(to_string(b.values().shape()));
    for (std::size_t i = 0; i < 4; ++i) CHECK(b.values()[i].data()[0] == static_cast<int>(b.step() * 4 + i));
  }
  CHECK(shapes == std::vector<std::string>{"(4, 1)", "(4, 2)", "(4, 3)"});
}

TEST_CASE("stage/batch: ragged and padded") {
  const std::vector<std::string> words{"a", "", "abc", "de"};
  for (auto&& b : (ps::from(words) | ps::decode<ps::text> | ps::batch(4, ps::ragged)).epoch(0)) {
    const auto view = b.values();
    CHECK(std::vector<std::uint64_t>(view.offsets().begin(), view.offsets().end()) ==
          std::vector<std::uint64_t>{0, 1, 1, 4, 6});
    CHECK(std::string(view.values().begin(), view.values().end()) == "aabcde");
    CHECK(std::string(view[2].begin(), view[2].end()) == "abc");
  }
  for (auto&& b : (ps::from(words) | ps::decode<ps::text> | ps::batch(4, ps::pad_to_longest)).epoch(0)) {
    const auto view = b.values();
    CHECK(view.shape() == ps::extents(4, 3));
    CHECK(std::vector<std::uint64_t>(view.lengths().begin(), view.lengths().end()) ==
          std::vector<std::uint64_t>{1, 0, 3, 2});
    const auto mask = view.mask().flat();
    CHECK(std::vector<int>(mask.begin(), mask.end()) == std::vector<int>{1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0});
    CHECK(std::string(view[3].begin(), view[3].end()) == "de");
    CHECK(view.values()[0].data()[1] == '\0');
  }
}

TEST_CASE("stage/batch: lengths are padded to a multiple") {
  const std::vector<std::string> words{"a", "", "abc", "de", "abcd", "abcde", "", ""};
  const auto shown = [&](auto policy) {
    std::vector<ps::extents> shapes;
    for (auto&& b : (ps::from(words) | ps::decode<ps::text> | ps::batch(2, policy)).epoch(0)) {
      const auto view = b.values();
      shapes.push_back(view.shape());
      CHECK(view.mask().shape() == view.shape());
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string& word = words[static_cast<std::size_t>(b.step()) * 2 + i];
        CHECK(std::string(view[i].begin(), view[i].end()) == word);
        const auto row = view.values()[i];
        for (std::size_t c = word.size(); c < row.size(); ++c) CHECK(row.data()[c] == '\0');
        for (std::size_t c = 0; c < row.size(); ++c)
          CHECK(view.mask()[i].data()[c] == (c < word.size() ? 1 : 0));
      }
    }
    return shapes;
  };
  using shapes = std::vector<ps::extents>;
  CHECK(shown(ps::pad_to_multiple<4>) ==
        shapes{ps::extents(2, 4), ps::extents(2, 4), ps::extents(2, 8), ps::extents(2, 0)});
  CHECK(shown(ps::pad_to_multiple<3>) ==
        shapes{ps::extents(2, 3), ps::extents(2, 3), ps::extents(2, 6), ps::extents(2, 0)});
  CHECK(shown(ps::pad_to_multiple<1>) == shown(ps::pad_to_longest));
  const auto rows = ps::generated(3, [](std::uint64_t i) {
    return ps::record<ps::field<"x", std::vector<int>>, ps::field<"y", int>>(
        std::vector<int>(static_cast<std::size_t>(i + 1), 7), 1);
  });
  for (auto&& b : rows | ps::batch(3, ps::collate<"x">(ps::pad_to_multiple<64>)))
    CHECK(ps::get<"x">(b).shape() == ps::extents(3, 64));
}

TEST_CASE("stage/batch: a small file cannot claim an arbitrary number of empty rows") {
  const auto file = [](std::uint64_t rows) {
    const auto bytes = ps::npy_bytes<std::uint8_t>(ps::extents(rows, 0), {});
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const auto padded = [](const std::vector<std::string>& files, auto... policy) {
    const auto arrays = ps::from(files) | ps::decode<ps::npy<std::uint8_t>>;
    return (arrays | ... | policy) | ps::batch(4, ps::pad_to_longest);
  };
  const std::vector<std::string> fair{file(3), file(65'536)};
  for (auto&& b : padded(fair)) CHECK(b.values().shape() == ps::extents(2, 65'536, 0));
  for (const std::uint64_t rows : {65'537ull, 1ull << 62}) {
    const std::vector<std::string> files{file(3), file(rows), file(5)};
    const auto said = error_of([&] {
      for (auto&& b : padded(files)) static_cast<void>(b);
    });
    CHECK_THAT(said, contains("(" + std::to_string(rows) + ", 0) has no elements, and more than 65536 rows"));
    for (auto&& b : padded(files, ps::bad_samples::skip(1))) {
      CHECK(b.values().shape() == ps::extents(3, 5, 0));
      CHECK(b.values().lengths()[1] == 0);
    }
  }
}

TEST_CASE("stage/batch: each field may have a policy of its own") {
  using sample = ps::record<ps::field<"txt", std::string>, ps::field<"xy", std::array<int, 2>>>;
  const std::vector<sample> samples{sample("one", std::array{1, 2}), sample("three", std::array{3, 4})};
  for (auto&& b :
       (ps::from(samples) | ps::batch(2, ps::tail::keep, ps::collate<"txt">(ps::ragged))).epoch(0)) {
    CHECK(ps::get<"txt">(b)[1].size() == 5);
    CHECK(ps::get<"xy">(b).shape() == ps::extents(2, 2));
    CHECK(ps::get<"xy">(b)[1].data()[0] == 3);
  }
}

TEST_CASE("stage/batch: a batch of no samples is refused") {
  CHECK_THAT(error_of([] { (void)ps::batch(0); }), contains("batch(0)"));
}
