// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/online_pack.hpp>

#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/packed_texts.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

namespace online_pack_test {

namespace ps = penstock;
using namespace packed_texts;
using Catch::Contains;

namespace {

constexpr auto odd_thirds = [](const text& t) { return ps::get<"label">(t) % 3 == 1; };

// An object, so that no function of the same name is found beside it.
constexpr auto see_epoch = [](const auto& plan, std::uint64_t epoch = 0) {
  return packed_texts::see_epoch(plan | ps::allow_empty, epoch);
};

std::size_t row_count(const std::vector<seen>& all) {
  std::size_t rows = 0;
  for (const seen& one : all) rows += one.rows;
  return rows;
}
void check_complete(const std::map<std::uint64_t, std::uint64_t>& found) {
  for (const auto& [label, count] : found) CHECK(count == length_of(label));
}

/// Runs a plan from a state, or from its beginning, to the end of an epoch, with the state after each batch.
struct trace {
  std::vector<seen> batches;
  std::vector<std::string> states;
};
template <class Plan, class... From>
trace follow(const Plan& plan, std::uint64_t epochs, const From&... from) {
  trace all;
  auto run = (plan | ps::allow_empty).open(from...);
  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) {
      all.batches.push_back(see(b));
      all.states.push_back(to_string(run.state()));
    }
  return all;
}
/// After every batch, a run opened with the state delivers the rest, and has the states of the first run.
template <class Plan>
void check_all_stops(const Plan& plan, std::uint64_t epochs = 2, std::size_t stride = 1) {
  const trace whole = follow(plan | ps::workers(2), epochs);
  REQUIRE(whole.batches.size() > 3);
  CHECK(follow(plan | ps::workers(0), epochs).batches == whole.batches);
  for (std::size_t i = 0; i < whole.states.size(); i += stride) {
    INFO("after batch " << i << ": " << whole.states[i]);
    const auto rest = follow(plan | ps::workers(i % 4), epochs, ps::state_from_string(whole.states[i]));
    const auto after = static_cast<std::ptrdiff_t>(i) + 1;
    REQUIRE(rest.batches == std::vector<seen>(whole.batches.begin() + after, whole.batches.end()));
    REQUIRE(rest.states == std::vector<std::string>(whole.states.begin() + after, whole.states.end()));
  }
}

}  // namespace

TEST_CASE("stage/online_pack: after filter, rows have every survivor's tokens once") {
  const auto plan = texts(900) | ps::shuffle(ps::seed(3)) | ps::filter(odd_thirds) |
                    ps::pack<"tokens", "loss">(64, {.window = 100}) | ps::batch(4);
  const std::vector<seen> all = see_epoch(plan);
  const auto found = check_tokens(all, 64);
  CHECK(found.size() == 300);
  check_complete(found);
  std::uint64_t sum = 0, rows = 0;
  for (const auto& [label, count] : found) {
    CHECK(label % 3 == 1);
    sum += count;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    rows += all[i].rows;
    CHECK((all[i].rows == 4 || i + 1 == all.size()));
  }
  CHECK(rows <= (sum + 63) / 64 + 3 * 3);  // hardly a place is left over in each of three windows
  CHECK(see_epoch(plan, 0) == all);
  CHECK(see_epoch(plan, 1) != all);
  check_complete(check_tokens(see_epoch(plan, 1), 64));
}

TEST_CASE("stage/online_pack: rows are the same on any number of workers, and those that lengths give") {
  const auto base = texts(700) | ps::shuffle(ps::seed(5));
  const ps::pack_options options{.window = 90};
  const auto online = base | ps::filter(odd_thirds) | ps::pack<"tokens">(64, options) | ps::batch(3);
  const std::vector<seen> expected = see_epoch(online | ps::workers(0));
  for (const unsigned workers : {1u, 2u, 5u})
    CHECK(see_epoch(online | ps::workers(workers) | ps::prefetch(workers)) == expected);

  // the survivors, as a subset whose order and windows are the same
  std::vector<std::uint64_t> survivors;
  for (auto&& b : (base | ps::filter(odd_thirds) | ps::batch(1000, ps::ragged)).epoch(0))
    for (const std::uint64_t label : ps::get<"label">(b)) survivors.push_back(label);
  const auto offline =
      ps::generated(survivors.size(), [&](std::uint64_t i) { return survivors[i]; }) | ps::map(text_of) |
      ps::seed(5) |
      ps::pack<"tokens">([&](std::uint64_t i) { return length_of(survivors[i]); }, 64, options) |
      ps::batch(3);
  std::vector<seen> before = see_epoch(offline);
  REQUIRE(before.size() == expected.size());
  for (std::size_t i = 0; i < before.size(); ++i) before[i].positions = expected[i].positions;
  CHECK(before == expected);
}

