// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/mds_encoding.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace penstock::inline v0_1 {

namespace detail {

struct mds_number_type {
  std::string_view name;
  unsigned code;
  std::size_t size;
};

inline constexpr std::array<mds_number_type, 11> mds_number_types{{{"uint8", 8, 1},
                                                                   {"int8", 9, 1},
                                                                   {"uint16", 16, 2},
                                                                   {"int16", 17, 2},
                                                                   {"float16", 18, 2},
                                                                   {"uint32", 32, 4},
                                                                   {"int32", 33, 4},
                                                                   {"float32", 34, 4},
                                                                   {"uint64", 64, 8},
                                                                   {"int64", 65, 8},
                                                                   {"float64", 66, 8}}};

[[noreturn]] inline void wrong_mds_type(std::string_view stored, std::string_view dtype) {
  throw error(errc::format,
              {"the array is of ", stored, ", but ", dtype, " was asked for: write the codec for ", stored});
}

[[noreturn]] inline void too_many_dimensions(std::string_view encoding) {
  throw error(errc::format,
              {"the encoding '", encoding, "' has more than ", extents::max_rank, " dimensions"});
}

PENSTOCK_INLINE mds_array_form mds_array_form_of(std::string_view encoding, std::string_view dtype) {
  constexpr std::string_view name = "ndarray";
  mds_array_form form;
  form.encoding = encoding;
  if (encoding == name || encoding == "bytes") return form;
  const auto refuse = [&] {
    throw error(errc::format, {"the column is of encoding '", encoding, "', which has no arrays"});
  };
  if (!encoding.starts_with(name) || encoding[name.size()] != ':') refuse();
  std::string_view rest = encoding.substr(name.size() + 1);
  const std::size_t colon = rest.find(':');
  const std::string_view named = rest.substr(0, colon);
  if (std::ranges::find(mds_number_types, named, &mds_number_type::name) == mds_number_types.end()) refuse();
  if (named != dtype) wrong_mds_type(named, dtype);
  form.typed = true;
  if (colon == std::string_view::npos) return form;
  form.shaped = true;
  rest.remove_prefix(colon + 1);
  for (const char *at = rest.data(), *const end = at + rest.size();;) {
    std::uint64_t length = 0;
    const auto [after, failure] = std::from_chars(at, end, length);
    if (failure != std::errc{} || length == 0 || (after != end && *after != ',')) refuse();
    if (!form.shape.push_back(length)) too_many_dimensions(encoding);
    if (after == end) break;
    at = after + 1;
  }
  return form;
}

PENSTOCK_INLINE mds_array_place find_mds_array(bytes_view bytes, const mds_array_form& form,
                                               std::string_view dtype, std::size_t item) {
  mds_array_place found;
  std::size_t at = 0;
  const auto number = [&](std::size_t size) {
    if (bytes.size() - at < size) throw error(errc::format, "the array ends within its header").at_offset(at);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
    at += size;
    return value;
  };
  if (!form.typed) {
    const std::uint64_t code = number(1);
    const auto type = std::ranges::find(mds_number_types, code, &mds_number_type::code);
    if (type == mds_number_types.end())
      throw error(errc::format, {"the array's type is ", code, ", which no type has"}).at_offset(0);
    if (type->name != dtype) wrong_mds_type(type->name, dtype);
  }
  if (form.shaped) {
    found.shape = form.shape;
  } else {
    const std::uint64_t head = number(1);
    const std::size_t rank = to_size(head >> 2), width = std::size_t{1} << (head & 3);
    if (rank == 0 || rank > extents::max_rank)
      throw error(errc::format,
                  {"the array has ", rank, " dimensions; arrays of 1 to ", extents::max_rank, " are read"})
          .at_offset(at - 1);
    for (std::size_t i = 0; i < rank; ++i) {
      found.shape.push_back(number(width));
      if (found.shape[i] == 0)
        throw error(errc::format, "the array has a dimension of length 0").at_offset(at - width);
    }
  }
  found.begin = at;
  std::uint64_t wanted = item;
  bool too_large = false;
  for (std::size_t i = 0; i < found.shape.rank(); ++i)
    too_large = __builtin_mul_overflow(wanted, found.shape[i], &wanted) || too_large;
  if (too_large || wanted != bytes.size() - at)
    throw error(errc::format, {"an array of shape ", to_string(found.shape), " of ", dtype,
                               " was announced, but its values have ", bytes.size() - at, " bytes"})
        .at_offset(at);
  return found;
}

PENSTOCK_INLINE std::uint32_t mds_value_size(std::string_view encoding) {
  constexpr std::array<std::string_view, 15> differing{
      "bytes",      "str",       "str_int",   "str_float",  "str_decimal", "pil",  "jpeg",   "png",
      "jpeg_array", "jpegarray", "list[pil]", "list[jpeg]", "list[png]",   "json", "ndarray"};
  if (encoding == "int") return 8;
  if (std::ranges::find(differing, encoding) != differing.end()) return 0;
  const auto number = [](std::string_view name) {
    return std::ranges::find(mds_number_types, name, &mds_number_type::name);
  };
  if (const auto type = number(encoding); type != mds_number_types.end())
    return static_cast<std::uint32_t>(type->size);
  if (encoding.starts_with("ndarray:")) {
    const std::string_view dtype = encoding.substr(8, encoding.find(':', 8) - 8);
    try {
      const mds_array_form form = mds_array_form_of(encoding, dtype);
      if (!form.shaped) return 0;
      std::uint32_t size = static_cast<std::uint32_t>(number(dtype)->size);
      bool too_large = false;
      for (const std::uint64_t length : form.shape)
        too_large = __builtin_mul_overflow(size, length, &size) || too_large;
      if (!too_large) return size;
    } catch (const error&) {
    }
  }
  throw error(errc::argument, {"'", encoding, "' is no encoding that is written: see mds_writer"});
}

PENSTOCK_INLINE std::vector<std::byte> mds_array_header(std::string_view encoding, std::string_view dtype,
                                                        const extents& shape, std::size_t values) {
  const auto refuse = [](std::initializer_list<piece> why) { throw error(errc::argument, why); };
  std::uint64_t elements = 1;
  bool too_large = false;
  for (const std::uint64_t length : shape)
    too_large = __builtin_mul_overflow(elements, length, &elements) || too_large;
  if (too_large || elements != values)
    refuse({"an array of shape ", to_string(shape), " was given ", values, " values"});
  if (values == 0 || shape.rank() == 0)
    refuse({"MosaicML's arrays have at least one dimension and one value"});
  mds_array_form form;
  try {
    form = mds_array_form_of(encoding, dtype);
  } catch (const error& e) {
    refuse({e.message()});
  }
  if (form.shaped && !(form.shape == shape))
    refuse({"an array of shape ", to_string(shape), " does not fit the encoding '", encoding, "'"});
  std::vector<std::byte> made;
  if (form.shaped) return made;
  const auto put = [&made](std::uint64_t number, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) made.push_back(static_cast<std::byte>(number >> (8 * i) & 255));
  };
  if (!form.typed) put(std::ranges::find(mds_number_types, dtype, &mds_number_type::name)->code, 1);
  const std::uint64_t longest = *std::max_element(shape.begin(), shape.end());
  const unsigned power = longest < 1u << 8 ? 0 : longest < 1u << 16 ? 1 : longest >> 32 == 0 ? 2 : 3;
  put(shape.rank() << 2 | power, 1);
  for (const std::uint64_t length : shape) put(length, std::size_t{1} << power);
  return made;
}

