// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores of a given latency and bandwidth, by arithmetic: no clock.

#include <penstock/run/engine/read_ahead/request_queue.hpp>

#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace request_limit_test {

namespace ps = penstock;

namespace {

/// A store: each request takes `latency`, plus up to `jitter`, and then its turn on a link.
struct store {
  double latency = 0.05, jitter = 0, bytes_per_second = 1e12;
  std::uint64_t request = 110'000;
  std::size_t refuses_above = 0;  // 0: never
};

/// A loader that always has requests waiting.
class busy_loader {
 public:
  busy_loader(ps::request_limit& limit, std::uint64_t seed) : limit_(&limit), random_(seed, 1, 2) {}

  /// Performs so many requests; returns the seconds that they took.
  double perform(const store& at, std::size_t requests, bool waiting = true) {
    const double since = now_;
    for (std::size_t i = 0; i < requests; ++i) {
      while (in_flight_.size() < limit_->now()) begin(at);
      const one first = in_flight_.top();
      in_flight_.pop();
      now_ = first.end;
      if (first.refused) {
        ++refused_;
        limit_->slow_down(nanoseconds(first.begin), nanoseconds(now_));
      } else {
        limit_->ended(nanoseconds(now_), at.request, waiting);
      }
      sum_ += static_cast<double>(limit_->now());
      ++count_;
    }
    return now_ - since;
  }
  /// The mean limit since the last call.
  double mean() {
    const double found = sum_ / count_;
    sum_ = count_ = 0;
    return found;
  }
  [[nodiscard]] std::size_t refused() const { return refused_; }

 private:
  struct one {
    double end = 0, begin = 0;
    bool refused = false;
    bool operator>(const one& other) const { return end > other.end; }
  };
  static std::uint64_t nanoseconds(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }
  void begin(const store& at) {
    limit_->begun(nanoseconds(now_));
    const bool refused = at.refuses_above != 0 && in_flight_.size() >= at.refuses_above;
    double end = now_ + at.latency + at.jitter * random_.uniform();
    if (!refused) {
      end = std::max(end, link_free_) + static_cast<double>(at.request) / at.bytes_per_second;
      link_free_ = end;
    }
    in_flight_.push({end, now_, refused});
  }

  ps::request_limit* limit_;
  ps::rng random_;
  std::priority_queue<one, std::vector<one>, std::greater<>> in_flight_;
  double now_ = 1, link_free_ = 0, sum_ = 0, count_ = 0;
  std::size_t refused_ = 0;
};

}  // namespace

TEST_CASE("run/request_limit: a store that is only far away gets as many requests as allowed, and soon") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ps::request_limit limit(64);
    CHECK(limit.now() == 16);
    busy_loader loader(limit, seed);
    const double took = loader.perform({.latency = 0.05, .jitter = 0.01 * static_cast<double>(seed)}, 200);
    CHECK(limit.now() == 64);
    CHECK(took < 0.5);  // with 16, it would be 0.6 s and more
    loader.mean();
    loader.perform({.latency = 0.05, .jitter = 0.03}, 20'000);
    CHECK(loader.mean() > 55);
  }
}

TEST_CASE("run/request_limit: a store that a few requests keep busy gets few") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    ps::request_limit limit(64);
    busy_loader loader(limit, seed);
    // 100 MB/s and 5 ms: 4.5 requests fill the link
    const store near{.latency = 0.005, .jitter = 0.002, .bytes_per_second = 100e6};
    loader.perform(near, 5000);
    loader.mean();
    const double took = loader.perform(near, 20'000);
    CHECK(took < 1.1 * 20'000 * 110'000 / 100e6);  // the link was used
    CHECK(loader.mean() < 24);
  }
}

TEST_CASE("run/request_limit: it follows a store that changes") {
  ps::request_limit limit(64);
  busy_loader loader(limit, 1);
  loader.perform({.latency = 0.004, .jitter = 0.001, .bytes_per_second = 100e6}, 5000);
  REQUIRE(limit.now() < 30);
  loader.perform({.latency = 0.1, .jitter = 0.01}, 10'000);
  CHECK(limit.now() > 50);
}

TEST_CASE("run/request_limit: a store that asks for fewer gets half, once for those in flight together") {
  ps::request_limit limit(64);
  limit.begun(1);
  limit.slow_down(1000, 2000);
  CHECK(limit.now() == 8);
  limit.slow_down(1000, 2001);
  limit.slow_down(1999, 2002);
  CHECK(limit.now() == 8);
  limit.slow_down(2000, 2500);
  CHECK(limit.now() == 4);
  for (std::uint64_t t = 3000; t < 3010; ++t) limit.slow_down(t, t + 1);
  CHECK(limit.now() == 1);

  ps::request_limit other(64);
  busy_loader loader(other, 3);
  const store strict{.latency = 0.02, .jitter = 0.005, .refuses_above = 20};
  loader.perform(strict, 20'000);
  CHECK(loader.refused() < 400);  // 2 %
  CHECK(loader.mean() > 10);
}

TEST_CASE("run/request_limit: it stays within its bounds") {
  ps::request_limit limit(4);
  CHECK(limit.now() == 4);
  busy_loader loader(limit, 4);
  loader.perform({}, 3000);
  CHECK(limit.now() <= 4);
  limit.bound(2);
  CHECK(limit.now() <= 2);
  limit.bound(0);
  CHECK(limit.now() == 1);
  loader.perform({}, 3000);
  CHECK(limit.now() == 1);
  limit.bound(8);
  loader.perform({}, 3000);
  CHECK(limit.now() > 4);
  CHECK(ps::request_limit(0).now() == 1);
}

TEST_CASE("run/request_limit: where nothing waits, nothing is learned") {
  ps::request_limit limit(64);
  busy_loader loader(limit, 5);
  loader.perform({}, 2000, false);
  CHECK(limit.now() == 16);
}

}  // namespace request_limit_test
