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

namespace penstock::inline v0_1 {
namespace detail {

/// A read that was asked for, and who is told when it has ended.
struct waiting_read {
  read_request request;
  read_listener listener;
  bool stopped = false;

  void tell(std::exception_ptr failed) const noexcept {
    listener.done(listener.self, request.tag, std::move(failed));
  }
};

/// Reads that were asked for and have not begun, the first one first. Its owner has the lock.
class waiting_reads {
 public:
  /// All of them or, where there is no memory, none.
  void push(std::span<const read_request> requests, read_listener listener);
  [[nodiscard]] bool empty() const noexcept { return first_ == list_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size() - first_; }
  [[nodiscard]] const waiting_read& front() const noexcept { return list_[first_]; }
  waiting_read pop() noexcept;
  /// Marks all that are here as stopped; they stay until they are taken.
  void stop() noexcept;

 private:
  std::vector<waiting_read> list_;
  std::size_t first_ = 0;
};

/// What is told of a read that was cancelled: errc::stopped, with the object's name where it has one.
[[nodiscard]] std::exception_ptr read_cancelled(const read_request& request,
                                                std::span<const std::string> names) noexcept;

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/detail/waiting_reads.ipp>
#endif