TEST_CASE("stage/online_pack: windows of any size, and batches larger than them") {
  for (const std::uint64_t window : {1u, 2u, 7u, 50u, 199u, 200u, 201u, 5000u})
    for (const std::uint64_t rows : {1u, 3u, 200u}) {
      const auto plan = texts(200) | ps::shuffle_buffer(20) | ps::pack<"tokens">(64, {.window = window}) |
                        ps::batch(rows) | ps::workers(rows % 3);
      const auto all = see_epoch(plan);
      const auto found = check_tokens(all, 64);
      CHECK(found.size() == 200);
      check_complete(found);
      for (std::size_t i = 0; i + 1 < all.size(); ++i) CHECK(all[i].rows == rows);
    }
}

TEST_CASE("stage/online_pack: what it keeps and what it loses") {
  const auto plain = texts(100) | ps::pack<"tokens">(64) | ps::batch(4);
  const auto filtered = texts(100) | ps::filter(odd_thirds) | ps::pack<"tokens">(64) | ps::batch(4);
  static_assert(ps::deterministic<decltype(plain)> && ps::resumable<decltype(plain)>);
  static_assert(!ps::indexed<decltype(plain)> && !ps::lockstep<decltype(plain)> &&
                !ps::elastic<decltype(plain)>);
  static_assert(ps::deterministic<decltype(filtered)> && ps::resumable<decltype(filtered)>);
  static_assert(!ps::elastic<decltype(filtered)> && !ps::lockstep<decltype(filtered)>);
  static_assert(ps::lockstep<decltype(plain | ps::steps(3))>);
  static_assert(ps::elastic<decltype(texts(100) | ps::pack<"tokens">(&length_of, 64) | ps::batch(4))>);
  CHECK_THROWS_WITH((texts(100) | ps::shard(0, 2) | ps::pack<"tokens">(64) | ps::batch(4)).open(),
                    Contains("`lockstep` is lost by pack"));
}

