// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/codec/json.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/quoted.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/to_size.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

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
