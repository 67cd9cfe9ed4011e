// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/asio.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/strand.hpp>
#include <asio/system_error.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// A gate at which workers wait until the test lets a batch through.
class gate {
 public:
  void pass() {
    entered_.store(true);
    entered_.notify_all();
    open_.wait(false);
  }
  void wait_for_somebody() { entered_.wait(false); }
  void open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false}, entered_{false};
};

/// 0 .. 39 in batches of 8, the third of which waits at a gate; an explicit depth keeps batches from being
/// joined.
auto gated(gate& door) {
  return ps::from(first_ints(40)) | ps::map([&door](int x) {
           if (x == 20) door.pass();
           return x;
         }) |
         ps::batch(8) | ps::prefetch(3) | ps::workers(2);
}

template <class Batch>
void append(std::vector<int>& all, const Batch& b) {
  all.insert(all.end(), b.begin(), b.end());
}

/// The batches that a plain loop sees.
template <class Plan>
std::vector<int> read_plainly(const Plan& plan, std::uint64_t epochs) {
  std::vector<int> all;
  auto run = plan.open();
  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) append(all, b);
  return all;
}

/// Awaits all batches.
template <class Run>
asio::awaitable<void> drain(Run& batches, std::vector<int>& all) {
  while (auto b = co_await batches.next()) append(all, *b);
}

/// A handler that stores its arguments.
template <class Value>
struct answer {
  std::exception_ptr failure;
  std::optional<Value> value;
  int calls = 0;

