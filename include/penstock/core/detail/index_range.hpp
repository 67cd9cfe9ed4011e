// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <compare>
#include <iterator>
#include <type_traits>
#include <utility>

/// Iteration over anything with `view[i]`.
namespace penstock::inline v0_1::detail {

/// An iterator over `view[i]`. Holds the view itself, so it may outlive a temporary view.
template <class View>
class index_iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;  // `*it` is not a reference
  using reference = decltype(std::declval<const View&>()[std::size_t{0}]);
  using value_type = std::remove_cvref_t<reference>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  static constexpr bool shows_safely = noexcept(std::declval<const View&>()[std::size_t{0}]);

  constexpr index_iterator() = default;
  constexpr index_iterator(const View& view, std::size_t at) noexcept
      : view_(view), at_(static_cast<difference_type>(at)) {}

  [[nodiscard]] constexpr reference operator*() const noexcept(shows_safely) { return (*this)[0]; }
  [[nodiscard]] constexpr reference operator[](difference_type n) const noexcept(shows_safely) {
    return view_[static_cast<std::size_t>(at_ + n)];
  }
  constexpr index_iterator& operator+=(difference_type n) noexcept {
    at_ += n;
    return *this;
  }
  constexpr index_iterator& operator-=(difference_type n) noexcept { return *this += -n; }
  constexpr index_iterator& operator++() noexcept { return *this += 1; }
  constexpr index_iterator& operator--() noexcept { return *this -= 1; }
  constexpr index_iterator operator++(int) noexcept {
    auto before = *this;
    ++at_;
    return before;
  }
  constexpr index_iterator operator--(int) noexcept {
    auto before = *this;
    --at_;
    return before;
  }
  [[nodiscard]] friend constexpr index_iterator operator+(index_iterator it, difference_type n) noexcept {
    return it += n;
  }
  [[nodiscard]] friend constexpr index_iterator operator+(difference_type n, index_iterator it) noexcept {
    return it += n;
  }
  [[nodiscard]] friend constexpr index_iterator operator-(index_iterator it, difference_type n) noexcept {
    return it -= n;
  }
  [[nodiscard]] friend constexpr difference_type operator-(const index_iterator& a,
                                                           const index_iterator& b) noexcept {
    return a.at_ - b.at_;
  }
  [[nodiscard]] friend constexpr bool operator==(const index_iterator& a, const index_iterator& b) noexcept {
    return a.at_ == b.at_;
  }
  [[nodiscard]] friend constexpr auto operator<=>(const index_iterator& a, const index_iterator& b) noexcept {
    return a.at_ <=> b.at_;
  }

 private:
  View view_{};
  difference_type at_ = 0;
};

/// The elements `view[i]` as a sized range.
template <class View>
class index_range {
 public:
  constexpr index_range() = default;
  constexpr explicit index_range(const View& view) noexcept : view_(view) {}

  [[nodiscard]] constexpr auto begin() const noexcept { return view_.begin(); }
  [[nodiscard]] constexpr auto end() const noexcept { return view_.end(); }
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(end() - begin());
  }
  [[nodiscard]] constexpr auto operator[](std::size_t i) const noexcept { return view_[i]; }

 private:
  View view_{};
};

}  // namespace penstock::inline v0_1::detail

template <class T>
constexpr bool std::ranges::enable_borrowed_range<penstock::detail::index_range<T>> = true;
template <class T>
constexpr bool std::ranges::enable_view<penstock::detail::index_range<T>> = true;
