// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/unicode_normalizer.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace unicode_normalizer_test {

namespace ps = penstock;
using penstock_test::contains;
using ps::unicode_form;

constexpr std::array forms{unicode_form::nfc, unicode_form::nfd, unicode_form::nfkc, unicode_form::nfkd};

std::string text_of(std::u32string_view points) {
  std::string all;
  for (const char32_t one : points) {
    std::uint8_t bytes[4];
    const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(one), bytes);
    all.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  return all;
}

/// The form as utf8proc makes it of a whole text.
std::string by_utf8proc(const std::string& text, unicode_form form) {
  const bool compatible = form == unicode_form::nfkc || form == unicode_form::nfkd;
  const bool composed = form == unicode_form::nfc || form == unicode_form::nfkc;
  utf8proc_uint8_t* made = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | (compatible ? UTF8PROC_COMPAT : 0) |
                                                  (composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE)));
  if (size < 0) FAIL(utf8proc_errmsg(size));
  std::string all(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  std::free(made);
  return all;
}

TEST_CASE("codec/unicode_normalizer: the four forms") {
  struct row {
    std::u32string_view text, nfc, nfd, nfkc, nfkd;
  };
  for (const row& one : std::vector<row>{
           {U"", U"", U"", U"", U""},
           {U"e\u0301", U"\u00e9", U"e\u0301", U"\u00e9", U"e\u0301"},
           {U"plain, and then e\u0301", U"plain, and then \u00e9", U"plain, and then e\u0301",
            U"plain, and then \u00e9", U"plain, and then e\u0301"},
           {U"\u212b\u2126\u212a", U"\u00c5\u03a9K", U"A\u030a\u03a9K", U"\u00c5\u03a9K", U"A\u030a\u03a9K"},
           {U"\u1112\u1161\u11ab", U"\ud55c", U"\u1112\u1161\u11ab", U"\ud55c", U"\u1112\u1161\u11ab"},
           {U"\ud558\u11ab", U"\ud55c", U"\u1112\u1161\u11ab", U"\ud55c", U"\u1112\u1161\u11ab"},
           // U+11A7 is no final consonant.
           {U"\ud558\u11a7", U"\ud558\u11a7", U"\u1112\u1161\u11a7", U"\ud558\u11a7", U"\u1112\u1161\u11a7"},
           // Characters that are not to be composed again.
           {U"\u0958", U"\u0915\u093c", U"\u0915\u093c", U"\u0915\u093c", U"\u0915\u093c"},
           {U"\u0344", U"\u0308\u0301", U"\u0308\u0301", U"\u0308\u0301", U"\u0308\u0301"},
           // Marks that stand in wrong order, and one that another one keeps from its letter.
           {U"q\u0307\u0323", U"q\u0323\u0307", U"q\u0323\u0307", U"q\u0323\u0307", U"q\u0323\u0307"},
           {U"a\u0307\u0301", U"\u0227\u0301", U"a\u0307\u0301", U"\u0227\u0301", U"a\u0307\u0301"},
           {U"a\u0315\u0300\u05ae\u0062", U"\u00e0\u05ae\u0315b", U"a\u05ae\u0300\u0315b",
            U"\u00e0\u05ae\u0315b", U"a\u05ae\u0300\u0315b"},
           {U"\ufb01\uff21", U"\ufb01\uff21", U"\ufb01\uff21", U"fiA", U"fiA"},
           {U"\u0301x", U"\u0301x", U"\u0301x", U"\u0301x", U"\u0301x"},
           {U"\U0001d15e", U"\U0001d157\U0001d165", U"\U0001d157\U0001d165", U"\U0001d157\U0001d165",
            U"\U0001d157\U0001d165"}}) {
    const std::string text = text_of(one.text);
    CAPTURE(text);
    CHECK(ps::unicode_normalizer(unicode_form::nfc)(text) == text_of(one.nfc));
    CHECK(ps::unicode_normalizer(unicode_form::nfd)(text) == text_of(one.nfd));
    CHECK(ps::unicode_normalizer(unicode_form::nfkc)(text) == text_of(one.nfkc));
    CHECK(ps::unicode_normalizer(unicode_form::nfkd)(text) == text_of(one.nfkd));
  }
}

