// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/run/batch_handle.hpp>
#include <penstock/run/engine.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Which of a sequence of things pass: what take, skip and shard are where only a count is known. A pure function of the number.
class selection {
 public:
  void skip(std::uint64_t n) { steps_.push_back({kind::skip, n, 0}); }
  void take(std::uint64_t n) { steps_.push_back({kind::take, n, 0}); }
  void shard(std::uint64_t rank, std::uint64_t world) { steps_.push_back({kind::shard, world, rank}); }

  enum class verdict { pass, drop, end };
  [[nodiscard]] bool trivial() const noexcept { return steps_.empty(); }
  [[nodiscard]] verdict look(std::uint64_t number) const noexcept {
    for (const one& s : steps_) {
      if (s.what == kind::skip) {
        if (number < s.n) return verdict::drop;
        number -= s.n;
      } else if (s.what == kind::take) {
        if (number >= s.n) return verdict::end;
      } else {
        if (number % s.n != s.rank) return verdict::drop;
        number /= s.n;
      }
    }
    return verdict::pass;
  }

 private:
  enum class kind { skip, take, shard };
  struct one {
    kind what;
    std::uint64_t n, rank;
  };
  std::vector<one> steps_;
};

namespace detail {

/// The bytes of a whole value, for the counters.
template <class W>
std::uint64_t whole_size(const W& value) {
  if constexpr (any_record<W>) {
    return std::apply([](const auto&... fields) { return (whole_size(fields) + ... + 0); }, value.values());
  } else if constexpr (requires { value.member(0); }) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < value.size(); ++i) bytes += value.member(i).size();
    return bytes;
  } else if constexpr (requires { value.size(); *value.data(); }) {
    return value.size() * sizeof(*value.data());
  } else {
    return sizeof(value);
  }
}

/// The selection that the stages at places [First, Last) of a plan make.
template <std::size_t First, std::size_t Last, class... Stages>
selection select_between(const std::tuple<Stages...>& stages) {
  selection all;
  const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    const auto& stage = std::get<I>(stages);
    using type = std::remove_cvref_t<decltype(stage)>;
    if constexpr (I >= First && I < Last) {
      if constexpr (part_of_kind<type, shard_tag>)
        all.shard(stage.part.rank, stage.part.size);
      else if constexpr (part_of_kind<type, order_tag> && type::stage_name == std::string_view("skip"))
        all.skip(stage.count);
      else if constexpr (part_of_kind<type, order_tag>)
        all.take(stage.count);
    }
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (one(std::integral_constant<std::size_t, Is>{}), ...);
  }(std::index_sequence_for<Stages...>{});
  return all;
}

}  // namespace detail

/// What a run owns and its batches keep alive: the engine, and for plans that go through chunks the gathering of rows into batches.
template <class Plan>
class run_core : public std::enable_shared_from_this<run_core<Plan>> {
  using parts = plan_parts<Plan>;

 public:
  using plan_type = Plan;
  using engine_type = penstock::engine<Plan>;
  using payload_type = typename engine_type::payload_type;
  using batch_type = batch_handle<run_core>;

  run_core(const Plan& p, run_options options, std::stop_token token)
      : engine(p, options, std::move(token)), batches_(*engine.options().depth) {
    if constexpr (!parts::direct) {
      if constexpr (!parts::forward) rows_ = detail::select_between<parts::in::decider, parts::in::batch>(p.stages());
      if constexpr (parts::forward && parts::decided) rows_ = detail::select_between<parts::in::decider, parts::in::batch>(p.stages());
      if constexpr (parts::batched) {
        steps_ = detail::select_between<parts::in::batch, parts::in::count>(p.stages());
        const auto& batch = std::get<parts::in::batch>(p.stages());
        batch_size_ = batch.size;
        at_end_ = batch.at_end;
      }
    }
  }

  engine_type engine;

  /// Gives up shares of a payload; with the last one it goes back to its pool. Any thread.
  static void give_up(payload_type& p, std::uint32_t shares) noexcept {
    if (!p.release(shares)) return;
    const std::shared_ptr<void> owner = std::move(p.owner);  // may be the last thing that keeps the pool
    static_cast<run_core*>(owner.get())->give_back(&p);
  }
  [[nodiscard]] std::string key(position at) const {
    const auto source = engine_orders().sample_at(at);
    if constexpr (requires { engine.reader()->key(std::uint64_t{}); })
      return engine.reader()->key(source.index);
    else
      return std::to_string(source.index);
  }
  [[nodiscard]] const auto& engine_orders() const { return const_cast<engine_type&>(engine).feed().orders(); }

