// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/manifest.hpp>

#include "support/catch.hpp"

#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

using penstock::manifest;

TEST_CASE("source/manifest: places of samples, with empty shards") {
  const manifest all({{"d/a", 10, 0, 0, 1},
                      {"d/b", 20, 3, 30, 2},
                      {"d/c", 20, 0, 0, 3},
                      {"d/d", 5, 2, 7, 4},
                      {"d/e", 5, 0, 0, 5}});
  CHECK(all.samples() == 5);
  CHECK(all.bytes() == 60);
  CHECK(all.payload() == 37);
  CHECK(*all.starts() == std::vector<std::uint64_t>{0, 3, 5});
  const std::vector<std::size_t> shards{1, 1, 1, 3, 3};
  const std::vector<std::uint64_t> samples{0, 1, 2, 0, 1};
  for (std::uint64_t i = 0; i < 5; ++i) {
    CHECK(all.locate(i).shard == shards[i]);
    CHECK(all.locate(i).sample == samples[i]);
    CHECK(all.locate(i).first + all.locate(i).sample == i);
  }
}

TEST_CASE("source/manifest: without samples the starts still go from 0 to the end") {
  CHECK(*manifest().starts() == std::vector<std::uint64_t>{0, 0});
  CHECK(*manifest({{"a", 1, 0, 0, 0}}).starts() == std::vector<std::uint64_t>{0, 0});
}

TEST_CASE("source/manifest: more samples than can be counted are refused and do not wrap around") {
  const std::uint64_t many = std::uint64_t{1} << 60;
  CHECK(manifest({{"a", 0, many, 0, 0}, {"b", 0, many, 0, 0}}).samples() == 2 * many);
  std::vector<manifest::shard> shards;
  for (int i = 0; i < 17; ++i) shards.push_back({std::to_string(i), 0, many, 0, 0});
  try {
    (void)manifest(shards);
    FAIL("should be refused");
  } catch (const penstock::error& e) {
    CHECK((e.code() == penstock::errc::limit));
    CHECK(e.file() == "4");
  }
}

TEST_CASE("source/manifest: the fingerprint covers the shards, not their location") {
  const std::vector<manifest::shard> base{{"x/a", 10, 2, 8, 1}, {"x/b", 20, 3, 9, 2}};
  const std::uint64_t mark = manifest(base).fingerprint();
  auto moved = base;
  moved[0].name = "/elsewhere/y/a";
  moved[1].name = "b";
  CHECK(manifest(moved).fingerprint() == mark);
  for (int change = 0; change < 6; ++change) {
    auto other = base;
    if (change == 0) other[0].name = "x/c";
    if (change == 1) other[0].bytes = 11;
    if (change == 2) other[1].samples = 4;
    if (change == 3) other[1].content = 3;
    if (change == 4) std::swap(other[0], other[1]);
    if (change == 5) other.pop_back();
    CHECK(manifest(other).fingerprint() != mark);
  }
}

TEST_CASE("source/manifest: as text, and back") {
  const std::uint64_t maximum = ~std::uint64_t{0};
  const manifest all(
      {{"d/a b", 10, 2, 8, maximum, 17, true}, {"", 0, 0, 0, 0, 0}, {"odd\nname\xff", 20, 3, 9, 2, maximum}});
  const std::string text = to_string(all);
  const manifest back = penstock::manifest_from_string(text);
  CHECK(back.fingerprint() == all.fingerprint());
  CHECK(back.unended() == 1);
  REQUIRE(back.shards().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(back.shards()[i].name == all.shards()[i].name);
    CHECK(back.shards()[i].payload == all.shards()[i].payload);
    CHECK(back.shards()[i].stamp == all.shards()[i].stamp);
    CHECK(back.shards()[i].unended == (i == 0));
  }
  CHECK(to_string(back) == text);
  CHECK(penstock::manifest_from_string(to_string(manifest())).shards().empty());
}

TEST_CASE("source/manifest: text that is not a manifest, or was cut or edited, is an error with its offset") {
  const std::string text = to_string(manifest({{"d/a", 10, 2, 8, 1, 17}, {"d/b", 20, 3, 9, 2, 18}}));
  const auto refused = [](const std::string& edited) {
    try {
      (void)penstock::manifest_from_string(edited);
    } catch (const penstock::error& e) {
      return e.code() == penstock::errc::format && e.offset().has_value();
    }
    return false;
  };
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    CAPTURE(cut);
    CHECK(refused(text.substr(0, cut)));
  }
  CHECK(refused(text + " "));
  for (const char* other :
       {"penstock manifest 1 0\n", "penstock manifest 3 0\n", "penstock manifest 2 99999999999999999999\n",
        "penstock manifest 2 18446744073709551615\n",
        "penstock manifest 2 1\n1 1 1 1 1 0 18446744073709551615 a\n",
        "penstock manifest 2 1\n1 1 1 1 1 2 1 a\n", "penstock manifest 2 1\n1 -1 1 1 1 0 1 a\n"})
    CHECK(refused(other));
}

TEST_CASE("source/manifest: read from any storage, with errors that name it") {
  const manifest all({{"d/a", 10, 2, 8, 1, 17}, {"d/b", 20, 3, 9, 2, 18}});
  const auto there = penstock::memory_files().add("d/manifest", to_string(all));
  CHECK(to_string(penstock::read_manifest(there)) == to_string(all));
  const penstock::simulated_storage far(there, {.latency = std::chrono::microseconds(1)});
  CHECK(penstock::read_manifest(far).fingerprint() == all.fingerprint());
  CHECK(far.reads() == 1);
  CHECK_THROWS_WITH(penstock::read_manifest(penstock::memory_files().add("m", "penstock manifest 2 1\n")),
                    penstock_test::contains("[file m, offset 22]"));
  CHECK_THROWS_WITH(penstock::read_manifest(penstock::memory_files()),
                    penstock_test::contains("the storage has 0; name the one"));
  CHECK_THROWS_WITH(penstock::read_manifest(there.sidecars({".gone"})),
                    penstock_test::contains("no such object was added [file d/manifest.gone]"));
}
