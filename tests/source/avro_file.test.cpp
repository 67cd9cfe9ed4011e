// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/tables/avro_file.hpp>

#include "support/avro_bytes.hpp"
#include "support/catch.hpp"
#include "support/test_data.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::avro_block;
using penstock_test::avro_head;
using penstock_test::avro_number;
using penstock_test::avro_text;

namespace avro_file_test {

// Every kind of type; names stand behind what they name, as pyiceberg writes them.
const std::string every_kind = R"({"type": "record", "fields": [
  {"name": "a", "field-id": 1, "type": "long"},
  {"name": "b", "field-id": 2, "type": ["null", "string"], "doc": "\u00e9 \"\\\n"},
  {"name": "skipped", "field-id": 9,
   "type": {"type": "record", "name": "inner", "namespace": "x.y", "fields": [
     {"name": "i", "type": "int"}, {"name": "z", "type": "null"}, {"name": "t", "type": "boolean"},
     {"name": "f", "type": "float"}, {"name": "d", "type": "double"}, {"name": "raw", "type": "bytes"},
     {"name": "four", "type": {"type": "fixed", "size": 4, "name": "four"}},
     {"name": "again", "type": ["null", "four"]},
     {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["A", "B"]}},
     {"name": "list", "type": {"type": "array", "items": ["null", "long"]}},
     {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "string"}}}]}},
  {"name": "part", "field-id": 3, "type": ["null", "x.y.inner"]},
  {"name": "named", "type": {"type": "long", "logicalType": "timestamp-micros"}, "default": 1.5e3}
], "name": "entry"})";

std::string inner(int number, bool sized) {
  const std::string items = avro_number(1) + avro_number(7) + avro_number(0);
  std::string list = avro_number(sized ? -2 : 2);
  if (sized) list += avro_number(static_cast<std::int64_t>(items.size()));
  list += items + avro_number(0);
  const std::string texts = avro_number(1) + avro_text("in a list") + avro_number(0);
  return avro_number(number) + "\1" + std::string("\0\0\x80\x3f", 4) +
         std::string("\0\0\0\0\0\0\xf0\x3f", 8) + avro_text("raw") + "four" + avro_number(1) + "five" +
         avro_number(1) + list + avro_number(1) + avro_text("key") + texts + avro_number(1) + avro_text("b") +
         avro_number(0) + avro_number(0);
}
std::string record(std::int64_t a, const char* b, bool part) {
  return avro_number(a) + (b == nullptr ? avro_number(0) : avro_number(1) + avro_text(b)) + inner(3, true) +
         (part ? avro_number(1) + inner(-5, false) : avro_number(0)) + avro_number(a * 2);
}
std::string whole_avro() {
  return avro_head(every_kind, "null", {{"format-version", "2"}}) +
         avro_block(2, record(1, "one", true) + record(-2, nullptr, false)) + avro_block(0, "") +
         avro_block(1, record(-(std::int64_t{1} << 62), "", true));
}

std::string read(const std::string& bytes, ps::detail::avro_unpacker unpack = nullptr) {
  ps::detail::avro_file file(ps::bytes_of(std::string_view(bytes)), unpack);
  std::string all;
  while (const auto one = file.next()) {
    all += std::to_string(one->number({1, "x"}).value_or(-1)) + " ";
    all += std::string(one->text({2, "x"}).value_or("null")) + " ";
    const auto part = one->record({3, "x"});
    CHECK(one->has({3, "x"}) == part.has_value());
    if (part) {
      for (const char* const name : {"i", "t", "raw", "four", "again", "kind"})
        all += part->spelled({-1, name}).value_or("null") + ",";
      CHECK(!part->spelled({-1, "z"}));
      CHECK(part->spelled({-1, "f"}) == part->spelled({-1, "d"}));  // both are 1
      CHECK(part->spelled({-1, "d"}) == "4607182418800017408");
    }
    all += " " + std::to_string(one->number({77, "named"}).value_or(-1)) + "\n";
    CHECK(!one->number({78, "a"}));  // it has another number
  }
  return all;
}

