// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/stage/fields.hpp>

#include <algorithm>
#include <iterator>
#include <tuple>

namespace penstock::inline v0_1 {

namespace mistakes {

struct decode_nothing : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: decode<> names no codec; write decode<zstd>, or decode<field<\"jpg\", jpeg>, "
                  "...> for some fields");
  }
};
struct codec_wants_bytes : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a codec needs bytes and gets a value that is already decoded; remove one "
                  "decode, or use map(f)");
  }
};
struct decode_which_field : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: decode<Codec> on a record with several fields of bytes; say which, as in "
                  "decode<field<\"name\", Codec>>");
  }
};
struct number_is_no_codec : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: decode<...> was given a type that is no codec but of a value; write integer_as<int> "
        "or floating_as<float> for a number in digits, npy<float> for an array, text for a text");
  }
};
struct not_a_codec : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: decode<...> was given a type that is not a codec; a codec has decode(bytes, "
                  "scratch) const and codec_name");
  }
};

}  // namespace mistakes

namespace detail {

template <class T>
concept is_defined = requires { sizeof(T); };
/// In the place of a codec that is only declared.
template <class T>
struct declared_codec : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: the header of a codec is not included; this error names it in declared_codec<...>: write "
        "#include <penstock/codec/jpeg.hpp> for jpeg, <penstock/codec/zstd.hpp> for zstd and so on, and link "
        "its component, as penstock::jpeg");
  }
};
template <class T>
inline constexpr bool is_only_declared = false;
template <class T>
inline constexpr bool is_only_declared<declared_codec<T>> = true;
template <class T>
struct defined_codec : std::type_identity<T> {};
template <class T>
  requires(!is_defined<T>)
struct defined_codec<T> : std::type_identity<declared_codec<T>> {};

template <class First, class... Rest>
struct first_declared : first_declared<Rest...> {};
template <class T, class... Rest>
struct first_declared<declared_codec<T>, Rest...> : std::type_identity<declared_codec<T>> {};

template <class T>
struct field_codec {
  using name_type = void;
  using codec_type = typename defined_codec<T>::type;
};
template <class Name, class C>
struct field_codec<basic_field<Name, C>> {
  static constexpr member_name member{Name::text};  // with alternatives, the first of which names the field
  using name_type = member_name_type<member>;
  using codec_type = typename defined_codec<C>::type;
};

template <class T>
using codec_in = typename field_codec<T>::codec_type;
template <class T>
using name_in = typename field_codec<T>::name_type;
template <class T>
inline constexpr bool is_a_value =
    std::is_arithmetic_v<T> || std::is_convertible_v<const T&, std::string_view>;

/// `name: codec`, or just the codec.
template <class C>
struct codec_words {
  static constexpr std::string_view value = C::codec_name;
};
template <class Name, class C>
struct codec_words<basic_field<Name, C>> {
  static constexpr std::string_view codec = defined_codec<C>::type::codec_name;
  static constexpr auto text = [] {
    std::array<char, Name::value.size() + 2 + codec.size()> made{};
    std::size_t end = 0;  // std::ranges::copy would be most of what a stage costs to compile
    for (const std::string_view part : {Name::value, std::string_view(": "), codec})
      for (const char c : part) made[end++] = c;
    return made;
  }();
  static constexpr std::string_view value{text.data(), text.size()};
};

[[gnu::cold]] inline void name_codec(error& e, std::string_view codec) {
  e.in_stage(text({"decode<", codec, ">"}));
}

template <class C, class In, class Scratch>
decltype(auto) run_codec(const C& c, const In& in, Scratch& scratch) {
  try {
    check_codec<C>(in);
    return c.decode(in, scratch);
  } catch (error& e) {
    name_codec(e, C::codec_name);
    throw;
  }
}

template <class C>
bool codec_claims(std::string_view extension) {
  if constexpr (extension_codec<C>)
    return std::ranges::find(C::extensions, extension) != std::end(C::extensions);
  else
    return false;
}

/// The member that codec `C` is meant for: the only one, or the only one whose name the codec declares.
template <class C, open_sample S>
std::size_t member_for(const S& sample) {
  if (sample.size() == 1) return 0;
  std::size_t found = sample.size();
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const std::string_view member = sample.name(i);
    const auto dot = member.rfind('.');
    if (!codec_claims<C>(dot == std::string_view::npos ? member : member.substr(dot + 1))) continue;
    if (found != sample.size())
      throw error(errc::missing, {"two members suit decode<", C::codec_name, ">: '", sample.name(found),
                                  "' and '", member, "'; choose with fields<...>"})
          .for_key(sample.key());
    found = i;
  }
  if (found == sample.size())
    throw error(errc::missing, {"no single member suits decode<", C::codec_name,
                                ">; choose with fields<...> or decode<field<\"name\", Codec>>"})
        .for_key(sample.key());
  return found;
}

