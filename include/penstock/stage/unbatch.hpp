// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/tensor.hpp>

#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct not_expandable : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: unbatch needs a range, an array, or a record of these, and what arrives here is "
                  "none of them; this error names its type, in arrives_here<...>");
  }
};

}  // namespace mistakes

namespace detail {

template <class V>
concept rows = requires(const V& v, std::size_t i) {
  { v.size() } -> std::convertible_to<std::size_t>;
  v[i];
};

template <class V>
using finished_value = std::remove_cvref_t<finished<V>>;

std::size_t row_count(const auto& v) {
  if constexpr (requires { v.shape(); }) {
    if (v.shape().rank() == 0)
      throw error(errc::shape, "unbatch needs an array with at least one dimension, and got a scalar");
    return static_cast<std::size_t>(rows_of(v.shape()));
  } else {
    return v.size();
  }
}

template <class V>
struct row_of : std::type_identity<void> {};
template <rows V>
struct row_of<V> : std::type_identity<std::remove_cvref_t<decltype(std::declval<const V&>()[0])>> {};
template <class... Fields>
  requires(rows<finished_value<typename Fields::type>> && ...)
struct row_of<record<Fields...>>
    : std::type_identity<record<basic_field<
          typename Fields::name_type, typename row_of<finished_value<typename Fields::type>>::type>...>> {};

}  // namespace detail

/// Splits containers and arrays: a range yields its elements, an array its rows along the first dimension, a
/// record of equally long containers a record per row. Made by `unbatch`.
///
/// A flat map: loses `indexed` and `lockstep` (`steps(n)` restores it), after `shard` also `elastic`. A
/// record whose fields have different numbers of rows is `errc::shape`; an array of more than 2^16 empty
/// rows, which take no bytes, is `errc::limit`. Cost: a copy of each row into its slot.
///
///     auto numbers = from(std::vector<std::vector<int>>{{1, 2}, {3}}) | unbatch;      // 1, 2, 3
struct unbatch_stage {
  using penstock_part = flat_map_tag;
  static constexpr std::string_view stage_name = "unbatch";

  template <class In>
  using output = typename detail::row_of<detail::finished_value<In>>::type;

  template <class V, class Call, class Sink>
  void expand(V&& value, const Call&, Sink&& sink) const {
    decltype(auto) whole_value = penstock::finish(std::forward<V>(value));
    using type = std::remove_cvref_t<decltype(whole_value)>;
    if constexpr (any_record<type>) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        const std::size_t lengths[] = {detail::row_count(get<Is>(whole_value))...};
        for (const std::size_t n : lengths)
          if (n != lengths[0])
            throw error(errc::shape, "unbatch: the fields of one sample have different numbers of rows");
        for (std::size_t i = 0; i < lengths[0]; ++i) sink(output<type>(get<Is>(whole_value)[i]...));
      }(std::make_index_sequence<type::size>{});
    } else {
      const std::size_t count = detail::row_count(whole_value);
      for (std::size_t i = 0; i < count; ++i) sink(whole_value[i]);
    }
  }
  template <class Context>
  static consteval auto diagnose() {
    return mistakes::unless<!std::is_void_v<output<typename Context::element>>, mistakes::not_expandable>{};
  }
};

inline constexpr unbatch_stage unbatch{};

}  // namespace penstock::inline v0_1
