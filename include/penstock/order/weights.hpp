// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

/// How the sources of a `mix` share the samples of an epoch.
namespace penstock::inline v0_1 {

/// Weights of the sources: of any long enough stretch, source k gives the part weights[k] / sum. Above 0, in
/// any unit. Decimal fractions (up to 15 digits) are taken as they are written: 0.7 is 7 / 10.
class weights {
 public:
  weights(std::initializer_list<double> each) : values_(each) {}
  explicit weights(std::vector<double> each) : values_(std::move(each)) {}
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }

 private:
  std::vector<double> values_;
};

/// A point of a `weight_schedule`: from the first sample on, the weights are these at this one.
struct weight_knot {
  std::uint64_t sample = 0;
  std::vector<double> weights;
};

/// Weights that change with the samples that were given: at each knot they are the knot's (each divided by
/// the knot's sum), between two knots they go from one to the other in a straight line, and before the first
/// and behind the last they stay. Samples are those of all ranks; where epochs are cut from an endless
/// mixture (`cycle`, `samples_per_epoch`) they are counted over all epochs, else from the beginning of each.
///
/// A weight may be 0 at some knots: until a source comes in, without limit; after it has given samples, for
/// at most two of the sources. A weight of 1e-6 is nearly 0 and always allowed.
///
///     auto slowly = mix(weight_schedule({{0, {0.9, 0.1}}, {1'000'000, {0.5, 0.5}}}), web, books);
class weight_schedule {
 public:
  weight_schedule(std::initializer_list<weight_knot> knots) : knots_(knots) {}
  explicit weight_schedule(std::vector<weight_knot> knots) : knots_(std::move(knots)) {}
  [[nodiscard]] const std::vector<weight_knot>& knots() const noexcept { return knots_; }

 private:
  std::vector<weight_knot> knots_;
};

/// Parts of an epoch: like `weights`, but each epoch has the same number of samples of a source, and the
/// epoch has as many samples as the sources together, or as `samples_per_epoch` says.
class proportions {
 public:
  proportions(std::initializer_list<double> each) : values_(each) {}
  explicit proportions(std::vector<double> each) : values_(std::move(each)) {}
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }

 private:
  std::vector<double> values_;
};

/// How often an epoch goes through each source: 2 is each sample twice, 0.5 every other time. What is left
/// out of one epoch comes in the next.
class repeats {
 public:
  repeats(std::initializer_list<double> each) : values_(each) {}
  explicit repeats(std::vector<double> each) : values_(std::move(each)) {}
  [[nodiscard]] const std::vector<double>& values() const noexcept { return values_; }

 private:
  std::vector<double> values_;
};

/// How many samples of each source an epoch has. What is left out of one epoch comes in the next.
class choose {
 public:
  choose(std::initializer_list<std::uint64_t> each) : counts_(each) {}
  explicit choose(std::vector<std::uint64_t> each) : counts_(std::move(each)) {}
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }

 private:
  std::vector<std::uint64_t> counts_;
};

/// When an epoch of `weights` or of a `weight_schedule` ends.
///   first_exhausted   where the share of one source reaches its size: no sample comes twice
///   all_exhausted     where the share of every source has reached its size: each sample comes at least once,
///                     and sources that were through before begin again, in an epoch of their own
///   cycle             never (2^63 samples, one epoch), or after `samples_per_epoch`; each source goes through
///                     its epochs at its own pace
enum class stopping { first_exhausted, all_exhausted, cycle };

/// The length of an epoch of `mix`: epochs are cut one after another from a mixture without end; of
/// `proportions`, how many samples are divided.
struct samples_per_epoch {
  constexpr explicit samples_per_epoch(any_count count_) : count(count_.of("samples_per_epoch")) {}
  std::uint64_t count;
};

}  // namespace penstock::inline v0_1
