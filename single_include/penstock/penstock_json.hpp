// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component json. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock_json.hpp needs nlohmann-json: link penstock::json"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// ---- penstock/codec/json.hpp

namespace penstock::inline v0_1 {

/// A JSON document of any shape: nlohmann's type.
using json_value = nlohmann::json;

namespace detail {

[[nodiscard]] inline error json_too_deep(std::uint64_t depth) {
  return {errc::limit, {"the JSON is nested more than ", depth, " deep; raise the limit with .depth = ..."}};
}
[[noreturn]] inline void json_malformed(std::string_view text, std::uint64_t offset) {
  offset = std::min<std::uint64_t>(offset, text.size());
  if (offset == text.size()) throw error(errc::format, "the JSON ends too early").at_offset(offset);
  throw error(errc::format, {"this is not JSON: it goes wrong at ",
                             quoted(bytes_of(text.substr(detail::to_size(offset))), 12)})
      .at_offset(offset);
}
/// The text of a payload, at most `limit` bytes long.
[[nodiscard]] inline std::string_view json_text(bytes_view bytes, std::uint64_t limit) {
  if (bytes.size() > limit)
    throw error(errc::limit, {"the JSON has ", bytes.size(), " bytes, and the limit is ", limit,
                              "; raise it with .limit = ..."});
  return bytes.empty() ? std::string_view("") : text_of(bytes);  // never a null pointer
}
/// Throws if the nesting is deeper than `depth`; works on any text, well-formed JSON or not.
inline void check_json_depth(std::string_view text, std::uint64_t depth) {
  std::uint64_t now = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++now > depth) throw json_too_deep(depth).at_offset(i);
    } else if ((c == ']' || c == '}') && now != 0) {
      --now;
    }
  }
}

template <class T>
concept json_number = std::floating_point<T> || (std::integral<T> && !std::same_as<T, bool>);

/// How a type is read from JSON: the numbers of its list, if it is one, and its name in messages.
template <class T>
struct json_form {
  static constexpr bool list = false;
  static constexpr std::string_view wanted = std::same_as<T, bool>    ? "true or false"
                                             : std::floating_point<T> ? "a number"
                                             : std::integral<T>       ? "a whole number"
                                                                      : "a text";
  static constexpr bool possible = json_number<T> || std::same_as<T, bool> || std::same_as<T, std::string> ||
                                   std::same_as<T, std::string_view>;
  using number = std::conditional_t<json_number<T>, T, int>;
};
template <class N>
struct json_list_form {
  static constexpr bool list = true;
  static constexpr std::string_view wanted =
      std::floating_point<N> ? "a list of numbers" : "a list of whole numbers";
  static constexpr bool possible = json_number<N>;
  using number = N;
};
template <class N, class A>
struct json_form<std::vector<N, A>> : json_list_form<N> {};
template <class N, std::size_t K>
struct json_form<std::array<N, K>> : json_list_form<N> {};
template <class N>
struct json_form<std::span<const N>> : json_list_form<N> {};

/// The per-worker memory of a field: the value that was found.
template <class Number>
struct json_field_scratch {
  std::string text;
  std::vector<Number> values;  // for a number or bool: one value; for a list: all of them
};

/// Receives nlohmann's parser events and keeps the value of one key of the outermost object.
template <class T>
class json_field_reader {
  using form = json_form<T>;
  using number = typename form::number;

 public:
  json_field_reader(std::string_view name, std::string_view text, std::uint64_t depth,
                    json_field_scratch<number>& found)
      : name_(name), text_(text), limit_(depth), found_(&found) {
    found.values.clear();
  }

  [[nodiscard]] bool seen() const noexcept { return seen_; }

