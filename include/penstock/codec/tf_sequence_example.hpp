// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/tf_example.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// How the steps of a feature list are read: the values of a step, how many they are, and what all become.
template <class T>
struct tf_step_form {
  using value = std::conditional_t<std::same_as<T, bytes>, bytes_view, T>;
  static constexpr bool possible = (tf_number<value> && !std::same_as<value, bool>) || tf_text<value>;
  static constexpr std::size_t count = 1;
  using type = std::span<const value>;
};
template <class N, std::size_t K>
struct tf_step_form<std::array<N, K>> {
  using value = N;
  static constexpr bool possible = tf_number<N> && !std::same_as<N, bool> && K != 0;
  static constexpr std::size_t count = K;
  using type = tensor_view<const N>;
};
template <class N, class A>
struct tf_step_form<std::vector<N, A>> {
  using value = N;
  static constexpr bool possible = (tf_number<N> && !std::same_as<N, bool>) || tf_text<N>;
  static constexpr std::size_t count = 0;  // any
  using type = std::vector<std::vector<N, A>>;
};

}  // namespace detail

/// A feature list of a `tf_sequence_example`: its name, and what each step has.
template <fixed_string Name, class T>
struct feature_list {
  using form = detail::tf_step_form<T>;
  static_assert(form::possible,
                "penstock: feature_list<name, T> gives for each step a number, bytes, a std::string_view, a "
                "std::array of numbers, or a std::vector of any number of values");

  using name_type = name_of<Name>;
  using type = typename form::type;
  struct scratch : detail::tf_values<typename form::value> {
    std::vector<std::size_t> ends;
  };
  static constexpr std::uint32_t map = detail::tf_sequences;

  /// The values of all steps.
  [[nodiscard]] static type read(bytes_view example, const detail::tf_feature& where, scratch& s) {
    using value = typename form::value;
    constexpr std::string_view name = name_type::value;
    detail::read_tf_values(example, where, s.found, &s.ends);
    if constexpr (form::count != 0) detail::check_tf_steps(name, s.ends, form::count);
    if constexpr (form::count == 0) {
      type all(s.ends.size());
      std::size_t at = 0;
      for (std::size_t i = 0; i < s.ends.size(); ++i)
        for (; at < s.ends[i]; ++at) all[i].push_back(detail::tf_converted<value>(s.found[at], name));
      return all;
    } else {
      const value* values = nullptr;
      if constexpr (std::same_as<value, typename scratch::stored>) {
        values = s.found.data();
      } else {
        s.converted.clear();
        for (const auto one : s.found) s.converted.push_back(detail::tf_converted<value>(one, name));
        values = s.converted.data();
      }
      if constexpr (std::same_as<type, std::span<const value>>)
        return {values, s.ends.size()};
      else
        return {values, extents(s.ends.size(), form::count)};
    }
  }
};

/// Reads named features of a `tf.train.SequenceExample`: those of its context, as `tf_example` does, and
/// feature lists, which have one feature a step.
///
///     using clip = tf_sequence_example<feature<"label", std::int64_t>, feature_list<"frames", bytes>,
///                                      feature_list<"rgb", std::array<float, 1024>>>;
///     auto clips = tfrecord("videos-{00..15}-of-16.tfrecord") | decode<clip>;
///
/// In: any byte element, whose bytes are a SequenceExample. Out: a record with a field for each `feature` and
/// `feature_list`. A list is, with one value a step, a `std::span` of numbers, of `bytes_view` for `bytes`,
/// or of `std::string_view`; with `std::array<N, K>` a `tensor_view` of shape (steps, K); with
/// `std::vector<N>` a vector of vectors, of any number of values a step. Spans and views lie on the worker's
/// scratch. A list that is missing has no steps.
/// Kind: pointwise, keeps all guarantees. Cost per sample: two passes over the fields, which skip the values
/// of others, and one over each that is named; no allocation except for a `std::vector`. Thread-safe, with a
/// scratch per thread.
/// Throws as `tf_example`, and `errc::shape` for a step with another number of values.
/// Source: tensorflow, core/example/{example,feature}.proto; the protocol buffers' encoding guide.
template <class... Features>
struct tf_sequence_example {
  static_assert(sizeof...(Features) != 0, "penstock: tf_sequence_example<> names no feature");
  static constexpr std::string_view codec_name = "tf_sequence_example";
  using scratch = std::tuple<typename Features::scratch...>;

  using row = record<basic_field<typename Features::name_type, typename Features::type>...>;

  template <byte_element Bytes>
  [[nodiscard]] row decode(const Bytes& in, scratch& s) const {
    const bytes_view example = as_bytes(in);
    std::array<detail::tf_feature, sizeof...(Features)> in_context{
        detail::tf_feature{Features::name_type::value, {}}...};
    auto in_lists = in_context;
    detail::find_tf_features(example, in_context, detail::tf_context);
    detail::find_tf_features(example, in_lists, detail::tf_sequences);
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return row(detail::made_by{}, [&] {
        return Features::read(example, is_list<Features> ? in_lists[Is] : in_context[Is], std::get<Is>(s));
      }...);
    }(std::index_sequence_for<Features...>{});
  }

 private:
  template <class Feature>
  static constexpr bool is_list = requires { Feature::map; };
};

}  // namespace penstock::inline v0_1