PENSTOCK_INLINE void check_mds_number(std::string_view encoding, std::string_view dtype) {
  if (encoding == dtype || encoding == "bytes" || (encoding == "int" && dtype == "int64")) return;
  const bool numbers =
      encoding == "int" ||
      std::ranges::find(mds_number_types, encoding, &mds_number_type::name) != mds_number_types.end();
  throw error(errc::format, {"the column is of encoding '", encoding, "', not ", dtype,
                             numbers ? ": nothing is converted silently" : ""});
}

PENSTOCK_INLINE void no_mds_number(std::size_t size, std::size_t wanted) {
  throw error(errc::format, {"a number of ", wanted, " bytes was asked for, and there are ", size});
}

PENSTOCK_INLINE bool check_mds_list(std::string_view encoding) {
  if (encoding == "jpeg_array" || encoding == "jpegarray") return false;
  if (encoding == "list[pil]" || encoding == "list[jpeg]" || encoding == "list[png]" || encoding == "bytes")
    return true;
  throw error(errc::format, {"the column is of encoding '", encoding, "', which has no lists"});
}

PENSTOCK_INLINE void find_mds_parts(bytes_view list, bool reserved, std::vector<bytes_view>& parts) {
  parts.clear();
  const auto number = [&](std::uint64_t at) -> std::uint64_t {
    return load_little<std::uint32_t>(list.data() + to_size(at));
  };
  const std::uint64_t head = reserved ? 8 : 4;
  if (list.size() < head) throw error(errc::format, "the list ends within its header").at_offset(0);
  const std::uint64_t count = number(head - 4);
  if (count > (list.size() - head) / 4)
    throw error(errc::format, {"the list announces ", count, " parts, but has ", list.size(), " bytes"})
        .at_offset(head - 4);
  std::uint64_t at = head + 4 * count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t size = number(head + 4 * i);
    if (size > list.size() - at)
      throw error(errc::format, {"part ", i, " of the list goes beyond its end"}).at_offset(head + 4 * i);
    parts.push_back(list.subspan(to_size(at), to_size(size)));
    at += size;
  }
  if (at != list.size())
    throw error(errc::format, {"the list has ", list.size() - at, " bytes behind its last part"})
        .at_offset(at);
}

