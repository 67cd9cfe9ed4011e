// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/core/random.hpp>

#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// The explicit address of a random stage: `map(f, key("crop"))` draws the same numbers wherever you put the
/// stage.
struct key {
  std::uint64_t hash = 0;
  constexpr key() = default;
  constexpr explicit key(std::string_view text) {
    hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash |= 1;
  }
};

/// What a stage gets in addition to the value: the sample's position, the worker's scratch for this stage,
/// and random numbers that belong to this sample and this stage only.
template <class Scratch>
struct call {
  position at;
  std::uint32_t piece = 0;   ///< which piece of the sample, after `unbatch`
  std::uint64_t seed = 0;    ///< the pipeline's seed
  std::uint64_t stream = 0;  ///< the stage's number among the random stages, or the hash of its key; in
                             ///< `map(f, g)` another one for each function that draws
  Scratch& scratch;

  /// Random numbers keyed by seed, position, piece and stage: identical for any number of threads or ranks
  /// and after a restore.
  [[nodiscard]] constexpr rng random() const noexcept {
    return {seed, at.epoch, at.index, piece == 0 ? stream : mix64(stream ^ mix64(piece))};
  }
};

namespace detail {

template <class T, class None>
struct scratch_or : std::type_identity<None> {};
template <class T, class None>
  requires requires { typename T::scratch; }
struct scratch_or<T, None> : std::type_identity<typename T::scratch> {};

/// An empty type for each `T`, so that several of them take no room in one object.
template <class T>
struct nothing_for {};

/// Reads or calls a member of a value, or of what it points or refers to, as `std::invoke` does. What is read
/// of a value that is about to go is moved out of it.
template <class M, class T, class V, class... More>
constexpr decltype(auto) call_member(M T::*member, V&& value, More&&... more) {
  using type = std::remove_cvref_t<V>;
  if constexpr (std::is_base_of_v<T, type>) {
    if constexpr (std::is_function_v<M>)
      return (std::forward<V>(value).*member)(std::forward<More>(more)...);
    else if constexpr (std::is_lvalue_reference_v<V>)
      return (value.*member);
    else
      return std::remove_cv_t<M>(std::forward<V>(value).*member);
  } else if constexpr (requires { *value; }) {
    return call_member(member, *std::forward<V>(value), std::forward<More>(more)...);
  } else {
    return call_member(member, value.get(), std::forward<More>(more)...);
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1
