// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<liburing.h>)
#error "penstock/storage/local/uring.hpp needs liburing: link penstock::uring"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/storage/local/paths.hpp>

#include <liburing.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// A ring of the kernel, and an event that wakes the thread waiting for it.
class uring : unmovable {
 public:
  ~uring() { close(); }

  /// Returns 0, or the errno value that explains the failure. A kernel that cannot read through a ring fails.
  [[nodiscard]] int open(unsigned reads) noexcept {
    const int code = ::io_uring_queue_init(reads + 1, &ring_, 0);
    if (code != 0) return -code;
    open_ = true;
    event_ = files::descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (const int why = event_.get() < 0 ? errno : can_read() ? 0 : EOPNOTSUPP; why != 0) {
      close();
      return why;
    }
    return 0;
  }
  void close() noexcept {
    if (std::exchange(open_, false)) ::io_uring_queue_exit(&ring_);
    event_ = files::descriptor();
  }
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  [[nodiscard]] io_uring& get() noexcept { return ring_; }

  /// A place in the submission queue; submits what is queued if the queue is full.
  [[nodiscard]] io_uring_sqe& place() noexcept {
    for (;;) {
      if (io_uring_sqe* const free = ::io_uring_get_sqe(&ring_)) return *free;
      submitted(::io_uring_submit(&ring_));
    }
  }
  /// Handles the result of a submission: if the kernel was interrupted or is out of memory, what was not
  /// submitted stays in the queue.
  static void submitted(int code) noexcept {
    if (code < 0 && code != -EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void wake() noexcept {
    const std::uint64_t one = 1;
    // full: the thread is awake already
    while (::write(event_.get(), &one, sizeof one) < 0 && errno != EAGAIN) {
    }
  }
  /// A completion with this mark will report a wake-up.
  void listen(void* mark) noexcept {
    io_uring_sqe& to = place();
    ::io_uring_prep_poll_add(&to, event_.get(), POLLIN);
    ::io_uring_sqe_set_data(&to, mark);
  }
  void clear_event() noexcept {
    std::uint64_t count = 0;
    while (::read(event_.get(), &count, sizeof count) < 0 && errno == EINTR) {
    }
  }

 private:
  [[nodiscard]] bool can_read() noexcept {
    io_uring_probe* const found = ::io_uring_get_probe_ring(&ring_);
    const bool can = found != nullptr && ::io_uring_opcode_supported(found, IORING_OP_READ) != 0;
    std::free(found);  // liburing's io_uring_free_probe is newer
    return can;
  }

  io_uring ring_{};
  files::descriptor event_;
  bool open_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
