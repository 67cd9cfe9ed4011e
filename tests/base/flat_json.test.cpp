// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/flat_json.hpp>

#include "support/catch.hpp"
#include "support/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

using ps::detail::json_reader;

json_reader reader_of(std::string_view text) {
  return {text, {ps::errc::format, "this is no list of samples", "test"}};
}
/// The error that reading throws, and whether the text was cut there.
template <class Read>
std::string failure(std::string_view text, Read read) {
  json_reader json = reader_of(text);
  try {
    read(json);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::format);
    return std::string(e.what()) + (json.was_cut() ? " cut" : "");
  }
  return "";
}
std::string told(std::string_view wanted, std::uint64_t offset, bool cut = false) {
  return "penstock: this is no list of samples: expected " + std::string(wanted) + " [stage test, offset " +
         std::to_string(offset) + "]" + (cut ? " cut" : "");
}
constexpr auto string_of = [](json_reader& json) { static_cast<void>(json.string()); };
constexpr auto number_of = [](json_reader& json) { static_cast<void>(json.number()); };
constexpr auto quoted_number_of = [](json_reader& json) { static_cast<void>(json.quoted_number()); };
constexpr std::string_view character = "a character, or \\\", \\\\, \\u00XX or \\ufffd";

}  // namespace

TEST_CASE("base/flat_json: any bytes become a JSON string") {
  CHECK(ps::detail::json_quoted("plain") == "\"plain\"");
  CHECK(ps::detail::json_quoted("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(ps::detail::json_quoted(std::string("\n\t\0\x7f", 4)) == "\"\\u000a\\u0009\\u0000\\u007f\"");
  CHECK(ps::detail::json_quoted("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  // Cut off, overlong, a surrogate, beyond the last code point, a lone continuation byte.
  for (const std::string wrong : {"\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80", "\xff"}) {
    std::string wanted = "\"";
    for (std::size_t i = 0; i < wrong.size(); ++i) wanted += "\\ufffd";
    CHECK(ps::detail::json_quoted(wrong) == wanted + "\"");
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  CHECK_NOTHROW(penstock_test::json::parse(ps::detail::json_quoted(all)));
}

TEST_CASE("base/flat_json: quoted text is read back") {
  std::string all;
  for (int i = 0; i < 128; ++i) all += static_cast<char>(i);
  for (const std::string& one : {std::string(), all, std::string("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80")})
    CHECK(reader_of(ps::detail::json_quoted(one)).string() == one);
  for (const std::string wrong : {"a\xff", "\xe2\x82", "\xed\xa0\x80 b"}) {
    const std::string clean = ps::detail::as_utf8(wrong);
    CHECK(clean != wrong);
    CHECK(ps::detail::as_utf8(clean) == clean);
    CHECK(reader_of(ps::detail::json_quoted(wrong)).string() == clean);
    CHECK(reader_of(ps::detail::json_quoted(clean)).string() == clean);
  }
}

TEST_CASE("base/flat_json: names are read in order, blanks between tokens are ignored") {
  json_reader json =
      reader_of("{ \"rank\" : 3,\n\t\"world\": \"18446744073709551615\" , \"held\": [\"1\", \"2\"] }\r\n");
  json.expect('{');
  CHECK(!json.optional_name("world"));
  json.name("rank");
  CHECK(json.number() == 3);
  CHECK(!json.next_name("rank"));
  CHECK(json.next_name("world"));
  CHECK(json.quoted_number() == ~std::uint64_t{0});
  json.expect(',');
  CHECK(json.optional_name("held"));
  std::vector<std::uint64_t> held;
  json.list([&] { held.push_back(json.quoted_number()); });
  CHECK(held == std::vector<std::uint64_t>{1, 2});
  json.expect('}');
  json.end("the end");
  CHECK(!json.was_cut());
  int none = 0;
  reader_of(" [ ] ").list([&] { ++none; });
  CHECK(none == 0);
}

TEST_CASE("base/flat_json: errors give the offset") {
  CHECK(failure("  x", [](json_reader& json) { json.expect('{'); }) == told("'{'", 2));
  CHECK(failure("\"rang\": 1", [](json_reader& json) { json.name("rank"); }) == told("the name \"rank\"", 0));
  CHECK(failure("1 2", [](json_reader& json) {
          static_cast<void>(json.number());
          json.end("the end of the line");
        }) == told("the end of the line", 2));
  CHECK(failure("-1,", number_of) == told("a number of 64 bits", 0));
  CHECK(failure("18446744073709551616,", number_of) == told("a number of 64 bits", 0));
  for (const std::string_view wrong : {"\"\"", "\"-1\"", "\"1", "\"1 \"", "\"18446744073709551616\""})
    CHECK(failure(wrong, quoted_number_of) == told("a number of 64 bits as a string", 1));
  CHECK(failure("[1 2]", [](json_reader& json) { json.list([&] { (void)json.number(); }); }) ==
        told("','", 3));
  for (const std::string_view wrong :
       {"\"a\x01\"", "\"a\\n    \"", "\"a\\u0080\"", "\"a\\u00g0\"", "\"a\xff\"", "\"a\xe2\x82 \""})
    CHECK(failure(wrong, string_of) == told(character, 2));
}

TEST_CASE("base/flat_json: truncated text is recognised") {
  const std::string_view whole = "{\"key\": \"\\u001f\\\" \\ufffd\xe2\x82\xac\", \"n\": 12, ";
  const auto read = [](json_reader& json) {
    json.expect('{');
    json.name("key");
    static_cast<void>(json.string());
    static_cast<void>(json.next_name("m"));
    static_cast<void>(json.next_name("n"));
    static_cast<void>(json.number());
    json.expect(',');
    static_cast<void>(json.string());
  };
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    INFO(whole.substr(0, length));
    CHECK(failure(whole.substr(0, length), read).ends_with(" cut"));
  }
}
