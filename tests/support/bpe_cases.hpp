// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/bpe.hpp>

#include "support/token_cases.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

[[nodiscard]] inline std::string_view pattern_named(std::string_view name) {
  using namespace penstock;
  if (name == "gpt2") return token_patterns::gpt2;
  if (name == "cl100k") return token_patterns::cl100k;
  if (name == "o200k") return token_patterns::o200k;
  REQUIRE(name == "llama3");
  return token_patterns::llama3;
}

[[nodiscard]] inline penstock::bpe_options bpe_options_of(const token_case& one) {
  namespace ps = penstock;
  return {.special = one.has("ordinary") ? ps::special_tokens::text : ps::special_tokens::recognise,
          .add_special_tokens = one.has("around")};
}

/// The tokenizer of a case that token_peers.py has written.
template <class Token = std::uint32_t>
[[nodiscard]] penstock::bpe_as<Token> bpe_of(const std::filesystem::path& folder, const token_case& one) {
  using tokenizer = penstock::bpe_as<Token>;
  const std::string file = (folder / one.file).string();
  const penstock::bpe_options options = bpe_options_of(one);
  if (one.kind == "json") return tokenizer::from_file(file, options);
  if (one.kind == "gpt2")
    return tokenizer::from_files(file, (folder / "merges.bpe").string(), {{"<|endoftext|>", 0}}, options);
  REQUIRE(one.kind == "tiktoken");
  const auto end = static_cast<std::uint32_t>(std::stoul(one.words.at(1)));
  return tokenizer::from_tiktoken(file, pattern_named(one.words.at(0)), {{"<|endoftext|>", end}}, options);
}

}  // namespace penstock_test
