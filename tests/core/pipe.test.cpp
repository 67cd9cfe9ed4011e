// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/pipe.hpp>

#include "support/catch.hpp"

#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#if __has_include(<range/v3/view/take.hpp>)
#include <range/v3/view/take.hpp>
#endif

#include <cstdint>
#include <forward_list>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace pipe_test {

inline constexpr auto twice = [](int x) { return 2 * x; };
inline constexpr auto even = [](int x) { return x % 2 == 0; };
inline constexpr auto text_length = [](const std::string& s) { return static_cast<int>(s.size()); };
using doubling = decltype(ps::map(twice));
using measuring = decltype(ps::map(text_length));
using filtering = decltype(ps::filter(even));
using batching = decltype(ps::batch(2));
using copying = std::remove_cvref_t<decltype(ps::pin_and_copy)>;
using shuffling = decltype(ps::shuffle(ps::seed(1)));
using sharding = decltype(ps::shard(0, 1));
using buffering = decltype(ps::shuffle_buffer(2));
using counting = decltype(ps::steps(2));

using ints = decltype(ps::from({1, 2, 3}));
using forward_ints = decltype(ps::from(std::forward_list<int>{}));
using texts = decltype(ps::from(std::vector<std::string>{}));
using sample = ps::record<ps::field<"a", int>, ps::field<"b", std::string>>;
using records = decltype(ps::from(std::vector<sample>{}));
template <class L, class R>
using joined = decltype(std::declval<L>() | std::declval<R>());

static_assert(ps::can_connect<ints, doubling> && ps::can_connect<const ints&, const doubling&>,
              "a source and a stage for its elements");
static_assert(ps::can_connect<ints, batching> && ps::can_connect<joined<ints, doubling>, batching>,
              "a plan and a stage");
static_assert(ps::can_connect<doubling, batching> && ps::can_connect<batching, doubling>,
              "two stages, whose order is judged when their source is known");
static_assert(!ps::can_connect<ints, joined<batching, doubling>>, "and then it is");
static_assert(ps::can_connect<ints, joined<doubling, batching>>, "a source and a segment");
static_assert(!ps::can_connect<texts, doubling> && ps::can_connect<texts, measuring>,
              "a function must accept the element");
static_assert(!ps::can_connect<ints, ints> && !ps::can_connect<joined<ints, doubling>, ints> &&
                  !ps::can_connect<doubling, ints>,
              "a source stands at the beginning");
static_assert(!ps::can_connect<ints, int> && !ps::can_connect<std::vector<int>, doubling> &&
                  !ps::can_connect<int, int>,
              "both sides are ours");
static_assert(!ps::can_connect<joined<ints, batching>, batching> &&
                  !ps::can_connect<joined<ints, batching>, doubling> &&
                  !ps::can_connect<joined<ints, batching>, filtering> &&
                  !ps::can_connect<joined<ints, batching>, sharding> &&
                  !ps::can_connect<joined<ints, batching>, buffering>,
              "what stands before batch");
static_assert(ps::can_connect<joined<ints, batching>, copying> &&
                  ps::can_connect<joined<ints, batching>, counting> && !ps::can_connect<ints, copying> &&
                  !ps::can_connect<ints, counting>,
              "what stands after batch");
static_assert(!ps::can_connect<joined<joined<ints, batching>, copying>, copying>, "one copy is enough");
static_assert(!ps::can_connect<joined<ints, sharding>, sharding>, "there is one world");
static_assert(ps::can_connect<ints, shuffling> && !ps::can_connect<forward_ints, shuffling> &&
                  ps::can_connect<forward_ints, buffering> &&
                  ps::can_connect<forward_ints, decltype(ps::take(1))>,
              "a source that is read forward is not shuffled but can be mixed");
static_assert(!ps::can_connect<joined<ints, filtering>, shuffling> &&
                  !ps::can_connect<joined<ints, filtering>, buffering> &&
                  !ps::can_connect<joined<ints, buffering>, shuffling> &&
                  ps::can_connect<joined<ints, shuffling>, filtering>,
              "orders stand before filters and cursors");
static_assert(ps::can_connect<texts, decltype(ps::batch(2, ps::ragged))> && !ps::can_connect<texts, batching>,
              "texts need a collate policy");
static_assert(!ps::can_connect<records, batching> &&
                  ps::can_connect<records, decltype(ps::batch(2, ps::collate<"b">(ps::ragged)))> &&
                  !ps::can_connect<records, decltype(ps::batch(2, ps::collate<"a">(ps::ragged)))>,
              "and fields of texts as well");
static_assert(ps::can_connect<records, decltype(ps::map<"a">(twice))> &&
                  !ps::can_connect<records, decltype(ps::map<"b">(twice))> &&
                  !ps::can_connect<records, decltype(ps::map<"c">(twice))> &&
                  !ps::can_connect<ints, decltype(ps::map<"a">(twice))>,
              "a field must be there and suit");
static_assert(ps::can_connect<records, decltype(ps::fields<"b", "a">)> &&
                  !ps::can_connect<records, decltype(ps::fields<"c">)> &&
                  !ps::can_connect<ints, decltype(ps::fields<"a">)>,
              "fields chooses what is there");
