// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/prover.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/run/engine/workers/thread.hpp>

#include <algorithm>
#include <memory>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE prover::prover(plan_view plan, std::span<const topology> shapes, const proof_options& options)
    : plan_(std::move(plan)), shapes_(shapes), options_(options) {
  if (shapes.empty() || options.epochs == 0)
    throw error(errc::argument, shapes.empty() ? "there is no topology to prove; give one or more"
                                               : "there is no epoch to prove; give epochs = 1 or more");
  const cut& c = plan_.mine;
  made_.positions = plan_.positions;
  made_.samples = plan_.samples;
  made_.global = plan_.uneven.any() ? 0 : c.global;
  made_.sampled = plan_.positions > options.max_positions;
  if (made_.sampled && plan_.buffer)
    throw error(errc::limit, {"an epoch of ", plan_.positions,
                              " positions through a shuffle_buffer cannot be proved; raise max_positions"});
  made_.shards = plan_.starts.size() - 1;
  numbers_ = options.only;
  for (const topology& shape : shapes) {
    if (options.only.empty()) numbers_.push_back(numbers_.size());
    cut all = c;
    all.world = shape.ranks();
    all.rank = 0;
    all.check();
    if (plan_.uneven.any()) continue;
    if (all.world > c.global || shape.nodes > c.global)  // the product may wrap
      throw error(errc::argument,
                  {"a global batch of ", c.global, " has no sample for each of ",
                   std::max(all.world, shape.nodes), " ranks; make it larger or leave that topology out"});
  }
  for (const std::uint64_t number : numbers_) {
    if (number >= shapes.size())
      throw error(errc::argument, {"there is no topology ", number, " among ", shapes.size()});
    made_.topologies.push_back({shapes[static_cast<std::size_t>(number)]});
  }
}

PENSTOCK_INLINE proof prover::result(const proof_listener& done) {
  done_ = &done;
  for (std::uint64_t e = 0; e < options_.epochs; ++e) {
    epoch_ = options_.first_epoch + e;
    const std::size_t before = made_.violations.size();
    prepare_epoch(e == 0);
    order_violations_.assign(made_.violations.begin() + static_cast<std::ptrdiff_t>(before),
                             made_.violations.end());
    next_ = 0;
    run_threads(&prover::prove_topologies);
  }
  return std::move(made_);
}

PENSTOCK_INLINE void prover::violation(sentences& all, std::initializer_list<piece> what) {
  if (all.size() < max_violations) all.push_back(text({"epoch ", epoch_, ": ", text(what)}));
}

PENSTOCK_INLINE void prover::order_violation(std::initializer_list<piece> what) {
  const std::lock_guard lock(guard_);
  violation(made_.violations, what);
}

