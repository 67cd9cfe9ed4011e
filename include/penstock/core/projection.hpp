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

/// The fields of a sample that are used: all of them, or some by name.
///
/// A source is given one when it is connected (see source/concepts.hpp), and may leave alone the fields that
/// are not used. Saying that more is used than is used costs time and is never wrong.
/// A copy is a few words; the names are not copied, and those of types live as long as the program.
///
///     constexpr auto used = projection::of<"jpg", "cls">();
///     static_assert(used.uses("cls") && !used.uses("json"));
class projection {
 public:
  /// Everything is used, or it is not known what.
  constexpr projection() noexcept = default;
  /// These fields alone. The names must live as long as the projection and its copies.
  constexpr explicit projection(std::span<const std::string_view> names) noexcept
      : names_(names), everything_(false) {}
  /// These fields alone: `projection::of<"jpg", "cls">()`.
  template <fixed_string... Names>
  [[nodiscard]] static constexpr projection of() noexcept {
    return projection(std::span<const std::string_view>(detail::listed_names<name_of<Names>...>));
  }
  /// No field is used: samples are only counted, or told apart by their keys.
  [[nodiscard]] static constexpr projection none() noexcept { return projection::of<>(); }

  [[nodiscard]] constexpr bool everything() const noexcept { return everything_; }
  [[nodiscard]] constexpr bool nothing() const noexcept { return !everything_ && names_.empty(); }
  [[nodiscard]] constexpr bool uses(std::string_view name) const noexcept {
    for (const std::string_view one : names_)
      if (one == name) return true;
    return everything_;
  }
  /// The fields that are used, where not all are.
  [[nodiscard]] constexpr std::span<const std::string_view> names() const noexcept { return names_; }

 private:
  std::span<const std::string_view> names_;
  bool everything_ = true;
};

/// A value stage that uses some fields of its element and hands on nothing else of it: `template <class
/// Element> static constexpr projection uses()`. Any other value stage is taken to use everything.
template <class T, class Element>
concept projecting_stage = value_stage<T> && requires {
  { T::template uses<Element>() } -> std::same_as<projection>;
};

}  // namespace penstock::inline v0_1
