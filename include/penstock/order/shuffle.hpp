// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/any_seed.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/permutation.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// The key of one epoch of a shuffle.
[[nodiscard]] constexpr std::uint64_t shuffle_key(std::uint64_t seed, std::uint64_t epoch) noexcept {
  constexpr std::uint64_t stream = 0x7368'7566'666c'6500;  // "shuffle"
  return rng(seed, epoch, 0, stream)();
}

/// One epoch of a windowed shuffle: the permuted shards are laid end to end ("the row"), the row is cut
/// into lanes and the lanes into windows.
///
/// Places in the row are numbered from 0 up to size. A piece is one lane's part of one shard; a window is
/// up to `window` pieces of one lane. Windows therefore never cross a lane's border, and shuffling inside
/// each window is a bijection on the whole.
class shuffle_table {
 public:
  shuffle_table(const std::vector<std::uint64_t>& starts, std::uint64_t window, std::uint64_t lanes,
                std::uint64_t key);

  /// The source index at index p of the epoch.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t p) const noexcept {
    std::uint64_t place = p;
    std::uint64_t first = 0, count = mixes_.size();
    if (lanes_ > 1) {
      const auto [depth, lane] = by_lanes_(p);
      place = lane_begin(lane) + depth;
      first = lane_windows_[lane];
      count = lane_windows_[lane + 1] - first;
    }
    const std::uint64_t w = first + last_not_above(window_places_.data() + first, count, place);
    place = window_places_[w] + mixes_[w](place - window_places_[w]);
    const std::uint64_t piece = window_pieces_[w];
    return place + piece_shifts_[piece + last_not_above(piece_places_.data() + piece,
                                                        window_pieces_[w + 1] - piece, place)];
  }

  /// The epoch index of source index i, which lies in shard `number`.
  [[nodiscard]] std::uint64_t index_of(std::uint64_t shard_start, std::uint64_t number,
                                       std::uint64_t i) const noexcept;

 private:
  /// Lanes hold the indices p with p mod lanes == lane, so the first ones are longer by one.
  [[nodiscard]] std::uint64_t lane_begin(std::uint64_t lane) const noexcept {
    return lane * lane_length_ + std::min(lane, longer_lanes_);
  }

  std::uint64_t size_, lanes_, lane_length_, longer_lanes_;
  divider by_lanes_, by_length_, by_longer_;
  std::vector<std::uint64_t> lane_windows_;   // each lane's first window; one more at the end
  std::vector<std::uint64_t> window_places_;  // each window's first place; one more at the end
  std::vector<std::uint64_t> window_pieces_;  // each window's first piece; one more at the end
  std::vector<permutation> mixes_;            // each window's shuffle
  std::vector<std::uint64_t> piece_places_;   // each piece's first place
  std::vector<std::uint64_t> piece_shifts_;   // each piece's source index - place
  std::vector<std::uint64_t> shard_places_;   // each shard's first place
};

}  // namespace detail

namespace mistakes {

struct shuffle_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: shuffle after batch would shuffle whole batches, whose samples stay together; "
                  "write shuffle before batch(n), or shuffle_batches(seed(7)) if that is meant");
  }
};

}  // namespace mistakes

/// An option of `shuffle`: how many shards are mixed with each other.
struct window {
  constexpr explicit window(any_count shards_) : shards(shards_.of("window")) {}
  std::uint64_t shards;
};

/// An option of `shuffle`: into how many contiguous lanes the permuted shards are cut, so that each reader
/// touches only a few shards.
struct lanes {
  constexpr explicit lanes(any_count count_) : count(count_.of("lanes")) {}
  std::uint64_t count;
};

/// The order of `shuffle(seed(7))`: a new permutation of all positions in every epoch.
class shuffle_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    permutation shuffled;
    [[nodiscard]] constexpr position operator()(std::uint64_t index) const noexcept {
      return {epoch, shuffled(index)};
    }
  };

  shuffle_order(const order_input& in, std::uint64_t seed);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t lanes() const noexcept { return 1; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    return {epoch, permutation(size_, detail::shuffle_key(seed_, epoch))};
  }
  [[nodiscard]] std::optional<position> position_of(position upstream) const;

 private:
  std::uint64_t size_;
  std::uint64_t seed_;
};

/// The order of `shuffle(seed(7), window(w), lanes(C))`: permutes the shards, and the samples within each
/// window of shards.
///
/// Copies share the tables of the four epochs bound last; a mutex guards them and is held while a table is
/// built (about 0.3 ms for 10,000 shards). The result of `bind` is immutable and needs no lock.
class windowed_shuffle_order {
 public:
  struct bound {
    std::uint64_t epoch = 0;
    shared<const detail::shuffle_table> table;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept { return {epoch, (*table)(index)}; }
  };

  windowed_shuffle_order(order_input in, std::uint64_t seed, std::uint64_t window, std::uint64_t lane_count);

  [[nodiscard]] std::uint64_t size() const noexcept { return starts_->back(); }
  [[nodiscard]] std::uint64_t lanes() const noexcept { return lanes_; }
  [[nodiscard]] order_input output() const { return {size(), nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, table(epoch)}; }

