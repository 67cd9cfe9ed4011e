// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/workers/worker_seat.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace worker_seat_test {

namespace ps = penstock;

namespace {

/// A worker's thread that counts in a plain variable between two offers, until it is stopped.
struct counting_worker {
  ps::worker_seat seat;
  std::atomic<bool> over{false};
  std::uint64_t count = 0;  // of whoever has the seat
  std::uint64_t own = 0;    // of the thread
  std::jthread thread{[this] {
    while (true) {
      seat.offer();
      if (over) return;
      ++count;
      ++own;
    }
  }};

  void stop() {
    over = true;
    seat.stop();
  }
  ~counting_worker() {
    stop();
    thread.join();
  }
};

void await_seat(const ps::worker_seat& seat) {
  while (!seat.is_lent()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("run/worker_seat: a seat is the worker's until it was asked for and left") {
  ps::worker_seat seat;
  CHECK_FALSE(seat.is_lent());
  seat.offer();
  CHECK_FALSE(seat.is_lent());
  seat.ask();
  CHECK_FALSE(seat.is_lent());
  seat.give_back();
  seat.offer();  // asked for no longer: does not wait
  CHECK_FALSE(seat.is_lent());
  seat.stop();
  seat.ask();
  seat.offer();
  CHECK_FALSE(seat.is_lent());
}

TEST_CASE("run/worker_seat: consumer and worker take turns, and each sees what the other one wrote") {
  const penstock_test::deadline guard("seat", std::chrono::seconds(120));
  counting_worker worker;
  std::uint64_t mine = 0;
  for (int round = 0; round < 500; ++round) {
    worker.seat.ask();
    worker.seat.ask();
    await_seat(worker.seat);
    const std::uint64_t before = worker.count;
    REQUIRE(before == worker.own + mine);
    for (int i = 0; i < round % 5; ++i) ++worker.count, ++mine;
    worker.seat.give_back();
    if (round % 3 != 0) worker.seat.ask();  // perhaps before the worker has woken
    if (round % 7 == 0) worker.seat.give_back();
  }
  worker.stop();
  worker.thread.join();
  CHECK(worker.count == worker.own + mine);
  worker.thread = std::jthread([] {});
}

TEST_CASE("run/worker_seat: stop ends the worker's wait, and what the consumer has stays the consumer's") {
  const penstock_test::deadline guard("seat", std::chrono::seconds(120));
  for (int round = 0; round < 100; ++round) {
    counting_worker worker;
    worker.seat.ask();
    await_seat(worker.seat);
    std::jthread other([&] { worker.stop(); });
    ++worker.count;
    other.join();
    worker.thread.join();
    REQUIRE(worker.count == worker.own + 1);
    worker.thread = std::jthread([] {});
  }
}

}  // namespace worker_seat_test
