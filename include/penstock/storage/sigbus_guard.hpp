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
  std::atomic<std::uintptr_t> lost{nothing_lost};  // the lowest address that was lost
};

/// Takes a free range, and puts the handler into the process when it is the first one.
[[nodiscard]] guarded_range& guard_range(std::uintptr_t begin, std::uintptr_t end);

}  // namespace detail

/// Makes a mapped file that shrinks an error instead of the end of the process: guards one mapping.
///
/// Touching a page of a mapped file that is no longer in the file is SIGBUS. The first guard of a process
/// takes that signal: for a fault within a guarded range, zeros are mapped there, up to the end of the range,
/// and `lost` says from then on where; the reading goes on. What was read must be thrown away when `lost`
/// says so afterwards. Any other SIGBUS goes to the handler that was there before, or ends the process as
/// ever. The handler stays when the last guard goes. A program that sets a handler of its own for SIGBUS
/// later must pass on what it does not know, as this one does.
///
/// Not seen: bytes lost within the last page that stays, which the system reads as zeros. The file's size
/// tells of those; `mapped_file` with `checked` and `guarded` asks for it before and after.
///
/// In: a range that is mapped, from the beginning of a page, and stays so while the guard lives. Cost: two
/// system calls for the first guard, a walk over the others for each; `lost` is one load; a fault is a signal
/// and a call of mmap.
/// Threads: any number may read, also when the signal comes. Throws std::bad_alloc.
/// `mapped_file_options::guarded` is the way to use it; by itself it serves mappings of your own.
class sigbus_guard {
 public:
  sigbus_guard() = default;
  explicit sigbus_guard(bytes_view mapped) {
    if (mapped.empty()) return;
    begin_ = reinterpret_cast<std::uintptr_t>(mapped.data());
    range_ = &detail::guard_range(begin_, begin_ + mapped.size());
  }
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

  /// Where the first lost page begins, in bytes from the beginning of the range; nothing while all is there.
  [[nodiscard]] std::optional<std::uint64_t> lost() const noexcept {
    if (range_ == nullptr) return std::nullopt;
    const std::uintptr_t at = range_->lost.load(std::memory_order_acquire);
    if (at == detail::guarded_range::nothing_lost) return std::nullopt;
    return at - begin_;
  }

 private:
  detail::guarded_range* range_ = nullptr;
  std::uintptr_t begin_ = 0;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/sigbus_guard.ipp>
#endif