  /// The next batch of `epoch`; an empty handle at its end or when the run was stopped. Throws what belongs to that batch.
  batch_type next_batch(std::uint64_t epoch) {
    if constexpr (parts::direct)
      return next_direct(epoch);
    else
      return next_gathered(epoch);
  }
  /// The positions of the rows of a batch.
  static std::vector<position> positions(const payload_type& p, std::size_t first, std::size_t count) {
    std::vector<position> all;
    all.reserve(count);
    for (std::size_t row = first; row < first + count; ++row) {
      if constexpr (parts::direct)
        all.push_back({p.epoch, p.index(row)});
      else if (p.gathered.empty())  // a piece of a chunk
        all.push_back({p.epoch, p.index(p.sources[row])});
      else
        all.push_back(p.gathered[row]);
    }
    return all;
  }
  /// Lets go of what is begun and not handed out.
  void drop() noexcept {
    if constexpr (parts::direct) {
      if (block_ != nullptr) give_up(*std::exchange(block_, nullptr), static_cast<std::uint32_t>(left_));
    } else {
      drop_chunk();
    }
  }
  /// The next row of a loop without batches, in a chunk that is held until the row after it is asked for.
  auto* next_row(std::uint64_t epoch)
    requires(!parts::batched)
  {
    using row = whole<typename parts::element>;
    if (!find_row(epoch)) return static_cast<row*>(nullptr);
    row& value = chunk_->columns.template column<0>()[static_cast<std::size_t>(row_++)];
    engine.delivered(1, detail::whole_size(value));
    ++step_;
    ++survivors_;
    return &value;
  }

  [[nodiscard]] std::uint64_t epoch() { return engine.trail().epoch(); }

  /// Goes to a place; drops what was begun.
  void seek(const state& s) {
    drop();
    engine.reposition([&](auto& feed) {
      const std::uint64_t limit = std::max(feed.limit(), s.epoch + 1);
      if constexpr (parts::direct)
        feed.seek(s.epoch, s.step);
      else
        feed.seek(s.epoch, s.pass, s.ordinal);
      if constexpr (parts::has_cursor && !parts::forward) {
        if (s.given != 0 || !s.held.empty()) feed.restore_cursor(s.taken, s.given, s.held);
      }
      feed.limit(limit);
    });
    engine.limit(std::max(engine.feed().limit(), s.epoch + 1));
    step_ = s.step;
    row_ = 0;
    rows_to_skip_ = s.rows;
    survivors_ = s.survivors - std::min(s.survivors, s.rows);
  }

  void write_state(state& s) {
    auto& trail = engine.trail();
    trail.settle();
    s.epoch = trail.epoch();
    if constexpr (parts::direct) {
      s.step = trail.step();
    } else {
      s.step = step_;
      s.pass = trail.pass();
      s.ordinal = trail.ordinal();
      s.rows = row_ + rows_to_skip_;
      s.survivors = survivors_ + rows_to_skip_;
    }
    if constexpr (parts::has_cursor && !parts::forward) {
      s.taken = trail.cursor().taken();
      s.given = trail.cursor().given();
      s.held.assign(trail.cursor().held().begin(), trail.cursor().held().end());
    }
  }

 private:
  [[noreturn]] void fail(std::exception_ptr what) {
    engine.request_stop();
    std::rethrow_exception(what);
  }

  /// Shares of a payload that is to be handed out in pieces nobody has counted yet.
  static constexpr std::uint32_t many = 1u << 30;

  void give_back(payload_type* p) noexcept {
    if constexpr (!parts::direct) {
      if (p->from_batches) {
        batches_.give_back(p);
        return;
      }
    }
    engine.give_back(p);
  }
  void hand_out(payload_type& p, std::uint32_t shares) {
    p.owner = this->shared_from_this();
    p.shares.store(shares, std::memory_order_relaxed);
  }