TEST_CASE("codec/unicode_normalizer: as utf8proc has it of each character, and of a whole text") {
  ps::rng random(7, 0, 0);
  // U+11A7 behind a syllable, which utf8proc takes for a final consonant that is silent, is left out.
  constexpr std::pair<std::uint32_t, std::uint32_t> ranges[] = {
      {0x20, 0x7f},     {0xc0, 0x250},      {0x300, 0x370},    {0x300, 0x370},   {0x374, 0x400},
      {0x590, 0x5f5},   {0x620, 0x660},     {0x900, 0x9ff},    {0xb40, 0xbe0},   {0xdc0, 0xe50},
      {0xf40, 0xfbd},   {0x1100, 0x1113},   {0x1161, 0x1176},  {0x11a8, 0x11c3}, {0x1e00, 0x2000},
      {0x2100, 0x2150}, {0x3040, 0x30ff},   {0xac00, 0xac80},  {0xf900, 0xfb50}, {0xfe20, 0xfe30},
      {0xff00, 0xfff0}, {0x11099, 0x110bb}, {0x1d15e, 0x1d166}};
  for (const unicode_form form : forms) {
    const ps::unicode_normalizer normalizer(form);
    std::size_t differ = 0;
    for (std::uint32_t code = 0; code < 0x30000; ++code) {  // beyond, nothing is changed by any form
      if (code >= 0xd800 && code < 0xe000) continue;
      const char32_t points[] = {U'x', static_cast<char32_t>(code), U'\u0323', U'\u0301'};
      for (const std::size_t count : {std::size_t{2}, std::size_t{4}}) {
        const std::string text = text_of(std::u32string_view(points, count));
        differ += normalizer(text) != by_utf8proc(text, form);
      }
    }
    CHECK(differ == 0);
    for (int round = 0; round < 5000; ++round) {
      std::u32string points;
      for (std::size_t size = 1 + random.below(30); points.size() < size;) {
        const auto [first, end] = ranges[random.below(std::size(ranges))];
        for (std::size_t run = 1 + random.below(4); run > 0; --run)
          points += static_cast<char32_t>(first + random.below(end - first));
      }
      const std::string text = text_of(points), made = normalizer(text);
      if (made != by_utf8proc(text, form)) FAIL("differs: " << ps::detail::quoted(ps::bytes_of(text), 200));
      if (normalizer(made) != made) FAIL("not settled: " << ps::detail::quoted(ps::bytes_of(text), 200));
    }
  }
}

TEST_CASE(
    "codec/unicode_normalizer: text that is in its form is not copied, and nothing is allocated twice") {
  const std::string good =
      "ASCII, na\u00efve, \u4f60\u597d \ud55c \U0001f600 \u0928\u092e\u0938\u094d\u0924\u0947";
  std::string other;
  for (int i = 0; i < 100; ++i) other += "e\u0301\u0323" + good;
  const auto& form = ps::detail::normal_form::of(unicode_form::nfc);
  ps::detail::normal_form_memory memory;
  CHECK(form.apply(good, memory).data() == good.data());
  const std::string first(form.apply(other, memory));
  CHECK(first != other);
  CHECK(penstock_test::allocations_of([&] { static_cast<void>(form.apply(other, memory)); }) == 0);
}

TEST_CASE("codec/unicode_normalizer: marks without end take no square of time") {
  // Half a million marks in the worst order: with time that is the square of it, this would be the last test.
  std::string text = "e", lower, upper;
  for (int i = 0; i < 250'000; ++i) {
    text += "\u0301\u0323";
    lower += "\u0323";
    upper += "\u0301";
  }
  CHECK(ps::unicode_normalizer(unicode_form::nfc)(text) == "\u1eb9" + lower.substr(2) + upper);
}

TEST_CASE("codec/unicode_normalizer: in a plan, and what is no UTF-8") {
  const std::vector<std::string> texts{"e\u0301", "plain"};
  for (auto&& b : (ps::from(texts) | ps::decode<ps::text> |
                   ps::map(ps::unicode_normalizer(unicode_form::nfc)) | ps::batch(2, ps::ragged))
                      .epoch(0)) {
    CHECK(std::string(b.values()[0].begin(), b.values()[0].end()) == "\u00e9");
    CHECK(std::string(b.values()[1].begin(), b.values()[1].end()) == "plain");
  }
  const auto error =
      codec_test::caught([] { static_cast<void>(ps::unicode_normalizer(unicode_form::nfd)("ab\xff")); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("the text is not UTF-8: found \"\\xff\"") && contains("[offset 2]"));
}

}  // namespace unicode_normalizer_test
