// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/tensor.hpp>

#include <array>
#include <concepts>
#include <string>
#include <vector>

// Source: mosaicml-streaming, streaming/base/format/mds/encodings.py.
namespace penstock::inline v0_1 {

/// The name that MosaicML's encodings have for a type; empty for a type they do not have. For a half-float
/// type of your own: `template <> inline constexpr std::string_view penstock::mds_dtype<my_half> =
/// "float16";`
template <class T>
inline constexpr std::string_view mds_dtype = [] {
  using namespace std::string_view_literals;
  if constexpr (std::same_as<T, bool> || sizeof(T) > 8)
    return ""sv;
  else if constexpr (std::same_as<T, half>)
    return "float16"sv;
  else if constexpr (std::same_as<T, float>)
    return "float32"sv;
  else if constexpr (std::same_as<T, double>)
    return "float64"sv;
  else if constexpr (std::integral<T>)
    return (std::signed_integral<T>
                ? std::array{"int8"sv, "int16"sv, "int32"sv, "int64"sv}
                : std::array{"uint8"sv, "uint16"sv, "uint32"sv, "uint64"sv})[std::countr_zero(sizeof(T))];
  else
    return ""sv;
}();

namespace detail {

/// What an encoding says about its arrays; what it leaves open, each value says.
struct mds_array_form {
  std::string encoding;
  bool typed = false;   ///< whether the encoding names their type
  bool shaped = false;  ///< whether all have `shape`
  extents shape;
};

struct mds_array_place {
  extents shape;
  std::size_t begin = 0;
};

/// Reads `ndarray`, `ndarray:uint8` or `ndarray:uint8:2,3`. Throws `errc::format` for anything else, and for
/// another type than `dtype`.
[[nodiscard]] mds_array_form mds_array_form_of(std::string_view encoding, std::string_view dtype);

/// Finds the array in bytes of this form, whose numbers have `item` bytes.
[[nodiscard]] mds_array_place find_mds_array(bytes_view bytes, const mds_array_form& form,
                                             std::string_view dtype, std::size_t item);

/// The bytes of each value of an encoding; 0 if they differ. Throws `errc::argument` for a name that is no
/// encoding, and for pickles.
[[nodiscard]] std::uint32_t mds_value_size(std::string_view encoding);

/// The header of an array in a column of this encoding. Throws `errc::argument` if it cannot hold the array.
[[nodiscard]] std::vector<std::byte> mds_array_header(std::string_view encoding, std::string_view dtype,
                                                      const extents& shape, std::size_t values);

/// Throws `errc::format` if a column of this encoding has no numbers of type `dtype`.
void check_mds_number(std::string_view encoding, std::string_view dtype);

[[noreturn, gnu::cold]] void no_mds_number(std::size_t size, std::size_t wanted);

/// Throws `errc::format` unless the encoding is one of the lists of `mds_list`, or `bytes`; returns whether
/// its lists begin with four reserved bytes.
[[nodiscard]] bool check_mds_list(std::string_view encoding);

void find_mds_parts(bytes_view list, bool reserved, std::vector<bytes_view>& parts);

/// Finds the values of an image that PIL wrote with `tobytes`: height, width and channels of one byte.
[[nodiscard]] mds_array_place find_pil_values(bytes_view bytes);

/// Throws `errc::format` unless the encoding is `pil` or `bytes`.
void check_pil_encoding(std::string_view encoding);

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/layouts/mds_encoding.ipp>
#endif