PENSTOCK_INLINE void prover::run_threads(void (prover::*work)()) {
  struct worker {
    prover* self = nullptr;
    void (prover::*work)() = nullptr;
    joined_thread thread{};
    void serve() noexcept {
      try {
        (self->*work)();
      } catch (...) {
        const std::lock_guard lock(self->guard_);
        self->failure_ = std::current_exception();
      }
    }
  };
  const unsigned count = std::max(1u, options_.threads);
  const std::unique_ptr<worker[]> workers(new worker[count]);
  for (unsigned i = 0; i < count; ++i) {
    workers[i].self = this;
    workers[i].work = work;
  }
  for (unsigned i = 1; i < count; ++i) workers[i].thread.start<&worker::serve>(workers[i]);
  workers[0].serve();
  for (unsigned i = 1; i < count; ++i) workers[i].thread.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

PENSTOCK_INLINE void prover::prepare_epoch(bool first) {
  const std::uint64_t n = made_.positions;
  seen_ = bit_set();
  shard_of_.clear();
  pads_.clear();
  listed_.clear();
  if (n == 0) return;
  if (!made_.sampled) {
    plan_.bind(epoch_, 0, n);
    find_source_epochs();
    // A few positions of many samples are sorted instead.
    if (plan_.pads || made_.samples <= 256 * (n / source_epochs_ + 1))
      seen_ = bit_set(made_.samples * source_epochs_);
    else
      listed_.resize(static_cast<std::size_t>(n));
    shard_of_.resize(static_cast<std::size_t>(n));
    if (plan_.buffer) drawn_ = plan_.drawn(epoch_);
  }
  next_ = 0;
  run_threads(&prover::prove_order);
  settle_pads();
  if (first) made_.pads = pads_.size();
  std::uint64_t found = listed_.size();
  if (listed_.empty())
    found = seen_.count();
  else
    std::sort(listed_.begin(), listed_.end());
  for (std::size_t i = 1; i < listed_.size(); ++i) {
    if (listed_[i] != listed_[i - 1]) continue;
    --found;
    if (!plan_.repeats) order_violation({"sample ", listed_[i].index, " is at two positions"});
  }
  if (first && !made_.sampled) made_.left_out = made_.samples * source_epochs_ - found;
}

PENSTOCK_INLINE void prover::find_source_epochs() {
  constexpr std::size_t piece_size = 1 << 12;
  const std::uint64_t n = plan_.changes_epoch ? made_.positions : 1;
  std::vector<std::uint64_t> ordinals;
  std::vector<position> found(piece_size);
  std::uint64_t least = ~std::uint64_t{0}, maximum = 0;
  for (std::uint64_t from = 0; from < n; from += ordinals.size()) {
    ordinals.clear();
    for (std::uint64_t i = from; i < n && ordinals.size() < piece_size; ++i) ordinals.push_back(i);
    plan_.positions_at(ordinals, found.data());
    for (std::size_t k = 0; k < ordinals.size(); ++k) {
      least = std::min(least, found[k].epoch);
      maximum = std::max(maximum, found[k].epoch);
    }
  }
  source_epoch_ = least;
  source_epochs_ = maximum - least + 1;
}

PENSTOCK_INLINE void prover::settle_pads() {
  std::sort(pads_.begin(), pads_.end());
  std::erase_if(pads_, [&](const pad& one) { return !seen_.set(one.sample); });
}

PENSTOCK_INLINE std::uint64_t prover::pads_in(std::uint64_t begin, std::uint64_t end) const {
  const auto before = [](const pad& one, std::uint64_t index) { return one.index < index; };
  const auto first = std::lower_bound(pads_.begin(), pads_.end(), begin, before);
  return static_cast<std::uint64_t>(std::lower_bound(first, pads_.end(), end, before) - first);
}

PENSTOCK_INLINE std::uint64_t prover::ordinal(std::uint64_t index) const {
  return plan_.buffer ? drawn_[detail::to_size(index)] : index;
}

PENSTOCK_INLINE std::uint32_t prover::shard_at(std::uint64_t sample) const {
  return static_cast<std::uint32_t>(last_not_above(plan_.starts.data(), plan_.starts.size() - 1, sample));
}

PENSTOCK_INLINE void prover::prove_order() {
  constexpr std::uint64_t piece_size = 1 << 12;
  const std::uint64_t n = made_.positions, looks = made_.sampled ? options_.looks : n;
  std::vector<std::uint64_t> indices, ordinals;
  std::vector<position> found(piece_size);
  std::vector<char> padding(plan_.pads ? piece_size : 0);
  for (std::uint64_t from = next_.fetch_add(piece_size); from < looks; from = next_.fetch_add(piece_size)) {
    const std::uint64_t end = std::min(looks, from + piece_size);
    indices.clear();
    ordinals.clear();
    for (std::uint64_t i = from; i < end; ++i) {
      indices.push_back(made_.sampled ? mix64(i ^ mix64(epoch_)) % n : i);
      ordinals.push_back(ordinal(indices.back()));
    }
    if (made_.sampled)
      plan_.look(epoch_, ordinals, found.data());
    else
      plan_.positions_at(ordinals, found.data(), plan_.pads ? padding.data() : nullptr);
    for (std::size_t k = 0; k < indices.size(); ++k)
      prove_sample(indices[k], found[k], !made_.sampled && plan_.pads && padding[k] != 0);
  }
}

PENSTOCK_INLINE void prover::prove_sample(std::uint64_t index, position at, bool padding) {
  if (at.index >= made_.samples || (!made_.sampled && at.epoch - source_epoch_ >= source_epochs_)) {
    order_violation({"position ", index, " gives sample ", at.index, " of ", made_.samples});
    return;
  }
  if (!made_.sampled) {
    shard_of_[detail::to_size(index)] = shard_at(at.index);
    const std::uint64_t sample = (at.epoch - source_epoch_) * made_.samples + at.index;
    if (padding) {
      const std::lock_guard lock(guard_);
      pads_.push_back({index, sample});
      return;
    }
    if (!listed_.empty())
      listed_[detail::to_size(index)] = at;
    else if (seen_.set(sample) && !plan_.repeats)
      order_violation({"sample ", at.index, " is at position ", index, " and at an earlier one"});
  }
  if (!plan_.repeats && (made_.sampled || index % 4096 == 0)) prove_inverse(index, at);
}

PENSTOCK_INLINE void prover::prove_inverse(std::uint64_t index, position at) {
  const auto back = plan_.position_of(at);
  if (plan_.pads ? !back || plan_.sample_at(*back) != at : !back || *back != position{epoch_, ordinal(index)})
    order_violation({"position ", index, " gives sample ", at.index, ", whose inverse is another position"});
}

PENSTOCK_INLINE void prover::prove_topologies() {
  for (std::uint64_t i = next_.fetch_add(1); i < made_.topologies.size(); i = next_.fetch_add(1)) {
    const auto at = detail::to_size(i);
    sentences wrong = order_violations_;
    const topology_proof found = plan_.uneven.any() ? prove_uneven(at, wrong) : prove_one(at, wrong);
    const std::lock_guard lock(guard_);
    made_.topologies[at] = found;
    for (std::size_t k = order_violations_.size(); k < wrong.size(); ++k)
      if (made_.violations.size() < max_violations) made_.violations.push_back(wrong[k]);
    done_->tell(done_->who, proof_part{epoch_, numbers_[at], found, wrong, made_});
  }
}

PENSTOCK_INLINE void prover::count_touched(const std::vector<bit_set>& touched, topology_proof& found) const {
  found.min_shards = made_.shards;
  for (const bit_set& node : touched) {
    const std::uint64_t count = node.count();
    found.min_shards = std::min(found.min_shards, count);
    found.max_shards = std::max(found.max_shards, count);
    found.sum += count;
  }
}

PENSTOCK_INLINE void prover::count_by_size(topology_proof& found) const {
  const cut& c = plan_.mine;
  const std::uint64_t steps = plan_.steps;
  // Repeated steps count each time; the last one of a pass may be short.
  const std::uint64_t in_pass = std::max<std::uint64_t>(1, c.steps()), left = steps % in_pass;
  const auto samples_of = [&](std::uint64_t n) { return std::min(n * c.global, made_.positions); };
  const std::uint64_t pass = samples_of(c.steps());
  found.delivered = steps / in_pass * pass + samples_of(left);
  found.dropped = made_.positions - (steps < in_pass ? samples_of(left) : pass);
  found.padded =
      c.policy == tail::pad && made_.positions % c.global != 0 ? c.global - made_.positions % c.global : 0;
}

PENSTOCK_INLINE void prover::prove_stop(sentences& wrong, std::size_t which, std::uint64_t stop) {
  const topology& next = shapes_[detail::to_size((numbers_[which] + 1) % shapes_.size())];
  const std::uint64_t ranks = made_.topologies[which].shape.ranks();
  const resumed_place there = plan_.resume(epoch_, stop, ranks);
  if (!there.refused.empty() || !there.same)
    violation(wrong, {"stopped after step ", stop, " on ", ranks, " ranks, ", next.ranks(),
                      " ranks resume elsewhere", there.refused.empty() ? "" : ": ", there.refused});
}

PENSTOCK_INLINE topology_proof prover::prove_one(std::size_t which, sentences& wrong) {
  topology_proof found = made_.topologies[which];
  const cut& c = plan_.mine;
  std::vector<cut> ranks(detail::to_size(found.shape.ranks()), c);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].world = ranks.size();
    ranks[r].rank = r;
  }
  const std::uint64_t steps = plan_.steps;
  const bool first = epoch_ == options_.first_epoch;
  std::vector<bit_set> touched(first && !made_.sampled ? detail::to_size(found.shape.nodes) : 0,
                               bit_set(made_.shards));
  bit_set step_seen(made_.sampled ? 0 : c.steps() + 1);
  bit_set offsets(c.lanes == 1 ? 0 : c.global);
  std::uint64_t pad_positions = 0, reached = 0;
  step_sums sums;
  const std::uint64_t looks = made_.sampled ? std::min<std::uint64_t>(steps, 1024) : steps;
  constexpr std::size_t piece_size = 1024;
  std::vector<std::uint64_t> piece;  // some of the steps that are checked
  std::vector<position> places(piece_size);
  for (std::uint64_t i = 0; i < looks; ++i) {
    if (i % piece_size == 0) {
      piece.clear();
      for (std::uint64_t k = i; k < looks && piece.size() < piece_size; ++k)
        piece.push_back(looks == steps || k == 0 ? k : k == 1 ? steps - 1 : mix64(k ^ mix64(which)) % steps);
      plan_.upstream(epoch_, piece, places.data());
    }
    const std::uint64_t step = piece[i % piece_size];
    const position at = places[i % piece_size];
    if (!made_.sampled) {
      if (!step_seen.set(at.index))
        reached += c.count(at.index);
      else if (at.epoch == epoch_)
        violation(wrong, {"step ", step, " repeats samples of an earlier step"});
    }
    prove_step(wrong, ranks, at.index, touched, offsets, sums, found.shape);
    const std::uint64_t begin = at.index * c.global;
    pad_positions += pads_in(begin, begin + c.count(at.index));
  }
  for (const std::uint64_t stop : options_.stops) prove_stop(wrong, which, std::min(stop, steps));
  if (!first) return found;
  found.steps = steps;
  if (made_.sampled) {
    count_by_size(found);
    return found;
  }
  found.delivered = sums.delivered - pad_positions;
  found.dropped = made_.positions - reached;
  found.padded = sums.padded + pad_positions;
  count_touched(touched, found);
  return found;
}

