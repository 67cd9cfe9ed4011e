// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/device/host.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/run/chain.hpp>
#include <penstock/run/chunk_feed.hpp>
#include <penstock/run/direct_feed.hpp>
#include <penstock/run/front.hpp>
#include <penstock/run/machine.hpp>
#include <penstock/run/payload.hpp>
#include <penstock/run/read_ahead.hpp>
#include <penstock/run/ring.hpp>
#include <penstock/run/watchdog.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// The one engine: workers that evaluate runs of slots, a ring of blocks between them and the consumer.
namespace penstock::inline v0_1 {

namespace detail {

template <class Plan, bool Has = plan_parts<Plan>::in::template has<device_tag>>
struct device_of {
  using type = host;
  static type get(const Plan&) { return {}; }
};
template <class Plan>
struct device_of<Plan, true> {
  using in = typename plan_parts<Plan>::in;
  using type = typename std::tuple_element_t<in::template place<device_tag>, typename plan_parts<Plan>::stages>::device_type;
  static type get(const Plan& p) { return std::get<in::template place<device_tag>>(p.stages()).device_value; }
};

template <class Plan, bool Forward = plan_parts<Plan>::forward>
struct front_of {
  struct type {};
};
template <class Plan>
struct front_of<Plan, true> {
  using type = decltype(make_front(std::declval<const Plan&>()));
};

/// Elements that are numbers from a source of numbers: loops over them shall vectorise, so nothing is looked at per sample.
template <class V>
struct all_fixed : std::bool_constant<shape_class_of<V> == shape_class::fixed> {};
template <class... Fields>
struct all_fixed<record<Fields...>>
    : std::bool_constant<((shape_class_of<std::remove_cvref_t<typename Fields::type>> == shape_class::fixed) && ...)> {};

}  // namespace detail

/// Workers, ring, pool and feed of one run. Never moved: workers and batches point at it. One thread at a time is its consumer.
template <class Plan>
class engine {
  using parts = plan_parts<Plan>;

 public:
  using device_type = typename detail::device_of<Plan>::type;
  using session_type = typename device_type::session;
  using feed_type = std::conditional_t<parts::direct, direct_feed<Plan>, chunk_feed<Plan>>;
  using binding = typename feed_type::binding;
  using reader_type = typename Plan::source_type::reader;
  using node_type = std::conditional_t<parts::forward, item_node<typename Plan::source_type::element>, source_node<reader_type, binding>>;
  using chain_type = decltype(make_chain(std::declval<const Plan&>(), std::declval<node_type>(), 0));
  using worker_type = typename chain_type::worker;
  using columns_type = columns_of<Plan, session_type>;
  using payload_type = payload<columns_type, binding, typename session_type::transfer>;
  using front_type = typename detail::front_of<Plan>::type;

  static constexpr bool light = detail::all_fixed<typename parts::element>::value &&
                                std::is_trivially_copyable_v<std::remove_cvref_t<typename Plan::source_type::element>> &&
                                !unfinished<typename Plan::source_type::element>;

  engine(const Plan& p, run_options options, std::stop_token token)
      : plan_(p),
        options_(resolve(p, options)),
        device_(detail::device_of<Plan>::get(p).connect()),
        reader_(open_reader(p)),
        front_(open_front(p)),
        feed_(make_feed(p, chunk_slots(p))),
        trail_(feed_),
        chain_(make_chain(p, make_node(), *options_.seed)),
        parts_per_block_(parts_in_block(options)),
        grain_slots_(grain_size(p)),
        ring_(options_.workers == 0u ? 1 : *options_.depth, grains(), spins()),
        in_ring_(ring_.blocks()),
        pool_(*options_.depth + (parts::direct ? 0 : 1)),
        started_(detail::now_ns()),
        watchdog_(options_.watchdog),
        stop_callback_(token, stopper{this}) {
    start_threads();
  }
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine() { stop(); }

  /// Ends all work; the consumer's wait too. Any thread, any number of times.
  void request_stop() noexcept { ring_.stop(); }
  [[nodiscard]] bool stopped() const noexcept { return ring_.stopped(); }
  /// Ends all work and joins the threads. Consumer only.
  void stop() noexcept {
    ring_.stop();
    front_turn_.store(stop_turn, std::memory_order_seq_cst);
    front_turn_.notify_all();
    if constexpr (hints) ahead_.stop();
    watchdog_.stop();
    threads_.clear();  // joins
  }

