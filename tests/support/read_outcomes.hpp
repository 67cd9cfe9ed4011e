// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock_test {

/// A listener for reads of `read_many` with tags from 0 on, which records how each of them ended.
class read_outcomes {
 public:
  explicit read_outcomes(std::size_t count) : times_(count), errors_(count) {}
  read_outcomes(const read_outcomes&) = delete;
  read_outcomes& operator=(const read_outcomes&) = delete;

  [[nodiscard]] penstock::read_listener listener() {
    return {this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
              static_cast<read_outcomes*>(self)->note(tag, std::move(failed));
            }};
  }
  /// Waits until `count` reads have ended.
  void wait(std::size_t count) {
    std::unique_lock held(lock_);
    changed_.wait(held, [&] { return order_.size() >= count; });
  }
  void wait() { wait(times_.size()); }

  [[nodiscard]] std::size_t ended() {
    const std::scoped_lock held(lock_);
    return order_.size();
  }
  /// Whether each read has ended and was reported exactly once.
  [[nodiscard]] bool each_once() {
    const std::scoped_lock held(lock_);
    for (const int times : times_)
      if (times != 1) return false;
    return true;
  }
  /// The tags, in the order in which their reads ended.
  [[nodiscard]] std::vector<std::uint64_t> order() {
    const std::scoped_lock held(lock_);
    return order_;
  }
  [[nodiscard]] bool failed(std::uint64_t tag) {
    const std::scoped_lock held(lock_);
    return errors_[tag] != nullptr;
  }
  [[nodiscard]] std::size_t failures() {
    const std::scoped_lock held(lock_);
    std::size_t count = 0;
    for (const std::exception_ptr& one : errors_) count += one != nullptr ? 1u : 0u;
    return count;
  }
  /// The error of a failed read; nothing if it did not fail, or failed with another exception.
  [[nodiscard]] std::optional<penstock::error> error_of(std::uint64_t tag) {
    const std::scoped_lock held(lock_);
    try {
      if (errors_[tag]) std::rethrow_exception(errors_[tag]);
    } catch (const penstock::error& e) {
      return e;
    } catch (...) {
    }
    return std::nullopt;
  }
  /// The number of reads that failed with an error of this kind.
  [[nodiscard]] std::size_t failures(penstock::errc code) {
    std::size_t count = 0;
    for (std::size_t tag = 0; tag < times_.size(); ++tag) {
      const auto one = error_of(tag);
      count += one && one->code() == code ? 1u : 0u;
    }
    return count;
  }

 private:
  void note(std::uint64_t tag, std::exception_ptr failed) noexcept {
    const std::scoped_lock held(lock_);
    ++times_[tag];
    errors_[tag] = std::move(failed);
    order_.push_back(tag);
    changed_.notify_all();
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<int> times_;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::uint64_t> order_;
};

}  // namespace penstock_test
