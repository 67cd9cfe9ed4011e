// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/inspection/describe.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/packed_texts.hpp"

#include <map>
#include <set>

namespace pack_test {

namespace ps = penstock;
using namespace packed_texts;

TEST_CASE("packed rows have every token once, and little padding") {
  auto loader =
      texts(500) | ps::shuffle(ps::seed(3)) | ps::pack<"tokens", "loss">(&length_of, 64) | ps::batch(4);
  std::size_t rows = 0;
  const std::vector<seen> all = see_epoch(loader);
  const auto found = check_tokens(all, 64);
  std::uint64_t sum = 0;
  CHECK(found.size() == 500);
  for (const auto& [label, tokens] : found) {
    CHECK(tokens == length_of(label));
    sum += tokens;
  }
  for (const seen& one : all) rows += one.rows;
  CHECK(rows <= (sum + 63) / 64 + 3);  // hardly a place is left over
  CHECK(see_epoch(loader, 1) != all);
  CHECK(see_epoch(loader, 0) == all);
}

TEST_CASE("what a batch of packed rows has") {
  auto loader = texts(300) | ps::shuffle(ps::seed(3)) | ps::pack<"tokens", "loss">(&length_of, 64) |
                ps::batch(4) | ps::workers(2);
  for (auto&& b : loader.epoch(0)) {
    const auto view = ps::get<"tokens">(b);
    CHECK(view.shape() == ps::extents(b.size(), 64));
    CHECK(b.packing().row_count() == b.size());
    CHECK(b.valid_size() == view.documents().size());
    CHECK(b.positions().size() == view.documents().size());
    const auto next = ps::labels<"tokens">(b), answers = ps::labels<"tokens", "loss">(b);
    const auto ids = view.document_ids();
    const auto labels = ps::get<"label">(b);
    REQUIRE(next.size() == view.size());
    for (std::size_t i = 0; i < next.size(); ++i) {
      const bool last = ids[i] < 0 || i % 64 == 63 || ids[i + 1] != ids[i];
      CHECK(next[i] == (last ? -100 : view.flat()[i + 1]));
      const bool counts = ids[i] >= 0 && labels[static_cast<std::size_t>(ids[i])] % 2 == 1;
      CHECK(answers[i] == (counts ? next[i] : -100));
    }
  }
}

TEST_CASE("rows are the same on any number of ranks and workers") {
  const auto base = texts(700) | ps::shuffle(ps::seed(5));
  const auto packed = ps::pack<"tokens">(&length_of, 64, {.window = 100});
  std::vector<tokens> expected;
  for (const seen& one : see_epoch(base | packed | ps::global_batch(24)))
    for (const tokens& row : rows_of(one, 64)) expected.push_back(row);
  for (const std::uint64_t world : {2u, 3u, 5u, 12u}) {
    std::vector<std::vector<seen>> ranks;
    for (std::uint64_t rank = 0; rank < world; ++rank)
      ranks.push_back(
          see_epoch(base | ps::shard(rank, world) | packed | ps::global_batch(24) | ps::workers(rank % 3)));
    std::vector<tokens> rows;
    for (std::size_t step = 0; step < ranks[0].size(); ++step)
      for (const auto& rank : ranks) {
        REQUIRE(rank.size() == ranks[0].size());
        for (const tokens& row : rows_of(rank[step], 64)) rows.push_back(row);
      }
    CHECK(rows == expected);
  }
}

TEST_CASE("rows do not change with the limits of a run that works") {
  const auto plan = texts(900) | ps::shuffle(ps::seed(5)) |
                    ps::pack<"tokens">(&length_of, 64, {.window = 70}) | ps::batch(4) | ps::workers(3);
  const std::vector<seen> expected = see_epoch(plan);
  ps::rng moves(3, 0, 0);
  std::vector<seen> found;
  auto run = plan.open();
  for (auto&& b : run.epoch(0)) {
    found.push_back(see(b));
    run.adjust({.workers = 1 + static_cast<std::int64_t>(moves.below(3)),
                .depth = 1 + static_cast<std::int64_t>(moves.below(4))});
  }
  CHECK(found == expected);
}

TEST_CASE("a run of packed rows resumes, on other numbers of ranks too") {
  const auto base = texts(900) | ps::shuffle(ps::seed(5));
  const auto packed = ps::pack<"tokens">(&length_of, 64, {.window = 70});
  const auto plan = base | packed | ps::global_batch(12);
  const std::vector<seen> all = see_epoch(plan);
  for (std::size_t stop = 0; stop <= all.size(); ++stop) {
    auto run = plan.open();
    for (std::size_t i = 0; i < stop; ++i) (void)run.next();
    const auto where = run.state();
    auto again = plan.open(where);
    if (stop < all.size()) CHECK(see(*again.next()) == all[stop]);
    std::vector<tokens> rows, expected;
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      auto other = (base | ps::shard(rank, 3) | packed | ps::global_batch(12)).open(where);
      if (stop == all.size()) continue;
      for (const tokens& row : rows_of(see(*other.next()), 64)) rows.push_back(row);
    }
    if (stop < all.size()) CHECK(rows == rows_of(all[stop], 64));
  }
  // A batch of 4 rows on each of 3 ranks is a step of the same rows, and one of 6 stands twice as far.
  auto run = plan.open();
  for (int i = 0; i < 4; ++i) (void)run.next();
  CHECK_NOTHROW((base | ps::shard(1, 3) | packed | ps::batch(4)).open(run.state()));
  CHECK_NOTHROW((base | packed | ps::batch(24)).open(run.state()));
  CHECK_THROWS_WITH((base | packed | ps::batch(10)).open(run.state()), Catch::Contains("samples"));
}

