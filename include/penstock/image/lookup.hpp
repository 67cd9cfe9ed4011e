// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/row_image.hpp>

#include <algorithm>
#include <numeric>

/// Colour operations that look every value up in a table of 256: brightness, contrast, invert, solarize,
/// posterize, autocontrast, equalize.
///
/// The bytes are those of torchvision 0.14 on tensors of uint8; alpha, the last of four channels, stays as it
/// is. Cost: one look-up per value; `contrast`, `autocontrast` and `equalize` read all of the image first,
/// even if only a part is asked for.
namespace penstock::inline v0_1 {

namespace detail {

// Source of all tables: torchvision 0.14, functional_tensor.py.
struct invert_table {
  static constexpr std::string_view name = "invert";
  void operator()(std::uint8_t* table) const;
};

struct solarize_table {
  static constexpr std::string_view name = "solarize";
  double threshold;
  void operator()(std::uint8_t* table) const;
};

struct posterize_table {
  static constexpr std::string_view name = "posterize";
  int bits;
  void operator()(std::uint8_t* table) const;
};

struct brightness_table {
  static constexpr std::string_view name = "brightness";
  double factor;
  void operator()(std::uint8_t* table) const;
};

/// Of the sum of all gray values, and their number.
struct contrast_table {
  static constexpr std::string_view name = "contrast";
  double factor;
  void operator()(std::uint8_t* table, std::uint64_t sum, std::uint64_t count) const;
};

/// Of a histogram.
struct autocontrast_table {
  static constexpr std::string_view name = "autocontrast";
  void operator()(std::uint8_t* table, const std::uint64_t* histogram) const;
};

struct equalize_table {
  static constexpr std::string_view name = "equalize";
  void operator()(std::uint8_t* table, const std::uint64_t* histogram) const;
};

template <std::size_t Channels>
[[nodiscard]] std::uint64_t luma_sum(const pixel_view<std::uint8_t, Channels>& pixels) {
  std::uint64_t sum = 0;
  for (std::size_t y = 0; y < pixels.height(); ++y) {
    const std::uint8_t* const row = pixels.row(y);
    for (std::size_t x = 0; x < pixels.width(); ++x) {
      if constexpr (Channels >= 3)
        sum += luma(row + x * Channels);
      else
        sum += row[x * Channels];
    }
  }
  return sum;
}

/// An image whose values are looked up in a table per channel, in the worker's scratch.
template <byte_image I, class Table>
class lookup_image : public row_image<lookup_image<I, Table>, I> {
 public:
  static constexpr std::size_t channels = I::channels;
  static constexpr bool of_histogram = std::is_invocable_v<const Table&, std::uint8_t*, const std::uint64_t*>;
  static constexpr bool of_sum =
      std::is_invocable_v<const Table&, std::uint8_t*, std::uint64_t, std::uint64_t>;

  lookup_image(const I& image, const Table& table, image_scratch& scratch, bool changes)
      : row_image<lookup_image, I>(image, scratch, changes), table_(table) {
    if (!changes) return;
    std::uint8_t* const tables = room_for<std::uint8_t>(scratch.tables, 256 * channels);
    for (std::size_t c = 0; c < channels; ++c)
      std::iota(tables + 256 * c, tables + 256 * (c + 1), std::uint8_t{0});
    if constexpr (!of_histogram && !of_sum)
      for (std::size_t c = 0; c < colours_of<channels>; ++c) table_(tables + 256 * c);
  }

  void write_row(const std::uint8_t* from, std::uint8_t* to, std::size_t width) const {
    const std::uint8_t* const tables = this->tables();
    for (std::size_t x = 0; x < width; ++x)
      for (std::size_t c = 0; c < channels; ++c)
        to[x * channels + c] = tables[256 * c + from[x * channels + c]];
  }
  [[nodiscard]] bool needs_all() const { return of_histogram || of_sum; }
  void look_at(const pixel_view<std::uint8_t, channels>& pixels) const {
    if constexpr (of_sum) {
      const std::uint64_t sum = luma_sum(pixels), count = pixels.width() * std::uint64_t{pixels.height()};
      for (std::size_t c = 0; c < colours_of<channels>; ++c) table_(tables() + 256 * c, sum, count);
    } else if constexpr (of_histogram) {
      std::uint64_t* const counts = room_for<std::uint64_t>(this->memory().work, 256 * channels);
      std::fill_n(counts, 256 * channels, 0);
      for (std::size_t y = 0; y < pixels.height(); ++y) {
        const std::uint8_t* const row = pixels.row(y);
        for (std::size_t x = 0; x < pixels.width(); ++x)
          for (std::size_t c = 0; c < channels; ++c) ++counts[256 * c + row[x * channels + c]];
      }
      for (std::size_t c = 0; c < colours_of<channels>; ++c) table_(tables() + 256 * c, counts + 256 * c);
    }
  }

