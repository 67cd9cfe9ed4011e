// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/staged_object.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/part_reads.hpp>
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

namespace penstock::inline v0_1::detail::staging {

/// The reads of all threads of a staging: at most `max_in_flight` at a time, each into memory of `part` bytes
/// that is used again.
class staging_reads {
  struct gives_back {
    staging_reads* to;
    void operator()(std::byte* room) const noexcept {
      const std::scoped_lock lock(to->mutex_);
      to->free_.emplace_back(room);
      to->changed_.notify_all();
    }
  };

 public:
  /// Memory for one read, which goes back when this ends.
  using memory = std::unique_ptr<std::byte[], gives_back>;

  staging_reads(const far_storage& far, std::size_t max_in_flight, std::size_t part)
      : far_(far), max_in_flight_(max_in_flight), part_(part) {
    if (!far.session.in_background()) threads_.emplace(far.session, far.names, max_in_flight);
  }

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
  void check_stop(std::string_view name) const {
    if (stopped_) throw error(errc::stopped, "staging was stopped").in_file(name);
  }
  void check_end() {
    const std::scoped_lock lock(begin_mutex_);
    if (failed_) std::rethrow_exception(failed_);
    if (stopped_)
      throw error(errc::stopped,
                  "staging was stopped; what is there stays, and the next call of stage_to goes on");
  }
  void count(std::uint64_t bytes) noexcept { fetched_ += bytes; }
  [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

  /// Waits for memory, or returns nothing while there is none or another thread waits.
  [[nodiscard]] memory take(bool waits) {
    std::unique_lock lock(mutex_);
    if (waits) {
      ++waiting_;
      changed_.wait(lock, [this] { return !free_.empty() || made_ < max_in_flight_; });
      --waiting_;
    } else if (waiting_ != 0) {
      return memory(nullptr, {this});
    }
    if (free_.empty() && made_ < max_in_flight_) {
      free_.reserve(max_in_flight_);  // so that giving back does not throw
      free_.emplace_back(new std::byte[part_]);
      ++made_;
    }
    if (free_.empty()) return memory(nullptr, {this});
    memory taken(free_.back().release(), {this});
    free_.pop_back();
    return taken;
  }

 private:
  friend class reads_in_order;

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
  std::condition_variable changed_;  // memory came back
  std::vector<std::unique_ptr<std::byte[]>> free_;
  std::size_t made_ = 0, waiting_ = 0;
};

/// Reads a range of an object in parts, of which several are on their way, and gives them out in order.
class reads_in_order {
 public:
  reads_in_order(staging_reads& all, object_id id, std::string_view name, std::uint64_t begin,
                 std::uint64_t end) noexcept
      : all_(all), id_(id), name_(name), next_(begin), end_(end) {}
  ~reads_in_order() {
    for (flight& one : flights_) (void)one.read.wait();
  }

  /// The next part, until the next call; nothing at the end.
  [[nodiscard]] std::optional<bytes_view> next() {
    given_out_.reset();
    begin_some();
    if (flights_.empty()) return std::nullopt;
    flight& first = flights_.front();
    first.read.get();
    given_out_ = std::move(first.room);
    const std::size_t size = first.size;
    flights_.pop_front();
    all_.count(size);
    return bytes_view(given_out_.get(), size);
  }

 private:
  struct flight {
    flight(staging_reads::memory for_it, std::size_t bytes) : room(std::move(for_it)), size(bytes) {}
    staging_reads::memory room;
    std::size_t size;
    awaited_end read;
  };
  void begin_some() {
    while (next_ < end_) {
      staging_reads::memory room = all_.take(flights_.empty());
      if (!room) return;
      const std::size_t size = to_size(std::min<std::uint64_t>(all_.part(), end_ - next_));
      flight& one = flights_.emplace_back(std::move(room), size);
      try {
        all_.begin({id_, next_, {one.room.get(), size}, next_}, one.read.listener(), name_);
      } catch (...) {
        flights_.pop_back();
        throw;
      }
      next_ += size;
    }
  }

  staging_reads& all_;
  object_id id_;
  std::string_view name_;
  std::uint64_t next_, end_;
  std::deque<flight> flights_;
  staging_reads::memory given_out_{nullptr, {&all_}};
};

}  // namespace penstock::inline v0_1::detail::staging
