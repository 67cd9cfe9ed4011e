// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/concepts.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/engine/detail/engine_parts.hpp>
#include <penstock/run/engine/detail/slot_costs.hpp>
#include <penstock/run/engine/engine_shell.hpp>
#include <penstock/run/engine/workers/evaluator.hpp>
#include <penstock/run/engine/workers/thread_place.hpp>
#include <penstock/run/feed/placement.hpp>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

/// The one engine: workers that evaluate runs of slots, and a ring of blocks between them and the consumer.
namespace penstock::inline v0_1 {

namespace detail {

/// What an engine has before its shell: the plan, what it opened, and the sizes of its pieces.
template <class Plan>
struct engine_basis {
  using parts = plan_parts<Plan>;
  using device_type = decltype(device_of(std::declval<const Plan&>()));
  using session_type = typename device_type::session;
  using reader_type = typename Plan::source_type::reader;
  using orders_type = sample_orders_of<Plan>;

  engine_basis(const Plan& p, const run_options& options)
      : plan_(p),
        device_(device_of(p).connect()),
        works_(p, device_),
        reader_(open_reader(p)),
        costs_(p, reader_),
        orders_(make_sample_orders(p)) {
    size_facts facts = size_facts_of(p, reader_ ? &*reader_ : nullptr);
    facts.copies = session_type::copies;
    if constexpr (sizing_session<session_type>) {
      if (options.memory) device_.bound(*options.memory);
    }
    begin_with_.size(placed(options, world_of(p).local_size), world_of(p).local_size, facts,
                     make_feed_facts(p, orders_));
    begin_with_.forward = parts::forward;
    begin_with_.batched = parts::batched;
    begin_with_.sizes_are_fixed = !parts::facts.uneven && !parts::packs_online &&
                                  all_fixed<typename parts::element>::value &&
                                  std::is_same_v<block_columns_of<Plan>, columns_of<Plan>>;
    begin_with_.times_grains = !plain_plan<Plan>;
    begin_with_.tells_costs = !parts::forward && !plain_plan<Plan>;
    names_of_stages(p).swap(begin_with_.stages);
    if constexpr (parts::direct) begin_with_.batch_maps = batch_maps<Plan>::count;
    begin_with_.observers =
        observers_of(p, *begin_with_.options.workers,
                     !parts::forward && takes_hints<reader_type> && *begin_with_.options.ahead != 0);
  }

  /// The options, with the workers near the device.
  run_options placed(const run_options& options, [[maybe_unused]] std::uint64_t local_ranks) const {
    if constexpr (placed_session<session_type>)
      return thread_place::near(options, device_.near(), local_ranks);
    else
      return options;
  }
  static std::optional<reader_type> open_reader(const Plan& p) {
    if constexpr (parts::forward)
      return std::nullopt;
    else
      return connect_source_of(p);
  }

  Plan plan_;
  session_type device_;
  [[no_unique_address]] device_works<Plan> works_;
  std::optional<reader_type> reader_;
  [[no_unique_address]] slot_costs<Plan> costs_;
  orders_type orders_;
  engine_setup begin_with_;
  host::session beside_;  // memory for samples that are in no block
};

}  // namespace detail

/// The plan-specific code of an engine: how its blocks are created, prepared and filled. The shell does the
/// rest.
///
/// The per-sample code is here, in the plan's own types; the shell calls it once per grain.
template <class Plan>
class engine : detail::engine_basis<Plan>, public engine_shell {
  using basis = detail::engine_basis<Plan>;
  using parts = plan_parts<Plan>;
  using costs_type = detail::slot_costs<Plan>;

 public:
  using session_type = typename basis::session_type;
  using reader_type = typename basis::reader_type;
  using orders_type = typename basis::orders_type;
  using binding = typename orders_type::binding;
  using source_element = typename Plan::source_type::element;
  using node_type = std::conditional_t<parts::forward, item_node<source_element>, source_node<reader_type>>;
  using chain_type = decltype(make_chain(std::declval<const Plan&>(), std::declval<node_type>(), 0));
  using columns_type = block_columns_of<Plan>;
  using bad_type = decltype(detail::bad_for<Plan>(std::declval<const orders_type&>(), 0));
  using block_type =
      block_of<columns_type, binding, typename session_type::transfer, typename device_layout_of<Plan>::work>;

