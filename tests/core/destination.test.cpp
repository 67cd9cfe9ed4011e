// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/destination.hpp>

#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

struct odd {
  std::uint8_t bytes[3];
  friend bool operator==(const odd& a, const odd& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }
};

template <class T>
T number(std::uint64_t i) {
  if constexpr (std::is_same_v<T, odd>) {
    return {{static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8),
             static_cast<std::uint8_t>(i >> 16)}};
  } else {
    return static_cast<T>(i * 7 + 1);
  }
}

/// Strides for memory with the dimensions in a random order and a gap after each row.
ps::element_strides some_strides(const ps::extents& shape, ps::rng& random, std::size_t& needed) {
  std::array<std::size_t, ps::extents::max_rank> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = shape.rank(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
  ps::element_strides strides{};
  std::int64_t step = 1;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    strides[order[i]] = step;
    step = step * static_cast<std::int64_t>(shape[order[i]]) + static_cast<std::int64_t>(random.below(3));
  }
  needed = static_cast<std::size_t>(step) + 1;
  return strides;
}

/// Copies by index, element by element.
template <class T>
void copy_one_by_one(const ps::strided_view<T>& into, const ps::strided_view<const T>& from) {
  if (into.rank() == 0)
    into() = from();
  else
    for (std::size_t i = 0; i < into.shape()[0]; ++i) copy_one_by_one<T>(into[i], from[i]);
}

template <class T>
void copies_like_one_by_one() {
  ps::rng random(sizeof(T), 0, 0, 0);
  for (int round = 0; round < 300; ++round) {
    ps::extents shape;
    const std::uint64_t rank = random.below(5), longest = random.below(12);
    for (std::uint64_t i = 0; i < rank; ++i)
      shape.push_back(random.below(20) == 0 ? 0
                      : i == longest        ? 300
                                            : random.below(i + 1 == longest ? 40 : 6) + 1);
    std::size_t needed = 0, of_source = 0;
    const auto strides = some_strides(shape, random, needed);
    const auto source = some_strides(shape, random, of_source);
    std::vector<T> values(of_source);
    for (std::size_t i = 0; i < of_source; ++i) values[i] = number<T>(i);
    const ps::strided_view<const T> from(values.data(), shape, source);
    std::vector<T> found(needed, number<T>(1'000'000)), expected = found;
    const ps::destination<T> into(found.data(), shape, strides);
    into.copy_from(from);
    if (shape.elements() != 0) copy_one_by_one<T>(ps::strided_view<T>(expected.data(), shape, strides), from);
    REQUIRE(found == expected);

    std::vector<T> dense(static_cast<std::size_t>(shape.elements()));
    ps::destination<T>(dense.data(), shape).copy_from(from);
    std::fill(found.begin(), found.end(), number<T>(1'000'000));
    into.copy_from(dense);
    REQUIRE(found == expected);
    std::fill(found.begin(), found.end(), number<T>(1'000'000));
    auto next = dense.begin();
    if (shape.elements() != 0) into.fill_from([&] { return *next++; });
    REQUIRE(found == expected);
  }
}

struct simple_ramp {
  using unfinished = void;
  using value_type = float;
  ps::extents size;
  [[nodiscard]] ps::extents shape() const { return size; }
  void write_to(float* to) const { std::iota(to, to + size.elements(), 1.0f); }
};
struct placed_ramp {
  using unfinished = void;
  using value_type = float;
  ps::extents size;
  [[nodiscard]] ps::extents shape() const { return size; }
  void write_to(ps::destination<float> into) const {
    into.fill_from([next = 1.0f]() mutable { return next++; });
  }
};
/// An expression of the simple form, made from another such expression.
struct twice_ramp {
  using unfinished = void;
  using value_type = float;
  int depth;
  [[nodiscard]] ps::extents shape() const { return ps::extents(2, 2); }
  void write_to(float* to) const {
    float inner[8] = {};
    if (depth > 0)
      write_array(twice_ramp{depth - 1}, ps::destination(inner, shape(), ps::element_strides{4, 2}));
    for (int i = 0; i < 4; ++i) to[i] = inner[2 * i] + static_cast<float>(i);
  }
};
struct no_array {
  using unfinished = void;
  using value_type = float;
  [[nodiscard]] ps::extents shape() const { return {}; }
};

static_assert(ps::array_expression<simple_ramp> && !ps::placed_expression<simple_ramp>);
static_assert(ps::array_expression<placed_ramp> && ps::placed_expression<const placed_ramp&>);
static_assert(!ps::array_expression<no_array>);
static_assert(ps::host_writes(ps::memory_space::pinned) && !ps::host_writes(ps::memory_space::device));
static_assert(ps::destination<int>().dense() && ps::destination<int>().space() == ps::memory_space::host);

}  // namespace

