// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/position_list.hpp>

#include <unordered_map>

namespace penstock::inline v0_1::detail {

/// Positions grouped by class: the classes in the order of their values, the positions of each class
/// ascending.
class classes {
 public:
  struct place {
    std::uint64_t group, member;
  };

  /// `of(i)` is the value at position i.
  template <class Value, class ValueAt>
  [[nodiscard]] static classes sorted(std::uint64_t size, const ValueAt& of) {
    classes made(size);
    std::unordered_map<Value, std::uint32_t> numbers;
    std::vector<Value> values;
    // by position: its class, by first appearance
    std::vector<std::uint32_t> met(detail::to_size(size));
    for (std::uint64_t i = 0; i < size; ++i) {
      const Value value = of(i);
      const auto [found, fresh] = numbers.try_emplace(value, static_cast<std::uint32_t>(values.size()));
      if (fresh) values.push_back(value);
      met[detail::to_size(i)] = found->second;
    }
    std::vector<std::uint32_t> order(values.size()), rank(values.size());
    for (std::uint32_t v = 0; v < order.size(); ++v) order[v] = v;
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
    for (std::uint32_t r = 0; r < order.size(); ++r) rank[order[r]] = r;
    made.fill(met, rank);
    return made;
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
  explicit classes(std::uint64_t size) : members_(size) {}

  /// `met` is the class number of each position; `rank` gives the place of each class number in the sorted
  /// classes.
  void fill(const std::vector<std::uint32_t>& met, const std::vector<std::uint32_t>& rank) {
    starts_.assign(rank.size() + 1, 0);
    for (const std::uint32_t v : met) ++starts_[rank[v] + 1];
    for (std::size_t g = 1; g < starts_.size(); ++g) starts_[g] += starts_[g - 1];
    members_.resize(met.size());
    std::vector<std::uint64_t> next(starts_.begin(), starts_.end() - 1);
    for (std::size_t i = 0; i < met.size(); ++i) members_.set(next[rank[met[i]]]++, i);
  }

  std::vector<std::uint64_t> starts_;
  packed_numbers members_;
};

template <sample_values Values>
[[nodiscard]] shared<const classes> shared_classes(const Values& values, const order_input& in) {
  const source_places& places = *in.places;
  return shared<const classes>(new const classes(classes::template sorted<typename Values::value_type>(
      in.size, [&](std::uint64_t i) { return values[places(i)]; })));
}

}  // namespace penstock::inline v0_1::detail
