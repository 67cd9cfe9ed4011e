// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A shard that is cut off or damaged among many: refused, or taken up to the damage, with a line in the
// ledger.

#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/inspection/ledger_proof.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/dataset_files.hpp"
#include "support/raw_tar.hpp"
#include "support/tf_files.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace damaged_shards_test {

constexpr auto take = ps::on_damaged_shard::take_what_is_there;

/// Samples 10 * shard + 0, 1, 2, ... of two members each, which take 2 KiB.
std::string numbered(int shard, int samples) {
  raw_tar tar;
  for (int i = 0; i < samples; ++i) {
    const std::string key = std::to_string(10 * shard + i);
    tar.member(key + ".txt", "text " + key).member(key + ".cls", key);
  }
  return tar.end().bytes;
}
template <class Source>
std::string keys_of(const Source& source) {
  std::string keys;
  auto run = (source | ps::fields<"cls"> | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(1)).open();
  for (auto&& b : run) keys += std::to_string(ps::get<"cls">(b)[0]) + " ";
  return keys;
}
template <class Call>
std::string error_of_plan(const Call& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}

}  // namespace damaged_shards_test
using namespace damaged_shards_test;

TEST_CASE("source/damaged_shards: of a shard that is cut off the samples before the cut are there") {
  const std::string whole = numbered(1, 4);
  struct cut {
    std::size_t bytes;
    std::string_view keys, reason;
  };
  const cut at = GENERATE(cut{0, "", "the file is empty"},                          //
                          cut{2 * 2048 + 512 + 3, "10 11 ", "is cut off"},          // in 12.txt
                          cut{2 * 2048 + 1536 + 1, "10 11 ", "is cut off"},         // in 12.cls: 12 lacks it
                          cut{2 * 2048 + 100, "10 11 ", "within a header"},         // of 12.txt
                          cut{2 * 2048 + 1024 + 100, "10 11 ", "within a header"},  // of 12.cls
                          cut{3 * 2048 + 512 + 1, "10 11 12 ", "is cut off"});      // in 13.txt
  const dataset_folder folder;
  const std::vector<std::string> names{folder.write("0.tar", numbered(0, 2)),
                                       folder.write("1.tar", whole.substr(0, at.bytes)),
                                       folder.write("2.tar", numbered(2, 1))};
  CHECK_THAT(error_of_plan([&] { static_cast<void>(ps::webdataset(names)); }),
             contains("1.tar") && contains(std::string(at.reason)));
  for (int i = 0; i < 2; ++i) {  // the second time the indexes of the others are there
    const ps::webdataset some(names, {.on_damaged_shard = ps::on_damaged_shard::take_what_is_there});
    const ps::webdataset kept(names, {.index = ps::index_policy::keep, .on_damaged_shard = take});
    CHECK(kept.damaged_shards().size() == 1);
    CHECK(keys_of(some) == "0 1 " + std::string(at.keys) + "20 ");
    REQUIRE(some.damaged_shards().size() == 1);
    const ps::damaged_shard& one = some.damaged_shards()[0];
    CHECK(one.file == names[1]);
    CHECK(one.samples == some.manifest().shards()[1].samples);
    CHECK_THAT(one.reason, contains(std::string(at.reason)));
    CHECK_THAT(some.describe(), contains("1 damaged shard of which what is there was taken"));
    CHECK(some.manifest().unended() == 1);
  }
  // no index of it was kept, so that a plan that refuses such shards refuses it
  CHECK(!std::filesystem::exists(names[1] + ".penstock-index"));
  CHECK(std::filesystem::exists(names[0] + ".penstock-index"));
  CHECK_THAT(error_of_plan([&] { static_cast<void>(ps::webdataset(names)); }), contains("1.tar"));
  // and a plan from a manifest finds the same samples
  const ps::webdataset some(names, {.on_damaged_shard = take});
  CHECK(keys_of(ps::webdataset(ps::manifest_from_string(to_string(some.manifest())),
                               {.on_damaged_shard = take})) == keys_of(some));
}

TEST_CASE("source/damaged_shards: a damaged header ends a shard there") {
  std::string bytes = numbered(0, 5);
  bytes[3 * 2048 + 10] ^= 1;
  const dataset_folder folder;
  const ps::webdataset some(folder.write("0.tar", bytes), {.on_damaged_shard = take});
  CHECK(keys_of(some) == "0 1 2 ");
  CHECK(some.damaged_shards()[0].offset == 3 * 2048);
  CHECK_THAT(some.damaged_shards()[0].reason, contains("checksum of a tar header"));
}

TEST_CASE("source/damaged_shards: what is no shard is refused") {
  const dataset_folder folder;
  for (const std::string& bytes : {std::string(4096, 'x'), std::string("version https://git-lfs"),
                                   "\x1f\x8b\x08" + std::string(1000, 'x'), std::string(100, '<')}) {
    const std::string name = folder.write("0.tar", bytes);
    CHECK(error_of_plan([&] { static_cast<void>(ps::webdataset(name, {.on_damaged_shard = take})); }) !=
          "none");
  }
  // nor is a sample that WebDataset does not know
  raw_tar twice;
  twice.member("a.txt", "one").member("a.txt", "two").end();
  const std::string name = folder.write("1.tar", twice.bytes);
  CHECK_THAT(error_of_plan([&] { static_cast<void>(ps::webdataset(name, {.on_damaged_shard = take})); }),
             contains("two members"));
}

