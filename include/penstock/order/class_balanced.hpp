// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/order/detail/classes.hpp>
#include <penstock/order/permutation.hpp>

namespace penstock::inline v0_1 {

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
    return {detail::shared_classes(values, in), seed, how};
  }
  [[nodiscard]] constexpr std::uint64_t plan_seed() const noexcept { return seed; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"class_balanced(", values.describe(), ", seed ", seed,
                         how == per_class::largest ? ")" : ", smallest)"});
  }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add(stage_name, seed, how, values.fingerprint());
  }

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
