// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/tf_example.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <penstock/codec/tf_example_bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using namespace std::string_view_literals;

namespace tf_example_test {

/// Fields of protocol buffers.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}
std::string field(unsigned number, std::string_view content) {
  return varint(number * 8 + 2) + varint(content.size()) + std::string(content);
}
std::string entry(std::string_view name, std::string_view feature) {
  return field(1, field(1, name) + field(2, feature));
}
std::string example(std::string_view entries) { return field(1, entries); }
std::string integers(std::string_view packed) { return field(3, field(1, packed)); }

template <class Example>
auto decoded(std::string_view bytes) {
  static typename Example::scratch scratch;
  return Example{}.decode(bytes, scratch);
}
template <class Example>
std::string refusal(std::string_view bytes) {
  return penstock_test::error_of([&] { (void)decoded<Example>(bytes); });
}
template <class T>
using x = ps::tf_example<ps::feature<"x", T>>;

TEST_CASE("codec/tf_example: the vector of the format's description") {
  // {label: [7], x: ["ab"]}
  const auto bytes =
      "\x0a\x1d\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x07"
      "\x0a\x0b\x0a\x01x\x12\x06\x0a\x04\x0a\x02\x61\x62"sv;
  using both = ps::tf_example<ps::feature<"x", ps::bytes>, ps::feature<"label", std::int64_t>>;
  const auto found = decoded<both>(bytes);
  CHECK(ps::text_of(ps::get<"x">(found)) == "ab");
  CHECK(ps::get<"label">(found) == 7);
  CHECK(reinterpret_cast<const char*>(ps::get<"x">(found).data()) == bytes.data() + bytes.size() - 2);
  CHECK(ps::get<"x">(decoded<x<std::string_view>>(bytes)) == "ab");
}

TEST_CASE("codec/tf_example: every type of value, exactly or not at all") {
  const std::int64_t maximum = std::numeric_limits<std::int64_t>::max();
  const std::array<std::int64_t, 3> three{-1, 0, maximum};
  const std::array<float, 2> two{0.5f, -2.0f};
  const std::string bytes = ps::tf_example_bytes({{"three", std::span<const std::int64_t>(three)},
                                                  {"two", std::span<const float>(two)},
                                                  {"one", 200},
                                                  {"x", -1},
                                                  {"yes", true},
                                                  {"half", 0.5}});
  using all = ps::tf_example<ps::feature<"three", std::span<const std::int64_t>>,
                             ps::feature<"two", std::vector<double>>, ps::feature<"one", std::uint8_t>,
                             ps::feature<"yes", bool>, ps::feature<"half", float>>;
  const auto found = decoded<all>(bytes);
  CHECK(std::vector<std::int64_t>(ps::get<"three">(found).begin(), ps::get<"three">(found).end()) ==
        std::vector<std::int64_t>{-1, 0, maximum});
  CHECK(ps::get<"two">(found) == std::vector<double>{0.5, -2.0});
  CHECK(ps::get<"one">(found) == 200);
  CHECK(ps::get<"yes">(found));
  CHECK(ps::get<"half">(found) == 0.5f);
  using arrays =
      ps::tf_example<ps::feature<"two", std::array<float, 2>>, ps::feature<"x", std::array<int, 1>>,
                     ps::feature<"three", std::vector<std::int64_t>>>;
  CHECK((ps::get<"two">(decoded<arrays>(bytes)) == std::array<float, 2>{0.5f, -2.0f}));
  CHECK(ps::get<"x">(decoded<arrays>(bytes))[0] == -1);

  CHECK_THAT(refusal<x<std::uint8_t>>(bytes), contains("a value of the feature 'x' is out of the range"));
  CHECK_THAT(refusal<x<bool>>(bytes), contains("out of the range"));
  CHECK_THAT(refusal<x<std::uint64_t>>(bytes), contains("out of the range"));
  CHECK_THAT(refusal<x<float>>(bytes), contains("the feature 'x' has integers, but floats were asked for"));
  CHECK_THAT(refusal<x<ps::bytes>>(bytes),
             contains("the feature 'x' has integers, but bytes were asked for"));
  using half = ps::tf_example<ps::feature<"half", std::int64_t>>;
  CHECK_THAT(refusal<half>(bytes), contains("the feature 'half' has floats, but integers were asked for"));
  using one_of_three = ps::tf_example<ps::feature<"three", std::int64_t>>;
  CHECK_THAT(refusal<one_of_three>(bytes), contains("the feature 'three' has 3 values, but 1 was asked for"));
  using four = ps::tf_example<ps::feature<"three", std::array<std::int64_t, 4>>>;
  CHECK_THAT(refusal<four>(bytes), contains("the feature 'three' has 3 values, but 4 were asked for"));
  using wide = ps::tf_example<ps::feature<"three", std::span<const std::int32_t>>>;
  CHECK_THAT(refusal<wide>(bytes),
             contains("a value of the feature 'three' is out of the range of its type"));
}

TEST_CASE("codec/tf_example: a feature that is missing, or has no value") {
  for (const std::string& without : {std::string(), example(""), example(entry("y", integers("\1"))),
                                     example(entry("x", "")), example(field(1, field(1, "x"))),
                                     example(entry("x", integers(""))), example(entry("x", field(3, "")))}) {
    CHECK_THAT(refusal<x<std::int64_t>>(without),
               contains("the example has no value for the feature 'x'; where that is right, name one to take "
                        "instead: feature<\"x\", T, value>"));
    CHECK(refusal<x<ps::bytes>>(example("")) == "penstock: the example has no value for the feature 'x'");
    using other = ps::tf_example<ps::feature<"x", std::int64_t, -1>>;
    CHECK(ps::get<"x">(decoded<other>(without)) == -1);
    CHECK(ps::get<"x">(decoded<x<std::span<const std::int64_t>>>(without)).empty());
    using none = x<std::array<std::int64_t, 2>>;
    CHECK_THAT(refusal<none>(without), contains("no value for the feature 'x'"));
  }
  CHECK(ps::get<"x">(decoded<ps::tf_example<ps::feature<"x", float, 3>>>("")) == 3.0f);
}

TEST_CASE("codec/tf_example: what protocol buffers allow beside what writers write") {
  using list = x<std::span<const std::int64_t>>;
  const auto values = [](std::string_view bytes) {
    std::string all;
    const auto found = decoded<list>(bytes);
    for (const std::int64_t one : ps::get<"x">(found)) all += std::to_string(one) + " ";
    return all;
  };
  // not packed, in several lists, packed in parts
  CHECK(values(example(entry("x", field(3, "\x08\x05\x08\x06"sv)))) == "5 6 ");
  CHECK(values(example(entry("x", integers("\1") + integers("\2\3")))) == "1 2 3 ");
  CHECK(values(example(entry("x", field(3, field(1, "\1") + "\x08\x07" + field(1, "\2"))))) == "1 7 2 ");
  // the last entry of a name, and the last kind of a feature, count
  CHECK(values(example(entry("x", integers("\1")) + entry("x", integers("\2")))) == "2 ");
  CHECK(values(example(entry("x", integers("\1"))) + example(entry("x", integers("\2")))) == "2 ");
  CHECK(values(example(entry("x", field(2, "") + integers("\3")))) == "3 ");
  CHECK_THAT(refusal<list>(example(entry("x", integers("\3") + field(1, field(1, "a"))))),
             contains("the feature 'x' has bytes, but integers were asked for [offset "));
  CHECK(values(example(entry("x", integers("\3") + field(1, "") + integers("\4")))) == "4 ");
  CHECK(values(example(field(1, field(1, "x") + field(2, integers("\1")) + field(2, integers("\2"))))) ==
        "1 2 ");
  CHECK(values(example(field(1, field(2, integers("\1")) + field(1, "x") + field(2, "")))) == "1 ");
  // the value before the name, an entry without a name, unknown fields of every form, groups
  CHECK(values(example(field(1, field(2, integers("\4")) + field(1, "x")))) == "4 ");
  CHECK(values(example(field(1, field(2, integers("\4"))) + entry("x", integers("\5")))) == "5 ");
  const std::string unknown = "\x78\x05" + field(9, "abc") + "\x55" + std::string(4, 'a') + "\x51" +
                              std::string(8, 'b') + "\x63\x6b\x08\x01\x6c\x64";
  CHECK(values(unknown + example(unknown + entry("x", unknown + integers("\6") + unknown)) + unknown) ==
        "6 ");
  // floats that are not packed
  CHECK(ps::get<"x">(decoded<x<float>>(example(entry("x", field(2, "\x0d\x00\x00\x00\x3f"sv))))) == 0.5f);
  CHECK(values(example(entry("x", integers("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")))) == "-1 ");
}

TEST_CASE("codec/tf_example: bytes that are no example are an error with its place, and nothing more") {
  using list = x<std::span<const std::int64_t>>;
  CHECK_THAT(refusal<list>("\x0a\x05zz"), contains("it has a field that goes beyond its end [offset 2]"));
  CHECK_THAT(refusal<list>(std::string(11, '\xff')), contains("a number of more than 10 bytes"));
  CHECK_THAT(refusal<list>("\xff"), contains("the end of the message within a number [offset 1]"));
  CHECK_THAT(refusal<list>(std::string("\0\1", 2)), contains("a field without a number"));
  CHECK_THAT(refusal<list>("\x0f"), contains("a field of an unknown form"));
  CHECK_THAT(refusal<list>("\x64"), contains("the end of a group that did not begin"));
  CHECK_THAT(refusal<list>("\x63"), contains("a group without an end"));
  CHECK_THAT(refusal<list>(std::string(200, '\x63')), contains("a group in more than 100 others"));
  CHECK_THAT(refusal<x<float>>(example(entry("x", field(2, field(1, "abc"))))), contains("no multiple of 4"));
  const std::string good = ps::tf_example_bytes({{"a", 1}, {"x", 1000}, {"b", "some text"}});
  for (std::size_t i = 0; i < good.size(); ++i) {
    (void)refusal<list>(std::string_view(good).substr(0, i));
    for (const int flip : {1, 2, 128}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      (void)refusal<list>(bad);
    }
  }
}

TEST_CASE("codec/tf_example: a BytesList of several values") {
  const std::vector<ps::bytes_view> values{ps::bytes_of("cat"), ps::bytes_of(""), ps::bytes_of("dog")};
  const std::string bytes = ps::tf_example_bytes({{"x", std::span<const ps::bytes_view>(values)}, {"y", 1}});
  const auto views = ps::get<"x">(decoded<x<std::span<const std::string_view>>>(bytes));
  REQUIRE(views.size() == 3);
  CHECK(views[0] == "cat");
  CHECK(views[1].empty());
  CHECK(views[2] == "dog");
  const auto spans = ps::get<"x">(decoded<x<std::span<const ps::bytes_view>>>(bytes));
  REQUIRE(spans.size() == 3);
  CHECK(ps::text_of(spans[2]) == "dog");
  CHECK(ps::get<"x">(decoded<x<std::vector<std::string>>>(bytes)) ==
        std::vector<std::string>{"cat", "", "dog"});
  CHECK(ps::get<"x">(decoded<x<std::array<std::string_view, 3>>>(bytes))[2] == "dog");
  CHECK_THAT(refusal<x<ps::bytes>>(bytes),
             contains("has 3 values, but 1 was asked for; a std::span takes any"));
  CHECK_THAT((refusal<x<std::array<std::string_view, 2>>>(bytes)),
             contains("has 3 values, but 2 were asked for"));
  CHECK_THAT(refusal<x<std::vector<std::int64_t>>>(bytes),
             contains("has bytes, but integers were asked for"));
  CHECK(ps::get<"x">(decoded<x<std::vector<std::string>>>(ps::tf_example_bytes({{"y", 1}}))).empty());
}

}  // namespace tf_example_test
