// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cached_form.hpp>
#include <penstock/core/position.hpp>

#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// Whether a node, or one below it, keeps samples.
template <class Node>
inline constexpr bool keeps_samples = [] {
  if constexpr (requires { requires bool(Node::keeps_samples); })
    return true;
  else if constexpr (requires(const Node& node) { node.up; })
    return keeps_samples<std::remove_cvref_t<decltype(std::declval<const Node&>().up)>>;
  else
    return false;
}();

/// Whether a sample of the source is kept by a chain, so that nothing of it is read again.
template <class Node>
[[nodiscard]] bool is_kept_in([[maybe_unused]] const Node& chain, [[maybe_unused]] position source) noexcept {
  if constexpr (requires { requires bool(Node::keeps_samples); })
    return chain.is_kept(source) || is_kept_in(chain.up, source);
  else if constexpr (keeps_samples<Node>)
    return is_kept_in(chain.up, source);
  else
    return false;
}

/// What a chain keeps, in all its stages.
template <class Node>
[[nodiscard]] kept_counters kept_in([[maybe_unused]] const Node& chain) noexcept {
  kept_counters all;
  if constexpr (requires { requires bool(Node::keeps_samples); }) all = chain.counters();
  if constexpr (requires { chain.up; }) all += kept_in(chain.up);
  return all;
}

}  // namespace penstock::inline v0_1
