// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/call.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// Options of `spec_augment`, with the policy LD of the paper for utterances of LibriSpeech.
struct spec_augment_options {
  std::uint32_t time_masks = 2;    ///< how many stretches of frames are masked
  std::uint32_t time_width = 100;  ///< the largest number of frames of one
  double time_share = 1;           ///< and the largest share of all frames that one may be
  std::uint32_t freq_masks = 2;    ///< how many bands of mels
  std::uint32_t freq_width = 27;   ///< the largest number of mels of one
  float value = 0;                 ///< what is written there,
  bool mean = false;               ///< or the mean of the features
  bool mels_first = false;         ///< the features are (mels, frames) instead of (frames, mels)
};

namespace mistakes {

struct features_wanted : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: spec_augment works on features, which are arrays of real numbers with two "
                  "dimensions; name their field, as in map<\"mels\">(spec_augment())");
  }
};

}  // namespace mistakes

namespace detail {

/// A mask: so many rows, or columns, from the first one.
struct feature_mask {
  std::uint64_t first, width;
};
[[nodiscard]] inline feature_mask draw_mask(std::uint64_t widest, std::uint64_t length, rng& random) {
  const std::uint64_t width = random.below(std::min(widest, length) + 1);
  return {random.below(length - width + 1), width};
}

template <class V>
concept real_array = array_expression<V> && std::floating_point<typename std::remove_cvref_t<V>::value_type>;
template <class V>
concept real_view = requires(const std::remove_cvref_t<V>& view) {
  requires std::floating_point<typename std::remove_cvref_t<V>::value_type>;
  tensor_view<const typename std::remove_cvref_t<V>::value_type>(view);
};

[[noreturn, gnu::cold]] inline void refuse_features(const extents& shape) {
  throw error(errc::shape, {"spec_augment works on features of two dimensions, and these have the shape ",
                            to_string(shape)})
      .in_stage("spec_augment");
}

}  // namespace detail

/// Features of which some are masked, as an array that is not computed yet: the features write themselves to
/// the destination, and then the masks are written over them. Made by `spec_augment`.
template <class Features>
class spec_augmented {
 public:
  using unfinished = void;
  using value_type = typename Features::value_type;

  spec_augmented(Features features, const spec_augment_options& options, const rng& random, buffer& memory)
      : features_(std::move(features)), options_(options), random_(random), memory_(&memory) {
    if (shape().rank() != 2) [[unlikely]]
      detail::refuse_features(shape());
  }

  [[nodiscard]] extents shape() const { return features_.shape(); }
  void write_to(const destination<value_type>& into) const {
    if constexpr (array_expression<Features>)
      write_array(features_, into);
    else
      into.copy_from(tensor_view<const value_type>(features_));
    const auto value = options_.mean ? mean_of(into) : static_cast<value_type>(options_.value);
    rng random = random_;
    const std::size_t time = options_.mels_first ? 1 : 0;
    const std::uint64_t frames = into.shape()[time], mels = into.shape()[1 - time];
    const std::uint64_t longest = std::min<std::uint64_t>(
        options_.time_width, static_cast<std::uint64_t>(options_.time_share * static_cast<double>(frames)));
    for (std::uint32_t i = 0; i < options_.time_masks; ++i)
      mask(into, time, detail::draw_mask(longest, frames, random), value);
    for (std::uint32_t i = 0; i < options_.freq_masks; ++i)
      mask(into, 1 - time, detail::draw_mask(options_.freq_width, mels, random), value);
  }
  /// Valid until the worker's next sample.
  [[nodiscard]] tensor_view<const value_type> finish() const {
    memory_->resize_for_overwrite(detail::to_size(shape().elements()) * sizeof(value_type));
    auto* const values = reinterpret_cast<value_type*>(memory_->data());
    write_to(destination<value_type>(values, shape()));
    return {values, shape()};
  }

