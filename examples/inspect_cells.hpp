// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The values of samples of any source, as text that is safe to print, and what their bytes look like.

#include "inspect_codecs.hpp"

#include <penstock/codec/litdata_array.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/concepts.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace inspection {

namespace ps = penstock;

/// A value of a sample.
struct cell {
  std::string name = {};
  std::string type = {};   ///< as the format calls it, or otherwise what it looks like: "int64", "jpeg"
  std::string kind = {};   ///< of bytes: what they look like
  std::string text = {};   ///< safe to print
  std::string image = {};  ///< the bytes of a file of an image; empty if the value is none
  bool null = false;
  bool null_inside = false;  ///< a list with a null in it
};

/// How many bytes the character in front has; 0 if a terminal might take it for a command or show it
/// misleadingly, or if it is no UTF-8.
inline std::size_t shown_character(std::string_view text) {
  const auto c = static_cast<unsigned char>(text.front());
  const std::size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  std::uint32_t point = length == 1 ? c : c & (0xffu >> (length + 1));
  for (std::size_t k = 1; k < length; ++k) {
    const auto next = static_cast<unsigned char>(text[k]);
    if ((next & 0xc0) != 0x80) return 0;
    point = point << 6 | (next & 0x3fu);
  }
  const bool surrogate = point >= 0xd800 && point <= 0xdfff,
             overlong = length == 3 ? point < 0x800 : length == 4 && point < 0x10000;
  const bool hidden = point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0xad ||
                      (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
                      (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || point >= 0xe0000 ||
                      (point >= 0xe000 && point <= 0xf8ff) || point == 0x61c;
  return hidden || surrogate || overlong ? 0 : length;
}

/// Text with everything escaped that a terminal might take for a command, or show misleadingly.
inline std::string safe_text(std::string_view text, std::size_t maximum = 64) {
  std::string shown = "\"";
  constexpr char digits[] = "0123456789abcdef";
  std::size_t i = 0;
  while (i < text.size() && shown.size() < maximum) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (const std::size_t length = shown_character(text.substr(i)); length != 0) {
      if (c == '"' || c == '\\') shown += '\\';
      shown.append(text.substr(i, length));
      i += length;
    } else {
      if (c == '\n')
        shown += "\\n";
      else if (c == '\t')
        shown += "\\t";
      else
        shown.append("\\x").append(1, digits[c >> 4]).append(1, digits[c & 15]);
      ++i;
    }
  }
  return shown + (i < text.size() ? "\" ..." : "\"");
}

/// A message for a terminal: without quotes, and with what names of files and members put into it escaped.
inline std::string safe_message(std::string_view text) {
  std::string shown;
  for (std::size_t begin = 0; begin <= text.size();) {  // quotes need no escape here
    const std::size_t end = std::min(text.find_first_of("\"\\", begin), text.size());
    const std::string part = safe_text(text.substr(begin, end - begin), text.size() * 4 + 2);
    shown.append(part, 1, part.size() - 2);
    if (end < text.size()) shown += text[end];
    begin = end + 1;
  }
  return shown;
}

inline std::string safe_bytes(ps::bytes_view bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string shown = std::to_string(bytes.size()) + " bytes";
  for (std::size_t i = 0; i < bytes.size() && i < 12; ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    shown.append(i == 0 ? ": " : " ").append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return shown + (bytes.size() > 12 ? " ..." : "");
}

template <class T>
constexpr std::string_view name_of_type() {
  if constexpr (std::same_as<T, bool>)
    return "bool";
  else if constexpr (std::same_as<T, float>)
    return "float";
  else if constexpr (std::same_as<T, double>)
    return "double";
  else if constexpr (std::same_as<T, ps::half>)
    return "ps::half";
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1   ? "std::int8_t"
           : sizeof(T) == 2 ? "std::int16_t"
           : sizeof(T) == 4 ? "std::int32_t"
                            : "std::int64_t";
  else
    return sizeof(T) == 1   ? "std::uint8_t"
           : sizeof(T) == 2 ? "std::uint16_t"
           : sizeof(T) == 4 ? "std::uint32_t"
                            : "std::uint64_t";
}

/// The C++ type of numpy's "<f4", or nothing.
inline std::string_view type_of_dtype(std::string_view dtype) {
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"b1", "bool"},          {"i1", "std::int8_t"},  {"i2", "std::int16_t"},  {"i4", "std::int32_t"},
      {"i8", "std::int64_t"},  {"u1", "std::uint8_t"}, {"u2", "std::uint16_t"}, {"u4", "std::uint32_t"},
      {"u8", "std::uint64_t"}, {"f4", "float"},        {"f8", "double"}};
  for (const auto& [name, type] : known)
    if (dtype.size() > 1 && dtype.substr(1) == name) return type;
  return {};
}

