// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/dataset_format.hpp>

#include <variant>

/// What formats of numbers have in common: a source for each type.
namespace penstock::inline v0_1::detail {

/// The types of numbers of a format: those it was given, or `Default`.
template <class Default, class... Ts>
struct number_types {
  using type = pack<Ts...>;
};
template <class Default>
struct number_types<Default> {
  using type = Default;
};

template <class List, template <class, class> class Source, class Storage>
struct sources_of_types;
template <class... Ts, template <class, class> class Source, class Storage>
struct sources_of_types<pack<Ts...>, Source, Storage> {
  using type = std::variant<Source<Ts, Storage>...>;
};

using common_numbers = pack<std::uint8_t, std::int16_t, std::int32_t, std::int64_t, float, double>;

}  // namespace penstock::inline v0_1::detail
