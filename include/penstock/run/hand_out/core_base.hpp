// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/run/bad/bad_tally.hpp>
#include <penstock/run/engine/engine.hpp>
#include <penstock/run/state.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// What both cores of a run share: the engine, and the counting of who holds what. `Core` is the derived
/// class.
template <class Plan, class Core>
class core_base : public std::enable_shared_from_this<Core> {
  using parts = plan_parts<Plan>;

 public:
  using plan_type = Plan;
  using engine_type = penstock::engine<Plan>;
  using block_type = typename engine_type::block_type;

  core_base(const Plan& p, const run_options& options, const std::stop_token& token)
      : engine(p, options, token), tally(p, engine.leading().samples_per_epoch()) {}

  engine_type engine;
  [[no_unique_address]] bad_tally<Plan> tally;

  /// Gives up shares of a payload; with the last one it goes back to its pool. Any thread. In a child after
  /// fork it does not: another thread may have held the pool's lock then.
  static void give_up(block_type& p, std::uint32_t shares) noexcept {
    if (!p.release(shares)) return;
    const std::shared_ptr<void> owner = std::move(p.owner);  // may be the last thing that keeps the pool
    Core& core = *static_cast<Core*>(owner.get());
    if (!core.engine.home().here()) return;
    core.engine.watch().let_go(&p);
    core.give_back(&p);
  }

  /// In a child after fork: lives as long as the process. There is no thread to join, and what a thread held
  /// when the process was copied stays locked.
  void keep_forever() noexcept { self_ = this->shared_from_this(); }

  [[nodiscard]] std::uint64_t epoch() noexcept { return engine.delivered_feed().epoch(); }

  /// The key of the sample at a position.
  [[nodiscard]] std::string key(position at) const
    requires(!parts::forward)
  {
    const position source = engine.orders().sample_at(at);
    return key_of(*engine.reader(), source);
  }

 protected:
  [[noreturn]] void fail(const std::exception_ptr& what) {
    engine.request_stop();
    try {
      std::rethrow_exception(what);
    } catch (error& e) {
      // What a batch finds when it is put together, its source does not see pass.
      if (e.code() == errc::shape && e.at()) name_sample(e, *e.at());
      throw;
    }
  }
  template <class F>
  void try_or_fail(F f) {
    try {
      f();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  void hand_out(block_type& p, std::uint32_t shares) {
    p.owner = this->shared_from_this();
    p.shares.store(shares, std::memory_order_relaxed);
    engine.watch().hold(p);
  }
  void count(const block_type& p, const batch_part& part) noexcept {
    std::uint64_t bytes = 0;
    for (const bytes_view column :
         p.columns.bytes(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.slots)))
      bytes += column.size();
    std::uint64_t samples = part.valid;
    if constexpr (parts::tolerant) samples -= p.bad.holes(part.first, part.slots);
    engine.delivered(samples, bytes);
  }
  /// The bad samples that were seen belong to what is handed out.
  void commit_bad(std::uint64_t epoch) {
    tally.commit(epoch, [&]([[maybe_unused]] position at) {
      sample_place place;
      if constexpr (!parts::forward) {
        try {  // what cannot be said is left out
          const position source = engine.orders().sample_at(at);
          using reader_type = typename Plan::source_type::reader;
          place.source = source.index;
          if constexpr (has_keys<reader_type>) place.key = key_of(*engine.reader(), source);
          if constexpr (has_urls<reader_type>) place.file = url_of(*engine.reader(), source);
        } catch (const error&) {
        }
      }
      return place;
    });
  }
  void restore_bad([[maybe_unused]] const state& s) {
    tally.drop();
    if constexpr (parts::tolerant)
      tally.restore(s.epoch, share_of_bad(s.bad, s.world, world_of(engine.plan()).size));
  }
  void name_sample([[maybe_unused]] error& e, [[maybe_unused]] position at) const noexcept {
    using reader_type = typename Plan::source_type::reader;
    if constexpr (!parts::forward && has_urls<reader_type>) {
      try {
        const position source = engine.orders().sample_at(at);
        e.in_file(url_of(*engine.reader(), source)).for_key(key_of(*engine.reader(), source));
      } catch (...) {  // what cannot be said is left out
      }
    }
  }
  template <class Cursor>
  static void write_cursor(state& s, const Cursor& cursor) {
    if constexpr (parts::has_cursor && !parts::forward) {
      s.taken = cursor.taken();
      s.given = cursor.given();
      s.held.assign(cursor.held().begin(), cursor.held().end());
    }
  }

 private:
  std::shared_ptr<Core> self_;
};

}  // namespace penstock::inline v0_1
