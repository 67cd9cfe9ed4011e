// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/sequence/token_sequence.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

/// Options of `fill_in_the_middle`, with the rates of the paper. Megatron-LM calls them `fim_rate` and
/// `fim_spm_rate`.
struct fill_in_the_middle_options {
  double rate = 0.5;               ///< the probability that a document is rearranged
  double spm_rate = 0.5;           ///< the share of those whose suffix comes before their prefix
  std::int64_t prefix_token = -1;  ///< before the prefix; must be given
  std::int64_t middle_token = -1;  ///< before the middle; must be given
  std::int64_t suffix_token = -1;  ///< before the suffix; must be given
  std::int64_t document_end = -1;  ///< the token that ends a document, where a sample has several; -1: none
  bool keep_length = false;        ///< the suffix loses three tokens, so that the length stays
};

namespace detail {

/// Throws `errc::argument`, with a sentence about the option that is wrong.
inline void check_fill_in_the_middle(const fill_in_the_middle_options& options) {
  if (!is_probability(options.rate))
    throw error(errc::argument, "fill_in_the_middle: rate is a probability, from 0 to 1");
  if (!is_probability(options.spm_rate))
    throw error(errc::argument, "fill_in_the_middle: spm_rate is a probability, from 0 to 1");
  if (options.prefix_token < 0 || options.middle_token < 0 || options.suffix_token < 0)
    throw error(errc::argument,
                "fill_in_the_middle: say which tokens mark the parts, as in .prefix_token = 1, "
                ".middle_token = 2, .suffix_token = 3");
}

}  // namespace detail

/// What `fill_in_the_middle` makes: a function for `map`.
class fill_in_the_middle_operation {
 public:
  using accepts_call = void;
  struct scratch {
    buffer tokens;
  };
  template <class>
  static constexpr bool uses_random = true;
  template <class V>
  using wrong_argument_for = mistakes::unless<token_sequence<V>, mistakes::no_token_sequence>;

  /// Throws `errc::argument`, see `fill_in_the_middle`.
  explicit fill_in_the_middle_operation(const fill_in_the_middle_options& options) : options_(options) {
    detail::check_fill_in_the_middle(options_);
  }

  template <token_sequence V>
  [[nodiscard]] auto operator()(V&& sequence, const call<scratch>& c) const {
    decltype(auto) finished_tokens = penstock::finish(sequence);
    const auto all = detail::sequence_numbers("fill_in_the_middle", finished_tokens);
    using T = typename decltype(all)::value_type;
    const marks<T> with = {token<T>(options_.prefix_token, "prefix_token"),
                           token<T>(options_.middle_token, "middle_token"),
                           token<T>(options_.suffix_token, "suffix_token")};
    const bool splits = options_.document_end >= 0;
    const T end = splits ? token<T>(options_.document_end, "document_end") : T{};
    const auto documents =
        1 + (splits ? static_cast<std::size_t>(std::count(all.begin(), all.end(), end)) : 0);
    const std::span<T> room = detail::token_room<T>(c.scratch.tokens, all.size() + 3 * documents);

    rng random = c.random();
    T* out = room.data();
    const T* at = all.data();
    const T* const last = at + all.size();
    for (std::size_t document = 0; document < documents; ++document) {
      const T* const stop = splits ? std::find(at, last, end) : last;
      out = rearrange<T>({at, stop}, with, random, out);
      if (stop != last) *out++ = end;
      at = stop == last ? last : stop + 1;
    }
    return std::span<const T>(room.data(), out);
  }

 private:
  template <class T>
  struct marks {
    T prefix, middle, suffix;
  };
  template <class T>
  [[nodiscard]] static T token(std::int64_t id, std::string_view option) {
    return detail::token_as<T>(id, "fill_in_the_middle", option);
  }

  /// Writes a document, rearranged or not; returns the end of what it wrote.
  template <class T>
  T* rearrange(std::span<const T> document, const marks<T>& with, rng& random, T* out) const {
    const auto put = [&out](std::span<const T> part) { out = std::copy(part.begin(), part.end(), out); };
    const std::size_t size = document.size();
    if (!random.chance(options_.rate) || size == 0) {
      put(document);
      return out;
    }
    const auto one = detail::to_size(random.below(size + 1)), other = detail::to_size(random.below(size + 1));
    const auto [first, second] = std::minmax({one, other});
    const bool suffix_first = random.chance(options_.spm_rate);
    const auto prefix = document.first(first), middle = document.subspan(first, second - first);
    auto suffix = document.subspan(second);
    if (options_.keep_length) {
      if (suffix.size() <= 3) {
        put(document);
        return out;
      }
      suffix = suffix.first(suffix.size() - 3);
    }
    *out++ = with.prefix;
    if (!suffix_first) put(prefix);
    *out++ = with.suffix;
    put(suffix);
    *out++ = with.middle;
    if (suffix_first) put(prefix);
    put(middle);
    return out;
  }

  fill_in_the_middle_options options_;
};

/// Rearranges documents so that a model learns to fill gaps: with probability `rate` a document is cut at two
/// places, each as likely as any other and before any token or behind the last, and its middle comes last. A
/// part may be empty.
///
///   prefix-suffix-middle   `<PRE> prefix <SUF> suffix <MID> middle`
///   suffix-prefix-middle   `<PRE> <SUF> suffix <MID> prefix middle`
///
/// In: a sequence of tokens of any type, which `map<"tokens">(...)` names in a record. Out: a view of the
/// rearranged tokens, in memory of the worker until they are written to their slot. With `document_end` each
/// part of a sample that such a token ends is a document of its own, with draws of its own; these tokens stay
/// where they are. Empty documents stay empty.
///
/// Lengths: a rearranged document has three tokens more, which only the draw tells: what counts lengths
/// before samples are read, such as `batch_by`, counts three more for each document, or takes `.keep_length =
/// true`.
/// Then the suffix loses its last three tokens, and a document whose suffix has not more than these stays as
/// it is. (Megatron-LM cuts off the end of the sample instead, where the middle is.)
///
/// Pointwise; draws random numbers, the same for any number of workers and after a restore. No allocation
/// once the memory has grown. Cost: one copy, and another one to the slot.
/// Throws `errc::argument` for rates that are no probabilities, tokens that are not given, and tokens that
/// the sequence's type cannot hold; `errc::shape`, for a sample, if it has several dimensions.
/// Source: Bavarian et al., "Efficient training of language models to fill in the middle", 2022, with cuts
/// between tokens; the second form is its variant 2, as in Megatron-LM.
///
///     auto code = map<"tokens">(fill_in_the_middle({.prefix_token = 1, .middle_token = 2, .suffix_token = 3}));
[[nodiscard]] inline fill_in_the_middle_operation fill_in_the_middle(
    const fill_in_the_middle_options& options) {
  return fill_in_the_middle_operation(options);
}

}  // namespace penstock::inline v0_1
