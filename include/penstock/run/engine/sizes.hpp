// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/core/options.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/engine/detail/engine_parts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace penstock::inline v0_1 {

/// Plans of which every element is numbers, from a source of numbers.
template <class Plan>
inline constexpr bool light_plan =
    detail::all_fixed<typename plan_parts<Plan>::element>::value &&
    std::is_trivially_copyable_v<std::remove_cvref_t<typename Plan::source_type::element>> &&
    !unfinished<typename Plan::source_type::element>;

/// How large the pieces are into which a run cuts its work: arithmetic on what is known when it is opened. It
/// decides how fast a run is, never what it gives.
template <class Plan>
class run_sizes {
  using parts = plan_parts<Plan>;
  static constexpr bool light = light_plan<Plan>;
  static constexpr std::uint64_t element_bytes = light ? sizeof(typename parts::element) : 0;

 public:
  /// `sample_bytes`: bytes of a sample as the source knows it, 0 where it does not. `crowded`: threads share
  /// processors. `copies`: batches go to a device.
  run_sizes(const run_options& options, std::uint64_t sample_bytes, bool crowded, bool copies) noexcept
      : options_(options), sample_bytes_(sample_bytes), crowded_(crowded), copies_(copies) {}

  /// Batches of one block: one, but for small batches of numbers, where handing over costs more than
  /// evaluating. `slots`: of one batch.
  [[nodiscard]] std::size_t batches_per_block(std::uint64_t slots) const noexcept {
    if constexpr (parts::direct && light) {
      if (!copies_ && !options_.depth)
        return static_cast<std::size_t>(std::clamp<std::uint64_t>(light_slots() / slots, 1, 256));
    }
    return 1;
  }
  /// Blocks in flight: a few more than workers, so that they stay in the cache; more where threads share
  /// processors and the consumer is not woken for each. `slots`: of one block.
  [[nodiscard]] std::size_t depth(std::uint64_t slots) const noexcept {
    if (options_.depth) return std::max<std::size_t>(2, *options_.depth);
    if (*options_.workers == 0) return 2;
    const std::size_t few = std::max(4u, *options_.workers + 3);
    const std::uint64_t bytes = std::max(sample_bytes_, element_bytes) * slots;
    const bool small = sample_bytes_ != 0 && bytes <= 262'144;
    return crowded_ && small ? std::max<std::size_t>(few, std::min(16 * *options_.workers, 64u)) : few;
  }
  /// Slots that a worker takes at a time: 32 KB of payload or so, one where samples are large, a few where
  /// nothing is known. A chunk is taken whole. `slots`: of one block.
  [[nodiscard]] std::uint64_t grain(std::uint64_t slots) const noexcept {
    if constexpr (!parts::direct) return slots;
    if constexpr (light) return std::min<std::uint64_t>(slots, light_slots());
    return std::min<std::uint64_t>(
        slots, sample_bytes_ == 0 ? 8 : std::clamp<std::uint64_t>(32'768 / sample_bytes_, 1, 64));
  }
  /// Slots of a chunk.
  [[nodiscard]] std::uint64_t chunk(const Plan& p) const noexcept {
    if constexpr (light) return std::min<std::uint64_t>(light_slots(), 4096);
    if constexpr (parts::batched && parts::forward && !parts::decided)
      return std::min<std::uint64_t>(detail::at<parts::in::batch>(p.stages()).size, 4096);
    else
      return sample_bytes_ == 0 ? 16 : std::clamp<std::uint64_t>(65'536 / sample_bytes_, 1, 64);
  }

 private:
  /// Slots of a light plan that a worker takes at a time, and that a block holds at least: few where they
  /// stay in the nearest cache, many where changing threads costs more.
  [[nodiscard]] std::uint64_t light_slots() const noexcept {
    const std::uint64_t bytes = *options_.workers == 0 ? 16'384 : crowded_ ? 131'072 : 65'536;
    return std::max<std::uint64_t>(1, bytes / sizeof(typename parts::element));
  }

  run_options options_;
  std::uint64_t sample_bytes_;
  bool crowded_, copies_;
};

}  // namespace penstock::inline v0_1
