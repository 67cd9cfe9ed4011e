// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/engine_shell.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/run/engine/read_ahead/read_ahead.hpp>
#include <penstock/run/engine/tuning/machine.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>
#include <penstock/run/engine/workers/thread_place.hpp>
#include <penstock/run/engine/workers/wait_watchdog.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace penstock::inline v0_1 {

struct engine_shell::machinery {
  struct stopper {
    engine_shell* self;
    void operator()() const noexcept { self->request_stop(); }
  };

  machinery(const engine_setup& setup, std::size_t blocks, void (*destroy)(block*) noexcept)
      : in_ring(blocks),
        pool(setup.depth + (setup.facts.direct ? 0 : 1), destroy, setup.facts.copies),
        counts(std::max(1u, *setup.options.workers)),
        place(setup.options.threads),
        watchdog(std::chrono::milliseconds(setup.options.watchdog_ms)) {}

  [[nodiscard]] block*& block_of(std::uint64_t s) noexcept {
    return in_ring[detail::to_size(s % in_ring.size())];
  }

  std::vector<block*> in_ring;
  block_pool pool;
  stall_clock stall;
  std::atomic<std::uint64_t> finished{0};  // batches of blocks that workers have finished
  std::vector<worker_counts> counts;
  thread_place place;                   // of the workers and of read-ahead
  std::vector<engine_worker*> workers;  // includes the consumer's own where there are no threads
  read_ahead ahead;
  watchdog_thread watchdog;
  mutable shown_counters shown;
  /// Of a run that tunes itself.
  struct tuning_state {
    explicit tuning_state(const tuner_setup& setup) : tuner(setup) {}
    autotuner tuner;
    std::uint64_t blocks = 0, samples = 0, look_at = 0;  // delivered, and when to look again
    std::mutex lock;                                     // of `adjusted`, while limits are set
    run_limits adjusted;                                 // by others, since the last look
  };
  detail::owned<tuning_state> tuning;
  std::stop_token token;
  std::optional<std::stop_callback<stopper>> on_stop;
};

PENSTOCK_INLINE void engine_worker::serve() noexcept {
  shell->inner_->place.enter();
  shell->ring_.serve(*this);
}
PENSTOCK_INLINE void engine_worker::evaluate(std::uint64_t s, std::uint64_t grain) noexcept {
  engine_shell& e = *shell;
  block& b = *e.inner_->block_of(s);
  const std::uint64_t first = grain * b.grain_slots;
  if (e.setup_.facts.direct && grain != 0 && first >= b.slots) return;
  if (e.dear_) [[unlikely]] {
    apart.count = 0;
    if (const std::uint32_t mine = e.dear_->take(s, first, first + b.grain_slots, apart); mine != 0)
      e.ring_.count_pieces(s, mine);  // they are finished with the grain
  }
  const bool abandoned = e.abandon_.load(std::memory_order_relaxed);
  if (abandoned && !e.setup_.forward) return;
  const std::uint64_t begin = detail::now_ns();
  const bool times = times_next();
  const std::uint64_t samples = e.calls_->evaluate(e.engine_, *this, b, s, grain, abandoned, times);
  count(b, s, first, b.grain_slots, samples, begin, times);
}
PENSTOCK_INLINE bool engine_worker::times_next() const noexcept {
  return shell->watch_.times_all_grains() ||
         counts->grains.load(std::memory_order_relaxed) % tuning::timed_grains == 0;
}
PENSTOCK_INLINE void engine_worker::count(block& b, std::uint64_t s, std::uint64_t first, std::uint64_t slots,
                                          std::uint64_t samples, std::uint64_t begin, bool times) noexcept {
  engine_shell& e = *shell;
  const std::uint64_t end = detail::now_ns();
  counts->add(samples, end - begin);
  if (e.setup_.facts.direct && e.setup_.facts.takes_time)
    b.work_ns.fetch_add(end - begin, std::memory_order_relaxed);
  if (times) {
    e.calls_->costs(*this, costs);
    counts->publish(costs);
  }
  e.watch_.grain(number, std::span(costs).first(costs.size() - e.setup_.batch_maps), b, first, slots, samples,
                 {begin, end, activity::evaluate, 0, s});
}
/// Evaluates slots that are due before the grains whose turn it is, as long as there are any.
PENSTOCK_INLINE void engine_worker::begin_dear() noexcept {
  engine_shell& e = *shell;
  for (dear_slots::claimed it;
       !e.stopped() && e.limits_.may_work(number) && e.dear_->claim(e.ring_.next_ticket(), it);) {
    block& b = *e.inner_->block_of(it.block);
    if (!e.abandon_.load(std::memory_order_relaxed)) {
      const std::uint64_t begin = detail::now_ns();
      const bool times = times_next();
      const std::uint64_t samples = e.calls_->evaluate_dear(e.engine_, *this, b, it.slot, times);
      count(b, it.block, it.slot, 1, samples, begin, times);
    }
    if (e.stopped()) return;
    e.ring_.finish_piece(*this, it.block);
  }
}
PENSTOCK_INLINE void engine_worker::finish(std::uint64_t s) noexcept {
  block& b = *shell->inner_->block_of(s);
  if (shell->setup_.facts.direct && !shell->abandon_.load(std::memory_order_relaxed))
    shell->calls_->finish(shell->engine_, *this, b);
  shell->inner_->finished.fetch_add(b.batches.size(), std::memory_order_relaxed);
}
PENSTOCK_INLINE void engine_worker::waiting(bool begins) noexcept {
  const std::uint64_t now = detail::now_ns();
  if (begins) {
    room = {now, shell->inner_->stall.at(now)};
    counts->room_since.store(now, std::memory_order_relaxed);
    return;
  }
  counts->room_since.store(0, std::memory_order_relaxed);
  counts->add_room(room, now, shell->inner_->stall);
  shell->watch_.worker(number, {room.since, now, activity::wait_for_room});
}
PENSTOCK_INLINE void engine_worker::rest() noexcept {
  if (!shell->limits_.may_work(number)) [[unlikely]]
    shell->limits_.rest(number);
  if (shell->dear_) [[unlikely]]
    begin_dear();
}

