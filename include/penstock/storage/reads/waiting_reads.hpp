// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A requested read, and whom to tell when it has ended.
struct waiting_read {
  read_request request;
  read_listener listener;
  bool stopped = false;

  void tell(std::exception_ptr failed) const noexcept {
    listener.done(listener.self, request.tag, std::move(failed));
  }
};

/// Reads requested but not begun, oldest first. The owner holds the lock.
class waiting_reads {
 public:
  /// Appends all of them, or none if memory runs out.
  void push(std::span<const read_request> requests, read_listener listener);
  [[nodiscard]] bool empty() const noexcept { return first_ == list_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size() - first_; }
  [[nodiscard]] const waiting_read& front() const noexcept { return list_[first_]; }
  waiting_read pop() noexcept;
  /// Marks all reads here as stopped; they stay until they are popped.
  void stop() noexcept;

 private:
  std::vector<waiting_read> list_;
  std::size_t first_ = 0;
};

/// The error of a cancelled read: errc::stopped, with the object's name if it has one.
[[nodiscard]] std::exception_ptr read_cancelled(const read_request& request,
                                                std::span<const std::string> names) noexcept;

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/reads/waiting_reads.ipp>
#endif
