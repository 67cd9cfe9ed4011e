// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/tokenizer_options.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace tokenizer_options_test {

namespace ps = penstock;
using penstock_test::contains;

TEST_CASE("codec/tokenizer_options: text for a tokenizer is UTF-8, in place unless something is replaced") {
  ps::buffer memory;
  for (const auto how : {ps::invalid_utf8::refuse, ps::invalid_utf8::replace}) {
    const std::string_view good = "a \xc3\xa9";
    CHECK(ps::detail::tokenizer_text(good, how, memory).data() == good.data());
    CHECK(ps::detail::tokenizer_text("", how, memory).empty());
  }
  const std::string text = "a\xff" + std::string(1000, 'b') + "\xe4\xbd";
  CHECK(ps::detail::tokenizer_text(text, ps::invalid_utf8::replace, memory) ==
        "a\xef\xbf\xbd" + std::string(1000, 'b') + "\xef\xbf\xbd");
  const auto error = codec_test::caught(
      [&] { static_cast<void>(ps::detail::tokenizer_text(text, ps::invalid_utf8::refuse, memory)); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("the text is not UTF-8: found \"\\xffbbb\"") && contains("[offset 1]"));
}

static_assert(ps::detail::token_number<std::uint16_t> && ps::detail::token_number<std::int64_t>);
static_assert(!ps::detail::token_number<std::uint8_t> && !ps::detail::token_number<float>);

}  // namespace tokenizer_options_test