  [[nodiscard]] std::optional<position> position_of(position upstream) const;

 private:
  static constexpr std::uint64_t max_lanes = std::uint64_t{1} << 24;

  struct entry {
    std::uint64_t epoch = 0;
    shared<const detail::shuffle_table> table;
  };
  struct recent {
    std::mutex guard;
    std::array<entry, 4> entries;
    std::size_t oldest = 0;
  };

  [[nodiscard]] shared<const detail::shuffle_table> table(std::uint64_t epoch) const;

  std::uint64_t seed_, window_, lanes_;
  shared<const std::vector<std::uint64_t>> starts_;
  shared<recent> recent_;
};

/// The stage `shuffle(seed(7))`.
struct shuffle_stage {
  using penstock_part = order_tag;
  using mistake_after_batch = mistakes::shuffle_after_batch;
  static constexpr std::string_view stage_name = "shuffle";
  static constexpr bool varies_by_epoch = true;

  [[nodiscard]] shuffle_order make(const order_input& in) const { return {in, seed}; }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return seed; }
  [[nodiscard]] std::string describe() const;
  void fingerprint(auto& h) const { h.add(stage_name, seed); }

  std::uint64_t seed = 0;
};

/// The stage `shuffle(seed(7), window(w))` or `shuffle(seed(7), window(w), lanes(C))`.
struct windowed_shuffle_stage {
  using penstock_part = order_tag;
  using mistake_after_batch = mistakes::shuffle_after_batch;
  static constexpr std::string_view stage_name = "shuffle";
  static constexpr bool varies_by_epoch = true;

  [[nodiscard]] windowed_shuffle_order make(order_input in) const {
    return {std::move(in), seed, shards, lane_count};
  }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return seed; }
  [[nodiscard]] std::string describe() const;
  void fingerprint(auto& h) const { h.add(stage_name, seed, shards, lane_count); }

  std::uint64_t seed = 0;
  std::uint64_t shards = 1;
  std::uint64_t lane_count = 1;
};

namespace detail {
struct shuffle_forms {
  [[nodiscard]] constexpr shuffle_stage operator()(any_seed seed) const noexcept { return {seed.value()}; }
  [[nodiscard]] constexpr windowed_shuffle_stage operator()(any_seed seed, window w) const noexcept {
    return {seed.value(), w.shards, 1};
  }
  [[nodiscard]] constexpr windowed_shuffle_stage operator()(any_seed seed, window w, lanes l) const noexcept {
    return {seed.value(), w.shards, l.count};
  }
};
/// As a stage it has the plan's seed.
struct shuffle_fn : shuffle_forms {
  using penstock_part = order_tag;
  using mistake_after_batch = mistakes::shuffle_after_batch;
  static constexpr std::string_view stage_name = "shuffle";
  static constexpr bool varies_by_epoch = true;

  [[nodiscard]] static constexpr shuffle_stage with_plan_seed(std::uint64_t seed) noexcept { return {seed}; }
  [[nodiscard]] static shuffle_order make(const order_input& in) { return {in, 0}; }

  using shuffle_forms::operator();
  /// A mistake, which gets a sentence.
  template <class... Given>
    requires(!std::invocable<const shuffle_forms&, Given...>)
  [[nodiscard]] constexpr shuffle_stage operator()(Given&&...) const noexcept {
    static_assert(never<light_tuple<Given...>>,
                  "penstock: shuffle is given a seed, and how many shards it mixes by name; write shuffle, "
                  "shuffle(seed(7)), "
                  "shuffle(seed(7), window(16)) or shuffle(seed(7), window(16), lanes(64))");
    return {};
  }
};
}  // namespace detail

/// Shuffles: every epoch has a different order, computed from (seed, epoch) and identical on every machine.
///
/// A sequencer; keeps every guarantee. Nothing is read and nothing is buffered.
///
/// `shuffle` permutes all positions of the epoch by the plan's seed, and `shuffle(seed(7))` by this one: 128
/// bytes per epoch, about 6 ns per position. Any sample may follow any other, so storage sees single random
/// reads.
///
/// `shuffle(seed(7), window(w))` permutes the shards, takes w of them at a time, and permutes the samples
/// within each such window, so reads stay within w shards at a time. O(shards) memory per epoch, O(log
/// shards) time per position (30 to 60 ns).
///
/// `shuffle(seed(7), window(w), lanes(C))` first cuts the permuted shards into C lanes of equal length.
/// Position p is in lane p mod C, and each rank takes its part of a global step sorted by lane, so a node
/// reads about shards / nodes of the data. The sequence depends on C but not on the number of ranks: choose C
/// as a multiple of the maximum number of nodes.
///
/// Throws `error(errc::argument)` for window(0), lanes(0), and for an endless order. Thread-safe.
/// After `batch` it does not compile: `shuffle_batches` shuffles batches.
///
///     auto loader = webdataset("train-{0000..0127}.tar") | decode<field<"cls", integer>> |
///                   shuffle(seed(7), window(16), lanes(64)) | shard(rank, world_size) | batch(256);
inline constexpr detail::shuffle_fn shuffle{};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/shuffle.ipp>
#endif