TEST_CASE("long samples are cut, split, left out or refused") {
  const auto base = texts(400) | ps::shuffle(ps::seed(1));
  std::uint64_t longer = 0;
  for (std::uint64_t i = 0; i < 400; ++i) longer += length_of(i) > 25 ? 1 : 0;
  REQUIRE(longer > 100);
  SECTION("truncate") {
    const auto all = check_tokens(
        see_epoch(base | ps::pack<"tokens">(&length_of, 25, {.overlong = ps::overlong::truncate}) |
                  ps::batch(3)),
        25);
    CHECK(all.size() == 400);
    for (const auto& [label, count] : all) CHECK(count == std::min<std::uint64_t>(25, length_of(label)));
  }
  SECTION("split") {
    const auto plan =
        base | ps::pack<"tokens">(&length_of, 25, {.overlong = ps::overlong::split}) | ps::batch(3);
    const auto all = check_tokens(see_epoch(plan), 25);
    CHECK(all.size() == 400);
    for (const auto& [label, count] : all) CHECK(count == length_of(label));
    const auto proof = ps::prove(plan, std::vector<ps::topology>{{1, 1}, {1, 3}});
    CHECK(proof.violations == std::vector<std::string>());
    CHECK(proof.topologies.at(0).delivered == 400);
    CHECK(proof.topologies.at(0).dropped == 0);
  }
  SECTION("drop") {
    const auto plan =
        base | ps::pack<"tokens">(&length_of, 25, {.overlong = ps::overlong::drop}) | ps::batch(3);
    const auto all = check_tokens(see_epoch(plan), 25);
    CHECK(all.size() == 400 - longer);
    const auto proof = ps::prove(plan, std::vector<ps::topology>{{1, 1}, {1, 3}});
    CHECK(proof.violations == std::vector<std::string>());
    CHECK(proof.topologies.at(0).dropped == longer);
  }
  SECTION("refuse") {
    CHECK_THROWS_WITH((base | ps::pack<"tokens">(&length_of, 25) | ps::batch(3)).open(),
                      Catch::Contains("tokens, but a row holds 25") && Catch::Contains("overlong::split"));
  }
}

