// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/record.hpp>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// A feature in the bytes of its example: the entry of the map, of several the last.
struct tf_feature {
  std::string_view name;
  bytes_view entry;  ///< null if the example has no such feature
};

/// The maps of named features: that of an Example, which is the context of a SequenceExample too, and that of
/// a SequenceExample's lists.
inline constexpr std::uint32_t tf_context = 1, tf_sequences = 2;

/// Finds the entries of these features in a map. Throws `errc::format`, with the offset, unless the bytes are
/// a message.
void find_tf_features(bytes_view example, std::span<tf_feature> wanted, std::uint32_t map = tf_context);

/// The values of a feature, in the order of the message. An absent feature has none. With `ends`, those of a
/// list of features, one feature a step, and how many of them there are behind each step. Throw
/// `errc::format`, with the offset in `example`, for a feature with values of another kind.
void read_tf_values(bytes_view example, const tf_feature& one, std::vector<std::int64_t>& into,
                    std::vector<std::size_t>* ends = nullptr);
void read_tf_values(bytes_view example, const tf_feature& one, std::vector<float>& into,
                    std::vector<std::size_t>* ends = nullptr);
void read_tf_values(bytes_view example, const tf_feature& one, std::vector<bytes_view>& into,
                    std::vector<std::size_t>* ends = nullptr);

/// Throws errc::shape unless each step has this many values.
void check_tf_steps(std::string_view name, std::span<const std::size_t> ends, std::size_t wanted);

/// `number`: whether a single number was asked for, which may have a default, or be a list.
[[noreturn, gnu::cold]] void no_tf_value(std::string_view name, bool number);
[[noreturn, gnu::cold]] void other_tf_count(std::string_view name, std::uint64_t found, std::uint64_t wanted);
[[noreturn, gnu::cold]] void tf_value_out_of_range(std::string_view name);

}  // namespace detail

/// The type of a feature whose value is bytes: `feature<"image/encoded", bytes>`.
struct bytes {};

/// Says that a feature has no value to take where an example lacks it.
struct no_default {
  friend bool operator==(no_default, no_default) = default;
};

namespace detail {

template <class T>
concept tf_character = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                       std::same_as<T, char16_t> || std::same_as<T, char32_t>;
template <class T>
concept tf_number = !tf_character<T> && (std::floating_point<T> || std::integral<T>);
template <class T>
concept tf_text =
    std::same_as<T, std::string_view> || std::same_as<T, bytes_view> || std::same_as<T, std::string>;

/// Whether a default, if there is one, is exactly a value of `T`.
template <class T, auto Default>
consteval bool tf_default_fits() {
  using given = std::remove_cv_t<decltype(Default)>;
  if constexpr (!tf_number<T> || !std::is_arithmetic_v<given>)
    return true;
  else if constexpr (std::same_as<T, bool> || std::same_as<given, bool>)
    return std::same_as<T, given>;
  else if constexpr (std::integral<T> && std::integral<given>)
    return std::in_range<T>(Default);
  else if constexpr (std::floating_point<T>)
    return static_cast<given>(static_cast<T>(Default)) == Default;
  else
    return false;
}

/// How a type is read from a feature: the kind of its values, and how many they are.
template <class T>
struct tf_form {
  static constexpr bool possible =
      tf_number<T> || std::same_as<T, bytes> || std::same_as<T, std::string_view>;
  static constexpr bool one = true;
  using value = T;
  using type = std::conditional_t<std::same_as<T, bytes>, bytes_view, T>;
};
template <class N>
struct tf_list_form {
  static constexpr bool possible = (tf_number<N> && !std::same_as<N, bool>) || tf_text<N>;
  static constexpr bool one = false;
  using value = N;
};
template <class N, std::size_t K>
struct tf_form<std::array<N, K>> : tf_list_form<N> {
  using type = std::array<N, K>;
};
template <class N>
struct tf_form<std::span<const N>> : tf_list_form<N> {
  using type = std::span<const N>;
};
template <class N, class A>
struct tf_form<std::vector<N, A>> : tf_list_form<N> {
  using type = std::vector<N, A>;
};

/// The values of a feature in an example, and those of another type that they become.
template <class N>
struct tf_values {
  using stored = std::conditional_t<std::floating_point<N>, float,
                                    std::conditional_t<tf_number<N>, std::int64_t, bytes_view>>;
  std::vector<stored> found;
  std::vector<std::conditional_t<(tf_number<N> && !std::same_as<N, bool>) || tf_text<N>, N, char>> converted;
};

template <class N>
[[nodiscard]] N tf_converted(std::int64_t value, std::string_view name) {
  if constexpr (std::same_as<N, bool>) {
    if (value != 0 && value != 1) tf_value_out_of_range(name);
    return value == 1;
  } else {
    if (!std::in_range<N>(value)) tf_value_out_of_range(name);
    return static_cast<N>(value);
  }
}
template <std::floating_point N>
[[nodiscard]] N tf_converted(float value, std::string_view) {
  return value;
}
template <tf_text N>
[[nodiscard]] N tf_converted(bytes_view value, std::string_view) {
  if constexpr (std::same_as<N, bytes_view>)
    return value;
  else
    return N(text_of(value));
}

}  // namespace detail

