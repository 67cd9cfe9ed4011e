// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/far_storage.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/threaded_reads.hpp>

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
  staging_reads(const far_storage& far, std::size_t max_in_flight, std::size_t part);
  staging_reads(const staging_reads&) = delete;
  staging_reads& operator=(const staging_reads&) = delete;

  [[nodiscard]] std::size_t part() const noexcept { return part_; }
  /// Ends the reads in progress; no other one begins.
  void stop() noexcept;
  /// Also keeps why, if it is the first failure: what follows it, or a stop, is a consequence.
  void fail(std::exception_ptr why) noexcept;
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  /// Throws errc::stopped once there was a stop.
  void check_stop(std::string_view name) const;
  /// Throws the first failure, or errc::stopped after a stop.
  void check_end();
  void count(std::uint64_t bytes) noexcept { fetched_ += bytes; }
  [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

 private:
  friend class read_room;
  friend class reads_in_order;
  using memory = std::unique_ptr<std::byte[]>;

  /// Memory for a read; waits for it, or returns nothing while there is none or another thread waits.
  [[nodiscard]] memory take(bool waits);
  void give_back(memory room) noexcept;
  /// Throws errc::stopped once `stop` was called.
  void begin(const read_request& request, read_listener listener, std::string_view name);

  std::optional<threaded_reads> threads_;  // of a session that has no reads in the background
  const far_storage& far_;
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
  ~reads_in_order();

  /// The next part, until the next call; nothing at the end.
  [[nodiscard]] std::optional<bytes_view> next();

 private:
  struct flight {
    staging_reads* all;
    staging_reads::memory room;
    std::size_t size = 0;
    bool done = false;
    std::exception_ptr failed;
  };
  void begin_some();
  [[nodiscard]] bool wait(const flight& one) const;

  staging_reads& all_;
  object_id id_;
  std::string_view name_;
  std::uint64_t next_, end_;
  std::deque<flight> flights_;
  staging_reads::memory given_out_;
};

}  // namespace detail::staging
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/staging_reads.ipp>
#endif
