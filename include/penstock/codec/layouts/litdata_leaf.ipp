// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/litdata_leaf.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <array>
#include <charconv>
#include <optional>

namespace penstock::inline v0_1::detail {

struct litdata_type {
  std::string_view name;
  std::size_t width = 0;  // 0: no such number
};

// By number, as _TORCH_DTYPES_MAPPING and _NUMPY_DTYPES_MAPPING have them; a bool is a byte.
inline litdata_type litdata_type_of(std::uint64_t number, bool torch) noexcept {
  constexpr std::array<litdata_type, 21> torch_types{
      {{"float32", 4},   {"float32", 4},     {"float64", 8},     {"float64", 8}, {"complex64", 8},
       {"complex64", 8}, {"complex128", 16}, {"complex128", 16}, {"float16", 2}, {"float16", 2},
       {"bfloat16", 2},  {"uint8", 1},       {"int8", 1},        {"int16", 2},   {"int16", 2},
       {"int32", 4},     {"int32", 4},       {"int64", 8},       {"int64", 8},   {"uint8", 1},
       {"uint16", 2}}};
  constexpr std::array<litdata_type, 14> numpy_types{{{"int8", 1},
                                                      {"int16", 2},
                                                      {"int32", 4},
                                                      {"int64", 8},
                                                      {"uint8", 1},
                                                      {"uint16", 2},
                                                      {"uint32", 4},
                                                      {"uint64", 8},
                                                      {"float16", 2},
                                                      {"float32", 4},
                                                      {"float64", 8},
                                                      {"complex64", 8},
                                                      {"complex128", 16},
                                                      {"uint8", 1}}};
  if (torch) return number < torch_types.size() ? torch_types[to_size(number)] : litdata_type{};
  return number < numpy_types.size() ? numpy_types[to_size(number)] : litdata_type{};
}

PENSTOCK_INLINE std::string_view litdata_dtype(std::string_view format) noexcept {
  const std::string_view kind = format.substr(0, format.find(':'));
  std::uint64_t number = 99;
  if (kind.size() < format.size())
    (void)std::from_chars(format.data() + kind.size() + 1, format.data() + format.size(), number);
  return litdata_type_of(number, kind == "no_header_tensor").name;
}

inline void check_litdata_dtype(std::string_view stored, std::string_view dtype) {
  if (stored == dtype) return;
  if (stored.empty())
    throw error(errc::format, "the array's type has a number that no type of LitData's has");
  throw error(errc::format,
              {"the array is of ", stored, ", but ", dtype, " was asked for: write the codec for ", stored});
}

PENSTOCK_INLINE litdata_form litdata_form_of(std::string_view format, std::string_view dtype) {
  litdata_form form;
  form.format = format;
  const std::string_view kind = format.substr(0, format.find(':'));
  if (format == "numpy") {
    form.has = litdata_form::header::numpy;
  } else if (kind == "no_header_numpy" || kind == "no_header_tensor") {
    form.has = litdata_form::header::none;
    check_litdata_dtype(litdata_dtype(format), dtype);
  } else if (format != "tensor" && format != "bytes") {
    throw error(errc::format, {"the leaf is of format '", format, "', which has no arrays"});
  }
  return form;
}

// A header of numbers in one byte order, if it fits the bytes; gives the type that it has.
inline std::optional<litdata_place> try_litdata_header(bytes_view bytes, bool big, bool torch,
                                                       litdata_type& type) {
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * (big ? 3 - i : i));
    return value;
  };
  if (bytes.size() < 8) return std::nullopt;
  const litdata_type found_type = litdata_type_of(number(0), torch);
  const std::uint64_t rank = number(4);
  constexpr std::uint64_t maximum = 64;  // of NumPy and PyTorch
  if (found_type.width == 0 || rank > maximum || bytes.size() - 8 < 4 * rank) return std::nullopt;
  litdata_place found;
  found.begin = 8 + 4 * to_size(rank);
  std::uint64_t wanted = found_type.width;
  bool empty = false;
  for (std::uint64_t i = 0; i < rank; ++i) {
    const std::uint64_t length = number(8 + 4 * to_size(i));
    empty = empty || length == 0;
    if (i < extents::max_rank) (void)found.shape.push_back(length);
    if (length != 0 && __builtin_mul_overflow(wanted, length, &wanted)) return std::nullopt;
  }
  if ((empty ? 0 : wanted) != bytes.size() - found.begin) return std::nullopt;
  if (rank > extents::max_rank)
    throw error(errc::format,
                {"the array has ", rank, " dimensions; arrays of up to ", extents::max_rank, " are read"})
        .at_offset(4);
  if (empty)
    throw error(errc::format, "the array has a dimension of length 0, which is not read").at_offset(8);
  if (rank == 0) (void)found.shape.push_back(1);
  type = found_type;
  return found;
}

PENSTOCK_INLINE litdata_place find_litdata_array(bytes_view bytes, const litdata_form& form,
                                                 std::string_view dtype, std::size_t item) {
  if (form.has == litdata_form::header::none) {
    if (bytes.empty())
      throw error(errc::format, "the array has a length of 0, which is not read").at_offset(0);
    if (bytes.size() % item != 0)
      throw error(errc::format, {"the array has ", bytes.size(), " bytes, which are no values of ", dtype})
          .at_offset(0);
    return {0, extents(bytes.size() / item)};
  }
  // The headers of tensors were little-endian up to version 0.2.56, and are big-endian since.
  const bool torch = form.has == litdata_form::header::tensor;
  litdata_type type;
  auto found = torch ? try_litdata_header(bytes, true, true, type) : std::nullopt;
  if (!found) found = try_litdata_header(bytes, false, torch, type);
  if (!found)
    throw error(errc::format,
                {"the ", bytes.size(), " bytes are no array: their header does not match their size"})
        .at_offset(0);
  check_litdata_dtype(type.name, dtype);
  return *found;
}

}  // namespace penstock::inline v0_1::detail
