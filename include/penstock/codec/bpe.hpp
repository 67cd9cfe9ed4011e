// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<pcre2.h>)
#error "penstock/codec/bpe.hpp needs PCRE2: link penstock::pcre2"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/tokenizer_file.hpp>
#include <penstock/codec/tokenizer_options.hpp>

#include <limits>
#include <optional>

namespace penstock::inline v0_1 {

/// The patterns by which known vocabularies of tiktoken split text into words, for `bpe::from_tiktoken`.
/// Source: tiktoken_ext/openai_public.py of tiktoken, and tokenizer.py of Llama 3.
namespace token_patterns {
inline constexpr std::string_view gpt2 =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";
inline constexpr std::string_view r50k = gpt2;
inline constexpr std::string_view p50k = gpt2;
inline constexpr std::string_view cl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|)"
    R"(\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
inline constexpr std::string_view o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
}  // namespace token_patterns

/// A special token of a vocabulary: {"<|endoftext|>", 50256}.
struct special_token {
  std::string text;
  std::uint32_t id = 0;
};

/// The options of `bpe`.
struct bpe_options {
  special_tokens special = special_tokens::recognise;  ///< of special tokens that stand in a text
  invalid_utf8 invalid = invalid_utf8::refuse;         ///< of text that is no UTF-8
  bool add_special_tokens = false;     ///< whether what the post-processor puts around a text is put there
  std::size_t cached_words = 1 << 15;  ///< words that each worker remembers, in 64 bytes each; 0: none
};

/// Text to tokens by byte-level byte-pair encoding, with the vocabularies of Hugging Face's `tokenizers`, of
/// tiktoken and of GPT-2: the same tokens as theirs, faster.
///
/// In: any byte element, UTF-8. Out: a `std::span<const Token>` in the worker's scratch, valid until the
/// worker's next sample; `Token` is std::uint32_t for `bpe`, and may be std::uint16_t, where all ids fit,
/// std::int32_t or std::int64_t. `batch` needs a collate policy for it, as `ragged` or `pad_to_longest`.
/// Of tokenizer.json: the model BPE; the normalizers NFC (as Qwen's and OLMo's files have it), NFD, NFKC and
/// NFKD, and Prepend and Replace with a plain text; the pre-tokenizers ByteLevel, Split and Digits; sequences
/// of these; added tokens, which are found in the text, those with "normalized" in the text that was made.
/// Other normalizers, byte_fallback, dropout and other models are refused when the file is read. The
/// post-processor, which puts `<|begin_of_text|>` before a text, is not asked unless `add_special_tokens` is
/// true; truncation and padding never are.
/// Characters have the properties of the Unicode version that PCRE2 was built with (14 for PCRE2 10.42):
/// characters that are newer are no letters to it. Normal forms are those of utf8proc (Unicode 15 for 2.8).
/// `tokenizers` has those of Unicode 9: some 170 characters that are newer, above all marks in another order
/// than that of their classes, it does not normalise, so texts with them may have other tokens here.
/// Kind: pointwise, keeps all guarantees. Cost per sample: about 80 ns for each word, half of them PCRE2's;
/// without the memory of words, up to 120 (English and code, row 44 of bench). A word of n bytes takes
/// n log n. NFC costs ASCII nothing that can be measured, and text of many scripts a fifth more. No
/// allocation once the scratch has grown. Thread-safe: copies share the vocabulary, of some 30 bytes a token
/// and 27 to 54 a merge.
/// Throws `errc::format` with the offset for what is no UTF-8, and for special tokens with
/// `special_tokens::refuse`; `errc::limit` for a text of more than 2 GiB, and where the file's pattern
/// backtracks without end.
///
///     auto tokenizer = bpe::from_file("tokenizer.json");
///     auto batches = lines("corpus.txt") | decode<bpe>(tokenizer) | batch(8, ragged);
template <class Token>
class bpe_as {
  static_assert(detail::token_number<Token>,
                "penstock: bpe_as<Token> gives tokens as std::uint32_t (which is bpe), std::uint16_t, "
                "std::int32_t or std::int64_t");

 public:
  using token_type = Token;
  static constexpr std::string_view codec_name = "bpe";
  using scratch = detail::bpe_worker;

  bpe_options options;

  /// Without a vocabulary: a text is an error.
  bpe_as() = default;

  /// Reads tokenizer.json of Hugging Face. Throws `errc::format` with the file's name for one that is damaged
  /// or asks for what `bpe` does not do, and says for what.
  [[nodiscard]] static bpe_as from_file(const std::string& path, const bpe_options& options = {}) {
    const std::string text = detail::tokenizer_file_text(path);
    return detail::in_file(path, [&] { return from_str(text, options); });
  }
  /// Reads the contents of such a file.
  [[nodiscard]] static bpe_as from_str(std::string_view json, const bpe_options& options = {}) {
    return {detail::tokenizer_json::read(json, options.add_special_tokens), options};
  }
  /// Reads a file of tiktoken, of which the pattern and the special tokens are no part:
  /// `bpe::from_tiktoken("cl100k_base.tiktoken", token_patterns::cl100k, {{"<|endoftext|>", 100257}})`.
  /// What the pattern does not match, which is nothing with those of `token_patterns`, are words too;
  /// tiktoken leaves it out.
  [[nodiscard]] static bpe_as from_tiktoken(const std::string& path, std::string_view pattern,
                                            const std::vector<special_token>& special = {},
                                            const bpe_options& options = {}) {
    const std::string text = detail::tokenizer_file_text(path);
    return detail::in_file(path, [&] {
      return split_by(detail::read_tiktoken(text),
                      detail::pcre2_pattern(pattern, detail::pattern_dialect::rust), special, options);
    });
  }
  /// Reads GPT-2's files, vocab.json (or encoder.json) and merges.txt (or vocab.bpe).
  [[nodiscard]] static bpe_as from_files(const std::string& vocabulary, const std::string& merges,
                                         const std::vector<special_token>& special = {},
                                         const bpe_options& options = {}) {
    return split_by(detail::read_vocabulary(detail::tokenizer_file_text(vocabulary), vocabulary,
                                            detail::tokenizer_file_text(merges), merges),
                    detail::pcre2_pattern(detail::gpt2_pattern, detail::pattern_dialect::onig), special,
                    options);
  }

