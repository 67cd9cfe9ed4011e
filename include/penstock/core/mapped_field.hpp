// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/name.hpp>

namespace penstock::inline v0_1 {

/// What a `map` of several fields does with a field that has no other role: calls its functions with it.
struct changed_field {
  /// The function that is called in the place of `f`.
  template <class F>
  [[nodiscard]] static constexpr const F& function(const F& f) noexcept {
    return f;
  }
};

/// A field of a `map` of several fields, and its role there: a string literal, or `as_mask<"png">` and its
/// like. A role has `function(f)`, as `changed_field`, which returns `f`, or another function that the stage
/// makes once and keeps; or it has a `scratch`, follows the functions without calling them, and changes the
/// value at the end, as `as_boxes` does.
template <std::size_t N, class Role = changed_field>
struct mapped_field {
  using role = Role;
  char text[N]{};

  consteval mapped_field(const char (&source)[N]) {  // NOLINT: implicit, so that a literal will do
    for (std::size_t i = 0; i < N; ++i) text[i] = source[i];
  }
};

/// The type of a mapped field of this name: `named_field<Name, my_role> as_mine{Name.text}`.
template <fixed_string Name, class Role>
using named_field = mapped_field<sizeof(Name.text), Role>;

namespace detail {

template <class Name, class Role>
struct role_of_field {
  using name_type = Name;
  using role = Role;
};
template <mapped_field Field>
using as_role =
    role_of_field<name_of<fixed_string<sizeof(Field.text)>(Field.text)>, typename decltype(Field)::role>;

}  // namespace detail

}  // namespace penstock::inline v0_1
