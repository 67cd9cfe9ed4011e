// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/sigbus_guard.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace penstock::inline v0_1::detail {

/// The guarded ranges of the process, and the handler that looks up a fault in them. One per process;
/// trivially destroyed, since a signal may arrive during exit. The handler takes no lock and allocates
/// nothing.
class guarded_ranges {
 public:
  static guarded_ranges& of_process() noexcept { return process_; }

  /// Takes a free range; the first one installs the handler.
  [[nodiscard]] guarded_range& add(std::uintptr_t begin, std::uintptr_t end, bool writable) {
    const std::scoped_lock lock(mutex_);
    install();
    guarded_range& found = free_range();
    found.lost.store(guarded_range::nothing_lost, std::memory_order_relaxed);
    found.writable.store(writable, std::memory_order_relaxed);
    found.end.store(end, std::memory_order_release);
    found.begin.store(begin, std::memory_order_release);
    return found;
  }

 private:
  struct block {
    std::array<guarded_range, 256> ranges;
    std::atomic<block*> next{nullptr};
  };

  /// Starts at the block of the range found last, so that a new guard does not have to search all the others.
  guarded_range& free_range() {
    for (block* const begin = last_;;) {
      for (guarded_range& one : last_->ranges) {
        if (one.begin.load(std::memory_order_relaxed) == 0) return one;
      }
      block* const next = last_->next.load(std::memory_order_relaxed);
      last_ = next != nullptr ? next : &first_;
      if (last_ == begin) break;
    }
    // Blocks are never freed: the handler may be in them.
    auto* const fresh = new block;
    fresh->next.store(first_.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
    first_.next.store(fresh, std::memory_order_release);
    last_ = fresh;
    return fresh->ranges.front();
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
    const bool fault = info->si_code > 0;  // otherwise another process sent it
    if (!fault || !process_.replace(reinterpret_cast<std::uintptr_t>(info->si_addr)))
      process_.pass_on(number, info, context, fault);
    errno = kept;
  }

  /// Maps zeros from the page of the address to the end of its range: those pages are lost too.
  // Not inlined: reports of the thread sanitizer then have its whole name.
  [[gnu::noinline]] bool replace(std::uintptr_t address) noexcept {
    for (block* at = &first_; at != nullptr; at = at->next.load(std::memory_order_acquire)) {
      for (guarded_range& one : at->ranges) {
        const std::uintptr_t begin = one.begin.load(std::memory_order_acquire);
        const std::uintptr_t end = one.end.load(std::memory_order_acquire);
        if (begin == 0 || address < begin || address >= end) continue;
        if (one.begin.load(std::memory_order_acquire) != begin) continue;  // the range was reused
        const std::uintptr_t page = address / page_ * page_;
        // Recorded before it is done, so that a thread that reads zeros finds the record.
        std::uintptr_t lowest = one.lost.load();
        while (page < lowest && !one.lost.compare_exchange_weak(lowest, page)) {
        }
        return ::mmap(reinterpret_cast<void*>(page), end - page,
                      one.writable.load() ? PROT_READ | PROT_WRITE : PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
      }
    }
    return false;
  }

  /// Does what would have happened without this handler.
  void pass_on(int number, siginfo_t* info, void* context, bool fault) noexcept {
    if ((previous_.sa_flags & SA_SIGINFO) != 0) {
      previous_.sa_sigaction(number, info, context);
    } else if (previous_.sa_handler == SIG_DFL || (fault && previous_.sa_handler == SIG_IGN)) {
      ::sigaction(number, &previous_, nullptr);  // on return, the fault recurs
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
  block* last_ = &first_;  // with the range found last
};

// Inline in both forms: a program that uses both must have a single instance.
inline constinit guarded_ranges guarded_ranges::process_{};

PENSTOCK_INLINE guarded_range& guard_range(std::uintptr_t begin, std::uintptr_t end, bool writable) {
  return guarded_ranges::of_process().add(begin, end, writable);
}

}  // namespace penstock::inline v0_1::detail