  /// The next block in order, evaluated; null at the limit of read-ahead or when stopped. Its failure, if any, is in it.
  payload_type* next() {
    open_more();
    if (delivered_ == opened_) {
      if (stopped() || !feed_.more()) return nullptr;
      throw error(errc::argument, "you hold " + std::to_string(pool_.out()) + " of " + std::to_string(pool_.made()) +
                                      (parts_per_block_ == 1 ? " batches" : " blocks of batches") +
                                      " and ask for another; let one go, or raise the depth with prefetch(n) after batch" +
                                      (options_.memory ? " or memory(bytes)" : ""));
    }
    if (!wait_for(delivered_)) return nullptr;
    payload_type* p = in_ring_[static_cast<std::size_t>(delivered_ % ring_.blocks())];
    ++delivered_;
    if constexpr (session_type::copies) send_ahead();
    return p;
  }

  void give_back(payload_type* p) noexcept { pool_.give_back(p); }

  /// Drops what was opened, and begins again where `seek(feed)` puts the feed.
  template <class F>
  void reposition(F&& seek) {
    abandon_.store(true, std::memory_order_relaxed);
    while (delivered_ != opened_) {
      if (!wait_for(delivered_)) break;
      pool_.give_back(in_ring_[static_cast<std::size_t>(delivered_++ % ring_.blocks())]);
    }
    abandon_.store(false, std::memory_order_relaxed);
    seek(feed_);
    if constexpr (parts::forward) front_epoch_ = no_epoch;
    trail_ = feed_;
    if constexpr (hints) ahead_.restart(feed_);
  }

