// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/plan.hpp>

#include "support/catch.hpp"

#include <penstock/device/host.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>

#include <concepts>
#include <cstdint>
#include <forward_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace plan_test {

struct empty_source {
  using penstock_part = ps::source_tag;
  using element = int;
  [[nodiscard]] std::uint64_t size() const { return 0; }
};
struct lossy {
  using penstock_part = ps::annotation_tag;
  static consteval ps::guarantee_set loses(ps::place) {
    return ps::guarantee_set(ps::guarantee::deterministic);
  }
};

inline constexpr auto twice = [](int x) { return 2 * x; };
inline constexpr auto even = [](int x) { return x % 2 == 0; };

inline auto numbers() { return ps::from({1, 2, 3, 4, 5, 6}); }
inline auto forward() { return ps::from(std::forward_list<int>{1, 2, 3, 4, 5, 6}); }

/// The guarantees that a plan keeps, one letter each: i, d, r, e, l.
template <class P>
std::string kept(const P&) {
  std::string letters;
  if (ps::indexed<P>) letters += 'i';
  if (ps::deterministic<P>) letters += 'd';
  if (ps::resumable<P>) letters += 'r';
  if (ps::elastic<P>) letters += 'e';
  if (ps::lockstep<P>) letters += 'l';
  return letters;
}

using kept_all =
    decltype(numbers() | ps::shuffle(ps::seed(1)) | ps::shard(0, 1) | ps::map(twice) | ps::batch(2));
static_assert(ps::indexed<kept_all> && ps::deterministic<kept_all> && ps::resumable<kept_all> &&
                  ps::elastic<kept_all> && ps::lockstep<kept_all>,
              "order, map and batch keep all guarantees");
static_assert(ps::elastic<const kept_all&>, "a reference to a plan is asked in the same way");
// Whether a loop over the plan itself would see one epoch of many.
[[maybe_unused]] const auto random_map =
    ps::map([](int x, ps::rng& r) { return x + static_cast<int>(r.below(2)); });
[[maybe_unused]] const auto random_filter = ps::filter([](int, ps::rng& r) { return r.below(2) == 0; });
[[maybe_unused]] const auto random_batch = ps::map_batch([](auto&, ps::rng&) {});
[[maybe_unused]] const auto in_place = ps::map_batch([](auto&) {});
template <class Stage>
constexpr bool varies_with = !decltype(numbers() | std::declval<Stage>())::same_every_epoch;
static_assert(varies_with<decltype(ps::shuffle(ps::seed(1)))> &&
              varies_with<decltype(ps::shuffle(ps::seed(1), ps::window(2)))>);
static_assert(varies_with<decltype(ps::shuffle_buffer(2))> && varies_with<decltype(random_map)> &&
              varies_with<decltype(random_filter)> && varies_with<decltype(ps::bad_samples::replace(1))>);
static_assert(!varies_with<decltype(ps::repeat(2))> && !varies_with<decltype(ps::shard(0, 1))> &&
              !varies_with<decltype(ps::map(twice))> && !varies_with<decltype(ps::split(0.5, ps::seed(1)))> &&
              !varies_with<decltype(ps::fold(0, 2, ps::seed(1)))> &&
              !varies_with<decltype(ps::bad_samples::skip(1))>);
static_assert(!decltype(numbers() | ps::batch(2) | random_batch)::same_every_epoch);
static_assert(decltype(numbers() | ps::batch(2) | in_place)::same_every_epoch);
[[maybe_unused]] const auto half_shuffled = ps::concat(numbers(), numbers() | ps::shuffle(ps::seed(1)));
[[maybe_unused]] const auto paired = ps::zip<"x", "y">(numbers() | ps::shuffle(ps::seed(1)), numbers());
[[maybe_unused]] const auto mixed = ps::mix(ps::weights{1, 1}, numbers(), numbers());
static_assert(!decltype(half_shuffled | ps::batch(1))::same_every_epoch);
static_assert(decltype(ps::concat(numbers(), numbers()) | ps::batch(1))::same_every_epoch);
static_assert(!decltype(paired | ps::batch(1))::same_every_epoch);
static_assert(!decltype(mixed | ps::batch(1))::same_every_epoch);

using buffered = decltype(numbers() | ps::shard(0, 1) | ps::shuffle_buffer(2) | ps::batch(2));
static_assert(!ps::indexed<buffered> && !ps::elastic<buffered> && ps::lockstep<buffered>,
              "a buffer after shard loses elastic");

