// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/number_text.hpp>

#include <limits>

namespace penstock::inline v0_1 {

/// A decimal integer in ASCII, as in `.cls` members: "7", "-12", " +3
/// ".
///
/// In: any byte element. Out: a `T`. The digits may have one sign and surrounding white space, nothing else.
/// Kind: pointwise, keeps all guarantees. Cost per sample: about 20 ns, no allocation. Thread-safe.
/// Throws `errc::format`, quoting the bytes, if they have no digits, contain other characters, or do not fit
/// a `T`.
///
///     no_scratch none;
///     const std::int64_t label = integer{}.decode(std::string_view("42\n"), none);
template <class T>
struct integer_as {
  static_assert(std::integral<T> && !std::same_as<T, bool>,
                "penstock: integer_as<T> needs a whole number type; for real numbers write floating_as<T>");

  static constexpr std::string_view codec_name = "integer";
  static constexpr std::string_view extensions[] = {"cls", "cls2", "index", "inx", "id"};

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, no_scratch&) const {
    const bytes_view bytes = as_bytes(in);
    return detail::number_in<T>(bytes, "decimal whole number", [&] {
      detail::number_out_of_range(bytes, {": it must be from ", std::numeric_limits<T>::min(), " to ",
                                          std::numeric_limits<T>::max()});
    });
  }
};

/// A decimal integer in ASCII, as `std::int64_t`: the usual class label.
using integer = integer_as<std::int64_t>;

}  // namespace penstock::inline v0_1
