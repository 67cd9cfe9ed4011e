// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/sentencepiece.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/fixtures.hpp"
#include "support/temp_dir.hpp"
#include "support/token_cases.hpp"

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>

#include <penstock/run/run.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

static_assert(ps::codec<ps::spm>);

namespace sentencepiece_test {

template <class Token = std::uint32_t>
ps::spm_as<Token> tokenizer_of(const std::filesystem::path& folder, const penstock_test::token_case& one) {
  return ps::spm_as<Token>::from_file((folder / one.file).string(),
                                      {.add_bos = one.has("around"), .add_eos = one.has("around")});
}
std::string model(const std::string& name) { return (penstock_test::fixture("tokenizers") / name).string(); }

}  // namespace sentencepiece_test

TEST_CASE("codec/sentencepiece: the tokens of its own library in Python") {
  using namespace sentencepiece_test;
  const auto folder = penstock_test::fixture("tokenizers");
  const auto texts = penstock_test::token_texts(folder);
  std::size_t cases = 0;
  for (const auto& one : penstock_test::token_cases(folder)) {
    if (one.kind != "sentencepiece") continue;
    ++cases;
    penstock_test::check_tokens(tokenizer_of(folder, one), folder, one, texts);
    penstock_test::check_tokens(tokenizer_of<std::uint16_t>(folder, one), folder, one, texts);
    penstock_test::check_tokens(tokenizer_of<std::int64_t>(folder, one), folder, one, texts);
  }
  CHECK(cases == 4);
}

TEST_CASE("codec/sentencepiece: the vocabulary, and tokens as text") {
  using namespace sentencepiece_test;
  const auto tokenizer = ps::spm::from_file(model("fallback.model"));
  const auto tokens = tokenizer.encode("the loader");
  CHECK(tokenizer.decode(tokens) == "the loader");
  CHECK(tokenizer.token_to_id("<unk>") == 0u);
  CHECK(tokenizer.id_to_token(1) == "<s>");
  CHECK(tokenizer.token_to_id("no such piece") == std::nullopt);
  const auto size = static_cast<std::uint32_t>(tokenizer.vocab_size());
  CHECK(size > 256);
  CHECK(tokenizer.id_to_token(size).data() == nullptr);
  const std::uint32_t unknown[] = {size};
  const auto error = caught([&] { static_cast<void>(tokenizer.decode(unknown)); });
  CHECK(error.code == ps::errc::argument);
  CHECK_THAT(error.line, contains("the model has no token " + std::to_string(size)));
  ps::spm::scratch scratch;
  CHECK_THAT(caught([&] { static_cast<void>(ps::spm{}.decode(std::string_view("a"), scratch)); }).line,
             contains("spm has no model; write decode<spm>("));
}

TEST_CASE("codec/sentencepiece: text that is no UTF-8, and files that are no models") {
  using namespace sentencepiece_test;
  const auto tokenizer = ps::spm::from_file(model("unigram.model"));
  const auto error = caught([&] { static_cast<void>(tokenizer.encode("abc\xff")); });
  CHECK(error.code == ps::errc::format);
  CHECK_THAT(error.line, contains("the text is not UTF-8") && contains("[offset 3]"));
  CHECK(ps::spm::from_file(model("unigram.model"), {.invalid = ps::invalid_utf8::replace}).encode("a\xff") ==
        tokenizer.encode("a\xef\xbf\xbd"));

  const auto missing = caught([] { static_cast<void>(ps::spm::from_file("/no such file")); });
  CHECK(missing.code == ps::errc::missing);
  CHECK_THAT(missing.line, contains("[file /no such file]"));
  const penstock_test::temp_dir dir;
  const std::string path = (dir.path() / "some.model").string();
  std::ofstream(path) << "this is no model";
  const auto none = caught([&] { static_cast<void>(ps::spm::from_file(path)); });
  CHECK(none.code == ps::errc::format);
  CHECK_THAT(none.line, contains("SentencePiece does not take the file for a model") && contains(path));
}

TEST_CASE("codec/sentencepiece: in a plan, by any number of workers") {
  using namespace sentencepiece_test;
  const auto tokenizer = ps::spm::from_file(model("unigram.model"));
  const auto texts = penstock_test::token_texts(penstock_test::fixture("tokenizers"));
  for (const unsigned workers : {0u, 3u}) {
    std::size_t i = 0;
    for (auto&& b :
         (ps::from(texts) | ps::decode<ps::spm>(tokenizer) | ps::batch(7, ps::ragged) | ps::workers(workers))
             .epoch(0)) {
      for (std::size_t k = 0; k < b.size(); ++k, ++i) {
        const auto row = b.values()[k];
        CHECK(std::vector<std::uint32_t>(row.begin(), row.end()) == tokenizer.encode(texts[i]));
      }
    }
    CHECK(i == texts.size());
  }
}

TEST_CASE("codec/sentencepiece: a large model that its library trains, every character") {
  using namespace sentencepiece_test;
  const penstock_test::temp_dir dir;
  if (!penstock_test::write_token_cases(
          "sentencepiece", dir.path(), penstock_test::characters_that([](std::string_view) { return true; })))
    return;
  const auto texts = penstock_test::token_texts(dir.path());
  CHECK(texts.size() > 10'000);
  // Where two segmentations have equal scores, as "==" and "=" of "===", releases of the library choose
  // differently.
  for (const auto& one : penstock_test::token_cases(dir.path()))
    penstock_test::check_tokens(tokenizer_of(dir.path(), one), dir.path(), one, texts,
                                one.file == "unigram.model" ? 20 : 0);
}