  static constexpr bool plain = plain_plan<Plan>;
  /// Whether there is arithmetic between a position and its sample.
  static constexpr bool ordered =
      !parts::forward && !std::is_same_v<binding, typename order_chain<>::binding>;
  using evaluator_type = evaluator<chain_type, block_type, stop_view, plain, ordered, bad_type>;

  engine(const Plan& p, const run_options& options, const std::stop_token& token)
      : basis(p, options),
        engine_shell(calls, this, std::move(this->begin_with_),
                     detail::delivery_of<typename parts::stages>::make, token),
        evaluator_(make_chain(p, make_node(), *this->options().seed), stop_state(),
                   detail::bad_for<Plan>(this->orders_, *this->options().seed), &this->stages()),
        front_(detail::front_for(p, this->ring_blocks())),
        maps_(this->plan_, *this->options().seed) {
    start(hints());
  }
  ~engine() { stop(); }

  [[nodiscard]] block_type* next() { return static_cast<block_type*>(engine_shell::next()); }
  /// Creates a block of the run's own type outside the ring, holding nothing but its memory.
  [[nodiscard]] block_type* make_block() { return new block_type(device_session(), account()); }
  static void destroy_block(block* b) noexcept { delete static_cast<block_type*>(b); }
  /// Creates columns that are in no block, in the host's memory.
  [[nodiscard]] columns_type make_columns() { return columns_type(this->beside_, account()); }

  /// Remembers the shapes found: values of later batches that have them are written in their places.
  void learn_from(block_type& b) { shapes_ = b.columns.shapes(); }
  [[nodiscard]] const auto& shapes() const noexcept { return shapes_; }
  /// Waits until no copy reads the memory of a block that was returned.
  void settle(block_type& b) {
    if constexpr (reusing_session<session_type>) {
      if (b.transferred) device_session().reuse(b.transfer);
    }
    b.transferred = false;
  }

  /// Calls the functions of `map_batch` in the consumer's thread, with a batch whose columns are in order; a
  /// failure is stored in it. Their cost is not counted.
  void map_batch(block_type& b, const batch_rows& batch) noexcept {
    typename batch_maps<Plan>::costs spent{};
    maps_.keep(b, batch, spent);
  }

  [[nodiscard]] const Plan& plan() const noexcept { return this->plan_; }
  [[nodiscard]] session_type& device_session() noexcept { return this->device_; }
  [[nodiscard]] const std::optional<reader_type>& reader() const noexcept { return this->reader_; }
  /// Calls `f` with the reader, of a forward source too.
  void with_reader(auto&& f) const {
    if constexpr (parts::forward)
      f(front_.reader());
    else if (reader().has_value())
      f(*reader());
  }
  /// Adds what the sessions of its reader counted, and what the plan keeps in memory.
  void add_counters(run_counters& all) const {
    all.source_computes = reader_traits_of<reader_type>.calls_functions;
    all.kept = kept_in(evaluator_.chain());
    with_reader([&](const auto& reader) {
      const session_report seen = report_of(reader);
      all.storage = seen.counters;
      all.storage_requests = seen.requests;
      all.kept += kept_of(reader);
    });
    all.bytes_held += all.storage.held + all.kept.bytes;
  }
  /// The order of the samples, from the last order stage before batch and filters to the source.
  [[nodiscard]] const orders_type& orders() const noexcept { return this->orders_; }

 private:
  static constexpr std::uint64_t after_all_rows = block::no_slot - 1;  // the source itself failed

  struct plan_worker : engine_worker {
    typename chain_type::worker scratch{};
    [[no_unique_address]] typename batch_maps<Plan>::costs map_costs{};
    detail::owned<columns_of<Plan>> aside{};  // for a sample of another rank
  };

  /// Does some work on a block, and adds to it what the stages warned of meanwhile.
  static std::uint64_t noting_warnings(const plan_worker& w, block& b, auto work) noexcept {
    if constexpr (!can_warn<typename chain_type::worker>()) return work();
    const std::uint64_t before = warnings_of(w.scratch), made = work();
    if (const std::uint64_t more = warnings_of(w.scratch) - before; more != 0)
      b.warnings.fetch_add(more, std::memory_order_relaxed);
    return made;
  }

