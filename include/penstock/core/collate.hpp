// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/record.hpp>

#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {
struct policy {
  using policy_tag = void;
};
template <class T>
inline constexpr bool is_policy = requires { typename T::policy_tag; };
}  // namespace detail

/// How `batch` combines the values of one field.
///   stack            equal shapes, one array with a new first dimension; other shapes are errors at their position
///   pad_to_longest   arrays zero-padded along their first dimension to the longest in the batch, with a mask
///   pad_to_multiple<n>   as pad_to_longest, but the length is rounded up to a multiple of n
///   pad_to_largest   arrays padded along every dimension to the largest in the batch, with their shapes
///   ragged           all values one after another, with offsets
///   channels_first   as stack, but (height, width, channels) pictures are stored (channels, height, width)
///   pitched<bytes>   as stack, but each row starts at a multiple of that many bytes; a `strided_view`
struct stack_policy : detail::policy {};
/// Pads a field's values with zeros to the longest of the batch: a `padded_view`.
struct pad_policy : detail::policy {};
/// Pads a field's values with zeros to the longest of the batch, rounded up to a multiple: a `padded_view`.
template <std::size_t Multiple>
struct pad_multiple_policy : detail::policy {
  static_assert(Multiple != 0 && Multiple <= std::size_t{1} << 31,
                "penstock: pad_to_multiple<n> needs an n from 1 to 2^31, such as 8 or 64");
};
/// Stores a field's values one after another, with their offsets: a `ragged_view`.
struct ragged_policy : detail::policy {};
/// Stacks a field's (height, width, channels) values as (channels, height, width).
struct channels_first_policy : detail::policy {};
/// Stacks a field's values and starts each row at a multiple of `Alignment` bytes: a `strided_view`.
template <std::size_t Alignment>
struct pitched_policy : detail::policy {
  static_assert(Alignment != 0 && (Alignment & (Alignment - 1)) == 0 && Alignment <= 65'536,
                "penstock: pitched<bytes> needs a power of two up to 65536: the row alignment that a device "
                "wants, such as 256");
};

/// Puts a field's values into the rows that `pack` made: a `packed_view`. It is the policy of the fields that
/// `pack` names; the `First` of them gets `.pad` in padding, and others 0.
template <bool First = true>
struct packed_policy : detail::policy {};
/// The same where `pack` has no lengths: values are kept until a window of samples is there.
template <bool First = true>
struct online_packed_policy : detail::policy {};

/// Pads a field's values along every dimension to the largest of the batch: a `padded_arrays_view`. `Fill` is
/// the value beside them; `Order` arranges them in their slots, as `stack_policy` or `channels_first_policy`.
template <auto Fill = 0, class Order = stack_policy>
struct pad_all_policy : detail::policy {
  static constexpr auto fill = Fill;
  /// `pad_to_largest(channels_first)`: values of (height, width, channels) are stored (channels, height,
  /// width).
  [[nodiscard]] constexpr auto operator()(channels_first_policy) const {
    return pad_all_policy<Fill, channels_first_policy>{};
  }
};

/// An option of `batch`: all shapes must be equal. This is the default.
inline constexpr stack_policy stack{};
/// An option of `batch`: pads each batch to its longest value.
inline constexpr pad_policy pad_to_longest{};
/// An option of `batch`: pads each batch to its longest value, rounded up to a multiple of `Multiple`, as
/// `pad_to_multiple_of` of Hugging Face's collators: there are fewer different lengths, and they suit the
/// device.
template <std::size_t Multiple>
inline constexpr pad_multiple_policy<Multiple> pad_to_multiple{};
/// An option of `batch`: pads arrays such as images of unequal sizes to the largest of their batch, along
/// every dimension that differs: each value is at the corner whose indexes are 0, and zeros fill the rest.
/// All values have equally many dimensions. `pad_to_largest(channels_first)` transposes images of (height,
/// width, channels) too. In a batch of records, fields whose shape is part of their type are stacked.
///
/// The largest is known when all samples of a batch are there: until then values are put aside, and the
/// worker that writes the last one copies all of them to one dense block.
inline constexpr pad_all_policy<> pad_to_largest{};
/// An option of `batch`: `pad_to_largest` with another value than 0 beside the arrays. Slots without a sample
/// are zeros nevertheless.
template <auto Fill>
inline constexpr pad_all_policy<Fill> pad_to_largest_with{};
/// An option of `batch`: values of any length, stored with their offsets.
inline constexpr ragged_policy ragged{};

/// An option of `batch`: all shapes must be equal and have three dimensions, the last of which, the channels,
/// comes first in the slot. Values are transposed as they are written to the slot, and the column is dense.
inline constexpr channels_first_policy channels_first{};
/// An option of `batch`: all shapes must be equal. Each row (the elements along the last dimension) starts at
/// a multiple of `Alignment` bytes and of the element size, counted from the start of a block's memory, which
/// is 64-byte aligned. Several small batches may share a block: then only the first starts there, and the
/// others start wherever a row may. The gaps are zero.
template <std::size_t Alignment>
inline constexpr pitched_policy<Alignment> pitched{};