/// What is wrong with the places of documents in rows; empty if nothing is.
PENSTOCK_INLINE std::string_view fault_in_rows(const packed_step& rows, std::size_t slots) {
  if (rows.documents.size() != slots) return "do not have as many documents as samples";
  std::uint64_t row = 0, end = 0;
  for (const packed_document& d : rows.documents) {
    if (d.row != row) end = 0;
    if (d.row < row || d.row >= rows.rows) return "are not in order";
    if (d.begin < end || d.padded < d.length || d.first + d.length > d.whole)
      return "have documents that overlap";
    row = d.row;
    end = std::uint64_t{d.begin} + d.padded;
    if (end > rows.capacity) return "are longer than they may be";
  }
  return {};
}

PENSTOCK_INLINE topology_proof prover::prove_uneven(std::size_t which, sentences& wrong) {
  topology_proof found = made_.topologies[which];
  const bool first = epoch_ == options_.first_epoch, all_of_it = !made_.sampled;
  std::vector<any_epoch_cut> ranks;
  for (std::uint64_t r = 0; r < found.shape.ranks(); ++r)
    ranks.push_back(plan_.uneven.on(found.shape.ranks(), r).bind(epoch_));
  const any_epoch_cut& any = ranks.front();
  const std::uint64_t steps = any.steps();
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].steps() != steps)
      violation(wrong,
                {"on ", ranks.size(), " ranks rank ", r, " has ", ranks[r].steps(), " steps, not ", steps});
  bit_set reached(all_of_it ? made_.positions : 0);
  std::vector<bit_set> touched(first && all_of_it ? detail::to_size(found.shape.nodes) : 0,
                               bit_set(made_.shards));
  std::uint64_t delivered = 0, padded = 0, pad_positions = 0, pieces = 0;
  std::vector<std::uint64_t> listed;
  packed_step rows;
  const std::uint64_t looks = all_of_it ? steps : std::min<std::uint64_t>(steps, 1024);
  for (std::uint64_t i = 0; i < looks; ++i) {
    const std::uint64_t step = looks == steps ? i : mix64(i ^ mix64(which)) % steps;
    const std::uint64_t begin = any.before(step), count = any.count(step);
    std::uint64_t in_step = 0;
    if (any.before(step + 1) != begin + count)
      violation(wrong,
                {"step ", step, " has ", count, " samples, but the next one does not start after them"});
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const step_view view = ranks[r].at(step);
      listed.clear();
      if (ranks[r].lists())
        ranks[r].list(step, listed);
      else
        for (std::uint64_t slot = 0; slot < view.valid(); ++slot) listed.push_back(view[slot]);
      in_step += listed.size();
      padded += view.slots() - view.valid();
      if (ranks[r].packs()) {
        ranks[r].pack(step, rows);
        if (const std::string_view fault = fault_in_rows(rows, listed.size()); !fault.empty())
          violation(wrong, {"step ", step, " on ", ranks.size(), " ranks: the rows of rank ", r, ' ', fault});
      }
      for (std::size_t slot = 0; slot < listed.size(); ++slot) {
        const std::uint64_t index = listed[slot];
        if (slot < rows.documents.size() && rows.documents[slot].first != 0) {
          ++pieces;  // the sample counts once
          continue;
        }
        const bool here = ranks[r].lists() || index - begin < count;
        if (index >= made_.positions || !here || (all_of_it && reached.set_alone(index))) {
          violation(wrong, {"step ", step, " on ", ranks.size(), " ranks: position ", index, " of rank ", r,
                            " belongs to another step or another rank"});
          continue;
        }
        if (plan_.pads && all_of_it) pad_positions += pads_in(index, index + 1);
        if (!touched.empty())
          touched[r / detail::to_size(found.shape.ranks_per_node)].set_alone(
              shard_of_[static_cast<std::size_t>(index)]);
      }
    }
    if (in_step != count)
      violation(wrong,
                {"step ", step, " on ", ranks.size(), " ranks has ", in_step, " samples, not ", count});
    delivered += in_step;
  }
  if (!first) return found;
  found.steps = steps;
  const std::uint64_t samples = any.before(steps) - pieces;
  found.delivered = (all_of_it ? delivered - pieces : samples) - pad_positions;
  found.dropped = made_.positions - std::min(made_.positions, samples);
  found.padded = padded + pad_positions;
  if (all_of_it) count_touched(touched, found);
  return found;
}

