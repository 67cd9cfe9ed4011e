// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/flat_json.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/run/block/batch_handle.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Where the images of an array are: the numbers of its dimensions.
struct image_axes {
  std::size_t rows, columns;
  std::optional<std::size_t> channels;
};

template <class T>
concept shown_pixel = std::same_as<T, std::uint8_t> || std::same_as<T, float> || std::same_as<T, half> ||
                      std::same_as<T, bfloat16>;

/// Whether an array of this shape is taken for a batch of images: four dimensions, channels (1 or 3) last or
/// second; of bytes, three dimensions are gray images.
template <shown_pixel T>
[[nodiscard]] std::optional<image_axes> axes_of_images(const extents& shape) {
  constexpr std::uint64_t smallest = 4;
  const auto colours = [&](std::size_t i) { return shape[i] == 1 || shape[i] == 3; };
  std::optional<image_axes> axes;
  if (shape.rank() == 4 && colours(3))
    axes = {1, 2, 3};
  else if (shape.rank() == 4 && colours(1))
    axes = {2, 3, 1};
  else if (shape.rank() == 3 && std::same_as<T, std::uint8_t>)
    axes = {1, 2, {}};
  if (axes && (shape[axes->rows] < smallest || shape[axes->columns] < smallest)) axes.reset();
  return axes;
}

/// Standard base64 with padding. Source: RFC 4648, section 4.
[[nodiscard]] inline std::string base64_text(const std::vector<std::uint8_t>& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string made;
  made.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) three = three << 8 | (k < left ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) made += k <= left ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return made;
}

/// Small pictures of the first images of a batch. The consumer of the run fills them in once they are asked
/// for, in its own thread, without an allocation and without a lock; the thread that asked then makes JSON of
/// them. Until it has, further batches are not looked at.
///
/// Cost: nothing to a run that nobody looks at; otherwise each time the copy of at most 16 images of 64 x 64
/// pixels, every n-th of the rows and columns of larger ones.
class batch_thumbnails {
 public:
  static constexpr std::size_t most = 16, side = 64;

  /// Asks for the next batch; for the one thread that also calls `take`.
  void begin() {
    if (state_.load(std::memory_order_acquire) != idle) return;
    values_.resize(most * side * side * 3);
    state_.store(wanted, std::memory_order_release);
  }
  /// The pictures as JSON, if there are new ones.
  [[nodiscard]] std::optional<std::string> take() {
    if (state_.load(std::memory_order_acquire) != filled) return {};
    std::string made = json();
    state_.store(idle, std::memory_order_relaxed);
    return made;
  }

  /// Forgets what nobody took. The consumer must not call `look` meanwhile.
  void drop() noexcept { state_.store(idle, std::memory_order_relaxed); }

  /// Consumer: shows a batch, if it has images.
  template <any_batch Batch>
  void look(const Batch& batch) noexcept {
    if (state_.load(std::memory_order_acquire) != wanted) return;
    try {
      using element = typename Batch::element;
      const bool found = [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        return (copy_field<Is>(batch) || ...);
      }(std::make_index_sequence<fields_of<element>()>{});
      epoch_ = batch.epoch(), step_ = batch.step(), of_ = batch.size();
      if (!found) count_ = 0;
    } catch (...) {  // a batch that cannot be looked at is shown as one without images
      count_ = 0;
    }
    state_.store(filled, std::memory_order_release);
  }

 private:
  enum : int { idle, wanted, filled };

  template <class Element>
  static constexpr std::size_t fields_of() {
    if constexpr (any_record<Element>)
      return Element::size;
    else
      return 1;
  }

  template <std::size_t I, class Batch>
  bool copy_field(const Batch& batch) {
    const auto view = batch.template field<I>();
    if constexpr (requires {
                    view.shape();
                    view.strides();
                    view.data();
                  }) {
      using pixel = std::remove_cvref_t<decltype(*view.data())>;
      if constexpr (shown_pixel<pixel>) {
        const auto axes = axes_of_images<pixel>(view.shape());
        if (!axes) return false;
        if constexpr (any_record<typename Batch::element>)
          field_ = Batch::element::template field_at<I>::name;
        copy(view.data(), view.shape(), view.strides(), *axes, std::min(most, batch.valid_size()));
        whole_ = std::same_as<pixel, std::uint8_t>;
        return true;
      }
    }
    return false;
  }

  template <class T>
  void copy(const T* data, const extents& shape, const auto& strides, const image_axes& at,
            std::size_t count) {
    const auto rows = to_size(shape[at.rows]);
    const auto columns = to_size(shape[at.columns]);
    const std::size_t every = (std::max(rows, columns) + side - 1) / side;
    count_ = count;
    height_ = (rows + every - 1) / every, width_ = (columns + every - 1) / every;
    channels_ = at.channels ? to_size(shape[*at.channels]) : 1;
    float* into = values_.data();
    const auto step = [&](std::size_t axis) { return static_cast<std::ptrdiff_t>(strides[axis]); };
    const std::ptrdiff_t to_row = step(at.rows) * static_cast<std::ptrdiff_t>(every);
    const std::ptrdiff_t to_column = step(at.columns) * static_cast<std::ptrdiff_t>(every);
    const std::ptrdiff_t to_channel = at.channels ? step(*at.channels) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const T* row = data + static_cast<std::ptrdiff_t>(i) * step(0);
      for (std::size_t y = 0; y < height_; ++y, row += to_row) {
        const T* one = row;
        for (std::size_t x = 0; x < width_; ++x, one += to_column)
          for (std::size_t c = 0; c < channels_; ++c)
            *into++ = static_cast<float>(one[static_cast<std::ptrdiff_t>(c) * to_channel]);
      }
    }
  }

  /// Bytes are shown as they are; other numbers from 0 to 1, or from the least to the greatest of them where
  /// they are beyond.
  [[nodiscard]] std::string json() const {
    const std::size_t size = count_ * height_ * width_ * channels_;
    float low = 0, high = whole_ ? 255.0F : 1.0F;
    for (std::size_t i = 0; i < size && !whole_; ++i)
      if (std::isfinite(values_[i])) low = std::min(low, values_[i]), high = std::max(high, values_[i]);
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
      const float scaled = 255 * ((values_[i] - low) / (high - low));
      bytes[i] = scaled >= 0 ? static_cast<std::uint8_t>(std::min(255.0F, scaled) + 0.5F) : std::uint8_t{0};
    }
    return text({"{\"field\":", json_quoted(field_), ",\"epoch\":", epoch_, ",\"step\":", step_,
                 ",\"of\":", of_, ",\"count\":", count_, ",\"height\":", height_, ",\"width\":", width_,
                 ",\"channels\":", channels_, ",\"pixels\":\"", base64_text(bytes), "\"}"});
  }

  std::atomic<int> state_{idle};
  std::vector<float> values_;
  std::string_view field_;
  std::uint64_t epoch_ = 0, step_ = 0;
  std::size_t of_ = 0, count_ = 0, height_ = 0, width_ = 0, channels_ = 0;
  bool whole_ = true;
};

}  // namespace penstock::inline v0_1::detail
