// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// A string literal as a template argument: the `"jpg"` of `get<"jpg">(s)`. It is converted to a `name`
/// immediately.
template <std::size_t N>
struct fixed_string {
  char text[N]{};

  consteval fixed_string(const char (&source)[N]) {  // NOLINT: implicit, so that a literal will do
    for (std::size_t i = 0; i < N; ++i) text[i] = source[i];
  }
  static constexpr std::size_t length = N - 1;
};

/// A field's name as a type. A pack of characters, because compilers print those readably.
template <char... Cs>
struct name {
  static constexpr char text[sizeof...(Cs) + 1] = {Cs..., '\0'};
  static constexpr std::string_view value{text, sizeof...(Cs)};
};

namespace detail {
template <fixed_string S, std::size_t... Is>
constexpr auto spell(std::index_sequence<Is...>) -> name<S.text[Is]...> {
  return {};
}
}  // namespace detail

/// The name type for a literal: `name_of<"jpg">` is `name<'j', 'p', 'g'>`.
template <fixed_string S>
using name_of = decltype(detail::spell<S>(std::make_index_sequence<S.length>{}));

}  // namespace penstock::inline v0_1
