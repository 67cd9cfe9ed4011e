// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <type_traits>

namespace penstock::inline v0_1 {

/// An array of numbers on a device, not owned: `device_view<"jpg">(batch)`. The host has its shape and
/// address; only the device can read it.
template <class T>
class device_array {
 public:
  using value_type = std::remove_cv_t<T>;

  constexpr device_array() = default;
  constexpr device_array(T* data, const extents& shape) noexcept
      : device_array(data, shape, dense_strides(shape)) {}
  constexpr device_array(T* data, const extents& shape, const element_strides& strides) noexcept
      : data_(data), shape_(shape), strides_(strides) {}

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  /// The distance between neighbours along each dimension, in elements.
  [[nodiscard]] constexpr const element_strides& strides() const noexcept { return strides_; }
  /// Whether it is row-major and has no gaps.
  [[nodiscard]] constexpr bool dense() const noexcept { return is_dense(shape_, strides_); }
  /// The number of elements.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return detail::to_size(shape_.elements()); }

 private:
  T* data_ = nullptr;
  extents shape_;
  element_strides strides_{};
};

}  // namespace penstock::inline v0_1
