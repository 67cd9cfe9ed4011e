// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/image/detail/convert_pixels.hpp>
#include <penstock/image/to_chw.hpp>

#include <cmath>

/// The last operations on images: their values as real numbers, normalised, of 32 or 16 bits.
namespace penstock::inline v0_1 {

namespace mistakes {

struct operation_wants_values : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation works on images of 8 bits, of 16 bits or of float, and gets other "
        "numbers; write to_half and to_bfloat16 after it");
  }
};
struct normalize_of_other_channels : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: normalize has as many means as the image has channels, or one for all of them; "
                  "decode to another format, as in jpeg_as<rgb8>, or write one mean and one deviation");
  }
};

}  // namespace mistakes

/// Means and standard deviations of the channels of many images, whose values are from 0 to 1.
template <std::size_t Channels>
struct channel_statistics {
  std::array<double, Channels> mean{}, std{};
};

/// Those of ImageNet, with which most published networks were trained. Source: torchvision,
/// `ImageClassification` presets.
inline constexpr channel_statistics<3> imagenet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

/// An image whose values can become real numbers.
template <class I>
concept value_image =
    lazy_image<I> && (std::same_as<typename std::remove_cvref_t<I>::value_type, std::uint8_t> ||
                      std::same_as<typename std::remove_cvref_t<I>::value_type, std::uint16_t> ||
                      std::same_as<typename std::remove_cvref_t<I>::value_type, float>);

/// An image of real numbers: each value of another image, minus a shift, times a scale, both of its channel.
/// Several such operations are one pass: shifts and scales are combined with 53 bits.
template <value_image I, class Out>
class converted_image : public image_over<converted_image<I, Out>, I, Out> {
 public:
  using inner = I;
  using channel_values = detail::channel_map<I::channels, double>;

  converted_image(const I& image, const channel_values& values, image_scratch& scratch)
      : converted_image::image_over(image, scratch), values_(values) {}

  [[nodiscard]] typename converted_image::view_type read(const image_part& part) const {
    return this->drawn(part);
  }
  void draw(const image_part& part, const destination<Out>& into) const {
    const auto pixels = this->image_.read(part);
    const element_strides strides = into.strides();
    detail::channel_map<I::channels> map;
    for (std::size_t c = 0; c < I::channels; ++c) {
      map.shift[c] = static_cast<float>(values_.shift[c]);
      map.scale[c] = static_cast<float>(values_.scale[c]);
    }
    if (pixels.dense() && strides[0] == strides[1] * static_cast<std::int64_t>(pixels.width()))
      return draw_row(pixels.data(), pixels.width() * pixels.height(), into.data(), strides, map);
    for (std::size_t y = 0; y < pixels.height(); ++y)
      draw_row(pixels.row(y), pixels.width(), into.data() + static_cast<std::int64_t>(y) * strides[0],
               strides, map);
  }

  [[nodiscard]] const I& image() const { return this->image_; }
  [[nodiscard]] const channel_values& values() const { return values_; }

 private:
  using in = typename I::value_type;

  static void draw_row(const in* input, std::size_t width, Out* to, const element_strides& strides,
                       const detail::channel_map<I::channels>& map) {
    const bool interleaved = strides[2] == 1 && strides[1] == std::int64_t{I::channels};
    const bool planes = strides[1] == 1;
    if constexpr (std::is_same_v<Out, float>) {
      if (interleaved) return detail::convert_row_fast(input, to, width, map);
      if (planes) return detail::convert_planes_fast(input, to, strides[2], width, map);
    }
    // In pieces that stay in the nearest cache.
    constexpr std::size_t maximum = 256;
    alignas(64) float piece[maximum * I::channels];
    for (std::size_t x = 0; x < width; x += maximum) {
      const std::size_t count = width - x < maximum ? width - x : maximum;
      const in* const at = input + x * I::channels;
      Out* const place = to + static_cast<std::int64_t>(x) * strides[1];
      if (planes && !interleaved) {
        detail::convert_planes_fast(at, piece, maximum, count, map);
        for (std::size_t c = 0; c < I::channels; ++c)
          put(piece + c * maximum, place + static_cast<std::int64_t>(c) * strides[2], count);
        continue;
      }
      detail::convert_row_fast(at, piece, count, map);
      if (interleaved) {
        put(piece, place, count * I::channels);
        continue;
      }
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t c = 0; c < I::channels; ++c)
          place[static_cast<std::int64_t>(i) * strides[1] + static_cast<std::int64_t>(c) * strides[2]] =
              Out(piece[i * I::channels + c]);
    }
  }
  static void put(const float* input, Out* to, std::size_t count) {
    if constexpr (!std::is_same_v<Out, float>) convert(input, to, count);
  }

  channel_values values_;
};