TEST_CASE("rows in order are the epoch in order") {
  const auto plan =
      texts(200) | ps::pack<"tokens">(&length_of, 64, {.how = ps::packing::in_order}) | ps::batch(2);
  std::uint64_t next = 0;
  for (const seen& one : see_epoch(plan))
    for (const std::uint64_t label : one.labels) CHECK(label == next++);
  CHECK(next == 200);
}

TEST_CASE("samples are aligned, and rows hold at most so many") {
  const auto plan = texts(300) | ps::shuffle(ps::seed(9)) |
                    ps::pack<"tokens">(&length_of, 64, {.align = 8, .max_samples = 3, .pad = 0}) |
                    ps::batch(4);
  const std::vector<seen> all = see_epoch(plan);
  CHECK(check_tokens(all, 64).size() > 290);
  for (const seen& one : all) {
    std::map<std::uint32_t, int> in_row;
    for (const ps::packed_document& d : one.documents) {
      CHECK(d.begin % 8 == 0);
      CHECK(d.padded % 8 == 0);
      CHECK(d.padded - d.length < 8);
      ++in_row[d.row];
    }
    for (const auto& [row, samples] : in_row) CHECK(samples <= 3);
  }
}

TEST_CASE("padding has the value that was asked for, and comes last") {
  auto loader = texts(37) | ps::pack<"tokens">(&length_of, 128, {.pad = -7}) | ps::batch(64, ps::tail::pad);
  for (auto&& b : loader.epoch(0)) {
    CHECK(b.size() == 64);
    const auto view = ps::get<"tokens">(b);
    const auto mask = view.mask();
    for (std::size_t i = 0; i < mask.size(); ++i) CHECK((view.flat()[i] == -7) == (mask[i] == 0));
  }
}

TEST_CASE("the first field has the value in padding, and others 0") {
  auto loader = texts(37) | ps::pack<"tokens", "loss">(&length_of, 128, {.pad = 50'256}) | ps::batch(64);
  std::size_t padding = 0;
  for (auto&& b : loader.epoch(0)) {
    const auto mask = b.packing().mask();
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] != 0) continue;
      ++padding;
      CHECK(ps::get<"tokens">(b).flat()[i] == 50'256);
      CHECK(ps::get<"loss">(b).flat()[i] == 0);
    }
  }
  CHECK(padding != 0);
  CHECK_THROWS_WITH(
      see_epoch(texts(37) | ps::pack<"loss", "tokens">(&length_of, 128, {.pad = 256}) | ps::batch(64)),
      Catch::Contains(".pad = 256 is no value of tokens of 8 bits"));
}

TEST_CASE("lengths that are not those of samples are an error") {
  auto wrong = [](std::uint64_t i) { return length_of(i) + (i == 150 ? 1u : 0u); };
  const auto plan = texts(300) | ps::pack<"tokens">(wrong, 64) | ps::batch(4);
  CHECK_THROWS_WITH(see_epoch(plan),
                    Catch::Contains("the sample has " + std::to_string(length_of(150)) + " tokens") &&
                        Catch::Contains("its length is " + std::to_string(length_of(150) + 1)));
  const ps::sample_list too_few(std::vector<std::uint32_t>(299, 1));
  CHECK_THROWS_WITH((texts(300) | ps::pack<"tokens">(too_few, 64) | ps::batch(4)).open(),
                    Catch::Contains("299"));
  auto throws = [](std::uint64_t i) -> std::uint64_t {
    if (i == 250) throw ps::error(ps::errc::missing, "no length");
    return length_of(i);
  };
  auto late = texts(300) | ps::pack<"tokens">(throws, 64) | ps::batch(4);
  CHECK_THROWS_WITH(late.open(), Catch::Contains("the length of sample 250"));
}

