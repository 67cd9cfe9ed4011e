// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/inspection/ledger_proof.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/bad_samples.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ledger_proof_test {

namespace ps = penstock;
namespace bad = penstock::bad_samples;

namespace {

const auto order = ps::shuffle(ps::seed(3));

/// The ledger lines of two ranks over two epochs of 40 samples, 8 of them broken.
template <class Policy, class... More>
std::vector<ps::bad_entry> written(Policy policy, const std::filesystem::path& folder, const More&... more) {
  std::vector<ps::bad_entry> all;
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const auto samples = bad_samples_test::broken_source() | order | ps::shard(rank, 2) |
                         policy(100, bad::ledger((folder / "bad.jsonl").string()));
    const auto plan = (samples | ... | more) | ps::global_batch(7);
    static_cast<void>(bad_samples_test::look(plan, 2));
    for (const auto& one :
         ps::read_bad_ledger((folder / ("bad.rank" + std::to_string(rank) + ".jsonl")).string()).all)
      all.push_back(one);
  }
  return all;
}

}  // namespace

TEST_CASE("inspection/ledger_proof: the lines that runs write are counted, and the proof holds") {
  const penstock_test::temp_dir folder;
  const auto plan = bad_samples_test::broken_source() | order | ps::global_batch(7);
  using counts = ps::ledger_proof::counts;
  SECTION("skipped") {
    const auto entries = written(bad::skip, folder.path());
    const ps::ledger_proof found = ps::prove_ledger(plan, entries);
    INFO(to_string(found));
    CHECK(found.holds());
    CHECK(found.all == counts{16, 0});
    CHECK(found.extra == 0);
    CHECK(found.by_rank.size() == 2);
    CHECK(found.by_rank.at(0).skipped + found.by_rank.at(1).skipped == 16);
    CHECK(found.by_shard.at(0) == counts{6, 0});  // 0, 3 and 4 of 10, twice
    CHECK(found.by_shard.at(1) == counts{10, 0});
    CHECK_THAT(to_string(found), penstock_test::contains("substitutions: 16 skipped, 0 replaced") &&
                                     penstock_test::contains("shard 1: 10 skipped") &&
                                     penstock_test::contains("the ledger holds"));
    CHECK_THAT(to_string(found, [](std::uint64_t shard) { return "s" + std::to_string(shard) + ".tar"; }),
               penstock_test::contains("shard s1.tar: 10 skipped"));
  }
  SECTION("replaced") {
    auto entries = written(bad::replace, folder.path());
    const ps::ledger_proof found = ps::prove_ledger(plan, entries);
    INFO(to_string(found));
    CHECK(found.holds());
    CHECK(found.all == counts{0, 16});
    CHECK(found.extra == 16);
    CHECK(found.by_shard.at(1).replaced == 10);
    // Samples delivered again after a restart, by any rank, count once.
    const auto all = entries;
    for (const auto& one : all) {
      entries.push_back(one);
      entries.back().rank = 1 - one.rank;
    }
    const ps::ledger_proof again = ps::prove_ledger(plan, entries);
    CHECK(again.holds());
    CHECK(again.all == found.all);
    CHECK(again.by_rank == found.by_rank);
    CHECK(again.again == 16);
    CHECK_THAT(to_string(again), penstock_test::contains("16 lines name a sample again"));
  }
  SECTION("with a seed of its own, which the plan must know") {
    const auto entries = written(bad::replace, folder.path(), ps::seed(99));
    CHECK(ps::prove_ledger(bad_samples_test::broken_source() | order | ps::seed(99) | ps::global_batch(7),
                           entries)
              .holds());
    CHECK_THAT(to_string(ps::prove_ledger(plan, entries)), penstock_test::contains("have another seed?"));
  }
  CHECK(ps::prove_ledger(plan, {}).holds());
}