  bool null() {
    return value("null", [] { return false; });
  }
  bool boolean(bool is) {
    return value("true or false", [&] {
      if constexpr (std::same_as<T, bool>) found_->values.push_back(is ? 1 : 0);
      return std::same_as<T, bool>;
    });
  }
  bool number_integer(std::int64_t n) { return any_number(n); }
  bool number_unsigned(std::uint64_t n) { return any_number(n); }
  bool number_float(double n, const std::string&) { return any_number(n); }
  bool string(std::string& text) {
    return value("a text", [&] {
      constexpr bool wanted = std::same_as<T, std::string> || std::same_as<T, std::string_view>;
      if constexpr (wanted) found_->text.assign(text);
      return wanted;
    });
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // does not occur in JSON
  bool start_object(std::size_t) {
    if (depth_ != 0) value("an object", [] { return false; });
    return deeper();
  }
  bool key(std::string& name) {
    next_ = depth_ == 1 && name == name_;
    if (next_ && std::exchange(seen_, true))
      throw error(errc::format, {"the JSON object has the key '", name_, "' twice"});
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) {
    value("a list", [&] { return form::list && !std::exchange(in_list_, true); });
    return deeper();
  }
  bool end_array() {
    if (--depth_ == 1) in_list_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& reason) {
    if (reason.id == 406)
      throw error(errc::format, "a number in the JSON is beyond the range of double")
          .at_offset(position == 0 ? 0 : position - 1);
    json_malformed(text_, position == 0 ? 0 : position - 1);
  }

 private:
  bool deeper() {
    if (++depth_ > limit_) throw json_too_deep(limit_);
    return true;
  }
  /// Called when a value begins. If it is the requested one, or in the requested list, `take` stores it and
  /// returns whether it could.
  template <class Take>
  bool value(std::string_view kind, Take&& take) {
    if (depth_ == 0) throw error(errc::format, "the JSON is not an object, so it has no keys");
    const bool element = in_list_ && depth_ == 2;
    if ((std::exchange(next_, false) || element) && !take()) other(kind);
    return true;
  }
  template <class N>
  bool any_number(N n) {
    return value(std::floating_point<N> ? "a real number" : "a whole number", [&] {
      if constexpr (!form::list && !json_number<T>) {
        return false;
      } else {
        if (form::list != in_list_) return false;
        if constexpr (std::floating_point<number>) {
          if constexpr (std::floating_point<N>)
            if (n > std::numeric_limits<number>::max() || n < std::numeric_limits<number>::lowest())
              out_of_range();
          found_->values.push_back(static_cast<number>(n));
        } else if constexpr (std::floating_point<N>) {
          return false;
        } else {
          if (!std::in_range<number>(n)) out_of_range();
          found_->values.push_back(static_cast<number>(n));
        }
        return true;
      }
    });
  }
  [[noreturn]] void out_of_range() const {
    throw error(errc::format, {"the number at the key '", name_, "' is out of the range of its type"});
  }
  [[noreturn]] void other(std::string_view kind) const {
    throw error(errc::format, {"the JSON has ", kind, in_list_ && depth_ == 2 ? " in the list" : "",
                               " at the key '", name_, "', but ", form::wanted, " was asked for"});
  }

  std::string_view name_;
  std::string_view text_;
  std::uint64_t limit_;
  json_field_scratch<number>* found_;
  std::uint64_t depth_ = 0;
  bool next_ = false;     // the next value is the requested one
  bool in_list_ = false;  // inside the requested list
  bool seen_ = false;
};

}  // namespace detail

/// JSON documents of any shape.
///
/// In: any byte element. Out: a `json_value`, which is nlohmann's type and owns its contents: extract what a
/// batch needs with `map`, or use `json_field` in the first place.
/// Kind: pointwise, keeps all guarantees. Cost per sample: nlohmann's, which allocates for each text, list
/// and object. Thread-safe.
/// Throws `errc::format` with the offset if the text is not JSON (RFC 8259, in UTF-8); `errc::limit` for more
/// than `limit` bytes, and for lists and objects nested deeper than `depth`. A value takes up to twenty times
/// the bytes of its text.
///
///     auto widths = lines("boxes.jsonl") | decode<json> |
///                   map([](const json_value& v) { return v["box"][2].get<float>(); });
struct json {
  /// The maximum length of the text in bytes.
  std::uint64_t limit = 64_MiB;
  /// The maximum nesting depth of lists and objects.
  std::uint64_t depth = 128;

  static constexpr std::string_view codec_name = "json";
  static constexpr std::string_view extensions[] = {"json", "jsn"};

