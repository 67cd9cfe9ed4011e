// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

/// How bytes become values. A codec is a small value type: its options are its members, its per-worker memory
/// is its `scratch`.
namespace penstock::inline v0_1 {

/// The scratch of codecs and stages that need none.
struct no_scratch {};

namespace detail {
template <class T>
struct scratch_of {
  using type = no_scratch;
};
template <class T>
  requires requires { typename T::scratch; }
struct scratch_of<T> {
  using type = typename T::scratch;
};
}  // namespace detail

/// What one worker keeps for a codec or stage `T`: `T::scratch`, by default nothing.
template <class T>
using scratch_of = typename detail::scratch_of<std::remove_cvref_t<T>>::type;

/// A codec: `decode(bytes, scratch)` gives a value, a view into the scratch, or an unfinished expression. It
/// is const and is called from many threads, each with a scratch of its own. Bad bytes throw
/// `error(errc::format, ...)`.
///
/// Asked with finished bytes; a codec's decode is a template over `byte_element`, so that it can also take
/// blobs and read them to where it wants them.
template <class C>
concept codec = std::default_initializable<C> && std::copy_constructible<C> &&
                requires(const C& c, const bytes_view& in, scratch_of<C>& s) {
                  c.decode(in, s);
                  { C::codec_name } -> std::convertible_to<std::string_view>;
                };

/// What codec `C` makes of bytes of type `In`.
template <class C, class In>
using decoded = decltype(std::declval<const C&>().decode(std::declval<const std::remove_cvref_t<In>&>(),
                                                         std::declval<scratch_of<C>&>()));

}  // namespace penstock::inline v0_1
