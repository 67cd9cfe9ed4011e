// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/crypto/segment_crypto.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace penstock::inline v0_1::detail {

/// What one read needs, kept for the next one.
struct decryption_room {
  segment_context context;
  const object_cipher* keyed_for = nullptr;  // whose key the context has
  buffer sealed, plain;
};

/// The rooms of a session that no read uses now. Threads take and return them without a lock, and mostly find
/// their own again.
class decryption_rooms {
 public:
  static constexpr std::size_t kept = 64;

  decryption_rooms() = default;
  decryption_rooms(const decryption_rooms&) = delete;
  decryption_rooms& operator=(const decryption_rooms&) = delete;
  ~decryption_rooms() {
    for (auto& one : rooms_) delete one.load();
  }

  /// A room, for as long as it lives.
  class lease {
   public:
    explicit lease(decryption_rooms& of) : of_(of), room_(of.take()) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { of_.give_back(std::move(room_)); }
    [[nodiscard]] decryption_room& operator*() const noexcept { return *room_; }
    [[nodiscard]] decryption_room* operator->() const noexcept { return room_.get(); }

   private:
    decryption_rooms& of_;
    std::unique_ptr<decryption_room> room_;
  };

 private:
  [[nodiscard]] static std::size_t first() noexcept {
    return std::hash<std::thread::id>{}(std::this_thread::get_id());
  }
  [[nodiscard]] std::unique_ptr<decryption_room> take() {
    for (std::size_t i = 0, begin = first(); i < kept; ++i) {
      auto& place = rooms_[(begin + i) % kept];
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (decryption_room* const found = place.exchange(nullptr, std::memory_order_acquire))
        return std::unique_ptr<decryption_room>(found);
    }
    return std::make_unique<decryption_room>();
  }
  void give_back(std::unique_ptr<decryption_room> room) noexcept {
    for (std::size_t i = 0, begin = first(); i < kept; ++i) {
      decryption_room* empty = nullptr;
      if (rooms_[(begin + i) % kept].compare_exchange_strong(empty, room.get(), std::memory_order_release,
                                                             std::memory_order_relaxed)) {
        (void)room.release();
        return;
      }
    }
  }

  std::array<std::atomic<decryption_room*>, kept> rooms_{};
};

}  // namespace penstock::inline v0_1::detail
