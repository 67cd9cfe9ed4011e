// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<fmt/format.h>)
#error "penstock/integration/fmt.hpp needs fmt: link penstock::fmt"
#endif

#include <penstock/core/error.hpp>
#include <penstock/core/guarantee.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/run/state.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock::inline v0_1 {

namespace detail {

// Each type as text; the library produces these texts without fmt, too.
inline std::string text_for_fmt(const extents& shape) { return to_string(shape); }
inline std::string text_for_fmt(const state& s) { return to_string(s); }
inline std::string_view text_for_fmt(errc code) { return to_string(code); }
inline std::string_view text_for_fmt(guarantee g) { return to_string(g); }
inline std::string_view text_for_fmt(bottleneck b) { return to_string(b); }
inline std::string_view text_for_fmt(const error& e) { return e.what(); }
inline std::string text_for_fmt(const position& p) { return text({p.epoch, ':', p.index}); }
inline std::string text_for_fmt(const run_counters& c) { return report(c); }
inline std::string text_for_fmt(const verdict& v) { return text({to_string(v.limit), ": ", v.advice}); }
template <class Source, class... Stages>
std::string text_for_fmt(const plan<Source, Stages...>& p) {
  return describe(p);
}

/// Formats a T as its text, with fmt's options for texts: fill, alignment, width, precision. Holds fmt's
/// formatter instead of deriving from it: as a text formatter it would put quotes around the values of a
/// range.
template <class T>
class fmt_text {
 public:
  template <class Context>
  constexpr auto parse(Context& context) {
    return words_.parse(context);
  }
  template <class Context>
  auto format(const T& value, Context& context) const {
    const auto words = text_for_fmt(value);
    return words_.format(fmt::string_view(words.data(), words.size()), context);
  }

 private:
  fmt::formatter<fmt::string_view> words_;
};

}  // namespace detail

}  // namespace penstock::inline v0_1

/// Formatters for fmt, so that `fmt::print("{}", value)` prints the library's own text.
///
///   plan           the output of `describe`: its stages, its guarantees, the moves; several lines
///   state          one line of JSON: the output of `to_string`, which `state_from_string` reads
///   extents        "(3, 224, 224)", as numpy prints a shape
///   error          its one line; `errc` and `guarantee` their names
///   position       "epoch:index", as errors print it
///   run_counters   what `report` gives, several lines; `verdict` "CPU-bound: advice"; `bottleneck` its name
///
/// All accept the options for texts: `{:>20}`, `{:.40}`. Cost: one string for each value formatted, except
/// for names and errors; nothing per sample. Throws what fmt and the allocation throw.
namespace fmt {

// A plan has begin and end, so without this it would have two formatters. A source has them too, and no
// formatter.
template <class Source>
  requires std::derived_from<Source, penstock::opens_as_plan<Source>>
struct is_range<Source, char> : std::false_type {};
template <class Source, class... Stages>
struct is_range<penstock::plan<Source, Stages...>, char> : std::false_type {};

template <class Source, class... Stages>
struct formatter<penstock::plan<Source, Stages...>, char>
    : penstock::detail::fmt_text<penstock::plan<Source, Stages...>> {};
template <>
struct formatter<penstock::extents, char> : penstock::detail::fmt_text<penstock::extents> {};
template <>
struct formatter<penstock::state, char> : penstock::detail::fmt_text<penstock::state> {};
template <>
struct formatter<penstock::error, char> : penstock::detail::fmt_text<penstock::error> {};
template <>
struct formatter<penstock::errc, char> : penstock::detail::fmt_text<penstock::errc> {};
template <>
struct formatter<penstock::guarantee, char> : penstock::detail::fmt_text<penstock::guarantee> {};
template <>
struct formatter<penstock::position, char> : penstock::detail::fmt_text<penstock::position> {};
template <>
struct formatter<penstock::run_counters, char> : penstock::detail::fmt_text<penstock::run_counters> {};
template <>
struct formatter<penstock::verdict, char> : penstock::detail::fmt_text<penstock::verdict> {};
template <>
struct formatter<penstock::bottleneck, char> : penstock::detail::fmt_text<penstock::bottleneck> {};

}  // namespace fmt
