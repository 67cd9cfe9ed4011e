// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/bpe.hpp>

#include "support/bpe_cases.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace bpe_agreement_test {

namespace ps = penstock;

TEST_CASE("codec/bpe_agreement: tokenizers and tiktoken, large vocabularies, every character") {
  const penstock_test::temp_dir dir;
  // Characters that are newer than PCRE2 are no letters to it.
  const ps::detail::token_pattern unassigned("\\p{Cn}");
  ps::detail::pattern_memory memory;
  const std::string assigned = penstock_test::characters_that([&](std::string_view one) {
    ps::detail::token_pattern::match found;
    return !unassigned.find(one, 0, found, memory);
  });
  CHECK(assigned.size() > 500'000);
  if (!penstock_test::write_token_cases("bpe", dir.path(), assigned)) return;
  const auto texts = penstock_test::token_texts(dir.path());
  CHECK(texts.size() > 10'000);
  std::size_t cases = 0;
  ps::bpe tokenizer;
  std::string read;
  for (const auto& one : penstock_test::token_cases(dir.path())) {
    ++cases;
    // Cases that differ in how they are asked alone follow each other, and share what was read.
    if (const std::string file = one.file + (one.kind == "tiktoken" ? one.words.at(0) : ""); file != read) {
      tokenizer = penstock_test::bpe_of(dir.path(), one);
      read = file;
    }
    tokenizer.options = penstock_test::bpe_options_of(one);
    if (one.name == "gpt") CHECK(tokenizer.vocab_size() == 50'257);
    if (one.name == "llama") CHECK(tokenizer.vocab_size() == 128'256);
    // Special tokens, and what is put around texts, have nothing to do with what else the texts are.
    const bool again = one.has("ordinary") || one.has("around") || one.kind == "gpt2";
    penstock_test::check_tokens(tokenizer, dir.path(), one, texts, 0, again ? 16 : 1);
  }
  CHECK(cases == 25);
}

}  // namespace bpe_agreement_test
