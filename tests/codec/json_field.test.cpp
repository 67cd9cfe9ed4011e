// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/json_field.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/fixtures.hpp"
#include "support/test_data.hpp"

#include <penstock/core/random.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace json_field_test {

using row = ps::json_fields<ps::json_field<"text", std::string_view>, ps::json_field<"n", int>>;
static_assert(ps::codec<ps::json_field<"x", int>> && ps::codec<ps::json_field<"x", std::span<const float>>>);
static_assert(ps::codec<row>);

template <class T>
T found(std::string_view text, ps::json_field<"x", T> codec = {}) {
  typename ps::json_field<"x", T>::scratch scratch;
  if constexpr (std::same_as<T, std::string_view>)
    FAIL("use a std::string");
  else
    return codec.decode(text, scratch);
}
template <class T>
codec_test::thrown failure(std::string_view text, ps::json_field<"x", T> codec = {}) {
  return caught([&] { static_cast<void>(found<T>(text, codec)); });
}
std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }
std::string fixture(std::string_view name) { return penstock_test::fixture(name).string(); }

/// What Python's json.loads(...)["x"] gives for an escape in a text, written by hand.
std::string text_of_x(std::string_view content) {
  return found<std::string>("{\"x\": \"" + std::string(content) + "\"}");
}

}  // namespace json_field_test

TEST_CASE("codec/json_field: values of every type") {
  using namespace json_field_test;
  CHECK(found<int>(R"({"a": 1, "x": 7, "b": 2})") == 7);
  CHECK(found<std::int8_t>(R"({"x": -128})") == -128);
  CHECK(found<std::uint64_t>(R"({"x": 18446744073709551615})") == 18446744073709551615u);
  CHECK(found<double>(R"({"x": 0.5})") == 0.5);
  CHECK(found<float>(R"({"x": 3})") == 3.0f);
  CHECK(found<bool>(R"({"x": true})"));
  CHECK(!found<bool>(R"({"x": false})"));
  CHECK(found<std::string>(R"({"x": "a\nb"})") == "a\nb");
  CHECK(found<std::string>(R"({"x": ""})").empty());
  CHECK(found<std::vector<int>>(R"({"x": [1, 2, 3], "y": [4]})") == std::vector{1, 2, 3});
  CHECK(found<std::vector<float>>(R"({"x": []})").empty());
  CHECK(found<std::array<float, 2>>(R"({"y": [[1], {"x": [0]}], "x": [1, 2.5]})") == std::array{1.0f, 2.5f});
  // only a key of the outermost object counts, and not a value
  CHECK(found<int>(R"({"a": {"x": 1}, "b": ["x"], "c": "x", "x": 2, "d": {"x": [3]}})") == 2);
  ps::json_field<"", int> nameless;
  ps::json_field<"", int>::scratch scratch;
  CHECK(nameless.decode(std::string_view("{\"\": 3}"), scratch) == 3);
  ps::json_field<"t", std::string_view>::scratch words;
  const std::string_view view =
      ps::json_field<"t", std::string_view>{}.decode(std::string_view("{\"t\": \"word\"}"), words);
  CHECK(view == "word");
  CHECK(view.data() == words.value.values.data());
  ps::json_field<"n", std::span<const int>>::scratch numbers;
  const auto span =
      ps::json_field<"n", std::span<const int>>{}.decode(std::string_view("{\"n\": [5]}"), numbers);
  CHECK(span.size() == 1);
  CHECK(span.data() == numbers.value.values.data());
}

TEST_CASE("codec/json_field: a missing value or one of another kind is an error that names the key") {
  using namespace json_field_test;
  const auto missing = failure<int>(R"({"y": 1, "z": {"x": 1}})");
  CHECK(missing.code == ps::errc::missing);
  CHECK_THAT(missing.line, contains("no key 'x'"));
  const auto check = [](const codec_test::thrown& error, const std::string& part) {
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(part));
  };
  check(failure<int>("[1]"), "not an object");
  check(failure<int>("1"), "not an object");
  check(failure<int>("null"), "not an object");
  check(failure<int>(R"({"x": null})"), "null at the key 'x', but a whole number was asked for");
  check(failure<int>(R"({"x": "1"})"), "a text at the key 'x', but a whole number");
  check(failure<int>(R"({"x": 1.5})"), "a real number at the key 'x', but a whole number");
  check(failure<int>(R"({"x": true})"), "true or false at the key");
  check(failure<int>(R"({"x": [1]})"), "a list at the key");
  check(failure<int>(R"({"x": {"x": 1}})"), "an object at the key");
  check(failure<bool>(R"({"x": 1})"), "but true or false was asked for");
  check(failure<std::string>(R"({"x": 1})"), "but a text was asked for");
  check(failure<std::vector<float>>(R"({"x": 1})"), "but a list of numbers was asked for");
  check(failure<std::vector<float>>(R"({"x": [1, "a"]})"), "a text in the list at the key 'x'");
  check(failure<std::vector<int>>(R"({"x": [1, [2]]})"), "a list in the list");
  check(failure<std::vector<int>>(R"({"x": [{}]})"), "an object in the list");
  check(failure<std::vector<int>>(R"({"x": [1.0]})"), "a real number in the list");
  check(failure<std::int8_t>(R"({"x": 128})"), "out of the range");
  check(failure<std::uint64_t>(R"({"x": -1})"), "out of the range");
  check(failure<float>(R"({"x": 1e300})"), "out of the range");
  check(failure<int>(R"({"x": 1, "x": 2})"), "'x' twice");
  const auto length = failure<std::array<int, 3>>(R"({"x": [1, 2]})");
  CHECK(length.code == ps::errc::shape);
  CHECK_THAT(length.line, contains("has 2 values, but 3 were asked for"));
}

