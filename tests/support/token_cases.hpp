// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Tokenizers and what other libraries make of texts with them: see token_peers.py, which writes them.

#include <penstock/codec/concepts.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// A tokenizer and how it is asked.
struct token_case {
  std::string name, kind, file;
  std::vector<std::string> words;
  [[nodiscard]] bool has(std::string_view word) const {
    return std::ranges::find(words, word) != words.end();
  }
};

[[nodiscard]] inline std::vector<std::string> lines_of_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> all;
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
[[nodiscard]] inline std::vector<token_case> token_cases(const std::filesystem::path& folder) {
  std::vector<token_case> all;
  for (const std::string& line : lines_of_file(folder / "cases.list")) {
    std::istringstream in(line);
    token_case& one = all.emplace_back();
    in >> one.name >> one.kind >> one.file;
    for (std::string word; in >> word;) one.words.push_back(word);
  }
  return all;
}
/// The texts of a folder.
[[nodiscard]] inline std::vector<std::string> token_texts(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const std::string& line : lines_of_file(folder / "texts.hex")) {
    std::string& text = all.emplace_back();
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      text += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  }
  return all;
}

/// Checks that a tokenizer makes the tokens of the other library of each text, with one scratch for all. As
/// many as `ties` texts may have other tokens, of the same text. Texts with characters that are newer than
/// the other library's tables of normal forms are left out; of texts without "<", each of `every` is looked
/// at.
template <class Tokenizer>
void check_tokens(const Tokenizer& tokenizer, const std::filesystem::path& folder, const token_case& one,
                  const std::vector<std::string>& texts, std::size_t ties = 0, std::size_t every = 1) {
  INFO(one.name);
  const std::vector<std::string> expected = lines_of_file(folder / (one.name + ".tokens"));
  REQUIRE(expected.size() == texts.size());
  REQUIRE(static_cast<std::size_t>(std::ranges::count(expected, "newer")) < texts.size() / 20);
  typename Tokenizer::scratch scratch;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % every != 0 && texts[i].find('<') == std::string::npos) continue;
    std::string found;
    for (const auto token : tokenizer.decode(std::string_view(texts[i]), scratch))
      found.append(found.empty() ? "" : " ").append(std::to_string(token));
    if (found == expected[i] || expected[i] == "newer") continue;
    if (ties != 0) {
      std::vector<typename Tokenizer::token_type> its;
      std::istringstream in(expected[i]);
      for (typename Tokenizer::token_type token; in >> token;) its.push_back(token);
      if (tokenizer.decode(its) == tokenizer.decode(tokenizer.encode(texts[i]))) {
        --ties;
        continue;
      }
    }
    const std::size_t differ =
        static_cast<std::size_t>(std::ranges::mismatch(found, expected[i]).in1 - found.begin());
    const std::size_t from = differ < 40 ? 0 : differ - 40;
    CAPTURE(i, texts[i].substr(0, 200), found.substr(from, 100),
            expected[i].substr(std::min(from, expected[i].size()), 100));
    FAIL("the tokens differ");
  }
}

/// What token_peers.py writes to a folder; false, with a warning, where the libraries are not there. In CI,
/// where they must be there, the test fails.
[[nodiscard]] inline bool write_token_cases(const std::string& kind, const std::filesystem::path& folder,
                                            const std::string& assigned) {
  const char* const python = std::getenv("PENSTOCK_TEST_FORMATS");
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const bool named = support != nullptr && python != nullptr && *python != '\0';
  const std::string program =
      named ? "'" + std::string(python) + "' -B '" + support + "/token_peers.py' " : std::string();
  if (!have_program("tokenizers, tiktoken and sentencepiece in the Python that PENSTOCK_TEST_FORMATS names",
                    named ? program + "check" : "false"))
    return false;
  std::ofstream(folder / "assigned", std::ios::binary) << assigned;
  const std::string root = std::filesystem::path(support).parent_path().parent_path().string();
  const program_result done =
      run_program(program + "write " + kind + " '" + folder.string() + "' '" +
                  (folder / "assigned").string() + "' $(find '" + root + "/docs' '" + root + "/include' '" +
                  root + "/tests' -name '*.md' -o -name '*.[hic]pp' | LC_ALL=C sort)");
  INFO(done.output);
  REQUIRE(done.status == 0);
  return true;
}

/// Each character of Unicode for which `known(text of it)` is true, one behind the other.
template <class Known>
[[nodiscard]] std::string characters_that(const Known& known) {
  std::string all;
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string one;
    const auto add = [&one](std::uint32_t byte) { one += static_cast<char>(byte); };
    if (c < 0x80) {
      add(c);
    } else {
      add(c < 0x800 ? 0xc0 | c >> 6 : c < 0x10000 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
      if (c >= 0x10000) add(0x80 | (c >> 12 & 0x3f));
      if (c >= 0x800) add(0x80 | (c >> 6 & 0x3f));
      add(0x80 | (c & 0x3f));
    }
    if (known(std::string_view(one))) all += one;
  }
  return all;
}

}  // namespace penstock_test
