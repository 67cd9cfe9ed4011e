// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/run/block/batch_handle.hpp>
#include <penstock/run/delivery/delivery_shell.hpp>
#include <penstock/run/delivery/detail/sample_window.hpp>
#include <penstock/run/engine/engine.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>

#include <algorithm>
#include <limits>
#include <stop_token>
#include <string>

namespace penstock::inline v0_1 {

namespace detail {

/// What a hand-out has before its shell: the engine, and the tally of bad samples.
template <class Plan>
struct delivery_basis {
  using engine_type = penstock::engine<Plan>;

  delivery_basis(const Plan& p, const run_options& options, const std::stop_token& token)
      : engine(p, options, token), tally(p, engine.leading().samples_per_epoch()) {}

  engine_type engine;
  [[no_unique_address]] bad_tally<Plan> tally;
};

/// What the shell of a hand-out needs to know of a plan.
template <class Plan>
delivery_setup delivery_setup_of(const Plan& p) {
  using parts = plan_parts<Plan>;
  using in = typename parts::in;
  const world share = world_of(p);
  delivery_setup made;
  made.in_place = parts::direct;
  made.forward = parts::forward;
  made.has_steps = in::template has<steps_tag>;
  made.pieces =
      plain_plan<Plan> && !parts::maps_batches && !parts::packs_online && !engine<Plan>::session_type::copies;
  made.rules.ranks = share.size;
  made.rules.rank = share.rank;
  made.rules.batched = parts::batched;
  made.rules.deals = parts::decided && !parts::shard_before_choosing;
  made.rules.dealt_in_rotation = parts::dealt_in_rotation;
  made.rules.packs = parts::packs_online;
  if constexpr (parts::decided) made.rules.rows = select_between<in::choosing, in::batch>(p.stages());
  if constexpr (parts::batched && !parts::direct) {
    made.steps = select_between<in::batch, in::count>(p.stages());
    const auto& batch = at<in::batch>(p.stages());
    made.rules.global = batch.global_size(share.size);
    made.rules.rows.deal_in_steps_of(made.rules.global);
    made.batch_size = batch.dealt_size(share.rank, share.size);
    made.at_end = batch.at_end;
  }
  return made;
}

}  // namespace detail

/// What a run delivers: batches, or the rows of a loop without batches.
///
/// Batches that are known before anything is evaluated are written in place. After filters and over forward
/// sources they are gathered: a batch of numbers that lies within one chunk is delivered without a copy;
/// others are copied, row by row of each column. Where `pack` has no lengths, a window of samples is gathered
/// first, and their values are copied once more, from the window to the rows of batches.
template <class Plan>
class delivery : public detail::delivery_basis<Plan>, public delivery_shell {
  using basis = detail::delivery_basis<Plan>;
  using parts = plan_parts<Plan>;

 public:
  using plan_type = Plan;
  using engine_type = typename basis::engine_type;
  using block_type = typename engine_type::block_type;
  using batch_type = batch_handle<delivery>;
  using basis::engine;

  delivery(const Plan& p, const run_options& options, const std::stop_token& token)
      : basis(p, options, token),
        delivery_shell(engine, tally_of(this->tally), calls, this, detail::delivery_setup_of(p),
                       engine_type::destroy_block) {
    if constexpr (parts::batched && !parts::direct) check_steps();
  }

  [[nodiscard]] static delivery& of(const block& b) noexcept {
    return static_cast<delivery&>(*static_cast<delivery_shell*>(b.owner.get()));
  }
  /// Takes back a batch that the consumer has finished with, in the consumer's thread.
  void take_back(batch_type& b) noexcept { delivery_shell::take_back(b.forget()); }

  /// The next batch of `epoch`; an empty handle at its end or if the run was stopped. Throws the error that
  /// belongs to that batch.
  batch_type next_batch(std::uint64_t epoch) {
    if constexpr (parts::direct) {
      const batch_rows* const batch = next_in_place(epoch);
      return batch == nullptr ? batch_type() : counted(*block_, *batch);
    } else {
      batch_rows batch;
      while (this->epoch() == epoch && !engine.stopped() && !end_of_steps()) {
        const std::uint64_t number = place_.number();
        block* b = take_piece(epoch, batch);
        batch.delivered = {epoch, number};
        if (b == nullptr) b = gather(epoch, batch);
        if (b == nullptr) return {};
        batch.global = batch.valid;
        commit_batch(epoch, number);
        if (setup_.steps.look(number) == selection::verdict::pass) return counted(*b, batch);
        (void)batch_type(&own(*b), batch);  // skipped after batch
      }
      return {};
    }
  }

