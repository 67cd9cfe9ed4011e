// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mapped_field.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/image/geometry.hpp>
#include <penstock/image/padded.hpp>

/// Fields that go with an image in a `map` of several fields: masks, boxes and key points.
namespace penstock::inline v0_1 {

namespace mistakes {

struct places_of_other : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: as_boxes and as_points are for fields of numbers, such as arrays of shape "
                  "(n, 4) and (n, 2), and the field is none; decode or map it first");
  }
};

struct mask_of_many_bits : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: a mask that is resized has 8 bits, and this one has other numbers; decode it with "
        "png_as<gray8>");
  }
};

}  // namespace mistakes

namespace detail {

struct leave_value {
  using accepts_call = void;
  struct scratch {};
  template <class V>
  [[nodiscard]] constexpr std::remove_cvref_t<V> operator()(V&& value, const call<scratch>&) const {
    return std::forward<V>(value);
  }
};

/// Numbers in a row: finished arrays, views, lists.
template <class V>
concept row_of_numbers =
    requires(const V& v) {
      requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*v.data())>>;
      v.size();
    } && !std::is_same_v<std::remove_cvref_t<decltype(*std::declval<const V&>().data())>, char> &&
    !tells_strides<V>;

/// `has` is a shape, or a count.
[[noreturn, gnu::cold]] inline void refuse_places(std::size_t per_place, std::string_view name,
                                                  std::string_view has, bool split) {
  const bool boxes = per_place == 4;
  const std::string_view what = boxes ? "boxes have shape (n, 4)" : "points have shape (n, 2)";
  const std::string_view instead = !split  ? "; reshape it first"
                                   : boxes ? "; split off the others first, such as a class"
                                           : "; split off the others first, such as the visibility";
  throw error(errc::shape, {what, ", and '", name, "' has ", has, instead});
}
/// Refuses an array that is no row of places, such as boxes of five numbers.
template <std::size_t PerPlace, class V>
void check_places(const V& given, std::string_view name) {
  if constexpr (requires { given.shape(); }) {
    const extents& shape = given.shape();
    if (shape.rank() >= 2) {
      if (const std::uint64_t last = shape[shape.rank() - 1]; last != PerPlace) [[unlikely]]
        refuse_places(PerPlace, name, to_string(shape), last > PerPlace);
      return;
    }
  }
  if (static_cast<std::size_t>(given.size()) % PerPlace != 0) [[unlikely]]
    refuse_places(PerPlace, name, text({given.size(), " numbers"}), true);
}

template <class V>
inline constexpr bool is_array_of_float = false;
template <std::size_t N>
inline constexpr bool is_array_of_float<std::array<float, N>> = true;

}  // namespace detail

/// The role of a mask: the geometric operations are called, with `interpolation::nearest` and `Fill` beyond
/// the image; operations that leave places alone are not.
template <auto Fill>
struct mask_role {
  /// Why a function cannot be called with this mask, where it is for the mask's type.
  template <class V>
    requires(lazy_image<V> && !byte_image<V>)
  using reason = mistakes::mask_of_many_bits;

  template <class F>
  [[nodiscard]] static constexpr decltype(auto) function(const F& f) {
    if constexpr (requires { f.for_mask(pixel_fill(Fill)); })
      return f.for_mask(pixel_fill(Fill));
    else if constexpr (requires { typename F::keeps_places; })
      return detail::leave_value{};
    else
      return (f);
  }
};

/// The role of places in an image: boxes if `PerPlace` is 4, points if it is 2.
template <std::size_t PerPlace>
struct places_role {
  using scratch = buffer;
  template <class V>
  using wrong = std::conditional_t<detail::row_of_numbers<std::remove_cvref_t<finished<V>>>, mistakes::none,
                                   mistakes::places_of_other>;

  [[nodiscard]] static image_geometry begin(const image_size& size) { return image_geometry(size); }
  /// The value with its places moved: an array of float in the worker's scratch, or a `std::array<float, N>`.
  template <class V>
  [[nodiscard]] static auto finish(const image_geometry& places, std::string_view name, V&& value,
                                   buffer& memory) {
    auto&& given = penstock::finish(std::forward<V>(value));
    using type = std::remove_cvref_t<decltype(given)>;
    detail::check_places<PerPlace>(given, name);
    if constexpr (detail::is_array_of_float<type>) {
      type moved = given;
      move(places, moved);
      return moved;
    } else {
      const std::size_t count = static_cast<std::size_t>(given.size());
      float* const moved = room_for<float>(memory, count);
      for (std::size_t i = 0; i < count; ++i) moved[i] = static_cast<float>(given.data()[i]);
      move(places, {moved, count});
      if constexpr (requires { given.shape(); })
        return tensor_view<const float>(moved, given.shape());
      else
        return tensor_view<const float>(moved, extents(count));
    }
  }

 private:
  static void move(const image_geometry& places, std::span<float> numbers) {
    if constexpr (PerPlace == 4) {
      places.boxes(numbers);
      places.clamp_boxes(numbers);
    } else {
      places.points(numbers);
    }
  }
};

/// A mask in a `map` of several fields: an image of the size of the first one, whose pixels are classes and
/// are never mixed. `map<"jpg", as_mask<"png">>(f, g, ...)` calls the geometric operations with both images,
/// with the same random numbers; for the mask with `interpolation::nearest`, and with `Fill` for what is
/// beyond the image. Colours, blurs, conversions, erasing and `to_chw` leave masks as they are. The form of
/// an operation for masks is made once, with the stage.
///
/// A mask has 8 bits, as from `png_as<gray8>`. One of 16 bits can be cropped, flipped, padded and turned, but
/// not resized: that does not compile.
///
///     auto turned = map<"jpg", as_mask<"png", 255>>(rotate({-10, 10}), normalize(imagenet), to_chw());
template <fixed_string Name, auto Fill = 0>
inline constexpr named_field<Name, mask_role<Fill>> as_mask{Name.text};

/// Boxes in a `map` of several fields: numbers x0, y0, x1, y1 of each, in pixels from the upper left corner
/// of the first field's image, as an array of shape (n, 4), or a list. They move as the pixels do: see
/// `image_geometry`. Then they are cut at the borders. A box that is beyond them is kept, as an empty one, so
/// that labels still belong to boxes: `image_geometry::clip_boxes` drops such boxes, and says which are left.
///
/// Out: an array of float of the same shape, in the worker's scratch; a `std::array<float, N>` stays one.
/// Allocates nothing once the scratch has grown. All numbers of a box become NaN if one of them is not
/// finite.
/// Throws `errc::shape`, for a sample, if the last of several dimensions is not 4, or a list does not have 4
/// numbers for each: split off a class first.
///
///     auto found = map<"jpg", as_boxes<"boxes">>(random_resized_crop(224), horizontal_flip(), color_jitter(0.4));
template <fixed_string Name>
inline constexpr named_field<Name, places_role<4>> as_boxes{Name.text};

/// Key points in a `map` of several fields: x and y of each, as an array of shape (n, 2), or a list. As
/// `as_boxes`, but points beyond the image stay there.
///
///     auto posed = map<"jpg", as_points<"joints">>(resize(256, 256), rotate({-20, 20}));
template <fixed_string Name>
inline constexpr named_field<Name, places_role<2>> as_points{Name.text};

}  // namespace penstock::inline v0_1
