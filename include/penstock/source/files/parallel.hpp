// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <atomic>
#include <exception>
#include <mutex>
#include <type_traits>

namespace penstock::inline v0_1 {
namespace detail {

/// A loop whose rounds are taken by whatever threads have nothing else to do.
class shared_loop {
 public:
  /// Calls `work(i)` for each i below `count`; it must outlive the loop.
  template <class Work>
  shared_loop(std::size_t count, Work& work) noexcept
      : count_(count),
        work_([](void* what, std::size_t i) { (*static_cast<Work*>(what))(i); }),
        what_(const_cast<std::remove_const_t<Work>*>(&work)) {}

  /// Takes rounds until none is left, or one has failed. Any number of threads.
  void help() noexcept;
  /// Rethrows the failure of the lowest round. Called when no thread helps any more.
  void end();
  /// Takes all rounds in up to `threads` threads (0: one per processor), and ends.
  void run(std::size_t threads);

 private:
  std::size_t count_;
  void (*work_)(void* what, std::size_t i);
  void* what_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::size_t lowest_ = 0;
  std::exception_ptr failure_;
};

/// Calls `work(i)` for each i below `count`, in up to `threads` threads (0: one per processor). If several
/// calls throw, the exception with the lowest i is rethrown; after an exception, no new i is started.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t threads, Work&& work) {
  shared_loop(count, work).run(threads);
}

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/parallel.ipp>
#endif
