// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/workers/any_ring.hpp>

#include <penstock/run/engine/workers/ring.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace any_ring_test {

namespace ps = penstock;

namespace {

/// Records the calls of a ring.
struct listener : ps::ring_work {
  ps::live_limits all{1, 1, 1, 0};
  listener() {
    limits = &all;
    number = 0;
    on_grain = [](ps::ring_work& w, std::uint64_t s, std::uint64_t grain) noexcept {
      static_cast<listener&>(w).grains.emplace_back(s, grain);
    };
    on_block = [](ps::ring_work& w, std::uint64_t s) noexcept {
      static_cast<listener&>(w).finished.push_back(s);
    };
    on_wait = [](ps::ring_work& w, bool begins) noexcept { static_cast<listener&>(w).waits += begins; };
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> grains;
  std::vector<std::uint64_t> finished;
  int waits = 0;
};

/// A ring without a protocol: one thread, and everything is ready at once.
class made_up_ring {
 public:
  static inline int alive = 0;
  made_up_ring(std::size_t, std::uint64_t grains, unsigned) : grains_(grains) { ++alive; }
  ~made_up_ring() { --alive; }
  [[nodiscard]] const std::atomic<bool>& stop_flag() const noexcept { return stop_; }
  void open(std::uint64_t s) noexcept { opened_ = s; }
  [[nodiscard]] bool is_ready(std::uint64_t s) noexcept { return s <= opened_; }
  [[nodiscard]] bool wait_ready(std::uint64_t s) noexcept { return s <= opened_ && !stop_; }
  void stop() noexcept { stop_ = true; }
  template <class Work>
  void serve(Work& work) noexcept {
    serve_here(work, opened_);
  }
  template <class Work>
  bool help(Work& work, std::uint64_t end) noexcept {
    work.evaluate(end - 1, 0);
    return end > opened_;
  }
  template <class Work>
  void serve_here(Work& work, std::uint64_t s) noexcept {
    for (std::uint64_t g = 0; g < grains_; ++g) work.evaluate(s, g);
    work.finish(s);
  }

 private:
  std::uint64_t grains_, opened_ = 0;
  std::atomic<bool> stop_{false};
};

}  // namespace

TEST_CASE("run/any_ring: the library's own ring gives each grain once and each block when complete") {
  ps::any_ring ring = ps::any_ring::own(2, 3, 0);
  CHECK(ring.blocks() == 2);
  listener here;
  for (std::uint64_t s = 0; s < 5; ++s) {
    ring.open(s);
    CHECK_FALSE(ring.is_ready(s));
    ring.serve_here(here, s);
    CHECK(ring.wait_ready(s));
  }
  CHECK(here.grains.size() == 15);
  CHECK(here.finished == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
  CHECK_FALSE(ring.stopped());
  std::thread worker([&] {
    listener there;
    ring.serve(there);
  });
  ring.stop();
  worker.join();
  CHECK(ring.stopped());
  CHECK(ring.stop_state().stopped_for_sure());
}

TEST_CASE("run/any_ring: any type with the calls of a ring works, and is destroyed with it") {
  {
    ps::any_ring ring = ps::any_ring::of<made_up_ring>(4, 2, 0);
    CHECK(made_up_ring::alive == 1);
    listener here;
    ring.open(7);
    ring.serve(here);
    CHECK(ring.help(here, 8));
    CHECK_FALSE(ring.help(here, 6));
    CHECK(here.grains ==
          std::vector<std::pair<std::uint64_t, std::uint64_t>>{{7, 0}, {7, 1}, {7, 0}, {5, 0}});
    CHECK(ring.is_ready(7));
    ring.stop();
    CHECK(ring.stopped());
    CHECK_FALSE(ring.wait_ready(7));
  }
  CHECK(made_up_ring::alive == 0);
}

}  // namespace any_ring_test
