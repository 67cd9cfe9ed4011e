// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/sequence/token_sequence.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::inline v0_1 {

/// Options of `span_corruption`, with those of T5. T5 calls the first two `noise_density` and
/// `mean_noise_span_length`.
struct span_corruption_options {
  double rate = 0.15;               ///< the share of tokens that are taken out
  double mean_length = 3;           ///< of the spans that are taken out, in tokens
  std::int64_t sentinel = 32'099;   ///< in the place of the first span; `<extra_id_0>` of T5's vocabulary
  std::uint64_t sentinels = 100;    ///< how many there are, and so the most spans of a sample
  std::int64_t sentinel_step = -1;  ///< from one sentinel to the next; T5's go down
  std::int64_t end_token = 1;       ///< behind inputs and targets, `</s>`; -1: none
};

/// How many tokens a sample has, and how many of them are inputs and targets, with sentinels and ends.
struct span_corruption_lengths {
  std::uint64_t tokens = 0;
  std::uint64_t inputs = 0;
  std::uint64_t targets = 0;

  friend constexpr bool operator==(const span_corruption_lengths&, const span_corruption_lengths&) = default;
};

namespace detail {

/// What is taken out of a sample of this many tokens.
struct noise_of {
  std::uint64_t tokens = 0, spans = 0;
};
[[nodiscard]] noise_of noise_in(std::uint64_t tokens, const span_corruption_options& options);
[[nodiscard]] span_corruption_lengths lengths_of_corrupted(std::uint64_t tokens,
                                                           const span_corruption_options& options);
/// Throws `errc::argument`, with a sentence about the option that is wrong.
void check_span_corruption(const span_corruption_options& options);
[[noreturn, gnu::cold]] void refuse_spans(std::uint64_t spans, std::uint64_t tokens, std::uint64_t sentinels);

}  // namespace detail

/// The most tokens of a sample whose inputs are at most `inputs_length` long, and the lengths of its inputs
/// and targets. T5's function of this name: cut samples to so many tokens, and all batches have one shape.
///
/// As there, at a rate of a half the targets are not longer than the inputs. Throws `errc::argument` if the
/// inputs of no sample are so short, and for options that `span_corruption` refuses.
///
///     const auto lengths = compute_input_and_target_lengths(512);  // 568 tokens: 512 inputs, 114 targets
[[nodiscard]] span_corruption_lengths compute_input_and_target_lengths(
    std::uint64_t inputs_length, const span_corruption_options& options = {});

/// What `span_corruption` makes: a function for `map`.
template <class Tokens, class Inputs, class Targets>
class span_corruption_operation {
 public:
  using accepts_call = void;
  using makes_fields = void;
  struct scratch {
    buffer inputs, targets, cuts;
  };
  template <class>
  static constexpr bool uses_random = true;
  template <class V>
  using wrong_argument_for =
      decltype(detail::sequence_mistake<std::remove_cvref_t<V>, Tokens, Inputs, Targets>());

  /// Throws `errc::argument`, see `span_corruption`.
  explicit span_corruption_operation(const span_corruption_options& options) : options_(options) {
    detail::check_span_corruption(options_);
  }

  /// The lengths that a sample of this many tokens gets; they do not depend on random numbers.
  [[nodiscard]] span_corruption_lengths lengths(std::uint64_t tokens) const {
    return detail::lengths_of_corrupted(tokens, options_);
  }

