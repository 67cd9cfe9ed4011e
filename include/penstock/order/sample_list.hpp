// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/concepts.hpp>
#include <penstock/order/detail/fraction.hpp>

namespace penstock::inline v0_1 {

/// Values in memory, one per sample of a dataset, in the order of the source: labels or weights that the
/// program already has. `T` is a number or `std::string`.
///
/// Only the number of values is checked: the list does not know its dataset, while a `derived_index` does.
/// Copies share the values; thread-safe. The constructor hashes the values for the fingerprint.
///
///     auto balanced = source | class_balanced(sample_list(labels), seed(7));
template <class T>
class sample_list {
  static_assert((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_same_v<T, std::string>,
                "penstock: the values of a sample_list are numbers or std::string");

 public:
  using value_type = std::conditional_t<std::is_same_v<T, std::string>, std::string_view, T>;

  explicit sample_list(std::vector<T> values) : values_(new const std::vector<T>(std::move(values))) {
    class fingerprint h;
    h.add("sample_list", values_->size());
    for (const T& value : *values_) {
      if constexpr (std::is_floating_point_v<T>)
        h.add(detail::bits_of(static_cast<double>(value)));
      else
        h.add(value);
    }
    fingerprint_ = h.value();
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return values_->size(); }
  [[nodiscard]] value_type operator[](std::uint64_t i) const noexcept {
    return (*values_)[detail::to_size(i)];
  }
  /// Always 0: the dataset is unknown.
  [[nodiscard]] std::uint64_t dataset() const noexcept { return 0; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  [[nodiscard]] std::string describe() const { return detail::text({"a list of ", size()}); }

 private:
  shared<const std::vector<T>> values_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace penstock::inline v0_1
