// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/image/operation.hpp>

namespace penstock::inline v0_1 {

/// An image as an array of shape (channels, height, width). It is no image any more: operations on images
/// come before `to_chw`.
template <lazy_image I>
class chw_array {
 public:
  using unfinished = void;
  using is_channels_first_array = void;
  using value_type = typename I::value_type;

  chw_array(const I& image, image_scratch& scratch) : image_(image), scratch_(&scratch) {}

  [[nodiscard]] extents shape() const {
    const image_size size = image_.size();
    return extents(I::channels, std::size_t{size.height}, std::size_t{size.width});
  }
  /// The image draws itself with the strides of its planes: nothing is moved twice.
  void write_to(const destination<value_type>& into) const {
    const image_size size = image_.size();
    const element_strides planes = into.strides();
    image_.write_to(destination<value_type>(
        into.data(), extents(std::size_t{size.height}, std::size_t{size.width}, I::channels),
        element_strides{planes[1], planes[2], planes[0]}, into.space()));
  }
  /// All values, without gaps, in the worker's scratch.
  [[nodiscard]] tensor_view<const value_type> finish() const {
    const extents all = shape();
    value_type* const dense = room_for<value_type>(scratch_->dense, detail::to_size(all.elements()));
    write_to(destination<value_type>(dense, all));
    return {dense, all};
  }

 private:
  I image_;
  image_scratch* scratch_;
};

class to_chw_operation : public detail::keeping_places<image_operation> {
 public:
  template <lazy_image I>
  [[nodiscard]] chw_array<std::remove_cvref_t<I>> operator()(const I& image,
                                                             const call<image_scratch>& c) const {
    return {image, c.scratch};
  }
};

/// Ends the operations on an image: an array of shape (channels, height, width), as PyTorch wants it. The
/// last operation writes its values there at once. torchvision: `ToImage` and `ToTensor` do this at the
/// beginning.
///
///     const auto last = to_chw();
[[nodiscard]] constexpr to_chw_operation to_chw() noexcept { return {}; }

}  // namespace penstock::inline v0_1
