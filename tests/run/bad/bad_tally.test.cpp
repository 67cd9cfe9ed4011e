// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/bad/bad_tally.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/stage/batch.hpp>

#include "support/bad_samples.hpp"
#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/temp_dir.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace bad_tally_test {

namespace ps = penstock;
namespace bad = penstock::bad_samples;

namespace {

ps::bad_slot slot(std::uint64_t index) {
  return {0, {2, index}, ps::error(ps::errc::checksum, "number " + std::to_string(index))};
}
const auto nowhere = [](void*, ps::position) { return ps::sample_place{}; };

}  // namespace

TEST_CASE("run/bad_tally: bad samples count when they are committed, and the budget is per epoch") {
  const auto plan = bad_samples_test::broken_source() | ps::shard(1, 2) | bad::skip(3) | ps::batch(2);
  ps::bad_tally<std::remove_cv_t<decltype(plan)>> tally(plan, 20);
  tally.see(5, slot(1));
  tally.see(5, slot(2));
  CHECK(tally.pending());
  CHECK(tally.count(5) == 0);
  tally.drop();
  CHECK(!tally.pending());
  tally.see(5, slot(1));
  tally.see(5, slot(2));
  tally.commit(5, nowhere, nullptr);
  CHECK(tally.count(5) == 2);
  CHECK(tally.count(6) == 0);
  tally.see(5, slot(3));
  CHECK_THROWS_WITH(
      tally.see(5, slot(4)),
      penstock_test::contains("bad_samples::skip(3): rank 1 has spent its budget of 3 bad samples in "
                              "epoch 5, and this is number 4; fix the data or raise the budget: "
                              "number 4"));
  tally.drop();
  for (std::uint64_t i = 0; i < 3; ++i) tally.see(6, slot(i));
  tally.commit(6, nowhere, nullptr);
  CHECK(tally.count(6) == 3);
  CHECK(tally.count(5) == 0);
  CHECK(tally.counts(6).skipped == 5);
  CHECK(tally.counts(6).in_epoch == 3);
  tally.restore(9, 3);
  CHECK_THROWS_WITH(tally.see(9, slot(0)), penstock_test::contains("number 4"));
  // A plan without a policy has no tally.
  const auto without = bad_samples_test::broken_source() | ps::batch(2);
  using nothing = ps::bad_tally<std::remove_cv_t<decltype(without)>>;
  CHECK(std::is_empty_v<nothing>);
  CHECK(nothing::counts(4).epoch == 4);
}

TEST_CASE("run/bad_tally: of ranks with identical batches one writes the ledger") {
  const penstock_test::temp_dir folder;
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    const auto plan = bad_samples_test::broken_source() | ps::shard(rank, 4, ps::replicate(2)) |
                      bad::skip(3, bad::ledger((folder / "bad.jsonl").string())) | ps::batch(2);
    ps::bad_tally<std::remove_cv_t<decltype(plan)>> tally(plan, 20);
    tally.see(0, slot(rank / 2));
    tally.commit(0, nowhere, nullptr);
    CHECK(tally.count(0) == 1);
  }
  using bad_samples_test::lines_in;
  using bad_samples_test::text_of;
  CHECK(lines_in(text_of(folder / "bad.rank0.jsonl")) == 1);
  CHECK(lines_in(text_of(folder / "bad.rank1.jsonl")) == 1);
}

TEST_CASE("run/bad_tally: a share of a count is rounded up") {
  CHECK(ps::share_of_bad(0, 3, 8) == 0);
  CHECK(ps::share_of_bad(7, 4, 4) == 7);
  CHECK(ps::share_of_bad(7, 1, 4) == 2);
  CHECK(ps::share_of_bad(8, 1, 4) == 2);
  CHECK(ps::share_of_bad(3, 4, 1) == 12);
  CHECK(ps::share_of_bad(1, 1, 1000) == 1);
  const auto maximum = std::numeric_limits<std::uint64_t>::max();
  CHECK(ps::share_of_bad(maximum, 3, 2) == maximum);
}

TEST_CASE("run/bad_tally: a merged elastic state has the mean of its ranks, rounded up") {
  std::vector<ps::state> all(3);
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    all[rank].world = 3;
    all[rank].rank = rank;
    all[rank].elastic = 1;
    all[rank].bad = rank == 1 ? 4 : 0;
  }
  CHECK(ps::merge(all).bad == 2);
  for (auto& one : all) one.elastic = 0;
  CHECK(ps::merge(all).ranks[1].bad == 4);
}

TEST_CASE("run/bad_tally: a line holds all known facts") {
  const ps::world part(3, 4);
  const auto bare = penstock_test::json::parse(ps::ledger_line(slot(7), part, {}));
  CHECK(bare["rank"].number == 3);
  CHECK(bare["epoch"].number == 2);
  CHECK(bare["index"].number == 7);
  CHECK(bare["code"].text == "checksum");
  CHECK(bare["reason"].text == "number 7");
  CHECK(bare["done"].text == "skipped");
  CHECK(!bare.has("source"));
  CHECK(!bare.has("key"));
  CHECK(!bare.has("substitute"));
  auto one = slot(7);
  one.what.in_stage("decode<\"x\">").in_file("f\x01").for_key("mine").at_offset(12);
  one.substitute = ps::position{2, 9};
  const auto full =
      penstock_test::json::parse(ps::ledger_line(one, part, {107, "k7", "file"}, {109, "k9", "file"}));
  CHECK(full["source"].number == 107);
  CHECK(full["key"].text == "mine");
  CHECK(full["file"].text == "f\x01");
  CHECK(full["offset"].number == 12);
  CHECK(full["stage"].text == "decode<\"x\">");
  CHECK(full["done"].text == "replaced");
  CHECK(full["substitute"]["index"].number == 9);
  CHECK(full["substitute"]["source"].number == 109);
  CHECK(full["substitute"]["key"].text == "k9");
  CHECK(full["substitute"]["file"].text == "file");
}

}  // namespace bad_tally_test
