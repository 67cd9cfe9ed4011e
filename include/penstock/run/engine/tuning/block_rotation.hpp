// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {

/// How many blocks a run keeps open ahead of its consumer: all that it may, or the fewest that keep its
/// workers at work.
///
/// Large blocks that are used in turn push each other out of the processor's cache, and each batch then goes
/// through memory; of few, the one returned last is used again. Many let the workers run ahead, which helps a
/// consumer that sometimes waits and sometimes does not. So where it waits, both are tried for 64 blocks
/// each, and the few are kept if they take an eighth less time. That is asked again after 1024 blocks, and
/// ever less often while the answer stays the same. The first blocks are not judged, because their memory is
/// new, nor is a trial in which the consumer paused, as it may between two epochs.
/// Threads: the consumer's.
class block_rotation {
 public:
  /// Always `maximum`, until `begin`.
  explicit block_rotation(std::size_t maximum) noexcept : maximum_(maximum), few_(maximum) {}

  /// Begins to look, for workers that share blocks of so many grains.
  void begin(std::size_t workers, std::uint64_t grains) noexcept {
    // One block is finished while the next is begun, and each worker finds one more grain.
    const std::uint64_t beyond = 2 * workers / std::max<std::uint64_t>(1, grains);
    few_ = static_cast<std::size_t>(std::min<std::uint64_t>(maximum_, 2 + beyond));
  }
  [[nodiscard]] bool looks() const noexcept { return few_ != maximum_; }
  /// The number of blocks to keep open.
  [[nodiscard]] std::size_t open() const noexcept { return uses_few_ ? few_ : maximum_; }

  /// The consumer took a block at `now`, and has waited so long in the whole run. Nanoseconds.
  void took(std::uint64_t waited, std::uint64_t now) noexcept {
    if (!looks()) return;
    ++blocks_;
    if (decided_) {
      if (blocks_ == kept_) begin_trial(false);
    } else if (blocks_ == settling) {
      begun_ = now;
      waited_before_ = waited;
      longest_ = 0;
    } else if (blocks_ > settling) {
      longest_ = std::max(longest_, now - last_);
      if (blocks_ == settling + trial) end_trial(now - begun_, waited - waited_before_);
    }
    last_ = now;
  }

 private:
  static constexpr std::uint32_t first = 256, settling = 8, trial = 64, least_kept = 1024, max_kept = 65'536;

  void begin_trial(bool second) noexcept {
    decided_ = false;
    second_ = second;
    blocks_ = 0;
  }
  void end_trial(std::uint64_t lasted, std::uint64_t waited) noexcept {
    // A consumer may find all open blocks finished, and then wait for as many: only what takes longer is a
    // pause.
    if (longest_ / std::max<std::size_t>(8, maximum_) > lasted / trial) return hold(chose_few_);
    (uses_few_ ? with_few_ : with_most_) = lasted;
    const bool content = !uses_few_ && waited < lasted / 16;
    if (!second_ && !content) {
      uses_few_ = !uses_few_;
      return begin_trial(true);
    }
    const bool few = second_ && with_few_ < with_most_ - with_most_ / 8;
    kept_ = few == chose_few_ ? std::clamp(2 * kept_, least_kept, max_kept) : least_kept;
    hold(few);
  }
  void hold(bool few) noexcept {
    uses_few_ = chose_few_ = few;
    decided_ = true;
    blocks_ = 0;
  }

  std::size_t maximum_, few_;
  bool uses_few_ = false, chose_few_ = false;  // now, and by the last decision
  bool decided_ = true, second_ = false;       // between two decisions: whether this is the second trial
  std::uint32_t kept_ = first;                 // how many blocks the decision holds
  std::uint32_t blocks_ = 0;                   // since the decision, or since the trial began
  std::uint64_t begun_ = 0, waited_before_ = 0;
  std::uint64_t last_ = 0, longest_ = 0;        // when the last block was taken; the longest time for one
  std::uint64_t with_few_ = 0, with_most_ = 0;  // how long a trial took
};

}  // namespace penstock::inline v0_1