/// What bytes are, as far as they show it: one of `picture_kinds`, "npy float", "integer", "floating",
/// "json", "text", "bytes".
inline std::string kind_of_bytes(ps::bytes_view bytes) {
  const std::string_view text = ps::text_of(bytes);
  if (text.starts_with("\xff\xd8\xff")) return "jpeg";
  if (text.starts_with("\x89PNG\r\n\x1a\n")) return "png";
  if (text.starts_with("RIFF") && text.substr(8).starts_with("WEBP")) return "webp";
  if (text.starts_with("GIF87a") || text.starts_with("GIF89a")) return "gif";
  if (text.substr(0, 12).ends_with("ftypavif")) return "avif";
  if (text.starts_with(std::string_view("II*\0", 4)) || text.starts_with(std::string_view("MM\0*", 4)))
    return "tiff";
  if (text.starts_with("\x93NUMPY")) {
    const std::string_view head = text.substr(0, 200);
    const std::size_t at = head.find("'descr': '");
    const std::string_view type = at == head.npos ? "" : type_of_dtype(head.substr(at + 10, 3));
    return type.empty() ? "bytes" : "npy " + std::string(type);
  }
  std::string_view trimmed = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  std::int64_t whole = 0;
  double real = 0;
  const char* const end = trimmed.data() + trimmed.size();
  if (!trimmed.empty() && std::from_chars(trimmed.data(), end, whole).ptr == end) return "integer";
  if (!trimmed.empty() && trimmed.size() < 64 && std::from_chars(trimmed.data(), end, real).ptr == end)
    return "floating";
  if ((trimmed.starts_with('{') || trimmed.starts_with('[')) && nlohmann::json::accept(text)) return "json";
  const std::string shown = safe_text(text.substr(0, 4096), 5000);
  return shown.find("\\x") == shown.npos ? "text" : "bytes";
}

inline std::string text_of_kind(std::string_view kind, ps::bytes_view bytes) {
  const bool words = kind == "text" || kind == "json" || kind == "integer" || kind == "floating";
  return words ? safe_text(ps::text_of(bytes)) : safe_bytes(bytes);
}

