// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/tensor.hpp>

#include <string>

// Source: litdata, constants.py and streaming/serializers.py.
namespace penstock::inline v0_1::detail {

struct litdata_form {
  enum class header { numpy, tensor, none };

  std::string format;  ///< as the index says it
  header has = header::tensor;
};

/// The type of a headerless format, "no_header_tensor:16"; empty if it has none.
[[nodiscard]] std::string_view litdata_dtype(std::string_view format) noexcept;

/// Throws `errc::format` for a format that has no arrays, or arrays of another type than `dtype`.
[[nodiscard]] litdata_form litdata_form_of(std::string_view format, std::string_view dtype);

struct litdata_place {
  std::size_t begin = 0;
  extents shape;
};

/// Throws `errc::format`, with the offset, for values of another type than `dtype` and bytes that do not have
/// the announced shape.
[[nodiscard]] litdata_place find_litdata_array(bytes_view bytes, const litdata_form& form,
                                               std::string_view dtype, std::size_t item);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/layouts/litdata_leaf.ipp>
#endif
