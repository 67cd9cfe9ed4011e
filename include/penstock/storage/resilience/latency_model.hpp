// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/request_recorder.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage_options.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace penstock::inline v0_1::detail {

/// What all sessions of one `simulated_storage` count together.
struct delay_account {
  explicit delay_account(std::span<const simulated_fault> faults) : faults_left(faults.size()) {
    for (std::size_t i = 0; i < faults.size(); ++i) faults_left[i].store(faults[i].times);
  }

  std::atomic<std::uint64_t> reads{0}, bytes{0}, in_flight{0}, peak_in_flight{0};
  fixed_array<std::atomic<std::uint32_t>> faults_left;
};

/// Delays the calls of a session. Reads of `read_many` wait in one queue, and one thread, started by the
/// first of them, performs them.
class latency_model {
  using clock = std::chrono::steady_clock;
  /// What was drawn for a read when it began.
  struct fate {
    clock::duration stall{0};
    bool fails = false, refused = false;
  };
  struct pending {
    waiting_read what;
    fate drawn;
    clock::time_point begun, due;
    std::uint64_t number;  // breaks ties between reads that are due at once
  };

 public:
  static constexpr session_traits traits = {.latency = true};

  /// Refers to the session, the names and the options.
  latency_model(session_view session, std::span<const std::string> names,
                const simulated_storage_options& options, shared<delay_account> account)
      : session_(session), names_(names), options_(options), account_(std::move(account)) {}
  ~latency_model();

  [[nodiscard]] std::uint64_t size(object_id id) const;
  [[nodiscard]] object_version version(object_id id) const;
  void read(object_id id, std::uint64_t offset, mutable_bytes into);
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept;
  void cancel() noexcept;
  void abandon(std::uint64_t tag) noexcept;
  [[nodiscard]] bool tagged(object_id id) const { return session_.tagged(id); }
  [[nodiscard]] session_report report() const noexcept;

  /// Throws errc::argument for times, rates and ranges that make no sense.
  static void check(const simulated_storage_options& options);

 private:
  template <class Which>
  void stop_if(Which&& which) noexcept;
  /// When a read requested at `begin` ends. The caller holds the lock.
  clock::time_point reserve(const read_request& request, clock::duration stall, clock::time_point begin);
  /// Draws what becomes of a read. The caller holds the lock.
  [[nodiscard]] fate draw(const read_request& request);
  void begin_one() noexcept;
  void perform(const read_request& request, const fate& drawn);
  void check_faults(const read_request& request);
  [[noreturn]] void fail(const read_request& request, simulated_failure how);
  /// Performs a read that is due, unless it was stopped; returns how it failed.
  [[nodiscard]] std::exception_ptr ended(const waiting_read& one, const fate& drawn,
                                         clock::time_point begun) noexcept;
  void work() noexcept;
  static bool later(const pending& a, const pending& b) noexcept {
    return a.due != b.due ? a.due > b.due : a.number > b.number;
  }

  session_view session_;
  std::span<const std::string> names_;
  const simulated_storage_options& options_;
  shared<delay_account> account_;

  std::mutex mutex_;
  std::condition_variable queue_changed_, cancelled_;
  std::vector<pending> queue_;             // a heap, the earliest first
  std::vector<clock::time_point> places_;  // a heap of the times at which reads end, the earliest first
  clock::time_point link_free_{};
  // how often a range was read, by object and offset, if that matters
  std::map<std::pair<object_id, std::uint64_t>, std::uint32_t> reads_of_;
  std::atomic<std::uint64_t> requests_{0}, bytes_{0}, slow_downs_{0};
  request_recorder recorded_;
  std::uint64_t cancels_ = 0, begun_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/resilience/latency_model.ipp>
#endif
