// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/engine/read_ahead/range_list.hpp>
#include <penstock/run/engine/sizes.hpp>
#include <penstock/run/engine/tuning/autotuner.hpp>
#include <penstock/run/engine/tuning/block_budget.hpp>
#include <penstock/run/engine/tuning/live_limits.hpp>
#include <penstock/run/engine/tuning/worker_counts.hpp>
#include <penstock/run/engine/workers/dear_slots.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/run/engine/workers/ring.hpp>
#include <penstock/run/engine/workers/thread.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <atomic>
#include <exception>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

class engine_shell;
class range_store;
struct ahead_sizes;

/// A worker as the engine's shell knows it, and its work as a ring calls it; the plan's own worker, with the
/// scratch of its stages, derives from it.
struct alignas(64) engine_worker {
  engine_shell* shell = nullptr;
  std::size_t number = 0;
  worker_counts* counts = nullptr;
  std::vector<stage_cost> costs{};  // of the source and each stage, at the last look
  room_wait room{};
  dear_slots::others apart{};  // slots of its grain that others have
  joined_thread thread{};

  void serve() noexcept;
  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept;
  void finish(std::uint64_t s) noexcept;
  void waiting(bool begins) noexcept;
  void rest() noexcept;

 private:
  [[nodiscard]] bool times_next() const noexcept;
  void count(block& b, std::uint64_t s, std::uint64_t first, std::uint64_t slots, std::uint64_t samples,
             std::uint64_t begin, bool times) noexcept;
  void begin_dear() noexcept;
};

/// The plan-specific operations that an engine's shell calls: about one call of each per block or grain.
/// `engine` is the plan's part, which created the shell.
struct engine_calls {
  block* (*make)(void* engine);                  ///< creates a block
  void (*destroy)(block*) noexcept;              ///< destroys a block
  void (*prepare)(void* engine, block&);         ///< binds orders and begins columns; positions are set
  std::uint64_t (*held)(const block&) noexcept;  ///< bytes of its columns
  void (*release)(block&) noexcept;              ///< returns those bytes
  void (*settle)(void* engine, block&);          ///< waits until no copy reads what was returned
  void (*leave)(void* engine, block&);           ///< tells the device that a batch was returned
  void (*start_copy)(void* engine, block&);      ///< to the device
  void (*end_copy)(void* engine, block&);        ///< waits for the copy
  engine_worker* (*make_worker)();               ///< creates a worker with the scratch of its stages
  void (*destroy_worker)(engine_worker*) noexcept;
  /// tells the device that so many more blocks like the first will be made
  void (*expect)(void* engine, std::size_t times) noexcept;
  /// Evaluates a grain and returns its number of samples. `times`: measures the first one.
  std::uint64_t (*evaluate)(void* engine, engine_worker&, block&, std::uint64_t s, std::uint64_t grain,
                            bool abandoned, bool times) noexcept;
  /// With `longest_first`, otherwise null: the slots of a block that take far longer than the mean of a
  /// sample.
  std::span<dear_slot> (*find_dear)(void* engine, block&, double mean_ns) = nullptr;
  /// Evaluates one of them before the turn of its grain.
  std::uint64_t (*evaluate_dear)(void* engine, engine_worker&, block&, std::uint64_t slot,
                                 bool times) noexcept = nullptr;
  void (*finish)(void* engine, engine_worker&, block&) noexcept;        ///< after all grains are done
  void (*costs)(const engine_worker&, std::span<stage_cost>) noexcept;  ///< of source and stages so far
  /// at a saved position, or from the start
  void (*restart_front)(void* engine, std::span<const std::uint64_t>);
  void (*stop_front)(void* engine) noexcept;    ///< releases its waiters
  void (*cancel_reads)(void* engine) noexcept;  ///< ends the reader's reads; any thread
  session_report (*report)(void* engine);       ///< of the reader's sessions; any thread
};

/// What a shell is given at construction.
struct engine_setup {
  engine_setup();
  engine_setup(const engine_setup&);
  engine_setup(engine_setup&&) noexcept;
  ~engine_setup();

