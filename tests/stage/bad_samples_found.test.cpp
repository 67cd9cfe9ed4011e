// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Kinds of bad samples: broken files, odd shapes; and the ledger that names them.

#include <penstock/stage/bad_samples.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/bad_samples.hpp"
#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/json.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stage_bad_samples_found_test {

namespace ps = penstock;
namespace bad = penstock::bad_samples;
using namespace bad_samples_test;

namespace {

const auto itself = [](std::uint64_t i) { return i; };
const auto no_third = [](std::uint64_t x) { return x % 3 != 2; };

}  // namespace

namespace {

/// Three shards of arrays, some of which are broken: the bytes of a real file with one bit changed.
struct shards {
  static constexpr int each = 10;
  shards() {
    for (int shard = 0; shard < 3; ++shard) {
      penstock_test::raw_tar tar;
      for (int i = 0; i < each; ++i) {
        const int number = shard * each + i;
        const auto bytes = ps::npy_bytes<std::uint32_t>(
            ps::extents(4), std::vector<std::uint32_t>(4, static_cast<std::uint32_t>(number)));
        std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        if (number == 7) text[0] = static_cast<char>(text[0] ^ 1);  // the magic
        if (number == 12) text.resize(text.size() - 3);             // cut
        if (number == 29) text[text.find("4,")] ^= 1;               // says shape (5,)
        tar.member("s\"" + std::to_string(number) + ".npy", text);
        if (number == 20) tar.member("lonely.txt", "no array here");
      }
      tar.end().save((folder / ("t" + std::to_string(shard) + ".tar")).string());
    }
  }
  [[nodiscard]] auto plan() const {
    return ps::webdataset((folder / "t{0..2}.tar").string()) |
           ps::decode<ps::field<"npy", ps::npy<std::uint32_t>>> |
           ps::map([](const auto& r) { return ps::get<"npy">(r); });
  }
  penstock_test::temp_dir folder;
};

}  // namespace

TEST_CASE("stage/bad_samples_found: real shards with broken arrays, and a ledger that says which") {
  const shards data;
  const auto wanted = [](int number) { return number == 7 || number == 12 || number == 21 || number == 30; };
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    INFO(workers);
    const auto path = data.folder / ("bad" + std::to_string(workers) + ".jsonl");
    auto run =
        (data.plan() | bad::skip(4, bad::ledger(path.string())) | ps::batch(8) | ps::workers(workers)).open();
    int number = 0;
    for (auto&& b : run) {
      REQUIRE(b.values().shape()[1] == 4);
      for (std::size_t i = 0; i < b.size(); ++i, ++number) {
        const std::uint32_t value = wanted(number) ? 0 : static_cast<std::uint32_t>(number - (number > 21));
        for (const std::uint32_t x : b.values()[i].values()) CHECK(x == value);
        CHECK(b.valid()[i] == (wanted(number) ? 0 : 1));
      }
    }
    CHECK(number == 31);
    const std::string text = text_of(path);
    CHECK(text == text_of(data.folder / "bad0.jsonl"));
    std::vector<penstock_test::json> lines;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      lines.push_back(penstock_test::json::parse(text.substr(at, text.find('\n', at) - at)));
    REQUIRE(lines.size() == 4);
    CHECK(lines[0]["key"].text == "s\"7");
    CHECK(lines[0]["index"].number == 7);
    CHECK(lines[0]["source"].number == 7);
    CHECK(lines[0]["rank"].number == 0);
    CHECK(lines[0]["epoch"].number == 0);
    CHECK(lines[0]["file"].text == (data.folder / "t0.tar").string());
    CHECK(lines[0]["offset"].number > 512);
    CHECK(lines[0]["stage"].text == "decode<npy>");
    CHECK(lines[0]["code"].text == "format");
    CHECK(lines[0]["done"].text == "skipped");
    CHECK(!lines[0]["reason"].text.empty());
    CHECK(lines[1]["key"].text == "s\"12");
    CHECK(lines[2]["code"].text == "missing");
    CHECK(lines[2]["key"].text == "lonely");
    CHECK(lines[3]["index"].number == 30);
  }
  const auto path = data.folder / "replaced.jsonl";
  const auto other =
      look(data.plan() | bad::replace(4, bad::ledger(path.string())) | ps::batch(8) | ps::workers(2));
  CHECK(other.failure.empty());
  CHECK(other.counts.replaced == 4);
  const std::string text = text_of(path);
  const auto line = penstock_test::json::parse(text.substr(0, text.find('\n')));
  CHECK(line["done"].text == "replaced");
  const int source = static_cast<int>(line["substitute"]["source"].number);
  CHECK_THAT(other.elements[0], penstock_test::contains("(" + std::to_string(source - (source > 21)) + " ") &&
                                    penstock_test::contains(")@7"));
  CHECK(!line["substitute"]["key"].text.empty());
  CHECK(!line["substitute"]["file"].text.empty());
  // Every way of collating has the holes in the same places.
  const auto ragged = look(data.plan() | bad::skip(4) | ps::batch(8, ps::ragged));
  CHECK_THAT(ragged.elements[0], penstock_test::contains(" ()-@7"));
  const auto padded = look(data.plan() | bad::skip(4) | ps::batch(8, ps::pad_to_longest));
  CHECK_THAT(padded.elements[0], penstock_test::contains(" ()-@7"));
  CHECK(ragged.counts.skipped == 4);
  CHECK(padded.counts.skipped == 4);
}

