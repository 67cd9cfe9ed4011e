// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/s3/requests/store_call.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail::s3 {

/// What is known of an object.
struct object_facts {
  std::uint64_t size = 0, stamp = 0;           // the stamp is a hash of the tag
  std::string tag;                             // without W/; empty: not known yet, or there is none
  std::string if_match;                        // a strong tag
  std::unique_ptr<const object_facts> before;  // without the tag; requests may refer to it

  /// Whether only the stamp is known of a tag that the object must have.
  [[nodiscard]] bool expected() const noexcept { return tag.empty() && stamp != 0; }
};

/// What a session knows of its objects. What was noted first of an object holds for as long as this lives.
///
/// Threads: any number; no locks.
class known_objects {
 public:
  explicit known_objects(std::size_t count) : facts_(count), count_(count) {}
  known_objects(const known_objects&) = delete;
  known_objects& operator=(const known_objects&) = delete;
  ~known_objects() {
    for (std::size_t i = 0; i < count_; ++i) delete facts_[i].load(std::memory_order_relaxed);
  }

  /// Null if nothing is known; what it points to lives as long as this.
  [[nodiscard]] const object_facts* operator[](object_id id) const noexcept {
    return facts_[id].load(std::memory_order_acquire);
  }
  /// Notes a signature whose tag an answer to a read will tell. False if it says nothing of the tag, or
  /// another one is known.
  [[nodiscard]] bool expect(object_id id, object_version what) {
    if (what.stamp == 0) return false;
    if ((*this)[id] == nullptr) {
      auto made = std::make_unique<object_facts>();
      made->size = what.size;
      made->stamp = what.stamp;
      const object_facts* none = nullptr;
      if (facts_[id].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
        (void)made.release();
        return true;
      }
    }
    return (*this)[id]->size == what.size && (*this)[id]->stamp == what.stamp;
  }
  /// Whether what a store says agrees with what is known, or is now what is known.
  [[nodiscard]] bool settle(object_id id, std::uint64_t size, std::string_view tag) {
    auto fresh = std::make_unique<object_facts>();
    fresh->size = size;
    fresh->tag = tag_of(tag);
    fresh->stamp = fresh->tag.empty() ? 0 : fingerprint().add(fresh->tag).value();
    if (!tag.starts_with("W/")) fresh->if_match = fresh->tag;
    const object_facts* there = (*this)[id];
    for (;;) {
      if (there != nullptr && there->size != size) return false;
      const bool tags = there != nullptr && there->stamp != 0 && fresh->stamp != 0;
      if (tags && there->stamp != fresh->stamp) return false;
      if (there != nullptr && !(tags && there->expected())) return true;
      fresh->before.reset(there);
      if (facts_[id].compare_exchange_weak(there, fresh.get(), std::memory_order_acq_rel)) {
        (void)fresh.release();
        return true;
      }
      (void)fresh->before.release();
    }
  }

 private:
  fixed_array<std::atomic<const object_facts*>> facts_;
  std::size_t count_;
};

}  // namespace penstock::inline v0_1::detail::s3
