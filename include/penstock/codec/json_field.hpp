// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<simdjson.h>)
#error "penstock/codec/json_field.hpp needs simdjson: link penstock::simdjson"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/json_text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/record.hpp>

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <tuple>

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
concept json_number = std::floating_point<T> || (std::integral<T> && !std::same_as<T, bool>);
template <class T>
concept json_string = std::same_as<T, std::string> || std::same_as<T, std::string_view>;

/// How a type is read from JSON: the values of its list, if it is one, and its name in messages.
template <class T>
struct json_form {
  static constexpr bool list = false;
  static constexpr std::string_view wanted = std::same_as<T, bool>    ? "true or false"
                                             : std::floating_point<T> ? "a number"
                                             : std::integral<T>       ? "a whole number"
                                                                      : "a text";
  static constexpr bool possible = json_number<T> || std::same_as<T, bool> || json_string<T>;
  using value = T;
};
template <class V>
struct json_list_form {
  static constexpr bool list = true;
  static constexpr std::string_view wanted = std::floating_point<V> ? "a list of numbers"
                                             : json_string<V>       ? "a list of texts"
                                                                    : "a list of whole numbers";
  static constexpr bool possible = json_number<V> || json_string<V>;
  using value = V;
};
template <class V, class A>
struct json_form<std::vector<V, A>> : json_list_form<V> {};
template <class V, std::size_t K>
struct json_form<std::array<V, K>> : json_list_form<V> {};
template <class V>
struct json_form<std::span<const V>> : json_list_form<V> {};

/// A worker's parser, and a copy of the text with the room behind it that the parser may read.
class json_parser {
 public:
  /// Reads a text, and calls `each(key, value)` for the fields of its object. The values must be of this
  /// text.
  template <class Each>
  void read(std::string_view text, Each&& each) {
    simdjson::ondemand::document all;
    simdjson::ondemand::object object;
    text_ = text;
    copy_.resize_for_overwrite(text.size() + simdjson::SIMDJSON_PADDING);
    std::memcpy(copy_.data(), text.data(), text.size());
    std::memset(copy_.data() + text.size(), 0, simdjson::SIMDJSON_PADDING);
    check(parser_.iterate(reinterpret_cast<const char*>(copy_.data()), text.size(), copy_.size()).get(all));
    const simdjson::error_code opened = all.get_object().get(object);
    if (opened == simdjson::INCORRECT_TYPE)
      throw error(errc::format, "the JSON is not an object, so it has no keys");
    check(opened);
    for (auto next : object) {
      simdjson::ondemand::field one;
      check(std::move(next).get(one));
      each(key_of(one.key().raw()), one.value());
    }
    const char* behind = nullptr;  // of the object, if there is more
    if (all.current_location().get(behind) == simdjson::SUCCESS) malformed();
  }

  void check(simdjson::error_code result) const {
    if (result != simdjson::SUCCESS) [[unlikely]]
      fail(result);
  }
  /// Throws if the text is not JSON.
  [[gnu::cold]] void check_all() const {
    if (const std::size_t at = json_fault(text_); at != std::string_view::npos) json_malformed(text_, at);
  }
  [[noreturn, gnu::cold]] void malformed() const {
    check_all();
    throw error(errc::format, "this is not JSON");
  }

  /// The text of a string, whose token this is: in the copy, where escapes are replaced.
  [[nodiscard]] std::string_view string(std::string_view token) const {
    if (token.size() < 2 || token.back() != '"') malformed();
    // the copy is this object's own, and the parser has passed the token
    const std::string_view found = json_unescape(const_cast<char*>(token.data()) + 1, token.size() - 2);
    if (found.data() == nullptr) malformed();
    return found;
  }
  /// A value's token without the blanks behind it.
  [[nodiscard]] static std::string_view token(simdjson::ondemand::value& value) {
    std::string_view raw = value.raw_json_token();
    while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\n' || raw.back() == '\t' ||
                            raw.back() == '\r' || raw.back() == '\0'))
      raw.remove_suffix(1);
    return raw;
  }

 private:
  [[nodiscard]] std::string_view key_of(const char* begin) {
    const char* end = begin;
    bool escaped = false;
    for (; *end != '"'; ++end) {
      if (*end != '\\') continue;
      escaped = true;
      ++end;
    }
    const auto size = static_cast<std::size_t>(end - begin);
    if (!escaped) return {begin, size};
    key_.assign(begin, size);
    return json_unescape(key_.data(), key_.size());
  }
  [[noreturn, gnu::cold]] void fail(simdjson::error_code result) const {
    if (result == simdjson::MEMALLOC) throw std::bad_alloc();
    if (result == simdjson::CAPACITY) throw error(errc::limit, "the JSON has 4 GiB or more");
    check_all();
    throw error(errc::format, {"this is not JSON: ", simdjson::error_message(result)});
  }

  simdjson::ondemand::parser parser_;
  buffer copy_;
  std::string key_;
  std::string_view text_;
};

