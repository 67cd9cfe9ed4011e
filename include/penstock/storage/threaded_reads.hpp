// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>
#include <penstock/storage/session_view.hpp>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {

/// Implements `background_session` for a session that has only `read`: threads that read, started as reads
/// arrive.
///
/// Threads: any number may call. Reads in progress when `cancel` is called run to their end; reads that have
/// not begun are reported as errc::stopped, by the threads. Destruction cancels, and waits for the threads.
class threaded_reads {
 public:
  /// Refers to the session and to the names of its objects, for errors; names may be empty.
  threaded_reads(session_view session, std::span<const std::string> names, std::size_t max_threads) noexcept
      : session_(session), names_(names), limit_(max_threads) {}
  ~threaded_reads();

  void read_many(std::span<const read_request> requests, read_listener listener) noexcept;
  void cancel() noexcept;

 private:
  void begin(std::span<const read_request> requests, read_listener listener);
  void start_thread();
  void work() noexcept;
  void finish(const detail::waiting_read& one) const noexcept;

  session_view session_;
  std::span<const std::string> names_;
  std::size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  detail::waiting_reads waiting_;
  std::size_t idle_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/threaded_reads.ipp>
#endif
