// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/device/concepts.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace penstock::inline v0_1 {

/// How many bytes the blocks of a run hold: what `memory(bytes)` bounds.
struct memory_account {
  std::atomic<std::uint64_t> bytes{0};
};

/// A growable piece of slot memory: from the device's session, its capacity kept for the next batch and
/// entered in the account.
template <device_session Session>
class slot_memory {
 public:
  slot_memory() = default;
  slot_memory(Session& session, memory_account& account) : session_(&session), account_(&account) {}
  slot_memory(slot_memory&& other) noexcept
      : session_(other.session_),
        account_(other.account_),
        data_(std::exchange(other.data_, nullptr)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  slot_memory& operator=(slot_memory&& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(account_, other.account_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~slot_memory() { release(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Makes room for `bytes`; the first `keep` bytes stay as they are. Allocates only beyond the capacity.
  void reserve(std::size_t bytes, std::size_t keep = 0) {
    if (bytes <= capacity_) return;
    const std::size_t wanted = capacity_ == 0 ? bytes : bytes + bytes / 4;
    auto* fresh = static_cast<std::byte*>(session_->allocate(wanted));
    if (keep != 0) std::memcpy(fresh, data_, keep);
    release();
    data_ = fresh;
    capacity_ = wanted;
    account_->bytes.fetch_add(wanted, std::memory_order_relaxed);
  }

  /// Gives it back to the session.
  void release() noexcept {
    if (data_ == nullptr) return;
    session_->deallocate(data_, capacity_);
    account_->bytes.fetch_sub(capacity_, std::memory_order_relaxed);
    data_ = nullptr;
    capacity_ = 0;
  }

 private:
  Session* session_ = nullptr;
  memory_account* account_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace penstock::inline v0_1
