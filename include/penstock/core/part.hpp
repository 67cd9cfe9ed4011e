// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

/// The kinds of parts of a pipeline. A type becomes a part by naming its kind: `using penstock_part =
/// pointwise_tag;`. There is no base class, so empty parts stay empty however deeply they are nested.
namespace penstock::inline v0_1 {

struct source_tag {};     ///< a dataset (see source/concepts.hpp)
struct pointwise_tag {};  ///< computes a value from a value: `apply(value, call) const`
struct filter_tag {};     ///< keeps or drops values: `keep(value, call) const -> bool`
struct flat_map_tag {};   ///< makes several values from one: `expand(value, call, sink) const`, `output<In>`
struct sample_cache_tag {};  ///< keeps values in memory: `limit`, see `keep_in_memory`
struct order_tag {};         ///< computes the next positions arithmetically: `make(order_input) const`
struct cursor_tag {};        ///< draws the next positions from a cursor with state (`shuffle_buffer`)
struct shard_tag {};         ///< records the world
struct pack_tag {};          ///< puts several samples into each row of a batch: see `pack`
struct row_tag {};           ///< which rank gets which rows, or which part of them
struct batch_tag {};         ///< cuts batches and collates
struct batch_map_tag {};     ///< works on whole batches: `function`, see `map_batch`
struct device_tag {};        ///< where batches end up
struct device_map_tag {};    ///< works on batches where they end up: `operations`, see `on_device`
struct annotation_tag {};    ///< how to run; does not change the sequence
struct steps_tag {};         ///< fixes the number of batches per epoch
struct require_tag {};       ///< asks for a guarantee
struct segment_tag {};       ///< stages joined without a source
struct plan_tag {};          ///< a source with stages
struct poison_tag {};        ///< the result of a wrong expression

struct bad_samples_tag {};  ///< what happens to samples that cannot be made

/// A source, a stage, or joined stages: a type that names its kind in `penstock_part`.
template <class T>
concept part = requires { typename std::remove_cvref_t<T>::penstock_part; };

namespace detail {
template <class T>
struct part_kind : std::type_identity<void> {};
template <part T>
struct part_kind<T> : std::type_identity<typename std::remove_cvref_t<T>::penstock_part> {};
}  // namespace detail

/// A part of the kind that `Tag` names.
template <class T, class Tag>
concept part_of_kind = std::same_as<typename detail::part_kind<T>::type, Tag>;

/// A part that can appear to the right of `|`.
template <class T>
concept stage = part<T> && !part_of_kind<T, source_tag> && !part_of_kind<T, plan_tag> &&
                !part_of_kind<T, poison_tag> && !part_of_kind<T, segment_tag>;

/// Whether a stage works on values, in the workers.
template <class T>
concept value_stage = part_of_kind<T, pointwise_tag> || part_of_kind<T, filter_tag> ||
                      part_of_kind<T, flat_map_tag> || part_of_kind<T, sample_cache_tag>;

// Optional members of a part, each with the concept that detects it.

/// A device stage whose device can be given work: `static constexpr bool computes = true`.
template <class T>
concept computing_part =
    part_of_kind<T, device_tag> && requires { requires bool(std::remove_cvref_t<T>::computes); };

/// A part with a name: `static constexpr std::string_view stage_name`.
template <class T>
concept named_part = part<T> && requires {
  { std::remove_cvref_t<T>::stage_name } -> std::convertible_to<std::string_view>;
};

/// A part that describes itself with its options: `describe() const`.
template <class T>
concept described_part = part<T> && requires(const std::remove_cvref_t<T>& s) {
  { s.describe() } -> std::convertible_to<std::string>;
};

/// An annotation or order stage that seeds the random stages of its plan: `plan_seed() const`. `seed(n)`
/// takes precedence over an order; among several orders, the first one decides.
template <class T>
concept seeding_part = part<T> && requires(const std::remove_cvref_t<T>& s) {
  { s.plan_seed() } -> std::same_as<std::uint64_t>;
};

/// An annotation that sets the seed, like `seed(n)`. It may also appear inside `mix`, `zip` and `concat`.
template <class T>
concept seed_annotation = part_of_kind<T, annotation_tag> && seeding_part<T>;

/// A source that knows its number of samples: `size() const`. A source without it is read forward.
template <class T>
concept sized_part = part<T> && requires(const T& s) { s.size(); };

/// A source whose samples are numbered differently in each epoch: `static constexpr bool renumbers = true`.
template <class T>
concept renumbering_part = part<T> && requires { requires T::renumbers; };

/// A source or stage that gives different samples, or a different order, in each epoch: `static constexpr
/// bool varies_by_epoch = true`. Looping over a plan that has one is a mistake: see `plan::begin`.
template <class T>
concept varying_part = part<T> && requires { requires std::remove_cvref_t<T>::varies_by_epoch; };

/// A value stage whose values depend on where a sample stands in the order, so that they may be others in the
/// next epoch: `static constexpr bool tells_position = true`.
template <class T>
concept positional_part = part<T> && requires { requires bool(std::remove_cvref_t<T>::tells_position); };

/// A source or stage whose samples take far longer to make than their bytes say, as images do: `static
/// constexpr bool one_at_a_time = true`. Workers take such samples one by one.
template <class T>
concept lone_part = part<T> && requires { requires bool(std::remove_cvref_t<T>::one_at_a_time); };

/// A value stage that only chooses among the fields that arrive: `static constexpr bool only_chooses = true`.
template <class T>
concept choosing_part = part<T> && requires { requires bool(std::remove_cvref_t<T>::only_chooses); };

/// A source that is read forward and can seek to a position: `static constexpr bool seekable = true`.
template <class T>
concept seekable_part = part<T> && requires { requires T::seekable; };

/// An order stage that can also work on samples as they arrive: `static constexpr bool works_forward =
/// true`.
template <class T>
concept forward_order =
    part_of_kind<T, order_tag> && requires { requires std::remove_cvref_t<T>::works_forward; };

/// A stage whose batches have no fixed number of samples, so that epochs may differ in their number of
/// steps: `static constexpr bool uneven_steps = true`.
template <class T>
concept uneven_batch =
    part_of_kind<T, batch_tag> && requires { requires std::remove_cvref_t<T>::uneven_steps; };

/// A `pack` stage that packs samples as they come, rather than by lengths that are known before: `static
/// constexpr bool packs_online = true`.
template <class T>
concept online_pack =
    part_of_kind<T, pack_tag> && requires { requires bool(std::remove_cvref_t<T>::packs_online); };

/// An order stage that only counts and does not need to know the size: `static constexpr bool counts_only =
/// true`.
template <class T>
concept counting_order =
    part_of_kind<T, order_tag> && requires { requires std::remove_cvref_t<T>::counts_only; };

/// An order stage that is meant for whole batches and may follow `batch`: `static constexpr bool
/// works_on_batches = true`. Those that only count may follow it too.
template <class T>
concept batch_order =
    part_of_kind<T, order_tag> && requires { requires std::remove_cvref_t<T>::works_on_batches; };

/// A value stage that draws random numbers for this element: `template <class Element> static constexpr bool
/// uses_random = true`. It gets a stream of its own.
template <class T, class Element>
concept stage_uses_random = value_stage<T> && requires { requires T::template uses_random<Element>; };

/// A value stage whose random stream may have an address: `stream_address() const`, which returns 0 for
/// none.
template <class T>
concept addressed_stage = value_stage<T> && requires(const T& s) {
  { s.stream_address() } -> std::same_as<std::uint64_t>;
};

}  // namespace penstock::inline v0_1
