// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/engine/detail/engine_parts.hpp>
#include <penstock/run/engine/evaluator.hpp>
#include <penstock/run/engine/home_process.hpp>
#include <penstock/run/engine/machine.hpp>
#include <penstock/run/engine/observers.hpp>
#include <penstock/run/engine/read_ahead.hpp>
#include <penstock/run/engine/sizes.hpp>
#include <penstock/run/engine/thread.hpp>
#include <penstock/run/engine/wait_watchdog.hpp>
#include <penstock/run/engine/worker_counts.hpp>
#include <penstock/run/feed/chunk_feed.hpp>
#include <penstock/run/feed/direct_feed.hpp>
#include <penstock/run/feed/front.hpp>
#include <penstock/run/feed/serial_front.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// The one engine: workers that evaluate runs of slots, a ring of blocks between them and the consumer.
namespace penstock::inline v0_1 {

/// Workers, ring, pool and feed of one run. Never moved: workers and batches point at it. One thread at a
/// time is its consumer.
template <class Plan>
class engine {
  using parts = plan_parts<Plan>;

 public:
  using device_type = typename detail::device_of<Plan>::type;
  using session_type = typename device_type::session;
  using feed_type = std::conditional_t<parts::direct, direct_feed<Plan>, chunk_feed<Plan>>;
  using binding = typename feed_type::binding;
  using source_element = typename Plan::source_type::element;
  using reader_type = typename Plan::source_type::reader;
  using node_type =
      std::conditional_t<parts::forward, item_node<source_element>, source_node<reader_type, binding>>;
  using chain_type = decltype(make_chain(std::declval<const Plan&>(), std::declval<node_type>(), 0));
  using columns_type = columns_of<Plan, session_type>;
  using bad_type = detail::bad_of<Plan, std::remove_cvref_t<decltype(std::declval<feed_type&>().orders())>>;
  using payload_type = payload<columns_type, binding, typename session_type::transfer,
                               std::conditional_t<parts::tolerant, bad_slots, no_bad_slots>>;

  static constexpr bool light = plain_plan<Plan>;
  static constexpr bool ordered = !parts::forward &&
                                  !std::is_same_v<binding, typename order_chain<>::binding> &&
                                  !std::is_same_v<binding, no_binding>;
  using ring_type = typename detail::ring_of<typename parts::stages>::type;
  using evaluator_type =
      evaluator<chain_type, payload_type, ring_type, light, ordered, typename bad_type::type>;

