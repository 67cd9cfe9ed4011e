// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/record.hpp>

#include "support/catch.hpp"

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace record_test {

using numbers = ps::record<ps::field<"x", int>, ps::field<"y", double>>;
using texts = ps::record<ps::field<"name", std::string>, ps::field<"n", int>>;
struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
};

static_assert(std::is_trivially_copyable_v<numbers>, "a record of plain values is a plain value");
static_assert(!std::is_trivially_copyable_v<texts>, "a record of texts is not a plain value");
static_assert(sizeof(numbers) == sizeof(std::tuple<int, double>), "a record is as large as a tuple");
static_assert(sizeof(ps::record<ps::field<"x", char>>) == 1, "a record adds nothing to its value");
static_assert(numbers::size == 2 && ps::record<>::size == 0, "a record knows how many fields it has");
static_assert(ps::any_record<numbers> && ps::any_record<const numbers&> && !ps::any_record<int>,
              "records are told from other types");
static_assert(ps::has_field<numbers, ps::name_of<"y">> && !ps::has_field<numbers, ps::name_of<"z">>,
              "a record's type knows its fields");
static_assert(numbers::index_of<ps::name_of<"y">> == 1, "fields are in the order written");
static_assert(std::tuple_size_v<texts> == 2, "a record is like a tuple");
static_assert(std::is_same_v<std::tuple_element_t<0, texts>, std::string>, "an element has the field's type");
static_assert(std::is_same_v<decltype(ps::get<"n">(std::declval<texts&>())), int&>, "get keeps the category");
static_assert(std::is_same_v<decltype(ps::get<"n">(std::declval<const texts&>())), const int&>,
              "get keeps const");
static_assert(std::is_same_v<decltype(ps::get<"n">(std::declval<texts>())), int&&>,
              "get moves out of rvalues");
static_assert(!std::is_default_constructible_v<ps::record<ps::field<"a", no_default>>>,
              "a record can be made empty when its values can");
static_assert(ps::get<"y">(numbers(1, 2.5)) > 2, "records work at compile time");

}  // namespace record_test

TEST_CASE("core/record: get reads and writes by name and by index") {
  record_test::texts sample("ten", 10);
  CHECK(ps::get<"name">(sample) == "ten");
  CHECK(ps::get<1>(sample) == 10);
  ps::get<"n">(sample) = 11;
  CHECK(ps::get<"n">(std::as_const(sample)) == 11);
  const std::string taken = ps::get<"name">(std::move(sample));
  CHECK(taken == "ten");
}

TEST_CASE("core/record: structured bindings read all fields in order") {
  record_test::texts sample("ten", 10);
  const auto& [name, n] = sample;
  CHECK(name == "ten");
  CHECK(n == 10);
  auto& [changed, m] = sample;
  changed = "eleven";
  m = 11;
  CHECK(sample == record_test::texts("eleven", 11));
  const auto [copied, k] = record_test::texts("one", 1);
  CHECK(copied == "one");
  CHECK(k == 1);
}

TEST_CASE("core/record: a default record holds zeros") {
  const record_test::numbers zeros;
  CHECK(zeros == record_test::numbers(0, 0.0));
}

TEST_CASE("core/record: records are equal when all values are") {
  CHECK(record_test::numbers(1, 2.0) == record_test::numbers(1, 2.0));
  CHECK(record_test::numbers(1, 2.0) != record_test::numbers(1, 2.5));
  CHECK(record_test::numbers(1, 2.0) != record_test::numbers(2, 2.0));
  CHECK(ps::record<>() == ps::record<>());
}

TEST_CASE("core/record: values() is a tuple of references") {
  record_test::texts sample("ten", 10);
  std::get<1>(sample.values()) = 12;
  const auto length = std::apply([](const std::string& s, int n) { return static_cast<int>(s.size()) + n; },
                                 std::as_const(sample).values());
  CHECK(length == 15);
}

TEST_CASE("core/record: values that functions return are made where they stay") {
  struct stays {
    int value = 0;
    explicit stays(int given) : value(given) {}
    stays(const stays&) = delete;
    stays& operator=(const stays&) = delete;
  };
  int turn = 0;
  const ps::record<ps::field<"a", stays>, ps::field<"b", int>> made(
      ps::detail::made_by{}, [&] { return stays(++turn); }, [&] { return ++turn; });
  CHECK(ps::get<"a">(made).value == 1);
  CHECK(ps::get<"b">(made) == 2);
}

TEST_CASE("core/record: fields that cannot be copied are moved") {
  using owner = ps::record<ps::field<"p", std::unique_ptr<int>>>;
  owner first(std::make_unique<int>(5));
  owner second = std::move(first);
  CHECK(*ps::get<"p">(second) == 5);
  CHECK(ps::get<"p">(first) == nullptr);
  const std::unique_ptr<int> out = ps::get<"p">(std::move(second));
  CHECK(*out == 5);
}

TEST_CASE("core/record: a record may hold two values of one empty type") {
  struct empty {
    bool operator==(const empty&) const = default;
  };
  const ps::record<ps::field<"a", empty>, ps::field<"b", empty>> both;
  CHECK(static_cast<const void*>(&ps::get<"a">(both)) != static_cast<const void*>(&ps::get<"b">(both)));
}