/// A feature of a `tf_example`: its name, the type that it becomes, and what to take for a single value where
/// an example lacks it; without that an example that lacks it is an error.
template <fixed_string Name, class T, auto Default = no_default{}>
struct feature {
  using form = detail::tf_form<T>;
  static_assert(
      form::possible,
      "penstock: feature<name, T> gives numbers, bool, bytes, std::string_view, and std::array, std::vector "
      "or std::span<const N> of numbers, std::string_view or bytes_view");
  static constexpr bool has_default = !std::same_as<std::remove_cv_t<decltype(Default)>, no_default>;
  static_assert(!has_default || (detail::tf_number<T> && std::is_arithmetic_v<decltype(Default)>),
                "penstock: only a feature that is one number has a value to take where it is missing");
  static constexpr bool default_fits = detail::tf_default_fits<T, Default>();
  static_assert(default_fits,
                "penstock: the value to take where a feature is missing is not one of its type");

  using name_type = name_of<Name>;
  using type = typename form::type;
  using scratch = detail::tf_values<typename form::value>;

  /// The value in an example.
  [[nodiscard]] static type read(bytes_view example, const detail::tf_feature& where, scratch& s) {
    detail::read_tf_values(example, where, s.found);
    constexpr std::string_view name = name_type::value;
    if constexpr (form::one) {
      if (s.found.empty()) {
        if constexpr (has_default)
          return static_cast<T>(Default);
        else
          detail::no_tf_value(name, detail::tf_number<T>);
      }
      if (s.found.size() != 1) detail::other_tf_count(name, s.found.size(), 1);
      if constexpr (std::same_as<T, bytes>)
        return s.found.front();
      else if constexpr (std::same_as<T, std::string_view>)
        return text_of(s.found.front());
      else
        return detail::tf_converted<T>(s.found.front(), name);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      T all{};
      if (s.found.size() != all.size()) {
        if (s.found.empty()) detail::no_tf_value(name, false);
        detail::other_tf_count(name, s.found.size(), all.size());
      }
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = detail::tf_converted<typename form::value>(s.found[i], name);
      return all;
    } else if constexpr (std::same_as<T, std::span<const typename scratch::stored>>) {
      return s.found;
    } else {
      s.converted.clear();
      for (const auto value : s.found)
        s.converted.push_back(detail::tf_converted<typename form::value>(value, name));
      return type(s.converted.begin(), s.converted.end());
    }
  }
};

/// Reads the named features of a `tf.train.Example`.
///
///     using example = tf_example<feature<"image/encoded", bytes>, feature<"label", std::int64_t, -1>>;
///     auto samples = tfrecord("train-{00..15}-of-16.tfrecord") | decode<example> | decode<field<"image/encoded", jpeg>>;
///
/// In: any byte element, whose bytes are an Example. Out: a record with a field for each feature: an integer
/// or `bool` of an Int64List, a floating-point number of a FloatList, `bytes` or a `std::string_view` of a
/// BytesList, which lie in the example's bytes. A `std::array` takes exactly its number of values; a
/// `std::span<const N>`, on the worker's scratch, or a `std::vector` takes any number, none if the feature is
/// missing. Those of a BytesList are `std::string_view`, `bytes_view` or `std::string`. Of a SequenceExample
/// it reads the context; `tf_sequence_example` reads both.
/// Kind: pointwise, keeps all guarantees. Cost per sample: one pass over the example's fields, which skips
/// the values of other features, and one over each named feature; no allocation except for a `std::vector`.
/// Thread-safe, with a scratch per thread.
/// Throws `errc::missing` for an example without a feature that needs a value, `errc::shape` for another
/// number of values, `errc::format` for values of another kind or out of the type's range and, with the
/// offset, for bytes that are no Example. Of several features of one name the last counts, and unknown fields
/// are skipped, as protocol buffers demand.
/// Source: tensorflow, core/example/{example,feature}.proto; the protocol buffers' encoding guide.
template <class... Features>
struct tf_example {
  static_assert(sizeof...(Features) != 0, "penstock: tf_example<> names no feature");
  static constexpr std::string_view codec_name = "tf_example";
  using scratch = std::tuple<typename Features::scratch...>;

  using row = record<basic_field<typename Features::name_type, typename Features::type>...>;

  template <byte_element Bytes>
  [[nodiscard]] row decode(const Bytes& in, scratch& s) const {
    const bytes_view example = as_bytes(in);
    std::array<detail::tf_feature, sizeof...(Features)> found{
        detail::tf_feature{Features::name_type::value, {}}...};
    detail::find_tf_features(example, found);
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return row(detail::made_by{}, [&] { return Features::read(example, found[Is], std::get<Is>(s)); }...);
    }(std::index_sequence_for<Features...>{});
  }
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/tf_example.ipp>
#endif