/// A policy for one field: `batch(64, collate<"txt">(ragged))`.
template <class Name, class Policy>
struct field_policy {};

/// An option of `batch`: the policy of one field, `collate<"text">(ragged)`.
template <fixed_string Name, class Policy>
[[nodiscard]] constexpr auto collate(Policy) {
  return field_policy<name_of<Name>, Policy>{};
}

namespace detail {

template <class Policy>
inline constexpr bool pads_all = false;
template <auto Fill, class Order>
inline constexpr bool pads_all<pad_all_policy<Fill, Order>> = true;
/// What the padded length is a multiple of, for a policy that pads the first dimension; otherwise 0.
template <class Policy>
inline constexpr std::size_t padding_multiple = std::is_same_v<Policy, pad_policy> ? 1 : 0;
template <std::size_t Multiple>
inline constexpr std::size_t padding_multiple<pad_multiple_policy<Multiple>> = Multiple;
template <class Name, class Policy>
inline constexpr std::size_t padding_multiple<field_policy<Name, Policy>> = padding_multiple<Policy>;
/// Whether a policy, or that of one field, pads values to those of their batch.
template <class Policy>
inline constexpr bool pads = pads_all<Policy> || padding_multiple<Policy> != 0;
template <class Name, class Policy>
inline constexpr bool pads<field_policy<Name, Policy>> = pads<Policy>;
/// Whether a policy puts values into the rows of `pack`.
template <class Policy>
inline constexpr bool lays_into_rows = false;
template <bool First>
inline constexpr bool lays_into_rows<packed_policy<First>> = true;
template <bool First>
inline constexpr bool lays_into_rows<online_packed_policy<First>> = true;
/// The policy that arranges single values.
template <class Policy>
struct arranging : std::type_identity<Policy> {};
template <auto Fill, class Order>
struct arranging<pad_all_policy<Fill, Order>> : std::type_identity<Order> {};
template <class Policy>
using order_of = typename arranging<Policy>::type;
/// Whether numbers of type `T` have the value that a policy fills with.
template <class Policy, class T>
inline constexpr bool fill_fits = true;
template <auto Fill, class Order, class T>
inline constexpr bool fill_fits<pad_all_policy<Fill, Order>, T> = [] {
  if constexpr (Fill == 0)
    return true;
  else if constexpr (requires { static_cast<decltype(Fill)>(static_cast<T>(Fill)); })
    return static_cast<decltype(Fill)>(static_cast<T>(Fill)) == Fill;
  else
    return false;
}();

template <class Policy>
inline constexpr bool has_gaps = false;
template <std::size_t Alignment>
inline constexpr bool has_gaps<pitched_policy<Alignment>> = true;
/// The alignment of the column's rows, in bytes.
template <class Policy>
inline constexpr std::size_t pitch_of = 0;
template <std::size_t Alignment>
inline constexpr std::size_t pitch_of<pitched_policy<Alignment>> = Alignment;
/// Whether values are stored in their slots other than row-major and dense.
template <class Policy>
inline constexpr bool arranges = has_gaps<Policy> || std::is_same_v<Policy, channels_first_policy>;
/// Whether values of equal shapes are stacked along a new leading dimension.
template <class Policy>
inline constexpr bool stacks = arranges<Policy> || std::is_same_v<Policy, stack_policy>;
/// Whether the policy accepts values of this rank; a rank of -1 is known only at run time.
template <class Policy>
[[nodiscard]] constexpr bool takes_rank(int rank) noexcept {
  if constexpr (has_gaps<Policy>) return rank != 0;
  if constexpr (arranges<order_of<Policy>>) return rank == 3 || rank == -1;
  return true;
}

template <class Name, class... Policies>
struct own_policy : std::type_identity<void> {};
template <class Name, class First, class... Rest>
struct own_policy<Name, First, Rest...> : own_policy<Name, Rest...> {};
template <class Name, class Policy, class... Rest>
struct own_policy<Name, field_policy<Name, Policy>, Rest...> : std::type_identity<Policy> {};

template <class... Policies>
struct common_policy : std::type_identity<stack_policy> {};
template <class First, class... Rest>
struct common_policy<First, Rest...> : common_policy<Rest...> {};
template <class First, class... Rest>
  requires is_policy<First>
struct common_policy<First, Rest...> : std::type_identity<First> {};

/// Whether a policy was chosen for a field, by name or for all.
template <class Name, class... Policies>
inline constexpr bool is_chosen =
    !std::is_void_v<typename own_policy<Name, Policies...>::type> || (is_policy<Policies> || ...);

/// The policy that applies to a field: its own, else the one given for all fields, else stack.
template <class Name, class... Policies>
struct policy_for {
  using own = typename own_policy<Name, Policies...>::type;
  using type = std::conditional_t<std::is_void_v<own>, typename common_policy<Policies...>::type, own>;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
