// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/stage/batch_columns.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>

/// Functions for `map_batch` that mix the images of a batch, and their labels.
namespace penstock::inline v0_1 {

/// Options of `mixup`.
struct mixup_options {
  double alpha = 1;  ///< an image's share is Beta(alpha, alpha): small gives about 0 or 1, large about 0.5
};

/// Options of `cutmix`.
struct cutmix_options {
  double alpha = 1;            ///< an image's share is Beta(alpha, alpha), before the rectangle is clipped
  bool channels_first = true;  ///< (n, channels, height, width), otherwise (n, height, width, channels)
};

namespace detail {

namespace mixing {

/// A normally distributed number. Source: Box and Muller, "A note on the generation of random normal
/// deviates", 1958.
inline double draw_normal(rng& random) {
  const double u = 1 - random.uniform();  // in (0, 1]
  const double angle = 2 * std::numbers::pi * random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(angle);
}

/// The logarithm of a draw from Gamma(alpha, 1); the draw itself may be too small for a number.
/// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, with their step for
/// alpha < 1.
inline double draw_log_gamma(rng& random, double alpha) {
  const double boosted = alpha < 1 ? alpha + 1 : alpha;
  const double d = boosted - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double v = 0;
  while (true) {
    const double x = draw_normal(random);
    const double root = 1 + c * x;
    const double u = 1 - random.uniform();
    if (root <= 0) continue;
    v = root * root * root;
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) break;
  }
  const double log_gamma = std::log(d * v);
  return alpha < 1 ? log_gamma + std::log(1 - random.uniform()) / alpha : log_gamma;
}

}  // namespace mixing

/// A draw from Beta(alpha, alpha), for alpha from 1e-6 to 1e6.
[[nodiscard]] inline double draw_beta(rng& random, double alpha) {
  const double a = mixing::draw_log_gamma(random, alpha), b = mixing::draw_log_gamma(random, alpha);
  return 1 / (1 + std::exp(b - a));
}

[[nodiscard]] inline std::size_t check_mixing(std::string_view function, any_count classes, double alpha) {
  const std::uint64_t count = classes.of(function);
  if (count == 0 || count > std::numeric_limits<std::uint32_t>::max())
    throw error(errc::argument, {function, " needs the number of classes, at least 1, and not ", count});
  if (!(alpha >= 1e-6 && alpha <= 1e6))  // beyond that the logarithms of a share's parts overflow
    throw error(errc::argument, {function, ": alpha must be from 1e-6 to 1e6, as in .alpha = 0.2"});
  return to_size(count);
}

[[noreturn]] inline void refuse_label(std::string_view function, std::size_t slot, std::size_t classes) {
  throw error(errc::shape, {"the label in slot ", slot, " of the batch is no class of ", function, "(",
                            classes, "), whose classes are 0 to ", classes - 1});
}

[[noreturn]] inline void refuse_soft_labels(std::string_view function, const extents& shape,
                                            std::size_t classes) {
  throw error(errc::shape, {function, "(", classes, ") gets labels of shape ", to_string(shape),
                            "; they must be integers, or shares of shape (n, ", classes, ")"});
}

struct cut_box {
  std::size_t x = 0, y = 0, width = 0, height = 0;
};

/// Of an image of shape `batch`; changes the share to that of the pixels outside the rectangle. Throws
/// `errc::shape` if the batch's shape is not the one that the options say.
[[nodiscard]] inline cut_box draw_cut_box(const extents& batch, bool channels_first, rng& random,
                                          double& share) {
  if (batch.rank() != 4)
    throw error(errc::shape, {"cutmix gets images of shape ", to_string(batch),
                              "; it needs (n, channels, height, width), or (n, height, width, channels) with "
                              ".channels_first = false"});
  const std::uint64_t first = batch[1], last = batch[3];
  const std::uint64_t channels = channels_first ? first : last, side = channels_first ? last : first;
  if (channels > 4 && side <= 4)
    throw error(errc::shape, {"cutmix gets images of shape ", to_string(batch), ", where channels are ",
                              channels_first ? "last; write cutmix(classes, {.channels_first = false})"
                                             : "first; leave out .channels_first = false"});
  const std::uint64_t height = batch[channels_first ? 2 : 1], width = batch[channels_first ? 3 : 2];
  if (height == 0 || width == 0) return {};
  const double half = 0.5 * std::sqrt(1 - share);
  const std::uint64_t x = random.below(width), y = random.below(height);
  const auto half_width = static_cast<std::uint64_t>(half * static_cast<double>(width));
  const auto half_height = static_cast<std::uint64_t>(half * static_cast<double>(height));
  const std::uint64_t left = x - std::min(x, half_width), right = std::min(x + half_width, width);
  const std::uint64_t top = y - std::min(y, half_height), bottom = std::min(y + half_height, height);
  share = 1 - static_cast<double>((right - left) * (bottom - top)) /
                  (static_cast<double>(width) * static_cast<double>(height));
  return {to_size(left), to_size(top), to_size(right - left), to_size(bottom - top)};
}

/// Which slots of a batch are mixed: each one that holds a sample, with the one before it that does. The
/// first is mixed with the last.
struct mixed_slots {
  std::size_t size = 0;
  std::span<const std::uint8_t> valid;  // empty: all