TEST_CASE("stage/bad_samples_found: a stream of shards resumes from every state, with the right ledger") {
  const penstock_test::deadline guard("stream");
  const shards data;
  const auto plan = [&](const std::string& name) {
    return ps::webdataset_stream((data.folder / "t{0..2}.tar").string()) |
           ps::decode<ps::field<"npy", ps::npy<std::uint32_t>>> |
           ps::map([](const auto& r) { return ps::get<"npy">(r); }) |
           bad::skip(4, bad::ledger((data.folder / name).string())) | ps::batch(3);
  };
  const auto whole = look(plan("whole") | ps::workers(2), 2);
  REQUIRE(whole.failure.empty());
  CHECK(whole.counts.skipped == 8);
  CHECK(lines_in(text_of(data.folder / "whole")) == 8);
  for (std::size_t i = 0; i < whole.elements.size(); ++i) {
    const std::string name = std::to_string(i);
    INFO(whole.states[i]);
    {
      auto run = (plan(name) | ps::workers(1)).open();
      const auto begin = take_from(run, 2, i + 1);
      REQUIRE(begin.elements.size() == i + 1);
    }
    const auto rest = look(plan(name) | ps::workers(static_cast<unsigned>(i % 3)), 2,
                           ps::state_from_string(whole.states[i]));
    CHECK(rest.elements ==
          std::vector<std::string>(whole.elements.begin() + static_cast<int>(i) + 1, whole.elements.end()));
    CHECK(text_of(data.folder / name) == text_of(data.folder / "whole"));
  }
}

TEST_CASE("stage/bad_samples_found: the first good sample leads its step, even if it is the odd one out") {
  const penstock_test::deadline guard("an odd first sample");
  const auto data =
      ps::generated(12, [](std::uint64_t x) { return std::vector<std::uint64_t>(x == 0 ? 5 : 3, x); });
  for (const unsigned workers : {0u, 2u}) {
    auto run = (data | bad::skip(5) | ps::batch(6) | ps::workers(workers)).open();
    std::size_t step = 0;
    for (auto&& b : run) {
      CHECK(b.values().shape() == ps::extents(6, step == 0 ? 5 : 3));
      for (std::size_t i = 0; i < 6; ++i) CHECK(b.valid()[i] == (step == 0 && i != 0 ? 0 : 1));
      ++step;
    }
    CHECK(step == 2);
    CHECK(run.bad_samples().skipped == 5);
  }
}

TEST_CASE("stage/bad_samples_found: a shape that batch cannot stack with the others is bad") {
  const penstock_test::deadline guard("shapes");
  // The shape of the first good sample of a step counts.
  const auto lengths = [](std::uint64_t x) {
    return std::vector<std::uint64_t>(x == 2 || x == 9 || x == 22 ? 5 : 3, x);
  };
  const auto data = ps::generated(24, lengths);
  const auto holes = std::vector<std::uint64_t>{2, 9, 22};
  seen skipped, replaced;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    auto run = (data | bad::skip(3) | ps::batch(6) | ps::workers(workers)).open();
    for (auto&& b : run) {
      REQUIRE(b.values().shape() == ps::extents(6, 3));
      for (std::size_t i = 0; i < 6; ++i) {
        const std::uint64_t p = b.positions()[i].index;
        const bool hole = std::find(holes.begin(), holes.end(), p) != holes.end();
        CHECK(b.valid()[i] == (hole ? 0 : 1));
        for (const std::uint64_t x : b.values()[i].values()) CHECK(x == (hole ? 0 : p));
      }
    }
    CHECK(run.bad_samples().skipped == 3);
    const auto now = look(data | bad::replace(3) | ps::batch(6) | ps::workers(workers));
    CHECK(now.failure.empty());
    CHECK(now.counts.replaced == 3);
    if (workers == 0) replaced = now;
    CHECK(now == replaced);
    CHECK(look(data | bad::skip(2) | ps::batch(6) | ps::workers(workers)).elements.size() == 3);
    // After a filter the rows already exist: a hole is left under both policies.
    const auto chunks = data | ps::filter([](const auto&) { return true; });
    for (const auto& got : {look(chunks | bad::skip(3) | ps::batch(6) | ps::workers(workers)),
                            look(chunks | bad::replace(3) | ps::batch(6) | ps::workers(workers))}) {
      CHECK(got.failure.empty());
      CHECK(got.counts.skipped == 3);
      REQUIRE(got.elements.size() == 4);
      CHECK_THAT(got.elements[0], penstock_test::contains("(1 1 1 )@1 (0 0 0 )-@2"));
    }
    CHECK_THAT(look(data | ps::batch(6) | ps::workers(workers)).failure,
               penstock_test::contains("cannot stack"));
  }
  // Padding allows only the first dimension to differ.
  const auto arrays =
      ps::generated(8,
                    [](std::uint64_t x) {
                      const ps::extents shape = x == 3 ? ps::extents(2, 4) : ps::extents(1 + x % 2, 3);
                      const std::vector<std::uint32_t> values(static_cast<std::size_t>(shape.elements()));
                      return ps::npy_bytes<std::uint32_t>(shape, values);
                    }) |
      ps::decode<ps::npy<std::uint32_t>>;
  const auto got = look(arrays | bad::skip(1) | ps::batch(4, ps::pad_to_longest));
  CHECK(got.failure.empty());
  CHECK(got.counts.skipped == 1);
  // All samples of a batch are bad, before any shape was seen and after.
  const auto gaps = ps::generated(12, [](std::uint64_t x) {
    if (x < 4 || x >= 8) throw ps::error(ps::errc::format, "bad");
    return std::vector<std::uint64_t>(2, x);
  });
  auto run = (gaps | bad::skip(8) | ps::batch(4) | ps::workers(0)).open();
  std::size_t step = 0;
  for (auto&& b : run) {
    CHECK(b.size() == 4);
    CHECK(b.valid_size() == (step == 1 ? 4 : 0));
    CHECK(b.values().shape() == ps::extents(4, 2));
    ++step;
  }
}