  template <byte_element Bytes>
  [[nodiscard]] json_value decode(const Bytes& in, no_scratch&) const {
    const std::string_view text = detail::json_text(as_bytes(in), limit);
    detail::check_json_depth(text, depth);
    try {
      return json_value::parse(text.data(), text.data() + text.size());
    } catch (const json_value::parse_error& e) {
      detail::json_malformed(text, e.byte == 0 ? 0 : e.byte - 1);
    } catch (const json_value::out_of_range&) {
      throw error(errc::format, "a number in the JSON is beyond the range of double");
    }
  }
};

/// One value of a JSON object: `json_field<"label", std::int64_t>` of `{"label": 7, "text": "a dog"}`.
///
///     auto texts = lines("corpus.jsonl") | decode<json_field<"text", std::string_view>> | batch(32, ragged);
///
/// In: any byte element. Out: a `T`: an integer, a floating-point number or a `bool`; a `std::string`, or a
/// `std::string_view` on the worker's scratch; for a list of numbers a `std::array` whose length must match
/// the list, a `std::vector`, or a `std::span<const N>` on the worker's scratch. The key belongs to the
/// outermost object.
/// Kind: pointwise, keeps all guarantees. Cost per sample: one pass of nlohmann's parser over the whole text,
/// without building a document; its few allocations do not grow with the number of values. Thread-safe, with
/// a scratch per thread.
/// Throws `errc::missing` if there is no such key; `errc::format` for a value of another kind, a number that
/// does not fit `T`, a duplicate key, and, with the offset, for anything that is not JSON; `errc::limit` as
/// `json` does.
template <fixed_string Name, class T>
struct json_field {
  static_assert(detail::json_form<T>::possible,
                "penstock: json_field<name, T> gives numbers, bool, std::string, std::string_view, and "
                "std::array, std::vector or std::span<const N> of numbers");

  /// The maximum length of the text in bytes.
  std::uint64_t limit = 64_MiB;
  /// The maximum nesting depth of lists and objects.
  std::uint64_t depth = 128;

  static constexpr std::string_view codec_name = "json_field";
  static constexpr std::string_view extensions[] = {"json", "jsn"};
  using scratch = detail::json_field_scratch<typename detail::json_form<T>::number>;

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, scratch& s) const {
    constexpr std::string_view key = name_of<Name>::value;
    const std::string_view text = detail::json_text(as_bytes(in), limit);
    detail::json_field_reader<T> found(key, text, depth, s);
    json_value::sax_parse(text.data(), text.data() + text.size(), &found);
    if (!found.seen()) throw error(errc::missing, {"the JSON object has no key '", key, "'"});
    return taken(s, key);
  }

 private:
  static T taken(const scratch& s, [[maybe_unused]] std::string_view key) {
    if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
      return s.text;
    } else if constexpr (!detail::json_form<T>::list) {
      return static_cast<T>(s.values.front());
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      T list{};
      if (s.values.size() != list.size())
        throw error(errc::shape, {"the list at the key '", key, "' has ", s.values.size(), " numbers, but ",
                                  list.size(), " were asked for"});
      std::copy(s.values.begin(), s.values.end(), list.begin());
      return list;
    } else {
      return T(s.values.begin(), s.values.end());
    }
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/detail/safetensors_header.hpp

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

  static constexpr std::uint64_t most_bytes = 100'000'000;  // set by the format
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

  bool null() { return unexpected(); }
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