  auto handler() {
    return [this](std::exception_ptr what, std::optional<Value> b) {
      failure = what;
      value = std::move(b);
      ++calls;
    };
  }
  [[nodiscard]] bool aborted() const {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const asio::system_error& e) {
      return e.code() == asio::error::operation_aborted;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("integration/asio: a coroutine gets the batches of the plain loop, over epochs") {
  const deadline guard("awaited epochs");
  const auto check = [](const auto& plan, std::uint64_t epochs) {
    asio::io_context io;
    ps::async_run batches(io, plan.open(), epochs);
    std::vector<int> all;
    asio::co_spawn(io, drain(batches, all), asio::detached);
    io.run();
    CHECK(all == read_plainly(plan, epochs));
    CHECK(batches.state() == [&] {
      auto run = plan.open();
      for (auto epoch : run.epochs(epochs))
        for (auto&& b : epoch) CHECK(b.size() != 0);
      return run.state();
    }());
  };
  const auto source = ps::from(first_ints(103)) | ps::shuffle(ps::seed(3));
  for (const unsigned workers : {0u, 1u, 3u}) {
    check(source | ps::batch(8) | ps::workers(workers), 3);
    check(source | ps::filter([](int x) { return x % 3 != 0; }) | ps::batch(5) | ps::workers(workers), 2);
  }
}

TEST_CASE("integration/asio: callbacks and futures are tokens too, and calls complete in order") {
  const deadline guard("tokens");
  const auto plan = ps::from(first_ints(20)) | ps::batch(8);
  asio::io_context io;
  ps::async_run batches(io.get_executor(), plan.open());
  using batch = decltype(batches)::value_type;
  answer<batch> first, second, third, fourth;
  batches.next(first.handler());
  batches.next(second.handler());
  batches.next(third.handler());
  batches.next(fourth.handler());
  CHECK(first.calls == 0);  // never from within the call
  io.run();
  CHECK(first.value.value().values()[0] == 0);
  CHECK(second.value.value().values()[0] == 8);
  CHECK(third.value.value().size() == 4);
  CHECK_FALSE(fourth.value.has_value());
  CHECK(fourth.failure == nullptr);
  CHECK(fourth.calls == 1);

  ps::async_run again(io, plan.open());
  std::future<std::optional<batch>> later = again.next(asio::use_future);
  io.restart();
  io.run();
  CHECK(later.get().value().size() == 8);
}

TEST_CASE("integration/asio: several runs share one context, with one thread and with three") {
  const deadline guard("several runs");
  const auto plan = ps::from(first_ints(200)) | ps::shuffle(ps::seed(9)) | ps::batch(7) | ps::workers(1);
  const auto expected = read_plainly(plan, 2);
  for (const int threads : {1, 3}) {
    asio::io_context io;
    std::vector<std::vector<int>> seen(4);
    for (auto& all : seen)
      asio::co_spawn(
          io,
          [](asio::io_context& context, auto p, std::vector<int>& into) -> asio::awaitable<void> {
            ps::async_run batches(context, p.open(), 2);
            co_await drain(batches, into);
          }(io, plan, all),
          asio::detached);
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([&] { io.run(); });
    io.run();
    others.clear();
    for (const auto& all : seen) CHECK(all == expected);
  }
}

TEST_CASE("integration/asio: no thread of the context evaluates or waits") {
  const deadline guard("the context stays free");
  gate door;
  asio::io_context io;
  const auto here = std::this_thread::get_id();
  std::atomic<bool> elsewhere{true};
  const auto plan = ps::from(first_ints(8)) | ps::map([&](int x) {
                      if (std::this_thread::get_id() == here) elsewhere = false;
                      door.pass();
                      return x;
                    }) |
                    ps::batch(8) | ps::workers(0);
  ps::async_run batches(io, plan.open());
  answer<decltype(batches)::value_type> got;
  batches.next(got.handler());
  // The evaluating thread waits until the context has run something else.
  asio::post(io, [&] {
    door.wait_for_somebody();
    door.open();
  });
  io.run();
  CHECK(got.value.value().size() == 8);
  CHECK(elsewhere);
}

TEST_CASE("integration/asio: a cancelled call completes immediately, and its batch is not lost") {
  const deadline guard("cancellation");
  gate door;
  const auto plan = gated(door);
  asio::io_context io;
  ps::async_run batches(io, plan.open());
  using batch = decltype(batches)::value_type;
  std::vector<int> seen;
  for (int i = 0; i < 2; ++i) {
    answer<batch> ready;
    batches.next(ready.handler());
    io.restart();
    io.run();
    append(seen, ready.value.value());
  }
  const ps::state before = batches.state();
  CHECK(before.step == 2);

  asio::cancellation_signal signal;
  for (const auto type : {asio::cancellation_type_t::terminal, asio::cancellation_type_t::total}) {
    answer<batch> waiting;
    batches.next(asio::bind_cancellation_slot(signal.slot(), waiting.handler()));
    door.wait_for_somebody();
    io.restart();
    io.poll();
    CHECK(waiting.calls == 0);
    signal.emit(asio::cancellation_type_t::none);
    io.restart();
    io.poll();
    CHECK(waiting.calls == 0);
    signal.emit(type);
    io.restart();
    io.run();  // returns: the batch is not waited for
    CHECK(waiting.aborted());
    CHECK(waiting.calls == 1);
    CHECK(batches.state() == before);
  }
  signal.emit(asio::cancellation_type_t::terminal);  // after the call: nothing is left to cancel

  door.open();
  asio::co_spawn(io, drain(batches, seen), asio::detached);
  io.restart();
  io.run();
  CHECK(seen == first_ints(40));
}

TEST_CASE("integration/asio: a cancellation that comes too late, and one of a queued call") {
  const deadline guard("late and early cancellation");
  gate door;
  const auto plan = gated(door);
  asio::io_context io;
  ps::async_run batches(io, plan.open());
  using batch = decltype(batches)::value_type;
  std::vector<int> seen;
  asio::cancellation_signal late, early;
  answer<batch> first, second, third, fourth;
  batches.next(asio::bind_cancellation_slot(late.slot(), first.handler()));
  io.run();
  late.emit(asio::cancellation_type_t::terminal);
  append(seen, first.value.value());

  batches.next(second.handler());
  batches.next(third.handler());  // waits at the gate
  batches.next(asio::bind_cancellation_slot(early.slot(), fourth.handler()));
  door.wait_for_somebody();
  early.emit(asio::cancellation_type_t::terminal);
  door.open();
  io.restart();
  io.run();
  CHECK(fourth.aborted());
  append(seen, second.value.value());
  append(seen, third.value.value());
  asio::co_spawn(io, drain(batches, seen), asio::detached);
  io.restart();
  io.run();
  CHECK(seen == first_ints(40));
}

TEST_CASE("integration/asio: cancelling at any moment loses nothing") {
  const deadline guard("cancelling at any moment");
  const auto plan =
      ps::from(first_ints(300)) | ps::shuffle_buffer(20, ps::seed(5)) | ps::batch(3) | ps::workers(1);
  const auto expected = read_plainly(plan, 1);
  for (int round = 0; round < 20; ++round) {
    asio::io_context io;
    ps::async_run batches(io, plan.open());
    using batch = decltype(batches)::value_type;
    std::vector<int> seen;
    std::vector<ps::state> states;
    int aborted = 0;
    for (int call = 0;; ++call) {
      asio::cancellation_signal signal;
      answer<batch> got;
      batches.next(asio::bind_cancellation_slot(signal.slot(), got.handler()));
      if (call < 400 && call % 3 != 0) {
        for (int i = 0; i < (call * 7 + round) % 5; ++i) std::this_thread::yield();
        signal.emit(asio::cancellation_type_t::partial);
      }
      io.restart();
      io.run();
      REQUIRE(got.calls == 1);
      if (got.aborted()) {
        ++aborted;
        const ps::state where = batches.state();
        if (!states.empty()) REQUIRE(where == states.back());
        continue;
      }
      if (!got.value) break;
      append(seen, *got.value);
      states.push_back(batches.state());
    }
    CHECK(seen == expected);
    if (aborted != 0) {
      std::vector<int> rest(seen.begin(), seen.begin() + 150);
      auto again = plan.open(states[49]);
      for (auto&& b : again) append(rest, b);
      CHECK(rest == expected);
    }
  }
}

TEST_CASE("integration/asio: a batch or a timer, whichever comes first") {
  using namespace asio::experimental::awaitable_operators;
  const deadline guard("a batch or a timer");
  gate door;
  const auto plan = gated(door);
  asio::io_context io;
  std::vector<int> seen;
  int timeouts = 0;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        ps::async_run batches(co_await asio::this_coro::executor, plan.open());
        for (int i = 0; i < 2; ++i) append(seen, *co_await batches.next());
        asio::steady_timer timer(io, std::chrono::milliseconds(1));
        const auto first = co_await (batches.next() || timer.async_wait(asio::use_awaitable));
        if (first.index() == 1) ++timeouts;
        door.open();
        co_await drain(batches, seen);
      },
      [](std::exception_ptr what) {
        if (what) std::rethrow_exception(what);
      });
  io.run();
  CHECK(timeouts == 1);
  CHECK(seen == first_ints(40));
}