PENSTOCK_INLINE engine_setup::engine_setup() = default;
PENSTOCK_INLINE engine_setup::engine_setup(const engine_setup&) = default;
PENSTOCK_INLINE engine_setup::engine_setup(engine_setup&&) noexcept = default;
PENSTOCK_INLINE engine_setup::~engine_setup() = default;

PENSTOCK_INLINE void engine_setup::size(const run_options& given, std::uint64_t local_ranks,
                                        const size_facts& known, feed_facts positions) {
  options = given;
  facts = known;
  if (!options.workers) options.workers = default_workers(local_ranks);
  if (options.autotune) {
    const tuning_caps& caps = *options.autotune;
    if (!given.workers && caps.processors) options.workers = std::min(*options.workers, *caps.processors);
    if (caps.memory) options.memory = std::min(*caps.memory, options.memory.value_or(*caps.memory));
  }
  if (*options.workers != 0) {
    thread_place::check(options.threads);
    const unsigned own = options.threads.processors.size();
    const unsigned there = processors_of_rank(local_ranks);
    facts.crowded = *options.workers + 1 > there || (own != 0 && *options.workers > own);
  }
  settle_ahead();
  const run_sizes sizes(options, facts);
  positions.chunk = sizes.chunk();
  positions.first_chunk = sizes.first_chunk();
  positions.chunks_are_batches = facts.batch_by_chunk && positions.chunk == facts.batch_size;
  leading = feed(std::move(positions));
  batches_per_block = leading.uneven().any() ? 1 : sizes.batches_per_block(leading.slots_per_block());
  const std::uint64_t slots = leading.slots_per_block() * batches_per_block;
  grain_slots = sizes.grain(slots);
  grains = sizes.grains(slots, leading.slots_per_block());
  depth = sizes.depth(slots);
  if (options.autotune && *options.workers != 0) widen(given, processors_of_rank(local_ranks));
}

// Sizes of pieces stay those of the default number of workers.
PENSTOCK_INLINE void engine_setup::widen(const run_options& given, unsigned processors) {
  constexpr std::uint64_t deeper = 8, max_depth = 128, further = 4;
  tunes = true;
  tuned_limits& most = tuning.most;
  tuning.start = {*options.workers, depth, *options.ahead, 0};
  tuning.least = most = tuning.start;
  tuning.crowded = facts.crowded;
  tuning.within_ns = options.autotune->within_ms * 1'000'000;
  if (!given.workers) {
    tuning.least.workers = 1;
    most.workers =
        std::max<std::uint64_t>(*options.workers, options.autotune->processors.value_or(processors));
  }
  if (!given.depth)
    most.depth = std::max({most.depth, std::min(deeper * most.depth, max_depth), most.workers + 3});
  if (!given.ahead && !given.ahead_bytes && facts.latency) most.ahead *= further;
  options.workers = static_cast<unsigned>(most.workers);
  options.ahead = most.ahead;
  depth = detail::to_size(most.depth);
}