  [[nodiscard]] feed_type& feed() { return feed_; }
  [[nodiscard]] feed_type& trail() { return trail_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const run_options& options() const { return options_; }
  [[nodiscard]] session_type& device() { return device_; }
  [[nodiscard]] memory_account& account() { return account_; }
  [[nodiscard]] const reader_type* reader() const { return reader_ ? &*reader_ : nullptr; }

  /// Lets the feed read ahead up to this epoch.
  void limit(std::uint64_t epochs) {
    feed_.limit(epochs);
    if constexpr (hints) ahead_.limit(epochs);
  }

  void delivered(std::uint64_t samples, std::uint64_t bytes) {
    counts_.samples += samples;
    counts_.bytes += bytes;
    ++counts_.batches;
  }
  [[nodiscard]] run_counters counters() const;

  /// Waits until a batch that `next` gave is on its device.
  void arrive(payload_type& p) {
    if constexpr (session_type::copies) {
      send(p);
      device_.wait(p.transfer);
    }
  }

 private:
  static constexpr std::uint64_t no_epoch = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t stop_turn = 0xffffffffu;
  static constexpr bool hints = !parts::forward && requires(const reader_type& r) { r.will_need(std::uint64_t{}); };
  static constexpr std::size_t stage_count = chain_type::depth + 1;

  struct stopper {
    engine* self;
    void operator()() const noexcept { self->request_stop(); }
  };

  /// What one worker has counted, for others to read.
  struct alignas(64) worker_counts {
    std::atomic<std::uint64_t> samples{0}, grains{0}, busy_ns{0}, room_ns{0}, input_ns{0};
    std::atomic<std::uint64_t> at_epoch{0}, at_index{no_epoch};
    const std::atomic<std::uint32_t>* at_stage = nullptr;
    std::atomic<std::uint64_t> stage_ns[stage_count]{};
    std::atomic<std::uint64_t> stage_timed[stage_count]{};
  };

  /// What the ring asks of one worker.
  struct work {
    engine& self;
    worker_counts& counts;
    worker_type scratch{};
    std::uint64_t wait_begin = 0;

    work(engine& e, worker_counts& c) : self(e), counts(c) { c.at_stage = &detail::root_of(scratch).at_stage; }
    void evaluate(std::uint64_t s, std::uint64_t grain) noexcept { self.evaluate(*this, s, grain); }
    void finish(std::uint64_t s) noexcept { self.finish(s); }
    void waiting(bool begins) noexcept {
      if (begins)
        wait_begin = detail::now_ns();
      else
        counts.room_ns.fetch_add(detail::now_ns() - wait_begin, std::memory_order_relaxed);
    }
  };

  static run_options resolve(const Plan& p, run_options options) {
    if (!options.workers) options.workers = default_workers(world_of(p).local_size);
    if (!options.depth) options.depth = *options.workers == 0 ? 2 : std::max(4u, *options.workers + 3);
    options.depth = std::max<std::size_t>(2, *options.depth);
    if (!options.seed) options.seed = 0;
    return options;
  }
  static auto open_reader(const Plan& p) {
    if constexpr (parts::forward)
      return std::optional<reader_type>();
    else
      return std::optional<reader_type>(p.source().open());
  }
  static front_type open_front(const Plan& p) {
    if constexpr (parts::forward)
      return make_front(p);
    else
      return {};
  }
  static feed_type make_feed(const Plan& p, std::uint64_t chunk) {
    if constexpr (parts::direct)
      return feed_type(p);
    else
      return feed_type(p, chunk);
  }
  node_type make_node() const {
    if constexpr (parts::forward)
      return {};
    else
      return node_type{&*reader_};
  }
  std::uint64_t sample_bytes() const {
    if constexpr (requires(const reader_type& r) { r.bytes_per_sample(); }) {
      if (reader_) return reader_->bytes_per_sample();
    }
    return 0;
  }
  /// Slots that a worker takes at a time: 32 KB of payload or so; a few where nothing is known, one where samples are large.
  std::uint64_t grain_size(const Plan&) const {
    const std::uint64_t block = block_slots();
    if constexpr (!parts::direct) {
      return block;
    } else if constexpr (light) {
      return std::min<std::uint64_t>(block, std::max<std::uint64_t>(feed_.slots_per_block(), 8192));
    } else {
      const std::uint64_t bytes = sample_bytes();
      return std::min<std::uint64_t>(block, bytes == 0 ? 8 : std::clamp<std::uint64_t>(32'768 / bytes, 1, 64));
    }
  }
  std::uint64_t chunk_slots(const Plan& p) const {
    if constexpr (light) return 4096;
    if constexpr (parts::batched && parts::forward && !parts::decided) {
      return std::min<std::uint64_t>(std::get<parts::in::batch>(p.stages()).size, 4096);
    } else {
      const std::uint64_t bytes = sample_bytes();
      return bytes == 0 ? 16 : std::clamp<std::uint64_t>(65'536 / bytes, 1, 64);
    }
  }
  std::uint64_t block_slots() const { return feed_.slots_per_block() * parts_per_block_; }
  /// Batches of one block: one, but for small batches of numbers, where handing over costs more than evaluating.
  std::size_t parts_in_block(const run_options& given) const {
    if constexpr (parts::direct && light && !session_type::copies) {
      if (!given.depth) return static_cast<std::size_t>(std::clamp<std::uint64_t>(8192 / feed_.slots_per_block(), 1, 256));
    }
    return 1;
  }
  std::uint64_t grains() const { return (block_slots() + grain_slots_ - 1) / grain_slots_; }
  unsigned spins() const { return *options_.workers + 1 <= usable_processors() ? 300 : 0; }

  void start_threads() {
    const unsigned count = *options_.workers;
    counts_.of_workers = std::vector<worker_counts>(std::max(1u, count));
    try {
      if (count == 0) {
        here_.emplace(*this, counts_.of_workers[0]);
      } else {
        threads_.reserve(count);
        for (unsigned i = 0; i < count; ++i)
          threads_.emplace_back([this, i] {
            work mine(*this, counts_.of_workers[i]);
            ring_.serve(mine);
          });
      }
      if constexpr (hints) {
        if (options_.ahead != 0) ahead_.start(*reader_, feed_, options_.ahead, count != 0);
      }
      if (count != 0) watchdog_.start([this](std::string& line) { explain_wait(line); });
    } catch (const std::system_error& e) {
      stop();
      throw error(errc::io, std::string("a worker thread could not be started (") + e.what() + "); ask for fewer with workers(n)");
    } catch (...) {
      stop();
      throw;
    }
  }

 public:
  /// Opens what there is room for, so that workers begin before the first batch is asked for.
  void open_more() {
    while (opened_ - delivered_ < ring_.blocks() && !stopped() && feed_.more()) {
      payload_type* p = pool_.take();
      if (p == nullptr) {
        if (pool_.made() >= pool_.most() || !room_for_another()) return;
        p = pool_.make(device_, account_);
      }
      try {
        p->clear_failure();
        p->rows = 0;
        p->transferred = false;
        feed_.prepare(*p, parts_per_block_);
        p->columns.expect(shapes_);
        p->columns.begin(static_cast<std::size_t>(p->slots));
      } catch (...) {
        pool_.give_back(p);
        throw;
      }
      in_ring_[static_cast<std::size_t>(opened_ % ring_.blocks())] = p;
      ring_.open(opened_++);
      if constexpr (hints) ahead_.opened(p->slots);
    }
  }
 private:
  [[nodiscard]] bool room_for_another() {
    const std::size_t made = pool_.made();
    if (!options_.memory || made == 0) return true;
    const std::uint64_t held = account_.bytes.load(std::memory_order_relaxed);
    if (held == 0) return delivered_ != 0 || opened_ == 0;  // sizes show with the first batch
    return held + held / made <= *options_.memory;
  }

  [[nodiscard]] bool wait_for(std::uint64_t s) {
    if (here_) {
      ring_.serve_here(*here_, s);
      return !stopped();
    }
    if (ring_.is_ready(s)) return !stopped();
    const std::uint64_t begin = detail::now_ns();
    watchdog_.begin_wait();
    const bool ready = ring_.wait_ready(s);
    watchdog_.end_wait();
    counts_.stall_ns += detail::now_ns() - begin;
    return ready;
  }

  void evaluate(work& w, std::uint64_t s, std::uint64_t grain) noexcept {
    payload_type& p = *in_ring_[static_cast<std::size_t>(s % ring_.blocks())];
    if (abandon_.load(std::memory_order_relaxed)) return;
    const std::uint64_t begin = detail::now_ns();
    const std::uint64_t number = w.counts.grains.load(std::memory_order_relaxed);
    if constexpr (!parts::forward) detail::innermost(w.scratch).binding = &p.binding;
    std::uint64_t samples = 0;
    if constexpr (parts::direct) {
      const std::uint64_t first = grain * grain_slots_, last = first + grain_slots_;
      for (const batch_part& part : p.parts) {
        const std::uint64_t begin_row = std::max(first, part.first), end_row = std::min(last, part.first + part.valid);
        if (begin_row >= end_row) continue;
        samples += end_row - begin_row;
        write_slots(p, part, w, begin_row, end_row, number % 64 == 0 && begin_row == first);
      }
    } else if constexpr (parts::forward) {
      samples = pull_and_write(p, w, s, number % 64 == 0);
    } else {
      samples = p.parts[0].valid;
      write_rows(p, w, number % 64 == 0);
    }
    w.counts.grains.store(number + 1, std::memory_order_relaxed);
    w.counts.samples.store(w.counts.samples.load(std::memory_order_relaxed) + samples, std::memory_order_relaxed);
    w.counts.busy_ns.store(w.counts.busy_ns.load(std::memory_order_relaxed) + (detail::now_ns() - begin), std::memory_order_relaxed);
    if (number % 64 == 0) publish_costs(w);
  }

  /// Evaluates the slots [first, last) of a batch, each to its place.
  void write_slots(payload_type& p, const batch_part& part, work& w, std::uint64_t first, std::uint64_t last, bool with_times) noexcept {
    std::uint64_t slot = first;
    try {
      if (with_times && slot < last) {
        chain_.evaluate(
            {p.epoch, p.index(slot)}, w.scratch,
            [&]<class V>(V&& value) { p.columns.write(static_cast<std::size_t>(slot), std::forward<V>(value)); }, timed{});
        ++slot;
      }
      if constexpr (light) {
        if (!p.listed) {
          write_light(p, part, w, slot, last);
          return;
        }
      }
      for (; slot < last; ++slot) {
        if (ring_.stopped()) return;
        const std::uint64_t index = p.index(slot);
        if constexpr (!light) w.counts.at_index.store(index, std::memory_order_relaxed);
        chain_.evaluate(
            {p.epoch, index}, w.scratch,
            [&]<class V>(V&& value) { p.columns.write(static_cast<std::size_t>(slot), std::forward<V>(value)); }, untimed{});
      }
      if constexpr (!light) w.counts.at_index.store(no_epoch, std::memory_order_relaxed);
    } catch (...) {
      note_failure(p, slot, p.index(slot));
    }
  }
  /// The same with everything in registers, for elements that are numbers.
  void write_light(payload_type& p, const batch_part& part, work& w, std::uint64_t first, std::uint64_t last) {
    const step_view view = part.view;
    const std::uint64_t epoch = p.epoch, base = part.first;
    const auto& chain = chain_;
    auto& columns = p.columns;
    const auto loop = [&](auto index_of) {
      for (std::uint64_t slot = first; slot < last; ++slot)
        chain.evaluate(
            {epoch, index_of(slot)}, w.scratch,
            [&columns, slot]<class V>(V&& value) { columns.write(static_cast<std::size_t>(slot), std::forward<V>(value)); }, untimed{});
    };
    if (view.contiguous())
      loop([shift = view[0] - base](std::uint64_t slot) { return slot + shift; });
    else
      loop([&view, base](std::uint64_t slot) { return view[slot - base]; });
  }

  /// Where the rows of a chunk go: one after another, growing where a stage made several of one.
  struct row_writer {
    payload_type& p;
    std::uint64_t rows, room, slot;
    template <class V>
    void operator()(V&& value) {
      if (rows == room) grow();
      p.columns.write(static_cast<std::size_t>(rows), std::forward<V>(value));
      p.sources[static_cast<std::size_t>(rows)] = static_cast<std::uint32_t>(slot);
      ++rows;
    }
    void grow() {
      room = std::max<std::uint64_t>(16, room * 2);
      p.columns.grow(static_cast<std::size_t>(room), static_cast<std::size_t>(rows));
      p.sources.resize(static_cast<std::size_t>(room));
    }
  };

  void write_rows(payload_type& p, work& w, bool with_times) noexcept {
    if (p.sources.size() < p.slots) p.sources.resize(static_cast<std::size_t>(p.slots));
    row_writer writer{p, 0, p.slots, 0};
    const std::uint64_t valid = p.parts[0].valid;
    try {
      if (with_times && valid != 0) {
        chain_.evaluate({p.epoch, p.index(0)}, w.scratch, writer, timed{});
        ++writer.slot;
      }
      if constexpr (light) {
        if (!p.listed) {
          write_rows_light(p, w, writer);
          p.rows = writer.rows;
          return;
        }
      }
      for (; writer.slot < valid; ++writer.slot) {
        if constexpr (!light) {
          if (ring_.stopped()) return;
          w.counts.at_index.store(p.index(writer.slot), std::memory_order_relaxed);
        }
        chain_.evaluate({p.epoch, p.index(writer.slot)}, w.scratch, writer, untimed{});
      }
      if constexpr (!light) w.counts.at_index.store(no_epoch, std::memory_order_relaxed);
    } catch (...) {
      note_failure(p, writer.rows, p.index(writer.slot));
    }
    p.rows = writer.rows;
  }

  /// The same in registers where no stage makes several of one: then there is always room for a row.
  void write_rows_light(payload_type& p, work& w, row_writer& writer) {
    const step_view view = p.parts[0].view;
    const std::uint64_t epoch = p.epoch, valid = p.parts[0].valid;
    if constexpr (chain_type::has_parts) {
      for (; writer.slot < valid; ++writer.slot) chain_.evaluate({epoch, view[writer.slot]}, w.scratch, writer, untimed{});
    } else {
      auto& columns = p.columns;
      std::uint32_t* sources = p.sources.data();
      std::uint64_t rows = writer.rows;
      for (std::uint64_t slot = writer.slot; slot < valid; ++slot) {
        chain_.evaluate(
            {epoch, view[slot]}, w.scratch,
            [&columns, sources, slot, &rows]<class V>(V&& value) {
              columns.write(static_cast<std::size_t>(rows), std::forward<V>(value));
              sources[rows] = static_cast<std::uint32_t>(slot);
              ++rows;
            },
            untimed{});
        writer.rows = rows;
        writer.slot = slot + 1;
      }
    }
  }

  /// Takes this chunk's turn at the serial front, then evaluates what it took.
  std::uint64_t pull_and_write(payload_type& p, work& w, std::uint64_t s, bool with_times) noexcept {
    if constexpr (parts::forward) {
      const auto turn = static_cast<std::uint32_t>(s % stop_turn);
      const std::uint64_t begin = detail::now_ns();
      while (true) {
        const std::uint32_t seen = front_turn_.load(std::memory_order_seq_cst);
        if (ring_.stopped_for_sure() || seen == turn) break;
        front_turn_.wait(seen, std::memory_order_seq_cst);
      }
      w.counts.input_ns.fetch_add(detail::now_ns() - begin, std::memory_order_relaxed);
      if (stopped()) return 0;
      auto& items = items_[static_cast<std::size_t>(s % ring_.blocks())];
      std::uint64_t count = 0;
      if (!abandon_.load(std::memory_order_relaxed)) {
        try {
          if (front_epoch_ != p.epoch) {
            front_.rewind(p.epoch);
            front_epoch_ = p.epoch;
            front_ended_ = false;
          }
          if (items.size() < p.slots) items.resize(static_cast<std::size_t>(p.slots));
          while (!front_ended_ && count < p.slots && !stopped()) {
            if (!front_.next(items[static_cast<std::size_t>(count)])) {
              front_ended_ = true;
              break;
            }
            ++count;
          }
        } catch (...) {
          note_failure(p, count, p.parts[0].view[count]);
          front_ended_ = true;
        }
      }
      p.parts[0].valid = count;
      p.last = front_ended_;
      front_turn_.store(static_cast<std::uint32_t>((s + 1) % stop_turn), std::memory_order_seq_cst);
      if (ring_.stopped_for_sure()) front_turn_.store(stop_turn, std::memory_order_seq_cst);
      front_turn_.notify_all();
      if (p.sources.size() < p.slots) p.sources.resize(static_cast<std::size_t>(p.slots));
      row_writer writer{p, 0, p.slots, 0};
      try {
        for (; writer.slot < count; ++writer.slot) {
          if (stopped()) return 0;
          detail::innermost(w.scratch).item = &items[static_cast<std::size_t>(writer.slot)];
          const position at{p.epoch, p.parts[0].view[writer.slot]};
          if (with_times && writer.slot == 0)
            chain_.evaluate(at, w.scratch, writer, timed{});
          else
            chain_.evaluate(at, w.scratch, writer, untimed{});
        }
      } catch (...) {
        note_failure(p, writer.rows, p.parts[0].view[writer.slot]);
      }
      p.rows = writer.rows;
      return count;
    } else {
      return 0;
    }
  }
  static void note_failure(payload_type& p, std::uint64_t slot, std::uint64_t index) noexcept {
    try {
      throw;
    } catch (error& e) {
      try {
        e.at_position({p.epoch, index});
      } catch (...) {  // without the position then: memory is short
        p.fail(slot, std::current_exception());
        return;
      }
      p.fail(slot, std::current_exception());
    } catch (...) {
      p.fail(slot, std::current_exception());
    }
  }

  void finish(std::uint64_t s) noexcept {
    if constexpr (parts::direct) {
      payload_type& p = *in_ring_[static_cast<std::size_t>(s % ring_.blocks())];
      if ((p.what == nullptr || light) && !abandon_.load(std::memory_order_relaxed))
        for (const batch_part& part : p.parts) finish_columns(p, part);
    }
  }

 public:
  /// Puts the columns of a batch in order; a failure is kept in it.
  static void finish_columns(payload_type& p, const batch_part& part) noexcept {
    try {
      p.columns.finish(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots), static_cast<std::size_t>(part.valid));
    } catch (slot_error& e) {
      try {
        e.what.at_position({p.epoch, p.index(e.slot)});
      } catch (...) {
        p.fail(e.slot, std::make_exception_ptr(e.what));
        return;
      }
      p.fail(e.slot, std::make_exception_ptr(e.what));
    } catch (...) {
      p.fail(0, std::current_exception());
    }
  }
  [[nodiscard]] const auto& shapes() const { return shapes_; }
  /// Remembers the shapes that were found, for batches to come.
  void learn_from(const payload_type& p) noexcept { shapes_ = p.columns.shapes(); }

 private:
  void publish_costs(work& w) noexcept {
    detail::for_each_cost(w.scratch, [&](std::size_t number, const stage_cost& cost) {
      w.counts.stage_ns[number].store(cost.nanoseconds, std::memory_order_relaxed);
      w.counts.stage_timed[number].store(cost.timed, std::memory_order_relaxed);
    });
  }

  void send(payload_type& p) {
    if (p.transferred) return;
    const auto columns = p.columns.bytes(0, static_cast<std::size_t>(p.slots));
    device_.start(p.transfer, columns);
    p.transferred = true;
  }
  /// Begins to copy batches that are ready and not yet asked for.
  void send_ahead() {
    for (std::uint64_t s = delivered_; s != opened_ && ring_.is_ready(s); ++s) {
      payload_type& p = *in_ring_[static_cast<std::size_t>(s % ring_.blocks())];
      if (p.what != nullptr) return;
      if constexpr (parts::direct) send(p);
    }
  }

  void explain_wait(std::string& line) const;

  Plan plan_;
  run_options options_;
  memory_account account_;
  session_type device_;
  std::optional<reader_type> reader_;
  front_type front_;
  feed_type feed_, trail_;
  chain_type chain_;
  std::size_t parts_per_block_;
  std::uint64_t grain_slots_;
  ring ring_;
  std::vector<payload_type*> in_ring_;
  payload_pool<payload_type> pool_;
  std::array<extents, columns_type::size> shapes_{};
  std::uint64_t opened_ = 0, delivered_ = 0;
  std::atomic<bool> abandon_{false};

  std::atomic<std::uint32_t> front_turn_{0};
  std::uint64_t front_epoch_ = no_epoch;
  bool front_ended_ = false;
  [[no_unique_address]] std::conditional_t<parts::forward, std::vector<std::vector<typename Plan::source_type::element>>, no_binding>
      items_ = make_items();

  struct {
    std::uint64_t samples = 0, bytes = 0, batches = 0, stall_ns = 0;
    std::vector<worker_counts> of_workers;
  } counts_;
  std::uint64_t started_;
  std::optional<work> here_;
  [[no_unique_address]] std::conditional_t<hints, read_ahead<reader_type, feed_type>, no_binding> ahead_;
  watchdog_thread watchdog_;
  std::stop_callback<stopper> stop_callback_;
  std::vector<std::jthread> threads_;

  auto make_items() const {
    if constexpr (parts::forward)
      return std::vector<std::vector<typename Plan::source_type::element>>(ring_.blocks());
    else
      return no_binding{};
  }
};

template <class Plan>
run_counters engine<Plan>::counters() const {
  run_counters all;
  all.samples = counts_.samples;
  all.bytes = counts_.bytes;
  all.batches = counts_.batches;
  all.workers = *options_.workers;
  all.seconds = static_cast<double>(detail::now_ns() - started_) * 1e-9;
  all.stall_seconds = static_cast<double>(counts_.stall_ns) * 1e-9;
  all.bytes_held = account_.bytes.load(std::memory_order_relaxed);
  std::vector<std::uint64_t> ns(stage_count), timed_samples(stage_count);
  std::uint64_t samples = 0;
  for (const worker_counts& w : counts_.of_workers) {
    samples += w.samples.load(std::memory_order_relaxed);
    all.worker_busy_seconds += static_cast<double>(w.busy_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_room += static_cast<double>(w.room_ns.load(std::memory_order_relaxed)) * 1e-9;
    all.waiting_for_input += static_cast<double>(w.input_ns.load(std::memory_order_relaxed)) * 1e-9;
    for (std::size_t i = 0; i < stage_count; ++i) {
      ns[i] += w.stage_ns[i].load(std::memory_order_relaxed);
      timed_samples[i] += w.stage_timed[i].load(std::memory_order_relaxed);
    }
  }
  const auto add = [&](std::string name) {
    const std::size_t i = all.stages.size();
    const double each = timed_samples[i] == 0 ? 0 : static_cast<double>(ns[i]) / static_cast<double>(timed_samples[i]);
    all.stages.push_back({std::move(name), samples, each * static_cast<double>(samples) * 1e-9});
  };
  add(std::string(Plan::source_type::source_name));
  std::apply(
      [&](const auto&... stages) {
        const auto one = [&]<class Stage>(const Stage& stage) {
          if constexpr (value_stage<Stage>) {
            if constexpr (requires { stage.describe(); })
              add(stage.describe());
            else if constexpr (requires { Stage::stage_name; })
              add(std::string(Stage::stage_name));
            else
              add("stage");
          }
        };
        (one(stages), ...);
      },
      plan_.stages());
  return all;
}

template <class Plan>
void engine<Plan>::explain_wait(std::string& line) const {
  bool any = false;
  for (std::size_t i = 0; i < counts_.of_workers.size(); ++i) {
    const worker_counts& w = counts_.of_workers[i];
    const std::uint64_t index = w.at_index.load(std::memory_order_relaxed);
    if (index == no_epoch) continue;
    line += (any ? "; worker " : "worker ") + std::to_string(i) + " evaluates position " + std::to_string(index);
    any = true;
  }
  if (!any) line += parts::forward ? "the source's next sample" : "a worker to take up the batch";
}

}  // namespace penstock::inline v0_1