TEST_CASE("stage/online_pack: a state resumes after every batch") {
  const penstock_test::deadline guard("online_pack");
  const ps::pack_options small{.window = 40};
  SECTION("without deciders") { check_all_stops(texts(200) | ps::pack<"tokens">(64, small) | ps::batch(3)); }
  SECTION("filter") {
    check_all_stops(texts(500) | ps::shuffle(ps::seed(1)) | ps::filter(odd_thirds) |
                    ps::pack<"tokens">(64, small) | ps::batch(3));
  }
  SECTION("split samples, batches larger than windows") {
    check_all_stops(texts(300) | ps::shuffle(ps::seed(1)) | ps::filter(odd_thirds) |
                    ps::pack<"tokens">(16, {.overlong = ps::overlong::split, .window = 9}) | ps::batch(30));
  }
  SECTION("shuffle_buffer") {
    check_all_stops(texts(200) | ps::shuffle_buffer(30) | ps::pack<"tokens">(64, small) | ps::batch(2));
    check_all_stops(texts(300) | ps::shuffle_buffer(30) | ps::filter(odd_thirds) |
                    ps::pack<"tokens">(64, small) | ps::batch(2));
  }
  SECTION("unbatch") {
    const auto many = [](std::uint64_t i) {
      std::vector<text> all;
      for (std::uint64_t k = 0; k < i % 5; ++k) all.push_back(text_of(5 * i + k));
      return all;
    };
    check_all_stops(ps::generated(60, identity) | ps::map(many) | ps::unbatch |
                    ps::pack<"tokens">(64, small) | ps::batch(3));
  }
  SECTION("steps") {
    // a pass has about 15 rows, so that epochs have several, and end within one
    const auto base = texts(100) | ps::shuffle(ps::seed(1)) | ps::filter(odd_thirds);
    check_all_stops(base | ps::pack<"tokens">(64, small) | ps::batch(3) | ps::steps(8), 3);
    check_all_stops(base | ps::pack<"tokens">(64, {.window = 10'000}) | ps::batch(4) | ps::steps(9), 3);
    check_all_stops(base | ps::pack<"tokens">(64, {.window = 7}) | ps::batch(4) | ps::steps(2), 4);
    // many windows have no rows
    check_all_stops(base | ps::pack<"tokens">(9, {.overlong = ps::overlong::drop, .window = 2}) |
                    ps::batch(3) | ps::steps(8));
  }
  SECTION("take and skip of samples and of batches") {
    check_all_stops(texts(400) | ps::filter(odd_thirds) | ps::skip(5) | ps::take(100) |
                    ps::pack<"tokens">(64, small) | ps::batch(2) | ps::skip(1) | ps::take(9));
  }
  SECTION("the survivors of one rank of three") {
    const auto rank = ps::shard(1, 3);
    check_all_stops(texts(600) | ps::filter(odd_thirds) | rank | ps::pack<"tokens">(64, small) |
                        ps::batch(2) | ps::steps(6),
                    3);
    check_all_stops(texts(600) | rank | ps::filter(odd_thirds) | ps::pack<"tokens">(64, small) |
                        ps::batch(2) | ps::steps(6),
                    3);
    check_all_stops(texts(600) | rank | ps::pack<"tokens">(64, small) | ps::global_batch(7) | ps::steps(6),
                    3);
  }
  SECTION("tails") {
    check_all_stops(texts(190) | ps::pack<"tokens">(64, small) | ps::batch(7, ps::tail::drop));
    check_all_stops(texts(190) | ps::pack<"tokens">(64, small) | ps::batch(7, ps::tail::pad));
  }
}

TEST_CASE("stage/online_pack: take and skip of batches are those of the whole epoch") {
  const auto plan =
      texts(400) | ps::filter(odd_thirds) | ps::pack<"tokens">(64, {.window = 30}) | ps::batch(3);
  const std::vector<seen> all = see_epoch(plan);
  REQUIRE(all.size() > 12);
  CHECK(see_epoch(plan | ps::skip(2) | ps::take(5)) == std::vector<seen>(all.begin() + 2, all.begin() + 7));
}

TEST_CASE("stage/online_pack: with steps(n) every pass is packed by itself") {
  const auto base = texts(60) | ps::shuffle(ps::seed(4)) | ps::filter(odd_thirds);
  const auto plan = base | ps::pack<"tokens">(64) | ps::batch(1);
  const std::vector<seen> all = see_epoch(plan | ps::steps(3 * see_epoch(plan).size()));
  auto first = all.begin();
  for (std::size_t pass = 0; pass < 3; ++pass) {
    std::size_t samples = 0;
    auto last = first;
    while (samples < 20) samples += (last++)->documents.size();
    const auto found = check_tokens({first, last}, 64);
    first = last;
    CHECK(found.size() == 20);
    check_complete(found);
  }
}

TEST_CASE("stage/online_pack: ranks share the survivors, and each packs its own") {
  std::map<std::uint64_t, std::uint64_t> found;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    auto run = (texts(600) | ps::filter(odd_thirds) | ps::shard(rank, 3) |
                ps::pack<"tokens">(64, {.window = 50}) | ps::batch(4) | ps::steps(7))
                   .open();
    std::vector<seen> all;
    for (auto&& b : run.epoch(0)) all.push_back(see(b));
    REQUIRE(all.size() == 7);
    for (const auto& [label, count] : check_tokens(all, 64)) {
      CHECK(label % 9 == 1 + 3 * rank);
      found[label] += count;
    }
  }
  CHECK(found.size() > 150);
}

TEST_CASE("stage/online_pack: long samples are cut, split, left out or refused") {
  const auto base = texts(400) | ps::shuffle(ps::seed(1)) | ps::filter(odd_thirds);
  const auto with = [&](ps::overlong what) {
    return check_tokens(
        see_epoch(base | ps::pack<"tokens">(25, {.overlong = what, .window = 33}) | ps::batch(3)), 25);
  };
  SECTION("truncate") {
    const auto found = with(ps::overlong::truncate);
    CHECK(found.size() == 133);
    for (const auto& [label, count] : found) CHECK(count == std::min<std::uint64_t>(25, length_of(label)));
  }
  SECTION("split") {
    const auto found = with(ps::overlong::split);
    CHECK(found.size() == 133);
    check_complete(found);
  }
  SECTION("drop") {
    const auto found = with(ps::overlong::drop);
    std::uint64_t fitting = 0;
    for (std::uint64_t i = 1; i < 400; i += 3) fitting += length_of(i) <= 25 ? 1 : 0;
    CHECK(found.size() == fitting);
    check_complete(found);
  }
  SECTION("refuse") {
    const auto plan = base | ps::pack<"tokens">(25, {.window = 33}) | ps::batch(3);
    CHECK_THROWS_WITH(see_epoch(plan), Contains("tokens, but a row holds 25") &&
                                           Contains("overlong::split") && Contains("sample"));
    // those before it are delivered, and the state is the one before it
    const auto late = texts(200) | ps::filter([](const text& t) {
                        return ps::get<"label">(t) >= 150 || ps::get<"tokens">(t).size() <= 25;
                      }) |
                      ps::pack<"tokens">(25, {.window = 5}) | ps::batch(1);
    auto run = late.open();
    std::size_t before = 0;
    std::string state = to_string(run.state());
    try {
      for (auto&& b : run.epoch(0)) {
        before += b.valid_size();
        state = to_string(run.state());
      }
      FAIL("a long sample was packed");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::argument);
      REQUIRE(e.at());
      CHECK(e.at()->index >= 150);
      CHECK(length_of(e.at()->index) > 25);
    }
    CHECK(before > 50);
    CHECK(to_string(run.state()) == state);
  }
  SECTION("with steps, an error if all are left out") {
    const auto none = texts(50) | ps::filter([](const text& t) { return ps::get<"tokens">(t).size() > 25; }) |
                      ps::pack<"tokens">(25, {.overlong = ps::overlong::drop, .window = 4}) | ps::batch(3);
    CHECK(see_epoch(none).empty());
    const penstock_test::deadline guard("online_pack");
    CHECK_THROWS_WITH(see_epoch(none | ps::steps(3)), Contains("too long for a row of pack"));
  }
}

TEST_CASE("stage/online_pack: align, max_samples, pad, in_order and context_parallel") {
  const auto base = texts(300) | ps::filter(odd_thirds);
  for (const seen& one : see_epoch(
           base | ps::pack<"tokens">(64, {.window = 40, .align = 8, .max_samples = 2}) | ps::batch(4))) {
    std::map<std::uint32_t, int> in_row;
    for (const ps::packed_document& d : one.documents) {
      CHECK(d.begin % 8 == 0);
      CHECK(d.padded % 8 == 0);
      ++in_row[d.row];
    }
    for (const auto& [row, samples] : in_row) CHECK(samples <= 2);
  }
  std::uint64_t next = 1;
  for (const seen& one :
       see_epoch(base | ps::pack<"tokens">(64, {.how = ps::packing::in_order, .window = 7}) | ps::batch(2)))
    for (const std::uint64_t label : one.labels) {
      CHECK(label == next);
      next += 3;
    }
  CHECK(next == 301);
  for (auto&& b : (base | ps::pack<"tokens">(128, {.pad = -7}) | ps::batch(64, ps::tail::pad)).epoch(0)) {
    CHECK(b.size() == 64);
    const auto view = ps::get<"tokens">(b);
    CHECK(view.shape() == ps::extents(64, 128));
    const auto places = view.mask();
    for (std::size_t i = 0; i < places.size(); ++i) CHECK((view.flat()[i] == -7) == (places[i] == 0));
  }

  const auto packed = base | ps::pack<"tokens", "loss">(96, {.window = 40, .align = 6});
  std::vector<std::vector<std::int64_t>> next_tokens, answers;
  for (auto&& b : (packed | ps::batch(4)).epoch(0)) {
    next_tokens.push_back(ps::labels<"tokens">(b));
    answers.push_back(ps::labels<"tokens", "loss">(b));
  }
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    std::size_t step = 0;
    for (auto&& b : (packed | ps::context_parallel(3, rank) | ps::batch(4)).epoch(0)) {
      const auto view = ps::get<"tokens">(b);
      REQUIRE(view.shape() == ps::extents(b.size(), 32));
      const auto ids = view.position_ids(), documents = view.document_ids();
      const auto mine = ps::labels<"tokens">(b), asked = ps::labels<"tokens", "loss">(b);
      for (std::size_t i = 0; i < documents.size(); ++i) {
        if (documents[i] < 0) continue;
        const ps::packed_document& d = view.documents()[static_cast<std::size_t>(documents[i])];
        const std::size_t at = d.row * 96 + d.begin + static_cast<std::size_t>(ids[i]);
        CHECK(mine[i] == next_tokens[step][at]);
        CHECK(asked[i] == answers[step][at]);
      }
      ++step;
    }
    CHECK(step == next_tokens.size());
  }
}