  template <class Columns>
  static mixed_slots of(const Columns& columns) {
    if (columns.valid_size() == columns.size()) return {columns.size(), {}};
    return {columns.size(), columns.valid()};
  }
  [[nodiscard]] bool holds(std::size_t i) const noexcept { return valid.empty() || valid[i] != 0; }
  /// Calls `each(slot, its partner)`, or `without(slot)` for a slot without a sample.
  void for_each(auto&& each, auto&& without) const {
    std::size_t before = size;
    while (before != 0 && !holds(before - 1)) --before;
    for (std::size_t i = 0; i < size; ++i) {
      if (!holds(i)) {
        without(i);
        continue;
      }
      each(i, before - 1);
      before = i + 1;
    }
  }
};

/// The rows of a column, each mixed with the one before: an array expression.
template <class T>
struct blended_rows {
  using unfinished = void;
  using value_type = T;
  using number = std::conditional_t<std::is_same_v<T, double>, double, float>;

  const T* rows;
  extents size;
  mixed_slots slots;
  double share;

  [[nodiscard]] extents shape() const { return size; }
  void write_to(T* into) const {
    const std::size_t count = to_size(size.drop_front().elements());
    const number own = static_cast<number>(share), other = 1 - own;
    slots.for_each(
        [&](std::size_t i, std::size_t partner) {
          const T* const a = rows + i * count;
          const T* const b = rows + partner * count;
          T* const to = into + i * count;
          std::size_t k = 0;
          // By eight, and apart from the destination: GCC makes vectors of a loop at -O2 only if it knows
          // how often it runs, and that nothing overlaps.
          for (number mixed[8]; k + 8 <= count; k += 8) {
            for (std::size_t j = 0; j < 8; ++j)
              mixed[j] = static_cast<number>(a[k + j]) * own + static_cast<number>(b[k + j]) * other;
            for (std::size_t j = 0; j < 8; ++j) to[k + j] = static_cast<T>(mixed[j]);
          }
          for (; k < count; ++k)
            to[k] = static_cast<T>(static_cast<number>(a[k]) * own + static_cast<number>(b[k]) * other);
        },
        [&](std::size_t i) { std::memcpy(into + i * count, rows + i * count, count * sizeof(T)); });
  }
};

/// The images of a column, each with a rectangle of the one before.
template <class T>
struct patched_rows {
  using unfinished = void;
  using value_type = T;

  const T* rows;
  extents size;
  mixed_slots slots;
  cut_box box;
  bool channels_first;

  [[nodiscard]] extents shape() const { return size; }
  void write_to(T* into) const {
    const std::size_t count = to_size(size.drop_front().elements());
    // an image is `planes` arrays of (height, width, values)
    const std::size_t planes = channels_first ? to_size(size[1]) : 1;
    const std::size_t values = channels_first ? 1 : to_size(size[3]);
    const std::size_t height = to_size(size[channels_first ? 2 : 1]);
    const std::size_t width = to_size(size[channels_first ? 3 : 2]);
    const auto copy = [&](std::size_t i) {
      std::memcpy(into + i * count, rows + i * count, count * sizeof(T));
    };
    slots.for_each(
        [&](std::size_t i, std::size_t partner) {
          copy(i);
          for (std::size_t plane = 0; plane < planes; ++plane)
            for (std::size_t y = box.y; y < box.y + box.height; ++y) {
              const std::size_t at = ((plane * height + y) * width + box.x) * values;
              std::memcpy(into + i * count + at, rows + partner * count + at, box.width * values * sizeof(T));
            }
        },
        copy);
  }
};

/// Labels as shares of classes, mixed as the images are. A slot without a sample has no share of any.
template <class T>
struct soft_labels {
  using unfinished = void;
  using value_type = float;

  std::span<const T> labels;
  std::size_t classes;
  mixed_slots slots;
  double share;