PENSTOCK_INLINE void engine_setup::settle_ahead() {
  if (options.ahead_bytes)
    options.ahead =
        facts.sample_bytes == 0
            ? tuning::ahead_samples
            : std::clamp<std::uint64_t>(*options.ahead_bytes / facts.sample_bytes, 1, tuning::ahead_samples);
  else if (!options.ahead && facts.latency && *options.workers != 0)
    options.ahead = facts.sample_bytes == 0
                        ? tuning::ahead
                        : std::clamp<std::uint64_t>(tuning::ahead_bytes / facts.sample_bytes, tuning::ahead,
                                                    tuning::ahead_samples);
  else if (!options.ahead)
    options.ahead = 0;
}

PENSTOCK_INLINE engine_shell::engine_shell(const engine_calls& calls, void* engine, engine_setup setup,
                                           block_delivery::maker delivery, const std::stop_token& token)
    : calls_(&calls),
      engine_(engine),
      setup_(std::move(setup)),
      leading_(setup_.leading),
      delivered_feed_(leading_),
      grains_(std::max(setup_.grains,
                       (leading_.slots_per_block() * setup_.batches_per_block + setup_.grain_slots - 1) /
                           setup_.grain_slots)),
      ring_(*setup_.options.workers == 0 ? 1 : setup_.depth, grains_,
            setup_.facts.crowded ? 0 : static_cast<unsigned>(tuning::spins), delivery),
      stop_(ring_.stop_state()),
      limits_(*setup_.options.workers, ring_.blocks(), setup_.batches_per_block, *setup_.options.ahead),
      budget_(setup_.batches_per_block, setup_.facts.direct && setup_.facts.takes_time),
      room_(setup_.batches_per_block == 1 ? 1
                                          : detail::to_size(std::min<std::uint64_t>(
                                                setup_.batches_per_block, leading_.steps_per_epoch()))),
      watch_(std::move(setup_.observers), *setup_.options.workers, setup_.facts.direct, setup_.times_grains,
             setup_.tells_costs ? setup_.stages.size() : 0),
      started_(detail::now_ns()),
      inner_(new machinery(setup_, ring_.blocks(), calls.destroy)) {
  // Alone, a worker is soonest ready with each batch in its turn.
  if (calls.find_dear != nullptr && *setup_.options.workers > 1)
    dear_ = detail::owned(new dear_slots(ring_.blocks()));
  if (setup_.tunes) apply(setup_.tuning.start);
  leading_.stop_at(stop_.flag());
  delivered_feed_.stop_at(stop_.flag());
  inner_->token = token;
}

PENSTOCK_INLINE engine_shell::~engine_shell() {
  for (engine_worker* const w : inner_->workers) calls_->destroy_worker(w);
}

PENSTOCK_INLINE void engine_shell::start(hinter who) {
  const unsigned count = *setup_.options.workers;
  // Worker state is allocated here, where an exception can still propagate.
  inner_->workers.reserve(inner_->counts.size());
  for (std::size_t i = 0; i < inner_->counts.size(); ++i) {
    inner_->counts[i].follow_stages(setup_.stages.size());
    engine_worker* const w = calls_->make_worker();
    inner_->workers.push_back(w);
    w->shell = this;
    w->counts = &inner_->counts[i];
    w->costs.resize(setup_.stages.size());
    w->number = i;
  }
  try {
    // Not before the whole engine is there, and not after its first part is destroyed: it may call at any
    // time.
    static_cast<void>(inner_->on_stop.emplace(inner_->token, machinery::stopper{this}));
    unsigned threads = count;
    for (unsigned i = 0; i < count; ++i)
      inner_->workers[i]->thread.start<&engine_worker::serve>(*inner_->workers[i]);
    if (who.self != nullptr && limits_.ahead() != 0) {
      inner_->ahead.start(leading_, who, watch_, limits_, count != 0, sizes_ahead(), &inner_->place);
      if (count != 0) ++threads;
      if (stopped()) inner_->ahead.let_go();
      if (const range_store* const there = inner_->ahead.store()) {
        account_.bytes.fetch_add(there->capacity(), std::memory_order_relaxed);
        if (setup_.facts.latency) settle_requests();
      }
    }
    if (setup_.tunes) inner_->tuning = detail::owned(new machinery::tuning_state(setup_.tuning));
    if (count != 0) inner_->watchdog.start(explain, this);
    inner_->place.await(threads);
  } catch (const std::system_error& e) {
    stop();
    throw error(errc::io,
                {"a worker thread could not be started (", e.what(), "); ask for fewer with workers(n)"});
  } catch (...) {
    stop();
    throw;
  }
}

