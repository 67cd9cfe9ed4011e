// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/order/detail/position_list.hpp>
#include <penstock/order/permutation.hpp>

#include <unordered_map>

namespace penstock::inline v0_1 {

namespace detail {

/// Positions grouped by class: the classes in the order of their values, the positions of each class
/// ascending.
class classes {
 public:
  struct place {
    std::uint64_t group, member;
  };

  template <sample_values Values>
  classes(const Values& values_of, const order_input& in) : members_(in.size) {
    using value_type = typename Values::value_type;
    const source_places& places = *in.places;
    std::unordered_map<value_type, std::uint32_t> numbers;
    std::vector<value_type> values;
    // by position: its class, by first appearance
    std::vector<std::uint32_t> met(detail::to_size(in.size));
    for (std::uint64_t i = 0; i < in.size; ++i) {
      const value_type value = values_of[places(i)];
      const auto [found, fresh] = numbers.try_emplace(value, static_cast<std::uint32_t>(values.size()));
      if (fresh) values.push_back(value);
      met[detail::to_size(i)] = found->second;
    }
    std::vector<std::uint32_t> order(values.size()), rank(values.size());
    for (std::uint32_t v = 0; v < order.size(); ++v) order[v] = v;
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
    for (std::uint32_t r = 0; r < order.size(); ++r) rank[order[r]] = r;

    starts_.assign(rank.size() + 1, 0);
    for (const std::uint32_t v : met) ++starts_[rank[v] + 1];
    for (std::size_t g = 1; g < starts_.size(); ++g) starts_[g] += starts_[g - 1];
    members_.resize(met.size());
    std::vector<std::uint64_t> next(starts_.begin(), starts_.end() - 1);
    for (std::size_t i = 0; i < met.size(); ++i) members_.set(next[rank[met[i]]]++, i);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return starts_.size() - 1; }
  [[nodiscard]] std::uint64_t size(std::uint64_t group) const noexcept {
    const auto g = detail::to_size(group);
    return starts_[g + 1] - starts_[g];
  }
  [[nodiscard]] std::uint64_t member(std::uint64_t group, std::uint64_t i) const noexcept {
    return members_[starts_[detail::to_size(group)] + i];
  }
  [[nodiscard]] std::uint64_t largest() const noexcept {
    std::uint64_t maximum = 0;
    for (std::uint64_t g = 0; g < count(); ++g) maximum = std::max(maximum, size(g));
    return maximum;
  }
  [[nodiscard]] std::uint64_t smallest() const noexcept {
    std::uint64_t least = count() == 0 ? 0 : size(0);
    for (std::uint64_t g = 1; g < count(); ++g) least = std::min(least, size(g));
    return least;
  }
  /// The class of a position; takes logarithmic time per class.
  [[nodiscard]] std::optional<place> find(std::uint64_t at) const noexcept {
    for (std::uint64_t g = 0; g < count(); ++g) {
      const std::uint64_t first = starts_[detail::to_size(g)];
      const std::uint64_t last = starts_[detail::to_size(g) + 1];
      const std::uint64_t i = members_.below(first, last, at);
      if (first + i < last && members_[first + i] == at) return place{g, i};
    }
    return std::nullopt;
  }

 private:
  std::vector<std::uint64_t> starts_;
  packed_numbers members_;
};

}  // namespace detail

/// How many samples of each class `class_balanced` gives in an epoch.
enum class per_class {
  /// as many as the largest class has; smaller classes are repeated, each pass in a new order
  largest,
  smallest  ///< as many as the smallest class has; the next epoch continues the larger classes
};

/// The order of `class_balanced(values, seed(7))`.
class class_balanced_order {
 public:
  static constexpr bool repeats = true;

  struct bound {
    std::uint64_t epoch = 0, seed = 0, each = 1;
    permutation mixed;
    detail::divider by_each;
    shared<const detail::classes> groups;

    [[nodiscard]] position operator()(std::uint64_t index) const noexcept {
      const auto [group, draw] = by_each(mixed(index));
      const std::uint64_t all = groups->size(group), number = epoch * each + draw;
      const permutation pass(all, pass_key(seed, group, number / all));
      return {epoch, groups->member(group, pass(number % all))};
    }
  };