/// A value that a field has found, or the values of its list.
template <class T>
struct json_found {
  static constexpr bool list = json_form<T>::list;
  using value = typename json_form<T>::value;
  std::conditional_t<list, std::vector<value>, value> values{};
  bool seen = false;
};

template <class T>
class json_value_reader {
  using form = json_form<T>;
  using value = typename form::value;

 public:
  json_value_reader(std::string_view key, const json_parser& from) noexcept : key_(key), from_(&from) {}

  void read(simdjson::ondemand::value one, json_found<T>& into) const {
    if (std::exchange(into.seen, true))
      throw error(errc::format, {"the JSON object has the key '", key_, "' twice"});
    if constexpr (form::list) {
      into.values.clear();
      if (json_parser::token(one).front() != '[') other(one, false);
      simdjson::ondemand::array list;
      from_->check(one.get_array().get(list));
      for (auto next : list) {
        simdjson::ondemand::value element;
        from_->check(std::move(next).get(element));
        into.values.push_back(scalar(element, true));
      }
    } else {
      into.values = scalar(one, false);
    }
  }

 private:
  [[nodiscard]] value scalar(simdjson::ondemand::value& one, bool in_list) const {
    const std::string_view token = json_parser::token(one);
    const char first = token.empty() ? '\0' : token.front();
    if constexpr (json_string<value>) {
      if (first != '"') other(one, in_list);
      return value(from_->string(token));
    } else if constexpr (std::same_as<value, bool>) {
      if (token != "true" && token != "false") other(one, in_list);
      return first == 't';
    } else {
      if (first != '-' && (first < '0' || first > '9') && first != 'N' && first != 'I') other(one, in_list);
      return number(one, token, in_list);
    }
  }
  [[nodiscard]] value number(simdjson::ondemand::value& one, std::string_view token, bool in_list) const {
    if constexpr (std::floating_point<value>) {
      using limits = std::numeric_limits<value>;
      double n = 0;
      if (one.get_double().get(n) != simdjson::SUCCESS) {
        if (token == "NaN") return limits::quiet_NaN();
        if (token == "Infinity") return limits::infinity();
        if (token == "-Infinity") return -limits::infinity();
        from_->check_all();
        throw error(errc::format, "a number in the JSON is beyond the range of double");
      }
      if (n > limits::max() || n < limits::lowest()) out_of_range();
      return static_cast<value>(n);
    } else {
      std::conditional_t<std::is_signed_v<value>, std::int64_t, std::uint64_t> n = 0;
      simdjson::error_code failed;
      if constexpr (std::is_signed_v<value>)
        failed = one.get_int64().get(n);
      else
        failed = one.get_uint64().get(n);
      if (failed != simdjson::SUCCESS) {
        if (token.find_first_not_of("-0123456789") != token.npos) other(one, in_list);
        from_->check_all();
        out_of_range();
      }
      if (!std::in_range<value>(n)) out_of_range();
      return static_cast<value>(n);
    }
  }
  [[noreturn, gnu::cold]] void out_of_range() const {
    throw error(errc::format, {"the number at the key '", key_, "' is out of the range of its type"});
  }
  [[noreturn, gnu::cold]] void other(simdjson::ondemand::value& one, bool in_list) const {
    from_->check_all();
    const std::string_view token = json_parser::token(one);
    const char first = token.empty() ? '\0' : token.front();
    const std::string_view kind = first == '"'                               ? "a text"
                                  : first == '{'                             ? "an object"
                                  : first == '['                             ? "a list"
                                  : first == 'n'                             ? "null"
                                  : first == 't' || first == 'f'             ? "true or false"
                                  : token == "NaN"                           ? "NaN"
                                  : token.ends_with("Infinity")              ? "an infinity"
                                  : token.find_first_of(".eE") != token.npos ? "a real number"
                                                                             : "a whole number";
    throw error(errc::format, {"the JSON has ", kind, in_list ? " in the list" : "", " at the key '", key_,
                               "', but ", form::wanted, " was asked for"});
  }

  std::string_view key_;
  const json_parser* from_;
};

}  // namespace detail