  template <byte_element Bytes>
  [[nodiscard]] std::span<const Token> decode(const Bytes& in, scratch& s) const {
    if (!tokenizer_)
      throw error(errc::argument,
                  "bpe has no vocabulary; write decode<bpe>(bpe::from_file(\"tokenizer.json\"))");
    if (options.add_special_tokens && !tokenizer_->not_around.empty())
      throw error(errc::argument, tokenizer_->not_around);
    const std::string_view text = detail::tokenizer_text(text_of(as_bytes(in)), options.invalid, s.replaced);
    const std::span<const std::uint32_t> tokens =
        s.encode(tokenizer_, text, options.special, options.add_special_tokens, options.cached_words);
    if constexpr (std::same_as<Token, std::uint32_t>) {
      return tokens;
    } else {
      s.narrowed.resize_for_overwrite(tokens.size() * sizeof(Token));
      auto* const into = reinterpret_cast<Token*>(s.narrowed.data());
      for (std::size_t i = 0; i < tokens.size(); ++i) into[i] = static_cast<Token>(tokens[i]);
      return {into, tokens.size()};
    }
  }

  /// The tokens of a single text. Makes a scratch of its own: of many texts make a pipeline.
  [[nodiscard]] std::vector<Token> encode(std::string_view text) const {
    bpe_as plain = *this;
    plain.options.cached_words = 0;
    scratch own;
    const std::span<const Token> tokens = plain.decode(text, own);
    return {tokens.begin(), tokens.end()};
  }
  /// The bytes of tokens, special ones too; parts of characters are not completed. Throws `errc::argument`
  /// for an id without a token.
  [[nodiscard]] std::string decode(std::span<const Token> tokens) const {
    std::string made;
    for (const Token one : tokens) {
      const std::string_view text = id_to_token(one);
      if (text.data() == nullptr)
        throw error(errc::argument,
                    {"the vocabulary has no token ", one, "; its ids are below ", vocab_size()});
      made += text;
    }
    return made;
  }
  /// The id of a token, given by its bytes: " the" and not "\u0120the".
  [[nodiscard]] std::optional<Token> token_to_id(std::string_view token) const {
    if (!tokenizer_) return std::nullopt;
    for (const detail::added_tokens* const added : {&tokenizer_->first, &tokenizer_->second})
      if (const detail::added_token* const one = added->named(token)) return static_cast<Token>(one->id);
    const std::uint32_t id = tokenizer_->model.ids.find(token, tokenizer_->model.texts);
    return id == detail::no_token ? std::nullopt : std::optional<Token>(static_cast<Token>(id));
  }
  /// The bytes of a token, valid as long as a copy of this tokenizer; a null pointer if there is no such
  /// token.
  [[nodiscard]] std::string_view id_to_token(Token id) const {
    if (!std::in_range<std::uint32_t>(id) || !tokenizer_) return {};
    const auto number = static_cast<std::uint32_t>(id);
    return tokenizer_->model.texts.has(number) ? tokenizer_->model.texts[number] : std::string_view();
  }
  /// One more than the highest id: the rows that an embedding needs.
  [[nodiscard]] std::size_t vocab_size() const { return tokenizer_ ? tokenizer_->model.texts.size() : 0; }

 private:
  bpe_as(detail::bpe_tokenizer made, const bpe_options& given) : options(given) {
    const std::size_t size = made.model.texts.size();
    if (size != 0 && !std::in_range<Token>(size - 1))
      throw error(errc::argument, {"the vocabulary has ids up to ", size - 1,
                                   ", which std::uint16_t cannot hold; write bpe instead of "
                                   "bpe_as<std::uint16_t>"});
    tokenizer_ = detail::shared_model<detail::bpe_tokenizer>::make(std::move(made));
  }
  [[nodiscard]] static bpe_as split_by(detail::bpe_model model, std::string_view pattern,
                                       const std::vector<special_token>& special,
                                       const bpe_options& options) {
    detail::bpe_tokenizer made;
    made.model = std::move(model);
    made.steps.emplace_back().pattern = detail::token_pattern(pattern);
    std::vector<detail::added_token> added;
    for (const special_token& one : special) {
      if (one.text.empty() || one.id >= detail::max_tokens)
        throw error(errc::argument, {"a special token needs a text and an id below ", detail::max_tokens});
      added.push_back({one.text, one.id, true});
      detail::tokenizer_json::name_token(made.model, added.back());
    }
    made.first = detail::added_tokens(std::move(added));
    return {std::move(made), options};
  }
  detail::shared_model<detail::bpe_tokenizer> tokenizer_;
};

/// `bpe_as` with tokens of 32 bits.
using bpe = bpe_as<std::uint32_t>;

}  // namespace penstock::inline v0_1
