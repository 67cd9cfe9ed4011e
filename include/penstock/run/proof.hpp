// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/text.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/detail/bit_set.hpp>
#include <penstock/run/direct_feed.hpp>
#include <penstock/run/parts.hpp>
#include <penstock/run/state.hpp>
#include <penstock/run/thread.hpp>

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Proofs about a plan's order, by arithmetic alone: no sample is read.
namespace penstock::inline v0_1 {

/// Machines and the ranks on each that get different samples; what `prove` tries.
struct topology {
  std::uint64_t nodes = 1, ranks_per_node = 1;
  [[nodiscard]] std::uint64_t ranks() const noexcept { return nodes * ranks_per_node; }
};

/// What `prove` looks at.
struct proof_options {
  std::uint64_t first_epoch = 0, epochs = 1;
  /// Steps after which each topology is stopped and the next one in the list goes on.
  std::vector<std::uint64_t> stops = {};
  /// Epochs of more positions than this are looked at in `looks` random positions and steps, not in all.
  std::uint64_t most_positions = std::uint64_t{1} << 28;
  std::uint64_t looks = 1'000'000;
  unsigned threads = 1;
  /// Numbers of the topologies that are proved; none: all. The others are there for stops to go on with.
  std::vector<std::uint64_t> only = {};
};

/// What was found for one topology.
struct topology_proof {
  topology shape;
  std::uint64_t steps = 0;                     ///< per epoch, on every rank
  std::uint64_t delivered = 0;                 ///< samples of the first epoch, over all ranks
  std::uint64_t dropped = 0;                   ///< positions of it that are in no step
  std::uint64_t padded = 0;                    ///< slots without a sample, or with one of `proof::pads`
  std::uint64_t least = 0, most = 0, sum = 0;  ///< shards that a node touches; sum over the nodes
};

/// What `prove` found.
struct proof {
  std::uint64_t positions = 0;  ///< of an epoch
  std::uint64_t samples = 0;    ///< of the source
  std::uint64_t shards = 0;
  std::uint64_t left_out = 0;  ///< samples that stand at no position of the first epoch
  std::uint64_t pads = 0;      ///< positions of it with a sample once more, to fill up; 0 where `sampled`
  std::uint64_t global = 0;    ///< samples of a global step
  bool sampled = false;        ///< random positions and steps, not all
  std::vector<topology_proof> topologies;
  std::vector<std::string> violations;  ///< the first hundred, a sentence each

  [[nodiscard]] bool holds() const noexcept { return violations.empty(); }
};

/// A topology of an epoch that is proved: what `prove` tells on its way.
struct proof_part {
  std::uint64_t epoch = 0, number = 0;         ///< number: of the topology, in the list that was given
  const topology_proof& found;                 ///< its counts are of the first epoch
  const std::vector<std::string>& violations;  ///< of this topology, and of the epoch's order
  const proof& whole;                          ///< what is known of all; its topologies may not be proved yet
};

namespace detail {

/// The work of `prove`.
template <class Plan>
class prover {
  using parts = plan_parts<Plan>;
  using feed_type = direct_feed<Plan>;
  static constexpr bool repeats =
      std::remove_cvref_t<decltype(std::declval<const feed_type&>().orders())>::repeats;
  static constexpr bool pads = std::remove_cvref_t<decltype(std::declval<const feed_type&>().orders())>::pads;

 public:
  prover(const Plan& p, std::span<const topology> shapes, const proof_options& options)
      : plan_(p), feed_(p), shapes_(shapes), options_(options) {
    const auto& orders = feed_.orders();
    const cut& c = feed_.mine();
    made_.positions = orders.size();
    made_.samples = p.source().size();
    made_.global = c.global;
    made_.sampled = orders.size() > options.most_positions;
    if (made_.sampled && parts::has_cursor)
      throw error(errc::limit,
                  {"an epoch of ", orders.size(),
                   " positions through a shuffle_buffer cannot be proved; raise most_positions"});
    if (const auto starts = p.source().starts()) starts_ = *starts;
    if (starts_.size() < 2) starts_ = {0, made_.samples};
    made_.shards = starts_.size() - 1;
    numbers_ = options.only;
    for (const topology& shape : shapes) {
      if (options.only.empty()) numbers_.push_back(numbers_.size());
      cut all = c;
      all.world = shape.ranks();
      all.rank = 0;
      all.check();
      if (all.world > c.global)
        throw error(errc::argument, {"a global batch of ", c.global, " has no sample for each of ", all.world,
                                     " ranks; make it larger or leave that topology out"});
    }
    for (const std::uint64_t number : numbers_) {
      if (number >= shapes.size())
        throw error(errc::argument, {"there is no topology ", number, " among ", shapes.size()});
      made_.topologies.push_back({shapes[static_cast<std::size_t>(number)]});
    }
  }