 private:
  [[nodiscard]] std::uint8_t* tables() const {
    return reinterpret_cast<std::uint8_t*>(this->memory().tables.data());
  }

  Table table_;
};

/// Looks up the values of every image, or of each with a probability.
template <class Table, draws Drawn>
class looking_up : public keeping_places<byte_operation, Drawn> {
 public:
  looking_up(const Table& table, double p = 1) : table_(table), p_(p) {
    if (is_random) check_range(describe(), "the probability", p, 0, 1);
  }

  template <byte_image I>
  [[nodiscard]] lookup_image<I, Table> operator()(const I& image, const call<image_scratch>& c) const {
    return {image, table_, c.scratch, !is_random || c.random().chance(p_)};
  }
  [[nodiscard]] std::string describe() const {
    return (is_random ? "random_" : "") + std::string(Table::name);
  }

 private:
  static constexpr bool is_random = Drawn == draws::random_numbers;

  Table table_;
  double p_;
};

solarize_table solarizing(std::string_view operation, double threshold);
posterize_table posterizing(std::string_view operation, int bits);

}  // namespace detail

/// Looks up the values of every image.
template <class Table>
using lookup_operation = detail::looking_up<Table, detail::draws::nothing>;
/// Looks up the values of each image with a probability.
template <class Table>
using random_lookup_operation = detail::looking_up<Table, detail::draws::random_numbers>;

/// 255 minus each value. torchvision: `functional.invert`.
///
///     const auto negative = invert();
[[nodiscard]] lookup_operation<detail::invert_table> invert();

/// `invert` with probability `p`. torchvision: `RandomInvert`. Throws `errc::argument` unless p is from 0 to
/// 1.
[[nodiscard]] random_lookup_operation<detail::invert_table> random_invert(double p = 0.5);

/// 255 minus the values that are `threshold` or more. torchvision: `functional.solarize`. Throws
/// `errc::argument` unless the threshold is from 0 to 256; 256 changes nothing.
///
///     const auto burnt = solarize(192);
[[nodiscard]] lookup_operation<detail::solarize_table> solarize(double threshold);

/// `solarize` with probability `p`. torchvision: `RandomSolarize`.
[[nodiscard]] random_lookup_operation<detail::solarize_table> random_solarize(double threshold,
                                                                              double p = 0.5);

/// Keeps the upper `bits` of each value, 0 to 8. torchvision: `functional.posterize`. Throws `errc::argument`
/// for another number.
///
///     const auto poster = posterize(3);
[[nodiscard]] lookup_operation<detail::posterize_table> posterize(int bits);

/// `posterize` with probability `p`. torchvision: `RandomPosterize`.
[[nodiscard]] random_lookup_operation<detail::posterize_table> random_posterize(int bits, double p = 0.5);

/// Each value times `factor`: 0 is black, 1 the image, 2 twice as bright. torchvision:
/// `functional.adjust_brightness`. Throws `errc::argument` unless the factor is from 0 to 1e6.
///
///     const auto darker = brightness(0.7);
[[nodiscard]] lookup_operation<detail::brightness_table> brightness(double factor);

/// Away from the mean gray value of the whole image, or towards it: 0 is all gray, 1 the image, 2 twice the
/// contrast. torchvision: `functional.adjust_contrast`. Throws `errc::argument` unless the factor is from 0
/// to 1e6.
///
///     const auto flatter = contrast(0.7);
[[nodiscard]] lookup_operation<detail::contrast_table> contrast(double factor);

/// Stretches each channel so that its least value becomes 0 and its greatest 255. torchvision:
/// `functional.autocontrast`.
///
///     const auto stretched = autocontrast();
[[nodiscard]] lookup_operation<detail::autocontrast_table> autocontrast();

/// `autocontrast` with probability `p`. torchvision: `RandomAutocontrast`.
[[nodiscard]] random_lookup_operation<detail::autocontrast_table> random_autocontrast(double p = 0.5);

/// Makes the histogram of each channel as flat as it can be. torchvision: `functional.equalize`.
///
///     const auto even = equalize();
[[nodiscard]] lookup_operation<detail::equalize_table> equalize();

/// `equalize` with probability `p`. torchvision: `RandomEqualize`.
[[nodiscard]] random_lookup_operation<detail::equalize_table> random_equalize(double p = 0.5);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/image/lookup.ipp>
#endif