TEST_CASE("what pack does is described") {
  const auto plan =
      texts(30) | ps::pack<"tokens">(&length_of, 64, {.align = 8, .max_samples = 3}) | ps::batch(2);
  const std::string text = ps::describe(plan);
  CHECK_THAT(text,
             Catch::Contains("pack(rows of 64, best_fit in windows of 10000, overlong refuse, aligned to 8, "
                             "at most 3 samples in a row)"));
  CHECK_THAT(text, Catch::Contains("field tokens: written into its row\n"));
  CHECK_THAT(text, Catch::Contains("field label: written straight into the batch\n"));
}

TEST_CASE("impossible rows are refused in one sentence") {
  const auto base = texts(30);
  const auto opened = [&](std::uint64_t capacity, const ps::pack_options& options) {
    return (base | ps::pack<"tokens">(&length_of, capacity, options) | ps::batch(2)).open();
  };
  CHECK_THROWS_WITH(opened(0, {}), Catch::Contains("a row of pack has 0 tokens"));
  CHECK_THROWS_WITH(opened(std::uint64_t{1} << 31, {}), Catch::Contains("fewer than 2^31 tokens"));
  CHECK_THROWS_WITH(opened(64, {.window = 0}), Catch::Contains(".window is 0"));
  CHECK_THROWS_WITH(opened(64, {.align = 0}), Catch::Contains(".align of pack is at least 1"));
  CHECK_THROWS_WITH(opened(64, {.align = 10}), Catch::Contains("no multiple of .align"));
  CHECK_THROWS_WITH(
      (base | ps::pack<"tokens">(&length_of, 64) | ps::context_parallel(2, 0) | ps::batch(2)).open(),
      Catch::Contains(".align = 4"));
  CHECK_THROWS_WITH(ps::context_parallel(2, 2), Catch::Contains("is no part of a row"));
}

TEST_CASE("a bad sample's places are padding") {
  const auto bad = [](std::uint64_t i) {
    if (i % 10 == 3) throw ps::error(ps::errc::format, "bad");
    return text(sequence(i, length_of(i)), i, mask(length_of(i), std::uint8_t{1}));
  };
  auto loader = ps::generated(200, [](std::uint64_t i) { return i; }) | ps::map(bad) |
                ps::shuffle(ps::seed(3)) | ps::pack<"tokens">(&length_of, 64) | ps::bad_samples::skip(40) |
                ps::batch(4);
  std::set<std::uint64_t> found;
  for (auto&& b : loader.epoch(0)) {
    const auto view = ps::get<"tokens">(b);
    const auto ids = view.document_ids();
    const auto labels = ps::get<"label">(b);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0)
        CHECK(view.flat()[i] == 0);
      else
        CHECK(found.insert(labels[static_cast<std::size_t>(ids[i])]).second == (view.position_ids()[i] == 0));
    }
  }
  for (std::uint64_t i = 0; i < 200; ++i) CHECK(found.count(i) == (i % 10 == 3 || length_of(i) == 0 ? 0 : 1));
}

TEST_CASE("rows that grow") {
  const auto grows = [](ps::position at) -> std::uint64_t {
    return at.epoch == 0 && at.index < 3 ? 64 : 128;
  };
  const auto plan = texts(600) | ps::shuffle(ps::seed(3)) |
                    ps::pack<"tokens">(&length_of, grows, {.window = 10}) | ps::batch(4);
  std::vector<std::size_t> lengths;
  std::size_t samples = 0;
  for (auto&& b : plan.epoch(0)) {
    const auto view = ps::get<"tokens">(b);
    lengths.push_back(view.shape()[1]);
    samples += view.documents().size();
  }
  CHECK(samples == 600);
  CHECK(lengths[0] == 64);
  CHECK(lengths[1] == 64);
  CHECK(lengths.back() == 128);
  CHECK(std::is_sorted(lengths.begin(), lengths.end()));
  for (auto&& b : plan.epoch(1)) CHECK(ps::get<"tokens">(b).shape()[1] == 128);
}

