// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/from.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <penstock/core/element.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>

#include <array>
#include <cstddef>
#include <deque>
#include <list>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;

namespace from_test {

template <class Source>
auto sample(const Source& source, std::uint64_t index) {
  typename Source::reader::worker worker;
  const auto reader = source.connect();
  typename Source::element out{};
  int calls = 0;
  reader.evaluate({3, index}, worker, [&](const auto& value) {
    out = value;
    ++calls;
  });
  REQUIRE(calls == 1);
  return out;
}
template <class Source>
auto drained(typename Source::reader& reader) {
  std::vector<typename Source::element> all;
  typename Source::element e;
  while (reader.next(e)) all.push_back(e);
  CHECK(!reader.next(e));
  return all;
}
struct large {
  std::array<int, 8> values;
};

}  // namespace from_test

static_assert(ps::indexed_source<decltype(ps::from(std::vector<std::string>{}))>);
static_assert(ps::indexed_source<decltype(ps::from(std::span<const float>{}))>);
static_assert(ps::indexed_source<decltype(ps::from({1, 2, 3}))>);
static_assert(ps::indexed_source<decltype(ps::from(std::views::iota(0, 10)))>);
static_assert(ps::forward_source<decltype(ps::from(std::list<std::string>{}))>);
static_assert(ps::byte_element<decltype(ps::from(std::vector<std::string>{}))::element>);
static_assert(ps::byte_element<decltype(ps::from(std::vector<std::vector<std::byte>>{}))::element>);

TEST_CASE("source/from: gives the elements of any random-access range") {
  using from_test::sample;
  std::vector<std::string> words = {"one", "two", "three"};
  const auto moved = ps::from(std::move(words));
  CHECK(moved.size() == 3);
  CHECK(moved.starts() == nullptr);
  CHECK(sample(moved, 2) == "three");
  CHECK(moved.connect().key(17) == "17");
  CHECK_THAT(moved.describe(), contains("3 samples"));
  CHECK(sample(ps::from(std::deque<int>{4, 5, 6}), 1) == 5);
  CHECK(sample(ps::from({1.5, 2.5}), 1) == 2.5);
  CHECK(sample(ps::from(std::vector<bool>{false, true}), 1));
  CHECK(sample(ps::from(std::array<int, 3>{7, 8, 9}), 0) == 7);
  CHECK(sample(ps::from(std::views::iota(100, 200)), 42) == 142);
  CHECK(ps::from(std::vector<int>{}).size() == 0);
  const int plain[] = {1, 2, 3};
  CHECK(sample(ps::from(std::span(plain)), 2) == 3);
}

TEST_CASE("source/from: delivers large samples by reference, and small plain ones by value") {
  const auto words = ps::from({std::string("one"), std::string("two")});
  const auto copy = words;
  const void* first = nullptr;
  const void* second = nullptr;
  decltype(words)::reader::worker worker;
  words.connect().evaluate({0, 1}, worker, [&](auto&& value) {
    static_assert(std::is_same_v<decltype(value), const std::string&>);
    first = &value;
  });
  copy.connect().evaluate({9, 1}, worker, [&](const std::string& value) { second = &value; });
  CHECK(first == second);  // copies of a plan share the range
  decltype(ps::from({1}))::reader::worker other;
  ps::from({1, 2}).connect().evaluate(
      {0, 1}, other, [](auto&& value) { static_assert(std::is_same_v<decltype(value), int&&>); });
  const std::vector<from_test::large> large(2);
  decltype(ps::from(large))::reader::worker third;
  ps::from(large).connect().evaluate({0, 1}, third, [](auto&& value) {
    static_assert(std::is_same_v<decltype(value), const from_test::large&>);
  });
}

TEST_CASE("source/from: a span is borrowed, not copied") {
  std::vector<int> values = {1, 2, 3};
  const auto source = ps::from(std::span<const int>(values));
  values[1] = 20;
  CHECK(from_test::sample(source, 1) == 20);
}

TEST_CASE("source/from: evaluating allocates nothing") {
  const auto source = ps::from(std::vector<std::string>(10, std::string(100, 'x')));
  const auto reader = source.connect();
  decltype(reader)::worker worker;
  std::size_t sum = 0;
  CHECK(penstock_test::allocations_of([&] {
          for (std::uint64_t i = 0; i < 10; ++i)
            reader.evaluate({0, i}, worker, [&](const std::string& s) { sum += s.size(); });
        }) == 0);
  CHECK(sum == 1000);
}