PENSTOCK_INLINE void prover::prove_step(sentences& wrong, const std::vector<cut>& ranks, std::uint64_t step,
                                        std::vector<bit_set>& touched, bit_set& offsets, step_sums& sums,
                                        const topology& shape) {
  const cut& any = ranks.front();
  const std::uint64_t begin = step * any.global, count = any.count(step);
  std::uint64_t expected = begin, found = 0, least = ~std::uint64_t{0}, maximum = 0;
  if (any.lanes != 1) offsets.clear();
  for (const cut& mine : ranks) {
    const step_view view = mine.at(step);
    least = std::min(least, view.slots());
    maximum = std::max(maximum, view.slots());
    found += view.valid();
    sums.padded += view.slots() - view.valid();
    bit_set* const node =
        touched.empty() ? nullptr : &touched[detail::to_size(mine.rank / shape.ranks_per_node)];
    if (view.contiguous()) {
      if (view.valid() != 0 && view[0] != expected)
        violation(wrong, {"step ", step, " on ", mine.world, " ranks: rank ", mine.rank,
                          " begins at position ", view[0], ", not ", expected});
      expected += view.valid();
      if (node != nullptr)
        for (std::uint64_t i = 0; i < view.valid(); ++i)
          node->set_alone(shard_of_[detail::to_size(view[0] + i)]);
      continue;
    }
    for (std::uint64_t i = 0; i < view.valid(); ++i) {
      const std::uint64_t index = view[i];
      if (index - begin >= count || offsets.set_alone(index - begin))
        violation(wrong, {"step ", step, " on ", mine.world, " ranks: position ", index, " of rank ",
                          mine.rank, " belongs to another step or another rank"});
      if (node != nullptr) node->set_alone(shard_of_[static_cast<std::size_t>(index)]);
    }
  }
  if (found != count)
    violation(wrong, {"step ", step, " on ", any.world, " ranks has ", found, " samples, not ", count});
  if (maximum - least > 1)
    violation(wrong,
              {"step ", step, " on ", any.world, " ranks: one has ", maximum, " slots and another ", least});
  if (count != 0) {
    const std::uint64_t index = begin + mix64(step) % count;
    const auto place = any.slot_of(index);
    if (!place || place->step != step ||
        ranks[static_cast<std::size_t>(place->rank)].index_of(step, place->slot) != index)
      violation(wrong, {"position ", index, " is in another slot than its inverse says"});
  }
  sums.delivered += found;
}

}  // namespace penstock::inline v0_1::detail
