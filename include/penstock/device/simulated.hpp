// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/device/concepts.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {

/// An accelerator that computes nothing: it takes a given time per batch and per byte copied, so that you
/// can measure stalls on any machine.
///
/// `pin_and_copy(accelerator)` copies batches to it; `accelerator.step()` in the training loop takes `step`
/// of time, like a launch that you wait for. `stall()` is the fraction of the time since the first step
/// during which it was idle. Copies of a `simulated` share one clock and one account; `step()` and the
/// figures belong to the thread of the training loop.
class simulated {
  using clock = std::chrono::steady_clock;
  struct account {
    clock::time_point first{}, free_at{};
    clock::duration busy{};
    std::size_t steps = 0;
  };

 public:
  struct options {
    std::chrono::microseconds step{1000};  ///< time per batch
    double bytes_per_second = 0;           ///< speed of a copy to the device; 0: as fast as memory
  };

  simulated() : simulated(options{}) {}
  explicit simulated(options given) : options_(given), account_(new account()) {}

  class session {
   public:
    static constexpr bool copies = true;
    using stream_type = host_stream;
    struct transfer {
      std::vector<buffer> columns;
      clock::time_point done{};
    };

    explicit session(options given) : options_(given) {}

    [[nodiscard]] void* allocate(std::size_t bytes) { return ::operator new(bytes, std::align_val_t{64}); }
    void deallocate(void* p, std::size_t /*bytes*/) noexcept { ::operator delete(p, std::align_val_t{64}); }
    /// Copies immediately (this thread is the simulated copy engine), and then does the work; the copy counts
    /// as done after the time that the given bandwidth takes.
    template <class Work = detail::no_device_work>
    void start(transfer& t, std::span<const bytes_view> columns, std::span<const std::size_t> rooms = {},
               const Work& work = {}) {
      const auto begin = std::max(clock::now(), link_free_);
      const std::size_t count = columns.size() + rooms.size();
      if (t.columns.size() < count) t.columns.resize(count);
      double bytes = 0;
      for (std::size_t i = 0; i < columns.size(); ++i) {
        t.columns[i].resize_for_overwrite(whole_lines(columns[i].size()));
        if (!columns[i].empty()) std::memcpy(t.columns[i].data(), columns[i].data(), columns[i].size());
        bytes += static_cast<double>(columns[i].size());
      }
      for (std::size_t i = 0; i < rooms.size(); ++i)
        t.columns[columns.size() + i].resize_for_overwrite(whole_lines(rooms[i]));
      t.done = begin;
      if (options_.bytes_per_second > 0)
        t.done += std::chrono::duration_cast<clock::duration>(
            std::chrono::duration<double>(bytes / options_.bytes_per_second));
      link_free_ = t.done;
      work(host_stream{});
    }
    void wait(transfer& t) { std::this_thread::sleep_until(t.done); }
    [[nodiscard]] const void* data(transfer& t, std::size_t i) { return t.columns[i].data(); }

   private:
    /// As on a device: the words in which a column ends may be read whole.
    [[nodiscard]] static constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
      return (bytes + 63) / 64 * 64;
    }

    options options_;
    clock::time_point link_free_{};
  };

  [[nodiscard]] session connect() const { return session(options_); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"simulated accelerator (", options_.step.count(), " us a step)"});
  }

  /// Takes the time of one training step.
  void step() const {
    const auto now = clock::now();
    if (account_->steps++ == 0) account_->first = now;
    account_->busy += options_.step;
    account_->free_at = now + options_.step;
    std::this_thread::sleep_until(account_->free_at);
  }
  [[nodiscard]] std::size_t steps() const { return account_->steps; }
  /// The fraction of the time from the first step to the end of the last during which the device waited; 0
  /// before the first.
  [[nodiscard]] double stall() const {
    if (account_->steps == 0) return 0;
    const auto whole_time = account_->free_at - account_->first;
    if (whole_time <= clock::duration::zero()) return 0;
    return 1.0 - std::chrono::duration<double>(account_->busy) / std::chrono::duration<double>(whole_time);
  }

 private:
  options options_;
  std::shared_ptr<account> account_;
};

}  // namespace penstock::inline v0_1