  template <class Done>
  [[nodiscard]] proof result(Done& done) {
    for (std::uint64_t e = 0; e < options_.epochs; ++e) {
      epoch_ = options_.first_epoch + e;
      const std::size_t before = made_.violations.size();
      prepare_epoch(e == 0);
      order_violations_.assign(made_.violations.begin() + static_cast<std::ptrdiff_t>(before),
                               made_.violations.end());
      next_ = 0;
      run_threads<&prover::prove_topologies<Done>>(&done);
    }
    return std::move(made_);
  }

 private:
  /// A position at which the order gives a sample once more.
  struct pad {
    std::uint64_t index = 0, sample = 0;
    friend auto operator<=>(const pad&, const pad&) = default;
  };

  using sentences = std::vector<std::string>;
  static constexpr std::size_t most_violations = 100;

  void violation(sentences& all, std::initializer_list<piece> what) {
    if (all.size() < most_violations) all.push_back(text({"epoch ", epoch_, ": ", text(what)}));
  }
  void order_violation(std::initializer_list<piece> what) {
    const std::lock_guard lock(guard_);
    violation(made_.violations, what);
  }

  template <auto Work, class... Told>
  void run_threads(Told... told) {
    struct worker {
      prover* self;
      std::tuple<Told...> told{};
      joined_thread thread{};
      void serve() noexcept {
        try {
          std::apply([this](Told... each) { (self->*Work)(each...); }, told);
        } catch (...) {
          const std::lock_guard lock(self->guard_);
          self->failure_ = std::current_exception();
        }
      }
    };
    const std::unique_ptr<worker[]> workers(new worker[std::max(1u, options_.threads)]);
    for (unsigned i = 0; i < std::max(1u, options_.threads); ++i) {
      workers[i].self = this;
      workers[i].told = {told...};
    }
    for (unsigned i = 1; i < options_.threads; ++i)
      workers[i].thread.template start<&worker::serve>(workers[i]);
    workers[0].serve();
    for (unsigned i = 1; i < options_.threads; ++i) workers[i].thread.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  /// Whether the order takes each sample once; and which shard stands at each position.
  void prepare_epoch(bool first) {
    const std::uint64_t n = made_.positions;
    seen_ = bit_set();
    shard_of_.clear();
    pads_.clear();
    if (n == 0) return;
    const auto& orders = feed_.orders();
    source_epoch_ = orders.sample_at({epoch_, 0}).epoch;
    source_epochs_ = made_.sampled ? 1 : orders.sample_at({epoch_, n - 1}).epoch - source_epoch_ + 1;
    if (!made_.sampled) {
      seen_ = bit_set(made_.samples * source_epochs_);
      shard_of_.resize(static_cast<std::size_t>(n));
      orders.rebind(binding_, epoch_, 0, n);
      draw_cursor();
    }
    next_ = 0;
    run_threads<&prover::prove_order>();
    settle_pads();
    if (first) made_.pads = pads_.size();
    if (first && !made_.sampled) made_.left_out = made_.samples * source_epochs_ - seen_.count();
  }
  /// What was left of a sample by stages behind the one that fills up may be its padding alone.
  void settle_pads() {
    std::sort(pads_.begin(), pads_.end());
    std::erase_if(pads_, [&](const pad& one) { return !seen_.set(one.sample); });
  }
  [[nodiscard]] std::uint64_t pads_in(std::uint64_t begin, std::uint64_t end) const {
    const auto before = [](const pad& one, std::uint64_t index) { return one.index < index; };
    const auto first = std::lower_bound(pads_.begin(), pads_.end(), begin, before);
    return static_cast<std::uint64_t>(std::lower_bound(first, pads_.end(), end, before) - first);
  }
  /// Behind a shuffle_buffer: which position comes when.
  void draw_cursor() {
    if constexpr (parts::has_cursor) {
      const auto& stage = detail::at<parts::in::cursor>(plan_.stages());
      position_buffer buffer(stage.capacity, stage.seed);
      buffer.begin(epoch_, made_.positions);
      drawn_.resize(static_cast<std::size_t>(made_.positions));
      for (std::uint64_t& ordinal : drawn_) ordinal = buffer.next();
    }
  }
  [[nodiscard]] std::uint64_t ordinal(std::uint64_t index) const {
    if constexpr (parts::has_cursor) return drawn_[static_cast<std::size_t>(index)];
    return index;
  }
  [[nodiscard]] std::uint32_t shard_at(std::uint64_t sample) const {
    return static_cast<std::uint32_t>(last_not_above(starts_.data(), starts_.size() - 1, sample));
  }

  void prove_order() {
    const auto& orders = feed_.orders();
    constexpr std::uint64_t piece_size = 1 << 16;
    const std::uint64_t n = made_.positions, looks = made_.sampled ? options_.looks : n;
    for (std::uint64_t from = next_.fetch_add(piece_size); from < looks; from = next_.fetch_add(piece_size)) {
      const std::uint64_t end = std::min(looks, from + piece_size);
      typename feed_type::binding bound = binding_;
      for (std::uint64_t i = from; i < end; ++i) {
        const std::uint64_t index = made_.sampled ? mix64(i ^ mix64(epoch_)) % n : i;
        if (made_.sampled) orders.rebind(bound, epoch_, index, index + 1);
        const position at = bound(ordinal(index));
        if (at.index >= made_.samples || (!made_.sampled && at.epoch - source_epoch_ >= source_epochs_)) {
          order_violation({"position ", index, " gives sample ", at.index, " of ", made_.samples});
          continue;
        }
        if (!made_.sampled) {
          shard_of_[static_cast<std::size_t>(index)] = shard_at(at.index);
          const std::uint64_t sample = (at.epoch - source_epoch_) * made_.samples + at.index;
          if (pads && bound.pads(ordinal(index))) {
            const std::lock_guard lock(guard_);
            pads_.push_back({index, sample});
            continue;
          }
          if (seen_.set(sample) && !repeats)
            order_violation({"sample ", at.index, " stands at position ", index, " and at an earlier one"});
        }
        if (!repeats && (made_.sampled || i % 4096 == 0)) {
          const auto back = orders.position_of(at);
          if (pads ? !back || orders.sample_at(*back) != at
                   : !back || *back != position{epoch_, ordinal(index)})
            order_violation(
                {"position ", index, " gives sample ", at.index, ", which says that it stands elsewhere"});
        }
      }
    }
  }

  template <class Done>
  void prove_topologies(Done* done) {
    for (std::uint64_t i = next_.fetch_add(1); i < made_.topologies.size(); i = next_.fetch_add(1)) {
      const auto at = static_cast<std::size_t>(i);
      sentences wrong = order_violations_;
      const topology_proof found = prove_one(at, wrong);
      const std::lock_guard lock(guard_);
      made_.topologies[at] = found;
      for (std::size_t k = order_violations_.size(); k < wrong.size(); ++k)
        if (made_.violations.size() < most_violations) made_.violations.push_back(wrong[k]);
      (*done)(proof_part{epoch_, numbers_[at], found, wrong, made_});
    }
  }

  topology_proof prove_one(std::size_t which, sentences& wrong) {
    topology_proof found = made_.topologies[which];
    const cut& c = feed_.mine();
    std::vector<cut> ranks(static_cast<std::size_t>(found.shape.ranks()), c);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].world = ranks.size();
      ranks[r].rank = r;
    }
    feed_type feed = feed_;
    const std::uint64_t steps = feed.steps_per_epoch();
    const bool first = epoch_ == options_.first_epoch;
    std::vector<bit_set> touched;
    if (first && !made_.sampled)
      for (std::uint64_t node = 0; node < found.shape.nodes; ++node) touched.emplace_back(made_.shards);
    bit_set step_seen(made_.sampled ? 0 : c.steps() + 1);
    bit_set offsets(c.lanes == 1 ? 0 : c.global);
    std::uint64_t delivered = 0, padded = 0, pad_positions = 0;
    const std::uint64_t looks = made_.sampled ? std::min<std::uint64_t>(steps, 1024) : steps;
    for (std::uint64_t i = 0; i < looks; ++i) {
      const std::uint64_t step = looks == steps || i == 0 ? i
                                 : i == 1                 ? steps - 1
                                                          : mix64(i ^ mix64(which)) % steps;
      feed.seek(epoch_, step);
      const position at = feed.upstream();
      if (!made_.sampled && step_seen.set(at.index) && at.epoch == epoch_)
        violation(wrong, {"step ", step, " has the samples of a step before it"});
      prove_step(wrong, ranks, at.index, touched, offsets, delivered, padded, found.shape);
      const std::uint64_t begin = at.index * c.global;
      pad_positions += pads_in(begin, begin + c.count(at.index));
    }
    for (const std::uint64_t stop : options_.stops) prove_stop(wrong, which, std::min(stop, steps));
    if (!first) return found;
    found.steps = steps;
    if (made_.sampled) {
      const std::uint64_t whole = std::min(steps * c.global, made_.positions);
      found.delivered = whole;
      found.dropped = made_.positions - whole;
      found.padded = c.policy == tail::pad && made_.positions % c.global != 0
                         ? c.global - made_.positions % c.global
                         : 0;
      return found;
    }
    found.delivered = delivered - pad_positions;
    found.dropped = made_.positions - std::min(made_.positions, delivered);
    found.padded = padded + pad_positions;
    found.least = made_.shards;
    for (const bit_set& node : touched) {
      const std::uint64_t count = node.count();
      found.least = std::min(found.least, count);
      found.most = std::max(found.most, count);
      found.sum += count;
    }
    return found;
  }

