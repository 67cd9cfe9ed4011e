// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/image/lazy_image.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock_test {

namespace ps = penstock;

/// A lazy image over pixels in memory, which notes what is read of it. Copies share the pixels and the notes;
/// several threads may use it.
///
///     const test_image<std::uint8_t, 3> image({640, 480}, 7);   // noise; seed 7
///     image.reads()        how often something was read
///     image.last_part()    what was read last
///     image.values()       all values of the image, without gaps
template <class T, std::size_t Channels>
class test_image : public ps::image_expression<test_image<T, Channels>, T, Channels> {
 public:
  using base = ps::image_expression<test_image<T, Channels>, T, Channels>;
  using typename base::view_type;

  /// Noise, which depends on the size and the seed only. Rows are `gap` values apart.
  test_image(ps::image_size size, std::uint64_t seed, std::size_t gap = 0)
      : state_(std::make_shared<state>(size, gap)) {
    ps::rng random(seed, 0, 0);
    for (std::size_t y = 0; y < size.height; ++y)
      for (std::size_t i = 0; i < size.width * Channels; ++i) state_->row(y)[i] = value(random());
  }
  /// These values, row by row, without gaps.
  test_image(ps::image_size size, const std::vector<T>& values, std::size_t gap = 0)
      : state_(std::make_shared<state>(size, gap)) {
    const std::size_t row = size.width * Channels;
    for (std::size_t y = 0; y < size.height; ++y)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(y * row), row, state_->row(y));
  }
  /// `f(x, y, channel)` for each value.
  template <class F>
    requires std::is_invocable_v<F&, std::size_t, std::size_t, std::size_t>
  test_image(ps::image_size size, F&& f, std::size_t gap = 0) : state_(std::make_shared<state>(size, gap)) {
    for (std::size_t y = 0; y < size.height; ++y)
      for (std::size_t x = 0; x < size.width; ++x)
        for (std::size_t c = 0; c < Channels; ++c)
          state_->row(y)[x * Channels + c] = static_cast<T>(f(x, y, c));
  }

  [[nodiscard]] ps::image_size size() const { return state_->size; }
  [[nodiscard]] view_type read(const ps::image_part& part) const {
    const std::lock_guard lock(state_->guard);
    ++state_->reads;
    state_->last = part;
    state_->outside = state_->outside || !part.within(state_->size);
    return view_type(state_->values.data(), state_->size, state_->pitch).part(part);
  }
  [[nodiscard]] ps::image_scratch& memory() const { return state_->memory; }

  [[nodiscard]] std::size_t reads() const { return state_->reads; }
  [[nodiscard]] ps::image_part last_part() const { return state_->last; }
  /// Whether something was asked for that is not in the image.
  [[nodiscard]] bool read_outside() const { return state_->outside; }
  void forget_reads() const {
    state_->reads = 0;
    state_->last = {};
  }
  [[nodiscard]] T at(std::size_t x, std::size_t y, std::size_t c) const {
    return state_->row(y)[x * Channels + c];
  }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all;
    for (std::size_t y = 0; y < size().height; ++y)
      all.insert(all.end(), state_->row(y), state_->row(y) + size().width * Channels);
    return all;
  }

 private:
  struct state {
    state(ps::image_size s, std::size_t gap)
        : size(s), pitch(s.width * Channels + gap), values(pitch * s.height, T(77)) {}
    [[nodiscard]] T* row(std::size_t y) { return values.data() + y * pitch; }

    ps::image_size size;
    std::size_t pitch;
    std::vector<T> values;
    std::size_t reads = 0;
    ps::image_part last;
    bool outside = false;
    ps::image_scratch memory;
    std::mutex guard;
  };
  static T value(std::uint64_t bits) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(static_cast<double>(bits >> 40) * 0x1p-24);
    else
      return static_cast<T>(bits >> 32);
  }

  std::shared_ptr<state> state_;
};

