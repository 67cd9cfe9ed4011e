// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/bucket_rule.hpp>
#include <penstock/stage/batch_by.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct bucket_by_without_positions : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: bucket_by cuts an epoch before samples are read, and after filter, unbatch, "
                  "shuffle_buffer or a source that is read forward it is unknown which samples come; choose "
                  "samples with subset and mix them with shuffle, or write batch(n)");
  }
};

struct bucket_by_without_numbers : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: bucket_by looks up lengths by sample number, and the numbers of mix, or of joined sources "
        "with orders, change from epoch to epoch; write batch(n)");
  }
};

}  // namespace mistakes

/// Cuts the sequence into batches of samples of similar length, and collates each field as `batch` does. Made
/// by `bucket_by(length, buckets, limits, options...)`; `global_bucket_by(...)` gives the limits over all
/// ranks.
///
/// `length` is what `batch_by` takes: values of all samples, as a `derived_index`, or a function of a
/// sample's number, callable when const from any thread; an unsigned number. `buckets` are upper edges, as
/// `{128, 256, 512}`, which make one bucket more than there are edges, or how many buckets there are, see
/// `bucket_edges`. Or the keys are sizes, and `buckets` puts them into buckets, see `bucketing`: those of
/// images by `aspect_buckets`.
///
/// Every batch is of one bucket, and all ranks have the same bucket in each step, so that none waits for one
/// with longer samples. A rank's batch has at most `max_samples` samples, and at most `max_tokens` tokens
/// with padding: the number of samples times the longest of the step, whatever the collate policy
/// (`max_duration`, where lengths are durations in milliseconds: `{.max_duration = 600s}`). A step has
/// as many samples of its bucket as fit, in the order of the epoch; they are divided among the ranks evenly,
/// with one more on the first ranks.
///
/// The order of steps is random, keyed by seed and epoch: those that are full are permuted in windows of
/// `window`, in the order in which they become full, so that after `shuffle(seed(7), window(w))` a run still
/// reads from a few shards at a time. Whatever is left in the buckets makes the last steps, one for each
/// bucket; there `tail::keep` may give a rank an empty batch, and `tail::drop` leaves these steps out.
///
/// Ranks: `bucket_by` has limits for each rank, so steps depend on the number of ranks, and a state of
/// another one is refused. `global_bucket_by` has limits over all ranks: its steps are the same on any
/// number, and a run resumes at every step on any other. Of a step with fewer samples than ranks, the last
/// ranks get an empty batch.
///
/// To find steps, a run makes one pass over the positions of an epoch, which looks up the length of each and
/// reads no sample: when it first needs a batch of that epoch, in the requesting thread; stopping the run
/// ends the pass. If edges must be found, the first one is preceded by a pass over the lengths: all of them
/// if they are values, 2^20 of them if `length` is a function. A byte per position and 16 per step; the
/// sample path is that of `batch`. Epochs may have different numbers of steps, so `take`, `skip`, `repeat`
/// and `steps(n)`
/// cannot follow it.
/// Kind: batch. Keeps all five guarantees; of `bucket_by`, as of `batch(n)`, `elastic` means that any rank's
/// state serves all ranks. The library cannot see what `length`
/// computes; a state therefore also records how many samples it stands after, and is refused if no step
/// starts there.
/// Bad samples: a substitute of `bad_samples::replace` may be of another bucket, and the batch may then
/// exceed the limits.
/// Options: those of `batch`, except `tail::pad`; with `pad_to_multiple<n>`, for all fields or for one,
/// tokens are counted with lengths rounded up. Throws `error(errc::argument)` if both limits are 0, for an
/// epoch of 2^40 or more positions, and for a sample that no batch holds: when you open the plan, or, if the
/// sample is only in a later epoch, in place of its first step. What `length` throws is thrown there too; an
/// `error`
/// gets the sample's position and number.
///
/// The buckets are Lhotse's and tf.data's: edges of equal sums as in Lhotse's `estimate_duration_buckets`,
/// but from all lengths, and a length that equals an edge belongs below it.
///
///     auto texts = samples | decode<field<"txt", text>>;
///     auto length = derive(
///         texts, "length", [](const auto& s) { return std::uint64_t{get<"txt">(s).size()}; }, "derived");
///     auto loader = texts | shuffle(seed(7)) | shard(rank, world_size) |
///                   bucket_by(length, 30, {.max_tokens = 16'384}, pad_to_multiple<64>);
template <class Rule, class... Policies>
struct bucket_by_stage : detail::cutting_by_rule<Rule, Policies...> {
  static constexpr std::string_view stage_name = "bucket_by";
  static constexpr bool varies_by_epoch = true;  // the order of steps

  void fingerprint(auto& h) const {
    h.add(stage_name);
    this->rule.fingerprint(h);
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.decided || Context::facts.forward || Context::facts.cursor)
      return mistakes::bucket_by_without_positions{};
    else if constexpr (Context::facts.renumbers)
      return mistakes::bucket_by_without_numbers{};
    else
      return detail::collating<Policies...>::template diagnose<Context>();
  }
};