TEST_CASE("stage/online_pack: tails") {
  const auto base = texts(190) | ps::filter(odd_thirds) | ps::pack<"tokens">(64, {.window = 20});
  const auto kept = see_epoch(base | ps::batch(9)), dropped = see_epoch(base | ps::batch(9, ps::tail::drop)),
             padded = see_epoch(base | ps::batch(9, ps::tail::pad));
  REQUIRE(kept.back().rows % 9 != 0);
  CHECK(dropped == std::vector<seen>(kept.begin(), kept.end() - 1));
  REQUIRE(padded.size() == kept.size());
  CHECK(padded.back().rows == 9);
  CHECK(padded.back().documents == kept.back().documents);
  check_complete(check_tokens(padded, 64));
  CHECK(see_epoch(base | ps::batch(std::uint64_t{1} << 31)).size() == 1);
}

TEST_CASE("stage/online_pack: empty epochs, and samples of no tokens") {
  const auto nothing = [](const text&) { return false; };
  const auto none = texts(30) | ps::filter(nothing) | ps::pack<"tokens">(64) | ps::batch(2);
  auto run = (none | ps::allow_empty).open();
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch) FAIL("a batch of " << b.size() << " rows");
  CHECK(run.state().epoch == 3);
  CHECK_THROWS_WITH(see_epoch(none | ps::steps(2)), Contains("gave this rank no sample"));
  const auto empty = ps::generated(30, identity) |
                     ps::map([](std::uint64_t i) { return text(tokens(), i, mask()); }) |
                     ps::pack<"tokens", "loss">(64) | ps::batch(2);
  std::size_t samples = 0;
  for (auto&& b : empty.epoch(0)) {
    samples += b.valid_size();
    for (const std::int32_t token : ps::get<"tokens">(b).flat()) CHECK(token == 0);
  }
  CHECK(samples == 30);
}

