// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/sequence/token_sequence.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `mask_tokens`. In Hugging Face's DataCollatorForLanguageModeling `rate` is `mlm_probability`,
/// `random` is `random_replace_prob`, and 1 - `random` - `keep` is `mask_replace_prob`.
struct mask_tokens_options {
  double rate = 0.15;            ///< the probability that a token, or a word, is chosen
  std::int64_t mask_token = -1;  ///< [MASK]; must be given
  std::int64_t vocabulary = 0;   ///< the number of tokens there are; must be given unless `random` is 0
  double random = 0.1;           ///< the share of the chosen that become any token of the vocabulary
  double keep = 0.1;             ///< the share of the chosen that stay; the others become `mask_token`
  std::vector<std::int64_t> special{};  ///< tokens that are never chosen, such as [CLS], [SEP] and [PAD]
};

namespace detail {

enum class word_marks { none, starts, ids };
/// How words are marked, and in which field.
template <class Name, word_marks Marks>
struct words_in {};

/// Throws `errc::argument`, with a sentence about the option that is wrong.
inline void check_mask_tokens(const mask_tokens_options& options) {
  if (!is_probability(options.rate))
    throw error(errc::argument, "mask_tokens: rate is a probability, from 0 to 1");
  if (!(options.random >= 0 && options.keep >= 0 && options.random + options.keep <= 1))
    throw error(
        errc::argument,
        "mask_tokens: random and keep are shares of the chosen tokens, which are 1 together at most, as "
        "in .random = 0.1, .keep = 0.1");
  if (options.mask_token < 0 && options.random + options.keep < 1)
    throw error(errc::argument, "mask_tokens: say which token masks, as in .mask_token = 103");
  if (options.vocabulary <= 0 && options.random > 0)
    throw error(errc::argument,
                "mask_tokens: say how many tokens there are, as in .vocabulary = 30'522, or .random = 0");
}
[[noreturn, gnu::cold]] inline void refuse_words(std::string_view words, std::size_t marks,
                                                 std::size_t tokens) {
  throw error(errc::shape, {"mask_tokens: the words of '", words, "' are those of ", marks,
                            " tokens, and the sample has ", tokens});
}

template <class V, class Tokens, class Labels, class Words, word_marks Marks>
consteval auto mask_tokens_mistake() {
  constexpr auto wrong = sequence_mistake<V, Tokens, Labels>();
  if constexpr (!is_right<std::remove_const_t<decltype(wrong)>> || Marks == word_marks::none)
    return wrong;
  else if constexpr (!has_field<V, Words>)
    return mistakes::no_such_field{};
  else
    return sequence_mistake<V, Words>();
}

}  // namespace detail

/// An argument of `mask_tokens`: a field with a number for each token, which is not 0 where a word begins.
/// The first token always begins one.
template <fixed_string Name>
inline constexpr detail::words_in<name_of<Name>, detail::word_marks::starts> word_starts{};
/// An argument of `mask_tokens`: a field with the number of each token's word, as `word_ids()` of Hugging
/// Face's tokenizers. Neighbours with one number are one word; tokens with a negative one are in no word, and
/// never chosen.
template <fixed_string Name>
inline constexpr detail::words_in<name_of<Name>, detail::word_marks::ids> word_ids{};

/// What `mask_tokens` makes: a function for `map`.
template <class Tokens, class Labels, class Label, class Words, detail::word_marks Marks>
class mask_tokens_operation {
 public:
  using accepts_call = void;
  using makes_fields = void;
  struct scratch {
    buffer tokens, labels;
  };
  template <class>
  static constexpr bool uses_random = true;
  template <class V>
  using wrong_argument_for =
      decltype(detail::mask_tokens_mistake<std::remove_cvref_t<V>, Tokens, Labels, Words, Marks>());

  /// Throws `errc::argument`, see `mask_tokens`.
  explicit mask_tokens_operation(mask_tokens_options options) : options_(std::move(options)) {
    detail::check_mask_tokens(options_);
    chosen_below_ = detail::share_of_words(options_.rate);
    masked_below_ = detail::share_of_words(1 - options_.random - options_.keep);
    random_below_ = detail::share_of_words(1 - options_.keep);
  }