/// A codec that shows numbers of samples one behind the other where they lie, if its bytes tell where.
template <class C>
concept codec_of_runs = requires { requires bool(C::reads_contiguous); };

template <class C>
concept passing_codec = requires { requires C::passes_values; };

template <class Record>
inline constexpr std::size_t byte_fields = 0;
template <class... Fields>
inline constexpr std::size_t byte_fields<record<Fields...>> =
    (std::size_t{byte_element<typename Fields::type>} + ... + 0);

template <class Name, class... Codecs>
inline constexpr std::size_t codec_for = [] {
  std::size_t found = not_found, i = 0;
  ((std::is_same_v<Name, name_in<Codecs>> ? (found = i, ++i) : ++i), ...);
  return found;
}();

}  // namespace detail

/// Turns bytes into values: `decode<zstd>`, or for fields of a record `decode<field<"jpg", jpeg>,
/// field<"cls", integer>>`.
///
/// In: bytes (blobs, spans, texts); a record, from which `decode<field<...>...>` takes the named fields and
/// `decode<Codec>` the only one that is bytes, while the others pass; or an open sample, from which
/// `decode<field<...>...>` takes the named members, or one of several, as in `field<"jpg;jpeg", jpeg>`, whose
/// field is called "jpg", and `decode<Codec>` the only member, or the only one whose
/// extension the codec declares. `decode<identity>` also takes values that are already decoded, and passes
/// them on. Out: the codec's result, unfinished if the codec can write straight to its destination.
/// Pointwise; keeps all five guarantees. Pass options by calling it: `decode<zstd>(zstd{.limit = 1_GiB})`.
/// Each worker has a scratch per codec.
/// Throws what the codec throws, with the codec's name, at the sample's place in the sequence.
template <class... Codecs>
struct decode_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "decode";
  using codecs = light_tuple<detail::codec_in<Codecs>...>;
  using scratch = light_tuple<scratch_of<detail::codec_in<Codecs>>...>;
  static constexpr bool one_at_a_time = (lone_codec<detail::codec_in<Codecs>> || ...);
  static constexpr bool by_name = (!std::is_void_v<detail::name_in<Codecs>> && ...);

  codecs codec_values{};

  /// Sets options for each codec, in the order written.
  template <class... Options>
    requires(sizeof...(Options) == sizeof...(Codecs))
  [[nodiscard]] constexpr decode_stage operator()(Options... options) const {
    return decode_stage{detail::make_light_tuple(detail::codec_in<Codecs>(std::move(options))...)};
  }

  /// Of codecs for named members, that for `Name` alone.
  template <class Name>
    requires(by_name && detail::codec_for<Name, Codecs...> != detail::not_found)
  [[nodiscard]] constexpr auto only() const {
    constexpr std::size_t which = detail::codec_for<Name, Codecs...>;
    return decode_stage<std::tuple_element_t<which, std::tuple<Codecs...>>>{
        detail::make_light_tuple(detail::at<which>(codec_values))};
  }

  template <class V, class Call>
  constexpr decltype(auto) apply(V&& value, const Call& c) const {
    using type = std::remove_cvref_t<V>;
    if constexpr (any_record<type>) {
      return apply_record(std::forward<V>(value), c, std::make_index_sequence<type::size>{});
    } else if constexpr (open_sample<type> && by_name) {
      return apply_open(value, c, std::make_index_sequence<sizeof...(Codecs)>{});
    } else if constexpr (open_sample<type>) {
      using codec_type = detail::type_at<0, codecs>;
      return detail::run_codec(detail::at<0>(codec_values),
                               value.member(detail::member_for<codec_type>(value)), detail::at<0>(c.scratch));
    } else if constexpr (byte_element<type>) {
      return detail::run_codec(detail::at<0>(codec_values), value, detail::at<0>(c.scratch));
    } else {
      return static_cast<V&&>(value);
    }
  }

  /// Whether all codecs can show values of samples one behind the other where they lie.
  static constexpr bool reads_contiguous =
      by_name && (detail::codec_of_runs<detail::codec_in<Codecs>> && ...);
  /// Calls `sink` with a record of value runs, that of `first` and of the samples behind it in memory;
  /// returns what it returns, or false if there is no such run for each member.
  [[nodiscard]] bool apply_run(const auto& first, auto&& sink) const {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      const record<basic_field<detail::name_in<Codecs>, decltype(run_of<Is>(first))>...> values(
          detail::made_by{}, [&] { return run_of<Is>(first); }...);
      return ((get<Is>(values).first != nullptr) && ...) && sink(values);
    }(std::make_index_sequence<sizeof...(Codecs)>{});
  }

  [[nodiscard]] std::string describe() const {
    return detail::list_text("decode<", {detail::codec_words<Codecs>::value...}, ", ", ">");
  }

  /// Of an open sample, the named members; if they are chosen by extension, or others pass, everything.
  template <class Element>
  static constexpr projection uses() {
    if constexpr (open_sample<Element> && by_name)
      return projection::of_these(detail::alternatives<detail::field_codec<Codecs>::member...>);
    else
      return {};
  }
  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (sizeof...(Codecs) == 0) {
      return mistakes::decode_nothing{};
    } else if constexpr ((detail::is_only_declared<detail::codec_in<Codecs>> || ...)) {
      return typename detail::first_declared<detail::codec_in<Codecs>...>::type{};
    } else if constexpr (!(codec<detail::codec_in<Codecs>> && ...)) {
      if constexpr ((detail::is_a_value<detail::codec_in<Codecs>> || ...))
        return mistakes::number_is_no_codec{};
      else
        return mistakes::not_a_codec{};
    } else if constexpr (by_name && !detail::names_differ<basic_field<detail::name_in<Codecs>, int>...>()) {
      return mistakes::field_twice{};
    } else if constexpr (any_record<element>) {
      if constexpr (by_name) {
        if constexpr (!(has_field<element, detail::name_in<Codecs>> && ...)) {
          return mistakes::no_such_field{};
        } else {
          return wants_bytes<(
              takes<detail::codec_in<Codecs>,
                    std::tuple_element_t<element::template index_of<detail::name_in<Codecs>>, element>> &&
              ...)>();
        }
      } else if constexpr (sizeof...(Codecs) != 1 || (detail::byte_fields<element> > 1 && !passes)) {
        return mistakes::decode_which_field{};
      } else {
        return wants_bytes < detail::byte_fields<element> == 1 || passes > ();
      }
    } else if constexpr (open_sample<element>) {
      if constexpr (by_name || sizeof...(Codecs) == 1)
        return mistakes::none{};
      else
        return mistakes::decode_which_field{};
    } else if constexpr (by_name || sizeof...(Codecs) != 1) {
      return mistakes::no_such_field{};
    } else {
      return wants_bytes < byte_element<element> || passes > ();
    }
  }

 private:
  static constexpr bool passes = (detail::passing_codec<detail::codec_in<Codecs>> && ...);
  template <class C, class Value>
  static constexpr bool takes = byte_element<Value> || detail::passing_codec<C>;

  template <bool Bytes>
  static consteval auto wants_bytes() {
    return mistakes::unless<Bytes, mistakes::codec_wants_bytes>{};
  }
  template <class R, class Call, std::size_t... Is>
  constexpr auto apply_record(R&& sample, const Call& c, std::index_sequence<Is...>) const {
    using type = std::remove_cvref_t<R>;
    return record<basic_field<typename type::template field_at<Is>::name_type,
                              std::remove_cvref_t<decltype(one_field<Is>(std::forward<R>(sample), c))>>...>(
        detail::made_by{}, [&]() -> decltype(auto) { return one_field<Is>(std::forward<R>(sample), c); }...);
  }
  /// A field that passes is moved out of a record that nobody else has.
  template <std::size_t I, class R, class Call>
  constexpr decltype(auto) one_field(R&& sample, const Call& c) const {
    using field = typename std::remove_cvref_t<R>::template field_at<I>;
    constexpr std::size_t which = by_name ? detail::codec_for<typename field::name_type, Codecs...> : 0;
    if constexpr (which == detail::not_found || !byte_element<typename field::type>)
      return get<I>(std::forward<R>(sample));
    else
      return detail::run_codec(detail::at<which>(codec_values), get<I>(sample), detail::at<which>(c.scratch));
  }
  template <class S, class Call, std::size_t... Is>
  auto apply_open(const S& sample, const Call& c, std::index_sequence<Is...>) const {
    return record<
        basic_field<detail::name_in<Codecs>, std::remove_cvref_t<decltype(one_member<Is>(sample, c))>>...>(
        detail::made_by{}, [&]() -> decltype(auto) { return one_member<Is>(sample, c); }...);
  }
  template <std::size_t I, class S, class Call>
  decltype(auto) one_member(const S& sample, const Call& c) const {
    constexpr auto& wanted = detail::field_codec<std::tuple_element_t<I, std::tuple<Codecs...>>>::member;
    const std::size_t i = detail::find_member<wanted>(sample);
    if (i == sample.size()) [[unlikely]]
      detail::throw_missing(sample, wanted.view());
    return detail::run_codec(detail::at<I>(codec_values), sample.member(i), detail::at<I>(c.scratch));
  }
  template <std::size_t I, class S>
  auto run_of(const S& sample) const {
    const auto& codec = detail::at<I>(codec_values);
    const std::size_t i =
        detail::find_member<detail::field_codec<std::tuple_element_t<I, std::tuple<Codecs...>>>::member>(
            sample);
    using run = decltype(codec.values_of(sample.member(i)));
    return i < sample.size() ? codec.values_of(sample.member(i)) : run();
  }
};

template <class... Codecs>
inline constexpr decode_stage<Codecs...> decode{};

}  // namespace penstock::inline v0_1