  static engine& self(void* e) noexcept { return *static_cast<engine*>(e); }
  static block_type& own(block& b) noexcept { return static_cast<block_type&>(b); }
  static plan_worker& own(engine_worker& w) noexcept { return static_cast<plan_worker&>(w); }

  // Null in a plan without `longest_first`, whose samples are all evaluated in their turn.
  static constexpr decltype(engine_calls::find_dear) find_dear() {
    if constexpr (costs_type::any)
      return [](void* e, block& b, double mean_ns) {
        return self(e).costs_.find(own(b), *self(e).reader_, self(e).evaluator_.chain(), mean_ns);
      };
    else
      return nullptr;
  }
  static constexpr decltype(engine_calls::evaluate_dear) evaluate_dear() {
    if constexpr (costs_type::any)
      return [](void* e, engine_worker& w, block& b, std::uint64_t slot, bool times) noexcept {
        return noting_warnings(own(w), b,
                               [&] { return self(e).evaluate_early(own(w), own(b), slot, times); });
      };
    else
      return nullptr;
  }

  static constexpr engine_calls calls{
      .make = [](void* e) -> block* { return self(e).make_block(); },
      .destroy = destroy_block,
      .prepare = [](void* e, block& b) { self(e).begin(own(b)); },
      .held = [](const block& b) noexcept { return static_cast<const block_type&>(b).columns.held(); },
      .release = [](block& b) noexcept { own(b).columns.release(); },
      .settle = [](void* e, block& b) { self(e).settle(own(b)); },
      .leave =
          [](void* e, block& b) {
            if constexpr (leaving_session<session_type>) self(e).device_session().leave(own(b).transfer);
          },
      .start_copy = [](void* e, block& b) { self(e).copy(own(b)); },
      .end_copy =
          [](void* e, block& b) {
            if constexpr (session_type::copies) self(e).device_session().wait(own(b).transfer);
          },
      .make_worker = []() -> engine_worker* { return new plan_worker; },
      .destroy_worker = [](engine_worker* w) noexcept { delete static_cast<plan_worker*>(w); },
      .expect =
          [](void* e, std::size_t times) noexcept {
            if constexpr (sizing_session<session_type>) self(e).device_session().expect(times);
          },
      .evaluate =
          [](void* e, engine_worker& w, block& b, std::uint64_t s, std::uint64_t grain, bool abandoned,
             bool times) noexcept {
            return noting_warnings(own(w), b, [&] {
              return self(e).evaluate_grain(own(w), own(b), s, grain, abandoned, times);
            });
          },
      .find_dear = find_dear(),
      .evaluate_dear = evaluate_dear(),
      .finish =
          [](void* e, engine_worker& w, block& b) noexcept {
            noting_warnings(own(w), b,
                            [&] { return self(e).finish_columns(own(w), own(b)), std::uint64_t{0}; });
          },
      .costs =
          [](const engine_worker& w, std::span<stage_cost> into) noexcept {
            const auto& me = static_cast<const plan_worker&>(w);
            [[maybe_unused]] const std::size_t last = detail::for_each_cost(
                me.scratch, [&](std::size_t number, const stage_cost& cost) { into[number] = cost; });
            if constexpr (parts::direct && parts::maps_batches)
              std::copy(me.map_costs.begin(), me.map_costs.end(),
                        into.begin() + static_cast<std::ptrdiff_t>(last + 1));
          },
      .restart_front = [](void* e, std::span<const std::uint64_t> at) { self(e).front_.restart(at); },
      .stop_front = [](void* e) noexcept { self(e).front_.stop(); },
      .cancel_reads =
          [](void* e) noexcept { self(e).with_reader([](const auto& reader) { cancel_reads_of(reader); }); },
      .report =
          [](void* e) {
            session_report all;
            self(e).with_reader([&](const auto& reader) { all = report_of(reader); });
            return all;
          }};