TEST_CASE("source/damaged_shards: the ledger says so") {
  const dataset_folder folder;
  const std::vector<std::string> names{folder.write("0.tar", numbered(0, 3)),
                                       folder.write("1.tar", numbered(1, 4).substr(0, 2 * 2048 + 600))};
  const std::string ledger = folder("bad.jsonl");
  const auto plan_of = [&](std::uint64_t rank, std::uint64_t world) {
    return ps::webdataset(names, {.on_damaged_shard = take}) | ps::fields<"cls"> |
           ps::decode<ps::field<"cls", ps::integer>> | ps::shuffle(ps::seed(1)) | ps::shard(rank, world) |
           ps::bad_samples::skip(1, ps::bad_samples::ledger(ledger)) | ps::batch(1);
  };
  {
    auto run = plan_of(0, 1).open();
    std::uint64_t samples = 0;
    for (auto&& b : run) samples += b.size();
    CHECK(samples == 5);
  }
  const ps::bad_entries lines = ps::read_bad_ledger(ledger);
  REQUIRE(lines.all.size() == 1);
  const ps::bad_entry& one = lines.all[0];
  CHECK(one.shard);
  CHECK(one.file == names[1]);
  CHECK(one.offset == 2 * 2048 + 512);
  CHECK(one.code == "format");
  CHECK_THAT(one.reason, contains("is cut off") && contains("the 2 samples before it are in the dataset"));
  CHECK(lines.cut == 0);

  const ps::ledger_proof proof = ps::prove_ledger(plan_of(0, 1), lines.all);
  CHECK(proof.holds());
  CHECK(proof.damaged_shards == 1);
  CHECK_THAT(to_string(proof), contains("1 lines name a damaged shard"));

  // of several ranks, the first
  static_cast<void>(plan_of(1, 2).open());
  static_cast<void>(plan_of(0, 2).open());
  CHECK(ps::read_bad_ledger(folder("bad.rank0.jsonl")).all.size() == 1);
  CHECK(ps::read_bad_ledger(folder("bad.rank1.jsonl")).all.empty());
}

TEST_CASE("source/damaged_shards: TFRecord files that are cut off or damaged") {
  const std::string whole = tf_records_of({"one", "three", "five", "seven"});
  std::string flipped = whole;
  flipped[19 + 21 + 4] ^= 1;  // of the size of "five"
  const std::string bytes =
      GENERATE_COPY(whole.substr(0, 19 + 21 + 5), whole.substr(0, 19 + 21 + 14), flipped);
  const dataset_folder folder;
  const std::vector<std::string> names{folder.write("0.tfrecord", whole), folder.write("1.tfrecord", bytes)};
  CHECK_THAT(error_of_plan([&] { static_cast<void>(ps::tfrecord(names)); }), contains("1.tfrecord"));
  for (int i = 0; i < 2; ++i) {
    const auto some = ps::tfrecord(names, {.on_damaged_shard = take});
    CHECK(some.size() == 6);
    std::string all;
    for (auto&& b : (some | ps::batch(1, ps::ragged)).epoch(0))
      for (const auto row : b.values()) all += std::string(ps::text_of(ps::bytes_view(row))) + " ";
    CHECK(all == "one three five seven one three ");
    REQUIRE(some.damaged_shards().size() == 1);
    CHECK(some.damaged_shards()[0].offset == 19 + 21);
  }
  CHECK_THAT(error_of_plan([&] { static_cast<void>(ps::tfrecord(names)); }), contains("1.tfrecord"));
  const std::string none = folder.write("2.tfrecord", std::string(50, 'x'));
  CHECK_THAT(
      error_of_plan([&] { static_cast<void>(ps::tfrecord(std::vector{none}, {.on_damaged_shard = take})); }),
      contains("this is not a TFRecord file"));
}

TEST_CASE("source/damaged_shards: the members that macOS adds are no part of samples") {
  raw_tar tar;
  for (int i = 0; i < 3; ++i) {
    const std::string key = "train/" + std::to_string(i);
    tar.member("train/._" + std::to_string(i) + ".txt", "AppleDouble").member(key + ".txt", "text");
    tar.member("train/._" + std::to_string(i) + ".cls", "AppleDouble")
        .member(key + ".cls", std::to_string(i));
  }
  tar.end();
  const dataset_folder folder;
  const std::string name = folder.write("0.tar", tar.bytes);
  const auto read = [&](bool skip) { return ps::webdataset(name, {.skip_apple_double = skip}).size(); };
  CHECK(keys_of(ps::webdataset(name)) == "0 1 2 ");
  CHECK(read(true) == 3);  // from the index
  CHECK(read(false) > 3);  // whose index is made again
  CHECK(read(false) > 3);
  CHECK(read(true) == 3);
  CHECK(ps::webdataset(ps::memory_files().add("0.tar", tar.bytes)).size() == 3);

  const auto streamed = [&](bool skip) {
    std::uint64_t samples = 0;
    auto run = (ps::webdataset_stream(name, {.skip_apple_double = skip}) |
                ps::map([](const auto&) { return 1; }) | ps::batch(1))
                   .open();
    for (auto&& b : run) samples += b.size();
    return samples;
  };
  CHECK(streamed(true) == 3);
  CHECK(streamed(false) > 3);
}
