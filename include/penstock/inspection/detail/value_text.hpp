// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>

#include <tuple>

/// Values as text for people: numbers as numbers, with their type, their shape and the first few.
namespace penstock::inline v0_1::detail {

/// How many values of an array or a list are shown.
inline constexpr std::size_t shown_values = 8;

/// The name that numpy has for a type of numbers; empty for other types.
template <class T>
constexpr std::string_view dtype_name() {
  if constexpr (std::same_as<T, bool>)
    return "bool";
  else if constexpr (std::same_as<T, half>)
    return "float16";
  else if constexpr (std::same_as<T, bfloat16>)
    return "bfloat16";
  else if constexpr (std::same_as<T, float>)
    return "float32";
  else if constexpr (std::same_as<T, double>)
    return "float64";
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1 ? "int8" : sizeof(T) == 2 ? "int16" : sizeof(T) == 4 ? "int32" : "int64";
  else if constexpr (std::unsigned_integral<T>)
    return sizeof(T) == 1 ? "uint8" : sizeof(T) == 2 ? "uint16" : sizeof(T) == 4 ? "uint32" : "uint64";
  else
    return {};
}

/// The shortest text that reads as the same number.
[[nodiscard]] std::string number_text(float value);
[[nodiscard]] std::string number_text(double value);
template <class T>
[[nodiscard]] std::string number_text(T value) {
  if constexpr (std::same_as<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::integral<T>)
    return std::to_string(value);
  else
    return number_text(static_cast<float>(value));
}

/// Text in quotes, with everything escaped that is no printable UTF-8; at most about 64 bytes of it.
[[nodiscard]] std::string quoted_text(std::string_view text);
/// "12 bytes", what they look like ("a JPEG image"), and the first of them: as text if they are text,
/// otherwise in hexadecimal.
[[nodiscard]] std::string bytes_text(bytes_view bytes);
/// A value of a column of Arrow, with its type.
[[nodiscard]] std::string arrow_text(const arrow_cell& cell);

/// "float32 (3, 4): 0.5, 1, 2, ...". `value(i)` is the value with number `i` in row-major order.
template <class T, class Value>
std::string array_text(const extents& shape, const Value& value) {
  std::string made(dtype_name<T>());
  if (made.empty()) made = "values of " + std::to_string(sizeof(T)) + " bytes";
  made += " " + to_string(shape);
  const std::uint64_t count = shape.elements();
  if constexpr (!dtype_name<T>().empty()) {
    for (std::size_t i = 0; i < shown_values && i < count; ++i)
      made.append(i == 0 ? ": " : ", ").append(number_text(value(i)));
    if (count > shown_values) made += ", ...";
  }
  return made;
}

template <class V>
std::string value_text(const V& value);

/// "{a: 1, b: 2}"
template <any_record R>
std::string nested_text(const R& value) {
  std::string made;
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    ((made += (Is == 0 ? "" : ", ") + std::string(R::template field_at<Is>::name) + ": " +
              value_text(get<Is>(value))),
     ...);
  }(std::make_index_sequence<R::size>{});
  return "{" + made + "}";
}

/// "3 values: [1, 2, 3]", of any range.
template <class Range>
std::string list_text(const Range& values) {
  std::string made;
  std::size_t count = 0;
  for (const auto& one : values) {
    if (count < shown_values) made.append(count == 0 ? "" : ", ").append(value_text(one));
    ++count;
  }
  return text({count, count == 1 ? " value: [" : " values: [", made, count > shown_values ? ", ...]" : "]"});
}

template <class V>
std::string value_text(const V& value) {
  using type = std::remove_cvref_t<V>;
  if constexpr (requires {
                  { value.cell() } -> std::convertible_to<arrow_cell>;
                }) {
    return arrow_text(value.cell());
  } else if constexpr (blob<type>) {
    return bytes_text(value.finish());
  } else if constexpr (array_expression<type>) {
    const auto view = penstock::finish(value);
    const std::string all = array_text<typename type::value_type>(
        value.shape(), [data = view.values().data()](std::size_t i) { return data[i]; });
    return requires { typename type::is_lazy_image; } ? "image " + all : all;
  } else if constexpr (requires {
                         value.shape();
                         value.values();
                       }) {
    using element = std::remove_cvref_t<decltype(*value.values().data())>;
    return array_text<element>(value.shape(),
                               [data = value.values().data()](std::size_t i) { return data[i]; });
  } else if constexpr (requires {
                         value.shape();
                         value.strides();
                         value.data();
                       }) {
    const auto at = [&](std::size_t i) {
      std::int64_t offset = 0;
      for (std::size_t k = value.shape().rank(); k-- > 0; i /= value.shape()[k])
        offset += static_cast<std::int64_t>(i % value.shape()[k]) * value.strides()[k];
      return value.data()[offset];
    };
    return array_text<std::remove_cvref_t<decltype(*value.data())>>(value.shape(), at) + " (with strides)";
  } else if constexpr (!dtype_name<type>().empty()) {
    return number_text(value) + " (" + std::string(dtype_name<type>()) + ")";
  } else if constexpr (std::is_enum_v<type>) {
    return value_text(static_cast<std::underlying_type_t<type>>(value));
  } else if constexpr (std::convertible_to<const type&, std::string_view>) {
    const std::string_view characters = value;
    return text({characters.size(),
                 characters.size() == 1 ? " character: " : " characters: ", quoted_text(characters)});
  } else if constexpr (std::convertible_to<const type&, bytes_view>) {
    return bytes_text(value);
  } else if constexpr (any_record<type>) {
    return nested_text(value);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    return value.has_value() ? value_text(*value) : "null";
  } else if constexpr (requires {
                         { value.dump() } -> std::convertible_to<std::string>;
                       }) {
    return "JSON " + quoted_text(value.dump());
  } else if constexpr (requires {
                         value.data();
                         { value.size() } -> std::convertible_to<std::size_t>;
                         requires !dtype_name<std::remove_cvref_t<decltype(*value.data())>>().empty();
                       }) {
    return array_text<std::remove_cvref_t<decltype(*value.data())>>(
        extents(static_cast<std::size_t>(value.size())), [&](std::size_t i) { return value.data()[i]; });
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       }) {
    return list_text(value);
  } else if constexpr (requires { std::tuple_size<type>::value; }) {
    std::string made;
    std::apply([&](const auto&... each) { ((made += (made.empty() ? "" : ", ") + value_text(each)), ...); },
               value);
    return "(" + made + ")";
  } else {
    return text({"a value of ", sizeof(type), " bytes"});
  }
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/detail/value_text.ipp>
#endif