TEST_CASE("codec/json_field: lists of texts") {
  using namespace json_field_test;
  const std::string text = R"({"x": ["a", "b\nc", "\u00e4", ""], "y": 1})";
  CHECK(found<std::vector<std::string>>(text) == std::vector<std::string>{"a", "b\nc", "\xc3\xa4", ""});
  CHECK(found<std::array<std::string, 4>>(text)[1] == "b\nc");
  CHECK_THAT(failure<std::vector<std::string>>(R"({"x": ["a", 1]})").line,
             contains("a whole number in the list at the key 'x', but a list of texts"));
  using views = ps::json_field<"x", std::span<const std::string_view>>;
  views::scratch scratch;
  const auto span = views{}.decode(std::string_view(text), scratch);
  REQUIRE(span.size() == 4);
  CHECK(span[2] == "\xc3\xa4");
}

TEST_CASE("codec/json_field: text that is not JSON is an error with its offset") {
  using namespace json_field_test;
  const auto check = [](std::string_view text, std::size_t offset, const std::string& part) {
    CAPTURE(text);
    const auto error = failure<int>(text);
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(part) && contains("offset " + std::to_string(offset)));
  };
  check("", 0, "ends too early");
  check("{\"x\": 1", 7, "ends too early");
  check("{\"x\": \"a", 8, "ends too early");
  check("{\"x\": 1} 2", 9, "goes wrong at \"2\"");
  check("{\"x\": 1}{\"x\": 1}", 8, "goes wrong");
  check("{\"x\": 1}]", 8, "goes wrong");
  check("{\"x\": 1,}", 8, "goes wrong");
  check("{\"x\": nul}", 9, "goes wrong");
  check("{'x': 1}", 1, "goes wrong");
  check("{\"x\": 01}", 7, "goes wrong");
  check("{\"x\": 1.}", 8, "goes wrong");
  check("{\"x\": -}", 7, "goes wrong");
  check("{\"x\" 1}", 5, "goes wrong");
  check("{\"a\": \"\xff\", \"x\": 1}", 7, "goes wrong");
  check("{\"a\": \"\t\", \"x\": 1}", 7, "goes wrong");
  CHECK_THAT(failure<std::string>(R"({"x": "\q"})").line, contains("offset 8"));
  CHECK_THAT(failure<std::string>(R"({"x": "\u12"})").line, contains("offset 11"));
  CHECK_THAT(failure<double>("{\"x\": 1e999}").line, contains("range of double"));
  CHECK_THAT(failure<double>("{\"x\": nan}").line, contains("offset 7"));
  CHECK_THAT(failure<double>("{\"x\": NaN1}").line, contains("goes wrong at \"1"));
  CHECK_THAT(failure<double>("{\"x\": +Infinity}").line, contains("goes wrong"));
}

