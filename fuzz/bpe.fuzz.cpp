// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Files of tokenizers, and a text: [0 tokenizer.json, 1 ranks of tiktoken, 2 vocab.json and merges.txt][the
// size of the text: 8 bits][text][file], of 2 [the size of the vocabulary: 16 bits] before both files

#include <penstock/codec/bpe.hpp>

#include "support/fuzz.hpp"

#include <string>
#include <vector>

using namespace penstock_fuzz;
namespace ps = penstock;

namespace {

/// What a tokenizer makes of a text has ids that it knows, and is the same without its memory of words.
void encode(ps::bpe tokenizer, std::string_view text) {
  const std::string problem = outcome([&] {
    tokenizer.options.invalid = ps::invalid_utf8::replace;
    ps::bpe::scratch scratch;
    const auto first = tokenizer.decode(text, scratch);
    const std::vector<std::uint32_t> tokens(first.begin(), first.end());
    for (const std::uint32_t token : tokens)
      must(token < tokenizer.vocab_size(), "an id is one of the vocabulary");
    const auto again = tokenizer.decode(text, scratch);
    must(tokens == std::vector<std::uint32_t>(again.begin(), again.end()), "tokens are the same again");
    must(tokens == tokenizer.encode(text), "tokens are the same without a memory of words");
  });
  touch(problem);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  const unsigned kind = in.number() % 3;
  const std::string text(ps::text_of(in.take(in.number())));
  ps::bpe tokenizer;
  const std::string problem = outcome([&] {
    if (kind == 0) {
      tokenizer = ps::bpe::from_str(ps::text_of(in.rest()), {.add_special_tokens = (text.size() & 1) != 0});
    } else if (kind == 1) {
      const auto model = ps::detail::read_tiktoken(ps::text_of(in.rest()));
      std::vector<std::uint32_t> tokens(text.size() + 1);
      ps::detail::long_word memory;
      if (!text.empty())
        must(model.encode(text, text, tokens.data(), memory) <= text.size(), "a token has at least a byte");
    } else {
      const std::size_t first = std::size_t{in.number()} << 8, second = in.number();
      const std::string vocabulary(ps::text_of(in.take(first | second)));
      static_cast<void>(
          ps::detail::read_vocabulary(vocabulary, "vocab.json", ps::text_of(in.rest()), "merges.txt"));
    }
  });
  touch(problem);
  if (problem.empty() && kind == 0) encode(tokenizer, text);
  return 0;
}