/// The length of the header, from the first 8 bytes of a file of `size` bytes.
[[nodiscard]] inline std::uint64_t safetensors_header_bytes(bytes_view start, std::uint64_t size) {
  if (start.size() < 8)
    throw error(errc::format, {"the file ends within its first 8 bytes: it is not a safetensors file"})
        .at_offset(0);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(start[i]) << (8 * i);
  if (length > safetensors_header::most_bytes)
    throw error(errc::limit, {"the safetensors header says it has ", length,
                              " bytes, and the format allows 100,000,000: is this a safetensors file?"})
        .at_offset(0);
  if (length > size - 8)
    throw error(errc::format, {"the safetensors header says it has ", length, " bytes, but ", size - 8,
                               " follow; copy the file again if it was cut"})
        .at_offset(0);
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

// ---- penstock/source/safetensors.hpp

namespace penstock::inline v0_1 {

/// The safetensors name of a type; empty for a type it does not have. For a half-float type of your own:
/// `template <> inline constexpr std::string_view penstock::safetensors_dtype<bfloat> = "BF16";`
template <class T>
inline constexpr std::string_view safetensors_dtype = [] {
  using namespace std::string_view_literals;
  if constexpr (std::same_as<T, bool>)
    return "BOOL"sv;
  else if constexpr (std::same_as<T, float>)
    return "F32"sv;
  else if constexpr (std::same_as<T, double>)
    return "F64"sv;
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1 ? "I8"sv : sizeof(T) == 2 ? "I16"sv : sizeof(T) == 4 ? "I32"sv : "I64"sv;
  else if constexpr (std::unsigned_integral<T>)
    return sizeof(T) == 1 ? "U8"sv : sizeof(T) == 2 ? "U16"sv : sizeof(T) == 4 ? "U32"sv : "U64"sv;
  else
    return ""sv;
}();

namespace detail {

template <class T>
concept safetensors_type = !safetensors_dtype<T>.empty() && std::is_trivially_copyable_v<T>;

/// The header of an object of a session.
[[nodiscard]] inline safetensors_header safetensors_header_of(session_view session, object_id object,
                                                              std::uint64_t size) {
  static_assert(std::endian::native == std::endian::little,
                "penstock: safetensors files are little-endian, and are shown in place: this needs a "
                "little-endian machine");
  buffer room;
  const std::uint64_t length =
      safetensors_header_bytes(session.range(object, 0, std::min<std::uint64_t>(size, 8), room), size);
  return read_safetensors_header(session.range(object, 8, length, room), size);
}

/// The entry of a tensor; throws if it is missing or not of type `dtype` (empty: any type).
[[nodiscard]] inline const safetensors_entry& safetensors_tensor(const safetensors_header& header,
                                                                 std::string_view name,
                                                                 std::string_view dtype = {}) {
  const auto found = header.tensors.find(name);
  if (found == header.tensors.end()) {
    std::string known;
    for (const auto& [other, entry] : header.tensors) list_name(known, other);
    throw error(errc::missing, {"the safetensors file has no tensor '", name, "'; it has: ", known})
        .at_offset(8);
  }
  if (!dtype.empty() && found->second.dtype != dtype)
    throw error(errc::format, {"the tensor '", name, "' of the safetensors file is of ", found->second.dtype,
                               ", but ", dtype, " was asked for; see safetensors_dtype"})
        .at_offset(found->second.begin);
  return found->second;
}

/// The rows of a tensor; throws if it is missing or not of type `dtype`.
[[nodiscard]] inline stored_rows find_safetensors_rows(session_view session, object_id object,
                                                       std::uint64_t size, std::string_view name,
                                                       std::string_view dtype) {
  const safetensors_header header = safetensors_header_of(session, object, size);
  const auto& entry = safetensors_tensor(header, name, dtype);
  if (entry.shape.rank() == 0)
    throw error(errc::format, {"the tensor '", name, "' is one number, which has no rows"})
        .at_offset(entry.begin);
  return {entry.shape, entry.begin, entry.begin, false};
}

template <class T>
struct safetensors_format {
  static_assert(safetensors_type<T>,
                "penstock: safetensors_rows<T> needs a bool, integer or floating type; for a half-float type "
                "of your own specialise penstock::safetensors_dtype");

  static constexpr std::string_view source_name = "safetensors_rows", holder = "this tensor";

  std::string name;

  [[nodiscard]] std::uint64_t mark() const { return hash_bytes(0x7361666574656e, bytes_of(name)); }
  [[nodiscard]] static constexpr std::string_view type_name() noexcept { return safetensors_dtype<T>; }
  [[nodiscard]] stored_rows find(session_view session, object_id object, std::uint64_t size) const {
    return find_safetensors_rows(session, object, size, name, safetensors_dtype<T>);
  }
};

}  // namespace detail

/// A safetensors file, mapped: its tensors by name.
///
///     const safetensors_file weights("model.safetensors");
///     const auto bias = weights.tensor<float>("layers.0.bias");     // a view of the mapping
///
/// In: the path of a file. Out: views, which are valid as long as this object or a copy of it lives; copies
/// share the mapping.
/// Cost: the constructor reads the header, at most 100 MB of JSON; `tensor` is a search by name. Throws, with
/// file and offset, `errc::format` for a header that does not describe the file exactly: lengths, offsets and
/// sizes that disagree, gaps, overlapping tensors, duplicate names, types or keys that the format does not
/// have, more than eight dimensions; `errc::limit` for a header of more than 100,000,000 bytes;
/// `errc::missing` for an unknown name; `errc::io`.
/// Threads: any number may call const members at once.
/// Source: safetensors, README.md ("Format") and safetensors/src/tensor.rs.
class safetensors_file {
 public:
  explicit safetensors_file(std::string path, mapped_file_options options = {})
      : path_(std::move(path)),
        session_(mapped_file(std::vector<std::string>{path_}, options).connect()),
        header_(read()) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// All tensors, by name.
  [[nodiscard]] const std::map<std::string, safetensors_entry, std::less<>>& tensors() const noexcept {
    return header_.tensors;
  }
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const noexcept {
    return header_.metadata;
  }

  /// The values of a tensor. Throws `errc::format` if it is of another type, or lies at an address that is
  /// not a multiple of `alignof(T)`; `bytes` works in either case.
  template <class T>
  [[nodiscard]] tensor_view<const T> tensor(std::string_view name) const {
    static_assert(
        detail::safetensors_type<T>,
        "penstock: tensor<T> needs a bool, integer or floating type; for a half-float type of your own "
        "specialise penstock::safetensors_dtype");
    return placed([&]() -> tensor_view<const T> {
      const safetensors_entry& entry = detail::safetensors_tensor(header_, name, safetensors_dtype<T>);
      const bytes_view found = session_.view(0, entry.begin, entry.bytes);
      if (reinterpret_cast<std::uintptr_t>(found.data()) % alignof(T) != 0)
        throw error(errc::format,
                    {"the tensor '", name, "' begins at an address that is not a multiple of ", alignof(T),
                     ": save the file again with a writer that aligns, or copy bytes()"})
            .at_offset(entry.begin);
      if constexpr (std::same_as<T, bool>) {
        // a bool with any other byte value is undefined behaviour
        const auto bad =
            std::find_if(found.begin(), found.end(), [](std::byte b) { return b > std::byte{1}; });
        if (bad != found.end())
          throw error(errc::format, {"the tensor '", name, "' has a BOOL that is neither 0 nor 1"})
              .at_offset(entry.begin + static_cast<std::uint64_t>(bad - found.begin()));
      }
      return {reinterpret_cast<const T*>(found.data()), entry.shape};
    });
  }
  /// The bytes of a tensor of any type.
  [[nodiscard]] bytes_view bytes(std::string_view name) const {
    return placed([&] {
      const safetensors_entry& entry = detail::safetensors_tensor(header_, name);
      return session_.view(0, entry.begin, entry.bytes);
    });
  }
  /// Throws if views may have shown bytes that are not the file's; see `mapped_file_options::guarded`.
  void confirm() const { session_.confirm(0); }

 private:
  detail::safetensors_header read() {
    return placed([this] {
      auto header = detail::safetensors_header_of(session_, 0, session_.size(0));
      session_.confirm(0);
      return header;
    });
  }
  template <class F>
  auto placed(F&& f) const -> decltype(f()) {
    try {
      return f();
    } catch (error& e) {
      session_.confirm(0);
      e.in_file(path_);
      throw;
    }
  }

  std::string path_;
  mapped_file::session session_;
  detail::safetensors_header header_;
};

/// The source that `safetensors_rows` makes of safetensors files.
template <class T, storage Storage, std::uint64_t... Lengths>
using safetensors_row_source = detail::row_source<detail::safetensors_format<T>, T, Storage, Lengths...>;

/// The rows of one tensor of safetensors files along its first dimension, all files as one dataset.
///
///     auto features = safetensors_rows<float>("features-{00..07}.safetensors", "clip") | shuffle(seed) | batch(256);
///     auto tokens = safetensors_rows<std::int32_t, 2048>("tokens.safetensors", "ids");
///
/// In: a pattern of names, which is `mapped_file`, or any storage; the tensor's name, which is common to
/// all files.
/// Out, kind, cost, threads: as for `npy_rows`.
/// Throws what `safetensors_file` throws; `errc::format` for a type other than `T` and for a tensor of no
/// dimensions; `errc::shape` if the shape of the rows is not the one asked for or differs from that of the
/// first file; `errc::io`, also for a file that was changed after the plan was made. For a file that shrinks
/// while it is mapped see `mapped_file_options`.
/// Source: safetensors, README.md ("Format").
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] safetensors_row_source<T, Storage, Lengths...> safetensors_rows(Storage where,
                                                                              std::string_view tensor) {
  return safetensors_row_source<T, Storage, Lengths...>(std::move(where), {std::string(tensor)});
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] safetensors_row_source<T, mapped_file, Lengths...> safetensors_rows(std::string_view pattern,
                                                                                  std::string_view tensor) {
  return safetensors_row_source<T, mapped_file, Lengths...>(mapped_file(pattern), {std::string(tensor)});
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/wids.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// What a wids description says about a shard.
struct wids_shard {
  std::string path;
  std::uint64_t samples = 0;
  std::optional<std::uint64_t> bytes;
};

/// The shards of a description and of the descriptions it names, and how many bytes were read to find them.
/// Both are bounded in total, because a few bytes may repeat a long base, or name one description many times.
struct wids_listing {
  static constexpr std::size_t most_bytes = 64_MiB;

  std::vector<wids_shard> shards;
  std::uint64_t path_bytes = 0, read_bytes = 0;
};

/// Reads a description and the descriptions it names: one level deep, as wids does.
class wids_reader {
 public:
  explicit wids_reader(std::string path) : path_(std::move(path)) {}

  void read(wids_listing& found, bool top = true) {
    const nlohmann::json all = parsed(found);
    if (!all.is_object()) fail("the description is not a JSON object");
    if (all.contains("__kind__") && all["__kind__"] != "wids-shard-index-v1")
      fail("'__kind__' is not \"wids-shard-index-v1\"");
    if (!all.contains("wids_version") || all["wids_version"] != 1)
      fail("'wids_version' is missing or not 1, the only known version");
    if (!all.contains("shardlist") && !all.contains("datasets"))
      fail("the description has neither 'shardlist' nor 'datasets'");
    if (all.contains("shardlist")) list(all, folder_of(path_), found);
    if (!all.contains("datasets")) return;
    if (!top)
      fail("a description that another one names may not name a third; list all shards in one description");
    if (!all["datasets"].is_array()) fail("'datasets' is not a list");
    for (const nlohmann::json& one : all["datasets"]) {
      if (one.is_object() && one.contains("shardlist"))
        list(one, folder_of(path_), found);
      else
        wids_reader(joined(folder_of(path_), text(one, "source_url"))).read(found, false);
    }
  }

 private:
  static constexpr int deepest = 16;

  [[noreturn]] void fail(const std::string& what) const { throw error(errc::format, what).in_file(path_); }

  [[nodiscard]] nlohmann::json parsed(wids_listing& found) const {
    const buffer bytes = read_whole_file(path_, wids_listing::most_bytes, "a description of shards");
    found.read_bytes += bytes.size();
    if (found.read_bytes > wids_listing::most_bytes)
      throw error(errc::limit, "this description and those before it exceed 64 MiB in total").in_file(path_);
    const std::string_view text = text_of(bytes.view());
    // a one-byte bracket becomes an object of 70 bytes
    const auto shallow = [this](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
      if (depth > deepest) fail(detail::text({"the description is nested more than ", deepest, " deep"}));
      return true;
    };
    try {
      return nlohmann::json::parse(text.begin(), text.end(), shallow);
    } catch (const nlohmann::json::parse_error& e) {
      throw error(errc::format, not_json(e)).in_file(path_).at_offset(e.byte == 0 ? 0 : e.byte - 1);
    } catch (const nlohmann::json::exception& e) {  // a number beyond the range of a double
      fail(not_json(e));
    }
  }

  /// The parser's message repeats the whole text or number it was reading, so it is cut.
  [[nodiscard]] static std::string not_json(const nlohmann::json::exception& e) {
    const std::string_view said = e.what();
    constexpr std::size_t most = 300;
    return detail::text(
        {"the description is not JSON: ", said.substr(0, most), said.size() > most ? "..." : ""});
  }
  [[nodiscard]] static std::string folder_of(const std::string& path) {
    return path.substr(0, path.rfind('/') + 1);
  }
  /// Relative paths are relative to `base`; URLs of other machines are refused.
  [[nodiscard]] std::string joined(const std::string& base, std::string url) const {
    if (url.starts_with("file:")) url.erase(0, url.starts_with("file://") ? 7 : 5);
    if (url.find("://") != std::string::npos || url.starts_with("pipe:"))
      fail("'" + url.substr(0, 80) + "' is not a local file; copy the shards to this machine");
    return url.starts_with('/') ? url : base + url;
  }
  [[nodiscard]] std::string text(const nlohmann::json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string())
      fail(std::string("an entry has no text '") + key + "'");
    return object[key].get<std::string>();
  }
  [[nodiscard]] std::uint64_t number(const nlohmann::json& object, const char* key) const {
    if (!object.contains(key) || !object[key].is_number_unsigned())
      fail("the shard '" + text(object, "url").substr(0, 80) + "' has no '" + key + "' that is a number");
    return object[key].get<std::uint64_t>();
  }

  void list(const nlohmann::json& all, std::string base, wids_listing& found) const {
    if (all.contains("base") && !all["base"].is_null()) {
      base = joined(base, text(all, "base"));
      if (!base.empty() && base.back() != '/') base += '/';
    }
    if (!all["shardlist"].is_array()) fail("'shardlist' is not a list");
    for (const nlohmann::json& one : all["shardlist"]) {
      wids_shard said{joined(base, text(one, "url")), number(one, "nsamples"), std::nullopt};
      if (one.contains("filesize")) said.bytes = number(one, "filesize");
      found.path_bytes += said.path.size();
      if (found.path_bytes > wids_listing::most_bytes)
        throw error(errc::limit, "the paths of the shards, with their base, exceed 64 MiB in total")
            .in_file(path_);
      found.shards.push_back(std::move(said));
    }
  }

  std::string path_;
};

}  // namespace detail