  node_type make_node() const {
    if constexpr (parts::forward)
      return {};
    else
      return node_type{&*this->reader_};
  }
  [[nodiscard]] hinter hints() noexcept {
    hinter made;
    if constexpr (!parts::forward && takes_hints<reader_type>) {
      made.self = this;
      made.report = calls.report;
      if constexpr (reader_traits_of<reader_type>.takes_fetched)
        made.ranges = &list<&engine::ahead_, range_list>;
      else
        made.hint = [](void* e, const placement& samples) { self(e).hint_all(samples); };
      if constexpr (reader_traits_of<reader_type>.plans_reads)
        made.plan_read = &list<&engine::far_ahead_, planned_reads>;
    }
    return made;
  }
  /// What a thread keeps that asks the reader where samples are.
  struct asking {
    [[no_unique_address]] scout_of<reader_type> scout;
    binding bound;
    std::vector<position> listed;
  };
  template <asking engine::*Place, class List>
  static void list(void* e, const placement& samples, List& into) {
    self(e).list_all(samples, self(e).*Place, into);
  }
  void hint_all(const placement& samples) {
    samples.bind(orders(), ahead_.bound);
    for (std::uint64_t slot = 0; slot < samples.batches[0].valid; ++slot) {
      const position source = ahead_.bound(samples.index(slot));
      if (!is_kept_in(evaluator_.chain(), source)) hint(*this->reader_, source, ahead_.scout);
    }
  }
  void list_all(const placement& samples, asking& at, auto& into) {
    samples.bind(orders(), at.bound);
    at.listed.clear();
    for (std::uint64_t slot = 0; slot < samples.batches[0].valid; ++slot)
      at.listed.push_back(at.bound(samples.index(slot)));
    // With `workers(0)` this is the consumer's thread, and there are no others.
    if constexpr (!requires { into.unknown(); })
      if (limits().workers) get_ready(*this->reader_, {at.listed.data(), at.listed.size()});
    std::exception_ptr failure;
    for (std::size_t slot = 0; slot < at.listed.size(); ++slot) {
      if (is_kept_in(evaluator_.chain(), at.listed[slot])) continue;
      into.stand_at(samples.run_row + slot);
      try {
        ranges_of(*this->reader_, at.listed[slot], at.scout, into);
      } catch (...) {  // the worker that reads the sample reports the error
        failure = std::current_exception();
      }
    }
    // Nobody waits for a sample that is far ahead, so nobody slows down who asks for them.
    if constexpr (requires { into.unknown(); })
      if (failure) std::rethrow_exception(failure);
  }

  void begin(block_type& b) {
    b.bind(orders(), b.binding);
    if constexpr (parts::packed && parts::direct) b.columns.place(b.packed);
    b.columns.expect(shapes_);
    b.columns.begin(static_cast<std::size_t>(std::max(b.slots, b.room)));
  }
  void copy(block_type& b) {
    if constexpr (session_type::copies) {
      const auto columns = b.columns.bytes(0, static_cast<std::size_t>(b.slots));
      if constexpr (device_works<Plan>::any)
        this->works_.start(device_session(), b,
                           b.from_batches ? b.gathered.rows() : detail::to_size(b.batches.front().valid),
                           columns);
      else
        device_session().start(b.transfer, columns);
    }
  }

  std::uint64_t evaluate_grain(plan_worker& w, block_type& b, std::uint64_t s,
                               [[maybe_unused]] std::uint64_t grain, [[maybe_unused]] bool abandoned,
                               bool times) noexcept {
    if constexpr (parts::forward) {
      return evaluate_pulled(b, w, s, times, abandoned);
    } else {
      const std::uint64_t first = parts::direct ? grain * b.grain_slots : 0,
                          last = parts::direct ? first + b.grain_slots : b.slots;
      if constexpr (reader_traits_of<reader_type>.takes_fetched)
        detail::innermost(w.scratch).fetched.use(
            this->fetched(b.run_row + first, b.run_row + std::min(last, b.slots)));
      if constexpr (!parts::direct) {
        evaluator_.write_rows(b, w.scratch, *w.counts, times);
        return b.batches[0].valid;
      }
      if constexpr (costs_type::any)
        if (this->begins_early())
          return this->costs_.pass_over(b, *w.counts, w.apart, first, last, [&](auto begin, auto end) {
            return evaluate_rows(w, b, begin, end, std::exchange(times, false));
          });
      return evaluate_rows(w, b, first, last, times);
    }
  }
  /// The rows [first, last) of a block of batches.
  std::uint64_t evaluate_rows(plan_worker& w, block_type& b, std::uint64_t first, std::uint64_t last,
                              bool times) noexcept {
    std::uint64_t samples = 0;
    for (std::size_t i = 0; i < b.batches.size() && b.batches[i].first < last; ++i) {
      const batch_rows& batch = b.batches[i];
      // Batches whose positions follow each other are evaluated in one go.
      while (plain && !b.listed && i + 1 < b.batches.size() && b.batches[i].continues_in(b.batches[i + 1]))
        ++i;
      const std::uint64_t begin_row = std::max(first, batch.first),
                          end_row = std::min(last, b.batches[i].first + b.batches[i].valid);
      if (begin_row >= end_row) continue;
      samples += end_row - begin_row;
      evaluator_.write_slots(b, batch, w.scratch, *w.counts, begin_row, end_row, times && begin_row == first);
    }
    return samples;
  }
  /// One row before its turn.
  std::uint64_t evaluate_early(plan_worker& w, block_type& b, std::uint64_t slot, bool times) noexcept {
    if constexpr (reader_traits_of<reader_type>.takes_fetched)
      detail::innermost(w.scratch).fetched.use(this->fetched(b.run_row + slot, b.run_row + slot + 1));
    return this->costs_.watch(b, *w.counts, slot, [&] { return evaluate_rows(w, b, slot, slot + 1, times); });
  }

