// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/workers/thread.hpp>

#include "support/catch.hpp"

#include <thread>

namespace thread_test {

struct job {
  std::thread::id ran_in;
  void run() noexcept { ran_in = std::this_thread::get_id(); }
};

TEST_CASE("joined_thread runs a member in another thread, once it is started", "[thread]") {
  job one;
  penstock::joined_thread thread;
  CHECK_FALSE(thread.joinable());
  thread.start<&job::run>(one);
  CHECK(thread.joinable());
  thread.join();
  CHECK_FALSE(thread.joinable());
  CHECK(one.ran_in != std::thread::id{});
  CHECK(one.ran_in != std::this_thread::get_id());
  thread.join();  // a second join does nothing
}

TEST_CASE("joined_thread is joined on destruction, and may be restarted", "[thread]") {
  job one;
  {
    penstock::joined_thread thread;
    thread.start<&job::run>(one);
    thread.join();
    one.ran_in = {};
    thread.start<&job::run>(one);
  }
  CHECK(one.ran_in != std::thread::id{});
}

}  // namespace thread_test
