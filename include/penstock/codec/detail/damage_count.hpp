// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <cstdint>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Counts the damaged images that a codec's scratch has met and made do with, each of them once, however many
/// of its parts are read.
class damage_count {
 public:
  /// Damaged images of which pixels were delivered, because of `recover`; the run's counters add them up.
  std::uint64_t warnings = 0;

  /// Another image begins.
  void next_image() noexcept { damaged_ = false; }
  /// The image is damaged.
  void damage() noexcept { warnings += std::exchange(damaged_, true) ? 0 : 1; }

 private:
  bool damaged_ = false;
};

}  // namespace penstock::inline v0_1::detail