/// A picture in numpy's format, from rows of gray or RGB.
inline std::string npy_picture(const std::uint8_t* values, std::uint64_t height, std::uint64_t width,
                               std::size_t channels) {
  std::vector<std::uint8_t> all;
  all.reserve(height * width * 3);
  for (std::size_t i = 0; i < height * width; ++i)
    for (std::size_t c = 0; c < 3; ++c) all.push_back(values[i * channels + (channels == 3 ? c : 0)]);
  const auto file = ps::npy_bytes<std::uint8_t>(ps::extents(height, width, 3), all);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

template <class T>
std::string number_text(T value) {
  char digits[40];
  if constexpr (std::same_as<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::same_as<T, ps::half>)
    return number_text(static_cast<float>(value));
  else
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// The first numbers of a list.
template <class Values>
std::string numbers_text(const Values& values, std::size_t count) {
  std::string text = "[";
  for (std::size_t i = 0; i < count && i < 8; ++i)
    text.append(i == 0 ? "" : ", ").append(number_text(values[i]));
  return text + (count > 8 ? ", ...]" : "]");
}

template <class Array>
void take_array(cell& into, const Array& array) {
  using T = typename Array::value_type;
  const auto view = ps::finish(array);
  const ps::extents& shape = array.shape();
  const std::size_t count = shape.elements();
  into.type = std::string(name_of_type<T>()) + " " + to_string(shape);
  into.text = shape.rank() == 0 ? number_text(*view.data()) : numbers_text(view.data(), count);
  if constexpr (std::same_as<T, std::uint8_t>) {
    const std::size_t channels = shape.rank() == 3 ? shape[2] : 1;
    if (shape.rank() >= 2 && shape.rank() <= 3 && (channels == 1 || channels == 3) && shape[0] >= 8 &&
        shape[1] >= 8)
      into.image = npy_picture(view.data(), shape[0], shape[1], channels);
  }
}

inline void take_bytes(cell& into, ps::bytes_view bytes) {
  into.type = into.kind = kind_of_bytes(bytes);
  into.text = text_of_kind(into.kind, bytes);
  if (is_picture(into.kind)) into.image = ps::text_of(bytes);
}

/// A number in the order of bytes of files.
template <class T>
std::string stored_number(ps::bytes_view bytes) {
  T value{};
  if (bytes.size() != sizeof value) return safe_bytes(bytes);
  std::memcpy(&value, bytes.data(), sizeof value);
  return number_text(value);
}

/// A value whose format says what it is: "int64", "str", "jpeg".
inline void take_typed(cell& into, const std::string& type, ps::bytes_view bytes) {
  take_bytes(into, bytes);
  into.type = type;
  using text_call = std::string (*)(ps::bytes_view);
  constexpr std::pair<std::string_view, text_call> numbers[] = {
      {"int", &stored_number<std::int64_t>},     {"int64", &stored_number<std::int64_t>},
      {"int32", &stored_number<std::int32_t>},   {"int16", &stored_number<std::int16_t>},
      {"int8", &stored_number<std::int8_t>},     {"uint64", &stored_number<std::uint64_t>},
      {"uint32", &stored_number<std::uint32_t>}, {"uint16", &stored_number<std::uint16_t>},
      {"uint8", &stored_number<std::uint8_t>},   {"float64", &stored_number<double>},
      {"float", &stored_number<double>},         {"float32", &stored_number<float>},
      {"float16", &stored_number<ps::half>},     {"bool", &stored_number<std::uint8_t>}};
  for (const auto& [name, call] : numbers)
    if (type == name) into.text = call(bytes);
  if (type.starts_with("str") || type == "json") into.text = safe_text(ps::text_of(bytes));
}

inline std::string arrow_number_text(const ps::arrow_cell& one) {
  switch (one.type().number) {
    case ps::arrow_number::int8:
      return number_text(one.number<std::int8_t>());
    case ps::arrow_number::int16:
      return number_text(one.number<std::int16_t>());
    case ps::arrow_number::int32:
      return number_text(one.number<std::int32_t>());
    case ps::arrow_number::int64:
      return number_text(one.number<std::int64_t>());
    case ps::arrow_number::uint8:
      return number_text(one.number<std::uint8_t>());
    case ps::arrow_number::uint16:
      return number_text(one.number<std::uint16_t>());
    case ps::arrow_number::uint32:
      return number_text(one.number<std::uint32_t>());
    case ps::arrow_number::uint64:
      return number_text(one.number<std::uint64_t>());
    case ps::arrow_number::float16:
      return number_text(one.number<ps::half>());
    case ps::arrow_number::float32:
      return number_text(one.number<float>());
    case ps::arrow_number::float64:
      return number_text(one.number<double>());
    case ps::arrow_number::none:
      break;
  }
  return {};
}

inline void take_arrow(cell& into, const ps::arrow_cell& one);

/// A list: its first values as text, and whether a null is among those that are looked at.
inline void take_arrow_list(cell& into, const ps::arrow_cell& list) {
  constexpr std::uint64_t shown = 8, looked_at = 10'000;
  const ps::arrow_slice values = list.list();
  into.text = "[";
  for (std::uint64_t i = 0; i < std::min(values.count, looked_at); ++i) {
    cell one;
    take_arrow(one, ps::arrow_cell(*values.column, values.first + i));
    into.null_inside = into.null_inside || one.null || one.null_inside;
    if (i < shown) into.text.append(i == 0 ? "" : ", ").append(one.text);
  }
  into.text += values.count > shown ? ", ...]" : "]";
}

inline void take_arrow(cell& into, const ps::arrow_cell& one) {
  const ps::arrow_type& type = one.type();
  into.type = type.text();
  into.null = one.is_null();
  if (into.null) {
    into.text = "null";
    return;
  }
  into.text = arrow_number_text(one);
  if (!into.text.empty()) return;
  switch (type.layout) {
    case ps::arrow_layout::bits:
      into.text = one.bit() ? "true" : "false";
      return;
    case ps::arrow_layout::bytes32:
    case ps::arrow_layout::bytes64:
    case ps::arrow_layout::views: {
      const std::string known = into.type;
      take_bytes(into, one.bytes());
      if (known.find("string") != known.npos) into.text = safe_text(ps::text_of(one.bytes()));
      into.type = known;
      return;
    }
    case ps::arrow_layout::fixed:
      into.text = safe_bytes(one.bytes());
      return;
    case ps::arrow_layout::list32:
    case ps::arrow_layout::list64:
    case ps::arrow_layout::fixed_list:
      take_arrow_list(into, one);
      return;
    default:
      into.text = into.type;
      return;
  }
}

template <class V>
void take_value(cell& into, const V& value) {
  using type = std::remove_cvref_t<V>;
  if constexpr (requires { value.cell(); })
    take_arrow(into, value.cell());
  else if constexpr (ps::blob<type>)
    take_bytes(into, value.finish());
  else if constexpr (ps::array_expression<type>)
    take_array(into, value);
  else if constexpr (std::is_arithmetic_v<type>) {
    into.type = name_of_type<type>();
    into.text = number_text(value);
  } else
    take_bytes(into, ps::bytes_of(std::string_view(value)));
}

/// An array of LitData's, whose type its leaf or its header says; false for leaves of other formats.
template <class Member>
bool take_litdata_array(cell& into, const std::string& format, const Member& member) {
  if (format != "tensor" && format != "numpy" && !format.starts_with("no_header_")) return false;
  const auto as = [&]<class T>() {
    typename ps::litdata_array<T>::scratch scratch;
    try {
      take_array(into, ps::litdata_array<T>{}.decode(member, scratch));
    } catch (const ps::error&) {  // of another type
      return false;
    }
    into.kind = "litdata_array<" + std::string(name_of_type<T>()) + ">";
    return true;
  };
  return as.template operator()<std::uint8_t>() || as.template operator()<std::int8_t>() ||
         as.template operator()<std::int16_t>() || as.template operator()<std::uint16_t>() ||
         as.template operator()<std::int32_t>() || as.template operator()<std::uint32_t>() ||
         as.template operator()<std::int64_t>() || as.template operator()<std::uint64_t>() ||
         as.template operator()<ps::half>() || as.template operator()<float>() ||
         as.template operator()<double>();
}

/// The cells of a sample. `types`: what the source says of its fields; empty if it says nothing.
template <class Sample>
std::vector<cell> cells_of(const Sample& sample, const std::vector<ps::source_field>& types) {
  using type = std::remove_cvref_t<Sample>;
  std::vector<cell> made;
  if constexpr (ps::any_record<type>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (take_value(made.emplace_back(cell{std::string(type::template field_at<Is>::name)}), get<Is>(sample)),
       ...);
    }(std::make_index_sequence<type::size>{});
  } else if constexpr (ps::open_sample<type>) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
      cell& one = made.emplace_back(cell{std::string(sample.name(i))});
      const auto member = sample.member(i);
      if constexpr (requires { member.cell(); }) {
        take_value(one, member);
      } else if (i < types.size() && !types.empty()) {
        if constexpr (ps::byte_element<decltype(member)>)
          if (take_litdata_array(one, types[i].type, member)) continue;
        const ps::bytes_view bytes = member.finish();
        take_typed(one, types[i].type, bytes);
        if constexpr (requires { member.place().raw_image; })
          if (types[i].type == "image" && member.place().raw_image)
            one.image = npy_picture(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                    member.place().height, member.place().width, 3);
      } else {
        take_value(one, member);
      }
    }
  } else {
    take_value(made.emplace_back(), sample);
  }
  return made;
}

}  // namespace inspection