  engine(const Plan& p, run_options options, const std::stop_token& token)
      : plan_(p),
        options_(resolve(p, options)),
        device_(detail::device_of<Plan>::get(p).connect()),
        reader_(open_reader(p)),
        crowded_(*options_.workers != 0 && *options_.workers + 1 > usable_processors()),
        feed_(make_feed(p)),
        trail_(feed_),
        parts_per_block_(sizes().batches_per_block(feed_.slots_per_block())),
        grain_slots_(sizes().grain(block_slots())),
        depth_(sizes().depth(block_slots())),
        ring_(*options_.workers == 0 ? 1 : depth_, (block_slots() + grain_slots_ - 1) / grain_slots_,
              crowded_ ? 0 : 2000),
        evaluator_(make_chain(p, make_node(), *options_.seed), ring_,
                   bad_type::make(feed_.orders(), *options_.seed)),
        front_(detail::front_of<Plan>::make(p), ring_.blocks()),
        in_ring_(ring_.blocks()),
        pool_(depth_ + (parts::direct ? 0 : 1)),
        watch_(p, *options_.workers, hints && options_.ahead != 0),
        started_(detail::now_ns()),
        counts_(std::max(1u, *options_.workers)),
        watchdog_(std::chrono::milliseconds(options_.watchdog_ms)),
        stop_callback_(token, stopper{this}) {
    start_threads();
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() { stop(); }

  [[nodiscard]] run_watch<Plan>& watch() noexcept { return watch_; }
  /// The process that has the threads.
  [[nodiscard]] const home_process& home() const noexcept { return home_; }
  /// Ends all work; the consumer's wait too. Any thread, any number of times.
  void request_stop() noexcept { ring_.stop(); }
  [[nodiscard]] bool stopped() const noexcept { return ring_.stopped(); }
  /// Ends all work and joins the threads. Consumer only.
  void stop() noexcept {
    ring_.stop();
    front_.stop();
    if constexpr (hints) ahead_.stop();
    watchdog_.stop();
    for (std::size_t i = 0; works_ && i < counts_.size(); ++i) works_[i].thread.join();
  }

  /// Opens what there is room for, so that workers begin before the first batch is asked for.
  void open_more() {
    while (opened_ - delivered_ < ring_.blocks() && !stopped() && feed_.more()) {
      payload_type* p = pool_.take();
      if (p == nullptr) {
        if (pool_.made() >= pool_.most() || !room_for_another()) return;
        p = pool_.make(device_, account_);
      }
      try {
        detail::settle(device_, *p);
        if (options_.memory && opened_ != delivered_ &&
            account_.bytes.load(std::memory_order_relaxed) > *options_.memory) {
          p->columns.release();  // batches have grown: with fewer of them then
          pool_.give_back(p);
          return;
        }
        prepare(*p);
      } catch (...) {
        lose(p);  // the feed has gone on and would leave this block out
        throw;
      }
      in_ring_[place(opened_)] = p;
      ring_.open(opened_++);
      if constexpr (hints) ahead_.opened(p->slots);
    }
  }

  /// The next block in order, evaluated; null at the limit of read-ahead or when stopped. Its failure, if
  /// any, is in it.
  payload_type* next() {
    open_more();
    if (delivered_ == opened_) {
      if (stopped() || !feed_.more()) return nullptr;
      throw error(errc::argument,
                  {"you hold ", pool_.out(), " of ", pool_.made(),
                   (parts_per_block_ == 1 ? " batches" : " blocks of batches"),
                   " and ask for another; let one go, or raise the depth with prefetch(n) after batch",
                   (options_.memory ? " or memory(bytes)" : "")});
    }
    if (!wait_for(delivered_)) return nullptr;
    payload_type* p = in_ring_[place(delivered_++)];
    largest_ = std::max(p->columns.held(), largest_ - largest_ / 8);  // first batches of a run take more
    sizes_known_ = true;
    if constexpr (session_type::copies && parts::direct) {
      try {
        send_ahead();
      } catch (...) {
        lose(p);  // what comes next is not what the consumer misses
        throw;
      }
    }
    return p;
  }
  void give_back(payload_type* p) noexcept { pool_.give_back(p); }
  /// The same for one whose turn is past and which the consumer did not get: the run cannot go on.
  void lose(payload_type* p) noexcept { give_back(p), request_stop(); }

  /// Drops what was opened, and begins again where `seek(feed)` puts the feed, and `front` the source's.
  template <class F>
  void reposition(F&& seek, std::span<const std::uint64_t> front = {}) {
    abandon_.store(true, std::memory_order_relaxed);
    while (delivered_ != opened_ && wait_for(delivered_)) pool_.give_back(in_ring_[place(delivered_++)]);
    abandon_.store(false, std::memory_order_relaxed);
    seek(feed_);
    // else the run was stopped, and workers may still be in it
    if (delivered_ == opened_) front_.restart(front);
    trail_ = feed_;
    if constexpr (hints) ahead_.restart(feed_);
  }
  /// Lets the feed read ahead up to this epoch.
  void limit(std::uint64_t epochs) {
    feed_.limit(epochs);
    if constexpr (hints) ahead_.limit(epochs);
  }

  /// Waits until a block that `next` gave is on its device.
  void arrive(payload_type& p) {
    if constexpr (session_type::copies) {
      send(p);
      const std::uint64_t begin = watch_.now();
      device_.wait(p.transfer);
      watch_.consumer({begin, watch_.now(), activity::wait_for_copy}, p);
    }
  }
  /// Remembers the shapes that were found, for batches to come.
  void learn_from(const payload_type& p) noexcept { shapes_ = p.columns.shapes(); }
  void delivered(std::uint64_t samples, std::uint64_t bytes) noexcept {
    samples_ += samples;
    bytes_ += bytes;
    ++batches_;
  }
  [[nodiscard]] run_counters counters() const {
    run_counters all;
    all.samples = samples_;
    all.bytes = bytes_;
    all.batches = batches_;
    all.workers = *options_.workers;
    all.seconds = static_cast<double>(detail::now_ns() - started_) * 1e-9;
    all.stall_seconds = static_cast<double>(stall_.at(detail::now_ns())) * 1e-9;
    all.bytes_held = account_.bytes.load(std::memory_order_relaxed);
    add_worker_counts(all, counts_, plan_);
    return all;
  }

  [[nodiscard]] feed_type& feed() noexcept { return feed_; }
  [[nodiscard]] const feed_type& feed() const noexcept { return feed_; }
  [[nodiscard]] feed_type& trail() noexcept { return trail_; }
  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] const run_options& options() const noexcept { return options_; }
  /// Blocks in flight, at most; those that the consumer holds included.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }
  [[nodiscard]] session_type& device() noexcept { return device_; }
  [[nodiscard]] memory_account& account() noexcept { return account_; }
  [[nodiscard]] const auto& shapes() const noexcept { return shapes_; }
  [[nodiscard]] const std::optional<reader_type>& reader() const noexcept { return reader_; }