  /// The next row of a loop without batches, valid until the following one is requested; null at the epoch's
  /// end.
  auto* next_row(std::uint64_t epoch)
    requires(!parts::batched)
  {
    using row_type = whole<typename parts::element>;
    const auto handed = [this](std::uint64_t row) {
      row_type& value = own(*block_).columns.template column<0>()[detail::to_size(row)];
      engine.delivered(1, detail::whole_size(value));
      return &value;
    };
    const std::uint64_t next = place_.row();
    if (at_row(epoch) && !engine.stopped() && place_.deliver_next(engine.delivered_feed()))
      return handed(next);
    if (engine.stopped() || !find_row(epoch)) {
      commit_end(epoch);
      return static_cast<row_type*>(nullptr);
    }
    commit_bad(epoch);
    const std::uint64_t row = place_.row();
    place_.take(1);
    place_.count_row();
    commit();
    engine.stand_at(epoch, place_.number());
    return handed(row);
  }

  /// Any thread.
  [[nodiscard]] run_counters counters() const {
    run_counters all = engine.counters();
    all.skipped = this->tally.skipped();
    all.replaced = this->tally.replaced();
    engine.add_counters(all);
    return all;
  }
  [[nodiscard]] run_monitor monitor() {
    if (!monitored_)
      monitored_.reset(new detail::monitored_run(
          this, [](const void* me) { return static_cast<const delivery*>(me)->counters(); }));
    return run_monitor(monitored_);
  }

  [[nodiscard]] std::string key(position at) const
    requires(!parts::forward)
  {
    return key_of(*engine.reader(), engine.orders().sample_at(at));
  }

 private:
  using reader_type = typename Plan::source_type::reader;
  using columns_type = typename engine_type::columns_type;

  static delivery& self(void* h) noexcept { return *static_cast<delivery*>(h); }
  static block_type& own(block& b) noexcept { return static_cast<block_type&>(b); }
  static tolerant_tally* tally_of([[maybe_unused]] bad_tally<Plan>& tally) noexcept {
    if constexpr (parts::tolerant) return &tally;
    return nullptr;
  }

  static constexpr delivery_calls calls{
      .learn_from = [](void* h, block& b) { self(h).engine.learn_from(own(b)); },
      .see_dealt = [](void* h, block& b, std::uint64_t row,
                      bool begins_step) { self(h).see_lead(own(b), detail::to_size(row), begins_step); },
      .name_sample = [](void* h, error& e, position at) noexcept { self(h).name_sample(e, at); },
      .place_of =
          [](void* h, position at) {
            if constexpr (parts::tolerant) return self(h).place_of(at);
            return sample_place();
          },
      .tally = tally_functions_of<Plan>()};

  // Ranks that share what filters keep compare shapes with the first row of the step, whichever rank has it.
  void see_lead([[maybe_unused]] block_type& b, [[maybe_unused]] std::size_t row, bool begins_step) {
    if constexpr (parts::batched && !parts::direct && parts::tolerant && !parts::packs_online) {
      if (begins_step) has_lead_ = false;
      if (has_lead_ || !b.columns.can_lead(row)) return;
      lead_ = b.columns.shapes_at(row);
      has_lead_ = true;
    }
  }
  void name_sample([[maybe_unused]] error& e, [[maybe_unused]] position at) const noexcept {
    if constexpr (!parts::forward) {
      try {
        const position source = engine.orders().sample_at(at);
        const std::string file = url_of(*engine.reader(), source);
        if (!file.empty()) e.in_file(file);
        if (!file.empty() || (has_keys<reader_type> && e.code() == errc::exception))
          e.for_key(key_of(*engine.reader(), source));
      } catch (...) {  // unknown parts are left out
      }
    }
  }
  [[nodiscard]] sample_place place_of([[maybe_unused]] position at) const {
    sample_place found;
    if constexpr (!parts::forward) {
      try {  // unknown parts are left out
        const position source = engine.orders().sample_at(at);
        found.source = source.index;
        if constexpr (has_keys<reader_type>) found.key = key_of(*engine.reader(), source);
        found.file = url_of(*engine.reader(), source);
      } catch (const error&) {
      }
    }
    return found;
  }

