// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <string_view>
#include <utility>

/// What codecs need whose values are decoded later than `decode` returns.
namespace penstock::inline v0_1::detail {

/// Calls `f`; its errors carry the stage as those of `decode` do. For what a codec does later than its
/// `decode`, in the lazy image or sound that it returned.
template <class F>
decltype(auto) naming_codec(std::string_view codec, F&& f) {
  try {
    return f();
  } catch (error& e) {
    e.in_stage(text({"decode<", codec, ">"}));
    throw;
  }
}

/// Counts the damaged images or sounds that a codec's scratch has met and made do with, each of them once,
/// however many of its parts are read.
class damage_count {
 public:
  /// Damaged ones of which something was delivered, because of `recover`; the run's counters add them up.
  std::uint64_t warnings = 0;

  void next() noexcept { damaged_ = false; }
  void damage() noexcept { warnings += std::exchange(damaged_, true) ? 0 : 1; }

 private:
  bool damaged_ = false;
};

}  // namespace penstock::inline v0_1::detail