 private:
  static constexpr bool hints = !parts::forward && takes_hints<reader_type>;
  static constexpr std::size_t stage_count = chain_type::depth + 1;
  static constexpr std::uint64_t after_all_rows = payload_type::no_slot - 1;  // the source itself failed
  static constexpr const char* idle = parts::forward ? "the source's next sample" : "a worker to begin it";
  using counts_type = worker_counts<stage_count>;

  struct stopper {
    engine* self;
    void operator()() const noexcept { self->request_stop(); }
  };

  /// What the ring asks of one worker.
  struct alignas(64) work {
    engine* self = nullptr;
    counts_type* counts = nullptr;
    typename chain_type::worker scratch{};
    room_wait room{};
    joined_thread thread{};

    void serve() noexcept { self->ring_.serve(*this); }
    void evaluate(std::uint64_t s, std::uint64_t grain) noexcept { self->evaluate(*this, s, grain); }
    void finish(std::uint64_t s) noexcept { self->finish(*this, s); }
    void waiting(bool begins) noexcept {
      if (!begins) return self->has_room(*this);
      room.since = detail::now_ns();
      room.stalled = self->stall_.at(room.since);
    }
  };

  static run_options resolve(const Plan& p, run_options options) {
    if (!options.workers) options.workers = default_workers(world_of(p).local_size);
    return options;
  }
  static std::optional<reader_type> open_reader(const Plan& p) {
    if constexpr (parts::forward)
      return std::nullopt;
    else
      return p.source().open();
  }
  feed_type make_feed(const Plan& p) const {
    if constexpr (parts::direct)
      return feed_type(p);
    else
      return feed_type(p, sizes().chunk());
  }
  node_type make_node() const {
    if constexpr (parts::forward)
      return {};
    else
      return node_type{&*reader_};
  }

  [[nodiscard]] run_sizes sizes() const {
    size_facts facts = size_facts_of(plan_, reader_ ? &*reader_ : nullptr);
    facts.copies = session_type::copies;
    facts.crowded = crowded_;
    return {options_, facts};
  }
  [[nodiscard]] std::uint64_t block_slots() const { return feed_.slots_per_block() * parts_per_block_; }
  [[nodiscard]] std::size_t place(std::uint64_t s) const noexcept {
    return static_cast<std::size_t>(s % ring_.blocks());
  }

  static void explain(const void* self, std::string& line) {
    explain_wait(line, static_cast<const engine*>(self)->counts_, idle);
  }
  void start_threads() {
    const unsigned count = *options_.workers;
    // What a worker keeps is made here, where an exception has somewhere to go.
    works_.reset(new work[counts_.size()]);
    for (std::size_t i = 0; i < counts_.size(); ++i) works_[i].self = this, works_[i].counts = &counts_[i];
    try {
      for (unsigned i = 0; i < count; ++i) works_[i].thread.template start<&work::serve>(works_[i]);
      if constexpr (hints) {
        watch_.follow(ahead_);
        if (options_.ahead != 0) ahead_.start(*reader_, feed_, options_.ahead, count != 0);
      }
      if (count != 0) watchdog_.start(explain, this);
    } catch (const std::system_error& e) {
      stop();
      throw error(errc::io,
                  {"a worker thread could not be started (", e.what(), "); ask for fewer with workers(n)"});
    } catch (...) {
      stop();
      throw;
    }
  }

