// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/rows/safetensors_header.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/tensor.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A tensor, as described in the header of a safetensors file.
struct safetensors_entry {
  std::string dtype;        ///< as written in the file: "F32"
  extents shape;            ///< no dimensions: a single number
  std::uint64_t begin = 0;  ///< offset of its bytes from the beginning of the file
  std::uint64_t bytes = 0;
};

namespace detail {

/// The number of bits in an element; 0 for a type that the format does not have.
[[nodiscard]] inline std::uint64_t safetensors_bits(std::string_view dtype) noexcept {
  struct row {
    std::string_view name;
    std::uint64_t bits;
  };
  constexpr std::array<row, 22> known{
      {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
       {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
       {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
       {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};
  for (const row& one : known) {
    if (one.name == dtype) return one.bits;
  }
  return 0;
}

/// The header of a safetensors file: tensors by name, and the texts of `__metadata__`.
struct safetensors_header {
  std::map<std::string, safetensors_entry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
  std::uint64_t data = 0;  ///< where the bytes of the tensors begin

  static constexpr std::uint64_t max_bytes = 100'000'000;  // set by the format
};

/// Handles the events of nlohmann's parser. The parser does not recurse, and this reader bounds the nesting.
/// Throws errc::format for anything that the format does not allow.
class safetensors_reader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit safetensors_reader(safetensors_header& into) : into_(into) {}

  // some writers have no metadata to write
  bool null() { return (place_ == place::names && name_ == "__metadata__") || unexpected(); }
  bool boolean(bool) { return unexpected(); }
  bool number_integer(number_integer_t) { return unexpected(); }
  bool number_float(number_float_t, const string_t&) { return unexpected(); }
  bool binary(binary_t&) { return unexpected(); }
  bool number_unsigned(number_unsigned_t value) {
    if (place_ == place::shape) {
      if (!now_.shape.push_back(value)) fail("has more than eight dimensions");
    } else if (place_ == place::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? now_.begin : end_) = value;
    } else {
      return unexpected();
    }
    return true;
  }
  bool string(string_t& value) {
    if (place_ == place::metadata) {
      into_.metadata[key_] = std::move(value);
    } else if (place_ == place::tensor && key_ == "dtype") {
      now_.dtype = std::move(value);
    } else {
      return unexpected();
    }
    return true;
  }
  bool start_object(std::size_t) {
    if (place_ == place::outside) {
      place_ = place::names;
    } else if (place_ == place::names && name_ == "__metadata__") {
      place_ = place::metadata;
    } else if (place_ == place::names) {
      place_ = place::tensor;
      now_ = {};
      seen_ = 0;
      end_ = 0;
      offsets_ = 0;
    } else {
      return unexpected();
    }
    return true;
  }
  bool key(string_t& value) {
    if (place_ == place::names) {
      name_ = std::move(value);
      if (into_.tensors.contains(name_) || (name_ == "__metadata__" && std::exchange(has_metadata_, true)))
        fail("appears twice");
      return true;
    }
    key_ = std::move(value);
    if (place_ == place::metadata) {
      if (into_.metadata.contains(key_)) fail("has the key '" + key_ + "' twice");
      return true;
    }
    const unsigned bit = key_ == "dtype" ? 1 : key_ == "shape" ? 2 : key_ == "data_offsets" ? 4 : 0;
    if (bit == 0) fail("has a '" + key_ + "', which the format does not know");
    if ((seen_ & bit) != 0) fail("has the key '" + key_ + "' twice");
    seen_ |= bit;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ == place::tensor && key_ == "shape") {
      place_ = place::shape;
    } else if (place_ == place::tensor && key_ == "data_offsets") {
      place_ = place::offsets;
    } else {
      return unexpected();
    }
    return true;
  }
  bool end_array() {
    place_ = place::tensor;
    return true;
  }
  bool end_object() {
    if (place_ == place::tensor) finish();
    place_ = place_ == place::names ? place::outside : place::names;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) {
    throw error(errc::format, "the header of the safetensors file is not JSON")
        .at_offset(at == 0 ? 8 : at + 7);
  }

 private:
  enum class place { outside, names, metadata, tensor, shape, offsets };

  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::format, {"the tensor '", std::string_view(name_).substr(0, 80),
                               "' in the header of the safetensors file ", what})
        .at_offset(8);
  }
  bool unexpected() const {
    if (place_ == place::outside)
      throw error(errc::format, "the header of the safetensors file is not a JSON object").at_offset(8);
    if (place_ == place::metadata) fail("has a value that is not text");
    fail("is not described as {\"dtype\": text, \"shape\": [numbers], \"data_offsets\": [begin, end]}");
  }