TEST_CASE("integration/asio: an exception of the chain is thrown where the batch is awaited") {
  const deadline guard("errors");
  const auto plan = ps::from(first_ints(40)) | ps::map([](int x) {
                      if (x == 20) throw ps::error(ps::errc::format, "twenty");
                      return x;
                    }) |
                    ps::batch(8) | ps::workers(2);
  asio::io_context io;
  std::string what;
  std::vector<int> seen;
  bool ended = false;
  std::uint64_t step = 0;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        ps::async_run batches(io, plan.open());
        try {
          co_await drain(batches, seen);
        } catch (const ps::error& e) {
          what = e.what();
        }
        step = batches.state().step;
        ended = !(co_await batches.next()).has_value();
      },
      asio::detached);
  io.run();
  CHECK(what.find("twenty [") != std::string::npos);
  CHECK(what.find("position 0:20") != std::string::npos);
  CHECK(seen == first_ints(16));
  CHECK(step == 2);
  CHECK(ended);
}

TEST_CASE("integration/asio: destroying the run aborts waiting calls; stopping it ends the loop") {
  const deadline guard("destroying and stopping");
  const auto plan = ps::from(first_ints(400)) | ps::batch(8) | ps::workers(1);
  for (int round = 0; round < 20; ++round) {
    asio::io_context io;
    answer<ps::async_run<std::remove_const_t<decltype(plan)>>::value_type> first, second, third;
    {
      ps::async_run batches(io, plan.open());
      batches.next(first.handler());
      batches.next(second.handler());
      batches.next(third.handler());
      auto moved = std::move(batches);
      for (int i = 0; i < round % 4; ++i) std::this_thread::yield();
    }
    io.run();
    for (const auto* a : {&first, &second, &third}) {
      CHECK(a->calls == 1);
      CHECK((a->aborted() || a->value.has_value()));
    }
  }

  gate door;
  const auto waiting = gated(door);
  asio::io_context io;
  ps::async_run batches(io, waiting.open());
  std::vector<int> seen;
  asio::co_spawn(io, drain(batches, seen), asio::detached);
  const std::jthread stopper([&] {
    door.wait_for_somebody();
    batches.request_stop();
    door.open();
  });
  io.run();
  CHECK(batches.stopped());
  CHECK(seen.size() % 8 == 0);
  CHECK(seen.size() <= 16);
}

