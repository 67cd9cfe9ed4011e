// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/device/concepts.hpp>

#include <atomic>
#include <utility>

namespace penstock::inline v0_1 {

/// How many bytes the blocks of a run hold: what `memory(bytes)` bounds.
struct memory_account {
  std::atomic<std::uint64_t> bytes{0};
};

/// A growable piece of slot memory from the device's session; its capacity is kept for the next batch and
/// entered in the account. It reaches the session through two function pointers, only when it grows or is
/// destroyed.
class slot_memory {
 public:
  slot_memory() = default;
  template <device_session Session>
  slot_memory(Session& session, memory_account& account) noexcept
      : session_(&session), calls_(&calls_to<Session>), account_(&account) {
    if constexpr (requires { Session::space; }) space_ = Session::space;
  }
  slot_memory(slot_memory&& other) noexcept
      : session_(other.session_),
        calls_(other.calls_),
        account_(other.account_),
        data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)),
        space_(other.space_) {}
  slot_memory& operator=(slot_memory&& other) noexcept;
  ~slot_memory() { release(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] memory_space space() const noexcept { return space_; }

  /// Makes room for `bytes`, preserving the first `keep` bytes. Allocates only beyond the capacity.
  void reserve(std::size_t bytes, std::size_t keep = 0) {
    if (bytes > capacity_) grow(bytes, keep);
  }

  void release() noexcept;

 private:
  struct calls {
    void* (*allocate)(void*, std::size_t);
    void (*deallocate)(void*, void*, std::size_t) noexcept;
  };
  template <class S>
  static constexpr calls calls_to{
      [](void* s, std::size_t size) -> void* { return static_cast<S*>(s)->allocate(size); },
      [](void* s, void* p, std::size_t size) noexcept { static_cast<S*>(s)->deallocate(p, size); }};

  void grow(std::size_t bytes, std::size_t keep);

  void* session_ = nullptr;
  const calls* calls_ = nullptr;
  memory_account* account_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  memory_space space_ = memory_space::host;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/block/slot_memory.ipp>
#endif
