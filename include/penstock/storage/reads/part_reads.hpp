// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Waits for the end of one read in the background, or of one request.
class awaited_end {
 public:
  [[nodiscard]] read_listener listener() noexcept {
    return {this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
              tell(self, tag, std::move(failed));
            }};
  }
  /// For what tells of its end by a function with this as its `self`, such as a request.
  template <class What>
  static void tell(void* self, What&, std::exception_ptr failed) noexcept {
    auto& end = *static_cast<awaited_end*>(self);
    const std::scoped_lock held(end.lock_);
    end.failed_ = std::move(failed);
    end.over_ = true;
    end.changed_.notify_one();  // under the lock: `wait` destroys what is notified
  }

  [[nodiscard]] std::exception_ptr wait() noexcept {
    std::unique_lock held(lock_);
    changed_.wait(held, [this] { return over_; });
    return failed_;
  }
  /// Throws what it failed with.
  void get() {
    if (const std::exception_ptr failed = wait()) std::rethrow_exception(failed);
  }
  /// Whether it came in time.
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point time) {
    std::unique_lock held(lock_);
    return changed_.wait_until(held, time, [this] { return over_; });
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool over_ = false;
  std::exception_ptr failed_;
};

/// A read of a thread that waits, made of reads in the background: a range of more than 16 MiB comes in parts
/// of equal size, side by side, each straight to its place. After a failure no further part begins; the error
/// is that of the first part, by offset, that failed.
///
/// Cost: no allocation; a lock per part.
class part_reads {
 public:
  static constexpr std::uint64_t longest = 16_MiB;
  static constexpr std::size_t max_in_flight = 8;
  using begin_type = void (*)(void* line, std::span<const read_request> requests,
                              read_listener listener) noexcept;

  /// `begin` is called by this thread, and by those that report reads.
  part_reads(void* line, begin_type begin, const read_request& whole) noexcept
      : line_(line),
        begin_(begin),
        whole_(whole),
        parts_(std::max<std::uint64_t>(1, (whole.into.size() + longest - 1) / longest)) {}

  void read() {
    std::array<read_request, max_in_flight> first;
    std::size_t count = 0;
    while (count < first.size() && next_ < parts_) first[count++] = take_next();
    begin_(line_, {first.data(), count}, listener());
    std::unique_lock held(lock_);
    over_.wait(held, [this] { return in_flight_ == 0; });
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  [[nodiscard]] read_request take_next() noexcept {
    const std::uint64_t size = whole_.into.size(), part = size / parts_;
    const std::uint64_t first = part * next_, last = next_ + 1 == parts_ ? size : first + part;
    ++in_flight_;
    return {whole_.object, whole_.offset + first, whole_.into.subspan(to_size(first), to_size(last - first)),
            next_++};
  }
  [[nodiscard]] read_listener listener() noexcept {
    return {this, [](void* self, std::uint64_t part, std::exception_ptr failed) noexcept {
              static_cast<part_reads*>(self)->ended(part, std::move(failed));
            }};
  }
  void ended(std::uint64_t part, std::exception_ptr failed) noexcept {
    read_request next;
    {
      const std::lock_guard guard(lock_);  // also while notifying: the waiter ends at once
      if (failed && (!failed_ || part < failed_part_)) {
        failed_ = std::move(failed);
        failed_part_ = part;
      }
      const bool goes_on = !failed_ && next_ < parts_;
      if (goes_on) next = take_next();
      if (--in_flight_ == 0) over_.notify_one();
      if (!goes_on) return;
    }
    begin_(line_, {&next, 1}, listener());
  }

  void* line_;
  begin_type begin_;
  read_request whole_;
  std::uint64_t parts_, next_ = 0;
  std::mutex lock_;
  std::condition_variable over_;
  std::size_t in_flight_ = 0;
  std::exception_ptr failed_;
  std::uint64_t failed_part_ = 0;
};

/// Reads a range by `line.read_many`, and waits for it. Any number of threads may call `line.read_many`.
template <class Line>
void read_by_parts(Line& line, object_id id, std::uint64_t offset, mutable_bytes into) {
  part_reads(&line,
             [](void* self, std::span<const read_request> requests, read_listener listener) noexcept {
               static_cast<Line*>(self)->read_many(requests, listener);
             },
             {id, offset, into})
      .read();
}

}  // namespace penstock::inline v0_1::detail
