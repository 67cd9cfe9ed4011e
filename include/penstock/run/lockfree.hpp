// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/lockfree/queue.hpp>)
#error "penstock/run/lockfree.hpp needs Boost.Lockfree: link penstock::lockfree"
#endif

#include <penstock/core/options.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/run/engine/workers/ring.hpp>

#include <boost/lockfree/queue.hpp>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {

/// Finished blocks on their way to the consumer, in a queue of Boost.Lockfree; see `block_delivery`.
///
/// Workers push the number of a block that is finished; the consumer pops numbers in the order in which
/// blocks were finished, and remembers them. The queue does not block. A counter is incremented after every
/// push, on which a consumer that found nothing parks: it reads the counter, looks once more, and waits for
/// the value to change. Stop is a flag; the counter is incremented after it is set. The queue gets all its
/// memory when it is created.
/// Cost: a push and a pop per block, where `ring` stores a word.
///
/// A popping thread of boost::lockfree::queue reads the value of a node that another thread may already have
/// taken and reused; it then discards the value. The thread sanitizer reports that read.
class lockfree_delivery {
 public:
  lockfree_delivery(std::size_t blocks, unsigned spins)
      : blocks_(blocks), spins_(spins), queue_(blocks + spare_nodes), finished_(blocks, none) {}

  void put(std::uint64_t s) noexcept {
    while (!queue_.bounded_push(s)) std::this_thread::yield();
    raise();
  }
  [[nodiscard]] bool is_ready(std::uint64_t s) noexcept {
    std::uint64_t finished;
    while (queue_.pop(finished)) finished_[place(finished)] = finished;
    return finished_[place(s)] == s;
  }
  [[nodiscard]] bool wait_ready(std::uint64_t s) noexcept {
    for (unsigned i = 0; i < spins_; ++i) {
      if (stop_.load(std::memory_order_relaxed)) return false;
      if (is_ready(s)) return true;
      detail::relax();
    }
    while (true) {
      const std::uint32_t seen = count_.load(std::memory_order_seq_cst);
      if (stop_.load(std::memory_order_seq_cst)) return false;
      if (is_ready(s)) return true;
      count_.wait(seen, std::memory_order_seq_cst);
    }
  }
  void stop() noexcept {
    stop_.store(true, std::memory_order_seq_cst);
    raise();
  }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  /// A popped node becomes free a moment after its value is available.
  static constexpr std::size_t spare_nodes = 64;

  [[nodiscard]] std::size_t place(std::uint64_t s) const noexcept { return detail::to_size(s % blocks_); }
  void raise() noexcept {
    count_.fetch_add(1, std::memory_order_seq_cst);
    count_.notify_all();
  }

  std::size_t blocks_;
  unsigned spins_;
  boost::lockfree::queue<std::uint64_t> queue_;
  std::vector<std::uint64_t> finished_;  // the consumer's: the last finished block at each place
  alignas(64) std::atomic<std::uint32_t> count_{0};
  alignas(64) std::atomic<bool> stop_{false};
};

/// Lets finished blocks reach the consumer through a queue of Boost.Lockfree.
struct lockfree_stage {
  using penstock_part = annotation_tag;
  using delivery_type = lockfree_delivery;
  static constexpr std::string_view stage_name = "lockfree";

  void apply(run_options&, bool /*after_batch*/) const {}
};

/// An annotation: wherever you put it, the sequence, the bytes, the state and the errors stay the same. The
/// engine calls it a few times per block. Use it to compare, or if your program already relies on Boost's
/// queues; the library's own ring does less work per block (see bench/README.md, rows 3c to 3e).
///
///     auto run = (from(samples) | shuffle(seed(7)) | batch(256) | lockfree).open();
inline constexpr lockfree_stage lockfree{};

}  // namespace penstock::inline v0_1
