// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

/// What a part of a pipeline is. A type becomes a part by naming its kind: `using penstock_part =
/// pointwise_tag;`. There is no base class, so that empty parts stay empty however deep they are nested.
namespace penstock::inline v0_1 {

struct source_tag {};      ///< a dataset (see source/concepts.hpp)
struct pointwise_tag {};   ///< value from value: `apply(value, call) const`
struct decider_tag {};     ///< chooses from values: `keep(value, call) const -> bool`
struct expander_tag {};    ///< several values from one: `expand(value, call, sink) const`, `output<In>`
struct order_tag {};       ///< which positions come next, by arithmetic: `make(order_input) const`
struct cursor_tag {};      ///< which positions come next, by a cursor with a state (`shuffle_buffer`)
struct shard_tag {};       ///< records the world
struct batch_tag {};       ///< cuts batches and collates
struct device_tag {};      ///< where batches end up
struct annotation_tag {};  ///< how to run; changes nothing in the sequence
struct steps_tag {};       ///< fixes the number of batches of an epoch
struct require_tag {};     ///< asks for a guarantee
struct segment_tag {};     ///< stages joined without a source
struct plan_tag {};        ///< a source with stages
struct poison_tag {};      ///< what a wrong expression yields

struct bad_samples_tag {};  ///< what becomes of samples that cannot be made

/// A source, a stage, or stages joined: what names its kind in `penstock_part`.
template <class T>
concept part = requires { typename std::remove_cvref_t<T>::penstock_part; };

namespace detail {
template <class T>
struct part_kind {
  using type = void;
};
template <part T>
struct part_kind<T> {
  using type = typename std::remove_cvref_t<T>::penstock_part;
};
}  // namespace detail

/// A part of the kind that a tag names.
template <class T, class Tag>
concept part_of_kind = std::same_as<typename detail::part_kind<T>::type, Tag>;

/// What is not a source and can stand to the right of `|`.
template <class T>
concept stage = part<T> && !part_of_kind<T, source_tag> && !part_of_kind<T, plan_tag> &&
                !part_of_kind<T, poison_tag> && !part_of_kind<T, segment_tag>;

/// Whether a stage works on values, in the workers.
template <class T>
concept value_stage =
    part_of_kind<T, pointwise_tag> || part_of_kind<T, decider_tag> || part_of_kind<T, expander_tag>;

}  // namespace penstock::inline v0_1
