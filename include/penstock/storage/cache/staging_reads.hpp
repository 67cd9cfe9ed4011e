// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/staged_object.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::staging {

/// The reads of all threads of a staging: at most `max_in_flight` at a time, each into memory of `part` bytes
/// that is used again.
class staging_reads {
 public:
  staging_reads(const far_storage& far, std::size_t max_in_flight, std::size_t part)
      : far_(far), max_in_flight_(max_in_flight), part_(part) {
    if (!far.session.in_background()) threads_.emplace(far.session, far.names, max_in_flight);
  }
  staging_reads(const staging_reads&) = delete;
  staging_reads& operator=(const staging_reads&) = delete;

  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  /// Ends the reads in progress; no other one begins. Keeps why, if it is the first failure: what follows it,
  /// or a stop, is a consequence.
  void stop(std::exception_ptr why = nullptr) noexcept {
    {
      const std::scoped_lock lock(begin_mutex_);
      if (stopped_.exchange(true)) return;
      failed_ = std::move(why);
    }
    if (threads_) threads_->cancel();
    far_.session.end_reads();
  }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  /// Throws errc::stopped once there was a stop.
  void check_stop(std::string_view name) const {
    if (stopped_) throw error(errc::stopped, "staging was stopped").in_file(name);
  }
  /// Throws the first failure, or errc::stopped after a stop.
  void check_end() {
    const std::scoped_lock lock(begin_mutex_);
    if (failed_) std::rethrow_exception(failed_);
    if (stopped_)
      throw error(errc::stopped,
                  "staging was stopped; what is there stays, and the next call of stage_to goes on");
  }
  void count(std::uint64_t bytes) noexcept { fetched_ += bytes; }
  [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

 private:
  friend class read_room;
  friend class reads_in_order;
  using memory = std::unique_ptr<std::byte[]>;

  /// Memory for a read; waits for it, or returns nothing while there is none or another thread waits.
  [[nodiscard]] memory take(bool waits) {
    std::unique_lock lock(mutex_);
    if (!waits && waiting_ != 0) return nullptr;
    if (waits) {
      ++waiting_;
      changed_.wait(lock, [this] { return !free_.empty() || made_ < max_in_flight_; });
      --waiting_;
    }
    if (!free_.empty()) {
      memory taken = std::move(free_.back());
      free_.pop_back();
      return taken;
    }
    if (made_ == max_in_flight_) return nullptr;
    memory made(new std::byte[part_]);
    ++made_;
    free_.reserve(max_in_flight_);  // so that giving back does not throw
    return made;
  }
  void give_back(memory room) noexcept {
    if (!room) return;
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(room));
    changed_.notify_all();
  }
  /// Throws errc::stopped once `stop` was called.
  void begin(const read_request& request, read_listener listener, std::string_view name) {
    // After `stop` has set the word no read begins, so it ends all of them.
    const std::scoped_lock lock(begin_mutex_);
    check_stop(name);
    if (threads_)
      threads_->read_many({&request, 1}, listener);
    else
      far_.session.read_many({&request, 1}, listener);
  }

  const far_storage& far_;
  std::optional<threaded_reads> threads_;  // of a session that has no reads in the background
  std::size_t max_in_flight_, part_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> fetched_{0};
  std::exception_ptr failed_;
  std::mutex begin_mutex_;  // of `read_many`, which one thread at a time may call

  std::mutex mutex_;
  std::condition_variable changed_;  // memory came back, or a read ended
  std::vector<memory> free_;
  std::size_t made_ = 0, waiting_ = 0;
};

/// Memory for one read, for as long as this lives.
class read_room {
 public:
  explicit read_room(staging_reads& all) : all_(all), memory_(all.take(true)) {}
  read_room(const read_room&) = delete;
  read_room& operator=(const read_room&) = delete;
  ~read_room() { all_.give_back(std::move(memory_)); }
  [[nodiscard]] mutable_bytes span() const noexcept { return {memory_.get(), all_.part()}; }

 private:
  staging_reads& all_;
  staging_reads::memory memory_;
};

/// Reads a range of an object in parts, of which several are on their way, and gives them out in order.
class reads_in_order {
 public:
  reads_in_order(staging_reads& all, object_id id, std::string_view name, std::uint64_t begin,
                 std::uint64_t end) noexcept
      : all_(all), id_(id), name_(name), next_(begin), end_(end) {}
  reads_in_order(const reads_in_order&) = delete;
  reads_in_order& operator=(const reads_in_order&) = delete;
  /// Waits for those on their way.
  ~reads_in_order() {
    for (flight& one : flights_) {
      wait(one);
      all_.give_back(std::move(one.room));
    }
    all_.give_back(std::move(given_out_));
  }

  /// The next part, until the next call; nothing at the end.
  [[nodiscard]] std::optional<bytes_view> next() {
    all_.give_back(std::exchange(given_out_, nullptr));
    begin_some();
    if (flights_.empty()) return std::nullopt;
    flight& first = flights_.front();
    wait(first);
    if (first.failed) std::rethrow_exception(first.failed);
    given_out_ = std::move(first.room);
    const std::size_t size = first.size;
    flights_.pop_front();
    all_.count(size);
    return bytes_view(given_out_.get(), size);
  }

 private:
  struct flight {
    staging_reads* all;
    staging_reads::memory room;
    std::size_t size = 0;
    bool done = false;
    std::exception_ptr failed{};
  };
  void begin_some() {
    while (next_ < end_) {
      staging_reads::memory room = all_.take(flights_.empty());
      if (!room) return;
      const std::size_t size = to_size(std::min<std::uint64_t>(all_.part(), end_ - next_));
      flight& one = flights_.emplace_back(flight{&all_, std::move(room), size});
      const read_listener listener{&one, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
                                     auto& ended = *static_cast<flight*>(self);
                                     staging_reads& all = *ended.all;
                                     const std::scoped_lock lock(all.mutex_);
                                     ended.failed = std::move(failed);
                                     ended.done = true;
                                     all.changed_.notify_all();
                                   }};
      try {
        all_.begin({id_, next_, {one.room.get(), size}, next_}, listener, name_);
      } catch (...) {
        all_.give_back(std::move(one.room));
        flights_.pop_back();
        throw;
      }
      next_ += size;
    }
  }
  void wait(const flight& one) const {
    std::unique_lock lock(all_.mutex_);
    all_.changed_.wait(lock, [&one] { return one.done; });
  }

  staging_reads& all_;
  object_id id_;
  std::string_view name_;
  std::uint64_t next_, end_;
  std::deque<flight> flights_;
  staging_reads::memory given_out_;
};

}  // namespace detail::staging
}  // namespace penstock::inline v0_1