  /// Whether the ranks' parts of a step are its positions, each once.
  void prove_step(sentences& wrong, const std::vector<cut>& ranks, std::uint64_t step,
                  std::vector<bit_set>& touched, bit_set& offsets, std::uint64_t& delivered,
                  std::uint64_t& padded, const topology& shape) {
    const cut& any = ranks.front();
    const std::uint64_t begin = step * any.global, count = any.count(step);
    std::uint64_t expected = begin, found = 0, least = ~std::uint64_t{0}, most = 0;
    if (any.lanes != 1) offsets.clear();
    for (const cut& mine : ranks) {
      const step_view view = mine.at(step);
      least = std::min(least, view.slots());
      most = std::max(most, view.slots());
      found += view.valid();
      padded += view.slots() - view.valid();
      bit_set* const node =
          touched.empty() ? nullptr : &touched[static_cast<std::size_t>(mine.rank / shape.ranks_per_node)];
      if (view.contiguous()) {
        if (view.valid() != 0 && view[0] != expected)
          violation(wrong, {"step ", step, " on ", mine.world, " ranks: rank ", mine.rank,
                            " begins at position ", view[0], ", not ", expected});
        expected += view.valid();
        if (node != nullptr)
          for (std::uint64_t i = 0; i < view.valid(); ++i)
            node->set_alone(shard_of_[static_cast<std::size_t>(view[0] + i)]);
        continue;
      }
      for (std::uint64_t i = 0; i < view.valid(); ++i) {
        const std::uint64_t index = view[i];
        if (index - begin >= count || offsets.set_alone(index - begin))
          violation(wrong, {"step ", step, " on ", mine.world, " ranks: position ", index, " of rank ",
                            mine.rank, " is another step's or another rank's"});
        if (node != nullptr) node->set_alone(shard_of_[static_cast<std::size_t>(index)]);
      }
    }
    if (found != count)
      violation(wrong, {"step ", step, " on ", any.world, " ranks has ", found, " samples, not ", count});
    if (most - least > 1)
      violation(wrong,
                {"step ", step, " on ", any.world, " ranks: one has ", most, " slots and another ", least});
    if (count != 0) {
      const std::uint64_t index = begin + mix64(step) % count;
      const auto place = any.slot_of(index);
      if (!place || place->step != step ||
          ranks[static_cast<std::size_t>(place->rank)].index_of(step, place->slot) != index)
        violation(wrong, {"position ", index, " is in another slot than its inverse says"});
    }
    delivered += found;
  }

