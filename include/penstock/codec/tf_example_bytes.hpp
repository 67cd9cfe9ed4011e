// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <concepts>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <variant>

// Source: tensorflow, core/example/{example,feature}.proto; the protocol buffers' encoding guide.
namespace penstock::inline v0_1 {

namespace detail {

[[noreturn, gnu::cold]] void no_tf_integer(std::string_view feature, std::uint64_t value);

template <std::integral N>
[[nodiscard]] std::int64_t tf_integer(N value, std::string_view feature) {
  if constexpr (std::unsigned_integral<N> && sizeof(N) == sizeof(std::int64_t))
    if (value >> 63 != 0) no_tf_integer(feature, value);
  return static_cast<std::int64_t>(value);
}

}  // namespace detail

/// The values of a feature for `tf_example_bytes`: integers, floats, bytes or texts, one or several. Integers
/// and floats that are given as a span are not copied, and neither are bytes.
struct tf_value {
  using value_type = std::variant<std::int64_t, float, bytes_view, std::span<const std::int64_t>,
                                  std::span<const float>, std::span<const bytes_view>>;
  std::string_view feature;
  value_type values;

  /// Throws `errc::argument` for an integer that is no `std::int64_t`.
  template <std::integral N>
  tf_value(std::string_view name, N one) : feature(name), values(detail::tf_integer(one, name)) {}
  template <std::floating_point N>
  tf_value(std::string_view name, N one) noexcept : feature(name), values(static_cast<float>(one)) {}
  tf_value(std::string_view name, bytes_view one) noexcept : feature(name), values(one) {}
  tf_value(std::string_view name, std::string_view one) noexcept : feature(name), values(bytes_of(one)) {}
  tf_value(std::string_view name, const char* one) noexcept : tf_value(name, std::string_view(one)) {}
  tf_value(std::string_view name, std::span<const std::int64_t> all) noexcept : feature(name), values(all) {}
  tf_value(std::string_view name, std::span<const float> all) noexcept : feature(name), values(all) {}
  tf_value(std::string_view name, std::span<const bytes_view> all) noexcept : feature(name), values(all) {}
};

/// The bytes of a `tf.train.Example`, for `tfrecord_writer`.
///
///     const std::vector<float> box{0.1f, 0.2f, 0.8f, 0.9f};
///     const std::string example = tf_example_bytes({{"image/encoded", jpeg_bytes}, {"label", 7}, {"box", box}});
///
/// In: the values of each feature. Out: the bytes that TensorFlow's `SerializeToString` gives for features in
/// this order; numbers are packed. Throws `errc::argument` for two features of one name.
/// Threads: any number at once. Source: tensorflow, core/example/{example,feature}.proto.
[[nodiscard]] std::string tf_example_bytes(std::span<const tf_value> features);

[[nodiscard]] inline std::string tf_example_bytes(std::initializer_list<tf_value> features) {
  return tf_example_bytes(std::span<const tf_value>(features.begin(), features.size()));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/tf_example_bytes.ipp>
#endif