TEST_CASE("core/destination: a dense destination is a span, and is filled directly") {
  std::vector<int> memory(6);
  const ps::destination into(memory.data(), ps::extents(2, 3), ps::memory_space::pinned);
  CHECK(into.dense());
  CHECK(into.rank() == 2);
  CHECK(into.space() == ps::memory_space::pinned);
  CHECK(into.strides() == ps::element_strides{3, 1});
  CHECK(into.values().data() == memory.data());
  CHECK(into.values().size() == 6);
  into.copy_from(std::vector{1, 2, 3, 4, 5, 6});
  CHECK(memory == std::vector{1, 2, 3, 4, 5, 6});
  const int again[] = {7, 8, 9, 10, 11, 12};
  into.copy_from(ps::tensor_view<const int>(again, ps::extents(2, 3)));
  CHECK(memory[5] == 12);
  CHECK(into(1, 0) == 10);
  CHECK(into[1].dense());
  CHECK(into[1].space() == ps::memory_space::pinned);
  into[1].copy_from(std::vector{0, 0, 1});
  CHECK(memory == std::vector{7, 8, 9, 0, 0, 1});
  CHECK(ps::destination(memory.data(), ps::extents(2, 3), {3, 1}).dense());
  ps::destination<int>(nullptr, ps::extents(0)).copy_from(std::span<const int>());
  int one = 0;
  ps::destination(&one, ps::extents()).copy_from(std::vector{5});
  CHECK(one == 5);
}

TEST_CASE("core/destination: a number of values that does not match the shape is refused") {
  std::vector<int> memory(8, -1);
  const ps::destination dense(memory.data(), ps::extents(2, 3));
  const ps::destination rows(memory.data(), ps::extents(2, 3), {4, 1});
  const int given[7] = {};
  for (const std::size_t count : {0u, 5u, 7u})
    for (const auto& into : {dense, rows}) {
      const std::string found = penstock_test::error_of([&] { into.copy_from({given, count}); });
      CHECK_THAT(found, penstock_test::contains("shape (2, 3) takes 6 values, and " + std::to_string(count)));
      CHECK_THROWS_AS(into.copy_from(ps::tensor_view<const int>(given, ps::extents(count))), ps::error);
    }
  CHECK(memory == std::vector<int>(8, -1));
}

TEST_CASE("core/destination: pitched rows keep their gaps, and channels go first") {
  std::vector<int> pitched(8, -1);
  const ps::destination rows(pitched.data(), ps::extents(2, 3), {4, 1});
  CHECK_FALSE(rows.dense());
  CHECK(rows[1].dense());
  rows.copy_from(std::vector{1, 2, 3, 4, 5, 6});
  CHECK(pitched == std::vector{1, 2, 3, -1, 4, 5, 6, -1});
  CHECK(rows.view().row_pitch() == 16);

  for (const std::uint64_t channels : {1u, 2u, 3u, 4u, 5u, 40u}) {
    const std::uint64_t high = 37, wide = 19;
    const ps::extents shape(high, wide, channels);
    std::vector<std::uint16_t> given(static_cast<std::size_t>(shape.elements())), turned(given.size());
    std::iota(given.begin(), given.end(), std::uint16_t{1});
    const ps::destination planes(
        turned.data(), shape, {static_cast<std::int64_t>(wide), 1, static_cast<std::int64_t>(high * wide)});
    planes.copy_from(given);
    bool same = true;
    for (std::uint64_t y = 0; y < high; ++y)
      for (std::uint64_t x = 0; x < wide; ++x)
        for (std::uint64_t c = 0; c < channels; ++c)
          same = same && turned[static_cast<std::size_t>((c * high + y) * wide + x)] ==
                             given[static_cast<std::size_t>((y * wide + x) * channels + c)];
    CHECK(same);
    std::vector<std::uint16_t> back(given.size());
    ps::destination(back.data(), shape).copy_from(ps::strided_view<const std::uint16_t>(planes.view()));
    CHECK(back == given);
  }
}

TEST_CASE("core/destination: any order and any gaps, as in a copy by elements") {
  copies_like_one_by_one<std::uint8_t>();
  copies_like_one_by_one<odd>();
  copies_like_one_by_one<std::int16_t>();
  copies_like_one_by_one<float>();
  copies_like_one_by_one<std::uint64_t>();
}

TEST_CASE("core/destination: negative strides, and stride zero") {
  std::vector<int> memory(4);
  ps::destination(memory.data() + 3, ps::extents(4), {-1}).copy_from(std::vector{1, 2, 3, 4});
  CHECK(memory == std::vector{4, 3, 2, 1});
  const int one = 9;
  ps::destination(memory.data(), ps::extents(2, 2))
      .copy_from(ps::strided_view<const int>(&one, ps::extents(2, 2), {0, 0}));
  CHECK(memory == std::vector{9, 9, 9, 9});
}

TEST_CASE("core/destination: expressions of both forms write themselves anywhere") {
  const auto check = [](const auto& expression) {
    std::vector<float> dense(6), pitched(8, -1);
    ps::write_array(expression, ps::destination(dense.data(), ps::extents(2, 3)));
    CHECK(dense == std::vector<float>{1, 2, 3, 4, 5, 6});
    ps::write_array(expression, ps::destination(pitched.data(), ps::extents(2, 3), {4, 1}));
    CHECK(pitched == std::vector<float>{1, 2, 3, -1, 4, 5, 6, -1});
  };
  check(simple_ramp{ps::extents(2, 3)});
  check(placed_ramp{ps::extents(2, 3)});
  float out[8] = {};
  ps::write_array(twice_ramp{3}, ps::destination(out, ps::extents(2, 2), ps::element_strides{4, 2}));
  CHECK(out[2] == 4);
  CHECK(out[6] == 12);
  CHECK(out[7] == 0);
}
