// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <cassert>
#include <concepts>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

/// The place where a value that is not computed yet is to be written.
namespace penstock::inline v0_1 {

/// The kinds of memory, as DLPack distinguishes devices.
///   host      memory of this process (kDLCPU)
///   pinned    host memory that a device reads directly (kDLCUDAHost, kDLROCMHost)
///   shared    host memory that other processes also map (kDLCPU)
///   managed   memory that both host and device can address (kDLCUDAManaged)
///   device    memory that the host cannot write (kDLCUDA, kDLROCM)
enum class memory_space : std::uint8_t { host, pinned, shared, managed, device };

/// Whether the host can write to this memory.
[[nodiscard]] constexpr bool host_writes(memory_space space) noexcept {
  return space != memory_space::device;
}

namespace detail {

/// Copies elements between two arrays of equal shape that do not overlap. Copies whole runs at once; where
/// the element orders differ, copies in blocks that fit the nearest cache.
void copy_strided(std::byte* into, const element_strides& into_strides, const std::byte* from,
                  const element_strides& from_strides, const extents& shape,
                  std::size_t element_bytes) noexcept;
/// Throws `errc::shape`: the number of values does not match the array's number of elements.
[[noreturn]] void refuse_count(const extents& shape, std::size_t given);

}  // namespace detail

/// Where an array is to be written: a pointer, the array's shape, its strides, and the kind of memory. The
/// argument of an array expression's `write_to`; a value type, best passed by reference.
///
/// The shape is the array's own, regardless of the order of elements in memory: for a (height, width,
/// channels) picture that is stored in its slot as (channels, height, width), the strides are (width, 1,
/// height * width). Most destinations are `dense()`. Only then is `values()` a single span of all elements,
/// and only then may you write them one after another from `data()`: check first, or write with `copy_from`,
/// `fill_from` or by index. Never write to the gaps between elements.
///
/// The caller of `write_to` must provide memory that the host can write, unless the expression is known to
/// write elsewhere. Cost: no allocation; copying to a dense destination is a memcpy.
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
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "penstock: a destination holds numbers, or other trivially copyable values, and they are "
                "not const");

 public:
  using value_type = T;

  constexpr destination() = default;
  /// A dense destination.
  constexpr destination(T* data, const extents& shape, memory_space space = memory_space::host) noexcept
      : data_(data), shape_(shape), space_(space) {}
  constexpr destination(T* data, const extents& shape, const element_strides& strides,
                        memory_space space = memory_space::host) noexcept
      : data_(data), shape_(shape), strides_(strides), space_(space), dense_(is_dense(shape, strides)) {}

  /// The element whose indexes are all 0; if `dense()`, the other elements follow it.
  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr std::size_t rank() const noexcept { return shape_.rank(); }
  /// In elements.
  [[nodiscard]] constexpr element_strides strides() const noexcept {
    return dense_ ? dense_strides(shape_) : strides_;
  }
  [[nodiscard]] constexpr memory_space space() const noexcept { return space_; }
  /// Whether the destination is row-major and has no gaps.
  [[nodiscard]] constexpr bool dense() const noexcept { return dense_; }
  /// All elements. The destination must be `dense()`.
  [[nodiscard]] constexpr std::span<T> values() const noexcept {
    assert(dense_ && "penstock: values() of a destination that is not dense");
    return {data_, detail::to_size(shape_.elements())};
  }
  [[nodiscard]] constexpr strided_view<T> view() const noexcept { return {data_, shape_, strides()}; }
  /// Part `i` along the first dimension. The destination must have at least one dimension.
  [[nodiscard]] constexpr destination operator[](std::size_t i) const noexcept {
    const strided_view<T> part = view()[i];
    return {part.data(), part.shape(), part.strides(), space_};
  }
  /// The element at these indexes, one per dimension.
  template <std::integral... Is>
  [[nodiscard]] constexpr T& operator()(Is... indexes) const noexcept {
    return view()(indexes...);
  }

  /// Copies values that are stored row-major without gaps. Throws `errc::shape` unless their number matches
  /// the shape.
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
  /// Fills the elements in row-major order with the results of `next()`.
  template <class F>
    requires std::convertible_to<decltype(std::declval<F&>()()), T>
  constexpr void fill_from(F&& next) const {
    if (dense_) {
      for (T& value : values()) value = static_cast<T>(next());
    } else if (rank() == 1) {
      for (std::uint64_t i = 0; i < shape_[0]; ++i)
        data_[static_cast<std::int64_t>(i) * strides_[0]] = static_cast<T>(next());
    } else {
      for (std::uint64_t i = 0; i < shape_[0]; ++i) (*this)[detail::to_size(i)].fill_from(next);
    }
  }

 private:
  T* data_ = nullptr;
  extents shape_;
  element_strides strides_{};  // used only if not dense
  memory_space space_ = memory_space::host;
  bool dense_ = true;
};

namespace detail {

/// Lets an array write itself: by `write(data)` if the destination is dense, otherwise as a copy of what
/// `finish()`
/// returns.
template <class T, class Write, class Finish>
void write_or_copy(const destination<T>& into, Write&& write, Finish&& finish) {
  if (into.dense())
    write(into.data());
  else
    into.copy_from(finish());
}

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/destination.ipp>
#endif
