// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<sentencepiece_processor.h>)
#error "penstock/codec/sentencepiece.hpp needs SentencePiece: link penstock::sentencepiece"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/shared_model.hpp>
#include <penstock/codec/tokenizer_options.hpp>

#include <sentencepiece_processor.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// The options of `spm`.
struct spm_options {
  bool add_bos = false;                         ///< whether the token `<s>` is put before each text
  bool add_eos = false;                         ///< whether the token `</s>` is put behind each text
  invalid_utf8 invalid = invalid_utf8::refuse;  ///< of text that is no UTF-8
};

/// The per-worker memory of `spm`.
struct spm_scratch {
  std::vector<int> ids;
  buffer replaced, tokens;
};

/// Text to tokens with a model of SentencePiece, by its own library: unigrams, BPE, words or characters.
///
/// In: any byte element, UTF-8. Out: a `std::span<const Token>` in the worker's scratch, valid until the
/// worker's next sample; `Token` is std::uint32_t for `spm`, and may be std::uint16_t, where all
/// ids fit, std::int32_t or std::int64_t. `batch` needs a collate policy for it, as `ragged` or
/// `pad_to_longest`.
/// The model's own normalisation is applied. Sampling of segmentations is not offered: what the library draws
/// depends on the thread.
/// Kind: pointwise, keeps all guarantees. Cost per sample: the library's, which allocates for each text.
/// Thread-safe: copies share the model.
/// Throws `errc::format` with the offset for what is no UTF-8, and for a model's file that is none;
/// `errc::missing` for one that is not there.
///
///     auto tokenizer = spm::from_file("tokenizer.model");
///     auto batches = lines("corpus.txt") | decode<spm>(tokenizer) | batch(8, ragged);
template <class Token>
class spm_as {
  static_assert(detail::token_number<Token>,
                "penstock: spm_as<Token> gives tokens as std::uint32_t (which is spm), "
                "std::uint16_t, std::int32_t or std::int64_t");

 public:
  using token_type = Token;
  static constexpr std::string_view codec_name = "spm";
  using scratch = spm_scratch;

  spm_options options;

  /// Without a model: a text is an error.
  spm_as() = default;

  /// Reads a model, as `spm_train` writes it.
  [[nodiscard]] static spm_as from_file(const std::string& path, const spm_options& options = {}) {
    auto made = detail::shared_model<::sentencepiece::SentencePieceProcessor>::make();
    if (const auto status = made.fresh().Load(path); !status.ok()) {
      const bool missing = status.code() == ::sentencepiece::util::StatusCode::kNotFound;
      throw error(missing ? errc::missing : errc::format,
                  {"SentencePiece does not take the file for a model: ", status.message()})
          .in_file(path);
    }
    const auto size = made->GetPieceSize();
    if (!std::in_range<Token>(size - 1))
      throw error(errc::argument, {"the model has ids up to ", size - 1,
                                   ", which std::uint16_t cannot hold; write spm instead of "
                                   "spm_as<std::uint16_t>"})
          .in_file(path);
    spm_as all;
    all.options = options;
    all.model_ = std::move(made);
    detail::in_file(path, [&] {
      if (options.add_bos) static_cast<void>(all.mark(all.model_->bos_id(), "<s>"));
      if (options.add_eos) static_cast<void>(all.mark(all.model_->eos_id(), "</s>"));
    });
    return all;
  }

  template <byte_element Bytes>
  [[nodiscard]] std::span<const Token> decode(const Bytes& in, scratch& s) const {
    const std::string_view text = text_of(as_bytes(in));
    check_model();
    check(model_->Encode(detail::tokenizer_text(text, options.invalid, s.replaced), &s.ids));
    const std::size_t before = options.add_bos ? 1 : 0,
                      size = s.ids.size() + before + (options.add_eos ? 1 : 0);
    s.tokens.resize_for_overwrite(size * sizeof(Token));
    auto* const into = reinterpret_cast<Token*>(s.tokens.data());
    if (options.add_bos) into[0] = mark(model_->bos_id(), "<s>");
    for (std::size_t i = 0; i < s.ids.size(); ++i) into[before + i] = static_cast<Token>(s.ids[i]);
    if (options.add_eos) into[size - 1] = mark(model_->eos_id(), "</s>");
    return {into, size};
  }

  /// The tokens of a single text: of many texts make a pipeline.
  [[nodiscard]] std::vector<Token> encode(std::string_view text) const {
    scratch own;
    const std::span<const Token> tokens = decode(text, own);
    return {tokens.begin(), tokens.end()};
  }
  /// The text of tokens, as the library joins it. Throws `errc::argument` for an id that the model does not
  /// have.
  [[nodiscard]] std::string decode(std::span<const Token> tokens) const {
    check_model();
    std::vector<int> ids;
    for (const Token one : tokens) {
      if (!has(one))
        throw error(errc::argument, {"the model has no token ", one, "; its ids are below ", vocab_size()});
      ids.push_back(static_cast<int>(one));
    }
    std::string text;
    check(model_->Decode(ids, &text));
    return text;
  }
  /// The id of a piece, with U+2581 in the place of spaces, as in the model's list of pieces.
  [[nodiscard]] std::optional<Token> token_to_id(std::string_view piece) const {
    check_model();
    const int id = model_->PieceToId(piece);
    return model_->IdToPiece(id) == piece ? std::optional<Token>(static_cast<Token>(id)) : std::nullopt;
  }
  /// A piece, valid as long as a copy of this tokenizer; a null pointer if there is no such token.
  [[nodiscard]] std::string_view id_to_token(Token id) const {
    return has(id) ? std::string_view(model_->IdToPiece(static_cast<int>(id))) : std::string_view();
  }
  /// The number of pieces: the rows that an embedding needs.
  [[nodiscard]] std::size_t vocab_size() const {
    return model_ ? static_cast<std::size_t>(model_->GetPieceSize()) : 0;
  }

 private:
  [[nodiscard]] bool has(Token id) const {
    return std::cmp_greater_equal(id, 0) && std::cmp_less(id, vocab_size());
  }
  [[nodiscard]] static Token mark(int id, std::string_view name) {
    if (id < 0) throw error(errc::argument, {"the model has no token ", name, " that could be added"});
    return static_cast<Token>(id);
  }
  void check_model() const {
    if (!model_)
      throw error(errc::argument,
                  "spm has no model; write "
                  "decode<spm>(spm::from_file(\"tokenizer.model\"))");
  }
  static void check(const ::sentencepiece::util::Status& status) {
    if (!status.ok()) throw error(errc::format, {"SentencePiece fails: ", status.message()});
  }

  detail::shared_model<::sentencepiece::SentencePieceProcessor> model_;
};

/// `spm_as` with tokens of 32 bits.
using spm = spm_as<std::uint32_t>;

}  // namespace penstock::inline v0_1
