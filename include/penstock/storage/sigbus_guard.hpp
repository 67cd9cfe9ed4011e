// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// One of the process's guarded ranges of addresses.
struct guarded_range {
  static constexpr std::uintptr_t nothing_lost = std::numeric_limits<std::uintptr_t>::max();

  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<std::uintptr_t> lost{nothing_lost};  // the lowest lost address
  std::atomic<bool> writable{false};               // whether the zeros may be written to
};

/// Orders the reads of a mapping before this one ahead of those after it. On x86 the processor does that, and
/// only the compiler needs to be told; a fence would make the thread sanitizer warn.
inline void order_reads() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  std::atomic_signal_fence(std::memory_order_acquire);
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

/// Takes a free range; the first one installs the handler.
[[nodiscard]] guarded_range& guard_range(std::uintptr_t begin, std::uintptr_t end, bool writable);

}  // namespace detail

/// Turns a mapped file that shrinks into an error instead of the end of the process: guards one mapping.
///
/// Touching a page that is no longer in the mapped file raises SIGBUS. The first guard of a process installs
/// a handler: for a fault within a guarded range it maps zeros there, up to the end of the range, and from
/// then on `lost` returns where; the read resumes. If `lost` then returns a place, discard what was read. Any
/// other SIGBUS goes to the previous handler, or ends the process as before. The handler stays when the last
/// guard goes. A program that later installs its own handler for SIGBUS must pass on what it does not
/// recognise, as this one does.
///
/// Not noticed: bytes lost within the last remaining page, which the system reads as zeros. The file's size
/// reveals those; `mapped_file` with `checked` and `guarded` checks it before and after.
///
/// In: a range that is mapped from the beginning of a page, and stays mapped while the guard lives. Cost: two
/// system calls for the first guard, a walk over the others for each; `lost` is one load; a fault costs a
/// signal and a call of mmap.
/// Threads: any number may read, even while the signal arrives. Throws std::bad_alloc.
/// Normally you use it through `mapped_file_options::guarded`; use it directly for your own mappings.
class sigbus_guard {
 public:
  sigbus_guard() = default;
  explicit sigbus_guard(bytes_view mapped) : sigbus_guard(mapped, false) {}
  /// Of a mapping that is written to: what is written to lost pages is seen by this process alone.
  explicit sigbus_guard(mutable_bytes mapped) : sigbus_guard(mapped, true) {}
  sigbus_guard(sigbus_guard&& other) noexcept
      : range_(std::exchange(other.range_, nullptr)), begin_(other.begin_) {}
  sigbus_guard& operator=(sigbus_guard&& other) noexcept {
    std::swap(range_, other.range_);
    std::swap(begin_, other.begin_);
    return *this;
  }
  ~sigbus_guard() {
    if (range_ != nullptr) range_->begin.store(0, std::memory_order_release);
  }

  /// Where the first lost page begins, in bytes from the beginning of the range; empty if none is lost.
  [[nodiscard]] std::optional<std::uint64_t> lost() const noexcept {
    if (range_ == nullptr) return std::nullopt;
    const std::uintptr_t at = range_->lost.load(std::memory_order_acquire);
    if (at == detail::guarded_range::nothing_lost) return std::nullopt;
    return at - begin_;
  }

 private:
  sigbus_guard(bytes_view mapped, bool writable) {
    if (mapped.empty()) return;
    begin_ = reinterpret_cast<std::uintptr_t>(mapped.data());
    range_ = &detail::guard_range(begin_, begin_ + mapped.size(), writable);
  }

  detail::guarded_range* range_ = nullptr;
  std::uintptr_t begin_ = 0;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/sigbus_guard.ipp>
#endif