TEST_CASE("integration/asio: a context may end while its coroutines wait") {
  const deadline guard("the end of a context");
  gate door;
  const auto plan = gated(door);
  const auto witness = std::make_shared<int>(1);
  std::jthread opener;
  {
    asio::io_context io;
    for (int i = 0; i < 2; ++i)
      asio::co_spawn(
          io,
          [](auto p, std::shared_ptr<int> held) -> asio::awaitable<void> {
            ps::async_run batches(co_await asio::this_coro::executor, p.open());
            while (auto b = co_await batches.next()) *held += 1;
          }(plan, witness),
          asio::detached);
    opener = std::jthread([&] {
      door.wait_for_somebody();
      io.stop();
      door.open();
    });
    io.run();
  }
  CHECK(witness.use_count() == 1);  // the frames are gone, and their runs with them
}

TEST_CASE("integration/asio: handlers run on their executor, and a state is refused during a call") {
  const deadline guard("bound handlers");
  asio::thread_pool pool(1);
  asio::io_context io;
  gate door;
  const auto plan = gated(door);
  ps::async_run batches(io, plan.open());
  using batch = decltype(batches)::value_type;
  std::promise<std::thread::id> where;
  batches.next(asio::bind_executor(
      pool, [&](std::exception_ptr, std::optional<batch>) { where.set_value(std::this_thread::get_id()); }));
  CHECK(where.get_future().get() != std::this_thread::get_id());

  answer<batch> second, third;
  batches.next(second.handler());
  io.run();
  batches.next(third.handler());
  door.wait_for_somebody();
  std::string what;
  while (what.empty()) what = error_of([&] { static_cast<void>(batches.state()); });
  CHECK(what.find("state() while a batch is awaited") != std::string::npos);
  door.open();
  io.restart();
  io.run();
  CHECK(batches.state().step == 3);
  pool.join();
}

TEST_CASE(
    "integration/asio: after fork the run is the parent's; the child cannot use it but can destroy it") {
  const deadline guard("fork");
  asio::io_context io;
  const auto plan = ps::from(std::vector<int>(100, 7)) | ps::batch(4);
  std::optional<ps::async_run<std::remove_const_t<decltype(plan)>>> batches;
  batches.emplace(io, plan.open());
  using batch = decltype(batches)::value_type::value_type;
  answer<batch> first;
  batches->next(first.handler());
  io.run();
  const int code = in_child([&] {
    bool refused = false;
    try {
      answer<batch> never;
      batches->next(never.handler());
    } catch (const ps::error&) {
      refused = true;
    }
    batches.reset();
    return refused ? 0 : 1;
  });
  CHECK(code == 0);
  answer<batch> second;
  batches->next(second.handler());
  io.restart();
  io.run();
  CHECK(batches->state().step == 2);
}