  void prepare(payload_type& p) {
    p.clear_failure();
    p.rows = 0;
    feed_.prepare(p, parts_per_block_);
    p.columns.expect(shapes_);
    p.columns.begin(static_cast<std::size_t>(p.slots));
    if constexpr (detail::all_fixed<typename parts::element>::value) {
      largest_ = std::max(largest_, p.columns.held());
      sizes_known_ = true;
    }
    if constexpr (!parts::direct) {
      if (p.sources.size() < p.slots) p.sources.resize(static_cast<std::size_t>(p.slots));
    }
  }

 public:
  /// Whether one more block may be made within `memory(bytes)`.
  [[nodiscard]] bool room_for_another() {
    const std::size_t made = pool_.made();
    if (!options_.memory || made == 0) return true;
    if (!sizes_known_) return false;  // they show with the first batch
    const std::uint64_t held = account_.bytes.load(std::memory_order_relaxed);
    const bool fixed = detail::all_fixed<typename parts::element>::value;
    // a longer batch makes its memory grow by so much
    const std::uint64_t one = largest_ + (fixed ? 0 : largest_ / 4);
    return one <= *options_.memory / (made + 1) && held + one <= *options_.memory;
  }

 private:
  [[nodiscard]] bool wait_for(std::uint64_t s) {
    if (*options_.workers == 0) {
      ring_.serve_here(works_[0], s);
      return !stopped();
    }
    if (ring_.is_ready(s)) return !stopped();
    const std::uint64_t begin = detail::now_ns();
    watchdog_.begin_wait();
    stall_.begin(begin);
    // Where threads share processors and blocks come fast, waking the consumer for each would cost more than
    // the blocks: it lets the workers run until most of those that are open are there.
    if (crowded_ && begin - last_wait_ns_ < 200'000) {
      const std::uint64_t later = s + (opened_ - 1 - s) * 3 / 4;
      for (unsigned i = 0; i < 16 && !stopped() && !ring_.is_ready(later); ++i) std::this_thread::yield();
    }
    const bool ready = ring_.wait_ready(s);
    watchdog_.end_wait();
    last_wait_ns_ = detail::now_ns();
    stall_.end(last_wait_ns_);
    watch_.consumer({begin, last_wait_ns_, activity::wait_for_batch, 0, s});
    return ready;
  }

  [[nodiscard]] std::size_t number(const work& w) const noexcept {
    return static_cast<std::size_t>(&w - works_.get());
  }
  void has_room(work& w) noexcept {
    const std::uint64_t end = detail::now_ns();
    w.counts->add_room(w.room, end, stall_);
    watch_.worker(number(w), {w.room.since, end, activity::wait_for_room});
  }

  void evaluate(work& w, std::uint64_t s, std::uint64_t grain) noexcept {
    payload_type& p = *in_ring_[place(s)];
    const bool abandoned = abandon_.load(std::memory_order_relaxed);
    if (abandoned && !parts::forward) return;
    const std::uint64_t begin = detail::now_ns();
    const bool times = watch_.all_grains || w.counts->grains.load(std::memory_order_relaxed) % 64 == 0;
    std::uint64_t samples = 0;
    if constexpr (parts::forward) {
      samples = evaluate_pulled(p, w, s, times, abandoned);
    } else {
      detail::innermost(w.scratch).binding = &p.binding;
      if constexpr (parts::direct) {
        const std::uint64_t first = grain * grain_slots_, last = first + grain_slots_;
        for (std::size_t i = 0; i < p.parts.size() && p.parts[i].first < last; ++i) {
          const batch_part& part = p.parts[i];
          // Batches whose positions follow each other are evaluated in one go.
          while (light && !p.listed && i + 1 < p.parts.size() && p.parts[i].continues_in(p.parts[i + 1])) ++i;
          const std::uint64_t begin_row = std::max(first, part.first),
                              end_row = std::min(last, p.parts[i].first + p.parts[i].valid);
          if (begin_row >= end_row) continue;
          samples += end_row - begin_row;
          evaluator_.write_slots(p, part, w.scratch, *w.counts, begin_row, end_row,
                                 times && begin_row == first);
        }
      } else {
        samples = p.parts[0].valid;
        evaluator_.write_rows(p, w.scratch, *w.counts, times);
      }
    }
    const std::uint64_t end = detail::now_ns();
    w.counts->add(samples, end - begin);
    if (times) w.counts->publish(w.scratch);
    watch_.grain(number(w), w.scratch, p, grain * grain_slots_, grain_slots_, samples,
                 {begin, end, activity::evaluate, 0, s});
  }

