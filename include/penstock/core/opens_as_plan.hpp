// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/plan.hpp>

#include <iterator>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// Walks over the samples of a source. No iterator, so that a source is no range: `|` is ours.
template <class Iterator>
class source_walk {
 public:
  explicit source_walk(Iterator at) : at_(std::move(at)) {}
  [[nodiscard]] decltype(auto) operator*() const { return *at_; }
  source_walk& operator++() {
    ++at_;
    return *this;
  }
  friend bool operator==(const source_walk& walk, std::default_sentinel_t end) { return walk.at_ == end; }

 private:
  Iterator at_;
};

}  // namespace detail

/// The base of a source, which is then opened and looped over as the plan of it alone is:
/// `from(samples).open()`, `for (auto&& x : from(samples))`.
template <class Source>
struct opens_as_plan {
  /// Gives a run, as `plan::open` does.
  template <class... Options>
  [[nodiscard]] auto open(Options&&... options) const {
    return alone().open(std::forward<Options>(options)...);
  }
  /// One pass over an epoch, as `plan::epoch` gives it.
  template <class S = Source>
  [[nodiscard]] auto epoch(any_count number) const {
    return plan<S>(alone()).epoch(number);
  }
  /// One pass, where every epoch is the same; a mistake where they differ.
  template <class S = Source>
  [[nodiscard]] auto begin() const -> detail::source_walk<decltype(std::declval<const plan<S>&>().begin())> {
    return detail::source_walk(alone().begin());
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  // What a run has and a source has not.
  template <class S = Source>
  [[nodiscard]] auto epochs(any_count count) const {
    return plan<S>(alone()).epochs(count);
  }
  template <class State = penstock::state>
  [[nodiscard]] State state() const {
    return alone().template state<State>();
  }

 private:
  [[nodiscard]] auto alone() const { return plan<Source>(static_cast<const Source&>(*this)); }
};

}  // namespace penstock::inline v0_1