  void check_steps() const {
    const world share = world_of(engine.plan());
    const std::uint64_t global = setup_.rules.global;
    if (parts::forward && global % share.size != 0)
      throw error(errc::argument, {"global_batch(", global,
                                   ") over a source that can only be read forward needs a "
                                   "number of ranks that divides it, and ",
                                   share.size, " does not"})
          .in_stage("batch");
    const auto& fixed = engine.leading().fixed_steps();
    if (fixed && setup_.steps.passing(std::numeric_limits<std::uint64_t>::max()) < *fixed)
      throw error(errc::argument,
                  {"steps(", *fixed, "): a take after batch leaves fewer batches in an epoch; remove it"})
          .in_stage("steps");
  }

  [[nodiscard]] batch_type counted(block& b, const batch_rows& batch) {
    // a gathered row may come from several samples
    std::uint64_t bytes = 0, samples = b.from_batches ? b.gathered.all().size() : batch.valid;
    for (const bytes_view column :
         own(b).columns.bytes(static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.slots)))
      bytes += column.size();
    if constexpr (parts::tolerant)
      samples -= b.from_batches ? b.bad.all().size() : b.bad.holes(batch.first, batch.slots);
    engine.delivered(samples, bytes);
    engine.stand_at(batch.delivered.epoch, batch.delivered.index + 1);
    batch_type made(&own(b), batch);
    if (monitored_ && monitored_->wants_batch()) [[unlikely]]
      monitored_->show(&made);
    return made;
  }

