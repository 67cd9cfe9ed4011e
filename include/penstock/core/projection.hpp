// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/name.hpp>
#include <penstock/core/part.hpp>

#include <array>
#include <concepts>
#include <span>
#include <string_view>

/// What a plan tells its source before anything is opened: which fields of a sample it uses.
namespace penstock::inline v0_1 {

namespace detail {
template <class... Names>
inline constexpr std::array<std::string_view, sizeof...(Names)> listed_names{Names::value...};
}  // namespace detail

/// The fields of a sample that are used: all of them, or only those named.
///
/// A source receives one when it is connected (see source/concepts.hpp) and may skip the fields that are not
/// used. Claiming more fields than are used costs time but is never wrong. A copy is a few words; it does
/// not copy the names, and the names of `of<...>()` live as long as the program.
///
///     constexpr auto used = projection::of<"jpg", "cls">();
///     static_assert(used.uses("cls") && !used.uses("json"));
class projection {
 public:
  /// Everything is used, or it is unknown what is.
  constexpr projection() noexcept = default;
  /// Only these fields. The names must outlive the projection and its copies.
  constexpr explicit projection(std::span<const std::string_view> names) noexcept
      : names_(names), everything_(false) {}
  /// Only these fields: `projection::of<"jpg", "cls">()`.
  template <fixed_string... Names>
  [[nodiscard]] static constexpr projection of() noexcept {
    return of_these(detail::listed_names<name_of<Names>...>);
  }
  /// Only these fields, listed in an array that lives as long as the program.
  template <std::size_t N>
  [[nodiscard]] static constexpr projection of_these(const std::array<std::string_view, N>& names) noexcept {
    return projection({names.data(), N});  // faster to compile than a span made of an array
  }
  /// No field is used: samples are only counted, or distinguished by their keys.
  [[nodiscard]] static constexpr projection none() noexcept {
    projection made;
    made.everything_ = false;
    return made;
  }

  [[nodiscard]] constexpr bool everything() const noexcept { return everything_; }
  [[nodiscard]] constexpr bool nothing() const noexcept { return !everything_ && names_.empty(); }
  [[nodiscard]] constexpr bool uses(std::string_view name) const noexcept {
    for (const std::string_view one : names_)
      if (one == name) return true;
    return everything_;
  }
  /// The fields that are used, unless all are.
  [[nodiscard]] constexpr std::span<const std::string_view> names() const noexcept { return names_; }

 private:
  std::span<const std::string_view> names_;
  bool everything_ = true;
};

/// A value stage that uses some fields of its element and passes nothing else of it on: `template <class
/// Element> static constexpr projection uses()`. Any other value stage is assumed to use everything.
template <class T, class Element>
concept projecting_stage = value_stage<T> && requires {
  { T::template uses<Element>() } -> std::same_as<projection>;
};

}  // namespace penstock::inline v0_1