TEST_CASE("codec/json_field: what nobody asks for is passed over") {
  using namespace json_field_test;
  CHECK(found<int>(R"({"a": NaN, "b": nul, "c": 01, "d": [1 2, {"x": }], "x": 1, "e": 1e999, "e": "\q"})") ==
        1);
  CHECK(found<int>("{\"y\": " + nested(100'000) + ", \"x\": 1}") == 1);
  CHECK(failure<int>("{\"y\": " + std::string(1'000'000, '[')).code == ps::errc::format);
  const auto large = failure<int>(R"({"x": 1})", {.limit = 5});
  CHECK(large.code == ps::errc::limit);
  CHECK_THAT(large.line, contains("8 bytes, and the limit is 5") && contains(".limit = ..."));
}

TEST_CASE("codec/json_field: numbers as Python writes them") {
  using namespace json_field_test;
  CHECK(std::isnan(found<double>(R"({"x": NaN})")));
  CHECK(std::isnan(found<float>("{\"x\":NaN\n}")));
  CHECK(found<double>(R"({"x": Infinity, "y": 1})") == std::numeric_limits<double>::infinity());
  CHECK(found<float>(R"({"x": -Infinity})") == -std::numeric_limits<float>::infinity());
  CHECK(std::signbit(found<double>(R"({"x": -0.0})")));
  CHECK(found<int>(R"({"x": -0})") == 0);
  // Python writes whole numbers of any length
  CHECK(found<double>(R"({"x": 123456789012345678901234567890})") == 123456789012345678901234567890.0);
  const auto values = found<std::vector<float>>(R"({"x": [1, NaN, -Infinity, 2.5]})");
  REQUIRE(values.size() == 4);
  CHECK(std::isnan(values[1]));
  CHECK(values[3] == 2.5f);
  CHECK_THAT(failure<int>(R"({"x": NaN})").line, contains("NaN at the key 'x', but a whole number"));
  CHECK_THAT(failure<int>(R"({"x": -Infinity})").line, contains("an infinity at the key 'x'"));
  CHECK_THAT(failure<int>(R"({"x": 1e2})").line, contains("a real number at the key 'x'"));
  CHECK_THAT(failure<std::int64_t>(R"({"x": 9223372036854775808})").line, contains("out of the range"));
  CHECK(found<std::int64_t>(R"({"x": -9223372036854775808})") == std::numeric_limits<std::int64_t>::min());
  CHECK_THAT(failure<std::uint64_t>(R"({"x": 18446744073709551616})").line, contains("out of the range"));
}

TEST_CASE("codec/json_field: escapes, half surrogate pairs, blanks, a byte order mark") {
  using namespace json_field_test;
  CHECK(text_of_x(R"(\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac)") == "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac");
  CHECK(text_of_x(R"(\u0000)") == std::string(1, '\0'));
  CHECK(text_of_x(R"(\ud83d\ude00!)") == "\xf0\x9f\x98\x80!");
  CHECK(text_of_x(R"(a\ud83d)") == "a\xef\xbf\xbd");
  CHECK(text_of_x(R"(\ude00\ud83d)") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(text_of_x(R"(\ud83dx\ude00)") == "\xef\xbf\xbdx\xef\xbf\xbd");
  CHECK(text_of_x(R"(\ud83d\ud83d\ude00)") == "\xef\xbf\xbd\xf0\x9f\x98\x80");
  CHECK(text_of_x(R"(\ud83d\n)") == "\xef\xbf\xbd\n");
  CHECK(text_of_x(R"(\\ud83d)") == "\\ud83d");
  CHECK(text_of_x("h\xc3\xa4 \xf0\x9f\x98\x80") == "h\xc3\xa4 \xf0\x9f\x98\x80");
  CHECK(found<int>(R"({"\u0078": 4})") == 4);
  CHECK(found<int>(R"({"a\"x": 1, "\\": 2, "x": 3})") == 3);
  CHECK_THAT(failure<int>(R"({"x": 1, "\u0078": 2})").line, contains("'x' twice"));
  CHECK(found<int>(" \t{ \r\n\"x\"\t:\n 5 \r} \n") == 5);
  CHECK(found<std::string>("{\"x\": \"a\"  \r\n}\r") == "a");
  CHECK(found<int>("\xef\xbb\xbf{\"x\": 6}") == 6);
}

TEST_CASE("codec/json_fields: several values in one pass") {
  using namespace json_field_test;
  row::scratch scratch;
  const row codec;
  const auto one =
      codec.decode(std::string_view(R"({"id": 1, "n": 2, "text": "a\tb", "more": {"n": 3}})"), scratch);
  CHECK(ps::get<"text">(one) == "a\tb");
  CHECK(ps::get<"n">(one) == 2);
  CHECK_THAT(caught([&] { (void)codec.decode(std::string_view(R"({"text": "a"})"), scratch); }).line,
             contains("no key 'n'"));
  CHECK_THAT(
      caught([&] { (void)codec.decode(std::string_view(R"({"text": "a", "n": 1, "n": 1})"), scratch); }).line,
      contains("'n' twice"));
  CHECK_THAT(caught([&] { (void)codec.decode(std::string_view("{}"), scratch); }).line,
             contains("no key 'text'"));
  // the scratch of what failed serves the next text
  const std::string_view again = R"({"n": 7, "text": "c"})";
  CHECK(ps::get<"n">(codec.decode(again, scratch)) == 7);
  CHECK(penstock_test::allocations_of([&] {
          for (int i = 0; i < 100; ++i) CHECK(ps::get<"text">(codec.decode(again, scratch)) == "c");
        }) == 0);
}

TEST_CASE("codec/json_field: randomly changed documents give the value, an error, and no harm") {
  using namespace json_field_test;
  const std::string good = R"({"y": [1, {"z": "a\u00e4"}], "x": 12, "w": {"x": [true, null, 1.5e3]}})";
  ps::rng random(4, 4, 4);
  int read = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (auto n = 1 + random.below(3); n > 0; --n) {
      const auto at = static_cast<std::size_t>(random.below(text.size()));
      if (random.chance(0.3))
        text.erase(at, 1);
      else
        text[at] = "{}[]\",:0a\\ \xff"[random.below(12)];
    }
    CAPTURE(text);
    const auto error = failure<int>(text);
    if (!error.line.empty()) {
      CHECK((error.code == ps::errc::format || error.code == ps::errc::missing));
      ++refused;
    } else {
      const int value = found<int>(text);
      CHECK_THAT(text, contains(std::to_string(value)));
      ++read;
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

TEST_CASE("codec/json_field: lines of a file through a pipeline") {
  using namespace json_field_test;
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += R"({"text": ")" + std::string(static_cast<std::size_t>(i % 7), 'x') + R"(", "label": )" +
            std::to_string(i) + R"(, "box": [)" + std::to_string(i) + ", 0.5]}\n";
  const auto rows = ps::lines(ps::memory_files().add("x.jsonl", text));
  const auto labels = rows | ps::decode<ps::json_field<"label", int>> | ps::batch(10);
  CHECK(penstock_test::values_of(labels, 3) == penstock_test::first_ints(100));
  const auto boxes = rows | ps::decode<ps::json_field<"box", std::array<float, 2>>> | ps::batch(10);
  const auto numbers = penstock_test::values_of(boxes, 2);
  REQUIRE(numbers.size() == 200);
  CHECK(numbers[198] == 99.0f);
  CHECK(numbers[199] == 0.5f);
  using both = ps::json_fields<ps::json_field<"text", std::string_view>, ps::json_field<"label", int>>;
  std::size_t letters = 0;
  int sum = 0;
  for (auto&& b : (rows | ps::decode<both> | ps::batch(10, ps::ragged) | ps::workers(2)).epoch(0)) {
    letters += ps::get<"text">(b).values().size();
    for (const int label : ps::get<"label">(b)) sum += label;
  }
  CHECK(letters == 14 * 21 + 1);
  CHECK(sum == 99 * 50);
  const auto bad = ps::lines(ps::memory_files().add("x.jsonl", "{\"label\": 1}\n{\"label\": \"no\"}\n")) |
                   ps::decode<ps::json_field<"label", int>> | ps::batch(1);
  CHECK_THAT(penstock_test::error_of([&] { static_cast<void>(penstock_test::values_of(bad)); }),
             contains("x.jsonl:2") && contains("key 'label'"));
}

TEST_CASE("codec/json_field: inputs that other loaders refused") {
  using namespace json_field_test;
  using score = ps::json_field<"score", double>;
  const auto scores =
      penstock_test::values_of(ps::lines(fixture("reports/nan.jsonl")) | ps::decode<score> | ps::batch(3), 1);
  REQUIRE(scores.size() == 3);
  CHECK(std::isnan(scores[0]));
  CHECK(scores[1] == -std::numeric_limits<double>::infinity());
  CHECK(scores[2] == 1.5);
  std::string texts;
  const auto collect = [&](const char* name) {
    texts.clear();
    const auto source = ps::lines(fixture(name));
    const auto reader = source.connect();
    decltype(source.connect())::worker worker;
    ps::json_field<"text", std::string>::scratch scratch;
    for (std::uint64_t i = 0; i < source.size(); ++i)
      reader.evaluate({0, i}, worker, [&](std::string_view line) {
        texts += ps::json_field<"text", std::string>{}.decode(line, scratch) + "|";
      });
    return texts;
  };
  CHECK(collect("reports/nan.jsonl") == "a|b|c|");
  CHECK(collect("reports/surrogate.jsonl") == "cut emoji \xef\xbf\xbd|");
  CHECK(collect("reports/blank.jsonl") == "a|b|c|");
}

TEST_CASE("codec/json_field: real lines") {
  using namespace json_field_test;
  const auto folder = penstock_test::test_data("tokens/jsonl");
  if (!folder || !std::filesystem::exists(*folder / "arxiv.jsonl")) {
    WARN("PENSTOCK_TEST_DATA has no tokens/jsonl: real lines are not read");
    return;
  }
  const auto rows = ps::lines((*folder / "arxiv.jsonl").string());
  const auto reader = rows.connect();
  decltype(rows)::reader::worker worker;
  ps::json_field<"text", std::string>::scratch scratch;
  for (std::uint64_t i = 0; i < rows.size(); ++i)
    reader.evaluate({0, i}, worker, [&](std::string_view line) {
      CHECK(!ps::json_field<"text", std::string>{}.decode(line, scratch).empty());
    });
}
