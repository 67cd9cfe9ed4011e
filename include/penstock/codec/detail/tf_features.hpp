// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <vector>

/// The features of a `tf.train.Example`, found in its bytes without an object for each of them.
/// Source: tensorflow, core/example/{example,feature}.proto; the protocol buffers' encoding guide.
namespace penstock::inline v0_1::detail {

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

/// The values of a feature, in the order of the message. An absent feature has none. Throw `errc::format`,
/// with the offset in `example`, for a feature with values of another kind.
void read_tf_values(bytes_view example, const tf_feature& one, std::vector<std::int64_t>& into);
void read_tf_values(bytes_view example, const tf_feature& one, std::vector<float>& into);
void read_tf_values(bytes_view example, const tf_feature& one, std::vector<bytes_view>& into);

/// The values of a list of features, one feature a step, and how many of them there are behind each step.
/// Throw as `read_tf_values`.
void read_tf_steps(bytes_view example, const tf_feature& one, std::vector<std::int64_t>& into,
                   std::vector<std::size_t>& ends);
void read_tf_steps(bytes_view example, const tf_feature& one, std::vector<float>& into,
                   std::vector<std::size_t>& ends);
void read_tf_steps(bytes_view example, const tf_feature& one, std::vector<bytes_view>& into,
                   std::vector<std::size_t>& ends);

/// Throws errc::shape unless each step has this many values.
void check_tf_steps(std::string_view name, std::span<const std::size_t> ends, std::size_t wanted);

/// `number`: whether a single number was asked for, which may have a default, or be a list.
[[noreturn, gnu::cold]] void no_tf_value(std::string_view name, bool number);
[[noreturn, gnu::cold]] void other_tf_count(std::string_view name, std::uint64_t found, std::uint64_t wanted);
[[noreturn, gnu::cold]] void tf_value_out_of_range(std::string_view name);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/tf_features.ipp>
#endif
