// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/cpp20.hpp>

#include <pthread.h>

#include <exception>
#include <system_error>

namespace penstock::inline v0_1 {

/// A thread that runs one member function and is joined on destruction. Not std::jthread, which instantiates
/// a hundred functions for everything that it may run.
class joined_thread : detail::unmovable {
 public:
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

inline void joined_thread::join() noexcept {
  if (runs_ && ::pthread_join(id_, nullptr) != 0) std::terminate();  // a thread cannot join itself
  runs_ = false;
}

inline void joined_thread::begin(void* (*what)(void*), void* it) {
  if (const int code = ::pthread_create(&id_, nullptr, what, it); code != 0)
    throw std::system_error(code, std::generic_category());
  runs_ = true;
}

}  // namespace penstock::inline v0_1
