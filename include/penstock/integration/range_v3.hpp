// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<range/v3/range_fwd.hpp>)
#error "penstock/integration/range_v3.hpp needs range-v3: link penstock::range_v3"
#endif

#include <penstock/run/run.hpp>

#include <range/v3/iterator/default_sentinel.hpp>
#include <range/v3/view/interface.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <iterator>

/// Runs and epochs as range-v3 ranges.
///
/// A named run is already an input range of range-v3, without this header: `run | ranges::views::take(3)`.
/// This header adds the epochs, as views: small values that you can pipe, store and return. And `from` takes
/// views of range-v3 as it takes those of the standard library: a view with random access and a known size
/// (`zip_with`, `concat`, `iota`, `transform`, ...) is an indexed source, read by all workers concurrently;
/// any other, such as a `filter`, is read forward.
namespace penstock::inline v0_1 {

/// One epoch of a run as a view: an input range. Refers to the run, which must not move; only one thread at a
/// time may iterate. Copying is free. Like a loop over `run.epoch(n)`, `begin` starts at the beginning of the
/// epoch; if a state put the run into the middle of it, the first `begin` resumes there. The elements are the
/// run's batches, by reference, each valid until the next one is requested. Throws what the run throws.
template <class Run>
class epoch_view : public ranges::view_interface<epoch_view<Run>, ranges::finite> {
 public:
  epoch_view() = default;
  epoch_view(Run& owner, std::uint64_t number) noexcept : run_(&owner), number_(number) {}

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] auto begin() const { return typename Run::epoch_range(run_, number_).begin(); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Run* run_ = nullptr;
  std::uint64_t number_ = 0;
};

/// One epoch as a view, like `run.epoch(number)`.
///
///     for (auto&& b : epoch_of(run, 3) | ranges::views::stride(2)) half += total(b);
template <class Plan>
[[nodiscard]] epoch_view<run<Plan>> epoch_of(run<Plan>& r, std::uint64_t number) {
  static_cast<void>(r.epoch(number));  // lets workers read ahead to its end
  return {r, number};
}

/// The epochs up to `count`, starting at the run's position, as a view of views, like `run.epochs(count)`.
/// Joined, they form one range of batches, and workers read ahead across the end of an epoch. `join` requests
/// the next batch when it leaves one: for an exact position, call `run.state()` inside the loop.
///
///     const std::vector<int> totals =
///         epochs_of(run, 3) | ranges::views::join | ranges::views::transform(total) | ranges::to<std::vector>;
template <class Plan>
[[nodiscard]] auto epochs_of(run<Plan>& r, std::uint64_t count) {
  const std::uint64_t first = (*r.epochs(count).begin()).number();
  return ranges::views::iota(first, std::max(first, count)) |
         ranges::views::transform(
             [owner = &r](std::uint64_t number) { return epoch_view<run<Plan>>(*owner, number); });
}

template <class Plan>
void epoch_of(run<Plan>&&, std::uint64_t) = delete;  // the view would outlive the run
template <class Plan>
void epochs_of(run<Plan>&&, std::uint64_t) = delete;

}  // namespace penstock::inline v0_1
