// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/tuning/live_limits.hpp>
#include <penstock/run/engine/workers/ring.hpp>
#include <penstock/run/engine/workers/worker_seat.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {

/// A thread's work as a ring calls it: `evaluate` for each grain that it takes, `finish` once per block,
/// `waiting(true)` and `waiting(false)` around a wait for room, and `rest` when it holds no ticket. None of
/// them throws.
struct ring_work {
  const live_limits* limits;
  worker_seat* seat = nullptr;  ///< where the consumer may take this thread's place
  std::size_t number;           ///< of the thread

  void (*on_grain)(ring_work&, std::uint64_t s, std::uint64_t grain) noexcept;
  void (*on_block)(ring_work&, std::uint64_t s) noexcept;
  void (*on_wait)(ring_work&, bool begins) noexcept;

  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept { on_grain(*this, s, grain); }
  void finish(std::uint64_t s) noexcept { on_block(*this, s); }
  void waiting(bool begins) noexcept { on_wait(*this, begins); }
  void rest() noexcept {
    if (seat != nullptr) seat->offer();
    if (!limits->may_work(number)) [[unlikely]]
      limits->rest(number);
  }
};

/// Whether a ring was stopped; worker loops check it once per slot.
class stop_view {
 public:
  stop_view() = default;
  explicit stop_view(const std::atomic<bool>& flag) noexcept : flag_(&flag) {}

  [[nodiscard]] bool stopped() const noexcept { return flag_->load(std::memory_order_relaxed); }
  [[nodiscard]] const std::atomic<bool>& flag() const noexcept { return *flag_; }
  /// Like `stopped`, but sequentially consistent, for loops around words that others wait on.
  [[nodiscard]] bool stopped_for_sure() const noexcept { return flag_->load(std::memory_order_seq_cst); }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

/// Owns a ring of any type; the engine calls it through function pointers, a few times per block.
///
/// A ring has the public members of `ring`, among them `help`, and `stop_flag()`, which returns the flag that
/// `stop` sets.
class any_ring {
 public:
  /// The library's own `ring`.
  [[nodiscard]] static any_ring own(std::size_t blocks, std::uint64_t grains, unsigned spins);
  any_ring(const any_ring&) = delete;
  any_ring& operator=(const any_ring&) = delete;
  ~any_ring() { calls_->destroy(self_); }

  /// A ring of another type.
  template <class Ring>
  [[nodiscard]] static any_ring of(std::size_t blocks, std::uint64_t grains, unsigned spins) {
    Ring* const made = new Ring(blocks, grains, spins);
    return any_ring(made, made->stop_flag(), blocks, calls_to<Ring>);
  }

  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] bool stopped() const noexcept { return stop_.stopped(); }
  [[nodiscard]] const stop_view& stop_state() const noexcept { return stop_; }
  void open(std::uint64_t s) noexcept { calls_->open(self_, s); }
  [[nodiscard]] bool is_ready(std::uint64_t s) noexcept { return calls_->is_ready(self_, s); }
  [[nodiscard]] bool wait_ready(std::uint64_t s) noexcept { return calls_->wait_ready(self_, s); }
  void stop() noexcept { calls_->stop(self_); }
  void serve(ring_work& w) noexcept { calls_->serve(self_, w); }
  void serve_here(ring_work& w, std::uint64_t s) noexcept { calls_->serve_here(self_, w, s); }
  bool help(ring_work& w, std::uint64_t end) noexcept { return calls_->help(self_, w, end); }

 private:
  struct calls {
    void (*open)(void*, std::uint64_t) noexcept;
    bool (*is_ready)(void*, std::uint64_t) noexcept;
    bool (*wait_ready)(void*, std::uint64_t) noexcept;
    void (*stop)(void*) noexcept;
    void (*serve)(void*, ring_work&) noexcept;
    void (*serve_here)(void*, ring_work&, std::uint64_t) noexcept;
    bool (*help)(void*, ring_work&, std::uint64_t) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class Ring>
  static constexpr calls calls_to{
      [](void* r, std::uint64_t s) noexcept { static_cast<Ring*>(r)->open(s); },
      [](void* r, std::uint64_t s) noexcept { return static_cast<Ring*>(r)->is_ready(s); },
      [](void* r, std::uint64_t s) noexcept { return static_cast<Ring*>(r)->wait_ready(s); },
      [](void* r) noexcept { static_cast<Ring*>(r)->stop(); },
      [](void* r, ring_work& w) noexcept { static_cast<Ring*>(r)->serve(w); },
      [](void* r, ring_work& w, std::uint64_t s) noexcept { static_cast<Ring*>(r)->serve_here(w, s); },
      [](void* r, ring_work& w, std::uint64_t end) noexcept { return static_cast<Ring*>(r)->help(w, end); },
      [](void* r) noexcept { delete static_cast<Ring*>(r); }};

  any_ring(void* self, const std::atomic<bool>& stop, std::size_t blocks, const calls& all) noexcept
      : self_(self), calls_(&all), blocks_(blocks), stop_(stop) {}

  void* self_;
  const calls* calls_;
  std::size_t blocks_;
  stop_view stop_;
};

inline any_ring any_ring::own(std::size_t blocks, std::uint64_t grains, unsigned spins) {
  return of<ring>(blocks, grains, spins);
}

}  // namespace penstock::inline v0_1