/// Something is fetched ahead: how many requests may be in flight. More than usual may help only where the
/// storage has no limit of its own.
PENSTOCK_INLINE void engine_shell::settle_requests() {
  constexpr std::size_t more = 4;
  const std::optional<std::size_t>& given = setup_.options.requests.max_in_flight;
  const bool tunes = setup_.tunes && !given && calls_->report(engine_).max_in_flight == 0;
  limits_.fetches(tunes ? more * request_queue::usual : given.value_or(0));
  if (!tunes) return;
  for (tuned_limits* const one : {&setup_.tuning.start, &setup_.tuning.least})
    one->requests = request_queue::usual;
  setup_.tuning.most.requests = more * request_queue::usual;
  limits_.adjust({.requests = static_cast<std::int64_t>(request_queue::usual)});
}

/// Sizes for read-ahead: room for the samples requested and those opened, and a quarter of the memory that
/// the whole run may use.
PENSTOCK_INLINE ahead_sizes engine_shell::sizes_ahead() const noexcept {
  const std::uint64_t slots = leading_.slots_per_block() * setup_.batches_per_block;
  const std::uint64_t rows =
      std::min(*setup_.options.ahead, read_ahead::max_rows_ahead) + slots * (ring_blocks() + 2) + 128;
  // Large samples go in parts, side by side: five have room, up to 1 GiB.
  const std::uint64_t maximum = setup_.facts.latency
                                    ? std::clamp<std::uint64_t>(5 * setup_.facts.sample_bytes, 256_MiB, 1_GiB)
                                    : 256_MiB;
  std::uint64_t bytes = 64_MiB;
  if (setup_.options.ahead_bytes)
    bytes = *setup_.options.ahead_bytes;
  else if (setup_.facts.sample_bytes != 0)
    bytes = std::clamp<std::uint64_t>(setup_.facts.sample_bytes / 4 * 5 * rows, 8_MiB, maximum);
  if (setup_.options.memory) bytes = std::min(bytes, *setup_.options.memory / 4);
  request_options requests = setup_.options.requests;
  const std::uint64_t ahead =
      setup_.facts.sample_bytes * std::min(limits_.ahead(), read_ahead::max_rows_ahead);
  if (!requests.max_coalesced && setup_.facts.latency)  // in a few requests
    requests.max_coalesced = std::clamp<std::uint64_t>(
        (setup_.options.ahead_bytes ? bytes : std::min(bytes, ahead)) / tuning::ahead_requests, 64_KiB,
        8_MiB);
  return {bytes, rows, setup_.facts.latency, requests};
}

PENSTOCK_INLINE void engine_shell::request_stop() noexcept {
  ring_.stop();
  limits_.stop();
  inner_->ahead.let_go();
  calls_->cancel_reads(engine_);
}

PENSTOCK_INLINE range_store* engine_shell::fetched(std::uint64_t first, std::uint64_t end) const noexcept {
  range_store* const store = inner_->ahead.store();
  return store == nullptr || store->left_out(first, end) ? nullptr : store;
}

PENSTOCK_INLINE void engine_shell::give_back(block* b) noexcept { inner_->pool.give_back(b); }

PENSTOCK_INLINE void engine_shell::stop() noexcept {
  inner_->on_stop.reset();
  request_stop();
  calls_->stop_front(engine_);
  inner_->ahead.stop();
  inner_->watchdog.stop();
  for (engine_worker* const w : inner_->workers) w->thread.join();
}

PENSTOCK_INLINE void engine_shell::adjust(const run_limits& wanted) {
  home_.check();
  if (!inner_->tuning) {
    limits_.adjust(wanted);
  } else {
    const std::lock_guard guard(inner_->tuning->lock);
    limits_.adjust(wanted);
    run_limits& all = inner_->tuning->adjusted;
    for (const auto one :
         {&run_limits::workers, &run_limits::depth, &run_limits::ahead, &run_limits::requests})
      if (wanted.*one) all.*one = wanted.*one;
  }
  if (wanted.ahead) inner_->ahead.look_again();
}

// What others have set meanwhile stays.
PENSTOCK_INLINE void engine_shell::apply(const tuned_limits& wanted) {
  const run_limits now = limits_.now();
  run_limits set;
  const auto want = [&](std::optional<std::int64_t> run_limits::*which, std::uint64_t value) {
    if (now.*which != static_cast<std::int64_t>(value)) set.*which = static_cast<std::int64_t>(value);
  };
  want(&run_limits::workers, wanted.workers);
  want(&run_limits::depth, wanted.depth * setup_.batches_per_block);
  want(&run_limits::ahead, wanted.ahead);
  if (wanted.requests != 0) want(&run_limits::requests, wanted.requests);
  limits_.adjust(set);
  if (set.ahead) inner_->ahead.look_again();
}