std::string error_of(const std::string& bytes, ps::detail::avro_unpacker unpack = nullptr) {
  try {
    ps::detail::avro_file file(ps::bytes_of(std::string_view(bytes)), unpack, 1 << 20);
    while (file.next()) {
    }
  } catch (const ps::error& e) {
    return e.what();
  }
  return "none";
}
bool says(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace avro_file_test

using namespace avro_file_test;

TEST_CASE("source/avro_file: every kind of type, by number and by name") {
  const std::string whole = whole_avro();
  CHECK(read(whole) == "1 one -5,true,raw,four,five,1, 2\n-2 null  -4\n" +
                           std::to_string(-(std::int64_t{1} << 62)) +
                           "  -5,true,raw,four,five,1, -9223372036854775808\n");
  const ps::detail::avro_file file(ps::bytes_of(std::string_view(whole)));
  CHECK(file.metadata("format-version") == "2");
  CHECK(file.metadata("none").empty());
  // Metadata in blocks with a size.
  const std::string entry =
      avro_text("avro.schema") + avro_text(R"({"type":"record","name":"r","fields":[]})");
  CHECK(error_of("Obj\1" + avro_number(-1) + avro_number(static_cast<std::int64_t>(entry.size())) + entry +
                 avro_number(0) + "0123456789abcdef") == "none");
}

TEST_CASE("source/avro_file: a decimal is spelled alike whatever its precision") {
  const auto spelled = [](const std::string& value) {
    const std::string schema =
        R"({"type":"record","name":"r","fields":[{"name":"d","type":{"type":"fixed","name":"f","size":)" +
        std::to_string(value.size()) + "}}]}";
    const std::string bytes = avro_head(schema) + avro_block(1, value);
    ps::detail::avro_file file(ps::bytes_of(std::string_view(bytes)));
    return file.next()->spelled({-1, "d"}).value_or("null");
  };
  using namespace std::string_literals;
  CHECK(spelled("\5"s) == "\5");
  CHECK(spelled("\0\0\0\5"s) == "\5");
  CHECK(spelled("\0\0"s) == "\0"s);
  CHECK(spelled("\0\xff"s) == "\0\xff"s);
  CHECK(spelled("\xff\xff"s) == "\xff");
  CHECK(spelled("\xff\xff\x80\1"s) == "\x80\1");
  CHECK(spelled("\xff\x7f"s) == "\xff\x7f");
}

TEST_CASE("source/avro_file: a field of another kind is an error") {
  const std::string whole = whole_avro();
  ps::detail::avro_file file(ps::bytes_of(std::string_view(whole)));
  const auto one = file.next();
  REQUIRE(one);
  CHECK_THROWS_WITH(one->text({1, "a"}), Catch::Contains("the field 'a' is not of the kind"));
  CHECK_THROWS_WITH(one->number({2, "b"}), Catch::Contains("the field 'b'"));
  CHECK_THROWS_WITH(one->record({1, "a"}), Catch::Contains("the field 'a'"));
  CHECK_THROWS_WITH(one->spelled({3, "part"}), Catch::Contains("the field 'part'"));
}

TEST_CASE("source/avro_file: what is cut off or damaged is an error with its place, or records") {
  const std::string whole = whole_avro();
  const std::size_t head = avro_head(every_kind, "null", {{"format-version", "2"}}).size();
  const std::size_t first = head + avro_block(2, record(1, "one", true) + record(-2, nullptr, false)).size();
  const std::size_t second = first + avro_block(0, "").size();
  for (std::size_t size = 4; size < whole.size(); ++size) {
    if (size == head || size == first || size == second) continue;  // between blocks
    INFO(size);
    const std::string said = error_of(whole.substr(0, size));
    CHECK(says(said, "damaged"));
    CHECK(says(said, "offset"));
  }
  ps::rng random(1, 2, 3);
  for (int i = 0; i < (penstock_test::long_tests() ? 20'000 : 4'000); ++i) {
    std::string damaged = whole;
    char& byte = damaged[static_cast<std::size_t>(random.below(whole.size()))];
    byte = static_cast<char>(byte ^ (1 << random.below(8)));
    (void)error_of(damaged);
  }
  for (const char* const none : {"", "Obj", "PAR1"}) CHECK(says(error_of(none), "not a container of Avro"));
  std::string other = whole;
  other.back() = 'x';
  CHECK(says(error_of(other), "does not end with the file's marker"));
  CHECK(says(error_of(avro_head(every_kind) + avro_block(1, record(1, "one", true) + "\2")),
             "behind its last record"));
  CHECK(says(error_of(avro_head(every_kind) + avro_block(-1, "")), "below zero"));
  CHECK(says(error_of(avro_head(every_kind) + avro_block(1, "\1\7")), "a branch that is not there"));
  CHECK(says(error_of(avro_head(every_kind) + avro_block(1, std::string(11, '\xff'))), "more than 64 bits"));
}

TEST_CASE("source/avro_file: schemas that are none, or that ask for too much") {
  const auto with = [](const std::string& fields) {
    return R"({"type":"record","name":"r","fields":[)" + fields + "]}";
  };
  const auto schema_error = [](const std::string& schema) {
    return error_of(avro_head(schema) + avro_block(1, "\2\2"));
  };
  CHECK(says(schema_error("{"), "not JSON"));
  CHECK(says(schema_error(""), "not JSON"));
  CHECK(says(schema_error("{\"type\":\"record\"} x"), "not JSON"));
  CHECK(says(schema_error("\"long\""), "values that are no records"));
  CHECK(says(schema_error(R"({"type":"record","name":"r"})"), "a record without fields"));
  CHECK(says(schema_error(with(R"({"name":"a"})")), "a field without a type"));
  CHECK(says(schema_error(with(R"({"name":"a","type":"other"})")),
             "the type 'other', which it does not define"));
  CHECK(says(schema_error(with(R"({"name":"a","type":{"type":"fixed","name":"f"}})")),
             "a fixed type without a size"));
  CHECK(says(schema_error(with(R"({"name":"a","type":{"type":"fixed","name":"f","size":-1}})")),
             "'size' that is no number from 0 on"));
  CHECK(says(schema_error(with(R"({"name":"a","type":{"type":"array"}})")), "an array or a map of nothing"));
  CHECK(says(schema_error(std::string(100, '[')), "nested more than 64 deep"));
  CHECK(says(schema_error(std::string(1 << 21, ' ')), "1048576 is the limit"));

  // A record of itself, an array of values without bytes, and records that double 40 times.
  CHECK(says(schema_error(with(R"({"name":"a","type":"r"})")), "more work than the file's bytes explain"));
  const std::string nulls = with(R"({"name":"a","type":{"type":"array","items":"null"}})");
  CHECK(error_of(avro_head(nulls) + avro_block(1, avro_number(std::int64_t{1} << 60) + avro_number(0))) ==
        "none");
  std::string twice = with("");
  for (int i = 0; i < 40; ++i) {
    const std::string name = "r" + std::to_string(i);
    twice = R"({"type":"record","name":")" + name + R"(","fields":[{"name":"a","type":)" + twice +
            R"(},{"name":"b","type":")" + (i == 0 ? "r" : "r" + std::to_string(i - 1)) + "\"}]}";
  }
  CHECK(says(schema_error(twice), "nested more than 64 deep"));
  std::string flat = R"({"name":"r0","type":{"type":"record","name":"t0","fields":[]}})";
  for (int i = 1; i < 40; ++i) {
    const std::string now = std::to_string(i), before = std::to_string(i - 1);
    flat += R"(,{"name":"r)" + now + R"(","type":{"type":"record","name":"t)" + now +
            R"(","fields":[{"name":"a","type":"t)" + before + R"("},{"name":"b","type":"t)" + before +
            "\"}]}}";
  }
  CHECK(says(schema_error(with(flat)), "more work than the file's bytes explain"));
  CHECK(says(error_of(avro_head(with("")) + avro_block(1 << 20, "ab")), "more records than bytes"));
}

TEST_CASE("source/avro_file: blocks that are packed") {
  const auto upside_down = [](std::string_view codec, ps::bytes_view packed, std::uint64_t limit,
                              std::vector<std::byte>& into) {
    CHECK(codec == "upside-down");
    CHECK(limit == std::uint64_t{64} << 20);
    into.assign(packed.rbegin(), packed.rend());
  };
  const std::string one = record(5, "five", false);
  const std::string file =
      avro_head(every_kind, "upside-down") + avro_block(1, std::string(one.rbegin(), one.rend()));
  CHECK(read(file, upside_down) == "5 five  10\n");
  CHECK(says(error_of(file), "packed with 'upside-down', which is not read here"));
  CHECK(says(error_of(avro_head(every_kind) + avro_block(1, std::string((1 << 20) + 1, 'x'))),
             "1048576 is the limit"));
}
