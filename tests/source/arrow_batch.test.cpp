// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tables/arrow_batch.hpp>

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/half.hpp>
#include <penstock/source/tables/arrow_union.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using ps::arrow_cell;
using ps::arrow_column;
using ps::arrow_type;

namespace arrow_widen_test {

template <class T>
arrow_column numbers(const arrow_type& type, const std::vector<T>& values) {
  arrow_column made;
  made.type = &type;
  made.length = values.size();
  made.values = reinterpret_cast<const std::byte*>(values.data());
  return made;
}

/// Values as they are in another type.
template <class To, class From>
std::vector<To> widened(std::string_view format, std::string_view wanted, const std::vector<From>& values) {
  const arrow_type type = arrow_type::of_format(format), other = arrow_type::of_format(wanted);
  std::vector<ps::buffer> owned;
  const arrow_column made = ps::detail::widened(numbers(type, values), other, owned);
  std::vector<To> found;
  for (std::uint64_t i = 0; i < made.length; ++i) found.push_back(arrow_cell(made, i).as<To>());
  return found;
}

}  // namespace arrow_widen_test

using namespace arrow_widen_test;

TEST_CASE("source/arrow_batch: numbers and times as those of a wider type or a finer unit") {
  CHECK(widened<std::int64_t>("c", "l", std::vector<std::int8_t>{-128, 127}) ==
        std::vector<std::int64_t>{-128, 127});
  CHECK(widened<std::int64_t>("I", "l", std::vector<std::uint32_t>{~0u}) ==
        std::vector<std::int64_t>{0xffffffff});
  CHECK(widened<double>("i", "g", std::vector<std::int32_t>{-5}) == std::vector<double>{-5});
  CHECK(widened<float>("S", "f", std::vector<std::uint16_t>{65535}) == std::vector<float>{65535});
  CHECK(widened<double>("f", "g", std::vector<float>{0.5f}) == std::vector<double>{0.5});
  CHECK(widened<float>("e", "f", std::vector<ps::half>{ps::half(1.5f)}) == std::vector<float>{1.5f});
  CHECK(widened<ps::half>("C", "e", std::vector<std::uint8_t>{200}) ==
        std::vector<ps::half>{ps::half(200.0f)});
  const std::vector<std::int64_t> times{-1, 2};
  CHECK(widened<std::int64_t>("tss:", "tsn:", times) == std::vector<std::int64_t>{-1000000000, 2000000000});
  CHECK(widened<std::int64_t>("tsm:UTC", "tsu:UTC", times) == std::vector<std::int64_t>{-1000, 2000});
  CHECK(widened<std::int64_t>("tDu", "tDn", times) == std::vector<std::int64_t>{-1000, 2000});
  CHECK(widened<std::int64_t>("tdm", "tsu:", times) == std::vector<std::int64_t>{-1000, 2000});
  CHECK(widened<std::int64_t>("tdD", "tdm", std::vector<std::int32_t>{-1}) ==
        std::vector<std::int64_t>{-86400000});
  CHECK(widened<std::int64_t>("tdD", "tss:", std::vector<std::int32_t>{2}) ==
        std::vector<std::int64_t>{172800});
  CHECK(widened<std::int64_t>("tts", "ttu", std::vector<std::int32_t>{3}) ==
        std::vector<std::int64_t>{3000000});
  CHECK_THROWS_WITH(widened<std::int64_t>(
                        "tss:", "tsn:", std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}),
                    Catch::Contains("which is out of the range of timestamp[ns]"));
  CHECK_THROWS_AS(widened<std::int64_t>("tdD", "tsn:", std::vector<std::int32_t>{200000}), ps::error);
  using wide = std::array<std::byte, 32>;
  const auto decimals = widened<wide>(
      "d:10,2", "d:40,2,256",
      std::vector<std::array<std::uint64_t, 2>>{{5, 0}, {~std::uint64_t{0}, ~std::uint64_t{0}}});
  CHECK(decimals[0][0] == std::byte{5});
  CHECK(decimals[0][31] == std::byte{0});
  CHECK(decimals[1][31] == std::byte{0xff});
}

TEST_CASE("source/arrow_batch: nulls, offsets and dictionaries") {
  const arrow_type type = arrow_type::of_format("i"), wanted = arrow_type::of_format("l");
  const std::vector<std::int32_t> values{9, 1, 2, 3};
  const std::array<std::uint8_t, 1> valid{0b1011};
  arrow_column column = numbers(type, values);
  column.offset = 1;
  column.length = 3;
  column.validity = reinterpret_cast<const std::byte*>(valid.data());
  std::vector<ps::buffer> owned;
  const arrow_column made = ps::detail::widened(column, wanted, owned);
  CHECK(arrow_cell(made, 0).as<std::int64_t>() == 1);
  CHECK(arrow_cell(made, 1).is_null());
  CHECK(arrow_cell(made, 2).as<std::int64_t>() == 3);

  arrow_type keys = arrow_type::of_format("c");
  keys.dictionary.push_back(type);
  const std::vector<std::int8_t> which{3, 0};
  arrow_column coded = numbers(keys, which);
  const arrow_column all = numbers(type, values);
  coded.dictionary.push_back(&all);
  const arrow_column followed = ps::detail::widened(coded, wanted, owned);
  CHECK(arrow_cell(followed, 0).as<std::int64_t>() == 3);
  CHECK(arrow_cell(followed, 1).as<std::int64_t>() == 9);

  // What is read alike stays where it is.
  CHECK(ps::detail::reads_unchanged(arrow_type::of_format("u"), arrow_type::of_format("U")));
  CHECK(ps::detail::reads_unchanged(arrow_type::of_format("n"), wanted));
  CHECK(ps::detail::reads_unchanged(arrow_type::of_format("tsu:UTC"), arrow_type::of_format("tsu:CET")));
  CHECK_FALSE(ps::detail::reads_unchanged(type, wanted));
  CHECK(ps::detail::widened(numbers(wanted, values), wanted, owned).values ==
        reinterpret_cast<const std::byte*>(values.data()));
}

TEST_CASE("source/arrow_batch: structs in lists get the fields that they lack, in the order of the dataset") {
  arrow_type a = arrow_type::of_format("i"), later = arrow_type::of_format("g"),
             wide = arrow_type::of_format("l");
  a.name = wide.name = "a";
  later.name = "later";
  arrow_type own = arrow_type::of_format("+s"), both = own;
  own.children = {a};
  both.children = {later, wide};
  arrow_type list = arrow_type::of_format("+l"), wanted = arrow_type::of_format("+L");
  list.children = {own};
  wanted.children = {both};
  const std::vector<std::int32_t> values{5, 6, 7};
  const std::vector<std::uint32_t> offsets{1, 3};
  arrow_column fields;
  fields.type = &own;
  fields.length = 3;
  fields.children.push_back(numbers(a, values));
  arrow_column column;
  column.type = &list;
  column.length = 1;
  column.offsets = reinterpret_cast<const std::byte*>(offsets.data());
  column.children.push_back(fields);
  std::vector<ps::buffer> owned;
  const arrow_column made = ps::detail::widened(column, wanted, owned);
  const ps::arrow_slice found = arrow_cell(made, 0).list();
  REQUIRE(found.size() == 2);
  CHECK(found[1].field("a").as<std::int64_t>() == 7);
  CHECK(found[1].field("later").as<std::optional<double>>() == std::nullopt);
  CHECK(found[1].field(1).type().name == "a");
}
