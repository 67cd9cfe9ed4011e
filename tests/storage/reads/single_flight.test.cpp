// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/reads/single_flight.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace ps = penstock;
using namespace std::chrono_literals;

TEST_CASE("storage/reads/single_flight: an error goes to all who wait, and the next one asks again") {
  const penstock_test::deadline limit("a question");
  ps::detail::single_flight flight;
  std::atomic<int> asked{0}, failed{0};
  std::atomic<bool> answers{false};
  const auto ask = [&] {
    try {
      flight.ask(3, [&] {
        ++asked;
        while (!answers) std::this_thread::sleep_for(1ms);
        throw ps::error(ps::errc::io, "no answer");
      });
    } catch (const ps::error&) {
      ++failed;
    }
  };
  {
    std::jthread first(ask);
    while (asked == 0) std::this_thread::sleep_for(1ms);
    flight.ask(4, [] {});  // another object does not wait
    std::jthread second(ask), third(ask);
    std::this_thread::sleep_for(20ms);  // so that they wait
    answers = true;
  }
  CHECK(failed == 3);
  CHECK(asked == 1);
  ask();
  CHECK(asked == 2);
}

TEST_CASE("storage/reads/single_flight: who comes after a cancellation asks again") {
  const penstock_test::deadline limit("a cancelled question");
  ps::detail::single_flight flight;
  std::atomic<int> asked{0};
  std::atomic<bool> answers{false}, stopped{false};
  std::jthread first([&] {
    try {
      flight.ask(3, [&] {
        ++asked;
        while (!answers) std::this_thread::sleep_for(1ms);
        throw ps::error(ps::errc::stopped, "the read was cancelled");
      });
    } catch (const ps::error& e) {
      stopped = e.code() == ps::errc::stopped;
    }
  });
  while (asked == 0) std::this_thread::sleep_for(1ms);
  flight.cancel();
  std::jthread second([&] { flight.ask(3, [&] { ++asked; }); });
  std::this_thread::sleep_for(20ms);
  answers = true;
  first.join();
  second.join();
  CHECK(stopped);
  CHECK(asked == 2);
}
