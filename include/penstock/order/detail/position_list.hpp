// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/arithmetic.hpp>
#include <penstock/order/detail/places.hpp>

#include <algorithm>

/// Ascending lists of positions, and the order defined by such a list.
namespace penstock::inline v0_1::detail {

/// Stores numbers in 4 bytes each while all are below 2^32, otherwise in 8.
class packed_numbers {
 public:
  /// `largest` is the largest number that will be added.
  explicit packed_numbers(std::uint64_t largest)
      : wide_(largest > std::numeric_limits<std::uint32_t>::max()) {}

  void add(std::uint64_t number) {
    if (wide_)
      eight_.push_back(number);
    else
      four_.push_back(static_cast<std::uint32_t>(number));
  }
  void resize(std::uint64_t count) {
    if (wide_)
      eight_.resize(detail::to_size(count));
    else
      four_.resize(detail::to_size(count));
  }
  void set(std::uint64_t i, std::uint64_t number) {
    if (wide_)
      eight_[detail::to_size(i)] = number;
    else
      four_[detail::to_size(i)] = static_cast<std::uint32_t>(number);
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return wide_ ? eight_.size() : four_.size(); }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    return wide_ ? eight_[detail::to_size(i)] : four_[detail::to_size(i)];
  }
  /// How many of the ascending numbers in [first, last) are below x.
  [[nodiscard]] std::uint64_t below(std::uint64_t first, std::uint64_t last, std::uint64_t x) const noexcept {
    const std::uint64_t begin = first;
    while (first < last) {
      const std::uint64_t middle = first + (last - first) / 2;
      if ((*this)[middle] < x)
        first = middle + 1;
      else
        last = middle;
    }
    return first - begin;
  }

 private:
  bool wide_;
  std::vector<std::uint32_t> four_;
  std::vector<std::uint64_t> eight_;
};

/// An ascending list of positions, stored as runs if they are long, otherwise one by one.
class position_list {
 public:
  /// The positions below `size` that `keep` accepts; `until(i)` is the end of the range in which `keep`
  /// answers as it does for i.
  position_list(std::uint64_t size, const auto& keep, const auto& until) : upstream_(size), singles_(size) {
    for (std::uint64_t i = 0; i < size;) {
      const std::uint64_t end = std::clamp(until(i), i + 1, size);
      if (keep(i)) add(i, end);
      i = end;
    }
    choose_form();
  }

  [[nodiscard]] std::uint64_t upstream() const noexcept { return upstream_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return kept_; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    if (runs_.empty()) return singles_[i];
    const auto r = detail::to_size(last_not_above(before_.data(), before_.size(), i));
    return runs_[r] + (i - before_[r]);
  }
  /// How many positions below p are kept.
  [[nodiscard]] std::uint64_t kept_before(std::uint64_t p) const noexcept {
    if (runs_.empty()) return singles_.below(0, singles_.size(), p);
    if (p <= runs_[0]) return 0;
    const auto r = detail::to_size(last_not_above(runs_.data(), runs_.size(), p - 1));
    return before_[r] + std::min(p - runs_[r], length(r));
  }
  [[nodiscard]] bool has(std::uint64_t p) const noexcept { return kept_before(p + 1) != kept_before(p); }

  /// Changes whenever the list does.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;

 private:
  [[nodiscard]] std::uint64_t length(std::size_t r) const noexcept {
    return (r + 1 < before_.size() ? before_[r + 1] : kept_) - before_[r];
  }
  void add(std::uint64_t begin, std::uint64_t end);
  /// Stores the positions one by one if that takes less memory than runs.
  void choose_form();

  std::uint64_t upstream_, kept_ = 0;
  std::vector<std::uint64_t> runs_, before_;  // start of each run, and the number of kept positions before it
  packed_numbers singles_;
};

/// Checks that the values given to a stage belong to the samples that reach it.
void check_places(const order_input& in, std::uint64_t values, std::uint64_t dataset, std::string_view what,
                  std::string_view stage);

struct listed_bound {
  std::uint64_t epoch = 0;
  shared<const position_list> list;

  [[nodiscard]] position operator()(std::uint64_t index) const noexcept { return {epoch, (*list)[index]}; }
};

/// The order of `subset` and `split_by_key`, defined by a list of positions.
class listed_order : public kept_order<listed_bound> {
 public:
  /// `samples` are the samples of the source that are kept.
  listed_order(const order_input& in, shared<const position_list> samples);

  [[nodiscard]] std::optional<position> position_of(position upstream) const noexcept;
};

/// The end of the range in which values equal the one at i, if the values can tell.
[[nodiscard]] std::uint64_t same_until(const sample_values auto& values, std::uint64_t i) {
  if constexpr (requires { values.same_until(i); })
    return values.same_until(i);
  else
    return i + 1;
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/position_list.ipp>
#endif
