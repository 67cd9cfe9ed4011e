// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/orientation.hpp>
#include <penstock/image/pixels.hpp>

#include <cstddef>
#include <utility>

namespace penstock::inline v0_1::detail {

/// A lazy image of stored pixels that are turned when they are shown. `Pixels` is what a codec decodes a part
/// with: `pixels(part)` returns a view of a part of the stored image, valid until the next call, which may
/// lie in `memory().pixels`; `memory()` is the worker's scratch.
template <class Pixels, pixel_format Format>
class turned_image
    : public image_expression<turned_image<Pixels, Format>, typename Format::value_type, Format::channels> {
  using base = image_expression<turned_image, typename Format::value_type, Format::channels>;
  using value = typename Format::value_type;

 public:
  using typename base::view_type;

  turned_image(Pixels pixels, const image_size& stored, orientation turn)
      : pixels_(std::move(pixels)), stored_(stored), turn_(turn) {}

  /// As shown: after the orientation.
  [[nodiscard]] image_size size() const noexcept { return oriented(stored_, turn_); }
  [[nodiscard]] image_scratch& memory() const noexcept { return pixels_.memory(); }

  [[nodiscard]] view_type read(const image_part& part) const {
    if (part.width == 0 || part.height == 0) return {};
    const view_type view = pixels_(stored_part(part, stored_, turn_));
    if (turn_ == orientation::upright) return view;
    const std::size_t values = std::size_t{part.width} * part.height * Format::channels;
    value* const turned = room_for<value>(memory().work, values);
    const extents shape(std::size_t{part.height}, std::size_t{part.width}, Format::channels);
    orient_pixels(view, turn_, destination<value>(turned, shape));
    return {turned, part.size()};
  }
  void draw(const image_part& part, const destination<value>& into) const {
    if (part.width == 0 || part.height == 0) return;
    const view_type view = pixels_(stored_part(part, stored_, turn_));
    if (turn_ == orientation::upright)
      copy_pixels(view, into);
    else
      orient_pixels(view, turn_, into);
  }

 private:
  Pixels pixels_;
  image_size stored_;
  orientation turn_;
};

}  // namespace penstock::inline v0_1::detail