namespace detail {

template <class Sizes>
auto size_from(const Sizes& sizes) {
  return costs<Sizes>{sizes}(0);
}
/// Whether these sizes can be put into these buckets.
template <class Sizes, class Buckets>
concept sized_by = (sample_values<Sizes> || std::invocable<const Sizes&, std::uint64_t>)&&  //
    bucketing<Buckets, decltype(size_from(std::declval<const Sizes&>()))>;

/// `max_duration` as a number of tokens.
[[nodiscard]] inline std::uint64_t tokens_in_duration(const bucket_options& limits) {
  if (limits.max_duration.count() < 0 || limits.max_tokens.changes() || limits.max_tokens.fixed() != 0)
    throw error(errc::argument, limits.max_duration.count() < 0
                                    ? "the max_duration of bucket_by is negative"
                                    : "bucket_by has max_tokens and max_duration; write one of both")
        .in_stage("bucket_by");
  return static_cast<std::uint64_t>(limits.max_duration.count());
}

template <bool Global, class Keys, class... Options>
[[nodiscard]] auto build_bucket_by(Keys keys, bucket_options limits, Options... options) {
  check_batch_options<Options...>();
  if (limits.max_duration.count() != 0) limits.max_tokens = tokens_in_duration(limits);
  return build_batch(batch_by_builder<bucket_by_stage, bucket_rule<Keys, Global>>{{std::move(keys), limits}},
                     options...);
}
template <bool Global, class Length, class... Options>
[[nodiscard]] auto bucket_by_length(Length length, bucket_edges buckets, const bucket_options& limits,
                                    Options... options) {
  static_assert(gives_costs<Length>(),
                "penstock: bucket_by's length is a function that can be called when const with the number of "
                "a sample, a std::uint64_t, or values for every sample, and returns an unsigned number");
  return build_bucket_by<Global>(length_keys<Length>({std::move(length)}, std::move(buckets)), limits,
                                 options...);
}

}  // namespace detail

/// Cuts batches of one bucket each; see `bucket_by_stage`.
template <class Length, class... Options>
[[nodiscard]] auto bucket_by(Length length, bucket_edges buckets, const bucket_options& limits,
                             Options... options) {
  return detail::bucket_by_length<false>(std::move(length), std::move(buckets), limits, options...);
}
/// By the sizes of samples.
template <class Sizes, class Buckets, class... Options>
  requires detail::sized_by<Sizes, Buckets>
[[nodiscard]] auto bucket_by(Sizes sizes, Buckets buckets, const bucket_options& limits, Options... options) {
  return detail::build_bucket_by<false>(
      detail::size_keys<Sizes, Buckets>({std::move(sizes)}, std::move(buckets)), limits, options...);
}

/// As `bucket_by`, with limits over all ranks, on any number of which the steps are the same.
template <class Length, class... Options>
[[nodiscard]] auto global_bucket_by(Length length, bucket_edges buckets, const bucket_options& limits,
                                    Options... options) {
  return detail::bucket_by_length<true>(std::move(length), std::move(buckets), limits, options...);
}
template <class Sizes, class Buckets, class... Options>
  requires detail::sized_by<Sizes, Buckets>
[[nodiscard]] auto global_bucket_by(Sizes sizes, Buckets buckets, const bucket_options& limits,
                                    Options... options) {
  return detail::build_bucket_by<true>(
      detail::size_keys<Sizes, Buckets>({std::move(sizes)}, std::move(buckets)), limits, options...);
}

/// Any other arguments are a mistake, which gets a sentence.
template <class... Given>
  requires(sizeof...(Given) < 3)
[[nodiscard]] auto bucket_by(Given...) {
  static_assert(
      sizeof...(Given) > 2,
      "penstock: write bucket_by(length, buckets, limits), as in bucket_by(length, 30, {.max_tokens = "
      "16'384}) or bucket_by(length, {128, 256, 512}, {.max_samples = 32})");
  return batch(1);  // so that this is the only error
}
template <class Length, class Buckets, class Limits, class... Options>
  requires(!std::convertible_to<Limits, bucket_options>)
[[nodiscard]] auto bucket_by(Length, Buckets, Limits, Options...) {
  static_assert(never<Length>,
                "penstock: the third argument of bucket_by says what its limits are; write {.max_tokens = "
                "16'384}, {.max_samples = 32} or both");
  return batch(1);
}
template <class Sizes, class Buckets, class... Options>
  requires(!std::convertible_to<Buckets, bucket_edges> && !detail::sized_by<Sizes, Buckets>)
[[nodiscard]] auto bucket_by(Sizes, Buckets, const bucket_options&, Options...) {
  static_assert(never<Sizes>,
                "penstock: the second argument of bucket_by says what its buckets are: their number, their "
                "upper edges, least_padding(n), or a bucketing of what the first argument gives, as "
                "aspect_buckets is one of image_size and of packed_size");
  return batch(1);
}

}  // namespace penstock::inline v0_1
