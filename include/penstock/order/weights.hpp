// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>

#include <initializer_list>
#include <utility>
#include <vector>

/// How the sources of a `mix` share the samples of an epoch.
namespace penstock::inline v0_1 {

namespace detail {

/// A list that `mix` is told: a number for each source, or knots.
template <class T>
class for_each_source {
 public:
  for_each_source(std::initializer_list<T> each) : values_(each) {}
  explicit for_each_source(std::vector<T> each) : values_(std::move(each)) {}
  [[nodiscard]] const std::vector<T>& values() const noexcept { return values_; }

 private:
  std::vector<T> values_;
};

}  // namespace detail

/// The weights of the sources: over any long enough stretch, source k gives the fraction weights[k] / sum.
/// Above 0, in any unit. Decimal fractions (up to 15 digits) are taken as written: 0.7 is 7 / 10.
struct weights : detail::for_each_source<double> {
  using for_each_source::for_each_source;
};

/// A knot of a `weight_schedule`: the weights at sample `sample`.
struct weight_knot {
  std::uint64_t sample = 0;
  std::vector<double> weights;
};

/// Weights that change as samples are delivered: at each knot they are the knot's (each divided by the knot's
/// sum), between two knots they change linearly, and before the first and after the last knot they stay
/// constant. Samples are counted over all ranks; if epochs are cut from an endless mixture (`cycle`,
/// `samples_per_epoch`), also over all epochs, otherwise from the beginning of each epoch.
///
/// A weight may be 0 at some knots. Any number of sources may start at 0 and come in later; at most two may
/// return to 0 after they have given samples. A weight of 1e-6 is nearly 0 and always allowed.
///
///     auto slowly = mix(weight_schedule({{0, {0.9, 0.1}}, {1'000'000, {0.5, 0.5}}}), web, books);
class weight_schedule : detail::for_each_source<weight_knot> {
 public:
  using for_each_source::for_each_source;
  [[nodiscard]] const std::vector<weight_knot>& knots() const noexcept { return values(); }
};

/// Fractions of an epoch: like `weights`, but every epoch has the same number of samples from each source,
/// and an epoch has as many samples as the sources together, or as `samples_per_epoch` says.
struct proportions : detail::for_each_source<double> {
  using for_each_source::for_each_source;
};

/// How often an epoch passes through each source: 2 gives each sample twice, 0.5 gives each sample every
/// other epoch. What one epoch leaves out, the next epoch gives.
struct repeats : detail::for_each_source<double> {
  using for_each_source::for_each_source;
};

/// How many samples of each source an epoch has. What one epoch leaves out, the next epoch gives.
struct choose : detail::for_each_source<std::uint64_t> {
  using for_each_source::for_each_source;
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const noexcept { return values(); }
};

/// When an epoch of `weights` or of a `weight_schedule` ends.
///   first_exhausted   when one source's share reaches its size: no sample appears twice
///   all_exhausted     when every source's share has reached its size: each sample appears at least once, and
///                     sources exhausted earlier restart, in a new epoch of their own
///   cycle             never (2^63 samples, one epoch), or after `samples_per_epoch`; each source passes
///                     through its epochs at its own pace
enum class stopping { first_exhausted, all_exhausted, cycle };

/// The length of an epoch of `mix`: epochs are cut one after another from an endless mixture; with
/// `proportions`, the number of samples that are divided.
struct samples_per_epoch {
  constexpr explicit samples_per_epoch(any_count count_) : count(count_.of("samples_per_epoch")) {}
  std::uint64_t count;
};

}  // namespace penstock::inline v0_1