/// Lets the tuner look at what was delivered since its last look.
PENSTOCK_INLINE void engine_shell::tune() {
  machinery::tuning_state& t = *inner_->tuning;
  if (t.blocks < t.look_at) return;
  tuner_totals all;
  all.ns = detail::now_ns();
  all.stall_ns = inner_->stall.at(all.ns);
  all.samples = t.samples;
  all.blocks = t.blocks;
  stage_cost source, stages;
  for (const worker_counts& w : inner_->counts) {
    all.busy_ns += w.busy_ns.load(std::memory_order_relaxed);
    all.room_in_stall_ns += w.room_in_stall_ns.load(std::memory_order_relaxed);
    source.nanoseconds += w.stage(0).nanoseconds;
    for (std::size_t i = 0; i < setup_.stages.size(); ++i) stages.nanoseconds += w.stage(i).nanoseconds;
  }
  if (stages.nanoseconds != 0)
    all.reading = static_cast<double>(source.nanoseconds) / static_cast<double>(stages.nanoseconds);
  const std::uint64_t memory = setup_.options.memory.value_or(1_GiB);
  const std::uint64_t blocks = largest_ * inner_->pool.made(),
                      held = account_.bytes.load(std::memory_order_relaxed);
  const std::uint64_t others = std::min(memory, held - std::min(held, blocks));
  all.max_depth = (memory - others) / std::max<std::uint64_t>(1, largest_ + largest_ / 4);
  {
    const std::lock_guard guard(t.lock);
    const run_limits mine = std::exchange(t.adjusted, {});
    if (mine.workers) t.tuner.fix(&tuned_limits::workers, limits_.workers());
    if (mine.depth) t.tuner.fix(&tuned_limits::depth, limits_.blocks());
    if (mine.ahead) t.tuner.fix(&tuned_limits::ahead, limits_.ahead());
    if (mine.requests) t.tuner.fix(&tuned_limits::requests, limits_.requests());
    apply(t.tuner.look(all));
  }
  t.look_at = t.blocks + t.tuner.stride();
}

/// Whether the limits let one more block be opened: always if none is open, so that the run makes progress.
PENSTOCK_INLINE bool engine_shell::may_open() {
  const std::size_t maximum = limits_.blocks();
  if (maximum == ring_.blocks()) return opened_ - delivered_ < maximum;
  const std::size_t beside = inner_->pool.maximum() - ring_.blocks();  // a chunk of the consumer's
  return opened_ == delivered_ || (opened_ - delivered_ < maximum && inner_->pool.out() < maximum + beside);
}

/// Releases the memory of blocks that a lowered depth leaves idle. The run always needs one more block than
/// the consumer holds.
PENSTOCK_INLINE void engine_shell::shrink() {
  const std::size_t held = inner_->pool.out() - detail::to_size(opened_ - delivered_);
  const std::size_t needed = std::max(limits_.blocks() + inner_->pool.maximum() - ring_.blocks(), held + 1);
  or_stop([&] {
    inner_->pool.see_surplus(needed, [this](block& b) {
      if (calls_->held(b) == 0) return;
      calls_->settle(engine_, b);
      calls_->release(b);
    });
  });
}

PENSTOCK_INLINE void engine_shell::leave_returned(block_pool& pool) {
  or_stop([&] {
    pool.see_free([this](block& b) {
      if (b.transferred) calls_->leave(engine_, b);
    });
  });
}

PENSTOCK_INLINE void engine_shell::open_more() {
  if (limits_.blocks() < ring_.blocks()) shrink();
  if (setup_.facts.copies) leave_returned(inner_->pool);
  // Without workers the ring has one block. The device would wait for itself if that were always the same
  // one.
  const bool rows = setup_.facts.copies && *setup_.options.workers == 0;
  while (may_open() && !stopped() && goes_on()) {
    const bool may_make = inner_->pool.made() < inner_->pool.maximum();
    block* b = rows && may_make && room_for_another() ? nullptr : inner_->pool.take();
    if (b == nullptr) {
      if (!may_make || !room_for_another()) return;
      b = inner_->pool.make([this] { return calls_->make(engine_); });
    }
    try {
      calls_->settle(engine_, *b);
      if (setup_.options.memory && opened_ != delivered_ &&
          account_.bytes.load(std::memory_order_relaxed) > *setup_.options.memory) {
        calls_->release(*b);  // batches have grown, so use fewer of them
        inner_->pool.give_back(b);
        return;
      }
      prepare(*b);
      inner_->block_of(opened_) = b;
      if (dear_) publish_dear(*b);
    } catch (...) {
      give_back_and_stop(b);  // the feed has advanced and would skip this block
      throw;
    }
    ring_.open(opened_++);
    inner_->ahead.opened(b->slots);
  }
}

