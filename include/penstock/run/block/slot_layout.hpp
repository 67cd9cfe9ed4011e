// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <cstring>

/// How stacked values lie in their slots, by collate policy, computed from the shape of a value.
namespace penstock::inline v0_1::detail {

// These throw `errc::shape` for a value that a policy cannot place.
[[noreturn, gnu::cold]] inline void refuse_channels(const extents& shape) {
  throw error(errc::shape, {"batch cannot move the channels to the front of a value of shape ",
                            to_string(shape), "; channels_first takes (height, width, channels)"})
      .in_stage("batch");
}
[[noreturn, gnu::cold]] inline void refuse_rows(const extents& shape, std::size_t alignment) {
  throw error(errc::shape,
              {"batch cannot lay out a value of shape ", to_string(shape), " in rows of ", alignment,
               " bytes; pitched takes arrays with at least one dimension that fit in memory"})
      .in_stage("batch");
}
[[noreturn, gnu::cold]] inline void refuse_rank(const extents& shape) {
  throw error(errc::shape, {"batch cannot add a dimension in front of a value of shape ", to_string(shape),
                            ", since arrays have at most eight; give it fewer in map before batch"})
      .in_stage("batch");
}

/// Throws if a batch of values of this shape would have more dimensions than an array can have.
inline void check_rank(const extents& shape) {
  if (shape.rank() == extents::max_rank) [[unlikely]]
    refuse_rank(shape);
}

/// The distance between rows of pitched arrays, in elements: the smallest that is a whole number of elements
/// and a multiple of `alignment` bytes, which is a power of two.
[[nodiscard]] constexpr std::uint64_t pitch_in_elements(const extents& shape, std::size_t element_bytes,
                                                        std::size_t alignment) noexcept {
  // the largest power of two that divides it
  const std::size_t common = element_bytes & (~element_bytes + 1);
  const std::uint64_t step = common < alignment ? alignment / common : 1;
  const std::uint64_t row = shape[shape.rank() - 1];
  return row / step * step + (row % step == 0 ? 0 : step);
}
[[nodiscard]] constexpr std::uint64_t rows_in(const extents& shape) noexcept {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}
/// Elements of a slot for pitched arrays of a shape, including its gaps.
[[nodiscard]] constexpr std::uint64_t pitched_elements(const extents& shape, std::size_t element_bytes,
                                                       std::size_t alignment) noexcept {
  return shape.rank() == 0 ? 1 : rows_in(shape) * pitch_in_elements(shape, element_bytes, alignment);
}

/// Whether the size in bytes of pitched arrays of a shape can be represented. A length of 0 does not excuse
/// the others: their strides must be representable too.
[[nodiscard]] constexpr bool pitched_can_lie(const extents& shape, std::size_t element_bytes,
                                             std::size_t alignment) noexcept {
  const std::uint64_t maximum = ~std::uint64_t{0} / 4 / element_bytes;
  if (shape.rank() == 0 || shape[shape.rank() - 1] > maximum) return false;
  std::uint64_t elements = pitch_in_elements(shape, element_bytes, alignment);
  for (std::size_t i = shape.rank() - 1; elements <= maximum && i-- > 0;) {
    if (shape[i] == 0) continue;
    if (elements == 0) elements = 1;
    if (shape[i] > maximum / elements) return false;
    elements *= shape[i];
  }
  return elements <= maximum;
}

/// Row-major and dense. Sizes and strides are in elements of `element_bytes`.
struct dense_slots {
  /// Throws if a value of this shape cannot be laid out; the members below return something for every shape.
  static void check(const extents& /*shape*/, std::size_t /*element_bytes*/) {}
  /// The shape that a slot has.
  [[nodiscard]] static constexpr extents shown(const extents& shape) noexcept { return shape; }
  /// Elements of a slot, including its gaps.
  [[nodiscard]] static constexpr std::uint64_t elements(const extents& shape,
                                                        std::size_t /*element_bytes*/) noexcept {
    return shape.elements();
  }
  /// Strides of a value in its slot.
  [[nodiscard]] static constexpr element_strides strides(const extents& shape,
                                                         std::size_t /*element_bytes*/) noexcept {
    return dense_strides(shape);
  }
};

template <class Policy>
struct slot_layout : dense_slots {};

template <>
struct slot_layout<channels_first_policy> : dense_slots {
  static void check(const extents& shape, std::size_t /*element_bytes*/) {
    if (shape.rank() != 3) [[unlikely]]
      refuse_channels(shape);
  }
  [[nodiscard]] static constexpr extents shown(const extents& shape) noexcept {
    return shape.rank() == 3 ? extents(shape[2], shape[0], shape[1]) : shape;
  }
  [[nodiscard]] static constexpr element_strides strides(const extents& shape,
                                                         std::size_t /*element_bytes*/) noexcept {
    if (shape.rank() != 3) return dense_strides(shape);
    return {static_cast<std::int64_t>(shape[1]), 1, static_cast<std::int64_t>(shape[0] * shape[1])};
  }
};

template <std::size_t Alignment>
struct slot_layout<pitched_policy<Alignment>> : dense_slots {
  static void check(const extents& shape, std::size_t element_bytes) {
    if (!pitched_can_lie(shape, element_bytes, Alignment)) [[unlikely]]
      refuse_rows(shape, Alignment);
  }
  [[nodiscard]] static constexpr std::uint64_t elements(const extents& shape,
                                                        std::size_t element_bytes) noexcept {
    return pitched_elements(shape, element_bytes, Alignment);
  }
  [[nodiscard]] static constexpr element_strides strides(const extents& shape,
                                                         std::size_t element_bytes) noexcept {
    element_strides strides{};
    if (shape.rank() == 0) return strides;
    std::size_t i = shape.rank() - 1;
    strides[i] = 1;
    std::uint64_t step = pitch_in_elements(shape, element_bytes, Alignment);
    for (; i-- > 0; step *= shape[i]) strides[i] = static_cast<std::int64_t>(step);
    return strides;
  }
  /// Zeroes the gap after each row of a slot.
  static void clear_gaps(std::byte* slot, const extents& shape, std::size_t element_bytes) noexcept {
    if (shape.rank() == 0) return;
    const auto row = detail::to_size(shape[shape.rank() - 1]) * element_bytes;
    const auto pitch = detail::to_size(pitch_in_elements(shape, element_bytes, Alignment)) * element_bytes;
    if (row == pitch) return;
    for (std::uint64_t i = rows_in(shape); i > 0; --i, slot += pitch) std::memset(slot + row, 0, pitch - row);
  }
};

/// The strides of a column: the distance between slots, followed by the strides within one.
template <class Policy>
[[nodiscard]] constexpr element_strides column_strides(const extents& shape,
                                                       std::size_t element_bytes) noexcept {
  using layout = slot_layout<Policy>;
  const element_strides inner = layout::strides(shape, element_bytes);
  element_strides strides{static_cast<std::int64_t>(layout::elements(shape, element_bytes))};
  for (std::size_t i = 1; i < strides.size(); ++i) strides[i] = inner[i - 1];
  return strides;
}

}  // namespace penstock::inline v0_1::detail