TEST_CASE(
    "stage/bad_samples_found: a ledger for each rank, appended to, and an error if it cannot be written") {
  const penstock_test::temp_dir folder;
  for (std::uint64_t rank = 0; rank < 2; ++rank)
    (void)look(broken_source() | ps::shard(rank, 2) |
               bad::skip(100, bad::ledger((folder / "bad.jsonl").string())) | ps::batch(4));
  CHECK(!std::filesystem::exists(folder / "bad.jsonl"));
  CHECK(lines_in(text_of(folder / "bad.rank0.jsonl")) + lines_in(text_of(folder / "bad.rank1.jsonl")) ==
        some.size());
  CHECK_THAT(text_of(folder / "bad.rank1.jsonl"), penstock_test::contains("{\"rank\": 1, "));
  CHECK_THROWS_WITH(
      (broken_source() | bad::skip(9, bad::ledger((folder / "no/such/bad").string())) | ps::batch(4)).open(),
      penstock_test::contains("the ledger of bad samples cannot be opened: No such file") &&
          penstock_test::contains("no/such/bad"));
  if (std::filesystem::exists("/dev/full")) {
    for (const unsigned workers : {0u, 2u}) {
      const auto full = bad::skip(9, bad::ledger("/dev/full"));
      const auto direct = look(broken_source() | full | ps::batch(3) | ps::workers(workers));
      CHECK_THAT(direct.failure, penstock_test::contains("the ledger of bad samples cannot be written"));
      CHECK(direct.elements.empty());
      const auto chunks =
          look(broken_source() | ps::filter(no_third) | full | ps::batch(3) | ps::workers(workers));
      CHECK_THAT(chunks.failure, penstock_test::contains("cannot be written"));
      CHECK(chunks.elements.empty());
    }
  }
}

TEST_CASE("stage/bad_samples_found: describe names the policy, and it costs no guarantee") {
  const auto plan =
      ps::generated(9, itself) | bad::replace(bad::fraction(0.25), bad::ledger("b.jsonl")) | ps::batch(2);
  CHECK_THAT(ps::describe(plan),
             penstock_test::contains("bad_samples::replace(fraction(0.25), ledger b.jsonl)") &&
                 penstock_test::contains("keeps: indexed deterministic resumable elastic lockstep"));
  CHECK_THAT(ps::describe(ps::generated(9, itself) | bad::skip(3) | ps::batch(2)),
             penstock_test::contains("bad_samples::skip(3)"));
  CHECK_THAT(ps::describe(ps::generated(9, itself) | bad::fatal() | ps::batch(2)),
             penstock_test::contains("bad_samples::fatal"));
  // The policy does not change the sequence: a run that ended can resume with another policy.
  auto run = (broken_source() | ps::take(17) | ps::skip(1) | ps::batch(2)).open();
  CHECK_THAT(take_from(run, 1).failure, penstock_test::contains("sample 3 is broken"));
  CHECK(look(broken_source() | ps::take(17) | ps::skip(1) | bad::skip(2) | ps::batch(2), 1, run.state())
            .failure.empty());
}

}  // namespace stage_bad_samples_found_test