TEST_CASE("stage/online_pack: samples without names, and sequences whose length is part of their type") {
  std::size_t found = 0, expected = 0;
  const auto plain = ps::generated(100, identity) |
                     ps::map([](std::uint64_t i) { return sequence(i, length_of(i)); }) | ps::pack(64) |
                     ps::batch(4);
  for (auto&& b : plain.epoch(0)) {
    CHECK(b.values().shape() == ps::extents(b.size(), 64));
    for (const std::int32_t token : b.values().flat()) found += token != 0 ? 1 : 0;
  }
  for (std::uint64_t i = 0; i < 100; ++i) expected += length_of(i);
  CHECK(found == expected);

  const auto fives = ps::generated(50, identity) | ps::map([](std::uint64_t i) {
                       return std::array<std::uint64_t, 5>{i, i, i, i, i};
                     }) |
                     ps::pack(16, {.how = ps::packing::in_order}) | ps::batch(3);
  std::uint64_t next = 0;
  for (auto&& b : fives.epoch(0))
    for (std::size_t r = 0; r < b.size(); ++r)
      for (std::size_t k = 0; k < 3 && next < 50; ++k, ++next)
        CHECK(b.values().flat()[16 * r + 5 * k] == next);
  CHECK(next == 50);
}

TEST_CASE("stage/online_pack: other fields are collated as batch says, and batches are mapped") {
  using wide = ps::record<ps::field<"tokens", tokens>, ps::field<"words", tokens>, ps::field<"pair", tokens>>;
  const auto plan = ps::generated(120, identity) | ps::map([](std::uint64_t i) {
                      return wide(sequence(i, length_of(i)), sequence(i, i % 4), sequence(i, 2));
                    }) |
                    ps::pack<"tokens">(64, {.window = 25}) |
                    ps::batch(3, ps::collate<"words">(ps::pad_to_longest), ps::collate<"pair">(ps::stack));
  std::size_t documents = 0;
  for (auto&& b : plan.epoch(0)) {
    const auto pairs = ps::get<"pair">(b);
    REQUIRE(pairs.shape() == ps::extents(b.valid_size(), 2));
    const auto words = ps::get<"words">(b);
    for (std::size_t i = 0; i < b.valid_size(); ++i, ++documents) {
      const auto sample = static_cast<std::uint64_t>(pairs.flat()[2 * i]) / 1000;
      CHECK(ps::get<"tokens">(b).documents()[i].whole == length_of(sample));
      CHECK(words.lengths()[i] == sample % 4);
    }
  }
  CHECK(documents == 120);

  const auto sums = texts(100) | ps::filter(odd_thirds) | ps::pack<"tokens">(64) | ps::batch(3) |
                    ps::map_batch([](auto& b) {
                      for (std::int32_t& token : ps::get<"tokens">(b).flat()) token = -token;
                    });
  for (auto&& b : sums.epoch(0)) {
    std::int32_t largest = -1;
    for (const std::int32_t token : ps::get<"tokens">(b).flat()) largest = std::max(largest, token);
    CHECK(largest <= 0);
  }
}