  std::uint64_t evaluate_pulled(payload_type& p, work& w, std::uint64_t s, bool times,
                                bool abandoned) noexcept {
    if constexpr (parts::forward) {
      batch_part& part = p.parts[0];
      std::uint64_t turn = watch_.now();
      const auto* items = front_.pull(
          s, p.epoch, p.slots, abandoned, ring_, part.valid, p.last,
          [&p](std::uint64_t count) {
            evaluator_type::note_failure(p, after_all_rows, p.parts[0].view[count]);
          },
          [this, &w, &turn](std::uint64_t ns) {
            w.counts->input_ns.fetch_add(ns, std::memory_order_relaxed);
            turn = watch_.now();
            watch_.worker(number(w), {turn - ns, turn, activity::wait_for_input});
          },
          &p.after);
      watch_.worker(number(w), {turn, watch_.now(), activity::read, 0, s});
      if (items == nullptr) return 0;
      evaluator_.write_items(p, w.scratch, *w.counts, *items, times);
      if (p.bad_slot == after_all_rows) p.bad_slot = p.rows;
      return part.valid;
    }
    return 0;
  }

  void finish([[maybe_unused]] work& w, std::uint64_t s) noexcept {
    if constexpr (parts::direct) {
      payload_type& p = *in_ring_[place(s)];
      if ((p.what == nullptr || light) && !abandon_.load(std::memory_order_relaxed))
        for (const batch_part& part : p.parts) evaluator_.finish_columns(p, part, w.scratch);
    }
  }

  void send(payload_type& p) {
    if (p.transferred) return;
    const std::uint64_t begin = watch_.now();
    detail::send(device_, p);
    watch_.consumer({begin, watch_.now(), activity::copy}, p);
  }
  /// Begins to copy batches that are ready and not yet asked for.
  void send_ahead() {
    for (std::uint64_t s = delivered_; s != opened_ && ring_.is_ready(s); ++s) {
      payload_type& p = *in_ring_[place(s)];
      if (p.what != nullptr) return;
      send(p);
    }
  }

  home_process home_;
  Plan plan_;
  run_options options_;
  memory_account account_;
  session_type device_;
  std::optional<reader_type> reader_;
  bool crowded_;  // threads share processors: park at once; feeds are cut by it
  feed_type feed_, trail_;
  std::size_t parts_per_block_;
  std::uint64_t grain_slots_;
  std::size_t depth_;
  ring_type ring_;
  evaluator_type evaluator_;
  typename detail::front_of<Plan>::type front_;
  std::vector<payload_type*> in_ring_;
  payload_pool<payload_type> pool_;
  std::array<extents, columns_type::size> shapes_{};
  std::uint64_t opened_ = 0, delivered_ = 0;
  std::uint64_t largest_ = 0;  // bytes of a block
  bool sizes_known_ = false;
  std::atomic<bool> abandon_{false};
  std::uint64_t samples_ = 0, bytes_ = 0, batches_ = 0;
  [[no_unique_address]] run_watch<Plan> watch_;
  std::uint64_t started_, last_wait_ns_ = 0;
  stall_clock stall_;
  std::vector<counts_type> counts_;
  std::unique_ptr<work[]> works_;  // the consumer's own where there are no workers
  [[no_unique_address]] std::conditional_t<hints, read_ahead<reader_type, feed_type>, no_binding> ahead_;
  watchdog_thread watchdog_;
  std::stop_callback<stopper> stop_callback_;
};

}  // namespace penstock::inline v0_1
