// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/workers/wait_watchdog.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace wait_watchdog_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/watchdog: a line for a long wait, none for short ones") {
  using namespace std::chrono_literals;
  std::atomic<int> explained{0};
  ps::watchdog_thread dog(40ms);
  const auto explain = [](const void* count, std::string& line) {
    ++*static_cast<std::atomic<int>*>(const_cast<void*>(count));
    line += "nothing in particular (this line is a test)";
  };
  dog.start(explain, &explained);
  dog.begin_wait();
  dog.end_wait();
  dog.begin_wait();
  for (int i = 0; i < 2000 && explained == 0; ++i) std::this_thread::sleep_for(5ms);
  dog.end_wait();
  CHECK(explained >= 1);
  dog.stop();
  CHECK(dog.lines() == static_cast<std::uint64_t>(explained));
}

TEST_CASE("run/watchdog: 0 means never, and stopping does not wait") {
  ps::watchdog_thread off(std::chrono::milliseconds(0));
  off.start([](const void*, std::string&) { FAIL("the watchdog is off"); }, nullptr);
  off.begin_wait();
  off.end_wait();
  CHECK(off.lines() == 0);
  ps::watchdog_thread slow(std::chrono::hours(1));
  slow.start([](const void*, std::string&) {}, nullptr);
  slow.begin_wait();
  slow.stop();
  CHECK(slow.lines() == 0);
}

}  // namespace wait_watchdog_test
