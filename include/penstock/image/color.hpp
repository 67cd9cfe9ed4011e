// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/image/lookup.hpp>

/// Operations on the colours of images of bytes: grayscale, saturation, hue, color_jitter. See also
/// image/lookup.hpp.
///
/// The bytes are those of torchvision 0.14 on tensors of uint8; alpha, the last of four channels, stays as it
/// is, and gray images have no colours to change.
namespace penstock::inline v0_1 {

namespace detail {

/// Gray values: one channel, or as many as the image has with colours that are equal.
template <byte_image I, std::size_t Out>
class gray_image : public row_image<gray_image<I, Out>, I, Out> {
 public:
  gray_image(const I& image, image_scratch& scratch, bool changes)
      : row_image<gray_image, I, Out>(image, scratch, changes) {}

  void write_row(const std::uint8_t* from, std::uint8_t* to, std::size_t width) const {
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint8_t* const pixel = from + x * I::channels;
      std::uint8_t gray = pixel[0];
      if constexpr (I::channels >= 3) gray = luma(pixel);
      for (std::size_t c = 0; c < colours_of<Out>; ++c) to[x * Out + c] = gray;
      if constexpr (Out == 4) to[x * Out + 3] = pixel[3];
    }
  }
};

/// Blends a pixel with its gray value.
struct saturation_change {
  blend_tables blend;

  saturation_change(double factor, image_scratch& scratch) : blend(make_blend(scratch, factor)) {}
  void operator()(const std::uint8_t* from, std::uint8_t* to) const noexcept {
    const std::uint8_t gray = luma(from);
    for (std::size_t c = 0; c < 3; ++c) to[c] = blend(from[c], gray);
  }
};

/// Turns the hue of a pixel. Source: torchvision 0.14, functional_tensor.py, `adjust_hue`.
struct hue_change {
  float by;

  hue_change(double turn, image_scratch&) noexcept : by(static_cast<float>(turn)) {}
  void operator()(const std::uint8_t* from, std::uint8_t* to) const noexcept {
    // Each line is one operation of torchvision's, so that each result is rounded as there.
    const float r = static_cast<float>(from[0]) / 255.0f;
    const float g = static_cast<float>(from[1]) / 255.0f;
    const float b = static_cast<float>(from[2]) / 255.0f;
    const float maximum = r > g ? (r > b ? r : b) : (g > b ? g : b);
    const float least = r < g ? (r < b ? r : b) : (g < b ? g : b);
    const bool gray = maximum == least;
    const float range = maximum - least;
    const float s = rounded(range / (gray ? 1.0f : maximum));
    const float divisor = gray ? 1.0f : range;
    const float rc = rounded((maximum - r) / divisor);
    const float gc = rounded((maximum - g) / divisor);
    const float bc = rounded((maximum - b) / divisor);
    float h = maximum == r ? bc - gc : maximum == g ? 2.0f + rc - bc : 4.0f + gc - rc;
    h = rounded(h / 6.0f) + 1.0f;
    h -= static_cast<float>(static_cast<int>(h));
    h += by;
    h -= static_cast<float>(static_cast<int>(h));
    if (h < 0.0f) h += 1.0f;

    const float six = rounded(h * 6.0f);
    const int sector = static_cast<int>(six);
    const float f = six - static_cast<float>(sector);
    const float v = maximum;
    const auto clamped = [](float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; };
    const float p = clamped(v * (1.0f - s));
    const float q = clamped(v * (1.0f - rounded(s * f)));
    const float t = clamped(v * (1.0f - rounded(s * (1.0f - f))));
    const float red[] = {v, q, p, p, t, v}, green[] = {t, v, v, q, p, p}, blue[] = {p, p, t, v, v, q};
    const int i = sector % 6;
    to[0] = static_cast<std::uint8_t>(red[i] * 255.0f);
    to[1] = static_cast<std::uint8_t>(green[i] * 255.0f);
    to[2] = static_cast<std::uint8_t>(blue[i] * 255.0f);
  }
};

template <std::size_t Channels, class Change>
void recolour_row(const std::uint8_t* from, std::uint8_t* to, std::size_t width, const Change& change) {
  for (std::size_t x = 0; x < width; ++x, from += Channels, to += Channels) {
    change(from, to);
    if constexpr (Channels == 4) to[3] = from[3];
  }
}

/// An image of which each pixel has other colours.
template <byte_image I, class Change>
class recoloured_image : public row_image<recoloured_image<I, Change>, I> {
 public:
  recoloured_image(const I& image, double by, image_scratch& scratch)
      : row_image<recoloured_image, I>(image, scratch, true), change_(by, scratch) {}
  void write_row(const std::uint8_t* from, std::uint8_t* to, std::size_t width) const {
    recolour_row<I::channels>(from, to, width, change_);
  }