static_assert(sizeof(ps::plan<empty_source>) == 1, "a plan adds nothing to its source");
static_assert(sizeof(ps::plan<empty_source, ps::enumerate_stage, lossy>) == 1,
              "stages without members take no room");
static_assert(sizeof(ps::plan<empty_source, ps::enumerate_stage, ps::workers_stage>) <=
                  sizeof(ps::workers_stage) + alignof(ps::workers_stage),
              "stages take the room of their members");
static_assert(sizeof(ps::map_stage<decltype(twice)>) == sizeof(ps::key),
              "a function without captures takes no room");
static_assert(std::is_empty_v<ps::pin_and_copy_stage<ps::host>> ||
                  sizeof(ps::pin_and_copy_stage<ps::host>) == 1,
              "the host takes no room");
static_assert(std::is_copy_constructible_v<kept_all>, "a plan is a value");
static_assert(std::is_same_v<decltype(numbers() | ps::map([](int x) { return x * 0.5; }))::element, double>,
              "a plan knows what comes out");

/// Whether this is the mistake of the part that lost a guarantee.
template <ps::guarantee G, class Mistake, class Source, class... Stages>
bool blamed(const ps::plan<Source, Stages...>&) {
  return std::is_same_v<typename ps::detail::loser_of<G, Source, Stages...>::mistake, Mistake>;
}

template <class Plan>
std::vector<int> all_values(const Plan& loader) {
  std::vector<int> all;
  for (auto&& b : loader)
    for (const int x : b.values()) all.push_back(x);
  return all;
}

}  // namespace plan_test

TEST_CASE("core/plan: what stages keep and lose") {
  using namespace plan_test;
  CHECK(kept(numbers() | ps::batch(2)) == "idrel");
  CHECK(kept(numbers() | ps::take(4) | ps::skip(1) | ps::repeat(2) | ps::batch(2)) == "idrel");
  CHECK(kept(numbers() | ps::enumerate | ps::workers(1) | ps::batch(2) | ps::prefetch(2) |
             ps::pin_and_copy) == "idrel");

  CHECK(kept(numbers() | ps::shuffle_buffer(2) | ps::batch(2)) == "drel");
  CHECK(kept(numbers() | ps::shuffle_buffer(2) | ps::shard(0, 1) | ps::batch(2)) == "drel");
  CHECK(kept(numbers() | ps::shard(0, 1) | ps::shuffle_buffer(2) | ps::batch(2)) == "drl");

  CHECK(kept(numbers() | ps::filter(even) | ps::batch(2)) == "dre");
  CHECK(kept(numbers() | ps::filter(even) | ps::shard(0, 1) | ps::batch(2)) == "dre");
  CHECK(kept(numbers() | ps::shard(0, 1) | ps::filter(even) | ps::batch(2)) == "dr");
  CHECK(kept(numbers() | ps::filter(even) | ps::batch(2) | ps::steps(3)) == "drel");
  CHECK(kept(numbers() | ps::shard(0, 1) | ps::filter(even) | ps::batch(2) | ps::steps(3)) == "drl");
  const auto lists = ps::from(std::vector<std::vector<int>>{{1, 2}, {3}});
  CHECK(kept(lists | ps::unbatch | ps::batch(2)) == "dre");
  CHECK(kept(lists | ps::shard(0, 1) | ps::unbatch | ps::batch(2)) == "dr");

  CHECK(kept(forward() | ps::batch(2)) == "d");
  CHECK(kept(forward() | ps::batch(2) | ps::steps(2)) == "dl");
  CHECK(kept(numbers() | lossy{} | ps::batch(2)) == "irel");
}

TEST_CASE("core/plan: which part lost a guarantee") {
  using namespace plan_test;
  using g = ps::guarantee;
  const auto first = numbers() | ps::shard(0, 1) | ps::shuffle_buffer(2) | ps::filter(even);
  using ps::mistakes::lost_by_shuffle_buffer;
  CHECK(blamed<g::indexed, lost_by_shuffle_buffer>(first));
  CHECK(blamed<g::elastic, lost_by_shuffle_buffer>(first));
  CHECK(blamed<g::lockstep, ps::mistakes::lost_by_filter>(first));
  CHECK(ps::resumable<decltype(first)>);
  CHECK(blamed<g::resumable, ps::mistakes::lost_by_forward>(forward() | ps::batch(2)));
  CHECK(blamed<g::deterministic, ps::mistakes::lost_by_a_stage>(numbers() | lossy{}));
  using source = std::remove_cvref_t<decltype(numbers())>;
  using loser = ps::detail::loser_of<g::deterministic, source, ps::workers_stage, lossy, ps::seed_stage>;
  CHECK(std::is_same_v<loser::part, lossy>);
}