namespace detail {

/// The largest value of a type of pixels, which becomes 1.
template <class T>
inline constexpr double full_value = std::is_same_v<T, float>          ? 1.0
                                     : std::is_same_v<T, std::uint8_t> ? 255.0
                                                                       : 65535.0;

template <class V>
struct values_mistake : image_mistake<V> {};
template <lazy_image V>
struct values_mistake<V> : std::type_identity<mistakes::operation_wants_values> {};

template <class Out, value_image I>
[[nodiscard]] converted_image<I, Out> as_values(const I& image, image_scratch& scratch) {
  typename converted_image<I, Out>::channel_values values;
  values.shift.fill(0.0);
  values.scale.fill(1.0 / full_value<typename I::value_type>);
  return {image, values, scratch};
}
/// A conversion of what is converted already: one, with the same values.
template <class Out, value_image I>
[[nodiscard]] converted_image<I, Out> as_values(const converted_image<I, float>& image,
                                                image_scratch& scratch) {
  return {image.image(), image.values(), scratch};
}

/// Throws `errc::argument` unless the mean is finite, and the deviation is a positive number within reason.
inline void check_statistics(const double* mean, const double* std, std::size_t count) {
  for (std::size_t c = 0; c < count; ++c) {
    // Beyond these the values would be no numbers of 32 bits.
    if (!(std::fabs(mean[c]) <= 1e9))
      throw error(errc::argument, {"normalize: the mean of channel ", c,
                                   " is not a number within 1e9; pass the "
                                   "mean of values from 0 to 1, as 0.485"});
    if (!(std[c] >= 1e-9 && std[c] <= 1e9))
      throw error(errc::argument,
                  {"normalize: the deviation of channel ", c,
                   " is not a positive number from "
                   "1e-9 to 1e9; pass the standard deviation of values from 0 to 1, as 0.229"});
  }
}

}  // namespace detail

template <class Out>
class convert_operation : public detail::keeping_places<image_operation> {
 public:
  template <class V>
  using wrong_argument_for = typename detail::values_mistake<V>::type;

  template <value_image I>
  [[nodiscard]] auto operator()(const I& image, const call<image_scratch>& c) const {
    return detail::as_values<Out>(image, c.scratch);
  }
  /// What is no image, and knows itself what it is as `Out`, as lazy sounds do.
  template <class V>
    requires(!lazy_image<V> && requires(const V& value) { value.template converted<Out>(); })
  [[nodiscard]] auto operator()(const V& value, const call<image_scratch>& /*c*/) const {
    return value.template converted<Out>();
  }
  [[nodiscard]] std::string describe() const {
    return std::is_same_v<Out, float> ? "to_float" : std::is_same_v<Out, half> ? "to_half" : "to_bfloat16";
  }
};

template <std::size_t Channels>
class normalize_operation : public detail::keeping_places<image_operation> {
 public:
  template <class V>
  using wrong_argument_for = std::conditional_t<value_image<V>, mistakes::normalize_of_other_channels,
                                                typename detail::values_mistake<V>::type>;

  explicit normalize_operation(const channel_statistics<Channels>& statistics) : statistics_(statistics) {
    detail::check_statistics(statistics.mean.data(), statistics.std.data(), Channels);
  }

  template <value_image I>
    requires(Channels == 1 || Channels == I::channels)
  [[nodiscard]] auto operator()(const I& image, const call<image_scratch>& c) const {
    const auto plain = detail::as_values<float>(image, c.scratch);
    auto values = plain.values();
    for (std::size_t i = 0; i < I::channels; ++i) {
      const std::size_t own = Channels == 1 ? 0 : i;
      values.shift[i] += statistics_.mean[own] / values.scale[i];
      values.scale[i] /= statistics_.std[own];
    }
    return std::remove_const_t<decltype(plain)>(plain.image(), values, c.scratch);
  }

  [[nodiscard]] const channel_statistics<Channels>& statistics() const noexcept { return statistics_; }

 private:
  channel_statistics<Channels> statistics_;
};

/// Values from 0 to 1 as `float`: 8 bits divided by 255, 16 bits by 65,535; an image of `float` stays as it
/// is, and so does a sound, whose samples are from -1 to 1.
/// torchvision: `ToDtype(torch.float32, scale=True)`, equal but for the last bit.
///
///     const auto operation = to_float();
[[nodiscard]] constexpr convert_operation<float> to_float() noexcept { return {}; }
/// As `to_float`, rounded to `half`. One pass together with `to_float` and `normalize` before it.
///
///     const auto operation = to_half();
[[nodiscard]] constexpr convert_operation<half> to_half() noexcept { return {}; }
/// As `to_float`, rounded to `bfloat16`. One pass together with `to_float` and `normalize` before it.
///
///     const auto operation = to_bfloat16();
[[nodiscard]] constexpr convert_operation<bfloat16> to_bfloat16() noexcept { return {}; }

/// (value - mean) / std for each channel, as `float`, with values from 0 to 1: images of 8 or 16 bits are
/// scaled to that by `normalize` itself. One mean and one deviation serve any number of channels; otherwise
/// their number is the image's. Within 2 units in the last place of torchvision's `Normalize`, relative to
/// the larger of value and mean; the results are equal on every processor.
///
/// Throws `errc::argument` if a mean is not finite or a deviation is not positive and finite. Cost: one pass
/// from the pixels to their place in the batch, channels last or first, about as fast as copying that many
/// bytes.
///
///     const auto photos = normalize(imagenet);
template <std::size_t Channels>
[[nodiscard]] normalize_operation<Channels> normalize(const channel_statistics<Channels>& statistics) {
  return normalize_operation<Channels>(statistics);
}
template <std::size_t Channels>
[[nodiscard]] normalize_operation<Channels> normalize(const double (&mean)[Channels],
                                                      const double (&std)[Channels]) {
  return normalize_operation<Channels>({std::to_array(mean), std::to_array(std)});
}
[[nodiscard]] inline normalize_operation<1> normalize(double mean, double std) {
  return normalize_operation<1>(channel_statistics<1>{{mean}, {std}});
}

}  // namespace penstock::inline v0_1