/// Whether there is one more block to open. An error is reported only after what was opened before it.
PENSTOCK_INLINE bool engine_shell::goes_on() {
  if (leading_.ready()) return true;
  return opened_ == delivered_ && or_stop([this] { return leading_.more(); });
}

PENSTOCK_INLINE void engine_shell::prepare(block& b) {
  try {
    place(b);
  } catch (const out_of_memory&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw out_of_memory(leading_.slots_per_block() * sizeof(std::uint64_t), "the positions of a batch",
                        "make batches smaller");
  }
}

PENSTOCK_INLINE void engine_shell::place(block& b) {
  b.clear_failure();
  b.rows = 0;
  b.run_row = row_;
  leading_.prepare(b, budget_.batches());
  row_ += b.slots;
  b.grain_slots = budget_.grain(b.slots, grains_, setup_.grain_slots);
  b.room = room_ == 1 ? 0 : leading_.slots_per_block() * room_;
  b.work_ns.store(0, std::memory_order_relaxed);
  calls_->prepare(engine_, b);
  if (setup_.sizes_are_fixed) {
    largest_ = std::max(largest_, calls_->held(b));
    if (!sizes_known_) expect_blocks();
    sizes_known_ = true;
  }
  if (!setup_.facts.direct && b.sources.size() < b.slots) b.sources.resize(detail::to_size(b.slots));
}

/// Tells workers which slots of the block that is opened next to begin before their turn: see `dear_slots`.
PENSTOCK_INLINE void engine_shell::publish_dear(block& b) {
  double ns = 0, samples = 0;
  for (const worker_counts& one : inner_->counts) {
    ns += static_cast<double>(one.busy_ns.load(std::memory_order_relaxed));
    samples += static_cast<double>(one.samples.load(std::memory_order_relaxed));
  }
  const std::span<dear_slot> found = calls_->find_dear(engine_, b, samples == 0 ? 0 : ns / samples);
  // what the other workers do meanwhile, in tickets for each sample
  const double meanwhile = static_cast<double>(limits_.workers() - 1) * static_cast<double>(grains_) /
                           static_cast<double>(std::max<std::uint64_t>(1, b.slots));
  std::size_t count = 0;
  for (const dear_slot& one : found) {
    const std::uint64_t turn = opened_ * grains_ + one.slot / b.grain_slots;
    const auto sooner = static_cast<std::uint64_t>(std::min(one.times * meanwhile, 1e15));
    if (sooner != 0) found[count++] = {one.slot, one.times, turn - std::min(turn, sooner)};
  }
  std::sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count),
            [](const dear_slot& a, const dear_slot& c) { return a.due < c.due; });
  if (count != 0) ring_.expect_more(opened_, static_cast<std::uint32_t>(count));
  dear_->publish(opened_, found.first(count));
}

/// Of the first block: how many more like it there will be.
PENSTOCK_INLINE void engine_shell::expect_blocks() {
  std::uint64_t blocks = limits_.blocks() + inner_->pool.maximum() - ring_.blocks();
  if (setup_.options.memory)
    blocks = std::min(blocks, *setup_.options.memory / std::max<std::uint64_t>(1, largest_));
  if (blocks > 1) calls_->expect(engine_, detail::to_size(blocks - 1));
}

