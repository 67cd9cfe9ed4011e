// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace penstock_test {

/// Ends the program with a message if a part of a test does not finish: a hang is a failure, not a pause.
///
///     deadline guard("stop while workers wait");
class deadline {
 public:
  explicit deadline(std::string what, std::chrono::seconds limit = std::chrono::seconds(900))
      : thread_([this, what = std::move(what), limit] {
          std::unique_lock held(lock_);
          if (over_changed_.wait_for(held, limit, [this] { return over_; })) return;
          std::fprintf(stderr, "deadline: '%s' did not end\n", what.c_str());
          std::abort();
        }) {}
  deadline(const deadline&) = delete;
  deadline& operator=(const deadline&) = delete;
  ~deadline() {
    {
      const std::lock_guard guard(lock_);
      over_ = true;
    }
    over_changed_.notify_one();
  }

 private:
  std::mutex lock_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::jthread thread_;
};

}  // namespace penstock_test