TEST_CASE("core/plan: require accepts guarantees that are kept") {
  using g = ps::guarantee;
  const auto loader = plan_test::numbers() | ps::filter(plan_test::even) |
                      ps::require<g::elastic, g::resumable> | ps::batch(2) | ps::steps(1) |
                      ps::require<g::lockstep>;
  CHECK(plan_test::all_values(loader) == std::vector<int>{2, 4});
}

TEST_CASE("core/plan: ranks that would deliver different numbers of batches are refused") {
  using namespace plan_test;
  const auto sharded = numbers() | ps::shard(0, 2) | ps::filter(even);
  CHECK_THROWS_WITH((sharded | ps::batch(2)).open(), penstock_test::contains("lockstep") &&
                                                         penstock_test::contains("filter") &&
                                                         penstock_test::contains("steps(n)"));
  try {
    const auto run = (sharded | ps::batch(2)).open();
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
  }
  CHECK_THROWS_WITH(
      (ps::from(std::vector<std::vector<int>>{{1, 2}, {3}}) | ps::unbatch | ps::shard(1, 2) | ps::batch(1))
          .open(),
      penstock_test::contains("unbatch"));
  CHECK_THROWS_WITH((forward() | ps::shard(0, 2) | ps::batch(1)).open(), penstock_test::contains("source"));

  CHECK_NOTHROW((sharded | ps::batch(2) | ps::steps(1)).open());
  CHECK_NOTHROW((numbers() | ps::shard(0, 1) | ps::filter(even) | ps::batch(2)).open());
  CHECK_NOTHROW((numbers() | ps::shard(0, 2) | ps::shuffle_buffer(2) | ps::batch(2)).open());
}

TEST_CASE("core/plan: a plan can be reused and extended") {
  using namespace plan_test;
  const auto begun = numbers() | ps::map(twice);
  const auto pairs = begun | ps::batch(2);
  const auto evens = begun | ps::map([](int x) { return x + 1; }) | ps::batch(3);
  CHECK(all_values(pairs) == std::vector<int>{2, 4, 6, 8, 10, 12});
  CHECK(all_values(evens) == std::vector<int>{3, 5, 7, 9, 11, 13});
  CHECK(all_values(pairs) == std::vector<int>{2, 4, 6, 8, 10, 12});
  const auto copy = pairs;
  CHECK(all_values(copy) == all_values(pairs));
  CHECK(pairs.stages().size == 2);
  CHECK(pairs.source().size() == 6);
}

TEST_CASE("core/plan: what a plan, a run and a view do not have is asked without a mistake") {
  const auto plan = ps::from(std::vector<int>{1, 2, 3, 4}) | ps::batch(2);
  const auto shuffled = ps::from(std::vector<int>{1, 2, 3, 4}) | ps::shuffle(ps::seed(7)) | ps::batch(2);
  using plan_type = std::remove_cvref_t<decltype(plan)>;
  using run_type = decltype(plan.open());
  using batch_type = typename run_type::value_type;
  STATIC_REQUIRE(std::copyable<plan_type>);
  STATIC_REQUIRE(!std::ranges::sized_range<plan_type>);
  STATIC_REQUIRE(!std::convertible_to<plan_type, std::remove_cvref_t<decltype(shuffled)>>);
  STATIC_REQUIRE(std::movable<run_type>);
  STATIC_REQUIRE(!std::copy_constructible<run_type>);
  STATIC_REQUIRE(std::movable<batch_type>);
  STATIC_REQUIRE(!std::copy_constructible<batch_type>);
  STATIC_REQUIRE(std::convertible_to<ps::tensor_view<float>, std::span<float>>);
  STATIC_REQUIRE(!std::convertible_to<ps::tensor_view<float>, std::string_view>);
  STATIC_REQUIRE(!std::convertible_to<ps::state, int>);
  STATIC_REQUIRE(std::equality_comparable<ps::state>);
}
