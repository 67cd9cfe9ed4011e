// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/compiled.hpp>

#include <array>
#include <initializer_list>
#include <string>
#include <type_traits>

namespace penstock::inline v0_1 {

/// Processors by their numbers, as the operating system counts them (`lscpu --extended`): 0 to 1023.
///
/// A number that is listed twice, one above 1023 and a negative one are `errc::argument`, and so is a list
/// made at run time that turns out to be empty. Only `{}` is the set without any.
class processor_set {
 public:
  static constexpr unsigned max_processors = 1024;

  constexpr processor_set() = default;
  processor_set(std::initializer_list<any_count> numbers) {
    for (const any_count number : numbers) add(number);
  }
  /// The numbers of a container of integers.
  template <class Numbers>
    requires(!std::is_same_v<Numbers, processor_set>) && requires(const Numbers& list) {
      any_count(*list.begin());
      list.begin() != list.end();
      requires !std::is_same_v<std::remove_cvref_t<decltype(*list.begin())>, char>;  // a text is no list
    }
  processor_set(const Numbers& list) {  // NOLINT(google-explicit-constructor): as a braced list does
    for (const auto& number : list) add(number);
    if (empty()) refuse_empty();
  }

  void add(any_count number);
  [[nodiscard]] constexpr bool contains(unsigned number) const noexcept {
    return number < max_processors && (words_[number / 64] >> number % 64 & 1) != 0;
  }
  [[nodiscard]] unsigned size() const noexcept;
  [[nodiscard]] constexpr bool empty() const noexcept {
    return words_ == std::array<std::uint64_t, max_processors / 64>{};
  }
  /// In order, with ranges: `2-5, 8`.
  [[nodiscard]] std::string describe() const;
  friend constexpr bool operator==(const processor_set&, const processor_set&) = default;

 private:
  [[noreturn]] static void refuse_empty();

  std::array<std::uint64_t, max_processors / 64> words_{};
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/processor_set.ipp>
#endif