TEST_CASE("source/from: the fingerprint covers the number of samples, and their bytes if it can") {
  const auto print = [](auto range) { return ps::from(std::move(range)).fingerprint(); };
  using ints = std::vector<int>;
  using texts = std::vector<std::string>;
  CHECK(print(ints{1, 2, 3}) == print(ints{1, 2, 3}));
  CHECK(print(ints{1, 2, 3}) != print(ints{1, 2, 4}));
  CHECK(print(ints{1, 2, 3}) != print(ints{1, 2}));
  CHECK(print(std::vector<float>{1, 2}) != print(std::vector<float>{1, 3}));
  CHECK(print(texts{"ab", "c"}) == print(texts{"ab", "c"}));
  CHECK(print(texts{"ab", "c"}) != print(texts{"a", "bc"}));
  CHECK(print(texts{"ab", "c"}) != print(texts{"ab", "d"}));
  CHECK(print(std::vector<std::list<int>>(3)) != print(std::vector<std::list<int>>(4)));
  ints many(3'000'000);
  const auto before = print(many);
  many.back() = 1;
  CHECK(print(many) != before);
  many.back() = 0;
  many.front() = 1;
  CHECK(print(many) != before);
}

TEST_CASE("source/from: any other range is read forward, epoch after epoch") {
  const auto source = ps::from(std::list<std::string>{"one", "two", "three"});
  using type = std::remove_const_t<decltype(source)>;
  auto reader = source.connect();
  auto other = source.connect();
  const std::vector<std::string> all = {"one", "two", "three"};
  reader.rewind(0);
  CHECK(from_test::drained<type>(reader) == all);
  reader.rewind(1);
  std::string e;
  CHECK(reader.next(e));
  reader.rewind(2);
  CHECK(from_test::drained<type>(reader) == all);
  CHECK(from_test::drained<type>(other) == all);
  CHECK_THAT(source.describe(), contains("forward"));
  auto empty = ps::from(std::list<int>{}).connect();
  int i = 0;
  CHECK(!empty.next(i));
  // a filter caches its beginning: each reader has a copy
  const auto odd = ps::from(std::views::iota(0, 10) | std::views::filter([](int x) { return x % 2 == 1; }));
  using odd_type = std::remove_const_t<decltype(odd)>;
  static_assert(ps::forward_source<odd_type>);
  auto first = odd.connect(), second = odd.connect();
  CHECK(first.next(i));
  CHECK(from_test::drained<odd_type>(second) == std::vector<int>{1, 3, 5, 7, 9});
  CHECK(from_test::drained<odd_type>(first) == std::vector<int>{3, 5, 7, 9});
}

TEST_CASE("source/from: a range that can be read only once says so when it is read again") {
  std::istringstream numbers("3 1 4 1 5");
  const auto source = ps::from(std::views::istream<int>(numbers));
  using type = std::remove_const_t<decltype(source)>;
  static_assert(ps::forward_source<type>);
  auto reader = source.connect();
  reader.rewind(0);
  CHECK(from_test::drained<type>(reader) == std::vector<int>{3, 1, 4, 1, 5});
  const auto error = codec_test::caught([&] { reader.rewind(1); });
  CHECK(error.code == ps::errc::state);
  CHECK_THAT(error.line, contains("read only once"));
  auto other = source.connect();
  int i = 0;
  CHECK(codec_test::caught([&] { static_cast<void>(other.next(i)); }).code == ps::errc::state);
}

TEST_CASE("source/from: open() runs the source alone") {
  const std::vector<int> numbers{3, 1, 2};
  auto run = ps::from(numbers).open();
  std::vector<int> seen;
  for (const int x : run) seen.push_back(x);
  CHECK(seen == numbers);

  auto first = ps::from(numbers).open();
  auto it = first.begin();
  CHECK(*it == 3);
  auto rest = ps::from(numbers).open(first.state());
  std::vector<int> others;
  for (const int x : rest) others.push_back(x);
  CHECK(others == std::vector<int>{1, 2});

  auto forward = ps::from(std::list<int>(numbers.begin(), numbers.end())).open();
  seen.clear();
  for (const int x : forward) seen.push_back(x);
  CHECK(seen == numbers);

  // this source can also start a longer plan
  const auto source = ps::from(numbers);
  auto batches = (source | ps::batch(3)).open();
  CHECK(batches.begin()->size() == 3);
}