 private:
  static void mask(const destination<value_type>& into, std::size_t along, const detail::feature_mask& drawn,
                   value_type value) {
    const std::size_t first = detail::to_size(drawn.first), end = first + detail::to_size(drawn.width);
    const std::size_t rows = detail::to_size(into.shape()[0]), columns = detail::to_size(into.shape()[1]);
    for (std::size_t r = along == 0 ? first : 0; r < (along == 0 ? end : rows); ++r) {
      const destination<value_type> row = into[r];
      for (std::size_t c = along == 0 ? 0 : first; c < (along == 0 ? columns : end); ++c) row(c) = value;
    }
  }
  [[nodiscard]] static value_type mean_of(const destination<value_type>& into) {
    double sum = 0;
    for (std::uint64_t r = 0; r < into.shape()[0]; ++r) {
      const destination<value_type> row = into[detail::to_size(r)];
      for (std::uint64_t c = 0; c < into.shape()[1]; ++c) sum += static_cast<double>(row(c));
    }
    const std::uint64_t count = into.shape().elements();
    return count == 0 ? value_type{} : static_cast<value_type>(sum / static_cast<double>(count));
  }

  Features features_;
  spec_augment_options options_;
  rng random_;
  buffer* memory_;
};

/// What `spec_augment` makes: a function for `map`.
class spec_augment_operation {
 public:
  using accepts_call = void;
  struct scratch {
    buffer memory;
  };
  template <class>
  static constexpr bool uses_random = true;
  template <class V>
  using wrong_argument_for =
      mistakes::unless<detail::real_array<V> || detail::real_view<V>, mistakes::features_wanted>;

  /// Throws `errc::argument`, see `spec_augment`.
  explicit spec_augment_operation(const spec_augment_options& options) : options_(options) {
    if (!(options_.time_share >= 0 && options_.time_share <= 1))
      throw error(errc::argument, "spec_augment: time_share is a share of all frames, from 0 to 1");
    if (!std::isfinite(options_.value))
      throw error(errc::argument, "spec_augment: value, which is written over features, is a finite number");
  }

  /// In: features that are not computed yet, which are moved along.
  template <detail::real_array V>
  [[nodiscard]] auto operator()(V&& features, const call<scratch>& c) const {
    return spec_augmented<std::remove_cvref_t<V>>(std::forward<V>(features), options_, c.random(),
                                                  c.scratch.memory);
  }
  /// In: features in memory.
  template <detail::real_view V>
    requires(!detail::real_array<V>)
  [[nodiscard]] auto operator()(const V& features, const call<scratch>& c) const {
    using view = tensor_view<const typename V::value_type>;
    return spec_augmented<view>(view(features), options_, c.random(), c.scratch.memory);
  }

 private:
  spec_augment_options options_;
};

/// Masks some stretches of frames and some bands of mels of a sound's features, so that a model does not
/// depend on any. The width of a mask is uniform from 0 to the largest, and then its place. torchaudio:
/// `TimeMasking` and `FrequencyMasking`, and `SpecAugment` with `.mean = true`, which draws widths below the
/// largest only.
///
/// In: an array of real numbers, computed or not, of the shape (frames, mels), or (mels, frames) with
/// `mels_first`. Out: an array expression of the same shape. Masks of features that are shorter than them are
/// as wide as these at most.
///
/// Pointwise; draws random numbers, the same for any number of workers and after a restore. No allocation
/// once the memory has grown. Cost: what is masked is written, besides the features; with `mean` they are
/// also read.
/// Throws `errc::argument` unless the share is from 0 to 1 and the value finite; `errc::shape`, for a sample,
/// if it has not two dimensions.
/// Source: Park et al., "SpecAugment: a simple data augmentation method for automatic speech recognition",
/// 2019, without its warping of time.
///
///     auto masked = map<"mels">(spec_augment({.time_masks = 10, .time_width = 80, .time_share = 0.05}));
[[nodiscard]] inline spec_augment_operation spec_augment(const spec_augment_options& options = {}) {
  return spec_augment_operation(options);
}

}  // namespace penstock::inline v0_1
