// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/workers.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <string>
#include <vector>

#if defined(__linux__)
#include <penstock/core/position.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/noting_storage.hpp"
#include "support/raw_tar.hpp"
#include "support/thread_facts.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#endif

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/workers: it sets the number of threads, anywhere in the plan, without changing a byte") {
  const auto add = ps::map([](int x) { return x + 1; });
  const auto alone = values_of(ps::from(first_ints(500)) | ps::shuffle(ps::seed(2)) | add | ps::batch(16), 0);
  for (const unsigned count : {1u, 2u, 7u}) {
    auto run =
        (ps::from(first_ints(500)) | ps::workers(count) | ps::shuffle(ps::seed(2)) | add | ps::batch(16))
            .open();
    std::vector<int> seen;
    for (auto&& b : run) seen.insert(seen.end(), b.begin(), b.end());
    CHECK(seen == alone);
    CHECK(run.counters().workers == count);
  }
}

TEST_CASE("stage/workers: without it there is at least one") {
  auto run = (ps::from(first_ints(10)) | ps::batch(2)).open();
  CHECK(run.counters().workers >= 1);
}

TEST_CASE("stage/workers: it describes its threads") {
  CHECK(ps::workers(4).describe() == "workers(4)");
  CHECK(ps::workers(4, {.processors = {2, 3, 4, 5}, .nice = 5}).describe() ==
        "workers(4, processors 2-5, nice 5)");
  CHECK(ps::workers(1, {.processors = {7}}).describe() == "workers(1, processor 7)");
  CHECK(ps::workers(2, {.nice = 0}).describe() == "workers(2, nice 0)");
  CHECK(ps::workers(2, {.processors = {}}).describe() == "workers(2)");
}

TEST_CASE("stage/workers: numbers that no machine has are errors where they are written") {
  const std::vector<int> none;
  CHECK_THAT(error_of([] { (void)ps::workers(2, {.nice = 20}); }),
             contains("workers(n, {.nice = 20}): nice goes from 0 to 19"));
  CHECK_THAT(error_of([] { (void)ps::workers(0, {.nice = -1}); }),
             contains("workers(n, {.nice = -1}): nice goes from 0 to 19"));
  CHECK_THAT(error_of([] {
               (void)ps::workers(2, {.processors = {1, 1}});
             }),
             contains("processor 1 is listed twice"));
  CHECK_THAT(error_of([] { (void)ps::workers(2, {.processors = {2000}}); }),
             contains("there is no processor 2000"));
  CHECK_THAT(error_of([&] { (void)ps::workers(2, {.processors = none}); }),
             contains("the list of processors is empty"));
}

#if defined(__linux__)

namespace workers_test {

/// Values of a run whose map notes the threads in which it is called.
template <class Annotation>
std::vector<int> noted(thread_notes& notes, const Annotation& how) {
  const auto look = ps::map([&notes](int x) {
    notes.look();
    return 3 * x;
  });
  std::vector<int> seen;
  for (auto&& b : (ps::from(first_ints(200)) | ps::shuffle(ps::seed(4)) | look | ps::batch(8) | how).epoch(0))
    seen.insert(seen.end(), b.begin(), b.end());
  return seen;
}

/// Files whose sessions note the threads that read.
struct watched_storage : noting_storage {
  std::shared_ptr<thread_notes> threads = std::make_shared<thread_notes>();

  struct session : noting_storage::session {
    std::shared_ptr<thread_notes> threads;

    session(noting_storage::session plain, std::shared_ptr<thread_notes> kept)
        : noting_storage::session(std::move(plain)), threads(std::move(kept)) {}
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
      threads->look();
      noting_storage::session::read(id, offset, into);
    }
  };
  [[nodiscard]] session connect() const { return {noting_storage::connect(), threads}; }
};

}  // namespace workers_test

TEST_CASE("stage/workers: workers are bound and niced, the thread that asks for batches is not") {
  using workers_test::noted;
  const thread_facts before;
  const unsigned one = last_of(before.processors);
  thread_notes plain, bound;
  const auto values = noted(plain, ps::workers(2));
  CHECK(noted(bound, ps::workers(3, {.processors = {one}, .nice = 19})) == values);
  for (const thread_facts& now : plain.all()) {
    CHECK(now.processors == before.processors);
    CHECK(now.nice == before.nice);
  }
  REQUIRE(bound.all().size() == 200);
  for (const thread_facts& now : bound.all()) {
    CHECK(now.id != before.id);
    CHECK(now.processors == ps::processor_set{one});
    CHECK(now.processor == one);
    CHECK(now.nice == 19);
  }
  const thread_facts after;
  CHECK(after.processors == before.processors);
  CHECK(after.nice == before.nice);
}

TEST_CASE("stage/workers: each worker may run on any of the processors; one option alone leaves the other") {
  using workers_test::noted;
  const thread_facts before;
  thread_notes both, niced;
  (void)noted(both, ps::workers(2, {.processors = before.processors}));
  (void)noted(niced, ps::workers(2, {.nice = 19}));
  for (const thread_facts& now : both.all()) {
    CHECK(now.processors == before.processors);
    CHECK(now.nice == before.nice);
  }
  for (const thread_facts& now : niced.all()) {
    CHECK(now.processors == before.processors);
    CHECK(now.nice == 19);
  }
}