  void count(payload_type& p, const batch_part& part) {
    std::uint64_t bytes = 0;
    for (const bytes_view column : p.columns.bytes(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots)))
      bytes += column.size();
    engine.delivered(part.valid, bytes);
  }

  batch_type next_direct(std::uint64_t epoch) {
    auto& trail = engine.trail();
    if (trail.epoch() != epoch || trail.step() >= trail.steps_per_epoch()) return {};
    if (block_ == nullptr) {
      payload_type* p = engine.next();
      if (p == nullptr) return {};
      if (p->what == nullptr) {
        engine.learn_from(*p);
        engine.arrive(*p);
      }
      left_ = p->parts.size();
      hand_out(*p, static_cast<std::uint32_t>(left_));
      block_ = p;
    } else if (engine.stopped()) {
      return {};
    }
    payload_type& p = *block_;
    const batch_part& part = p.parts[p.parts.size() - left_];
    if (p.what != nullptr && p.bad_slot < part.first + part.slots) {
      const std::exception_ptr what = p.what;
      drop();
      fail(what);
    }
    trail.advance();
    count(p, part);
    if (--left_ == 0) block_ = nullptr;
    return batch_type(&p, part);
  }

  /// Makes `row_` of `chunk_` the next row that passes; false at the epoch's end or when stopped.
  bool find_row(std::uint64_t epoch, bool across_passes = false) {
    while (true) {
      if (engine.trail().epoch() != epoch) return false;
      if (chunk_ == nullptr) {
        chunk_ = engine.next();
        if (chunk_ == nullptr) return false;
        hand_out(*chunk_, many);
        pieces_ = 0;
        row_ = 0;
      }
      const std::uint64_t end = chunk_->what != nullptr ? std::min(chunk_->bad_slot, chunk_->rows) : chunk_->rows;
      while (row_ < end) {
        if (rows_to_skip_ != 0) {
          --rows_to_skip_;
          ++survivors_;
          ++row_;
          continue;
        }
        const auto seen = rows_.look(survivors_);
        if (seen == selection::verdict::pass) return true;
        if (seen == selection::verdict::end) {
          end_pass();
          if (!across_passes) return false;
          break;
        }
        ++survivors_;
        ++row_;
      }
      if (chunk_ == nullptr) continue;
      if (row_ < end) continue;
      if (chunk_->what != nullptr) {
        const std::exception_ptr what = chunk_->what;
        drop_chunk();
        fail(what);
      }
      const bool last = chunk_->last;
      const std::uint64_t inputs = chunk_->parts[0].valid;
      drop_chunk();
      row_ = 0;
      if (last) {
        if (parts::forward)
          end_pass();
        else
          finish_pass(inputs);
        if (!across_passes && engine.trail().epoch() != epoch) return false;
      } else {
        engine.trail().advance(inputs);
      }
    }
  }

  /// The data of this pass are at their end: the feed has gone on by itself.
  void finish_pass(std::uint64_t inputs) {
    check_pass();
    engine.trail().advance(inputs);
    begin_pass();
  }
  /// This pass is over although there are data, or nobody knew where they end.
  void end_pass() {
    check_pass();
    drop_chunk();
    auto next = engine.trail();
    next.next_pass();
    engine.reposition([&](auto& feed) {
      const auto limit = feed.limit();
      feed = next;
      feed.limit(limit);
    });
    begin_pass();
  }
  void check_pass() const {
    if constexpr (parts::in::template has<steps_tag>) {
      if (survivors_ == 0)
        throw error(errc::argument, "steps(n): a whole pass over the data gave this rank no sample").in_stage("steps");
    }
  }
  void begin_pass() {
    survivors_ = 0;
    row_ = 0;
    rows_to_skip_ = 0;
    if (engine.trail().pass() == 0) step_ = 0;
  }

  void drop_chunk() noexcept {
    if (chunk_ != nullptr) give_up(*std::exchange(chunk_, nullptr), many - pieces_);
  }

  batch_type next_gathered(std::uint64_t epoch) {
    if constexpr (parts::batched) {
      while (true) {
        if (engine.trail().epoch() != epoch || end_of_steps()) return {};
        const std::uint64_t number = step_;
        batch_part part;
        payload_type* p = take_piece(epoch, part);
        if (p == nullptr) p = gather(epoch, part);
        if (p == nullptr) return {};
        part.delivered = {epoch, number};
        part.global = part.valid;
        if (engine.trail().epoch() == epoch) step_ = number + 1;
        batch_type made(p, part);
        if (steps_.look(number) == selection::verdict::pass) {
          count(*p, part);
          return made;
        }
      }
    } else {
      return {};
    }
  }

  /// A batch that is a piece of the chunk at hand as it is: no row is moved. For elements that are numbers.
  payload_type* take_piece(std::uint64_t epoch, batch_part& part) {
    if constexpr (engine_type::light && !engine_type::session_type::copies) {
      if (!rows_.trivial() || !find_row(epoch, parts::in::template has<steps_tag>)) return nullptr;
      const std::uint64_t end = chunk_->what != nullptr ? std::min(chunk_->bad_slot, chunk_->rows) : chunk_->rows;
      if (end - row_ < batch_size_) return nullptr;
      part.first = row_;
      part.slots = part.valid = batch_size_;
      chunk_->gathered.clear();
      row_ += batch_size_;
      survivors_ += batch_size_;
      ++pieces_;
      return chunk_;
    } else {
      return nullptr;
    }
  }
  /// Whether this epoch has had its batches, by steps(n) or by a take after batch; if so the next epoch begins.
  bool end_of_steps() {
    bool over = steps_.look(step_) == selection::verdict::end;
    if (const auto fixed = engine.feed().fixed_steps()) over = over || step_ >= *fixed;
    if (!over) return false;
    const std::uint64_t next_epoch = engine.trail().epoch() + 1;
    state s;
    s.epoch = next_epoch;
    seek_keeping_limit(s);
    return true;
  }
  void seek_keeping_limit(const state& s) {
    const auto limit = engine.feed().limit();
    seek(s);
    engine.limit(limit);
  }

  /// Fills one batch with the rows that come; null when there are none.
  payload_type* gather(std::uint64_t epoch, batch_part& part) {
    payload_type* out = batches_.take();
    if (out == nullptr) {
      if (batches_.made() >= batches_.most())
        throw error(errc::argument, "you hold " + std::to_string(batches_.out()) + " of " + std::to_string(batches_.made()) +
                                        " batches and ask for another; let one go, or raise the depth with prefetch(n) after batch");
      out = batches_.make(engine.device(), engine.account());
      out->from_batches = true;
    }
    try {
      fill(*out, epoch);
    } catch (...) {
      batches_.give_back(out);
      throw;
    }
    const std::uint64_t valid = out->gathered.size();
    if (valid == 0 || (valid < batch_size_ && at_end_ == tail::drop) || engine.stopped()) {
      batches_.give_back(out);
      return nullptr;
    }
    part.valid = valid;
    part.slots = at_end_ == tail::pad ? batch_size_ : valid;
    engine_type::finish_columns(*out, part);
    if (out->what != nullptr) {
      const std::exception_ptr what = out->what;
      batches_.give_back(out);
      fail(what);
    }
    out->slots = part.slots;
    engine.learn_from(*out);
    engine.arrive(*out);
    hand_out(*out, 1);
    return out;
  }

  void fill(payload_type& out, std::uint64_t epoch) {
    constexpr bool across = parts::in::template has<steps_tag>;
    out.clear_failure();
    out.gathered.clear();
    out.transferred = false;
    out.columns.expect(engine.shapes());
    out.columns.begin(static_cast<std::size_t>(batch_size_));
    std::uint64_t filled = 0;
    while (filled < batch_size_ && find_row(epoch, across)) {
      const std::uint64_t end = chunk_->what != nullptr ? std::min(chunk_->bad_slot, chunk_->rows) : chunk_->rows;
      std::uint64_t count = 1;
      if (rows_.trivial()) count = std::min(end - row_, batch_size_ - filled);
      if (filled == 0 && row_ == 0 && pieces_ == 0 && count == batch_size_ && count == chunk_->rows && chunk_->what == nullptr)
        std::swap(out.columns, chunk_->columns);
      else
        out.columns.copy(static_cast<std::size_t>(filled), chunk_->columns, static_cast<std::size_t>(row_),
                         static_cast<std::size_t>(count));
      for (std::uint64_t i = 0; i < count; ++i)
        out.gathered.push_back({chunk_->epoch, chunk_->index(chunk_->sources[static_cast<std::size_t>(row_ + i)])});
      filled += count;
      row_ += count;
      survivors_ += count;
    }
    // Errors of collating are of these positions.
    out.listed = true;
    out.epoch = out.gathered.empty() ? 0 : out.gathered.front().epoch;
    out.indices.clear();
    for (const position at : out.gathered) out.indices.push_back(at.index);
  }

  payload_pool<payload_type> batches_;
  selection rows_, steps_;
  std::uint64_t batch_size_ = 1;
  tail at_end_ = tail::keep;
  payload_type* block_ = nullptr;  // direct: what parts are left to hand out of
  std::size_t left_ = 0;
  payload_type* chunk_ = nullptr;
  std::uint32_t pieces_ = 0;  // of the chunk, handed out as they are
  std::uint64_t row_ = 0, rows_to_skip_ = 0, survivors_ = 0, step_ = 0;
};

}  // namespace penstock::inline v0_1