  /// A batch of rows that are copied together; null if there are none.
  block* gather(std::uint64_t epoch, batch_rows& batch) {
    if (filling_ == nullptr) {
      if (!has_more(epoch)) return commit_end(epoch), nullptr;
      filling_ = take_batch();
      try {
        begin_filling(own(*filling_));
      } catch (...) {  // it is empty: the next call starts over
        gathered_.give_back(std::exchange(filling_, nullptr));
        throw;
      }
    }
    block_type& out = own(*filling_);
    fill(out, epoch);
    if (engine.stopped()) return nullptr;
    batch.first = 0;
    batch.valid = out.gathered.rows();
    if (batch.valid == 0 || (rows_in(out) < setup_.batch_size && setup_.at_end == tail::drop)) {
      gathered_.give_back(std::exchange(filling_, nullptr));
      return commit_end(epoch), nullptr;
    }
    const bool pads = setup_.at_end == tail::pad;
    if constexpr (parts::packs_online) {
      if (pads) {
        window_.reserve_rows(out, setup_.batch_size);
        out.packed.rows = setup_.batch_size;
      }
      out.slots = batch.slots = batch.valid;
    } else {
      out.slots = batch.slots = pads ? setup_.batch_size : batch.valid;
    }
    if (batch.slots > room_) out.columns.grow(detail::to_size(batch.slots), out.gathered.rows());
    if (has_lead_) out.columns.lead(lead_);
    finish_columns<typename engine_type::bad_type>(out, batch);
    if (out.what == nullptr) engine.learn_from(out);
    if constexpr (parts::maps_batches) {
      batch.global = batch.valid;
      // a skip after batch leaves it out
      if (out.what == nullptr && setup_.steps.look(batch.delivered.index) == selection::verdict::pass)
        engine.map_batch(out, batch);
    }
    if (out.what != nullptr) fail(out.what);
    see_holes(out, epoch);
    engine.or_stop([&] { engine.arrive(out); });  // as for batches written in place
    commit_bad(epoch);
    hold(out, 1);
    return std::exchange(filling_, nullptr);
  }
  block* take_batch() {
    const auto may_make = [this] {
      return gathered_.made() < gathered_.maximum() && (gathered_.made() == 0 || engine.room_for_another());
    };
    bool fresh = false;
    if constexpr (engine_type::session_type::copies) {
      // One is computed on, the next is copied, and this one is filled.
      engine.leave_returned(gathered_);
      fresh = gathered_.made() < 3 && may_make();
    }
    if (block* const out = fresh ? nullptr : gathered_.take()) return out;
    if (!fresh && !may_make())
      throw error(errc::argument, {"you hold ", gathered_.out(), " of ", gathered_.made(),
                                   " batches and ask for another; let one go, or raise the depth with "
                                   "prefetch(n) after batch"});
    block* const out = gathered_.make([&] { return engine.make_block(); });
    out->from_batches = true;
    return out;
  }
  void begin_filling(block_type& out) {
    out.clear_failure();
    out.gathered.clear();
    out.indices.clear();
    engine.settle(out);
    out.columns.expect(engine.shapes());
    if constexpr (parts::packs_online) {
      room_ = tuning::gathered_rows;
      window_.begin(out, room_, setup_.batch_size);
    } else {
      room_ = std::min(setup_.batch_size, tuning::gathered_rows);
      out.columns.begin(detail::to_size(room_));
    }
  }
  /// Rows of a batch that is being filled.
  static std::uint64_t rows_in(const block_type& out) noexcept {
    if constexpr (parts::packs_online) return out.packed.rows;
    return out.gathered.rows();
  }
  /// Whether there is a row for a batch.
  [[nodiscard]] bool has_more(std::uint64_t epoch) {
    if constexpr (parts::packs_online) {
      while (!has_window_row())
        if (!gather_window(epoch)) return false;
      return window_epoch_ == epoch;
    } else {
      return find_row(epoch);
    }
  }
  /// Collects the samples of the next window and packs them, perhaps into no row; false if there are none, or
  /// if the run was stopped.
  bool gather_window(std::uint64_t epoch) {
    feed& at = engine.delivered_feed();
    place_.begin_window(at);
    if (!find_row(epoch)) return false;
    const std::uint64_t pass = at.pass();
    engine.or_stop([&] {
      window_.begin();
      do copy_rows(window_.columns, window_.gathered, window_.room, window_.maximum());
      while (window_.gathered.rows() < window_.maximum() && find_row(epoch) && at.pass() == pass);
    });
    if (engine.stopped()) return false;
    const std::uint64_t number = place_.window();
    const std::size_t packed = window_.pack(epoch, number);
    if (packed != window_.gathered.rows())
      refuse_long_sample(window_.gathered.first_of(packed), window_.length(packed), window_.capacity());
    begin_window_rows(window_.rows(), epoch);
    place_.end_window(at);
    return true;
  }
  /// Copies rows until the batch is full or none are left; if something throws, the rows copied so far stay.
  void fill(block_type& out, std::uint64_t epoch) {
    while (rows_in(out) < setup_.batch_size && has_more(epoch)) {
      if constexpr (parts::packs_online)
        engine.or_stop([&] { window_.lay(detail::to_size(window_row_++), out, room_); });
      else
        copy_rows(out.columns, out.gathered, room_, setup_.batch_size);
    }
    out.listed = true;  // errors of collating refer to these positions
    out.epoch = out.gathered.empty() ? 0 : out.gathered.all().front().epoch;
    out.indices.clear();
    out.indices.resize(out.gathered.rows());
    for (std::size_t i = 0; i < out.gathered.rows(); ++i) out.indices[i] = out.gathered.first_of(i).index;
  }

  /// Copies rows of the current chunk, of which the next one passes, until there are `size` of them.
  void copy_rows(columns_type& columns, row_origins& gathered, std::uint64_t& room, std::uint64_t size) {
    block_type& chunk = own(*block_);
    const std::uint64_t filled = gathered.rows(), row = place_.row();
    const std::uint64_t count = place_.all_pass() ? std::min(good_rows() - row, size - filled) : 1;
    if (filled + count > room) {
      const std::uint64_t more = std::min(size, std::max(2 * room, filled + count));
      columns.grow(static_cast<std::size_t>(more), static_cast<std::size_t>(filled));
      room = more;
    }
    gathered.reserve(detail::to_size(filled + count));
    if (!parts::packs_online && filled == 0 && row == 0 && count == size && count == chunk.rows &&
        chunk.what == nullptr)
      std::swap(columns, chunk.columns);  // the whole chunk becomes the batch
    else
      columns.copy(static_cast<std::size_t>(filled), chunk.columns, static_cast<std::size_t>(row),
                   static_cast<std::size_t>(count));
    see_bad(row + count);
    chunk.add_positions(gathered, row, count);
    place_.take(count);
  }

  [[no_unique_address]] detail::sample_window_of<Plan, columns_type> window_{engine};
  std::uint64_t room_ = 0;  // rows that the current batch has memory for
  bool has_lead_ = false;
  typename engine_type::columns_type::slot_shapes lead_{};  // of the current step, once a row has shown it
};

}  // namespace penstock::inline v0_1