PENSTOCK_INLINE block* engine_shell::next() {
  if (inner_->tuning) tune();
  open_more();
  if (delivered_ == opened_) {
    if (stopped() || !leading_.more()) return nullptr;
    throw error(errc::argument,
                {"you hold ", inner_->pool.out(), " of ", inner_->pool.made(),
                 (setup_.batches_per_block == 1 ? " batches" : " blocks of batches"),
                 " and ask for another; let one go, or raise the depth with prefetch(n) after batch",
                 (setup_.options.memory ? " or memory(bytes)" : "")});
  }
  if (!wait_for(delivered_)) return nullptr;
  block* const b = inner_->block_of(delivered_++);
  budget_.took(b->work_ns.load(std::memory_order_relaxed), b->slots, b->batches.size());
  if (inner_->tuning) {
    ++inner_->tuning->blocks;
    inner_->tuning->samples += b->slots;
  }
  consumer_.took(b->batches.size(), b->warnings.load(std::memory_order_relaxed));
  inner_->ahead.passed(b->run_row + b->slots);
  if (watch_.any() && inner_->ahead.store() == nullptr) note_counters();
  // The first batches of a run take more, and the first chunks are smaller than those to come.
  max_slots_ = std::max(max_slots_, b->slots);
  const std::uint64_t growth = setup_.facts.direct ? 1
                                                   : (leading_.slots_per_block() + max_slots_ - 1) /
                                                         std::max<std::uint64_t>(1, max_slots_);
  largest_ = std::max(calls_->held(*b) * growth, largest_ - largest_ / 8);
  sizes_known_ = true;
  if (setup_.facts.copies && setup_.facts.direct) {
    try {
      if (not_sent_ != nullptr && not_sent_at_ + 1 == delivered_)
        std::rethrow_exception(std::exchange(not_sent_, nullptr));
      if (b->what == nullptr) start_copy(*b);  // blocks are copied in order
      send_ahead();
    } catch (...) {
      give_back_and_stop(b);  // the consumer must not skip this block
      throw;
    }
  }
  return b;
}

// Where nothing is fetched ahead, nobody else tells observers what the storage does.
PENSTOCK_INLINE void engine_shell::note_counters() {
  const storage_counters now = calls_->report(engine_).counters;
  if (now != noted_counters_) watch_.counted(now, true);
  noted_counters_ = now;
}

PENSTOCK_INLINE void engine_shell::drop_opened() {
  abandon_.store(true, std::memory_order_relaxed);
  if (delivered_ != opened_) inner_->ahead.halt();
  while (delivered_ != opened_ && wait_for(delivered_)) {
    block* const b = inner_->block_of(delivered_++);
    consumer_.took(b->batches.size(), 0);
    inner_->pool.give_back(b);
  }
  not_sent_ = nullptr;
  abandon_.store(false, std::memory_order_relaxed);
}

PENSTOCK_INLINE void engine_shell::begin_again(std::span<const std::uint64_t> front) {
  // otherwise the run was stopped, and workers may still be in the front
  if (delivered_ == opened_) {
    calls_->restart_front(engine_, front);
    inner_->ahead.restart(leading_);
    row_ = 0;
  }
  delivered_feed_ = leading_;
}

PENSTOCK_INLINE void engine_shell::limit(std::uint64_t epochs, bool ends) {
  leading_.limit(epochs);
  inner_->ahead.limit(epochs, ends);
}

PENSTOCK_INLINE void engine_shell::arrive(block& b) {
  if (!setup_.facts.copies) return;
  start_copy(b);
  const std::uint64_t begin = detail::now_ns();
  calls_->end_copy(engine_, b);
  const std::uint64_t end = detail::now_ns();
  consumer_.waited_for_copy(end - begin);
  watch_.consumer({begin, end, activity::wait_for_copy}, b);
}

PENSTOCK_INLINE void engine_shell::start_copy(block& b) {
  if (b.transferred) return;
  const std::uint64_t begin = watch_.now();
  calls_->start_copy(engine_, b);
  b.transferred = true;
  watch_.consumer({begin, watch_.now(), activity::copy}, b);
}

/// Starts copying batches that are ready and not yet requested. An error of one is kept until it is
/// requested, because those before it are good.
PENSTOCK_INLINE void engine_shell::send_ahead() {
  for (std::uint64_t s = delivered_; s != opened_ && not_sent_ == nullptr && ring_.is_ready(s); ++s) {
    block& b = *inner_->block_of(s);
    if (b.what != nullptr) return;
    try {
      start_copy(b);
    } catch (...) {
      not_sent_ = std::current_exception();
      not_sent_at_ = s;
    }
  }
}

