// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/json.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/collect.hpp"
#include "support/fixtures.hpp"

#include <penstock/core/random.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

static_assert(ps::codec<ps::json>);

namespace json_test {

ps::json_value parsed(std::string_view text, ps::json codec = {}) {
  ps::no_scratch none;
  return codec.decode(text, none);
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
    const auto error = caught([&] { static_cast<void>(parsed(text)); });
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains(part) && contains("offset " + std::to_string(offset)));
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
}

TEST_CASE("codec/json: numbers that Python writes and JSON does not have") {
  using namespace json_test;
  const ps::json_value value =
      parsed(R"({"n": NaN, "a": [1, -Infinity, 2.5e3, Infinity, -3], "t": "NaN, -Infinity", "m": -1})");
  CHECK(std::isnan(value["n"].get<double>()));
  CHECK(value["a"][0] == 1);
  CHECK(value["a"][1] == -INFINITY);
  CHECK(value["a"][2] == 2500.0);
  CHECK(value["a"][3] == INFINITY);
  CHECK(value["a"][4] == -3);
  CHECK(value["t"] == "NaN, -Infinity");
  CHECK(value["m"] == -1);
  CHECK(parsed(" -Infinity") == -INFINITY);
  const auto at = [](std::string_view text) { return caught([&] { static_cast<void>(parsed(text)); }).line; };
  CHECK_THAT(at(R"({"a": nan})"), contains("offset 7"));
  CHECK_THAT(at(R"({"a": NaNs})"), contains("goes wrong at \"NaNs"));
  CHECK_THAT(at(R"([1NaN])"), contains("goes wrong"));
  CHECK_THAT(at(R"([-NaN])"), contains("goes wrong"));
  CHECK_THAT(at(R"([NaN1])"), contains("goes wrong"));
  CHECK_THAT(at(R"([+Infinity])"), contains("goes wrong"));
  CHECK_THAT(at(R"({NaN: 1})"), contains("goes wrong"));
}

TEST_CASE("codec/json: half a surrogate pair is U+FFFD, and a byte order mark is passed over") {
  using namespace json_test;
  CHECK(parsed(R"("\ud83d\ude00")") == "\xf0\x9f\x98\x80");
  CHECK(parsed(R"("\ud83d")") == "\xef\xbf\xbd");
  CHECK(parsed(R"("\uDE00x")") == "\xef\xbf\xbdx");
  CHECK(parsed(R"("\ud83d\ud83d\ude00")") == "\xef\xbf\xbd\xf0\x9f\x98\x80");
  CHECK(parsed(R"("\\ud83d")") == "\\ud83d");
  CHECK(parsed(R"({"\ud83d": NaN, "b": 1})")["b"] == 1);
  CHECK(parsed("\xef\xbb\xbf[1]")[0] == 1);
  CHECK_THAT(caught([&] { static_cast<void>(parsed(R"(["\ud83d", nil])")); }).line, contains("offset 12"));
}

TEST_CASE("codec/json: inputs that other loaders refused") {
  using namespace json_test;
  std::vector<double> scores;
  std::ifstream in(penstock_test::fixture("reports/nan.jsonl"));
  for (std::string line; std::getline(in, line);) scores.push_back(parsed(line)["score"].get<double>());
  REQUIRE(scores.size() == 3);
  CHECK(std::isnan(scores[0]));
  CHECK(scores[1] == -INFINITY);
  CHECK(scores[2] == 1.5);
  std::string cut;
  std::getline(std::ifstream(penstock_test::fixture("reports/surrogate.jsonl")), cut);
  CHECK(parsed(cut)["text"] == "cut emoji \xef\xbf\xbd");
}

TEST_CASE("codec/json: documents through a pipeline") {
  using namespace json_test;
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("{\"label\": " + std::to_string(i) + "}");
  const auto labels = ps::from(texts) | ps::decode<ps::json> |
                      ps::map([](const ps::json_value& v) { return v["label"].get<int>(); }) | ps::batch(10);
  CHECK(penstock_test::values_of(labels, 2) == penstock_test::first_ints(100));
}
