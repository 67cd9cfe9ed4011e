// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/record.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// The blob type inside an optional blob; any other type is itself.
template <class V>
struct held_blob {
  using type = V;
};
template <class V>
  requires(unfinished<V> && requires { typename V::blob_type; })
struct held_blob<V> {
  using type = typename V::blob_type;
};

/// Whether a value of type `Part` may have been taken unchanged out of a `Whole`: as the whole, a field or a
/// member.
template <class Part, class Whole>
inline constexpr bool is_part_of = std::is_same_v<Part, Whole>;
template <class Part, class... Fields>
inline constexpr bool is_part_of<Part, record<Fields...>> =
    (is_part_of<Part, std::remove_cvref_t<typename Fields::type>> || ...);
template <class Part, open_sample Whole>
inline constexpr bool is_part_of<Part, Whole> =
    std::is_same_v<Part, Whole> || std::is_same_v<typename held_blob<Part>::type, typename Whole::blob_type>;

/// Whether a stage that turns a `Given` into a `Result` creates something unfinished, rather than just
/// passing it on.
template <class Given, class Result>
inline constexpr bool makes_unfinished = unfinished<Result> && !is_part_of<Result, Given>;
template <class Given, class... Fields>
inline constexpr bool makes_unfinished<Given, record<Fields...>> =
    (makes_unfinished<Given, std::remove_cvref_t<typename Fields::type>> || ...);

/// The time that a value takes to write itself to its destination, in timed calls. The outermost node
/// measures it; on the way back inwards, the first stage that created something unfinished in the value
/// claims the time. The source claims the time of values that it handed out unfinished; nobody claims the
/// copy of a finished value.
class landing_time {
 public:
  /// Passes a value to whatever comes next. A following stage announces itself with `passed`; if none does,
  /// this call is the landing.
  template <class Timing, class Sink, class V>
  void hand_on(Timing, Sink& sink, V&& value) {
    another_stage_ = false;
    const std::uint64_t begin = Timing::now();
    sink(std::forward<V>(value));
    if (!another_stage_) open_ += Timing::now() - begin;
  }
  /// The time that a stage claims if it made a `Result` from a `Given`.
  template <class Given, class Result>
  [[nodiscard]] std::uint64_t share_of_stage() noexcept {
    if constexpr (makes_unfinished<Given, Result> || !has_unfinished<Result>::value) {
      const std::uint64_t share = std::exchange(open_, 0);
      return makes_unfinished<Given, Result> ? share : 0;
    }
    return 0;
  }
  template <class Element>
  [[nodiscard]] std::uint64_t share_of_source() noexcept {
    const std::uint64_t share = std::exchange(open_, 0);
    return has_unfinished<Element>::value || open_sample<Element> ? share : 0;
  }
  /// Call at the end of a stage's turn, whether or not it passed anything on.
  void passed() noexcept { another_stage_ = true; }

 private:
  std::uint64_t open_ = 0;  // nanoseconds not yet claimed
  bool another_stage_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
