// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/number_text.hpp>

namespace penstock::inline v0_1 {

/// A floating-point number in ASCII, with a decimal point in every locale: "0.25", "-1e-3", "inf", "nan".
///
/// In: any byte element. Out: a `T`. The number may have one sign and surrounding white space, nothing else.
/// Kind: pointwise, keeps all guarantees. Cost per sample: about 20 ns, no allocation. Thread-safe.
/// Throws `errc::format`, quoting the bytes, if they are not a number, contain other characters, or do not
/// fit a `T`.
///
///     no_scratch none;
///     const double score = floating{}.decode(std::string_view("0.25\n"), none);
template <class T>
struct floating_as {
  static_assert(std::same_as<T, float> || std::same_as<T, double>,
                "penstock: floating_as<T> needs float or double; for whole numbers write integer_as<T>");

  static constexpr std::string_view codec_name = "floating";

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, no_scratch&) const {
    const bytes_view bytes = as_bytes(in);
    return detail::number_in<T>(bytes, "real number", [&] {
      detail::number_out_of_range(bytes, {" for a real number of ", sizeof(T) * 8, " bits"});
    });
  }
};

/// A floating-point number in ASCII, as `double`.
using floating = floating_as<double>;

}  // namespace penstock::inline v0_1