 private:
  Change change_;
};

enum class color_step : std::uint8_t { brightness, contrast, saturation, hue };

/// What `color_jitter` drew: steps in their order, with their factors.
struct color_steps {
  struct one {
    color_step kind;
    double factor;
  };
  std::array<one, 4> all;
  std::size_t count = 0;
};

template <byte_image I>
class jittered_image : public image_over<jittered_image<I>, I> {
 public:
  using typename jittered_image::image_expression::view_type;

  jittered_image(const I& image, const color_steps& steps, image_scratch& scratch)
      : jittered_image::image_over(image, scratch), steps_(steps) {}

  [[nodiscard]] view_type read(const image_part& part) const {
    if (steps_.count == 0) return this->image_.read(part);
    bool all = false;  // contrast needs the mean of the whole image
    for (std::size_t i = 0; i < steps_.count; ++i) all = all || steps_.all[i].kind == color_step::contrast;
    const view_type from = this->image_.read(all ? whole_of(this->image_.size()) : part);
    std::uint8_t* const to =
        room_for<std::uint8_t>(this->scratch_->pixels, from.row_values() * from.height());
    view_type at = from;
    for (std::size_t i = 0; i < steps_.count; ++i) {
      apply(steps_.all[i], at, to);
      at = view_type(to, from.size());
    }
    return all ? at.part(part) : at;
  }

 private:
  void apply(const color_steps::one& step, const view_type& from, std::uint8_t* to) const {
    const auto rows = [&](auto&& write) {
      for (std::size_t y = 0; y < from.height(); ++y) write(from.row(y), to + y * from.row_values());
    };
    const std::size_t width = from.width();
    if (step.kind == color_step::brightness || step.kind == color_step::contrast) {
      std::uint8_t* const table = room_for<std::uint8_t>(this->scratch_->tables, 256);
      if (step.kind == color_step::brightness)
        brightness_table{step.factor}(table);
      else
        contrast_table{step.factor}(table, luma_sum(from), std::uint64_t{width} * from.height());
      rows([&](const std::uint8_t* in, std::uint8_t* out) {
        for (std::size_t x = 0; x < width; ++x) {
          for (std::size_t c = 0; c < colours_of<I::channels>; ++c)
            out[x * I::channels + c] = table[in[x * I::channels + c]];
          if constexpr (I::channels == 4) out[x * I::channels + 3] = in[x * I::channels + 3];
        }
      });
    } else if constexpr (I::channels >= 3) {
      const auto recolour = [&]<class Change>(const Change& change) {
        rows([&](const std::uint8_t* in, std::uint8_t* out) {
          recolour_row<I::channels>(in, out, width, change);
        });
      };
      if (step.kind == color_step::saturation)
        recolour(saturation_change(step.factor, *this->scratch_));
      else
        recolour(hue_change(step.factor, *this->scratch_));
    }
  }

  color_steps steps_;
};

}  // namespace detail

template <std::size_t Channels>
class grayscale_operation : public detail::keeping_places<byte_operation> {
  static_assert(Channels == 1 || Channels == 3, "penstock: grayscale makes images of 1 or of 3 channels");

 public:
  template <byte_image I>
  [[nodiscard]] auto operator()(const I& image, const call<image_scratch>& c) const {
    if constexpr (Channels == 1 && I::channels == 1)
      return I(image);
    else
      return detail::gray_image < I,
             Channels == 3 && I::channels == 4 ? 4 : Channels > (image, c.scratch, true);
  }
};

class random_grayscale_operation
    : public detail::keeping_places<byte_operation, detail::draws::random_numbers> {
 public:
  explicit random_grayscale_operation(double p) : p_(p) {
    detail::check_range("random_grayscale", "the probability", p, 0, 1);
  }
  template <byte_image I>
  [[nodiscard]] auto operator()(const I& image, const call<image_scratch>& c) const {
    if constexpr (I::channels == 1)
      return I(image);
    else
      return detail::gray_image<I, I::channels>(image, c.scratch, c.random().chance(p_));
  }

 private:
  double p_;
};

namespace detail {
/// Changes the colours of images by a number.
template <class Change>
class color_operation : public keeping_places<byte_operation> {
 public:
  template <byte_image I>
  [[nodiscard]] auto operator()(const I& image, const call<image_scratch>& c) const {
    if constexpr (I::channels == 1)
      return I(image);
    else
      return recoloured_image<I, Change>(image, by_, c.scratch);
  }

 protected:
  explicit color_operation(double by) : by_(by) {}

