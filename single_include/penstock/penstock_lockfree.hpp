// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component lockfree. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<boost/lockfree/queue.hpp>)
#error "penstock_lockfree.hpp needs Boost.Lockfree: link penstock::lockfree"
#endif

#include "penstock.hpp"

#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

// ---- penstock/run/lockfree.hpp

namespace penstock::inline v0_1 {

/// The hand-over of `ring`, built on queues of Boost.Lockfree: it has the same members and keeps the same
/// order, but passes the numbers on differently.
///
///   work    the consumer pushes one entry for each grain of a block that it opens; workers pop them, and so
///           take grains in order: a thread that waits for a later block never holds an earlier one.
///   done[r] counts finished grains; the thread that finishes the last one pushes the block's number to
///           `ready`.
///   ready   the consumer pops numbers in the order in which blocks were finished and remembers them.
///
/// The queues do not block. Each has a counter that is incremented after every push, on which a thread that
/// found nothing parks: it reads the counter, looks once more, and waits for the value to change. Stop is a
/// flag; both counters are incremented after it is set. Both queues get all their memory when the ring is
/// created, 64 bytes per grain: a push that finds no node waits for a worker that is about to return one.
/// Cost: a push and a pop per grain and per block, where `ring` increments a counter.
///
/// A popping thread of boost::lockfree::queue reads the value of a node that another thread may already have
/// taken and reused; it then discards the value. The thread sanitizer reports that read.
class lockfree_ring {
 public:
  lockfree_ring(std::size_t blocks, std::uint64_t grains, unsigned spins)
      : blocks_(blocks),
        grains_(grains),
        spins_(spins),
        work_(blocks * detail::to_size(grains) + spare_nodes),
        ready_(blocks + spare_nodes),
        done_(std::make_unique<counter[]>(blocks)),
        finished_(blocks, none) {}

  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::uint64_t grains() const noexcept { return grains_; }
  [[nodiscard]] bool stopped() const noexcept { return stop_.load(std::memory_order_relaxed); }
  /// Set by `stop`.
  [[nodiscard]] const std::atomic<bool>& stop_flag() const noexcept { return stop_; }

  /// Consumer: lets workers start on block s.
  void open(std::uint64_t s) noexcept {
    for (std::uint64_t grain = 0; grain < grains_; ++grain) push(work_, s * grains_ + grain);
    raise(work_count_);
  }
  /// Consumer: whether block s is finished; does not wait.
  [[nodiscard]] bool is_ready(std::uint64_t s) noexcept {
    std::uint64_t finished;
    while (ready_.pop(finished)) finished_[place(finished)] = finished;
    return finished_[place(s)] == s;
  }
  /// Consumer: waits for block s; false if the ring was stopped.
  [[nodiscard]] bool wait_ready(std::uint64_t s) noexcept {
    return wait(ready_count_, [&] { return is_ready(s); });
  }
  /// Ends all waiting, now and later. Any thread, any number of times.
  void stop() noexcept {
    stop_.store(true, std::memory_order_seq_cst);
    raise(work_count_);
    raise(ready_count_);
  }

  /// A worker's main loop, like `ring::serve`.
  template <class Work>
  void serve(Work& work) noexcept {
    while (true) {
      work.rest();
      if (stopped()) return;
      std::uint64_t ticket;
      if (!work_.pop(ticket)) {
        work.waiting(true);
        const bool go = wait(work_count_, [&] { return work_.pop(ticket); });
        work.waiting(false);
        if (!go) return;
      }
      if (stopped()) return;
      work.evaluate(ticket / grains_, ticket % grains_);
      if (stopped()) return;
      finish_grain(work, ticket / grains_);
    }
  }
  /// Consumer beside workers: evaluates a grain, if one is left; like `ring::help`.
  template <class Work>
  bool help(Work& work, std::uint64_t /*end*/) noexcept {
    std::uint64_t ticket;
    if (stopped() || !work_.pop(ticket)) return false;
    work.evaluate(ticket / grains_, ticket % grains_);
    if (!stopped()) finish_grain(work, ticket / grains_);
    return true;
  }
  /// Consumer without workers: evaluates block s itself.
  template <class Work>
  void serve_here(Work& work, std::uint64_t s) noexcept {
    std::uint64_t ticket;
    while (finished_[place(s)] != s && work_.pop(ticket)) {
      work.evaluate(ticket / grains_, ticket % grains_);
      if (stopped()) return;
      finish_grain(work, ticket / grains_);
      static_cast<void>(is_ready(s));
    }
  }

 private:
  using queue = boost::lockfree::queue<std::uint64_t>;
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  /// A popped node becomes free a moment after its value is available: room for the workers in between.
  static constexpr std::size_t spare_nodes = 64;

  struct alignas(64) counter {
    std::atomic<std::uint32_t> value{0};
  };

  [[nodiscard]] std::size_t place(std::uint64_t s) const noexcept { return detail::to_size(s % blocks_); }
  static void push(queue& to, std::uint64_t value) noexcept {
    while (!to.bounded_push(value)) std::this_thread::yield();
  }
  static void raise(counter& c) noexcept {
    c.value.fetch_add(1, std::memory_order_seq_cst);
    c.value.notify_all();
  }
  template <class Look>
  [[nodiscard]] bool wait(const counter& c, Look look) noexcept {
    for (unsigned i = 0; i < spins_; ++i) {
      if (stopped()) return false;
      if (look()) return true;
      detail::relax();
    }
    while (true) {
      const std::uint32_t seen = c.value.load(std::memory_order_seq_cst);
      if (stop_.load(std::memory_order_seq_cst)) return false;
      if (look()) return true;
      c.value.wait(seen, std::memory_order_seq_cst);
    }
  }
  template <class Work>
  void finish_grain(Work& work, std::uint64_t s) noexcept {
    if (grains_ != 1) {
      auto& done = done_[place(s)].value;
      if (done.fetch_add(1, std::memory_order_acq_rel) + 1 != grains_) return;
      done.store(0, std::memory_order_relaxed);
    }
    work.finish(s);
    push(ready_, s);
    raise(ready_count_);
  }

  std::size_t blocks_;
  std::uint64_t grains_;
  unsigned spins_;
  queue work_, ready_;
  counter work_count_, ready_count_;
  std::unique_ptr<counter[]> done_;
  std::vector<std::uint64_t> finished_;  // the consumer's: the last finished block at each place
  alignas(64) std::atomic<bool> stop_{false};
};

/// Lets the workers and the consumer of a run exchange blocks through queues of Boost.Lockfree.
struct lockfree_stage {
  using penstock_part = annotation_tag;
  using ring_type = lockfree_ring;
  static constexpr std::string_view stage_name = "lockfree";

  void apply(run_options&, bool /*after_batch*/) const {}
};

/// An annotation: wherever you put it, the sequence, the bytes, the state and the errors stay the same. The
/// engine calls it as it calls its own ring, a few times per block. Use it to compare, or if your program
/// already relies on Boost's queues; the library's own ring does less work per grain (see bench/README.md,
/// rows 3c to 3e).
///
///     auto run = (from(samples) | shuffle(seed(7)) | batch(256) | lockfree).open();
inline constexpr lockfree_stage lockfree{};

}  // namespace penstock::inline v0_1