  /// A state of this topology on the next one.
  void prove_stop(sentences& wrong, std::size_t which, std::uint64_t stop) {
    const topology& next = shapes_[static_cast<std::size_t>((numbers_[which] + 1) % shapes_.size())];
    feed_type before = feed_, after = feed_;
    before.seek(epoch_, stop);
    state where;
    where.epoch = before.epoch();
    where.step = before.step();
    where.world = made_.topologies[which].shape.ranks();
    if constexpr (parts::has_cursor) {
      before.limit(epoch_ + 2);
      before.settle();
      where.taken = before.cursor().taken();
      where.given = before.cursor().given();
      where.held.assign(before.cursor().held().begin(), before.cursor().held().end());
    }
    const std::string_view refused = after.wrong_with(where);
    after.seek(where.epoch, where.step);
    if (!refused.empty() || after.epoch() != before.epoch() || after.step() != before.step() ||
        after.upstream() != before.upstream())
      violation(wrong, {"stopped after step ", stop, " on ", where.world, " ranks, ", next.ranks(),
                        " ranks go on elsewhere", refused.empty() ? "" : ": ", refused});
  }

  const Plan& plan_;
  feed_type feed_;
  std::span<const topology> shapes_;
  proof_options options_;
  std::vector<std::uint64_t> numbers_;  // of the topologies that are proved
  proof made_;
  sentences order_violations_;  // of the epoch
  std::uint64_t epoch_ = 0, source_epoch_ = 0, source_epochs_ = 1;
  std::vector<std::uint64_t> starts_, drawn_;
  typename feed_type::binding binding_;
  bit_set seen_;
  std::vector<std::uint32_t> shard_of_;
  std::vector<pad> pads_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex guard_;
  std::exception_ptr failure_;
};

}  // namespace detail

