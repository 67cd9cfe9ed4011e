// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/json.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/test_data.hpp"

#include <penstock/core/random.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

static_assert(ps::codec<ps::json>);
static_assert(ps::codec<ps::json_field<"x", int>> && ps::codec<ps::json_field<"x", std::span<const float>>>);

namespace json_test {

ps::json_value parsed(std::string_view text, ps::json codec = {}) {
  ps::no_scratch none;
  return codec.decode(text, none);
}
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

}  // namespace json_test

TEST_CASE("codec/json: documents of every form") {
  using namespace json_test;
  CHECK(parsed("null").is_null());
  CHECK(parsed(" 7 ") == 7);
  CHECK(parsed("\"a\\u00e4\"") == "a\xc3\xa4");
  const ps::json_value value = parsed(R"({"a": [1, 2.5, true], "b": {"c": "d"}})");
  CHECK(value["a"][1] == 2.5);
  CHECK(value["b"]["c"] == "d");
  codec_test::byte_vector bytes = codec_test::to_vector("[1]");
  int reads = 0;
  ps::no_scratch none;
  CHECK(ps::json{}.decode(codec_test::counted_blob{bytes, &reads}, none) == ps::json_value::array({1}));
  CHECK(reads == 1);
}

TEST_CASE("codec/json: text that is not JSON is an error with its offset") {
  using namespace json_test;
  const auto check = [](std::string_view text, std::size_t offset, const std::string& part) {
    CAPTURE(text);
    for (const auto& error : {caught([&] { static_cast<void>(parsed(text)); }), failure<int>(text)}) {
      CHECK(error.code == ps::errc::format);
      CHECK_THAT(error.line, contains(part) && contains("offset " + std::to_string(offset)));
    }
  };
  check("", 0, "ends too early");
  check("{\"x\": 1", 7, "ends too early");
  check("{\"x\": 1} 2", 9, "goes wrong at \"2\"");
  check("{\"x\": 1,}", 8, "goes wrong");
  check("{\"x\": nul}", 9, "goes wrong");
  check("{'x': 1}", 1, "goes wrong");
  check("{\"x\": 01}", 7, "goes wrong");
  check("{\"a\": \"\xff\", \"x\": 1}", 7, "goes wrong");
  CHECK_THAT(caught([&] { static_cast<void>(parsed("[1e999]")); }).line, contains("range of double"));
  CHECK_THAT(failure<double>("{\"x\": 1e999}").line, contains("range of double"));
}

TEST_CASE("codec/json: size and depth are bounded") {
  using namespace json_test;
  CHECK(parsed(nested(128)).is_array());
  const auto deep = caught([&] { static_cast<void>(parsed(nested(129))); });
  CHECK(deep.code == ps::errc::limit);
  CHECK_THAT(deep.line, contains("more than 128 deep") && contains(".depth = ...") && contains("offset 128"));
  CHECK(parsed(nested(1000), {.depth = 1000}).is_array());
  CHECK(parsed("[\"[[[[\", \"\\\"[[[[\"]", {.depth = 1}).size() == 2);
  CHECK(caught([&] { static_cast<void>(parsed(std::string(1'000'000, '['))); }).code == ps::errc::limit);
  const auto large = caught([&] { static_cast<void>(parsed("[1, 2]", {.limit = 5})); });
  CHECK(large.code == ps::errc::limit);
  CHECK_THAT(large.line, contains("6 bytes, and the limit is 5") && contains(".limit = ..."));

  const std::string field = "{\"y\": " + nested(127) + ", \"x\": 1}";
  CHECK(found<int>(field) == 1);
  CHECK(failure<int>(field, {.depth = 127}).code == ps::errc::limit);
  CHECK(failure<int>(field, {.limit = 20}).code == ps::errc::limit);
  CHECK(failure<int>("{\"y\": " + std::string(1'000'000, '[')).code == ps::errc::limit);
}

TEST_CASE("codec/json_field: values of every type") {
  using namespace json_test;
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
  CHECK(view.data() == words.text.data());
  ps::json_field<"n", std::span<const int>>::scratch numbers;
  const auto span =
      ps::json_field<"n", std::span<const int>>{}.decode(std::string_view("{\"n\": [5]}"), numbers);
  CHECK(span.size() == 1);
  CHECK(span.data() == numbers.values.data());
}

TEST_CASE("codec/json_field: a missing value or one of another kind is an error that names the key") {
  using namespace json_test;
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
  CHECK_THAT(length.line, contains("has 2 numbers, but 3 were asked for"));
}

TEST_CASE("codec/json: agrees with itself on randomly changed documents, and does no harm") {
  using namespace json_test;
  const std::string good = R"({"y": [1, {"z": "a\u00e4"}], "x": 12, "w": {"x": [true, null, 1.5e3]}})";
  ps::rng random(4, 4, 4);
  int both = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (auto n = 1 + random.below(3); n > 0; --n) {
      const auto at = static_cast<std::size_t>(random.below(text.size()));
      if (random.chance(0.3))
        text.erase(at, 1);
      else
        text[at] = "{}[]\",:0a\\ \xff"[random.below(12)];
    }
    const auto whole = caught([&] { static_cast<void>(parsed(text)); });
    const auto field = failure<int>(text);
    CAPTURE(text);
    if (!whole.line.empty()) CHECK(!field.line.empty());
    if (whole.line.empty() && field.line.empty()) {
      CHECK(parsed(text)["x"] == found<int>(text));
      ++both;
    }
  }
  CHECK(both > 100);
}

TEST_CASE("codec/json: lines of a file through a pipeline") {
  using namespace json_test;
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
  const auto texts = rows | ps::decode<ps::json_field<"text", std::string_view>> | ps::batch(10, ps::ragged);
  std::size_t letters = 0;
  for (auto&& b : (texts | ps::workers(2)).epoch(0)) letters += b.values().values().size();
  CHECK(letters == 14 * 21 + 1);
  const auto whole = rows | ps::decode<ps::json> |
                     ps::map([](const ps::json_value& v) { return v["label"].get<int>(); }) | ps::batch(10);
  CHECK(penstock_test::values_of(whole, 2) == penstock_test::first_ints(100));
  const auto bad = ps::lines(ps::memory_files().add("x.jsonl", "{\"label\": 1}\n{\"label\": \"no\"}\n")) |
                   ps::decode<ps::json_field<"label", int>> | ps::batch(1);
  CHECK_THAT(penstock_test::error_of([&] { static_cast<void>(penstock_test::values_of(bad)); }),
             contains("x.jsonl:2") && contains("key 'label'"));
}

TEST_CASE("codec/json: real lines") {
  using namespace json_test;
  const auto folder = penstock_test::test_data("tokens/jsonl");
  if (!folder || !std::filesystem::exists(*folder / "arxiv.jsonl")) {
    WARN("PENSTOCK_TEST_DATA has no tokens/jsonl: real lines are not read");
    return;
  }
  const auto rows = ps::lines((*folder / "arxiv.jsonl").string());
  const auto reader = rows.connect();
  decltype(rows)::reader::worker worker;
  for (std::uint64_t i = 0; i < rows.size(); ++i)
    reader.evaluate({0, i}, worker, [&](std::string_view line) {
      const ps::json_value value = parsed(line);
      REQUIRE(value.is_object());
      ps::json_field<"text", std::string>::scratch scratch;
      CHECK(value["text"].get<std::string>() == ps::json_field<"text", std::string>{}.decode(line, scratch));
    });
}