  [[nodiscard]] extents shape() const { return extents(labels.size(), classes); }
  void write_to(float* into) const {
    std::fill_n(into, labels.size() * classes, 0.0f);
    const auto own = static_cast<float>(share);
    const auto place = [&](std::size_t row, std::size_t of) -> float& {
      return into[row * classes + static_cast<std::size_t>(labels[of])];
    };
    slots.for_each(
        [&](std::size_t i, std::size_t partner) {
          place(i, i) += own;
          place(i, partner) += 1 - own;
        },
        [](std::size_t) {});
  }
};

template <class View>
inline constexpr bool holds_numbers = false;
template <class T>
inline constexpr bool holds_numbers<std::span<T>> = std::is_arithmetic_v<T>;

/// A column of a batch, without the words that tell what it is: a `tensor_view` of this type of numbers.
template <class View>
struct array_numbers : std::type_identity<void> {};
template <class T>
struct array_numbers<tensor_view<T>> : std::type_identity<T> {};

/// The mixed labels: of numbers from 0 to `classes` - 1, or of a column of shape (n, classes) that is soft
/// already.
template <class View>
auto mixed_labels(std::string_view function, const View& labels, std::size_t classes,
                  const mixed_slots& slots, double share) {
  if constexpr (holds_numbers<View>) {
    using number = typename View::value_type;
    static_assert(std::is_integral_v<number>,
                  "penstock: mixup and cutmix take labels that are integers, or float arrays of a share per "
                  "class; decode them with integer");
    for (std::size_t i = 0; i < slots.size; ++i)
      if (slots.holds(i) && (std::cmp_less(+labels[i], 0) || std::cmp_greater_equal(+labels[i], classes)))
          [[unlikely]]
        refuse_label(function, i, classes);
    return soft_labels<number>{labels, classes, slots, share};
  } else {
    using number = typename array_numbers<View>::type;
    static_assert(std::is_floating_point_v<number>,
                  "penstock: mixup and cutmix take labels that are integers, or float arrays of a share per "
                  "class; decode them with integer");
    if (labels.rank() != 2 || labels.shape()[1] != classes) [[unlikely]]
      refuse_soft_labels(function, labels.shape(), classes);
    return blended_rows<number>{labels.data(), labels.shape(), slots, share};
  }
}

/// New columns: `image` for the field `Image`, `label` for `Label`, and the others as they are.
template <class Image, class Label, class ImageColumn, class LabelColumn, class... Fields>
auto with_mixed_fields(const std::type_identity<record<Fields...>>&, const auto& columns,
                       const ImageColumn& image, const LabelColumn& label) {
  static_assert(
      ((std::is_same_v<typename Fields::name_type, Image> ||
        std::is_same_v<typename Fields::name_type, Label> || is_column<typename Fields::type>)&&...),
      "penstock: mixup and cutmix make new columns, and one of the batch's fields is ragged or padded, "
      "of which there is no new column; drop it before batch, as with fields<\"image\", \"label\">");
  const auto one = [&]<class Field>(std::type_identity<Field>) {
    using name = typename Field::name_type;
    if constexpr (std::is_same_v<name, Image>)
      return image;
    else if constexpr (std::is_same_v<name, Label>)
      return label;
    else
      return columns.template field<record<Fields...>::template index_of<name>>();
  };
  return record<basic_field<typename Fields::name_type, decltype(one(std::type_identity<Fields>{}))>...>(
      one(std::type_identity<Fields>{})...);
}

struct adding_images {
  using options = mixup_options;
  static constexpr std::string_view name = "mixup";

  template <class View>
  static auto mixed(const View& images, const mixed_slots& slots, const options&, rng&, double& share) {
    using number = typename array_numbers<View>::type;
    static_assert(
        !std::is_void_v<number> && !std::is_integral_v<number>,
        "penstock: mixup adds images, which must be arrays of floating-point numbers; write to_float or "
        "normalize before batch, and no pitched");
    return blended_rows<number>{images.data(), images.shape(), slots, share};
  }
};

struct patching_images {
  using options = cutmix_options;
  static constexpr std::string_view name = "cutmix";

  template <class View>
  static auto mixed(const View& images, const mixed_slots& slots, const options& how, rng& random,
                    double& share) {
    using number = typename array_numbers<View>::type;
    static_assert(!std::is_void_v<number>,
                  "penstock: cutmix works on images of equal sizes; stack them, or use channels_first");
    const auto box = draw_cut_box(images.shape(), how.channels_first, random, share);
    return patched_rows<number>{images.data(), images.shape(), slots, box, how.channels_first};
  }
};

/// A function of `map_batch` that mixes the fields `Image` and `Label`.
template <class Image, class Label, class How>
class mixing_function {
 public:
  mixing_function(any_count classes, const typename How::options& options)
      : classes_(check_mixing(How::name, classes, options.alpha)), options_(options) {}

