// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <pthread.h>

namespace penstock::inline v0_1 {

/// A thread that runs one member function and is joined on destruction. Not std::jthread, which instantiates
/// a hundred functions for everything that it may run.
class joined_thread {
 public:
  joined_thread() = default;
  joined_thread(const joined_thread&) = delete;
  joined_thread& operator=(const joined_thread&) = delete;
  ~joined_thread() { join(); }

  /// Calls `(object.*Member)()`, which must not throw. Throws std::system_error if no thread can be created.
  template <auto Member, class T>
  void start(T& object) {
    begin(
        [](void* it) noexcept -> void* {
          (static_cast<T*>(it)->*Member)();
          return nullptr;
        },
        &object);
  }
  [[nodiscard]] bool joinable() const noexcept { return runs_; }
  void join() noexcept;

 private:
  void begin(void* (*what)(void*), void* it);

  pthread_t id_{};
  bool runs_ = false;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/thread.ipp>
#endif
