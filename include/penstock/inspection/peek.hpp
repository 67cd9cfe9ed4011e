// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/flat_json.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/feed/front.hpp>
#include <penstock/source/concepts.hpp>

#include <algorithm>
#include <charconv>
#include <tuple>

namespace penstock::inline v0_1 {

namespace detail {

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
[[nodiscard]] inline std::string number_text(float value) {
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

template <class T>
[[nodiscard]] std::string number_text(T value) {
  if constexpr (std::same_as<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::integral<T>)
    return std::to_string(value);
  else
    return number_text(static_cast<float>(value));
}

/// The bytes of the character in front; 0 if it is no UTF-8, a control character, or one that changes how
/// others are shown.
[[nodiscard]] inline std::size_t printable_character(std::string_view left) {
  const auto c = static_cast<unsigned char>(left.front());
  const std::size_t length = utf8_length(left);
  std::uint32_t point = length <= 1 ? c : c & (0xffu >> (length + 1));
  for (std::size_t k = 1; k < length; ++k) point = point << 6 | (static_cast<unsigned char>(left[k]) & 0x3fu);
  const bool hidden = point < 0x20 || (point >= 0x7f && point < 0xa0) ||
                      (point >= 0xe000 && point <= 0xf8ff) || (point >= 0x200b && point <= 0x200f) ||
                      (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
                      point == 0xfeff;
  return hidden ? 0 : length;
}

/// Text in quotes, with everything escaped that is no printable UTF-8; at most about 64 bytes of it.
[[nodiscard]] inline std::string quoted_text(std::string_view all) {
  constexpr std::size_t longest = 64;
  constexpr char digits[] = "0123456789abcdef";
  std::string made = "\"";
  while (!all.empty() && made.size() < longest) {
    const auto c = static_cast<unsigned char>(all.front());
    std::size_t length = printable_character(all);
    if (length != 0) {
      if (c == '"' || c == '\\') made += '\\';
      made.append(all.substr(0, length));
    } else {
      length = 1;
      if (c == '\n' || c == '\t')
        made += c == '\n' ? "\\n" : "\\t";
      else
        made.append("\\x").append(1, digits[c >> 4]).append(1, digits[c & 15]);
    }
    all.remove_prefix(length);
  }
  return made + (all.empty() ? "\"" : "\" ...");
}

/// "12 bytes", what they look like ("a JPEG image"), and the first of them: as text if they are text,
/// otherwise in hexadecimal.
[[nodiscard]] inline std::string bytes_text(bytes_view bytes) {
  constexpr std::size_t looked_at = 64, shown = 16;
  std::string_view head =
      bytes.empty() ? std::string_view() : text_of(bytes.first(std::min(looked_at, bytes.size())));
  std::string made = text({bytes.size(), bytes.size() == 1 ? " byte" : " bytes"});
  if (bytes.empty()) return made;
  if (const std::string_view kind = known_format(bytes); !kind.empty()) {
    made.append(", ").append(kind);
  } else {
    const std::string_view all = text_of(bytes);
    bool printable = true;
    while (printable && !head.empty()) {
      const std::size_t length =
          printable_character(all.substr(static_cast<std::size_t>(head.data() - all.data())));
      printable = length != 0 || head.front() == '\n' || head.front() == '\t' || head.front() == '\r';
      head.remove_prefix(std::min(std::max<std::size_t>(length, 1), head.size()));
    }
    if (printable) return made + ": " + quoted_text(all);
  }
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < std::min(shown, bytes.size()); ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    made.append(i == 0 ? ": " : " ").append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return made + (bytes.size() > shown ? " ..." : "");
}

/// The value of a cell without its type. Lists in lists are followed to this many levels.
[[nodiscard]] inline std::string arrow_value_text(const arrow_cell& cell, unsigned levels) {
  if (cell.is_null()) return "null";
  if (is_real(cell.type().number)) {
    const double value = real_arrow_number(cell, sizeof(double));
    return cell.type().number == arrow_number::float64 ? number_text(value)
                                                       : number_text(static_cast<float>(value));
  }
  const auto whole = with_whole_number(
      cell.type().number, [&]<class T>(T) { return number_text(cell.number<T>()); },
      [] { return std::string(); });
  if (!whole.empty()) return whole;
  switch (cell.type().layout) {
    case arrow_layout::bits:
      return number_text(cell.bit());
    case arrow_layout::bytes32:
    case arrow_layout::bytes64:
    case arrow_layout::views:
    case arrow_layout::fixed: {
      const bool characters =
          cell.type().format == "u" || cell.type().format == "U" || cell.type().format == "vu";
      return characters ? quoted_text(cell.bytes().empty() ? std::string_view() : text_of(cell.bytes()))
                        : bytes_text(cell.bytes());
    }
    case arrow_layout::list32:
    case arrow_layout::list64:
    case arrow_layout::fixed_list: {
      const arrow_slice values = cell.list();
      if (levels == 0) return text({"[", values.count, " values]"});
      std::string made = "[";
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(values.count, shown_values); ++i)
        made.append(i == 0 ? "" : ", ")
            .append(arrow_value_text(arrow_cell(*values.column, values.first + i), levels - 1));
      return values.count > shown_values ? text({made, ", ...] of ", values.count, " values"}) : made + "]";
    }
    default:
      return "a value";
  }
}

/// A value of a column of Arrow, with its type.
[[nodiscard]] inline std::string arrow_text(const arrow_cell& cell) {
  return arrow_value_text(cell, 3) + " (" + cell.type().text() + ")";
}

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
std::string list_text(const auto& values) {
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

template <class V>
std::string sample_text(const V& sample) {
  using type = std::remove_cvref_t<V>;
  std::string text;
  if constexpr (any_record<type>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      ((text +=
        "  " + std::string(type::template field_at<Is>::name) + ": " + value_text(get<Is>(sample)) + "\n"),
       ...);
    }(std::make_index_sequence<type::size>{});
  } else if constexpr (open_sample<type>) {
    for (std::size_t i = 0; i < sample.size(); ++i)
      text += "  " + std::string(sample.name(i)) + ": " + value_text(sample.member(i)) + "\n";
  } else {
    text = "  " + value_text(sample) + "\n";
  }
  return text;
}

}  // namespace detail

/// Shows one sample as it is before `batch`: its key, and of each field the type, the shape and the first
/// values. Bytes are shown as text if they are text, and otherwise with what they look like ("a JPEG image").
///
/// Evaluates the chain for position (0, index) in the calling thread; for a forward-only source, reads the
/// first sample. Meant for people: the text may change between versions. Throws what the chain throws.
///
///     std::cout << peek(webdataset("train-{0000..0127}.tar") | fields<"txt", "cls">);
template <class Source, class... Stages>
[[nodiscard]] std::string peek(const plan<Source, Stages...>& p, std::uint64_t index = 0) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  const std::uint64_t seed = *options_of(p).seed;
  std::string text;
  const auto sink = [&text](const auto& sample) { text += detail::sample_text(sample); };
  if constexpr (parts::forward) {
    auto front = make_front(p);
    front.rewind(0);
    typename Source::element item;
    if (!front.next(item)) return "the source is empty\n";
    auto chain = make_chain(p, item_node<typename Source::element>{}, seed);
    typename decltype(chain)::worker worker;
    detail::innermost(worker).items = &item;
    chain.evaluate({}, worker, sink, untimed{});
    return detail::text({"sample 0\n", (text.empty() ? "  dropped by a filter\n" : text)});
  } else {
    const auto orders = make_sample_orders(p);
    if (index >= orders.size())
      return detail::text(
          {"position 0:", index, " is beyond the end: there are ", orders.size(), " samples\n"});
    const auto reader = connect_source_of(p);
    const sample_position at{{0, index}, orders.sample_at({0, index})};
    auto chain = make_chain(p, source_node<std::remove_cvref_t<decltype(reader)>>{&reader}, seed);
    typename decltype(chain)::worker worker;
    try {
      chain.evaluate(at, worker, sink, untimed{});
    } catch (error& e) {
      e.add_context(at.at);
      throw;
    }
    return detail::text({"sample at position 0:", index, ", key ", key_of(reader, at.source), "\n",
                         (text.empty() ? "  dropped by a filter\n" : text)});
  }
}
/// Shows a sample of a source alone.
template <source Source>
[[nodiscard]] std::string peek(const Source& source, std::uint64_t index = 0) {
  return peek(plan<Source>(source), index);
}

}  // namespace penstock::inline v0_1