/// One value of a JSON object: `json_field<"label", std::int64_t>` of `{"label": 7, "text": "a dog"}`.
///
///     auto texts = lines("corpus.jsonl") | decode<json_field<"text", std::string_view>> | batch(32, ragged);
///
/// In: any byte element. Out: a `T`: an integer, a floating-point number or a `bool`; a `std::string`, or a
/// `std::string_view` on the worker's scratch; for a list of numbers or texts a `std::array` whose length
/// must match the list, a `std::vector`, or a `std::span<const V>` on the worker's scratch. The key belongs
/// to the outermost object. `NaN`, `Infinity` and `-Infinity`, as Python writes them, are floating-point
/// numbers, and half a surrogate pair in a text (`\ud83d`) is U+FFFD. A byte order mark in front is passed
/// over.
/// Kind: pointwise, keeps all guarantees. Cost per sample: a copy of the text and one pass of simdjson over
/// it, which finds the values and their ends. Other values are passed over and not parsed: what is wrong
/// within them goes unnoticed, unless it is a quote, a bracket or not UTF-8. No allocation once the scratch,
/// some eight times the longest text, has grown. Thread-safe, with a scratch per thread.
/// Throws `errc::missing` if there is no such key; `errc::format` for a value of another kind, a number that
/// does not fit `T`, a duplicate of the key, and, with the offset, for what is not JSON; `errc::limit` for
/// more than `limit` bytes.
template <fixed_string Name, class T>
struct json_field {
  static_assert(detail::json_form<T>::possible,
                "penstock: json_field<name, T> gives numbers, bool, std::string, std::string_view, and "
                "std::array, std::vector or std::span<const V> of numbers or texts");

  /// The maximum length of the text in bytes.
  std::uint64_t limit = 64_MiB;

  static constexpr std::string_view codec_name = "json_field";
  static constexpr std::string_view extensions[] = {"json", "jsn"};
  using name_type = name_of<Name>;
  using type = T;
  using found = detail::json_found<T>;
  struct scratch {
    detail::json_parser parser;
    found value;
  };

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, scratch& s) const {
    const std::string_view text = detail::json_text(as_bytes(in), limit);
    s.value.seen = false;
    s.parser.read(text, [&](std::string_view key, simdjson::ondemand::value one) {
      (void)read(key, one, s.parser, s.value);
    });
    return taken(s.value);
  }

  /// Reads a value if it is this key's. Returns whether it is.
  static bool read(std::string_view key, simdjson::ondemand::value one, const detail::json_parser& parser,
                   found& into) {
    if (key != name_type::value) return false;
    detail::json_value_reader<T>(name_type::value, parser).read(one, into);
    return true;
  }
  /// The value that was read. Throws if there was none.
  [[nodiscard]] static T taken(const found& one) {
    constexpr std::string_view key = name_type::value;
    if (!one.seen) throw error(errc::missing, {"the JSON object has no key '", key, "'"});
    if constexpr (!found::list) {
      return one.values;
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      T list{};
      if (one.values.size() != list.size())
        throw error(errc::shape, {"the list at the key '", key, "' has ", one.values.size(), " values, but ",
                                  list.size(), " were asked for"});
      std::copy(one.values.begin(), one.values.end(), list.begin());
      return list;
    } else {
      return T(one.values.begin(), one.values.end());
    }
  }
};

/// Several values of a JSON object, in one pass over its text.
///
///     using row = json_fields<json_field<"text", std::string_view>, json_field<"label", std::int64_t>>;
///     auto rows = lines("reviews.jsonl") | decode<row> | batch(32, ragged);
///
/// In: any byte element. Out: a record with a field for each `json_field`, called by its key. Options of
/// the single fields are ignored.
/// Kind, cost, errors: as for `json_field`; a further field costs the comparison of names and its own value.
template <class... Fields>
struct json_fields {
  static_assert(sizeof...(Fields) != 0, "penstock: json_fields<> names no field");

  /// The maximum length of the text in bytes.
  std::uint64_t limit = 64_MiB;

  static constexpr std::string_view codec_name = "json_fields";
  static constexpr std::string_view extensions[] = {"json", "jsn"};
  struct scratch {
    detail::json_parser parser;
    std::tuple<typename Fields::found...> values;
  };

  using row = record<basic_field<typename Fields::name_type, typename Fields::type>...>;

  template <byte_element Bytes>
  [[nodiscard]] row decode(const Bytes& in, scratch& s) const {
    const std::string_view text = detail::json_text(as_bytes(in), limit);
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      ((std::get<Is>(s.values).seen = false), ...);
      s.parser.read(text, [&](std::string_view key, simdjson::ondemand::value one) {
        (void)(Fields::read(key, one, s.parser, std::get<Is>(s.values)) || ...);
      });
      return row(detail::made_by{}, [&] { return Fields::taken(std::get<Is>(s.values)); }...);
    }(std::index_sequence_for<Fields...>{});
  }
};

}  // namespace penstock::inline v0_1
