// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/source/webdataset_stream.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/raw_tar.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace engine_test;
using penstock_test::raw_tar;

namespace {

/// Shards of 0, 11, 1, 17 and 0 samples, numbered consecutively; 29 in all.
std::vector<std::string> write_shards(const penstock_test::temp_dir& dir) {
  std::vector<std::string> names;
  int number = 0;
  for (const int count : {0, 11, 1, 17, 0}) {
    raw_tar tar;
    for (int i = 0; i < count; ++i, ++number)
      tar.member(std::to_string(number) + ".cls", std::to_string(number))
          .member(std::to_string(number) + ".txt", "x");
    names.push_back((dir / (std::to_string(names.size()) + ".tar")).string());
    tar.end().save(names.back());
  }
  return names;
}

const auto number = ps::decode<ps::field<"cls", ps::integer>> |
                    ps::map([](const auto& s) { return static_cast<std::uint64_t>(ps::get<"cls">(s)); });
constexpr auto in_two = [](std::uint64_t x) { return std::array<std::uint64_t, 2>{2 * x, 2 * x + 1}; };

}  // namespace

TEST_CASE("source/webdataset_stream_resume: after every batch the rest matches an uninterrupted run") {
  const penstock_test::temp_dir dir;
  const penstock_test::deadline guard("resume");
  const auto data = ps::webdataset_stream(write_shards(dir));
  static_assert(ps::resumable<decltype(data | number | ps::batch(4))>);
  SECTION("batches") {
    check_all_stops(data | number | ps::map(noisy) | ps::batch(4));
    check_all_stops(data | number | ps::map(noisy) | ps::batch(1));
    check_all_stops(data | number | ps::batch(40));
  }
  SECTION("rows") { check_all_stops(data | number | ps::map(noisy)); }
  SECTION("take and skip") { check_all_stops(data | ps::skip(3) | ps::take(20) | number | ps::batch(3)); }
  SECTION("repeat") {
    check_all_stops(data | ps::take(7) | ps::repeat(3) | ps::skip(2) | number | ps::batch(4));
  }
  SECTION("one rank of three") {
    check_all_stops(data | ps::skip(1) | ps::shard(1, 3) | number | ps::batch(2) | ps::steps(4));
  }
  SECTION("filter, unbatch and steps") {
    check_all_stops(data | number | ps::map(in_two) | ps::unbatch | ps::filter(odd_thirds) | ps::batch(3));
    check_all_stops(data | number | ps::filter(odd_thirds) | ps::batch(3) | ps::steps(7));
  }
}

TEST_CASE("source/webdataset_stream_resume: shards before the place are not opened") {
  const penstock_test::temp_dir dir;
  const auto names = write_shards(dir);
  const auto plan = ps::webdataset_stream(names) | number | ps::batch(5) | ps::workers(1);
  auto run = plan.open();
  for (int i = 0; i < 4; ++i) CHECK(run.next());
  const ps::state where = run.state();
  const auto kept = engine_test::values_of(*run.next());
  for (const std::size_t shard : {0u, 1u, 2u}) std::filesystem::remove(names[shard]);
  CHECK(engine_test::values_of(*plan.open(where).next()) == kept);
}

TEST_CASE("source/webdataset_stream_resume: places that do not exist") {
  const penstock_test::temp_dir dir;
  const auto names = write_shards(dir);
  const auto plan = ps::webdataset_stream(names) | number | ps::batch(5) | ps::workers(1);
  auto run = plan.open();
  for (int i = 0; i < 2; ++i) CHECK(run.next());
  const ps::state good = run.state();
  REQUIRE(good.front.size() == 2);
  CHECK(ps::state_from_string(to_string(good)) == good);
  const auto refused = [&](auto change, const char* why) {
    ps::state s = good;
    change(s);
    CHECK_THROWS_WITH(
        [&] {
          auto again = plan.open(s);
          const auto next = again.next();
          if (next.failure != nullptr) std::rethrow_exception(next.failure);
        }(),
        penstock_test::contains(why));
  };
  refused([](ps::state& s) { s.front[0] = 9; }, "there is no shard 9; the dataset has 5");
  refused([](ps::state& s) { s.front[1] = 12; }, "fewer than the 12 samples");
  refused([](ps::state& s) { s.front.pop_back(); }, "too few places");
  refused([](ps::state& s) { s.front.push_back(1); }, "too many places");
  refused([](ps::state& s) { s.front.clear(); }, "does not match its samples");
  raw_tar().member("0.cls", "0").end().save(names[1]);
  refused([](ps::state&) {}, "it was changed");
}

TEST_CASE("source/webdataset_stream_resume: a source that cannot be resumed says so in its type") {
  const penstock_test::temp_dir dir;
  const auto names = write_shards(dir);
  const auto pipe = ps::webdataset_pipe(names) | number | ps::batch(5);
  static_assert(!ps::resumable<decltype(pipe)>);
  const auto mixed = ps::webdataset_stream(names) | ps::shuffle_buffer(4) | number | ps::batch(5);
  static_assert(!ps::resumable<decltype(mixed)>);
  auto run = mixed.open();
  CHECK(run.next());
  CHECK_THROWS_WITH(mixed.open(run.state()), penstock_test::contains("cannot seek"));
  CHECK_THROWS_WITH((ps::webdataset_stream("-") | number | ps::batch(5)).open().begin(),
                    penstock_test::contains("write webdataset_pipe"));
}