  /// Settles the number of workers, if none was given, and the sizes of the pieces that the work is divided
  /// into. `known` lacks what depends on the machine, and `positions` the size of a chunk.
  void size(const run_options& given, std::uint64_t local_ranks, const size_facts& known,
            feed_facts positions);
  /// Part of `size`: how many samples to request ahead.
  void settle_ahead();
  /// Part of `size`, for a run that tunes itself: makes the sizes so far its start, and the caps its limits.
  void widen(const run_options& given, unsigned processors);

  run_options options;  ///< `workers` and `ahead` are set
  size_facts facts;     ///< complete; blocks are batches if they are `direct`, otherwise chunks
  feed leading;         ///< the positions that the blocks hold
  std::size_t batches_per_block = 1;
  std::uint64_t grain_slots = 1;    ///< slots that a worker takes at a time
  std::uint64_t grains = 0;         ///< of a block, at least
  std::size_t depth = 2;            ///< blocks in flight
  bool forward = false;             ///< the source can only be read forward
  bool sizes_are_fixed = false;     ///< the columns of a block have the same size each time
  bool times_grains = false;        ///< with observers, times the first sample of every grain
  bool tells_costs = false;         ///< observers are told what each stage cost
  std::vector<std::string> stages;  ///< names of the source, the value stages and `map_batch`
  std::size_t batch_maps = 0;       ///< the last ones of `stages`, timed per batch
  std::vector<any_observer> observers;
  bool batched = false;  ///< the plan has batches
  bool tunes = false;    ///< the run tunes itself
  tuner_setup tuning;    ///< what it begins with, if so
};

/// Workers, ring, pool and feeds of one run: everything in an engine except the code of its plan, which it
/// calls through `engine_calls`. Never moved: workers and batches point to it. One thread at a time is its
/// consumer.
///
/// Cost: a few indirect calls per block and one per grain; none per sample.
class engine_shell {
 public:
  /// `delivery`: see `ring`.
  engine_shell(const engine_calls& calls, void* engine, engine_setup setup, block_delivery::maker delivery,
               const std::stop_token& token);
  engine_shell(const engine_shell&) = delete;
  engine_shell& operator=(const engine_shell&) = delete;
  /// `stop()` must have been called.
  ~engine_shell();

  /// Creates and starts the workers, and the thread that asks `who` for hints.
  void start(hinter who);

  /// The process that owns the threads.
  [[nodiscard]] const home_process& home() const noexcept { return home_; }
  [[nodiscard]] run_watch& watch() noexcept { return watch_; }
  [[nodiscard]] const stop_view& stop_state() const noexcept { return stop_; }
  /// Ends all work, including the consumer's wait. Any thread, any number of times.
  void request_stop() noexcept;
  /// Calls `f`, and if that throws, ends all work: the consumer must not go on behind what failed.
  template <class F>
  decltype(auto) or_stop(F f) {
    try {
      return f();
    } catch (...) {
      request_stop();
      throw;
    }
  }
  [[nodiscard]] bool stopped() const noexcept { return ring_.stopped(); }
  /// Ends all work and joins the threads. Consumer only.
  void stop() noexcept;

  /// Opens as many blocks as there is room for, so that workers start before the first batch is requested.
  void open_more();
  /// The next block in order, evaluated; null at the limit of read-ahead or when stopped. A failure, if there
  /// was one, is stored in the block.
  [[nodiscard]] block* next();
  void give_back(block* b) noexcept;
  /// Tells the device which batches have been returned: what it was told to do later does not concern them.
  void leave_returned(block_pool& pool);
  /// Returns a block that was taken but not delivered, and stops the run.
  void give_back_and_stop(block* b) noexcept {
    give_back(b);
    request_stop();
  }
  /// Drops what was opened and restarts where `move(feed&)` puts the feed; over a forward source, at the
  /// position `front`, which a front has saved.
  void reposition(auto&& move, std::span<const std::uint64_t> front = {}) {
    drop_opened();
    try {
      move(leading_);
    } catch (...) {
      begin_again({});  // the feed's place does not matter: the dropped blocks do not continue it
      throw;
    }
    begin_again(front);
  }
  /// Changes limits; see `run::adjust`. Any thread.
  void adjust(const run_limits& wanted);
  [[nodiscard]] run_limits limits() const noexcept { return limits_.now(); }
  /// Lets the feed read ahead up to this epoch; `ends`: there will be no other one.
  void limit(std::uint64_t epochs, bool ends = false);
  /// Waits until a block returned by `next` is on its device.
  void arrive(block& b);
  void delivered(std::uint64_t samples, std::uint64_t bytes) noexcept { consumer_.delivered(samples, bytes); }
  /// The consumer has had so many batches of an epoch.
  void stand_at(std::uint64_t epoch, std::uint64_t step) noexcept { consumer_.stand_at(epoch, step); }
  /// Any thread.
  [[nodiscard]] run_counters counters() const;
  /// Whether one more block fits within `memory(bytes)`.
  [[nodiscard]] bool room_for_another();