/// What `read(part)` gives, as values without gaps.
template <ps::lazy_image I>
auto read_values(const I& image, const ps::image_part& part) {
  const auto pixels = image.read(part);
  std::vector<typename I::value_type> all;
  for (std::size_t y = 0; y < pixels.height(); ++y)
    all.insert(all.end(), pixels.row(y), pixels.row(y) + pixels.row_values());
  return all;
}
template <ps::lazy_image I>
auto read_values(const I& image) {
  return read_values(image, ps::whole_of(image.size()));
}

/// How a destination lies in memory.
enum class layout { hwc, chw, pitched, flipped };

/// What `draw(part, ...)` writes to a destination of this layout, in the order of HWC. Adds a value to what
/// is returned if something was written beside the destination.
template <ps::lazy_image I>
auto drawn_values(const I& image, const ps::image_part& part, layout how = layout::hwc) {
  using value = typename I::value_type;
  constexpr std::int64_t channels = I::channels;
  const std::int64_t w = part.width, h = part.height, margin = 64;
  const ps::extents shape(h, w, channels);
  ps::element_strides strides = ps::dense_strides(shape);
  std::int64_t first = margin, room = w * h * channels;
  if (how == layout::chw) strides = {w, 1, h * w};
  if (how == layout::pitched) strides = {w * channels + 5, channels, 1}, room += 5 * h;
  if (how == layout::flipped)
    strides = {-w * channels * 2, channels * 2, 2}, first += (h - 1) * w * channels * 2, room *= 2;
  std::vector<value> memory(static_cast<std::size_t>(room + 2 * margin), value(93));
  image.draw(part, ps::destination<value>(memory.data() + first, shape, strides));
  std::vector<value> all;
  for (std::int64_t y = 0; y < h; ++y)
    for (std::int64_t x = 0; x < w; ++x)
      for (std::int64_t c = 0; c < channels; ++c) {
        value& v = memory[static_cast<std::size_t>(first + y * strides[0] + x * strides[1] + c * strides[2])];
        all.push_back(v);
        v = value(93);
      }
  if (std::any_of(memory.begin(), memory.end(), [](value v) { return v != value(93); }))
    all.push_back(value(93));
  return all;
}
template <ps::lazy_image I>
auto drawn_values(const I& image, layout how = layout::hwc) {
  return drawn_values(image, ps::whole_of(image.size()), how);
}

/// Whether every way to get pixels of an image agrees: `read` and `draw`, whole and in parts, into all
/// layouts.
template <ps::lazy_image I>
[[nodiscard]] bool all_ways_agree(const I& image) {
  const ps::image_size size = image.size();
  const auto whole = read_values(image);
  for (const layout how : {layout::hwc, layout::chw, layout::pitched, layout::flipped})
    if (drawn_values(image, how) != whole) return false;
  const auto finished = image.finish();
  if (std::vector<typename I::value_type>(finished.flat().begin(), finished.flat().end()) != whole)
    return false;
  ps::rng random(size.width, size.height, 1);
  for (int i = 0; i < 12 && size.width != 0 && size.height != 0; ++i) {
    ps::image_part part;
    part.x = static_cast<std::uint32_t>(random.below(size.width));
    part.y = static_cast<std::uint32_t>(random.below(size.height));
    part.width = static_cast<std::uint32_t>(1 + random.below(size.width - part.x));
    part.height = static_cast<std::uint32_t>(1 + random.below(size.height - part.y));
    std::vector<typename I::value_type> expected;
    const std::size_t row = part.width * I::channels;
    for (std::size_t y = part.y; y < std::size_t{part.y} + part.height; ++y) {
      const auto from = whole.begin() + static_cast<std::ptrdiff_t>((y * size.width + part.x) * I::channels);
      expected.insert(expected.end(), from, from + static_cast<std::ptrdiff_t>(row));
    }
    if (read_values(image, part) != expected) return false;
    if (drawn_values(image, part, i % 2 == 0 ? layout::hwc : layout::chw) != expected) return false;
  }
  return true;
}

}  // namespace penstock_test