  void finish() {
    if (seen_ != 7 || offsets_ != 2) unexpected();
    const std::uint64_t bits = safetensors_bits(now_.dtype);
    if (bits == 0) fail("is of dtype '" + now_.dtype.substr(0, 80) + "', which the format does not have");
    if (end_ < now_.begin) fail("ends before it begins");
    std::uint64_t size = bits;  // total size of the elements in bits
    for (const std::uint64_t length : now_.shape) {
      if (length != 0 && size > std::numeric_limits<std::uint64_t>::max() / length)
        fail("has more elements than can be counted");
      size *= length;
    }
    now_.bytes = end_ - now_.begin;
    if (size % 8 != 0 || size / 8 != now_.bytes)
      fail("has shape " + to_string(now_.shape) + " of " + now_.dtype + ", but " +
           std::to_string(now_.bytes) + " bytes, which does not match");
    into_.tensors.emplace(name_, std::move(now_));
  }

  safetensors_header& into_;
  place place_ = place::outside;
  std::string name_, key_;
  safetensors_entry now_;
  std::uint64_t end_ = 0;
  unsigned seen_ = 0;
  int offsets_ = 0;
  bool has_metadata_ = false;
};

/// The length of the header, from the first 8 bytes of a file of `size` bytes; more of them help to say what
/// another file is.
[[nodiscard]] inline std::uint64_t safetensors_header_bytes(bytes_view start, std::uint64_t size) {
  if (start.size() < 8)
    throw error(errc::format, {"the file ends within its first 8 bytes: it is not a safetensors file"})
        .at_offset(0);
  // the length of a header that could be is no beginning of another format
  const auto refuse = [&](errc code, std::initializer_list<piece> why) {
    if (!known_format(start).empty()) throw not_a("a safetensors file", start, {});
    throw error(code, why).at_offset(0);
  };
  const auto length = load_little<std::uint64_t>(start.data());
  if (length > safetensors_header::max_bytes)
    refuse(errc::limit, {"the safetensors header says it has ", length,
                         " bytes, and the format allows 100,000,000: is this a safetensors file?"});
  if (length > size - 8)
    refuse(errc::format, {"the safetensors header says it has ", length, " bytes, but ", size - 8,
                          " follow; copy the file again if it was cut"});
  return length;
}

/// Reads the header of a file of `size` bytes, without the 8 bytes before it. The tensors must fill the rest
/// of the file without gaps or overlaps.
[[nodiscard]] inline safetensors_header read_safetensors_header(bytes_view json, std::uint64_t size) {
  safetensors_header header;
  header.data = 8 + json.size();
  const std::string_view text = json.empty() ? std::string_view("") : text_of(json);
  if (!text.starts_with('{'))
    throw error(errc::format, "the safetensors header does not begin with '{': is this a safetensors file?")
        .at_offset(8);
  safetensors_reader reader(header);
  (void)nlohmann::json::sax_parse(text.begin(), text.end(), &reader);

  std::vector<std::pair<std::uint64_t, const std::string*>> order;
  for (const auto& [name, entry] : header.tensors) order.emplace_back(entry.begin, &name);
  // an empty tensor may begin at the same offset as another, and sorts before it
  const auto& tensors = header.tensors;
  std::sort(order.begin(), order.end(), [&tensors](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return tensors.find(*a.second)->second.bytes < tensors.find(*b.second)->second.bytes;
  });
  std::uint64_t end = 0;
  for (const auto& [begin, name] : order) {
    if (begin != end)
      throw error(errc::format, {"the tensor '", std::string_view(*name).substr(0, 80), "' begins at ", begin,
                                 " of the safetensors data, and ", "the tensor before it ends at ", end, ": ",
                                 begin < end ? "they overlap" : "there is a gap"})
          .at_offset(8);
    end += header.tensors.find(*name)->second.bytes;
  }
  if (end != size - header.data)
    throw error(errc::format, {"the safetensors header describes ", end, " bytes, but ", size - header.data,
                               " follow it; copy the file again if it was cut"})
        .at_offset(header.data);
  for (auto& [name, entry] : header.tensors) entry.begin += header.data;
  return header;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
