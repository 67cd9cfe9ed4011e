// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

/// Where a value that is not computed yet is wanted.
namespace penstock::inline v0_1 {

/// Whose memory it is, as DLPack tells devices apart.
///   host      memory of this process (kDLCPU)
///   pinned    memory of the host that a device reads by itself (kDLCUDAHost, kDLROCMHost)
///   shared    memory of the host that other processes have too (kDLCPU)
///   managed   memory that host and device both address (kDLCUDAManaged)
///   device    memory that the host cannot write (kDLCUDA, kDLROCM)
enum class memory_space : std::uint8_t { host, pinned, shared, managed, device };

/// Whether a processor can write there.
[[nodiscard]] constexpr bool host_writes(memory_space space) noexcept {
  return space != memory_space::device;
}

namespace detail {

/// Copies elements between arrays of one shape, of which neither overlaps the other. Runs are copied at once;
/// where the orders of the elements differ, in pieces that stay in the nearest cache.
void copy_strided(std::byte* into, const element_strides& into_strides, const std::byte* from,
                  const element_strides& from_strides, const extents& shape,
                  std::size_t element_bytes) noexcept;
/// Throws `errc::shape`: values were given for an array that has another number of elements.
[[noreturn]] void refuse_count(const extents& shape, std::size_t given);

}  // namespace detail

/// Where an array is to be written: a pointer, the array's shape, how far its elements are apart, and whose
/// memory it is. What `write_to` of an array expression gets; a value, to be passed on by reference.
///
/// The shape is the array's own, whatever order the elements have in memory: of a picture (height, width,
/// channels) that shall be (channels, height, width) in its slot, the strides are (width, 1, height * width).
/// Most destinations are `dense()`. Only then is `values()` one span of all elements, and may they be written
/// one after another from `data()` on: ask first, or write with `copy_from`, `fill_from` or by index. Gaps
/// between elements must not be written.
///
/// Whoever asks for the values gives memory that the host can write, in whatever space, unless the expression
/// is known to write to others. Cost: no allocation; copying to a dense one is a memcpy.
///
///     struct ramp {
///       using unfinished = void;
///       using value_type = float;
///       extents size;
///       [[nodiscard]] extents shape() const { return size; }
///       void write_to(const destination<float>& into) const {
///         into.fill_from([next = 0.0f]() mutable { return next++; });
///       }
///     };
template <class T>
class destination {
  static_assert(
      std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
      "penstock: a destination is of numbers, or of other values that are copied as bytes, and is no "
      "view of constants");

 public:
  using value_type = T;

  constexpr destination() = default;
  /// A dense one.
  constexpr destination(T* data, const extents& shape, memory_space space = memory_space::host) noexcept
      : data_(data), shape_(shape), space_(space) {}
  constexpr destination(T* data, const extents& shape, const element_strides& strides,
                        memory_space space = memory_space::host) noexcept
      : data_(data), shape_(shape), strides_(strides), space_(space), dense_(is_dense(shape, strides)) {}

  /// Where the element goes whose indexes are all 0; the others follow it where this is `dense()`.
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape_.rank(); }
  /// In elements.
  [[nodiscard]] constexpr element_strides strides() const noexcept {
    return dense_ ? dense_strides(shape_) : strides_;
  }
  [[nodiscard]] constexpr memory_space space() const noexcept { return space_; }
  /// Whether it is row-major and has no gaps.
  [[nodiscard]] constexpr bool dense() const noexcept { return dense_; }
  /// All elements. It must be `dense()`.
  [[nodiscard]] constexpr std::span<T> values() const noexcept {
    assert(dense_ && "penstock: values() of a destination that is not dense");
    return {data_, static_cast<std::size_t>(shape_.elements())};
  }
  [[nodiscard]] constexpr strided_view<T> view() const noexcept { return {data_, shape_, strides()}; }
  /// Part `i` along the first length; there must be one.
  [[nodiscard]] constexpr destination operator[](std::size_t i) const noexcept {
    const strided_view<T> part = view()[i];
    return {part.data(), part.shape(), part.strides(), space_};
  }
  /// The element at these indexes, one for each length.
  template <std::integral... Is>
  [[nodiscard]] constexpr T& operator()(Is... indexes) const noexcept {
    return view()(indexes...);
  }

  /// Copies values that lie row-major without gaps. Throws `errc::shape` unless there are as many as the
  /// shape has.
  void copy_from(std::span<const T> values) const {
    if (values.size() != shape_.elements()) [[unlikely]]
      detail::refuse_count(shape_, values.size());
    if (dense_) [[likely]] {
      if (!values.empty()) std::memcpy(static_cast<void*>(data_), values.data(), values.size_bytes());
    } else {
      copy_from(strided_view<const T>(values.data(), shape_, dense_strides(shape_)));
    }
  }
  template <class U>
    requires std::is_same_v<std::remove_const_t<U>, T>
  void copy_from(const tensor_view<U>& values) const {
    copy_from(std::span<const T>(values.values()));
  }
  /// Copies an array of the same shape.
  void copy_from(const strided_view<const T>& values) const noexcept {
    detail::copy_strided(reinterpret_cast<std::byte*>(data_), strides(),
                         reinterpret_cast<const std::byte*>(values.data()), values.strides(), shape_,
                         sizeof(T));
  }
  /// Writes what `next()` gives to one element after another, row-major.
  template <class F>
    requires std::convertible_to<decltype(std::declval<F&>()()), T>
  constexpr void fill_from(F&& next) const {
    if (dense_) {
      for (T& value : values()) value = static_cast<T>(next());
    } else if (rank() == 1) {
      for (std::uint64_t i = 0; i < shape_[0]; ++i)
        data_[static_cast<std::int64_t>(i) * strides_[0]] = static_cast<T>(next());
    } else {
      for (std::uint64_t i = 0; i < shape_[0]; ++i) (*this)[static_cast<std::size_t>(i)].fill_from(next);
    }
  }

 private:
  T* data_ = nullptr;
  extents shape_;
  element_strides strides_{};  // only where it is not dense
  memory_space space_ = memory_space::host;
  bool dense_ = true;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/destination.ipp>
#endif
