// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <type_traits>

namespace penstock::inline v0_1 {
namespace detail {

/// A loop whose iterations are shared by several threads.
class parallel_loop {
 public:
  using work_type = void (*)(void* what, std::size_t i);

  parallel_loop(std::size_t count, work_type work, void* what)
      : count_(count), work_(work), what_(what), lowest_(count) {}

  void run(std::size_t threads);

 private:
  static void* take_rounds(void* given) noexcept;

  std::size_t count_;
  work_type work_;
  void* what_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::size_t lowest_;
  std::exception_ptr first_;
};

/// Calls `work(i)` for each i below `count`, in up to `threads` threads (0: one per processor). If several
/// calls throw, the exception with the lowest i is rethrown; after an exception, no new i is started.
template <class Work>
void for_each_in_parallel(std::size_t count, std::size_t threads, Work&& work) {
  using work_type = std::remove_reference_t<Work>;
  parallel_loop(
      count, [](void* what, std::size_t i) { (*static_cast<work_type*>(what))(i); },
      const_cast<std::remove_const_t<work_type>*>(&work))
      .run(threads);
}

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/parallel.ipp>
#endif