TEST_CASE("a run of rows that grow resumes where steps have as many rows") {
  const auto grows = [](ps::position at) -> std::uint64_t { return at.index < 6 ? 64 : 128; };
  const auto base = texts(400) | ps::shuffle(ps::seed(3));
  // Rows of 4 and 8 samples, so that steps of other sizes begin after equally many samples, but after others.
  const auto packed = ps::pack([](std::uint64_t) { return 16u; }, grows, {.window = 96});
  const auto plan = base | packed | ps::global_batch(8);
  auto run = plan.open();
  for (int i = 0; i < 4; ++i) (void)run.next();
  CHECK_NOTHROW((base | ps::shard(1, 2) | packed | ps::global_batch(8)).open(run.state()));
  CHECK_NOTHROW((base | ps::shard(1, 2) | packed | ps::batch(4)).open(run.state()));
  CHECK_THROWS_WITH((base | packed | ps::batch(4)).open(run.state()), Catch::Contains("samples"));
  CHECK_THROWS_WITH((base | ps::shard(1, 2) | packed | ps::batch(2)).open(run.state()),
                    Catch::Contains("samples"));
  CHECK(
      ps::prove(base | packed | ps::batch(4), std::vector<ps::topology>{{1, 1}, {1, 2}}).violations.empty());
}

TEST_CASE("map_batch sees rows, also where all of them are padding") {
  const auto stretches = [](std::uint64_t i) { return tokens(i % 4, 1); };
  const auto base = texts(30) | ps::map([=](const text& t) {
                      return ps::record<ps::field<"tokens", tokens>, ps::field<"marks", tokens>>(
                          ps::get<"tokens">(t), stretches(ps::get<"label">(t)));
                    });
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const auto plan = base | ps::shard(rank, 2) | ps::pack<"tokens">(&length_of, 64) |
                      ps::batch(64, ps::tail::pad) | ps::map_batch([](auto& columns) {
                        const auto view = ps::get<"tokens">(columns);
                        CHECK(ps::get<"marks">(columns).size() == view.documents().size());
                        for (std::int32_t& token : view.flat()) token += 1;
                      });
    for (auto&& b : plan.epoch(0)) {
      const auto view = ps::get<"tokens">(b);
      CHECK(view.documents().empty() == (rank == 1));
      const auto mask = view.mask();
      for (std::size_t i = 0; i < mask.size(); ++i) CHECK((view.flat()[i] == 1) == (mask[i] == 0));
    }
  }
}

TEST_CASE("samples without names, and samples in rows by their cost alone") {
  const auto plain = ps::generated(100, [](std::uint64_t i) { return i; }) |
                     ps::map([](std::uint64_t i) { return sequence(i, length_of(i)); }) |
                     ps::pack(&length_of, 64) | ps::batch(4);
  std::size_t tokens_seen = 0, expected = 0;
  for (auto&& b : plain.epoch(0)) {
    CHECK(b.values().shape() == ps::extents(b.size(), 64));
    for (const std::int32_t token : b.values().flat()) tokens_seen += token != 0 ? 1 : 0;
  }
  for (std::uint64_t i = 0; i < 100; ++i) expected += length_of(i);
  CHECK(tokens_seen == expected);

  // Two tokens for each image of a sample, say.
  const auto cost = [](std::uint64_t i) { return length_of(i) + 2 * (i % 4); };
  std::set<std::uint64_t> found;
  for (auto&& b : (texts(200) | ps::shuffle(ps::seed(1)) | ps::pack(cost, 80) | ps::batch(2)).epoch(0)) {
    std::map<std::uint32_t, std::uint64_t> of_row;
    const auto documents = b.packing().documents();
    const auto labels = ps::get<"label">(b);
    const auto values = ps::get<"tokens">(b);  // ragged
    for (std::size_t i = 0; i < documents.size(); ++i) {
      CHECK(values[i].size() == length_of(labels[i]));
      CHECK(found.insert(labels[i]).second);
      of_row[documents[i].row] += cost(labels[i]);
    }
    for (const auto& [row, sum] : of_row) CHECK(sum <= 80);
  }
  CHECK(found.size() == 200);
}

}  // namespace pack_test
