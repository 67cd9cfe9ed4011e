// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/order/tail.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/deadline.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

/// Shared by the tests of the engine: slow functions, a naive model of the cut, and readers of whole runs.
namespace engine_test {

using numbers = std::vector<std::uint64_t>;
/// The batches of an epoch, each as its valid values.
using batches = std::vector<numbers>;

/// 0, 1, ..., n - 1.
inline numbers iota(std::uint64_t n) {
  numbers all(static_cast<std::size_t>(n));
  for (std::uint64_t i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = i;
  return all;
}

/// Takes a random short time now and then, so that workers interleave differently in every run.
inline void dawdle(std::uint64_t x) {
  static thread_local std::uint64_t calls = 0;
  const std::uint64_t draw = penstock::mix64(x ^ (++calls << 20)) % 64;
  if (draw == 0) std::this_thread::sleep_for(std::chrono::microseconds(30));
  if (draw < 4) std::this_thread::yield();
}

/// A map that changes nothing but the timing.
struct slowly {
  std::uint64_t operator()(std::uint64_t x) const {
    dawdle(x);
    return x;
  }
};

/// An element that the engine does not treat as a plain number: a vector of one to three words that can be
/// checked.
inline std::vector<std::uint64_t> words_of(std::uint64_t x) {
  return std::vector<std::uint64_t>(static_cast<std::size_t>(1 + x % 3), x * 1000 + 7);
}

/// The batches of `b` that rank `rank` of `world` gets of an epoch in this order: the definition, step by
/// step.
template <class T>
std::vector<std::vector<T>> cut_naively(const std::vector<T>& order, std::uint64_t b, std::uint64_t rank,
                                        std::uint64_t world, penstock::tail policy, std::uint64_t lanes = 1) {
  std::vector<std::vector<T>> all;
  const std::uint64_t global = b * world;
  for (std::uint64_t first = 0; first < order.size(); first += global) {
    const std::uint64_t count = std::min<std::uint64_t>(global, order.size() - first);
    if (count < global && policy == penstock::tail::drop) break;
    std::vector<std::uint64_t> step;
    for (std::uint64_t lane = 0; lane < lanes; ++lane)
      for (std::uint64_t p = first; p < first + count; ++p)
        if (p % lanes == lane) step.push_back(p);
    const std::uint64_t divided = policy == penstock::tail::keep ? count : global;
    std::vector<T> mine;
    for (std::uint64_t i = divided * rank / world; i < divided * (rank + 1) / world; ++i)
      if (i < count) mine.push_back(order[static_cast<std::size_t>(step[static_cast<std::size_t>(i)])]);
    all.push_back(std::move(mine));
  }
  return all;
}

/// The valid values of a batch of numbers.
template <class Batch>
numbers values_of(const Batch& b) {
  numbers all;
  const auto values = b.values();
  for (std::size_t i = 0; i < b.valid_size(); ++i) all.push_back(static_cast<std::uint64_t>(values[i]));
  return all;
}

/// All batches of the epochs up to `epochs`, one list per epoch, starting at the run's position.
template <class Run>
std::vector<batches> read_epochs(Run& run, std::uint64_t epochs) {
  std::vector<batches> all;
  for (auto epoch : run.epochs(epochs)) {
    all.emplace_back();
    for (auto&& b : epoch) all.back().push_back(engine_test::values_of(b));
  }
  return all;
}

/// All batches of the epochs up to `epochs` of a plan, opened here with the given annotations.
template <class Plan>
std::vector<batches> read_plan(const Plan& plan, std::uint64_t epochs) {
  auto run = (plan | penstock::allow_empty).open();
  return read_epochs(run, epochs);
}

/// Calls `check(plan, name)` with the plan with many numbers of workers and depths; depth 0: unset.
template <class Plan, class Check>
void on_each_setting(const Plan& plan, Check check) {
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    for (const std::uint64_t depth : {2u, 3u, 8u})
      check(plan | penstock::workers(workers) | penstock::prefetch(depth - 1),
            std::to_string(workers) + " workers, depth " + std::to_string(depth));
  }
}
template <class Plan, class Check>
void on_default_depth(const Plan& plan, Check check) {
  for (const unsigned workers : {0u, 1u, 3u})
    check(plan | penstock::workers(workers), std::to_string(workers) + " workers");
}

/// A source that can only be read forward: 0 .. n - 1 in every epoch, plus 1,000,000 times the epoch.
class counting_source {
 public:
  using penstock_part = penstock::source_tag;
  using element = std::uint64_t;
  static constexpr std::string_view source_name = "counting";

  class reader {
   public:
    explicit reader(std::uint64_t n, std::uint64_t fails_at) : n_(n), fails_at_(fails_at) {}
    bool next(std::uint64_t& x) {
      dawdle(at_);
      if (at_ == fails_at_) throw penstock::error(penstock::errc::io, "the source broke");
      if (at_ == n_) return false;
      x = epoch_ * 1'000'000 + at_++;
      return true;
    }
    void rewind(std::uint64_t epoch) {
      epoch_ = epoch;
      at_ = 0;
    }

   private:
    std::uint64_t n_, fails_at_, at_ = 0, epoch_ = 0;
  };
  explicit counting_source(std::uint64_t n, std::uint64_t fails_at = ~std::uint64_t{0})
      : n_(n), fails_at_(fails_at) {}
  [[nodiscard]] std::string describe() const { return "counting(" + std::to_string(n_) + ")"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return n_; }
  [[nodiscard]] reader connect() const { return reader(n_, fails_at_); }

 private:
  std::uint64_t n_, fails_at_;
};
static_assert(penstock::forward_source<counting_source>,
              "the concept of forward sources asks for what this one has");

}  // namespace engine_test