  class_balanced_order(shared<const detail::classes> groups, std::uint64_t seed, per_class how)
      : groups_(std::move(groups)),
        seed_(seed),
        each_(how == per_class::largest ? groups_->largest() : groups_->smallest()) {
    if (each_ != 0 && groups_->count() > maximum / each_) {
      throw error(errc::limit, {"an epoch of ", groups_->count(), " classes with ", each_,
                                " samples each is longer than 2^62 positions; write per_class::smallest"})
          .in_stage("class_balanced");
    }
    size_ = groups_->count() * each_;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] order_input output() const { return {size_, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const {
    if (each_ != 0 && epoch > ~std::uint64_t{0} / each_ - 1) {
      throw error(errc::argument, {"epoch ", epoch, " of ", each_, " samples per class is beyond 64 bits"})
          .in_stage("class_balanced");
    }
    return {epoch, seed_, each_, mixed(epoch), detail::divider(std::max<std::uint64_t>(1, each_)), groups_};
  }
  /// A sample's first position in the epoch; empty if the epoch does not contain it.
  [[nodiscard]] std::optional<position> position_of(position upstream) const {
    const auto found = groups_->find(upstream.index);
    if (!found) return std::nullopt;
    const permutation order_of_all = mixed(upstream.epoch);
    const std::uint64_t all = groups_->size(found->group), first = upstream.epoch * each_;
    std::optional<position> lowest;
    for (std::uint64_t pass = first / all; pass * all < first + each_; ++pass) {
      const permutation order(all, pass_key(seed_, found->group, pass));
      const std::uint64_t number = pass * all + order.inverse(found->member);
      if (number < first || number - first >= each_) continue;
      const std::uint64_t index = order_of_all.inverse(found->group * each_ + (number - first));
      if (!lowest || index < lowest->index) lowest = position{upstream.epoch, index};
    }
    return lowest;
  }

 private:
  static constexpr std::uint64_t maximum = std::uint64_t{1} << 62;

  [[nodiscard]] static std::uint64_t pass_key(std::uint64_t seed, std::uint64_t group,
                                              std::uint64_t pass) noexcept {
    return mix64(mix64(seed ^ 0x636c617373u) ^ mix64(mix64(group) + pass));
  }
  [[nodiscard]] permutation mixed(std::uint64_t epoch) const {
    return {size_, mix64(mix64(seed_ ^ 0x6d6978u) + epoch)};
  }

  shared<const detail::classes> groups_;
  std::uint64_t seed_, each_, size_ = 0;
};

/// The stage `class_balanced(values, seed(7))`.
template <sample_values Values>
struct class_balanced_stage {
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "class_balanced";
  static constexpr bool varies_by_epoch = true;
  static constexpr bool wants_places = true;
  static_assert(!std::is_floating_point_v<typename Values::value_type>,
                "penstock: class_balanced needs whole numbers or texts; derive an index of those");

  [[nodiscard]] class_balanced_order make(const order_input& in) const {
    detail::check_places(in, values.size(), values.dataset(), values.describe(), stage_name);
    return {shared<const detail::classes>(new const detail::classes(values, in)), seed, how};
  }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return seed; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"class_balanced(", values.describe(), ", seed ", seed,
                         how == per_class::largest ? ")" : ", smallest)"});
  }
  void fingerprint(auto& h) const { h.add(stage_name, seed, how, values.fingerprint()); }

  Values values;
  std::uint64_t seed = 0;
  per_class how = per_class::largest;
};

namespace detail {
struct class_balanced_fn {
  template <sample_values Values>
  [[nodiscard]] class_balanced_stage<Values> operator()(const Values& values, any_seed seed,
                                                        per_class how = per_class::largest) const {
    return {values, seed.value(), how};
  }
};
}  // namespace detail

/// Shuffles so that every class appears equally often: `class_balanced(labels, seed(7))`, optionally with
/// `per_class::smallest`.
///
/// An epoch has as many positions of each class as the largest class has samples (with `per_class::smallest`,
/// the smallest), in a new order every epoch. Within a class, no sample repeats before all others have
/// appeared, even across epochs: if an epoch takes only part of a large class, the next epoch resumes where
/// it stopped.
/// In: values as for `subset`, whole numbers or texts; equal values form a class. Out: positions; the stages
/// after it see one shard, and reads are single and random. It replaces `shuffle` and may appear wherever
/// `subset` may, so `source | split_by_key(...) | class_balanced(...)` balances what the split keeps.
/// A sequencer; keeps every guarantee: positions are computed, so the number of ranks may change. Uses 4
/// bytes per sample (8 from 2^32 samples), built by sorting when the plan is opened. A position costs a
/// look-up and two permutations: docs/order.md. `position_of` returns a sample's first position and takes one
/// step for each pass through its class.
/// Throws `error(errc::argument)` as `subset` does. Thread-safe.
///
///     auto loader = source | class_balanced(label, seed(7)) | shard(rank, world_size) | batch(256);
inline constexpr detail::class_balanced_fn class_balanced{};

}  // namespace penstock::inline v0_1