  [[nodiscard]] std::string describe() const { return std::string(How::name) + "_function"; }

  template <class Views>
  [[nodiscard]] auto operator()(const batch_columns<Views>& columns, rng& random) const {
    static_assert(any_record<Views>,
                  "penstock: mixup and cutmix work on records of an image and a label; name them with "
                  "fields<\"image\", \"label\"> or return a record from map");
    static_assert(has_field<Views, Image> && has_field<Views, Label>,
                  "penstock: the batch has no field of a name that mixup or cutmix is given, as in "
                  "mixup<\"image\", \"label\">(classes); see its element's type");
    static_assert(!std::is_same_v<Image, Label>,
                  "penstock: mixup and cutmix take the name of the images and that of their labels, which is "
                  "another one");
    double share = draw_beta(random, options_.alpha);
    const auto slots = mixed_slots::of(columns);
    const auto images =
        How::mixed(columns.template field<Views::template index_of<Image>>(), slots, options_, random, share);
    return with_mixed_fields<Image, Label>(
        std::type_identity<Views>{}, columns, images,
        mixed_labels(How::name, columns.template field<Views::template index_of<Label>>(), classes_, slots,
                     share));
  }

 private:
  std::size_t classes_;
  typename How::options options_;
};

}  // namespace detail

/// Made by `mixup<"image", "label">(classes)`, for `map_batch`.
template <class Image, class Label>
using mixup_function = detail::mixing_function<Image, Label, detail::adding_images>;
/// Made by `cutmix<"image", "label">(classes)`, for `map_batch`.
template <class Image, class Label>
using cutmix_function = detail::mixing_function<Image, Label, detail::patching_images>;

/// Mixes each image of a batch with the one before it, and the first with the last: `share` of the image
/// and 1 - `share` of its partner. One share is drawn for a batch, from Beta(alpha, alpha). The labels
/// become soft ones, of shape (n, classes) and type float: shares of classes, mixed as the images are.
/// torchvision: MixUp.
///
/// Give it to `map_batch`. Images are floating-point numbers of any shape; labels are integers from 0 to
/// `classes` - 1, or soft already. Other fields stay as they are. Slots without a sample take no part: their
/// images stay, and their labels have no share of any class.
/// The batch gets new columns, and needs memory for both; the images are read twice and written once, and
/// nothing is allocated after the first batches. The draw belongs to the step, as with all functions of
/// `map_batch`; its last bit depends on the C library's logarithm.
/// Source: Zhang et al., "mixup: beyond empirical risk minimization", 2018.
///
/// Throws `errc::argument` if there are no classes or `alpha` is not from 1e-6 to 1e6, and `errc::shape`
/// in the run for a label that is not a class.
///
///     using labelled = record<field<"image", std::array<float, 12>>, field<"label", int>>;
///     const auto make = [](std::uint64_t i) {
///       std::array<float, 12> image{};
///       image.fill(static_cast<float>(i));
///       return labelled(image, static_cast<int>(i % 10));
///     };
///     auto mixed = generated(1000, make) | batch(32, tail::drop) |
///                  map_batch(mixup<"image", "label">(10, {.alpha = 0.2}));
template <fixed_string Image, fixed_string Label>
[[nodiscard]] auto mixup(any_count classes, const mixup_options& options = {}) {
  return mixup_function<name_of<Image>, name_of<Label>>(classes, options);
}

/// Puts a rectangle of the image before it into each image of a batch, and of the last into the first. The
/// rectangle is one for a batch: its sides are sqrt(1 - share) of the image's, for a share from Beta(alpha,
/// alpha), its centre is anywhere, and what is outside the image is cut off. Labels are mixed by area: see
/// `mixup`, whose rules for labels, other fields, and slots without a sample hold here too. torchvision:
/// CutMix.
///
/// Images are numbers of any type, of shape (n, channels, height, width), or (n, height, width, channels)
/// with `.channels_first = false`.
/// Source: Yun et al., "CutMix: regularization strategy to train strong classifiers with localizable
/// features", 2019.
///
/// Throws as `mixup` does, and `errc::shape` in the run if images have another number of dimensions, or if
/// their shape shows that channels are not where the option says.
///
///     const auto last = map_batch(cutmix<"image", "label">(1000, {.channels_first = false}));
template <fixed_string Image, fixed_string Label>
[[nodiscard]] auto cutmix(any_count classes, const cutmix_options& options = {}) {
  return cutmix_function<name_of<Image>, name_of<Label>>(classes, options);
}

}  // namespace penstock::inline v0_1