  template <class V>
    requires(detail::is_right<wrong_argument_for<V>>)
  [[nodiscard]] auto operator()(V&& sample, const call<scratch>& c) const {
    decltype(auto) finished_tokens = penstock::finish(detail::sequence_in<Tokens>(sample));
    const auto all = detail::sequence_numbers("span_corruption", finished_tokens);
    using T = typename decltype(all)::value_type;
    const detail::noise_of noise = detail::noise_in(all.size(), options_);
    if (noise.spans > options_.sentinels) [[unlikely]]
      detail::refuse_spans(noise.spans, all.size(), options_.sentinels);
    const span_corruption_lengths sizes = lengths(all.size());
    const auto inputs = detail::token_room<T>(c.scratch.inputs, detail::to_size(sizes.inputs));
    const auto targets = detail::token_room<T>(c.scratch.targets, detail::to_size(sizes.targets));

    const auto taken = detail::to_size(noise.tokens);
    rng random = c.random();
    const std::span<char> cuts = detail::token_room<char>(c.scratch.cuts, all.size());
    std::fill(cuts.begin(), cuts.end(), char{0});
    const std::span<char> cuts_of_taken = cuts.first(taken), cuts_of_left = cuts.subspan(taken);
    cut_into(cuts_of_taken, noise.spans, random);
    cut_into(cuts_of_left, noise.spans, random);

    T *input = inputs.data(), *target = targets.data();
    const T* at = all.data();
    std::size_t next_taken = 0, next_left = 0;
    for (std::uint64_t span = 0; span < noise.spans; ++span) {
      const auto sentinel = this->template token<T>(
          options_.sentinel + static_cast<std::int64_t>(span) * options_.sentinel_step, "sentinel");
      const std::size_t end_left = end_of_part(cuts_of_left, next_left);
      input = std::copy(at, at + (end_left - next_left), input);
      at += end_left - std::exchange(next_left, end_left);
      const std::size_t end_taken = end_of_part(cuts_of_taken, next_taken);
      *input++ = *target++ = sentinel;
      target = std::copy(at, at + (end_taken - next_taken), target);
      at += end_taken - std::exchange(next_taken, end_taken);
    }
    input = std::copy(at, all.data() + all.size(), input);
    if (options_.end_token >= 0) *input = *target = this->template token<T>(options_.end_token, "end_token");
    return detail::with_fields<Tokens, basic_field<Inputs, std::span<const T>>,
                               basic_field<Targets, std::span<const T>>>(std::forward<V>(sample), inputs,
                                                                         targets);
  }

 private:
  template <class T>
  [[nodiscard]] static T token(std::int64_t id, std::string_view option) {
    return detail::token_as<T>(id, "span_corruption", option);
  }
  /// Marks the ends of all parts but the last, each choice of them as likely as any other.
  /// Source: Floyd's algorithm, in Bentley, "Programming pearls: a sample of brilliance", 1987.
  static void cut_into(std::span<char> cuts, std::uint64_t parts, rng& random) {
    if (parts == 0) return;
    for (std::size_t last = cuts.size() - detail::to_size(parts); last + 1 < cuts.size(); ++last) {
      const auto place = detail::to_size(random.below(last + 1));
      cuts[cuts[place] == 0 ? place : last] = 1;
    }
  }
  /// The end of the part that begins at this place.
  [[nodiscard]] static std::size_t end_of_part(std::span<const char> cuts, std::size_t begin) noexcept {
    const void* const cut = std::memchr(cuts.data() + begin, 1, cuts.size() - begin);
    return cut == nullptr ? cuts.size()
                          : static_cast<std::size_t>(static_cast<const char*>(cut) - cuts.data()) + 1;
  }

  span_corruption_options options_;
};

/// Takes spans out of a sequence, as T5 was trained: inputs have a sentinel in the place of each span,
/// targets have the sentinels, each with its span behind it. Both end with `end_token`.
///
///   tokens    `Thank you for inviting me to your party last week`
///   inputs    `Thank you <X> me to your party <Y> </s>`
///   targets   `<X> for inviting <Y> last week </s>`
///
/// In: a record, whose field of the first name is a sequence of tokens of any type; or a sequence alone. Out:
/// the record with the inputs in the place of the tokens, under the second name, and the targets behind the
/// other fields, under the third; of a sequence alone a record of these two. Both are in memory of the worker
/// until they are written to their slots.
///
/// How many tokens are taken out, in how many spans, follows from the number of tokens alone, so lengths are
/// known beforehand: `lengths(n)` of the function, and `compute_input_and_target_lengths`. Where the spans
/// are is random: tokens left and tokens taken out are cut into as many parts, each way to do so as likely as
/// any other, and the parts take turns; what is left comes first, so the last token is always taken out.
/// Samples of less than two tokens stay as they are.
///
/// Pointwise; draws random numbers, the same for any number of workers and after a restore. No allocation
/// once the memory has grown. Cost: one copy, two random numbers for each span, and the copies to the slots.
/// Throws `errc::argument` for options that make no sense, and for tokens that the sequence's type cannot
/// hold;
/// `errc::limit`, for a sample, if it has more spans than there are sentinels; `errc::shape` if it has
/// several dimensions.
/// Source: Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text
/// transformer", 2020; `random_spans_noise_mask` of T5's preprocessors, with the limits that Hugging Face's
/// FlaxDataCollatorForT5MLM adds.
///
///     auto t5 = map(span_corruption<"tokens">());                   // fields "inputs" and "targets"
template <fixed_string Tokens = "tokens", fixed_string Inputs = "inputs", fixed_string Targets = "targets">
[[nodiscard]] auto span_corruption(const span_corruption_options& options = {}) {
  return span_corruption_operation<name_of<Tokens>, name_of<Inputs>, name_of<Targets>>(options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/sequence/span_corruption.ipp>
#endif
