// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/segment_crypto.hpp>
#include <penstock/storage/crypto/segment_layout.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace penstock::inline v0_1::detail {

/// How objects of a session are decrypted.
struct decrypting_rules {
  segment_layout layout;
  std::string associated;
  std::size_t max_in_flight;
  cipher_handle cipher;
};

/// An object whose header was read.
struct decrypted_object {
  object_cipher cipher;
  std::uint64_t file_size;
  std::uint64_t segments;
  std::uint64_t size;  // of the plaintext
};

/// The objects of a session that were opened; null for the others. They stay until the session ends.
class decrypted_objects {
 public:
  explicit decrypted_objects(std::size_t count)
      : count_(count), objects_(std::make_unique<std::atomic<const decrypted_object*>[]>(count)) {}
  decrypted_objects(const decrypted_objects&) = delete;
  decrypted_objects& operator=(const decrypted_objects&) = delete;
  ~decrypted_objects() {
    for (std::size_t i = 0; i < count_; ++i) delete objects_[i].load();
  }

  [[nodiscard]] const decrypted_object* find(object_id id) const noexcept {
    return id < count_ ? objects_[id].load(std::memory_order_acquire) : nullptr;
  }
  /// Opens an object unless another thread has done so.
  template <class Open>
  [[nodiscard, gnu::noinline]] const decrypted_object& open(object_id id, Open&& how) {
    const std::scoped_lock held(opening_[id % opening_.size()]);
    if (const decrypted_object* const known = find(id)) return *known;
    auto made = std::make_unique<const decrypted_object>(how());
    objects_[id].store(made.get(), std::memory_order_release);
    return *made.release();
  }

 private:
  std::size_t count_;
  std::unique_ptr<std::atomic<const decrypted_object*>[]> objects_;
  std::array<std::mutex, 64> opening_;
};

}  // namespace penstock::inline v0_1::detail