TEST_CASE("stage/workers: without workers the options are without effect, even impossible ones") {
  using workers_test::noted;
  const thread_facts before;
  thread_notes plain, alone;
  const auto values = noted(plain, ps::workers(0));
  CHECK(noted(alone, ps::workers(0, {.processors = {missing_of(before.processors)}, .nice = 19})) == values);
  for (const thread_facts& now : alone.all()) {
    CHECK(now.id == before.id);
    CHECK(now.processors == before.processors);
    CHECK(now.nice == before.nice);
  }
}

TEST_CASE("stage/workers: workers that adjust parks and wakes stay where they were put") {
  const thread_facts before;
  const unsigned one = last_of(before.processors);
  thread_notes notes;
  const auto look = ps::map([&notes](int x) {
    notes.look();
    return x;
  });
  auto run = (ps::from(first_ints(300)) | look | ps::batch(4) | ps::prefetch(2) |
              ps::workers(3, {.processors = {one}, .nice = 19}))
                 .open();
  std::vector<int> seen;
  std::int64_t count = 0;
  for (auto&& b : run.epoch(0)) {
    run.adjust({.workers = 1 + count++ % 3});
    seen.insert(seen.end(), b.begin(), b.end());
  }
  CHECK(seen == first_ints(300));
  for (const thread_facts& now : notes.all()) {
    CHECK(now.processors == ps::processor_set{one});
    CHECK(now.nice == 19);
  }
}

TEST_CASE("stage/workers: threads that read ahead are bound and niced as workers are") {
  using workers_test::watched_storage;
  const thread_facts before;
  const unsigned one = last_of(before.processors);
  raw_tar tar;
  std::vector<std::string> wanted, seen;
  for (int i = 0; i < 60; ++i) {
    wanted.push_back(std::string(600, static_cast<char>('a' + i % 26)));
    tar.member(std::to_string(i) + ".txt", wanted.back());
  }
  watched_storage files;
  tar.end();
  files.files.add("a.tar", ps::bytes_of(tar.bytes));
  const auto check = [&](const auto& storage) {
    files.threads = std::make_shared<thread_notes>();
    auto run = (ps::webdataset(storage()) | ps::fields<"txt"> | ps::prefetch(32) | ps::batch(4, ps::ragged) |
                ps::workers(1, {.processors = {one}, .nice = 19}))
                   .open();
    const std::size_t opening = files.threads->all().size();  // reads of the index, in this thread
    seen.clear();
    for (auto&& b : run.epoch(0))
      for (const auto text : ps::get<"txt">(b))
        seen.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    CHECK(seen == wanted);
    const auto all = files.threads->all();
    REQUIRE(all.size() > opening);
    for (std::size_t i = opening; i < all.size(); ++i) {
      CHECK(all[i].id != before.id);
      CHECK(all[i].processors == ps::processor_set{one});
      CHECK(all[i].nice == 19);
    }
  };
  SECTION("threads of the fetcher, where a session reads only in the calling thread") {
    check([&] { return files; });
  }
  SECTION("a thread of the storage") {
    check([&] { return ps::simulated_storage(files, {.latency = std::chrono::microseconds(100)}); });
  }
  CHECK(thread_facts().nice == before.nice);
}

TEST_CASE("stage/workers: a processor that this process may not use is one sentence at open") {
  const auto plan = ps::from(first_ints(20)) | ps::batch(2);
  const unsigned other = missing_of(thread_facts().processors);
  const std::string message =
      error_of([&] { (void)(plan | ps::workers(2, {.processors = {other}})).open(); });
  CHECK_THAT(message, contains("workers on processors " + std::to_string(other) + ": ") &&
                          contains("not allowed to this process, which may use "));
}

TEST_CASE("stage/workers: a nice that needs permission is one sentence at open, and all threads end") {
  std::string message;
  int nice = 0;
  // A thread of its own, because it gives up its permissions.
  std::thread([&] {
    drop_permissions();
    (void)::setpriority(PRIO_PROCESS, 0, 19);
    message = error_of([] {
      (void)(ps::from(first_ints(20)) | ps::batch(2) | ps::prefetch(4) | ps::workers(2, {.nice = 4})).open();
    });
    nice = thread_facts().nice;
  }).join();
  CHECK_THAT(message, contains("workers could not be given nice 4 ("));
  CHECK(nice == 19);
}

TEST_CASE("stage/workers: a state of bound workers continues without them, and the other way round") {
  const unsigned one = last_of(thread_facts().processors);
  const auto plan = ps::from(first_ints(100)) | ps::shuffle(ps::seed(3)) | ps::batch(5);
  const auto bound = plan | ps::workers(2, {.processors = {one}, .nice = 19});
  const auto bare = plan | ps::workers(1);
  const auto all = values_of(plan, 0);
  const auto rest_of = [&](const auto& begins, const auto& goes_on) {
    auto run = begins.open();
    for (int i = 0; i < 7; ++i) (void)run.next();
    std::vector<int> seen;
    auto second = goes_on.open(run.state());
    for (auto&& b : second.epoch(0)) seen.insert(seen.end(), b.begin(), b.end());
    return seen;
  };
  const std::vector<int> rest(all.begin() + 35, all.end());
  CHECK(rest_of(bound, bare) == rest);
  CHECK(rest_of(bare, bound) == rest);
}

#endif