static_assert(ps::can_connect<texts, decltype(ps::decode<ps::integer>)> &&
                  !ps::can_connect<ints, decltype(ps::decode<ps::integer>)> &&
                  !ps::can_connect<texts, decltype(ps::decode<>)> &&
                  !ps::can_connect<texts, decltype(ps::decode<int>)> &&
                  !ps::can_connect<texts, decltype(ps::decode<ps::text, ps::integer>)> &&
                  ps::can_connect<records, decltype(ps::decode<ps::integer>)> &&
                  ps::can_connect<records, decltype(ps::decode<ps::field<"b", ps::integer>>)> &&
                  !ps::can_connect<records, decltype(ps::decode<ps::field<"a", ps::integer>>)>,
              "codecs want bytes");
static_assert(!ps::can_connect<ints, decltype(ps::unbatch)> &&
                  ps::can_connect<decltype(ps::from(std::vector<std::vector<int>>{})), decltype(ps::unbatch)>,
              "unbatch wants something to take apart");
static_assert(ps::can_connect<ints, decltype(ps::require<ps::guarantee::indexed>)> &&
                  !ps::can_connect<forward_ints, decltype(ps::require<ps::guarantee::indexed>)>,
              "require asks");
static_assert(
    !ps::can_connect<joined<ints, std::remove_cvref_t<decltype(ps::enumerate)>>, decltype(ps::enumerate)>,
    "a field is there once");

// Two types of other libraries are left alone.
template <class L, class R>
concept piped = requires(L l, R r) { l | r; };
static_assert(!piped<std::vector<int>, std::string>, "a pair without a part finds no operator of ours");
static_assert(piped<std::vector<int>&, decltype(std::views::take(1))>, "ranges keep their own operator");

template <class Plan>
std::vector<int> all_values(const Plan& loader) {
  std::vector<int> all;
  for (auto&& b : loader)
    for (const int x : b.values()) all.push_back(x);
  return all;
}

}  // namespace pipe_test

TEST_CASE("core/pipe: stages joined without a source can be used in several plans") {
  using namespace pipe_test;
  const auto piece = ps::map(twice) | ps::filter([](int x) { return x > 2; }) | ps::batch(2);
  static_assert(ps::part_of_kind<decltype(piece), ps::segment_tag>, "stages make a segment");
  const auto first = ps::from({1, 2, 3}) | piece;
  const auto second = ps::from({4, 5}) | ps::take(1) | piece;
  CHECK(all_values(first) == std::vector<int>{4, 6});
  CHECK(all_values(second) == std::vector<int>{8});
}

TEST_CASE("core/pipe: a chain does not depend on how it was put together") {
  using namespace pipe_test;
  const auto source = ps::from({1, 2, 3});
  const auto map = ps::map(twice);
  const auto filter = ps::filter(even);
  const auto batch = ps::batch(2);
  const auto from_left = ((source | map) | filter) | batch;
  const auto from_right = source | (map | (filter | batch));
  const auto by_pieces = (source | map) | (filter | batch);
  const auto of_segments = source | ((map | filter) | batch);
  CHECK(std::is_same_v<decltype(from_left), decltype(from_right)>);
  CHECK(std::is_same_v<decltype(from_left), decltype(by_pieces)>);
  CHECK(std::is_same_v<decltype(from_left), decltype(of_segments)>);
  CHECK(all_values(from_right) == std::vector<int>{2, 4, 6});
}

TEST_CASE("core/pipe: stages keep their arguments") {
  using namespace pipe_test;
  int factor = 3;
  auto scale = ps::map([factor](int x) { return factor * x; });
  const auto loader = ps::from({1, 2}) | scale | ps::batch(2);
  factor = 0;
  CHECK(all_values(loader) == std::vector<int>{3, 6});
}

TEST_CASE("core/pipe: a run is a range for the standard's views") {
  const auto loader = ps::from({1, 2, 3, 4, 5, 6}) | ps::batch(1);
  auto run = loader.open();
  std::vector<int> all;
  for (auto&& b : run | std::views::take(3))
    for (const int x : b.values()) all.push_back(x);
  CHECK(all == std::vector<int>{1, 2, 3});
}

TEST_CASE("core/pipe: the standard's views may be a source's data") {
  using namespace pipe_test;
  const auto loader = ps::from(std::views::iota(0, 10) | std::views::drop(6)) | ps::map(twice) | ps::batch(4);
  CHECK(all_values(loader) == std::vector<int>{12, 14, 16, 18});
}

#if __has_include(<range/v3/view/take.hpp>)
TEST_CASE("core/pipe: range-v3's views take any range") {
  const auto loader = ps::from({1, 2, 3, 4, 5, 6}) | ps::batch(1);
  auto run = loader.open();
  std::vector<int> all;
  for (auto&& b : run | ranges::views::take(2))
    for (const int x : b.values()) all.push_back(x);
  CHECK(all == std::vector<int>{1, 2});
}
#endif