PENSTOCK_INLINE run_counters engine_shell::counters() const {
  run_counters all;
  consumer_.write_to(all);
  const std::uint64_t finished = inner_->finished.load(std::memory_order_relaxed), taken = consumer_.taken();
  all.ready = finished > taken ? finished - taken : 0;
  all.workers = limits_.workers();
  all.depth = *setup_.options.workers == 0 ? setup_.depth * setup_.batches_per_block
                                           : static_cast<std::uint64_t>(limits_.now().depth.value_or(0));
  if (home_.here()) {  // in a child after fork another thread may have held the locks
    all.worker_seconds = static_cast<double>(limits_.worker_ns(detail::now_ns())) * 1e-9;
    if (inner_->tuning) {
      const std::lock_guard guard(inner_->tuning->lock);
      const autotuner& tuner = inner_->tuning->tuner;
      const bool depth_is_said = setup_.batched && setup_.batches_per_block == 1;
      all.autotune = {true, tuner.quiet(), tuner.trials(), tuner.kept(),
                      as_stages(tuner.best(), tuner.start(), depth_is_said)};
    }
  }
  all.seconds = static_cast<double>(detail::now_ns() - started_) * 1e-9;
  all.stall_seconds = static_cast<double>(inner_->stall.at(detail::now_ns())) * 1e-9;
  all.bytes_held = account_.bytes.load(std::memory_order_relaxed);
  add_worker_counts(all, inner_->counts, setup_.stages);
  if (home_.here()) inner_->shown.hold(all);
  if (!setup_.facts.direct) all.longest_sample_seconds = 0;  // of a whole chunk
  return all;
}

PENSTOCK_INLINE bool engine_shell::room_for_another() {
  const std::size_t made = inner_->pool.made();
  const auto& maximum = setup_.options.memory;
  if (!maximum || made == 0) return true;
  if (!sizes_known_) return false;  // known after the first batch
  const std::uint64_t held = account_.bytes.load(std::memory_order_relaxed);
  // a longer batch grows its memory by this much
  const std::uint64_t one = largest_ + (setup_.sizes_are_fixed ? 0 : largest_ / 4);
  return one <= *maximum / (made + 1) && held + one <= *maximum;
}

PENSTOCK_INLINE bool engine_shell::wait_for(std::uint64_t s) {
  if (*setup_.options.workers == 0) {
    const auto& busy_ns = inner_->counts[0].busy_ns;
    const std::uint64_t before = busy_ns.load(std::memory_order_relaxed);
    ring_.serve_here(*inner_->workers[0], s);
    consumer_.waited(busy_ns.load(std::memory_order_relaxed) - before, false);
    return !stopped();
  }
  if (ring_.is_ready(s)) return !stopped();
  const std::uint64_t begin = detail::now_ns();
  inner_->watchdog.begin_wait();
  inner_->stall.begin(begin);
  // Where threads share processors and blocks are fast, waking the consumer for each one would cost more than
  // the blocks themselves, so it lets the workers run until most of the open blocks are ready.
  const bool lets_run = setup_.facts.crowded && !budget_.is_slow() && begin - last_wait_ns_ < tuning::quick;
  if (lets_run) {
    const std::uint64_t later = s + (opened_ - 1 - s) * 3 / 4;
    for (unsigned i = 0; i < tuning::yields && !stopped() && !ring_.is_ready(later); ++i)
      std::this_thread::yield();
  }
  const bool ready = ring_.wait_ready(s);
  inner_->watchdog.end_wait();
  last_wait_ns_ = detail::now_ns();
  inner_->stall.end(last_wait_ns_);
  consumer_.waited(last_wait_ns_ - begin, !lets_run && waited_for_one(s));
  watch_.consumer({begin, last_wait_ns_, activity::wait_for_batch, 0, s});
  return ready;
}

/// Whether at least half of the open blocks after block s are ready: it had the slow sample. Counts batches
/// instead of asking each block, whose state the workers change.
PENSTOCK_INLINE bool engine_shell::waited_for_one(std::uint64_t s) const noexcept {
  const std::uint64_t after = opened_ - 1 - s, of_each = inner_->block_of(s)->batches.size();
  const std::uint64_t finished = inner_->finished.load(std::memory_order_relaxed),
                      taken = consumer_.taken() + of_each;
  return after != 0 && finished > taken && 2 * (finished - taken) >= after * of_each;
}

PENSTOCK_INLINE void engine_shell::explain(const void* self, std::string& line) {
  const auto& me = *static_cast<const engine_shell*>(self);
  explain_wait(line, me.inner_->counts,
               me.setup_.forward ? "the source's next sample" : "a worker to start it");
  const auto fetched = me.inner_->ahead.oldest_read();
  if (const auto late = older_of(fetched, me.calls_->report(me.engine_).oldest)) {
    const std::uint64_t tenths = late->age_ns / 100'000'000;
    const std::string numbered = detail::text({"object ", late->object});
    detail::append(line, {"; the oldest request, for ", late->name.empty() ? numbered : late->name,
                          " at offset ", late->offset, ", has taken ", tenths / 10, ".", tenths % 10, " s"});
    if (late->attempt != 1) detail::append(line, {" and is at attempt ", late->attempt});
  }
}

}  // namespace penstock::inline v0_1