TEST_CASE("stage/online_pack: a device gets the rows, also of the last, shorter batch") {
  const auto base =
      texts(200) | ps::filter(odd_thirds) | ps::pack<"tokens">(64, {.window = 20}) | ps::batch(4);
  const std::vector<seen> expected = see_epoch(base);
  const ps::simulated accelerator(ps::simulated::options{std::chrono::microseconds(1), 1e9});
  for (const unsigned workers : {0u, 2u}) {
    std::size_t step = 0;
    for (auto&& b : (base | ps::pin_and_copy(accelerator) | ps::workers(workers)).epoch(0)) {
      const auto there = ps::device_view<"tokens">(b);
      REQUIRE(there.shape() == ps::extents(b.size(), 64));
      CHECK(std::memcmp(there.data(), expected[step].tokens.data(), expected[step].tokens.size() * 4) == 0);
      CHECK(see(b) == expected[step++]);
    }
    CHECK(step == expected.size());
  }
}

TEST_CASE("stage/online_pack: what a batch tells of itself") {
  const auto plan = texts(300) | ps::shuffle(ps::seed(3)) | ps::filter(odd_thirds) |
                    ps::pack<"tokens", "loss">(64, {.window = 30}) | ps::batch(4) | ps::workers(2);
  auto run = plan.open();
  std::uint64_t step = 0, samples = 0;
  for (auto&& b : run.epoch(0)) {
    CHECK(b.step() == step++);
    const auto view = ps::get<"tokens">(b);
    CHECK(b.packing().row_count() == b.size());
    CHECK(b.valid_size() == view.documents().size());
    CHECK(b.valid().size() == b.valid_size());
    CHECK(b.keys().size() == b.valid_size());
    CHECK(b.global_size() == b.valid_size());
    CHECK(view.cu_seqlens().size() >= view.documents().size() + 1);
    samples += b.valid_size();
    CHECK(run.counters().samples == samples);
  }
  CHECK(samples == 100);
}

