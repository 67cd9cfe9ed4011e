// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/workers/thread_place.hpp>

#include <penstock/run/engine/tuning/machine.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#if defined(__linux__)

#include "support/thread_facts.hpp"

#include <thread>
#include <vector>

namespace thread_place_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/thread_place: threads that enter are bound and niced, the opener and its others are not") {
  const thread_facts before;
  const unsigned one = last_of(before.processors);
  ps::thread_place place({.processors = {one}, .nice = 19});
  thread_notes inside, outside;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      place.enter();
      inside.look();
      std::thread([&] { inside.look(); }).join();  // what it starts inherits both
    });
  place.await(3);
  std::thread([&] { outside.look(); }).join();
  for (std::thread& t : threads) t.join();
  REQUIRE(inside.all().size() == 6);
  for (const thread_facts& now : inside.all()) {
    CHECK(now.processors == ps::processor_set{one});
    CHECK(now.processor == one);
    CHECK(now.nice == 19);
  }
  const thread_facts after;
  CHECK(after.processors == before.processors);
  CHECK(after.nice == before.nice);
  CHECK(outside.all().at(0).processors == before.processors);
  CHECK(outside.all().at(0).nice == before.nice);
}

TEST_CASE("run/thread_place: what is not asked for stays, and then nothing waits") {
  ps::thread_place nothing({});
  nothing.await(5);
  const thread_facts before;
  thread_notes notes;
  ps::thread_place niced({.nice = 19});
  std::thread([&] {
    nothing.enter();
    notes.look();
    niced.enter();
    notes.look();
  }).join();
  CHECK(notes.all().at(0).nice == before.nice);
  CHECK(notes.all().at(1).nice == 19);
  CHECK(notes.all().at(1).processors == before.processors);
}

TEST_CASE("run/thread_place: processors that this process may not use are named, with those that it may") {
  const ps::processor_set mine = thread_facts().processors;
  ps::thread_place::check({.processors = mine, .nice = 19});
  ps::thread_place::check({});
  const unsigned one = last_of(mine), other = missing_of(mine);
  const std::string message = error_of([&] { ps::thread_place::check({.processors = {one, other}}); });
  CHECK_THAT(message,
             contains(std::to_string(other) + " is not there or not allowed to this process, which may use " +
                      ps::allowed_processors().describe()));
}

TEST_CASE("run/thread_place: what the system refuses a thread is an error of the one that waits") {
  std::string nice, processors;
  // A thread of its own, because it gives up its permissions.
  std::thread([&] {
    drop_permissions();
    (void)::setpriority(PRIO_PROCESS, 0, 19);
    const auto message_of = [](const ps::worker_options& wanted) {
      return error_of([&] {
        ps::thread_place place(wanted);
        std::thread thread([&] { place.enter(); });
        try {
          place.await(1);
        } catch (...) {
          thread.join();
          throw;
        }
        thread.join();
      });
    };
    nice = message_of({.nice = 3});
    processors = message_of({.processors = {missing_of(thread_facts::allowed())}});
  }).join();
  CHECK_THAT(nice, contains("workers could not be given nice 3 (") && contains("CAP_SYS_NICE"));
  CHECK_THAT(processors, contains("workers could not be bound to processors "));
}

TEST_CASE("run/thread_place: threads are near a device if they fit there and nobody says otherwise") {
  const ps::processor_set mine = thread_facts().processors;
  const unsigned one = last_of(mine), other = missing_of(mine);
  if (mine.size() < 2) {
    WARN("not looked at: this thread may use one processor only");
    return;
  }
  const auto near = [&](const ps::run_options& given, const ps::near_processors& where) {
    return ps::thread_place::near(given, where, 1);
  };
  const auto with = [](unsigned workers) {
    ps::run_options o;
    o.workers = workers;
    return o;
  };
  const ps::near_processors there{{one, other}}, there_always{{one, other}, true};
  CHECK(near(with(1), there).threads.processors == ps::processor_set{one});
  CHECK(near(with(2), there).threads.processors.empty());
  CHECK(near(with(2), there_always).threads.processors == ps::processor_set{one});
  CHECK(near(with(2), there_always).workers == 2u);
  CHECK(near({}, there_always).workers == 1u);
  CHECK(near({}, there_always).threads.processors == ps::processor_set{one});
  CHECK(near(with(0), there_always).threads.processors.empty());
  CHECK(near(with(1), {}).threads.processors.empty());
  CHECK(near(with(1), {{other}, true}).threads.processors.empty());
  CHECK(near(with(1), {mine, true}).threads.processors.empty());  // they are there already
  ps::run_options chosen = with(1);
  chosen.threads.processors = mine;
  chosen.threads.nice = 3;
  CHECK(near(chosen, there_always).threads.processors == mine);
  chosen.threads.processors = {};
  CHECK(near(chosen, there).threads.nice == 3);
}

}  // namespace thread_place_test

#else

TEST_CASE("run/thread_place: other systems refuse processors and nice in one sentence") {
  penstock::thread_place::check({});
  CHECK_THAT(penstock_test::error_of([] { penstock::thread_place::check({.nice = 5}); }),
             penstock_test::contains("need Linux"));
}

#endif