  template <class V>
    requires(detail::is_right<wrong_argument_for<V>>)
  [[nodiscard]] auto operator()(V&& sample, const call<scratch>& c) const {
    decltype(auto) finished_tokens = penstock::finish(detail::sequence_in<Tokens>(sample));
    const auto all = detail::sequence_numbers("mask_tokens", finished_tokens);
    using T = typename decltype(all)::value_type;
    const auto tokens = detail::token_room<T>(c.scratch.tokens, all.size());
    const auto labels = detail::token_room<Label>(c.scratch.labels, all.size());
    if (!all.empty()) std::memcpy(tokens.data(), all.data(), all.size_bytes());
    std::fill(labels.begin(), labels.end(), Label{-100});

    rng random = c.random();
    const detail::numbered_words choices(random), fates(random);
    if constexpr (Marks == detail::word_marks::none) {
      mask_chosen<T>(choices, fates, tokens, labels,
                     [&](std::size_t, std::uint64_t half) { return half < chosen_below_; });
    } else {
      decltype(auto) finished_words = penstock::finish(detail::sequence_in<Words>(sample));
      const auto marks = detail::sequence_numbers("mask_tokens", finished_words);
      if (marks.size() != all.size()) [[unlikely]]
        detail::refuse_words(Words::value, marks.size(), all.size());
      // By arithmetic and without a branch, because a processor cannot predict where words begin.
      unsigned chosen = 0, first = 1;
      mask_chosen<T>(choices, fates, tokens, labels, [&](std::size_t i, std::uint64_t half) {
        const unsigned begins = first | (begins_word(marks[i], marks[i - 1 + first]) ? 1u : 0u);
        const unsigned chooses = (half < chosen_below_ ? 1u : 0u) & (in_word(marks[i]) ? 1u : 0u);
        chosen = (chosen & ~begins) | (chooses & begins);
        first = 0;
        return chosen != 0;
      });
    }
    return detail::with_fields<Tokens, basic_field<Tokens, std::span<const T>>,
                               basic_field<Labels, std::span<const Label>>>(std::forward<V>(sample), tokens,
                                                                            labels);
  }

 private:
  template <class Mark>
  [[nodiscard]] static constexpr bool begins_word(Mark mark, Mark before) noexcept {
    if constexpr (Marks == detail::word_marks::starts)
      return mark != 0;
    else
      return mark != before;
  }
  template <class Mark>
  [[nodiscard]] static constexpr bool in_word(Mark mark) noexcept {
    if constexpr (Marks == detail::word_marks::ids && std::is_signed_v<Mark>)
      return mark >= 0;
    else
      return true;
  }

  /// Masks the tokens for which `chosen(i, half)` is true; half a random word chooses, and another word says
  /// what becomes of the chosen. They are found first, some hundreds at a time, because a processor cannot
  /// predict which they are.
  template <class T, class Chosen>
  void mask_chosen(const detail::numbered_words& choices, const detail::numbered_words& fates,
                   std::span<T> tokens, std::span<Label> labels, Chosen&& chosen) const {
    constexpr std::string_view name = "mask_tokens";
    const T mask = masked_below_ == 0 ? T{} : detail::token_as<T>(options_.mask_token, name, "mask_token");
    if (random_below_ > masked_below_)
      static_cast<void>(detail::token_as<T>(options_.vocabulary - 1, name, "vocabulary - 1"));
    std::array<std::size_t, 256> found;
    for (std::size_t i = 0; i < tokens.size();) {
      const std::size_t end = std::min(i + found.size(), tokens.size());
      std::size_t count = 0;
      for (; i < end; i += 2) {
        const std::uint64_t word = choices[i / 2];
        found[count] = i;
        count += chosen(i, word & 0xffffffffu) ? 1 : 0;
        if (i + 1 == end) continue;
        found[count] = i + 1;
        count += chosen(i + 1, word >> 32) ? 1 : 0;
      }
      for (const std::size_t at : std::span(found).first(count))
        mask_one(fates[at], mask, tokens[at], labels[at]);
    }
  }
  template <class T>
  void mask_one(std::uint64_t fate, T mask, T& token, Label& label) const {
    if (std::find(options_.special.begin(), options_.special.end(), std::int64_t{token}) !=
        options_.special.end())
      return;
    label = detail::token_as<Label>(token, "mask_tokens", "label");
    const std::uint64_t share = fate & 0xffffffffu;
    if (share < masked_below_)
      token = mask;
    else if (share < random_below_)
      token =
          static_cast<T>(detail::multiply_high(mix64(fate), static_cast<std::uint64_t>(options_.vocabulary)));
  }