  /// The feed from which blocks are opened.
  [[nodiscard]] const feed& leading() const noexcept { return leading_; }
  /// The feed that advances on delivery: where the consumer stands.
  [[nodiscard]] feed& delivered_feed() noexcept { return delivered_feed_; }
  [[nodiscard]] const run_options& options() const noexcept { return setup_.options; }
  [[nodiscard]] const std::vector<std::string>& stages() const noexcept { return setup_.stages; }
  [[nodiscard]] std::size_t ring_blocks() const noexcept { return ring_.blocks(); }
  /// The store that has what was fetched ahead for the rows from `first` to before `end`; null if nothing
  /// is.
  [[nodiscard]] range_store* fetched(std::uint64_t first, std::uint64_t end) const noexcept;
  /// The maximum number of blocks in flight, including those that the consumer holds.
  [[nodiscard]] std::size_t depth() const noexcept { return setup_.depth; }
  [[nodiscard]] bool copies() const noexcept { return setup_.facts.copies; }
  /// Whether samples that take long are begun before their turn.
  [[nodiscard]] bool begins_early() const noexcept { return bool(dear_); }
  [[nodiscard]] memory_account& account() noexcept { return account_; }

 private:
  friend struct engine_worker;
  /// Blocks, threads and read-ahead: what only the shell's own code touches.
  struct machinery;

  void prepare(block& b);
  void place(block& b);
  void expect_blocks();
  void publish_dear(block& b);
  [[nodiscard]] bool goes_on();
  [[nodiscard]] ahead_sizes sizes_ahead() const noexcept;
  void drop_opened();
  void begin_again(std::span<const std::uint64_t> front);
  [[nodiscard]] bool may_open();
  void shrink();
  [[nodiscard]] bool wait_for(std::uint64_t s);
  [[nodiscard]] bool waited_for_one(std::uint64_t s) const noexcept;
  void note_counters();
  void settle_requests();
  void tune();
  void apply(const tuned_limits& wanted);
  void send_ahead();
  void start_copy(block& b);
  static void explain(const void* self, std::string& line);

  const engine_calls* calls_;
  void* engine_;
  engine_setup setup_;
  home_process home_;
  memory_account account_;
  feed leading_, delivered_feed_;
  std::uint64_t grains_;  // of a block
  ring ring_;
  detail::owned<dear_slots> dear_{};  // null if all samples are evaluated in their turn
  stop_view stop_;
  live_limits limits_;
  std::uint64_t opened_ = 0, delivered_ = 0;
  block_budget budget_;
  std::size_t room_;               // batches that a block has memory for
  std::exception_ptr not_sent_;    // why the copy of a block could not be started ahead of its delivery
  std::uint64_t not_sent_at_ = 0;  // its number
  std::uint64_t row_ = 0;          // slots of all blocks prepared so far
  std::uint64_t largest_ = 0;      // bytes of a block
  std::uint64_t max_slots_ = 0;    // of a block that was delivered
  bool sizes_known_ = false;
  std::atomic<bool> abandon_{false};
  consumer_counts consumer_;
  run_watch watch_;
  storage_counters noted_counters_;  // that observers know
  std::uint64_t started_, last_wait_ns_ = 0;
  detail::owned<machinery> inner_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/engine_shell.ipp>
#endif
