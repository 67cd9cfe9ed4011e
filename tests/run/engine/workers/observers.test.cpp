// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/workers/observers.hpp>

#include <penstock/core/options.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace observers_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

/// An observer that keeps everything, behind a lock.
class witness {
 public:
  using penstock_part = ps::annotation_tag;
  [[maybe_unused]] static constexpr std::string_view stage_name = "witness";

  struct record {
    std::mutex lock;
    ps::observed_run what;
    std::vector<std::pair<unsigned, ps::run_event>> events;
    std::vector<const void*> held;
    std::uint64_t holds = 0;
  };
  class session {
   public:
    explicit session(std::shared_ptr<record> into) : into_(std::move(into)) {}
    void note(unsigned thread, const ps::run_event& e) noexcept {
      const std::lock_guard guard(into_->lock);
      into_->events.emplace_back(thread, e);
    }
    void hold(const void* key, const ps::run_event&) noexcept {
      const std::lock_guard guard(into_->lock);
      into_->held.push_back(key);
      ++into_->holds;
    }
    void let_go(const void* key) noexcept {
      const std::lock_guard guard(into_->lock);
      std::erase(into_->held, key);
    }

   private:
    std::shared_ptr<record> into_;
  };

  [[nodiscard]] session connect(const ps::observed_run& what) const {
    record_->what = what;
    return session(record_);
  }
  void apply(ps::run_options&, bool) const {}
  [[nodiscard]] record& seen() const { return *record_; }

 private:
  std::shared_ptr<record> record_ = std::make_shared<record>();
};
static_assert(ps::observer<witness>, "a user's type can be an observer");

/// A source whose reader takes hints.
class hinted_source {
 public:
  using penstock_part = ps::source_tag;
  using element = std::uint64_t;
  static constexpr std::string_view source_name = "hinted";
  struct reader {
    struct worker {};
    template <class Sink>
    void evaluate(ps::position p, worker&, Sink&& sink) const {
      sink(p.index);
    }
    void will_need(std::uint64_t) const {}
  };
  [[nodiscard]] std::uint64_t size() const { return 40; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "hinted"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return 1; }
  [[nodiscard]] reader connect() const { return {}; }
};

constexpr auto words = [](std::uint64_t i) { return std::array<std::uint64_t, 2>{i, i}; };

}  // namespace

TEST_CASE("run/observers: all observers of a plan get the same events, others get none") {
  const penstock_test::deadline guard("observers");
  const witness one, two;
  const auto plain = ps::generated(60, words_of) | ps::map([](const numbers& v) { return v[0]; }) |
                     ps::shuffle(ps::seed(3)) | ps::batch(6) | ps::workers(2);
  CHECK(ps::observers_of(plain, 2, false).empty());
  const auto plan = plain | one | two;
  CHECK(ps::observers_of(plan, 2, false).size() == 2);
  CHECK(read_plan(plain, 2) == read_plan(plan, 2));
  REQUIRE(one.seen().events.size() == two.seen().events.size());
  CHECK(one.seen().what.workers == 2);
  CHECK(one.seen().what.stages.size() == 2);
  CHECK(one.seen().holds == 20);
  CHECK(one.seen().held.empty());
  std::uint64_t samples = 0, staged = 0;
  for (const auto& [thread, e] : one.seen().events) {
    CHECK(e.begin_ns <= e.end_ns);
    if (e.what == ps::activity::evaluate) samples += e.samples;
    if (e.what == ps::activity::stage) ++staged;
    CHECK((e.what == ps::activity::wait_for_batch) == (thread == 0));
  }
  CHECK(samples >= 120);
  CHECK(staged >= 20);
}

TEST_CASE("run/observers: bytes are fetched ahead in a thread of their own, or in the consumer's") {
  const penstock_test::deadline guard("asks ahead");
  for (const unsigned workers : {0u, 2u}) {
    const witness seen;
    for (auto&& b : (ps::plan(hinted_source()) | ps::map(words) | ps::prefetch(100) | ps::batch(4) |
                     ps::workers(workers) | seen)
                        .epoch(0))
      CHECK(b.size() == 4);
    CHECK(seen.seen().what.asks_ahead == (workers != 0));
    std::uint64_t asked = 0;
    for (const auto& [thread, e] : seen.seen().events) {
      if (e.what != ps::activity::ask_ahead) continue;
      asked += e.samples;
      CHECK(thread == (workers == 0 ? 0u : 3u));
    }
    CHECK(asked <= 40);
    if (workers == 0) CHECK(asked == 40);
  }
}

TEST_CASE("run/observers: a batch is held until any thread drops its last handle") {
  const penstock_test::deadline guard("holds");
  const witness seen;
  auto run = (ps::generated(40, words) | ps::batch(4) | ps::pin_and_copy(ps::simulated{}) | ps::workers(1) |
              ps::prefetch(3) | seen)
                 .open();
  auto first = run.next(), second = run.next();
  REQUIRE((first && second));
  CHECK(seen.seen().held.size() == 2);
  std::thread([&] { second.value.reset(); }).join();
  CHECK(seen.seen().held.size() == 1);
  first.value.reset();
  CHECK(seen.seen().held.empty());
  std::uint64_t copies = 0, waits = 0;
  const std::lock_guard none_notes(seen.seen().lock);  // the worker still waits for room
  for (const auto& [thread, e] : seen.seen().events) {
    copies += e.what == ps::activity::copy;
    waits += e.what == ps::activity::wait_for_copy;
  }
  CHECK(copies >= 2);
  CHECK(waits == 2);
}

}  // namespace observers_test
