// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// The guarded ranges of the process, and the handler that looks for a fault in them. One for the process;
/// trivially destroyed, since a signal may come while it ends. The handler takes no lock and allocates
/// nothing.
class guarded_ranges {
 public:
  static constexpr std::uintptr_t nothing_lost = std::numeric_limits<std::uintptr_t>::max();

  struct range {
    std::atomic<std::uintptr_t> begin{0};  // 0: free
    std::atomic<std::uintptr_t> end{0};
    std::atomic<std::uintptr_t> lost{nothing_lost};  // the lowest address that was lost
  };

  static guarded_ranges& of_process() noexcept { return process_; }

  /// Takes a free range, and puts the handler in when it is the first one.
  [[nodiscard]] range& add(std::uintptr_t begin, std::uintptr_t end) {
    const std::scoped_lock lock(mutex_);
    install();
    range& found = free_range();
    found.lost.store(nothing_lost, std::memory_order_relaxed);
    found.end.store(end, std::memory_order_release);
    found.begin.store(begin, std::memory_order_release);
    return found;
  }
  static void remove(range& which) noexcept { which.begin.store(0, std::memory_order_release); }

 private:
  struct block {
    std::array<range, 256> ranges;
    std::atomic<block*> next{nullptr};
  };

  range& free_range() {
    for (block* at = &first_;; at = at->next.load(std::memory_order_relaxed)) {
      for (range& one : at->ranges) {
        if (one.begin.load(std::memory_order_relaxed) == 0) return one;
      }
      // Blocks stay: the handler may be in them.
      if (at->next.load(std::memory_order_relaxed) == nullptr)
        at->next.store(new block, std::memory_order_release);
    }
  }

  void install() noexcept {
    if (page_ != 0) return;
    page_ = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    ::sigaction(SIGBUS, nullptr, &previous_);
    struct sigaction ours {};
    ours.sa_sigaction = &on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(SIGBUS, &ours, nullptr);
  }

  static void on_signal(int number, siginfo_t* info, void* context) {
    const int kept = errno;
    const bool fault = info->si_code > 0;  // else another process sent it
    if (!fault || !process_.replace(reinterpret_cast<std::uintptr_t>(info->si_addr)))
      process_.pass_on(number, info, context, fault);
    errno = kept;
  }

  /// Puts zeros where the address is, to the end of its range: those pages are lost with it.
  bool replace(std::uintptr_t address) noexcept {
    for (block* at = &first_; at != nullptr; at = at->next.load(std::memory_order_acquire)) {
      for (range& one : at->ranges) {
        const std::uintptr_t begin = one.begin.load(std::memory_order_acquire);
        const std::uintptr_t end = one.end.load(std::memory_order_acquire);
        if (begin == 0 || address < begin || address >= end) continue;
        if (one.begin.load(std::memory_order_acquire) != begin) continue;  // the range was taken anew
        const std::uintptr_t page = address / page_ * page_;
        // Said before it is done: who reads zeros finds it said.
        std::uintptr_t lowest = one.lost.load();
        while (page < lowest && !one.lost.compare_exchange_weak(lowest, page)) {
        }
        return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
      }
    }
    return false;
  }

  /// What would have happened without us.
  void pass_on(int number, siginfo_t* info, void* context, bool fault) noexcept {
    if ((previous_.sa_flags & SA_SIGINFO) != 0) {
      previous_.sa_sigaction(number, info, context);
    } else if (previous_.sa_handler == SIG_DFL || (fault && previous_.sa_handler == SIG_IGN)) {
      ::sigaction(number, &previous_, nullptr);  // a fault is met again on return
      if (!fault) (void)::raise(number);
    } else if (previous_.sa_handler != SIG_IGN) {
      previous_.sa_handler(number);
    }
  }

  static guarded_ranges process_;

  std::mutex mutex_;
  std::uintptr_t page_ = 0;
  struct sigaction previous_ {};
  block first_;
};

inline constinit guarded_ranges guarded_ranges::process_{};

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
    range_ = &detail::guarded_ranges::of_process().add(begin_, begin_ + mapped.size());
  }
  sigbus_guard(sigbus_guard&& other) noexcept
      : range_(std::exchange(other.range_, nullptr)), begin_(other.begin_) {}
  sigbus_guard& operator=(sigbus_guard&& other) noexcept {
    std::swap(range_, other.range_);
    std::swap(begin_, other.begin_);
    return *this;
  }
  ~sigbus_guard() {
    if (range_ != nullptr) detail::guarded_ranges::remove(*range_);
  }

  /// Where the first lost page begins, in bytes from the beginning of the range; nothing while all is there.
  [[nodiscard]] std::optional<std::uint64_t> lost() const noexcept {
    if (range_ == nullptr) return std::nullopt;
    const std::uintptr_t at = range_->lost.load(std::memory_order_acquire);
    if (at == detail::guarded_ranges::nothing_lost) return std::nullopt;
    return at - begin_;
  }

 private:
  detail::guarded_ranges::range* range_ = nullptr;
  std::uintptr_t begin_ = 0;
};

}  // namespace penstock::inline v0_1