TEST_CASE("stage/online_pack: bad samples are left out, and are counted once after a restart too") {
  const auto bad = [](std::uint64_t i) {
    if (i % 10 == 3) throw ps::error(ps::errc::format, "bad");
    return i % 10 == 7 ? text(sequence(i, 4), i, mask(3)) : text_of(i);  // unequal lengths
  };
  const auto plan = ps::generated(200, identity) | ps::map(bad) | ps::shuffle(ps::seed(3)) |
                    ps::pack<"tokens", "loss">(64, {.window = 30}) | ps::bad_samples::skip(50) | ps::batch(2);
  std::set<std::uint64_t> found;
  auto run = plan.open();
  std::vector<std::string> states;
  for (auto&& b : run.epoch(0)) {
    for (const std::uint64_t label : ps::get<"label">(b)) CHECK(found.insert(label).second);
    states.push_back(to_string(run.state()));
  }
  for (std::uint64_t i = 0; i < 200; ++i) CHECK(found.count(i) == (i % 10 == 3 || i % 10 == 7 ? 0 : 1));
  CHECK(run.bad_samples().skipped == 40);
  for (std::size_t i = 0; i < states.size(); ++i) {
    auto again = plan.open(ps::state_from_string(states[i]));
    std::size_t next = i + 1;
    for (auto epoch : again.epochs(1))
      for (auto&& b : epoch) {
        CHECK(b.size() != 0);
        REQUIRE(next < states.size());
        CHECK(to_string(again.state()) == states[next++]);
      }
    CHECK(next == states.size());
  }
  const auto replaced = ps::generated(200, identity) | ps::map(bad) | ps::shuffle(ps::seed(3)) |
                        ps::pack<"tokens", "loss">(64, {.window = 30}) | ps::bad_samples::replace(50) |
                        ps::batch(2);
  std::size_t samples = 0;
  for (const seen& one : see_epoch(replaced)) {
    samples += one.documents.size();
    for (std::size_t i = 0; i < one.documents.size(); ++i)
      CHECK(one.documents[i].length == length_of(one.labels[i]));
  }
  CHECK(samples == 200);
  const auto fatal =
      ps::generated(200, identity) | ps::map(bad) | ps::pack<"tokens", "loss">(64) | ps::batch(2);
  CHECK_THROWS_WITH(see_epoch(fatal), Contains("bad"));
  const auto unequal = ps::generated(3, [](std::uint64_t i) { return i + 7; }) | ps::map(bad) |
                       ps::pack<"tokens", "loss">(64) | ps::batch(2);
  CHECK_THROWS_WITH(see_epoch(unequal), Contains("4 values in one field and 3 in another") ||
                                            Contains("3 values in one field and 4 in another"));
}

TEST_CASE("stage/online_pack: impossible rows are refused when the plan is opened") {
  const auto base = texts(30) | ps::filter(odd_thirds);
  CHECK_THROWS_WITH((base | ps::pack<"tokens">(0) | ps::batch(2)).open(),
                    Contains("a row of pack has 0 tokens"));
  CHECK_THROWS_WITH(base | ps::pack<"tokens">(-1), Contains("negative"));
  CHECK_THROWS_WITH((base | ps::pack<"tokens">(64, {.window = 0}) | ps::batch(2)).open(),
                    Contains(".window is 0"));
  CHECK_THROWS_WITH((base | ps::pack<"tokens">(64, {.align = 10}) | ps::batch(2)).open(),
                    Contains("no multiple of .align"));
  CHECK_THROWS_WITH((base | ps::pack<"tokens">(64) | ps::context_parallel(2, 0) | ps::batch(2)).open(),
                    Contains(".align = 4"));
}

TEST_CASE("stage/online_pack: states that do not fit are refused") {
  const auto base = texts(200) | ps::filter(odd_thirds);
  const auto plan = base | ps::pack<"tokens">(64, {.window = 20}) | ps::batch(2);
  auto run = plan.open();
  for (int i = 0; i < 3; ++i) (void)run.next();
  ps::state s = run.state();
  REQUIRE(s.packed.size() == 2);
  CHECK(ps::state_from_string(to_string(s)) == s);
  CHECK_THROWS_WITH((base | ps::pack<"tokens">(64, {.window = 21}) | ps::batch(2)).open(s),
                    Contains("another sequence") && Contains("windows of 21"));
  ps::state rows = s;
  rows.packed[1] = 1000;
  auto edited = plan.open(rows);
  CHECK_THROWS_WITH(*edited.next(), Contains("1000 rows of a window of pack are done"));
  rows.packed.pop_back();
  CHECK_THROWS_WITH(plan.open(rows), Contains("windows of pack"));
  auto other = (base | ps::batch(2, ps::ragged)).open();
  ps::state without = other.state();
  without.packed = {1, 1};
  CHECK_THROWS_WITH((base | ps::batch(2, ps::ragged)).open(without), Contains("windows of pack"));
}