/// Checks by running the arithmetic of a plan, for each topology: every epoch has each sample of the order
/// once (not asked of `class_balanced` and `weighted`, which repeat samples; what `distributed_sampler` and
/// `mosaic` give once more to fill an epoch up counts as padding); each global step is the same
/// set of positions, every one with exactly one rank; all ranks have the same number of steps, and parts that
/// differ by at most one slot; a state of one topology is the same place on the next. Counts what is dropped,
/// padded and left out, and the shards that each node touches.
///
/// The plan is elastic and in batches that are known without reading: no filter, no unbatch, no forward
/// source. Its `shard` says how large a global step of `batch(b)` is; the ranks are those of the topologies.
/// Reads no sample. Memory: 5 bytes a position, or with `sampled` O(shards). Time: about 0.1 us a position
/// and topology, over `threads`. Throws `error(errc::argument)` for more ranks than a global step has
/// samples.
///
///     const auto found = prove(loader, std::vector<topology>{{1, 8}, {4, 8}, {3, 7}});
///     if (!found.holds()) std::cerr << to_string(found);
///
/// `done(proof_part)` is called when a topology of an epoch is proved, by one thread at a time: for work in
/// parts, which is to go on after it was stopped. What it throws ends the proof.
template <class Source, class... Stages, class Done>
[[nodiscard]] proof prove(const plan<Source, Stages...>& p, std::span<const topology> shapes,
                          const proof_options& options, Done done) {
  using plan_type = plan<Source, Stages...>;
  static_assert(
      plan_parts<plan_type>::direct,
      "penstock: prove needs batches that are known without reading samples: no filter, unbatch or forward "
      "source, and a batch");
  static_assert(elastic<plan_type>,
                "penstock: prove needs a plan that keeps `elastic`; put shuffle_buffer before shard");
  return detail::prover<plan_type>(p, shapes, options).result(done);
}
template <class Source, class... Stages>
[[nodiscard]] proof prove(const plan<Source, Stages...>& p, std::span<const topology> shapes,
                          const proof_options& options = {}) {
  return prove(p, shapes, options, [](const proof_part&) {});
}

/// What was found, as a table for people and the violations, a line each.
template <class = void>
[[nodiscard]] std::string to_string(const proof& p) {
  std::string report =
      detail::text({p.positions, " positions of ", p.samples, " samples in ", p.shards, " shards, ", p.global,
                    " in a global step", p.sampled ? "; random positions and steps were looked at\n" : "\n"});
  if (p.left_out != 0) detail::append(report, {p.left_out, " samples stand at no position\n"});
  if (p.pads != 0)
    detail::append(report, {p.pads, " positions are padding: a sample once more, to fill up\n"});
  for (const topology_proof& t : p.topologies) {
    detail::append(report, {t.shape.nodes, " x ", t.shape.ranks_per_node, " ranks: ", t.steps, " steps, ",
                            t.delivered, " samples, ", t.dropped, " dropped, ", t.padded, " padded"});
    if (!p.sampled && t.shape.nodes != 0)
      detail::append(report, {", shards touched by a node: ", t.least, " to ", t.most, ", ",
                              t.sum / t.shape.nodes, " on average"});
    report += '\n';
  }
  for (const std::string& violation : p.violations) detail::append(report, {"violation: ", violation, '\n'});
  return report += p.holds() ? "holds\n" : "does not hold\n";
}

}  // namespace penstock::inline v0_1
