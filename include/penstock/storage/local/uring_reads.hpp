// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<liburing.h>)
#error "penstock/storage/local/uring_reads.hpp needs liburing: link penstock::uring"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/owned.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/local/descriptor_cache.hpp>
#include <penstock/storage/local/paths.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <liburing.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

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

/// Reads of the files of a `file::session` in the background: through io_uring, or by threads if it is
/// missing.
///
/// The ring belongs to one thread, started by the first reads: it opens files, submits, waits for the kernel
/// and reports how reads ended. (The kernel cancels what a thread has submitted when that thread ends, so
/// callers must not submit.) Callers write down what they want and wake it.
class uring_reads {
  struct flight {
    waiting_read what;
    std::optional<files::descriptor_cache::lease> opened;
    std::size_t done = 0;
    bool tried_again = false;
  };

 public:
  static constexpr std::size_t max_queue = 16'384;  // a kernel allows 32,768 places
  static constexpr std::size_t threads_without = 8;

  /// `queue`: the number of reads in the kernel at once; 0: no ring, threads read.
  uring_reads(const file::session& files, std::size_t queue)
      : files_(files),
        max_in_flight_(std::min(queue, files.descriptor_limit())),
        pool_(session_view(files_), files_.state_->names->names, threads_without) {}
  ~uring_reads() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    cancel();
    if (thread_.joinable()) thread_.join();
  }

  /// Why this process has no ring for so many reads, as an errno value; 0 if it has one.
  [[nodiscard]] static int why_none(std::size_t queue) noexcept {
    uring probe;
    return probe.open(static_cast<unsigned>(queue));
  }

  void read_many(std::span<const read_request> requests, read_listener listener) noexcept {
    bool sleeps = false;  // otherwise the thread is awake and will look again, or waits for a place
    try {
      start();
      if (!ring_.is_open()) return pool_.read_many(requests, listener);
      const std::scoped_lock lock(mutex_);
      sleeps = waiting_.empty();
      waiting_.push(requests, listener);
    } catch (...) {
      const std::exception_ptr failed = std::current_exception();
      for (const read_request& request : requests) listener.done(listener.self, request.tag, failed);
    }
    if (sleeps) ring_.wake();
  }

  void cancel() noexcept {
    pool_.cancel();
    {
      const std::scoped_lock lock(mutex_);
      if (!running_) return;
      waiting_.stop();
      cancels_ = true;
    }
    ring_.wake();
  }

  /// Whether reads go through a ring. Unknown before the first read.
  [[nodiscard]] bool uses_ring() const noexcept { return running_.load(); }

 private:
  /// Creates the ring and its thread, if possible. Called by one thread at a time, as `read_many` is.
  void start() {
    if (tried_) return;
    if (max_in_flight_ != 0 && ring_.open(static_cast<unsigned>(max_in_flight_)) == 0) {
      try {
        flights_ = fixed_array<flight>(max_in_flight_);
        free_.reserve(max_in_flight_);
        for (std::size_t i = max_in_flight_; i > 0; --i) free_.push_back(&flights_[i - 1]);
        thread_ = std::thread([this]() noexcept { work(); });
      } catch (...) {
        ring_.close();
        free_.clear();
        throw;
      }
      running_ = true;
    }
    tried_ = true;
  }

  void work() noexcept {
    ring_.listen(&ring_);
    while (take_waiting() || in_flight() > 0) {
      uring::submitted(::io_uring_submit_and_wait(&ring_.get(), 1));
      io_uring_cqe* done = nullptr;
      while (::io_uring_peek_cqe(&ring_.get(), &done) == 0 && done != nullptr) {
        void* const mark = ::io_uring_cqe_get_data(done);
        const int result = done->res;
        ::io_uring_cqe_seen(&ring_.get(), done);
        handle(mark, result);
      }
    }
  }
  [[nodiscard]] std::size_t in_flight() const noexcept { return max_in_flight_ - free_.size(); }

  /// Starts waiting reads as far as there are places, and ends those that were cancelled. False when nothing
  /// more will come.
  bool take_waiting() noexcept {
    std::unique_lock lock(mutex_);
    if (std::exchange(cancels_, false)) {
      lock.unlock();
      stop_flights();
      lock.lock();
    }
    while (!waiting_.empty() && (waiting_.front().stopped || !free_.empty())) {
      const waiting_read one = waiting_.pop();
      lock.unlock();
      begin(one);
      lock.lock();
    }
    return !ends_ || !waiting_.empty();
  }

  void begin(const waiting_read& one) noexcept {
    const read_request& request = one.request;
    if (one.stopped) return one.tell(cancelled(request));
    flight& it = *free_.back();
    std::exception_ptr failed = thrown_by([&] {
      it.opened.emplace(files_.state_->open_files.use(request.object));
      files_.check_offset(request.object, request.offset, request.into.size());
      // So that a file in memory gets mapped, for `read` and for views.
      if (files_.state_->access != file_access::read && !files_.mapped(request.object))
        files_.think_again(request.object, it.opened->get());
    });
    if (failed) {
      it.opened.reset();
      return one.tell(std::move(failed));
    }
    it.what = one;
    it.done = 0;
    it.tried_again = false;
    free_.pop_back();
    if (request.into.empty()) return finish(it, nullptr);
    submit(it);
  }

  void submit(flight& it) noexcept {
    const read_request& request = it.what.request;
    const std::size_t size = std::min(request.into.size() - it.done, file::session::max_read_bytes);
    io_uring_sqe& to = ring_.place();
    ::io_uring_prep_read(&to, it.opened->get(), request.into.data() + it.done, static_cast<unsigned>(size),
                         request.offset + it.done);
    ::io_uring_sqe_set_data(&to, &it);
  }

  void handle(void* mark, int result) noexcept {
    if (mark == nullptr) return;  // the answer to a cancel request; the read's own answer follows
    if (mark == &ring_) {
      ring_.clear_event();
      ring_.listen(&ring_);
      return;
    }
    flight& it = *static_cast<flight*>(mark);
    if (result > 0) it.done += static_cast<std::size_t>(result);
    if (it.done == it.what.request.into.size()) return finish(it, nullptr);
    if (it.what.stopped) return finish(it, cancelled(it.what.request));
    if (result > 0 || result == -EINTR) return submit(it);
    if (result == -EAGAIN && !std::exchange(it.tried_again, true)) {
      // Older kernels do not wait for a file that was opened non-blocking (against hanging named pipes).
      const int flags = ::fcntl(it.opened->get(), F_GETFL);
      if (flags >= 0 && ::fcntl(it.opened->get(), F_SETFL, flags & ~O_NONBLOCK) == 0) return submit(it);
    }
    finish(it, failure(it.what.request, result));
  }

  /// The exception that `read` would throw for this result of the kernel.
  [[nodiscard]] std::exception_ptr failure(const read_request& request, int result) const noexcept {
    return thrown_by([&] {
      errno = -result;
      (void)files_.advance(request.object, result == 0 ? 0 : -1, request.offset, request.into.size());
    });
  }
  [[nodiscard]] std::exception_ptr cancelled(const read_request& request) const noexcept {
    return read_cancelled(request, files_.state_->names->names);
  }

  void finish(flight& it, std::exception_ptr failed) noexcept {
    it.opened.reset();
    free_.push_back(&it);  // it has room for all
    it.what.tell(std::move(failed));
  }

  /// Asks the kernel to drop its reads. It may refuse: a read that a disk is working on runs to its end.
  void stop_flights() noexcept {
    for (std::size_t i = 0; i < max_in_flight_; ++i) {
      flight& it = flights_[i];
      if (!it.opened || std::exchange(it.what.stopped, true)) continue;
      io_uring_sqe& to = ring_.place();
      ::io_uring_prep_cancel(&to, &it, 0);
      ::io_uring_sqe_set_data(&to, nullptr);
    }
  }

  file::session files_;
  std::size_t max_in_flight_;
  threaded_reads pool_;
  uring ring_;
  fixed_array<flight> flights_;
  std::vector<flight*> free_;
  bool tried_ = false;
  std::atomic<bool> running_{false};

  std::mutex mutex_;
  waiting_reads waiting_;
  bool cancels_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace penstock::inline v0_1::detail
