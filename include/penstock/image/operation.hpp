// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/image/lazy_image.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct operation_wants_image : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on images and gets something else; decode them first, as in "
        "decode<field<\"jpg\", jpeg>>, and name their field, as in map<\"jpg\">(resize(256))");
  }
};
struct operation_on_sound : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on images and gets a sound; those of sounds take seconds, with a "
        "fraction or as a duration, as in random_crop(5.0), random_crop(5s) and crop(1.5, 5.0)");
  }
};
struct operation_before_clip : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on images and gets a film; choose frames of it first, as in "
        "map<\"mp4\">(clip(16), resize(256))");
  }
};
struct operation_wants_bytes : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on images of 8 bits and gets other numbers; write it before "
        "to_float, normalize and to_half");
  }
};
struct operation_after_to_chw : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on images and comes after to_chw, which makes an array; write "
        "to_chw last");
  }
};

}  // namespace mistakes

/// An image of bytes: of 8-bit values.
template <class I>
concept byte_image = lazy_image<I> && std::same_as<typename std::remove_cvref_t<I>::value_type, std::uint8_t>;

/// An array that was an image until `to_chw`.
template <class V>
concept channels_first_array = requires { typename std::remove_cvref_t<V>::is_channels_first_array; };

namespace detail {

template <class V>
struct image_mistake : std::type_identity<mistakes::operation_wants_image> {};
template <channels_first_array V>
struct image_mistake<V> : std::type_identity<mistakes::operation_after_to_chw> {};
template <class V>
  requires requires { typename std::remove_cvref_t<V>::is_lazy_sound; }
struct image_mistake<V> : std::type_identity<mistakes::operation_on_sound> {};

template <class V>
  requires requires { typename std::remove_cvref_t<V>::is_lazy_film; }
struct image_mistake<V> : std::type_identity<mistakes::operation_before_clip> {};

template <class V>
struct byte_image_mistake : image_mistake<V> {};
template <lazy_image V>
struct byte_image_mistake<V> : std::type_identity<mistakes::operation_wants_bytes> {};

}  // namespace detail

/// The base of operations on images: functions for `map` that wrap a lazy image in another, and have a
/// scratch per worker. An operation has `operator()(const I& image, const call<image_scratch>& c) const` for
/// a `lazy_image` I. One that draws random numbers, from `c.random()`, also has
/// `template <class> static constexpr bool uses_random = true;`.
///
/// For a `map` of several fields it also says what becomes of the places in an image. One that leaves them
/// where they are has `using keeps_places = void;`. One that moves them has `using moves_places = void;`, and
/// a member `template <class Places> void follow(Places& places, rng& random) const` that calls the members
/// of an `image_geometry` as the operation does with the pixels. If it interpolates or fills, it has
/// `for_mask(const pixel_fill& fill) const`, which returns an operation for masks: the same one, but with
/// `interpolation::nearest`, and this fill.
///
/// It costs nothing by itself: the image that it returns does the work when it is written to its place in
/// the batch. Pointwise; the same pixels for any number of workers, and after a restore.
struct image_operation {
  using accepts_call = void;
  using scratch = image_scratch;
  /// The mistake of calling it with a `V`.
  template <class V>
  using wrong_argument_for = typename detail::image_mistake<V>::type;
};

/// The base of operations on images of bytes: its `operator()` takes a `byte_image`.
struct byte_operation : image_operation {
  template <class V>
  using wrong_argument_for = typename detail::byte_image_mistake<V>::type;
};

namespace detail {

enum class draws { nothing, random_numbers };

/// What an operation says of itself, see `image_operation`: whether the places in an image stay where they
/// are, and what it draws.
template <class Operation, draws Drawn = draws::nothing>
struct keeping_places : Operation {
  using keeps_places = void;
  template <class>
  static constexpr bool uses_random = Drawn == draws::random_numbers;
};
template <class Operation, draws Drawn = draws::nothing>
struct moving_places : Operation {
  using moves_places = void;
  template <class>
  static constexpr bool uses_random = Drawn == draws::random_numbers;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
