// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

/// What `get<"name">(batch)` gives, by collate policy. Views: they live as long as the batch is held.
namespace penstock::inline v0_1 {

/// Values of different lengths, one sample's after another's.
template <class T>
class ragged_view {
 public:
  ragged_view() = default;
  ragged_view(const T* values, const std::uint64_t* offsets, const extents* shapes, std::size_t size) noexcept
      : values_(values), offsets_(offsets), shapes_(shapes), size_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// All values: those of sample i are [offsets()[i], offsets()[i + 1]).
  [[nodiscard]] std::span<const T> values() const noexcept {
    return {values_, size_ == 0 ? 0 : static_cast<std::size_t>(offsets_[size_])};
  }
  [[nodiscard]] std::span<const std::uint64_t> offsets() const noexcept { return {offsets_, size_ + 1}; }
  [[nodiscard]] std::span<const T> operator[](std::size_t i) const noexcept {
    return {values_ + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
  }
  [[nodiscard]] const extents& shape(std::size_t i) const noexcept { return shapes_[i]; }

 private:
  const T* values_ = nullptr;
  const std::uint64_t* offsets_ = nullptr;
  const extents* shapes_ = nullptr;
  std::size_t size_ = 0;
};

/// Arrays padded with zeros to the longest along their first length.
template <class T>
class padded_view {
 public:
  padded_view() = default;
  padded_view(tensor_view<const T> values, const std::uint64_t* lengths, const std::uint8_t* mask) noexcept
      : values_(values), lengths_(lengths), mask_(mask) {}

  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(values_.shape()[0]); }
  /// (samples, longest, ...).
  [[nodiscard]] const tensor_view<const T>& values() const noexcept { return values_; }
  [[nodiscard]] const extents& shape() const noexcept { return values_.shape(); }
  /// How long each sample is along the padded length.
  [[nodiscard]] std::span<const std::uint64_t> lengths() const noexcept { return {lengths_, size()}; }
  /// (samples, longest): 1 where there is a value, 0 where there is padding.
  [[nodiscard]] tensor_view<const std::uint8_t> mask() const noexcept {
    return {mask_, extents(values_.shape()[0], values_.shape()[1])};
  }
  /// The values of sample i without its padding.
  [[nodiscard]] std::span<const T> operator[](std::size_t i) const noexcept {
    const tensor_view<const T> row = values_[i];
    const std::uint64_t inner = row.shape().drop_front().elements();
    return {row.data(), static_cast<std::size_t>(lengths_[i] * inner)};
  }

 private:
  tensor_view<const T> values_;
  const std::uint64_t* lengths_ = nullptr;
  const std::uint8_t* mask_ = nullptr;
};

}  // namespace penstock::inline v0_1