TEST_CASE("stage/online_pack: a run that is stopped, left or restarted within a window") {
  const auto plan = texts(400) | ps::filter(odd_thirds) | ps::pack<"tokens">(64, {.window = 50}) |
                    ps::batch(2) | ps::workers(2);
  const std::vector<seen> first = see_epoch(plan, 0), second = see_epoch(plan, 1);
  auto run = plan.open();
  for (auto&& b : run.epoch(0)) {
    CHECK(see(b) == first[0]);
    break;
  }
  std::vector<seen> all;
  for (auto&& b : run.rest()) all.push_back(see(b));
  CHECK(all == std::vector<seen>(first.begin() + 1, first.end()));
  for (int again = 0; again < 2; ++again) {
    all.clear();
    for (auto&& b : run.epoch(1)) all.push_back(see(b));
    CHECK(all == second);
  }
  // left with rows of the last window to come, when all samples have been read
  all.clear();
  for (auto&& b : run.epoch(0)) {
    all.push_back(see(b));
    if (all.size() + 1 == first.size()) break;
  }
  CHECK(run.state().epoch == 0);
  all.clear();
  for (auto&& b : run.epoch(1)) all.push_back(see(b));
  CHECK(all == second);
  for (auto&& b : run.epoch(0)) {
    CHECK(b.size() == 2);
    run.request_stop();
  }
  CHECK(run.stopped());
  auto unread = plan.open();
  unread.request_stop();
  for (auto&& b : unread.epoch(0)) FAIL("a batch of " << b.size() << " rows after a stop");
}

TEST_CASE("stage/online_pack: a forward source is packed as it comes, and resumes") {
  const penstock_test::temp_dir dir;
  const penstock_test::deadline guard("online_pack");
  std::vector<std::string> names;
  std::uint64_t number = 0;
  for (const int count : {0, 61, 1, 87, 0, 40}) {
    penstock_test::raw_tar tar;
    for (int i = 0; i < count; ++i, ++number) {
      const tokens values = sequence(number, length_of(number));
      tar.member(std::to_string(number) + ".bin", std::string(reinterpret_cast<const char*>(values.data()),
                                                              values.size() * sizeof(values[0])));
    }
    names.push_back((dir / (std::to_string(names.size()) + ".tar")).string());
    tar.end().save(names.back());
  }
  const auto as_text = [](const auto& s) {
    const auto values = ps::get<"bin">(s);
    tokens all(values.size() / 4);
    if (!all.empty()) std::memcpy(all.data(), values.data(), values.size());
    const std::uint64_t i = all.empty() ? 999 : static_cast<std::uint64_t>(all[0]) / 1000;
    const std::size_t count = all.size();
    return text(std::move(all), i, mask(count));
  };
  const auto base = ps::webdataset_stream(names) | ps::fields<"bin"> | ps::map(as_text);
  const auto plan = base | ps::pack<"tokens">(64, {.window = 33}) | ps::batch(3);
  static_assert(ps::resumable<decltype(plan)> && !ps::lockstep<decltype(plan)>);
  std::map<std::uint64_t, std::uint64_t> found;
  for (const seen& one : see_epoch(plan | ps::workers(2)))
    for (std::size_t i = 0; i < one.documents.size(); ++i) found[one.labels[i]] += one.documents[i].length;
  for (std::uint64_t i = 0; i < number; ++i)
    if (length_of(i) != 0) CHECK(found[i] == length_of(i));
  check_all_stops(plan);
  check_all_stops(
      base | ps::filter(odd_thirds) | ps::pack<"tokens">(64, {.window = 10}) | ps::batch(2) | ps::steps(9), 2,
      2);
  const auto mixed = base | ps::shuffle_buffer(20) | ps::pack<"tokens">(64, {.window = 33}) | ps::batch(3);
  static_assert(!ps::resumable<decltype(mixed)>);
  CHECK(row_count(see_epoch(mixed)) >= row_count(see_epoch(plan)) - 3);
}

}  // namespace online_pack_test
