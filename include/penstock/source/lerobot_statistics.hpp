// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// What a LeRobot data set says of a feature: a number for each element of a vector, or for each channel of a
/// camera, whose values are from 0 to 1. Those of a camera are `channel_statistics`, for `normalize`; those
/// of a vector are for `mean_std` and `min_max`.
///
///     const lerobot_statistics camera{.mean = {0.4, 0.5, 0.6}, .std = {0.2, 0.2, 0.3}};
///     const auto operation = normalize<3>(camera);
struct lerobot_statistics {
  std::vector<double> mean = {}, std = {}, min = {}, max = {};

  /// Throws `errc::argument` for another number of channels.
  template <class Channels>
    requires requires(Channels all) { all.mean[0] = all.std[0] = 0.0; }
  operator Channels()
      const {  // NOLINT(google-explicit-constructor): so that it is an argument of `normalize`
    Channels all;
    if (mean.size() != all.mean.size() || std.size() != all.std.size())
      throw error(errc::argument, {"the statistics are of ", mean.size(), " channels, and ", all.mean.size(),
                                   " are asked for"});
    std::copy(mean.begin(), mean.end(), all.mean.begin());
    std::copy(std.begin(), std.end(), all.std.begin());
    return all;
  }
};

/// An array of `float` whose elements are scaled when it is written. `Scaling`: what `mean_std` makes.
template <class Array, class Scaling>
class scaled_array {
 public:
  using unfinished = void;
  using value_type = float;

  scaled_array(const Array& array, const Scaling& scaling, buffer& scratch)
      : array_(array), scaling_(&scaling), scratch_(&scratch) {
    if (const extents all = array.shape(); all.elements() % scaling.size() != 0)
      throw error(errc::shape, {scaling.describe(), ": the statistics are of ", scaling.size(),
                                " elements, and the array is of shape ", to_string(all)});
  }

  [[nodiscard]] extents shape() const { return array_.shape(); }
  void write_to(float* to) const {
    const extents all = shape();
    write_array(array_, destination<float>(to, all));
    scaling_->apply(to, detail::to_size(all.elements()));
  }
  [[nodiscard]] tensor_view<const float> finish() const {
    const extents all = shape();
    scratch_->resize_for_overwrite(detail::to_size(all.elements()) * sizeof(float));
    auto* const values = reinterpret_cast<float*>(scratch_->data());
    write_to(values);
    return {values, all};
  }

 private:
  Array array_;
  const Scaling* scaling_;
  buffer* scratch_;
};

/// What `mean_std` and `min_max` make: a function for `map`.
class statistics_scaling {
 public:
  using accepts_call = void;
  struct scratch {
    buffer values;
  };

  /// times * (value - minus[i]) / by[i] + plus, in this order, with one number for each element.
  statistics_scaling(std::string_view name, float times, const std::vector<double>& minus,
                     const std::vector<double>& by, float plus)
      : name_(name), times_(times), plus_(plus) {
    if (minus.empty() || minus.size() != by.size())
      throw error(errc::argument, {name, ": the statistics have ", minus.size(), " and ", by.size(),
                                   " numbers, where one for each element is needed"});
    for (std::size_t i = 0; i < minus.size(); ++i)
      each_.push_back({static_cast<float>(minus[i]), static_cast<float>(by[i])});
  }

  template <array_expression Array>
    requires std::same_as<typename std::remove_cvref_t<Array>::value_type, float>
  [[nodiscard]] auto operator()(const Array& array, const call<scratch>& c) const {
    return scaled_array<Array, statistics_scaling>(array, *this, c.scratch.values);
  }
  [[nodiscard]] std::string describe() const { return std::string(name_); }

  [[nodiscard]] std::size_t size() const noexcept { return each_.size(); }
  void apply(float* values, std::size_t count) const noexcept {
    for (float* const end = values + count; values != end; values += each_.size())
      for (std::size_t i = 0; i < each_.size(); ++i)
        values[i] = times_ * (values[i] - each_[i].minus) / each_[i].by + plus_;
  }

 private:
  struct one {
    float minus, by;
  };
  std::vector<one> each_;
  std::string_view name_;
  float times_, plus_;
};

/// (value - mean) / (std + 1e-8) for each element of a vector: LeRobot's `NormalizationMode.MEAN_STD`.
///
/// In: an array of `float` of any shape, whose last dimensions are those of the statistics, as a window of
/// rows has them. Out: an array of the same shape, which is scaled where it stands in the batch. Pointwise.
/// Cost: one pass over the values. Throws `errc::argument` for statistics without mean or deviation,
/// `errc::shape`, for a sample, if they do not fit the array.
///
///     const auto operation = mean_std({.mean = {0.0, 0.5}, .std = {1.0, 2.0}});
[[nodiscard]] inline statistics_scaling mean_std(const lerobot_statistics& of) {
  std::vector<double> by;
  for (const double one : of.std) by.push_back(static_cast<float>(one) + 1e-8f);
  return {"mean_std", 1, of.mean, by, 0};
}
/// 2 (value - min) / (max - min) - 1 for each element, from -1 to 1: LeRobot's `NormalizationMode.MIN_MAX`;
/// what is always the same becomes -1. Otherwise as `mean_std`.
///
///     const auto operation = min_max({.min = {-1.0, 0.0}, .max = {1.0, 10.0}});
[[nodiscard]] inline statistics_scaling min_max(const lerobot_statistics& of) {
  std::vector<double> by;
  for (std::size_t i = 0; i < std::min(of.min.size(), of.max.size()); ++i) {
    const float range = static_cast<float>(of.max[i]) - static_cast<float>(of.min[i]);
    by.push_back(range == 0 ? 1e-8f : range);
  }
  return {"min_max", 2, of.min, by, -1};
}

}  // namespace penstock::inline v0_1
