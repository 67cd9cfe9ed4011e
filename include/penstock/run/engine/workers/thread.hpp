// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/compiled.hpp>

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <exception>
#include <system_error>

namespace penstock::inline v0_1 {

/// A thread that runs one member function and is joined on destruction; `top` and `perf` show it as
/// "penstock", and so does `read_interference`. Not std::jthread, which instantiates
/// a hundred functions for everything that it may run.
class joined_thread : detail::unmovable {
 public:
  ~joined_thread() { join(); }

  /// Calls `(object.*Member)()`, which must not throw. Throws std::system_error if no thread can be created.
  template <auto Member, class T>
  void start(T& object) {
    begin(
        [](void* it) noexcept -> void* {
          take_name();
          (static_cast<T*>(it)->*Member)();
          return nullptr;
        },
        &object);
  }
  [[nodiscard]] bool joinable() const noexcept { return runs_; }
  void join() noexcept {
    if (runs_ && ::pthread_join(id_, nullptr) != 0) std::terminate();  // a thread cannot join itself
    runs_ = false;
  }

 private:
  static void take_name() noexcept;
  void begin(void* (*what)(void*), void* it) {
    if (const int code = ::pthread_create(&id_, nullptr, what, it); code != 0)
      throw std::system_error(code, std::generic_category());
    runs_ = true;
  }

  pthread_t id_{};
  bool runs_ = false;
};

/// Remembers the process that created it: after `fork()`, a child has a run's memory but none of its threads.
///
/// A check costs one load where the kernel can wipe a page on fork (Linux 4.14), otherwise a `getpid`. Any
/// thread may check.
class home_process {
 public:
  home_process() noexcept;
  home_process(const home_process&) = delete;
  home_process& operator=(const home_process&) = delete;
  ~home_process();

  /// False in a child of the process that created this.
  [[nodiscard]] bool here() const noexcept { return mark_ != nullptr ? *mark_ != 0 : ::getpid() == id_; }
  /// Throws `errc::argument` in a child.
  void check() const {
    if (!here()) refuse();
  }

 private:
  [[noreturn]] static void refuse();

  pid_t id_;
  unsigned char* mark_ = nullptr;  // 0 in a child
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/thread.ipp>
#endif
