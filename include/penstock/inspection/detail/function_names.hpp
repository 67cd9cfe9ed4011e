// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <concepts>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

/// What the functions of a stage are called.
namespace penstock::inline v0_1::detail {

/// How the compiler spells a function's signature that has the type in it.
template <class T>
[[nodiscard]] constexpr std::string_view signature_with() {
  return std::source_location::current().function_name();
}
/// The name of a class, without its namespaces, template arguments and "_operation"; empty for a lambda,
/// which has none. `signature`: what `signature_with` says of it.
[[nodiscard]] inline std::string short_type_name(std::string_view signature) {
  // GCC: "... [with T = a::b<c>; ...]"; Clang: "... [T = a::b<c>]"
  const std::size_t begin = signature.find("T = ");
  if (begin == signature.npos || signature.find("lambda") != signature.npos) return {};
  std::string_view name = signature.substr(begin + 4);
  name = name.substr(0, name.find_first_of("<;]"));
  if (const std::size_t space = name.rfind("::"); space != name.npos) name.remove_prefix(space + 2);
  if (constexpr std::string_view end = "_operation"; name.ends_with(end)) name.remove_suffix(end.size());
  return std::string(name);
}

/// What a function says of itself, as in "resize(224)"; otherwise the name of its class; empty if it has
/// none.
template <class F>
[[nodiscard]] std::string function_name(const F& f) {
  if constexpr (requires {
                  { f.describe() } -> std::convertible_to<std::string>;
                })
    return f.describe();
  else if constexpr (std::is_class_v<F>)
    return short_type_name(signature_with<F>());
  else
    return {};
}

/// Calls use(f) for each function of a stage, or of a chain of them.
template <class Part, class Use>
void each_function(const Part& part, const Use& use) {
  if constexpr (requires { part.functions; })
    std::apply([&](const auto&... each) { (use(each), ...); }, part.functions);
  else if constexpr (requires { part.function; })
    each_function(part.function, use);
  else if constexpr (requires { part.each(use); })
    part.each(use);
  else
    use(part);
}

/// The functions of a stage: "resize(224), a function"; empty if none of them has a name.
template <class Stage>
[[nodiscard]] std::string functions_text(const Stage& stage) {
  std::string made;
  if constexpr (
      requires { stage.function; } || requires { stage.functions; }) {
    bool named = false;
    each_function(stage, [&](const auto& f) {
      const std::string name = function_name(f);
      named = named || !name.empty();
      made.append(made.empty() ? "" : ", ").append(name.empty() ? "a function" : name);
    });
    if (!named) made.clear();
  }
  return made;
}

}  // namespace penstock::inline v0_1::detail
