// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/inspection/detail/bit_set.hpp>
#include <penstock/inspection/topology.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/run/engine/thread.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/state.hpp>

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The work of `prove`.
template <class Plan>
class prover {
  using parts = plan_parts<Plan>;
  using orders_type = sample_orders_of<Plan>;
  static constexpr bool repeats = orders_type::repeats;
  static constexpr bool pads = orders_type::pads;

 public:
  prover(const Plan& p, std::span<const topology> shapes, const proof_options& options)
      : plan_(p),
        orders_(make_sample_orders(p)),
        feed_(make_feed_facts(p, orders_)),
        shapes_(shapes),
        options_(options) {
    if (shapes.empty() || options.epochs == 0)
      throw error(errc::argument, shapes.empty() ? "there is no topology to prove; give one or more"
                                                 : "no epoch is to be proved; give epochs = 1 or more");
    const cut& c = feed_.mine();
    made_.positions = orders_.size();
    made_.samples = p.source().size();
    made_.global = c.global;
    made_.sampled = orders_.size() > options.most_positions;
    if (made_.sampled && parts::has_cursor)
      throw error(errc::limit,
                  {"an epoch of ", orders_.size(),
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
    listed_.clear();
    if (n == 0) return;
    if (!made_.sampled) {
      orders_.rebind(binding_, epoch_, 0, n);
      find_source_epochs();
      // Few positions of many samples are put in order instead.
      if (pads || made_.samples <= 256 * (n / source_epochs_ + 1))
        seen_ = bit_set(made_.samples * source_epochs_);
      else
        listed_.resize(static_cast<std::size_t>(n));
      shard_of_.resize(static_cast<std::size_t>(n));
      draw_cursor();
    }
    next_ = 0;
    run_threads<&prover::prove_order>();
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
      if (!repeats) order_violation({"sample ", listed_[i].index, " stands at two positions"});
    }
    if (first && !made_.sampled) made_.left_out = made_.samples * source_epochs_ - found;
  }
  /// Of which epochs of the source the positions of this one are.
  void find_source_epochs() {
    const std::uint64_t n = made_.positions;
    std::uint64_t least = binding_(0).epoch, most = least;
    if constexpr (orders_type::changes_epoch) {
      for (std::uint64_t i = 1; i < n; ++i) {
        const std::uint64_t e = binding_(i).epoch;
        least = std::min(least, e);
        most = std::max(most, e);
      }
    }
    source_epoch_ = least;
    source_epochs_ = most - least + 1;
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
    constexpr std::uint64_t piece_size = 1 << 16;
    const std::uint64_t n = made_.positions, looks = made_.sampled ? options_.looks : n;
    for (std::uint64_t from = next_.fetch_add(piece_size); from < looks; from = next_.fetch_add(piece_size)) {
      const std::uint64_t end = std::min(looks, from + piece_size);
      typename orders_type::binding bound = binding_;
      for (std::uint64_t i = from; i < end; ++i) {
        const std::uint64_t index = made_.sampled ? mix64(i ^ mix64(epoch_)) % n : i;
        if (made_.sampled) orders_.rebind(bound, epoch_, index, index + 1);
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
          if (!listed_.empty())
            listed_[static_cast<std::size_t>(index)] = at;
          else if (seen_.set(sample) && !repeats)
            order_violation({"sample ", at.index, " stands at position ", index, " and at an earlier one"});
        }
        if (!repeats && (made_.sampled || i % 4096 == 0)) {
          const auto back = orders_.position_of(at);
          if (pads ? !back || orders_.sample_at(*back) != at
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
    feed at_step = feed_;
    const std::uint64_t steps = at_step.steps_per_epoch();
    const bool first = epoch_ == options_.first_epoch;
    std::vector<bit_set> touched;
    if (first && !made_.sampled)
      for (std::uint64_t node = 0; node < found.shape.nodes; ++node) touched.emplace_back(made_.shards);
    bit_set step_seen(made_.sampled ? 0 : c.steps() + 1);
    bit_set offsets(c.lanes == 1 ? 0 : c.global);
    std::uint64_t delivered = 0, padded = 0, pad_positions = 0, reached = 0;
    const std::uint64_t looks = made_.sampled ? std::min<std::uint64_t>(steps, 1024) : steps;
    for (std::uint64_t i = 0; i < looks; ++i) {
      const std::uint64_t step = looks == steps || i == 0 ? i
                                 : i == 1                 ? steps - 1
                                                          : mix64(i ^ mix64(which)) % steps;
      at_step.seek(epoch_, step);
      const position at = at_step.upstream();
      if (!made_.sampled) {
        if (!step_seen.set(at.index))
          reached += c.count(at.index);
        else if (at.epoch == epoch_)
          violation(wrong, {"step ", step, " has the samples of a step before it"});
      }
      prove_step(wrong, ranks, at.index, touched, offsets, delivered, padded, found.shape);
      const std::uint64_t begin = at.index * c.global;
      pad_positions += pads_in(begin, begin + c.count(at.index));
    }
    for (const std::uint64_t stop : options_.stops) prove_stop(wrong, which, std::min(stop, steps));
    if (!first) return found;
    found.steps = steps;
    if (made_.sampled) {
      // Of steps that come again, each time; the last one of a pass may be a short one.
      const std::uint64_t in_pass = std::max<std::uint64_t>(1, c.steps()), left = steps % in_pass;
      const auto samples_of = [&](std::uint64_t n) { return std::min(n * c.global, made_.positions); };
      const std::uint64_t pass = samples_of(c.steps());
      found.delivered = steps / in_pass * pass + samples_of(left);
      found.dropped = made_.positions - (steps < in_pass ? samples_of(left) : pass);
      found.padded = c.policy == tail::pad && made_.positions % c.global != 0
                         ? c.global - made_.positions % c.global
                         : 0;
      return found;
    }
    found.delivered = delivered - pad_positions;
    found.dropped = made_.positions - reached;
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
    feed before = feed_, after = feed_;
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
  orders_type orders_;
  feed feed_;
  std::span<const topology> shapes_;
  proof_options options_;
  std::vector<std::uint64_t> numbers_;  // of the topologies that are proved
  proof made_;
  sentences order_violations_;  // of the epoch
  std::uint64_t epoch_ = 0, source_epoch_ = 0, source_epochs_ = 1;
  std::vector<std::uint64_t> starts_, drawn_;
  typename orders_type::binding binding_;
  bit_set seen_;
  std::vector<position> listed_;  // the same where it is smaller
  std::vector<std::uint32_t> shard_of_;
  std::vector<pad> pads_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex guard_;
  std::exception_ptr failure_;
};

}  // namespace penstock::inline v0_1::detail
