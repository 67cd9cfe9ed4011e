// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/tokenizer_json.hpp>

#include <fstream>
#include <iterator>

/// The other files that say how text becomes tokens: the vocabulary and the merges of GPT-2, and the ranks of
/// tiktoken.
namespace penstock::inline v0_1::detail {

/// A whole file. Throws `errc::missing` or `errc::io` if it cannot be read, `errc::limit` for more than 512
/// MiB.
[[nodiscard]] inline std::string tokenizer_file_text(const std::string& path) {
  constexpr std::uintmax_t most = 512_MiB;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error(errc::missing, "the tokenizer's file cannot be opened").in_file(path);
  std::string all;
  char piece[16384];
  while (in.read(piece, sizeof piece), in.gcount() > 0) {
    all.append(piece, static_cast<std::size_t>(in.gcount()));
    if (all.size() > most) throw error(errc::limit, "a tokenizer's file has at most 512 MiB").in_file(path);
  }
  if (in.bad()) throw error(errc::io, "the tokenizer's file cannot be read").in_file(path);
  return all;
}

/// Reads GPT-2's vocabulary, a JSON object of ids by token, and its merges, a line each.
[[nodiscard]] inline bpe_model read_vocabulary(std::string_view vocabulary,
                                               const std::string& vocabulary_path, std::string_view merges,
                                               const std::string& merges_path) {
  bpe_model_maker maker;
  in_file(vocabulary_path, [&] {
    no_scratch none;
    const json_value all = json{.limit = 512_MiB, .depth = 4}.decode(vocabulary, none);
    if (!all.is_object()) throw error(errc::format, "the vocabulary is not an object of ids by token");
    for (const auto& [token, id] : all.items()) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= max_tokens)
        throw error(errc::format, {"the id of the token ", quoted(bytes_of(token), 40),
                                   " is not a whole number below ", max_tokens});
      maker.token(token, id.get<std::uint32_t>());
    }
  });
  in_file(merges_path, [&] {
    std::uint32_t rank = 0;
    std::uint64_t offset = 0;
    while (!merges.empty()) {
      const std::size_t end = std::min(merges.find('\n'), merges.size());
      std::string_view line = merges.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      const std::size_t space = line.find(' ');
      if (!line.empty() && !line.starts_with("#version")) {
        if (space == line.npos || line.find(' ', space + 1) != line.npos)
          throw error(errc::format, "a line of merges is not two tokens with a space between them")
              .at_offset(offset);
        maker.merge(line.substr(0, space), line.substr(space + 1), rank++);
      }
      offset += std::min(end + 1, merges.size());
      merges.remove_prefix(std::min(end + 1, merges.size()));
    }
  });
  return maker.finish();
}

/// The bytes of base64 with its padding; false if it is none.
[[nodiscard]] inline bool from_base64(std::string_view text, std::string& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  bytes.clear();
  if (text.size() % 4 != 0) return false;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::string_view four = text.substr(i, 4);
    const std::size_t padding = i + 4 < text.size()    ? 0
                                : four.ends_with("==") ? 2
                                : four.ends_with('=')  ? 1
                                                       : 0;
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t digit = k < 4 - padding ? digits.find(four[k]) : 0;
      if (digit == digits.npos) return false;
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t k = 0; k < 3 - padding; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k) & 0xff);
  }
  return true;
}

/// Reads the ranks of tiktoken: lines of a token in base64 and its rank, which is its id.
[[nodiscard]] inline bpe_model read_tiktoken(std::string_view text) {
  constexpr std::uint64_t max_work = std::uint64_t{1} << 32;
  bpe_model made;
  std::string bytes;
  std::uint64_t offset = 0, work = 0;
  const auto refuse = [&](std::string_view what) { throw error(errc::format, what).at_offset(offset); };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) {
      const std::size_t space = std::min(line.find(' '), line.size());
      std::uint64_t rank = 0;
      const std::string_view digits = line.substr(std::min(space + 1, line.size()));
      for (const char digit : digits)
        rank = digit < '0' || digit > '9' || rank >= max_tokens
                   ? max_tokens
                   : 10 * rank + static_cast<std::uint64_t>(digit - '0');
      if (!from_base64(line.substr(0, space), bytes) || bytes.empty() || digits.empty() || rank >= max_tokens)
        refuse("a line of ranks is not a token in base64 and its rank; is this a file of tiktoken?");
      const auto id = static_cast<std::uint32_t>(rank);
      if (made.texts.has(id)) refuse("a rank is there twice");
      made.texts.set(id, bytes);
      if (made.ids.put(id, made.texts) != no_token) refuse("a token is there twice");
      work += bytes.size() * bytes.size();
      if (work > max_work) throw error(errc::limit, "the tokens are too long").at_offset(offset);
    }
    offset += std::min(end + 1, text.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (made.texts.size() == 0) refuse("the file of ranks has no lines");
  // Two tokens merge where both together are one, at the rank of that one.
  for (std::uint32_t id = 0; id < made.texts.size(); ++id) {
    if (!made.texts.has(id)) continue;
    const std::string_view token = made.texts[id];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const std::uint32_t left = made.ids.find(token.substr(0, cut), made.texts);
      const std::uint32_t right = made.ids.find(token.substr(cut), made.texts);
      if (left != no_token && right != no_token) made.merges.put(left, right, id, id);
    }
  }
  made.whole_words = true;
  made.find_bytes();
  return made;
}

}  // namespace penstock::inline v0_1::detail