/// A `webdataset` over the shards listed in a wids description, `shardindex.json`. The shards must match the
/// description.
///
/// In: the path of the description, and the options of `webdataset`. Relative names are relative to its
/// `base`, or to its folder. Lists in `datasets` are joined in order, and descriptions named there are read;
/// weights are ignored, and checksums are not verified. Out, kind, guarantees, cost, threads: as for
/// `webdataset`.
/// Throws what `webdataset` throws; `errc::format` with both names for a shard whose number of samples or
/// bytes differs from the description, for a description nested more than 16 deep, and with the offset for
/// one that is not JSON; `errc::limit` for a description of more than 64 MiB, before it is read, and if all
/// descriptions together, or all paths together, exceed that size.
/// Source: webdataset, wids_specs.py and wids_index.py.
///
///     auto samples = wids("shardindex.json") | shuffle(seed) | decode<field<"jpg", identity>>;
[[nodiscard]] inline webdataset<file> wids(const std::string& description, webdataset_options options = {}) {
  detail::wids_listing listing;
  detail::wids_reader(description).read(listing);
  std::vector<detail::wids_shard>& shards = listing.shards;
  if (shards.empty())
    throw error(errc::format, "the description lists no shard, and a dataset needs at least one shard")
        .in_file(description);
  std::vector<std::string> paths;
  for (detail::wids_shard& said : shards) paths.push_back(std::move(said.path));
  webdataset<file> data(std::move(paths), options);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const manifest::shard& found = data.manifest().shards()[i];
    const auto compare = [&](const char* what, std::uint64_t said, std::uint64_t has) {
      if (said == has) return;
      throw error(errc::format, "the description " + description + " says that the shard " + found.name +
                                    " has " + std::to_string(said) + " " + what + ", and it has " +
                                    std::to_string(has))
          .in_file(found.name);
    };
    if (shards[i].bytes) compare("bytes", *shards[i].bytes, found.bytes);
    compare("samples", shards[i].samples, found.samples);
  }
  return data;
}

}  // namespace penstock::inline v0_1