 private:
  double by_;
};
}  // namespace detail

class saturation_operation : public detail::color_operation<detail::saturation_change> {
 public:
  explicit saturation_operation(double factor) : color_operation(factor) {
    detail::check_range("saturation", "the factor", factor, 0, 1e6);
  }
};

class hue_operation : public detail::color_operation<detail::hue_change> {
 public:
  explicit hue_operation(double turn) : color_operation(turn) {
    detail::check_range("hue", "the turn", turn, -0.5, 0.5);
  }
};

class color_jitter_operation : public detail::keeping_places<byte_operation, detail::draws::random_numbers> {
 public:
  color_jitter_operation(double brightness, double contrast, double saturation, double hue)
      : ranges_{brightness, contrast, saturation, hue} {
    detail::check_range("color_jitter", "brightness", brightness, 0, 1e5);
    detail::check_range("color_jitter", "contrast", contrast, 0, 1e5);
    detail::check_range("color_jitter", "saturation", saturation, 0, 1e5);
    detail::check_range("color_jitter", "hue", hue, 0, 0.5);
  }
  template <byte_image I>
  [[nodiscard]] detail::jittered_image<I> operator()(const I& image, const call<image_scratch>& c) const {
    return {image, draw_steps(c.random(), I::channels >= 3), c.scratch};
  }
  /// The order and the factors that are drawn from these numbers.
  [[nodiscard]] detail::color_steps draw_steps(rng random, bool colours) const {
    std::array<std::size_t, 4> order = {0, 1, 2, 3};
    for (std::size_t i = 3; i > 0; --i) std::swap(order[i], order[detail::to_size(random.below(i + 1))]);
    detail::color_steps steps;
    for (const std::size_t i : order) {
      const auto kind = static_cast<detail::color_step>(i);
      const bool hue = kind == detail::color_step::hue;
      const double range = ranges_[i];
      const double low = hue ? -range : range < 1 ? 1 - range : 0;
      const double factor = random.uniform(low, hue ? range : 1 + range);
      const bool changes_colour = hue || kind == detail::color_step::saturation;
      if (range > 0 && (colours || !changes_colour)) steps.all[steps.count++] = {kind, factor};
    }
    return steps;
  }

 private:
  std::array<double, 4> ranges_;  // as in color_step
};

/// The gray values of an image: 0.2989 red + 0.587 green + 0.114 blue. With one channel, or with three that
/// are equal; alpha goes with one channel and stays with three. torchvision: `rgb_to_grayscale`, `Grayscale`.
///
///     const auto gray_rgb = grayscale<3>();
template <std::size_t Channels = 1>
[[nodiscard]] constexpr grayscale_operation<Channels> grayscale() noexcept {
  return {};
}

/// Gray values with probability `p`, in as many channels as before. torchvision: `RandomGrayscale`. Throws
/// `errc::argument` unless p is from 0 to 1.
///
///     const auto sometimes_gray = random_grayscale(0.2);
[[nodiscard]] inline random_grayscale_operation random_grayscale(double p = 0.1) {
  return random_grayscale_operation(p);
}

/// Away from the gray values, or towards them: 0 is gray, 1 the image, 2 twice as colourful. torchvision:
/// `functional.adjust_saturation`. Throws `errc::argument` unless the factor is from 0 to 1e6.
///
///     const auto paler = saturation(0.5);
[[nodiscard]] inline saturation_operation saturation(double factor) { return saturation_operation(factor); }

/// Turns the hue by a part of the circle, -0.5 to 0.5; 0.5 and -0.5 give the opposite colours. torchvision:
/// `functional.adjust_hue`. Throws `errc::argument` for other numbers. Cost: some 40 operations and three
/// divisions per pixel, the slowest of the colour operations.
///
///     const auto turned = hue(0.1);
[[nodiscard]] inline hue_operation hue(double turn) { return hue_operation(turn); }

/// Brightness, contrast, saturation and hue changed at random, in random order. The first three factors are
/// from max(0, 1 - x) to 1 + x, the hue turns by -x to x; 0 leaves out. torchvision: `ColorJitter`; its draws
/// are different. Throws `errc::argument` for negative numbers, for more than 1e5, for a hue above 0.5. Cost:
/// a pass for each of the four; with contrast all of the image is computed even if only a part is asked for.
///
///     const auto jitter = color_jitter(0.4, 0.4, 0.4, 0.1);
[[nodiscard]] inline color_jitter_operation color_jitter(double brightness, double contrast = 0,
                                                         double saturation = 0, double hue = 0) {
  return {brightness, contrast, saturation, hue};
}

}  // namespace penstock::inline v0_1