PENSTOCK_INLINE mds_array_place find_pil_values(bytes_view bytes) {
  struct mode {
    std::string_view name;
    std::uint64_t channels;
  };
  constexpr std::array<mode, 8> modes{
      {{"L", 1}, {"LA", 2}, {"RGB", 3}, {"YCbCr", 3}, {"LAB", 3}, {"HSV", 3}, {"RGBA", 4}, {"CMYK", 4}}};
  const auto number = [&](std::size_t at) -> std::uint64_t {
    return load_little<std::uint32_t>(bytes.data() + at);
  };
  if (bytes.size() < 12 || number(8) > bytes.size() - 12)
    throw error(errc::format, "the image ends within its header").at_offset(0);
  const std::uint64_t width = number(0), height = number(4);
  const std::size_t named = to_size(number(8));
  const std::string_view name = text_of(bytes).substr(12, named);
  const auto found = std::ranges::find(modes, name, &mode::name);
  if (found == modes.end())
    throw error(errc::format, {"the image is of mode '", name.substr(0, 8),
                               "'; L, LA, RGB, RGBA, CMYK, YCbCr, LAB and HSV are read"})
        .at_offset(12);
  const mds_array_place place{extents(height, width, found->channels), 12 + named};
  // Both lengths are below 2^32, so their product does not wrap, and what is below `values` does not either.
  if (const std::uint64_t values = bytes.size() - place.begin;
      height * width == 0 || height * width > values || height * width * found->channels != values)
    throw error(errc::format,
                {"an image of ", width, " x ", height, " in mode ", name, " has ", values, " bytes"})
        .at_offset(place.begin);
  return place;
}

PENSTOCK_INLINE void check_pil_encoding(std::string_view encoding) {
  if (encoding != "pil" && encoding != "bytes")
    throw error(errc::format, {"the column is of encoding '", encoding, "', not 'pil'"});
}

}  // namespace detail

}  // namespace penstock::inline v0_1