TEST_CASE("inspection/ledger_proof: lines that do not match the plan are violations") {
  const penstock_test::temp_dir folder;
  const auto source = bad_samples_test::broken_source();
  const auto plan = source | order | ps::global_batch(7);
  const auto entries = written(bad::replace, folder.path());
  const auto broken = [](const auto& p, const std::vector<ps::bad_entry>& all, const std::string& why) {
    const ps::ledger_proof found = ps::prove_ledger(p, all);
    CHECK_FALSE(found.holds());
    CHECK_THAT(to_string(found), penstock_test::contains(why) && penstock_test::contains("does not hold"));
  };
  broken(source | ps::shuffle(ps::seed(4)) | ps::global_batch(7), entries, "in this plan sample");
  broken(bad_samples_test::broken_source(20) | order | ps::global_batch(7), entries, "and an epoch has 20");
  const auto changed = [&](auto change) {
    auto all = entries;
    change(all);
    return all;
  };
  broken(plan, changed([](auto& all) { all[0].index = 40; }), "it is at position 40, and an epoch has 40");
  broken(plan, changed([](auto& all) { *all[0].source += 1; }), "of the source, and in this plan sample");
  broken(plan, changed([](auto& all) { *all[0].substitute->source += 1; }), "its replacement is sample");
  broken(plan, changed([](auto& all) { all[0].substitute->index = 1'000; }),
         "its replacement is at position 1000");
  broken(plan, changed([](auto& all) {
           all[0].substitute->key.clear();
           all[0].substitute->index = all[0].index;
           all[0].substitute->source = all[0].source;
         }),
         "none of those that could replace it");
  // A bad sample that replaces another one, and two outcomes of one position.
  broken(plan, changed([](auto& all) {
           all[0].substitute->index = all[1].index;
           all[0].substitute->source = all[1].source;
         }),
         "is a bad sample itself");
  broken(plan, changed([](auto& all) {
           all.push_back(all[0]);
           all.back().substitute.reset();
         }),
         "it is named as replaced by position " + std::to_string(entries[0].substitute->index) +
             " and as skipped");
  broken(plan, changed([](auto& all) {
           all.push_back(all[0]);
           ++all.back().substitute->index;
         }),
         " and as replaced by position " + std::to_string(entries[0].substitute->index + 1));
  // 40 samples in steps of 7: the last 5 are in none.
  bool some = false;
  for (const auto& one : entries) some = some || one.index >= 35;
  REQUIRE(some);
  broken(source | order | ps::global_batch(7, ps::tail::drop), entries, "in no step of this plan");
}

TEST_CASE("inspection/ledger_proof: keys of any bytes match those of the plan") {
  std::vector<std::byte> shard;
  ps::tar_writer out([&](ps::bytes_view piece) { shard.insert(shard.end(), piece.begin(), piece.end()); });
  for (const std::string key : {"a", "b\xff", "c\"\\", "\xc3\xa9", "e"}) {
    auto array = ps::npy_bytes<float>(ps::extents(2), std::vector<float>(2, 1.0f));
    if (key != "a" && key != "e") array.resize(array.size() - 4);  // a cut file
    out.write(key, {{"npy", array}});
  }
  out.close();
  const penstock_test::temp_dir folder;
  const std::string path = (folder / "bad.jsonl").string();
  const auto samples = ps::webdataset(ps::memory_files().add("train.tar", shard));
  auto run = (samples | ps::decode<ps::field<"npy", ps::npy<float>>> | bad::replace(5, bad::ledger(path)) |
              ps::batch(2))
                 .open();
  for (auto&& b : run.epoch(0)) static_cast<void>(b.size());
  auto entries = ps::read_bad_ledger(path).all;
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].key == "b\xef\xbf\xbd");
  const auto plan = samples | ps::map([](const auto&) { return 0; }) | ps::batch(2);
  const ps::ledger_proof found = ps::prove_ledger(plan, entries);
  INFO(to_string(found));
  CHECK(found.holds());
  entries[2].key = "f";
  CHECK_THAT(to_string(ps::prove_ledger(plan, entries)),
             penstock_test::contains("it has the key \"f\", and in this plan \"\xc3\xa9\""));
}

}  // namespace ledger_proof_test
