// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/tf_example_bytes.hpp>

#include <penstock/core/error.hpp>

#include <bit>
#include <unordered_set>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void no_tf_integer(std::string_view feature, std::uint64_t value) {
  throw error(errc::argument, {"the value ", value, " of the feature '", feature,
                               "' is beyond the integers of an example, which go to 2^63 - 1"});
}

inline void put_varint(std::string& into, std::uint64_t value) {
  for (; value >= 128; value >>= 7) into += static_cast<char>((value & 127) | 128);
  into += static_cast<char>(value);
}

// A field of bytes: a text, a message, or packed numbers.
inline void put_content(std::string& into, std::uint32_t number, std::string_view content) {
  put_varint(into, number << 3 | 2);
  put_varint(into, content.size());
  into += content;
}

// Appends the values of a feature to its list, and returns the list's number.
inline std::uint32_t put_values(std::string& list, std::span<const std::int64_t> all) {
  std::string packed;
  for (const std::int64_t value : all) put_varint(packed, std::bit_cast<std::uint64_t>(value));
  if (!packed.empty()) put_content(list, 1, packed);
  return 3;
}

inline std::uint32_t put_values(std::string& list, std::span<const float> all) {
  std::string packed;
  for (const float value : all) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned i = 0; i < 32; i += 8) packed += static_cast<char>(bits >> i & 255);
  }
  if (!packed.empty()) put_content(list, 1, packed);
  return 2;
}

inline std::uint32_t put_values(std::string& list, std::span<const bytes_view> all) {
  for (const bytes_view value : all) put_content(list, 1, text_of(value));
  return 1;
}

inline std::string tf_feature_bytes(const tf_value& one) {
  std::string list;
  const std::uint32_t kind = std::visit(
      [&]<class V>(const V& values) {
        if constexpr (requires { put_values(list, values); })
          return put_values(list, values);
        else
          return put_values(list, std::span<const V>(&values, 1));
      },
      one.values);
  std::string feature;
  put_content(feature, kind, list);
  return feature;
}

}  // namespace detail

PENSTOCK_INLINE std::string tf_example_bytes(std::span<const tf_value> features) {
  std::unordered_set<std::string_view> names;
  std::string all;
  for (const tf_value& one : features) {
    if (!names.insert(one.feature).second)
      throw error(errc::argument, {"two features are called '", one.feature, "'"});
    std::string entry;
    detail::put_content(entry, 1, one.feature);
    detail::put_content(entry, 2, detail::tf_feature_bytes(one));
    detail::put_content(all, 1, entry);
  }
  std::string example;
  detail::put_content(example, 1, all);
  return example;
}

}  // namespace penstock::inline v0_1
