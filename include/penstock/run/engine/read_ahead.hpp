// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/engine/thread.hpp>
#include <penstock/run/feed/feed.hpp>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace penstock::inline v0_1 {

/// What a run over a source that takes no hints has of it.
struct no_read_ahead {};

/// Asks the source for the bytes of samples before their turn: follows the feed a given number of samples
/// ahead of what is opened.
///
/// The order is known, so what it asks for is exact, across the end of an epoch too. Runs in a thread of its
/// own (a hint may block in the kernel), or in the consumer's where the run has no workers.
template <class Reader, class Orders>
class read_ahead {
 public:
  read_ahead() = default;
  ~read_ahead() { stop(); }

  /// `asked(who, begin, end, samples)` is called after each time that bytes were asked for, by the thread
  /// that did; times in nanoseconds of the steady clock.
  using asked_type = void (*)(void* who, std::uint64_t begin, std::uint64_t end, std::uint64_t samples);
  void observe(asked_type asked, void* who) noexcept {
    asked_by_ = asked;
    who_ = who;
  }
  void start(const Reader& reader, const feed& where, std::shared_ptr<const Orders> orders,
             std::uint64_t samples, bool own_thread) {
    reader_ = &reader;
    orders_ = std::move(orders);
    feed_ = where;
    samples_ = samples;
    if (own_thread) thread_.template start<&read_ahead::follow>(*this);
  }
  /// A block of so many slots was opened.
  void opened(std::uint64_t slots) {
    if (reader_ == nullptr) return;
    {
      const std::lock_guard guard(lock_);
      opened_ += slots;
    }
    if (thread_.joinable())
      more_.notify_one();
    else
      catch_up();
  }
  void limit(std::uint64_t epochs) {
    if (reader_ == nullptr) return;
    const std::lock_guard guard(lock_);
    feed_.limit(epochs);
  }
  /// Begins again where the feed stands now.
  void restart(const feed& where) {
    if (reader_ == nullptr) return;
    const std::lock_guard guard(lock_);
    feed_ = where;
    opened_ = asked_ = 0;
  }
  void stop() noexcept {
    {
      const std::lock_guard guard(lock_);
      stop_ = true;
    }
    more_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

 private:
  [[nodiscard]] bool behind() const { return feed_.more() && asked_ < opened_ + samples_; }

  /// One block's worth of hints; the lock is free while the kernel is asked.
  void ask_once(std::unique_lock<std::mutex>& held) {
    placement next = std::move(placement_);
    feed_.prepare(next, 1);
    next.bind(*orders_, binding_);
    asked_ += next.slots == 0 ? 1 : next.slots;
    held.unlock();
    const std::uint64_t begin = asked_by_ == nullptr ? 0 : detail::now_ns();
    try {
      for (std::uint64_t slot = 0; slot < next.parts[0].valid; ++slot)
        hint(*reader_, binding_(next.index(slot)), scout_);
    } catch (...) {  // a hint is only a hint: whoever reads the sample will say what is wrong
    }
    if (asked_by_ != nullptr) asked_by_(who_, begin, detail::now_ns(), next.parts[0].valid);
    held.lock();
    placement_ = std::move(next);
  }
  void catch_up() {
    std::unique_lock held(lock_);
    while (!stop_ && behind()) ask_once(held);
  }
  void follow() noexcept {
    std::unique_lock held(lock_);
    while (!stop_) {
      if (behind()) {
        try {
          ask_once(held);
        } catch (...) {  // a hint is only a hint: whoever reads the sample will say what is wrong
          if (!held.owns_lock()) held.lock();
          return;
        }
      } else {
        more_.wait(held);
      }
    }
  }

  const Reader* reader_ = nullptr;
  [[no_unique_address]] scout_of<Reader> scout_;  // of whoever follows: the thread, or else the consumer
  std::shared_ptr<const Orders> orders_;
  typename Orders::binding binding_;
  feed feed_;
  placement placement_;
  std::uint64_t samples_ = 0, opened_ = 0, asked_ = 0;
  std::mutex lock_;
  std::condition_variable more_;
  bool stop_ = false;
  asked_type asked_by_ = nullptr;
  void* who_ = nullptr;
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1
