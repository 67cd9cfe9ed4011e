// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/run.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

/// Shared by the files of the sweep, whose program replaces operator new.
namespace penstock_sweep {

namespace ps = penstock;

/// Counts down to a failure: the n-th `pass()` is false, and those before and after are true.
class countdown {
 public:
  void arm(std::int64_t n) noexcept {
    fired_.store(false);
    left_.store(n);
  }
  void disarm() noexcept { left_.store(0); }
  [[nodiscard]] bool fired() const noexcept { return fired_.load(); }
  [[nodiscard]] bool pass() noexcept {
    if (left_.load(std::memory_order_relaxed) <= 0 || left_.fetch_sub(1) != 1) return true;
    fired_.store(true);
    return false;
  }

 private:
  std::atomic<std::int64_t> left_{0};
  std::atomic<bool> fired_{false};
};

inline countdown allocations;              // of operator new
inline std::atomic<std::int64_t> live{0};  // allocations that are not released

/// The batches of a plan as text, in brackets. Ends early if something is thrown.
template <class Plan>
std::string sequence_of(const Plan& plan, bool& whole) {
  std::string all;
  whole = false;
  try {
    auto run = plan.open();
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch) {
        if constexpr (ps::any_batch<decltype(b)>) {
          std::string line = "[";
          const auto values = b.values();
          if constexpr (requires { values.flat(); }) {
            const auto valid = b.valid();
            const std::size_t row = values.size() / b.size() * sizeof(*values.data());
            for (std::size_t i = 0; i < b.size(); ++i)
              if (valid[i] != 0) line.append(reinterpret_cast<const char*>(values.data()) + i * row, row);
          } else {
            for (std::size_t i = 0; i < b.valid_size(); ++i) {
              const auto value = values[i];
              if constexpr (requires { std::to_string(value); })
                line += std::to_string(value);
              else
                line.append(reinterpret_cast<const char*>(value.data()), value.size());
              line += ' ';
            }
          }
          all += line + "]";
        } else {
          all += std::to_string(b) + " ";
        }
      }
    whole = true;
  } catch (const std::bad_alloc&) {
  } catch (const std::exception&) {
  }
  return all;
}

/// Makes the first, second, ... operation of a kind fail until none fails any more; returns how many did.
/// `least`: at least this many are tried, for runs whose number of operations varies.
template <class Make, class Prepare>
std::uint64_t sweep(countdown& kind, Make make, Prepare prepare, std::uint64_t least = 0) {
  bool whole = false;
  const std::string expected = sequence_of(make(), whole);
  REQUIRE(whole);
  (void)sequence_of(make(), whole);  // one-time allocations of the program are done
  std::uint64_t failed = 0;
  for (std::int64_t n = 1;; ++n) {
    prepare();
    const std::int64_t before = live.load();
    bool ended = false, true_beginning = false, fired = false;
    {
      std::string seen;
      kind.arm(n);
      try {
        seen = sequence_of(make(), ended);
      } catch (const std::exception&) {  // from the plan itself, or from the test's own texts
      }
      kind.disarm();
      fired = kind.fired();
      true_beginning = ended ? seen == expected : expected.compare(0, seen.size(), seen) == 0;
    }
    if (!true_beginning || live.load() != before) {
      INFO("failure number " << n);
      CHECK(true_beginning);
      CHECK(live.load() == before);
      return static_cast<std::uint64_t>(n);
    }
    if (fired) ++failed;
    if (!fired) CHECK(ended);
    if (!fired && static_cast<std::uint64_t>(n) > least) return failed;
  }
}

template <class Make>
std::uint64_t sweep(countdown& kind, Make make) {
  return sweep(kind, make, [] {});
}

}  // namespace penstock_sweep