  mask_tokens_options options_;
  std::uint64_t chosen_below_, masked_below_, random_below_;
};

/// Masks tokens for masked language modelling, as BERT was trained: each token is chosen with probability
/// `rate`, and of the chosen 80 % become `mask_token`, 10 % any token of the vocabulary, and 10 % stay. The
/// field "labels" has the tokens that were chosen, and -100 elsewhere. Hugging Face:
/// DataCollatorForLanguageModeling.
///
/// In: a record, whose field of the first name is a sequence of tokens of any type; or a sequence alone. Out:
/// the record with the masked tokens in their place and a field of the second name behind the others; of a
/// sequence alone a record of these two. Labels are `std::int64_t`, or the signed type that is the third
/// argument. Both are in memory of the worker until they are written to their slots.
///
/// With `word_starts<"flags">` or `word_ids<"ids">`, a second field of the sample, all tokens of a word are
/// chosen together, or none, except special ones; what becomes of a chosen token is drawn for each. `rate` is
/// the share of words then, as with Hugging Face's `whole_word_mask`; its DataCollatorForWholeWordMask, which
/// is gone, chose words until there was a share of tokens.
///
/// Pointwise; draws random numbers, the same for any number of workers and after a restore. A token's numbers
/// depend on its place, not on what was chosen before it. No allocation once the memory has grown. Cost: one
/// pass, about two and a half nanoseconds for each token, and the copies to the slots.
/// Throws `errc::argument` for options that are no probabilities, without a mask token or a vocabulary, and
/// for tokens that the sequence's type cannot hold; `errc::shape`, for a sample, if there are not as many
/// marks of words as tokens, or the sequence has several dimensions.
/// Source: Devlin, Chang, Lee and Toutanova, "BERT: pre-training of deep bidirectional transformers", 2019.
///
///     auto bert = map(mask_tokens<"tokens">({.mask_token = 103, .vocabulary = 30'522, .special = {0, 101, 102}}));
///     auto words = map(mask_tokens<"tokens", "targets">({.mask_token = 103, .random = 0, .keep = 0},
///                                                       word_ids<"words">));
template <fixed_string Tokens = "tokens", fixed_string Labels = "labels", class Label = std::int64_t>
[[nodiscard]] auto mask_tokens(mask_tokens_options options) {
  return mask_tokens<Tokens, Labels, Label>(std::move(options),
                                            detail::words_in<name_of<"">, detail::word_marks::none>{});
}
template <fixed_string Tokens = "tokens", fixed_string Labels = "labels", class Label = std::int64_t,
          class Words, detail::word_marks Marks>
[[nodiscard]] auto mask_tokens(mask_tokens_options options, detail::words_in<Words, Marks>) {
  constexpr bool holds_labels = std::is_same_v<Label, std::int64_t> || std::is_same_v<Label, std::int32_t>;
  static_assert(holds_labels,
                "penstock: labels of mask_tokens are std::int64_t, or std::int32_t: -100 marks tokens that "
                "are not to be predicted, and a label holds any token");
  using label = std::conditional_t<holds_labels, Label, std::int64_t>;  // so that this is the only error
  return mask_tokens_operation<name_of<Tokens>, name_of<Labels>, label, Words, Marks>(std::move(options));
}

}  // namespace penstock::inline v0_1