  std::uint64_t evaluate_pulled(block_type& b, plan_worker& w, std::uint64_t s, bool times,
                                bool abandoned) noexcept {
    batch_rows& batch = b.batches[0];
    std::uint64_t begun = watch().now();
    const auto* items = front_.pull(
        s, b.epoch, b.slots, abandoned, stop_state(), batch.valid, b.last,
        [&b](std::uint64_t count) {
          b.fail_at(after_all_rows, {b.epoch, b.batches[0].view[count]}, {});
        },
        [this, &w, &begun](std::uint64_t ns) {
          w.counts->input_ns.fetch_add(ns, std::memory_order_relaxed);
          begun = watch().now();
          watch().worker(w.number, {begun - ns, begun, activity::wait_for_input});
        },
        &b.after);
    watch().worker(w.number, {begun, watch().now(), activity::read, 0, s});
    if (items == nullptr) return 0;
    evaluator_.write_items(b, w.scratch, *w.counts, *items, times);
    if (b.bad_slot == after_all_rows) b.bad_slot = b.rows;
    return batch.valid;
  }

  void finish_columns([[maybe_unused]] plan_worker& w, [[maybe_unused]] block_type& b) noexcept {
    if constexpr (parts::direct) {
      if (b.what == nullptr || plain)
        for (const batch_rows& batch : b.batches) {
          if (!find_lead(w, b, batch)) return;
          evaluator_.finish_columns(b, batch, w.scratch);
        }
      if constexpr (parts::maps_batches) {
        if (b.what != nullptr || this->stopped()) return;
        maps_.in_worker(b, w.map_costs, *w.counts, this->watch(), w.number, chain_type::depth + 1);
        calls.costs(w, w.costs);
        w.counts->publish(w.costs);
      }
    }
  }

  /// Finds out which shape a batch has, or its values must have, if only other ranks' samples tell: if it has
  /// no value, and where bad samples are tolerated, because they must be the same on any number of ranks.
  /// False if that failed, which the block then keeps.
  bool find_lead([[maybe_unused]] plan_worker& w, [[maybe_unused]] block_type& b,
                 [[maybe_unused]] const batch_rows& batch) noexcept {
    if constexpr (parts::direct && columns_of<Plan>::compares) {
      const bool none = b.bad.holes(batch.first, batch.valid) == batch.valid;
      if (!none && !(parts::tolerant && b.shares_step)) return true;
      std::uint64_t asked = b.step_index();
      try {
        if (!w.aside) w.aside = detail::owned(new columns_of<Plan>(this->beside_, account()));
        evaluator_.find_lead(b, batch, w.scratch, orders(), *w.aside, asked);
      } catch (...) {
        b.fail_at(batch.first, {b.epoch, asked}, evaluator_.failed_stage(w.scratch));
        return false;
      }
    }
    return true;
  }

  evaluator_type evaluator_;
  decltype(detail::front_for(std::declval<const Plan&>(), 0)) front_;
  typename columns_type::known_shapes shapes_{};
  asking ahead_;      // of the thread that requests ahead, which may be the consumer's
  asking far_ahead_;  // of the one that tells what will be read
  [[no_unique_address]] batch_maps<Plan> maps_;
};

}  // namespace penstock::inline v0_1
