// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/credential_cache.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ps = penstock;
namespace s3 = penstock::detail::s3;
using namespace std::chrono_literals;
using penstock_test::contains;

constexpr s3::wall_time cache_start{std::chrono::hours(500'000)};

/// What happens at the place that credentials come from.
struct credential_script {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<long long> seconds{0};
  std::vector<s3::wall_time> asked;
  std::chrono::seconds lifetime{3600};  // 0: they have no end
  bool fails = false, holds = false, throws_other = false, repeats = false;
  int made = 0;

  [[nodiscard]] s3::wall_clock clock() {
    return {this, [](void* self) {
              return cache_start +
                     std::chrono::seconds(static_cast<credential_script*>(self)->seconds.load());
            }};
  }
  /// Until somebody asks for credentials.
  void wait_for(std::size_t rounds) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return asked.size() >= rounds; });
  }
  void let_go() {
    const std::lock_guard lock(mutex);
    holds = false;
    changed.notify_all();
  }
};
struct scripted_source {
  credential_script* script;
  [[nodiscard]] ps::s3_credentials find(s3::wall_time now) const {
    std::unique_lock lock(script->mutex);
    script->asked.push_back(now);
    script->changed.notify_all();
    script->changed.wait(lock, [&] { return !script->holds; });
    if (script->throws_other) throw std::bad_alloc();
    if (script->fails) throw ps::error(ps::errc::io, "nobody answers").in_file("the token").recurring();
    const int number = script->repeats && script->made > 0 ? script->made : ++script->made;
    if (script->lifetime == 0s) return {"id", "secret" + std::to_string(number)};
    return {"id", "secret" + std::to_string(number), "token", now + script->lifetime};
  }
};
using scripted_cache = s3::credential_cache<scripted_source>;

}  // namespace

TEST_CASE("storage/s3/credential_cache: credentials are renewed before they expire, and not sooner") {
  credential_script script;
  scripted_cache cache({&script}, script.clock());
  CHECK(cache.current()->secret() == "secret1");
  script.seconds = 3299;
  CHECK(cache.current()->secret() == "secret1");
  CHECK(script.asked.size() == 1);
  script.seconds = 3300;  // five minutes before
  CHECK(cache.current()->secret() == "secret2");
  CHECK(script.asked == std::vector{cache_start, cache_start + 3300s});
}

TEST_CASE(
    "storage/s3/credential_cache: the seed moves the renewal ahead by up to a minute, a short life by a "
    "quarter") {
  std::set<int> renewed;
  for (const std::uint64_t seed : {1u, 2u, 3u, 4711u}) {
    credential_script script;
    scripted_cache cache({&script}, script.clock(), seed);
    (void)cache.current();
    for (int second = 3300 - 64; script.asked.size() == 1 && second <= 3301; ++second) {
      script.seconds = second;
      (void)cache.current();
      if (script.asked.size() == 2) renewed.insert(second);
    }
  }
  CHECK(renewed.size() >= 3);  // not all at once
  CHECK(*renewed.begin() > 3300 - 64);
  CHECK(*renewed.rbegin() < 3300);
  credential_script script;
  script.lifetime = 100s;
  scripted_cache cache({&script}, script.clock());
  (void)cache.current();
  script.seconds = 74;
  CHECK(cache.current()->secret() == "secret1");
  script.seconds = 75;
  CHECK(cache.current()->secret() == "secret2");
}

TEST_CASE("storage/s3/credential_cache: credentials without an end are kept until a server refuses them") {
  credential_script script;
  script.lifetime = 0s;
  scripted_cache cache({&script}, script.clock());
  const auto first = cache.current();
  script.seconds = 1'000'000'000;
  CHECK(cache.current() == first);
  cache.expired(first);
  CHECK(cache.current()->secret() == "secret2");
  cache.expired(first);  // those of before: the new ones stay
  CHECK(cache.current()->secret() == "secret2");
  CHECK(script.asked.size() == 2);
}

TEST_CASE("storage/s3/credential_cache: what was refused is not given again") {
  credential_script script;
  script.lifetime = 0s;
  script.repeats = true;
  scripted_cache cache({&script}, script.clock());
  cache.expired(cache.current());
  for (int i = 0; i < 2; ++i) try {
      (void)cache.current();
      FAIL("they were given again");
    } catch (const ps::error& e) {
      CHECK_THAT(e.what(), contains("there are no newer ones where they came from"));
      CHECK(std::string(e.what()).find("secret") == std::string::npos);
      CHECK(e.recurs());
    }
  script.repeats = false;  // somebody renewed them
  CHECK(cache.current()->secret() == "secret2");
}

TEST_CASE("storage/s3/credential_cache: if renewing fails, the old ones stay while they are valid") {
  credential_script script;
  scripted_cache cache({&script}, script.clock());
  (void)cache.current();
  script.fails = true;
  script.seconds = 3300;
  CHECK(cache.current()->secret() == "secret1");
  CHECK(cache.current()->secret() == "secret1");
  CHECK(script.asked.size() == 2);  // and not at every request
  script.seconds = 3330;
  CHECK(cache.current()->secret() == "secret1");
  CHECK(script.asked.size() == 3);
  script.seconds = 3600;
  CHECK_THROWS_WITH(cache.current(), contains("nobody answers"));
  script.fails = false;
  CHECK(cache.current()->secret() == "secret2");
  script.fails = true;
  cache.expired(cache.current());
  CHECK_THROWS_WITH(cache.current(), contains("nobody answers"));
}

TEST_CASE("storage/s3/credential_cache: credentials that are old when they come are an error") {
  credential_script script;
  script.lifetime = -1s;
  scripted_cache cache({&script}, script.clock());
  CHECK_THROWS_WITH(cache.current(), contains("check this machine's clock"));
  script.lifetime = 1s;
  CHECK(cache.current()->secret() == "secret2");
}

TEST_CASE("storage/s3/credential_cache: the first ones are fetched once, for all that wait") {
  credential_script script;
  script.holds = true;
  scripted_cache cache({&script}, script.clock());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { right += cache.current()->secret() == "secret1"; });
  script.wait_for(1);
  script.let_go();
  for (std::thread& one : threads) one.join();
  CHECK(right == 8);
  CHECK(script.asked.size() == 1);
}

TEST_CASE("storage/s3/credential_cache: while one thread renews, others take the old ones and do not wait") {
  credential_script script;
  scripted_cache cache({&script}, script.clock());
  (void)cache.current();
  script.holds = true;
  script.seconds = 3400;
  std::string renewed;
  std::thread renewing([&] { renewed = cache.current()->secret(); });
  script.wait_for(2);
  for (int i = 0; i < 100; ++i) CHECK(cache.current()->secret() == "secret1");
  script.let_go();
  renewing.join();
  CHECK(renewed == "secret2");
  CHECK(cache.current()->secret() == "secret2");
  CHECK(script.asked.size() == 2);
}

TEST_CASE("storage/s3/credential_cache: all that wait get the error, each one of its own") {
  credential_script script;
  script.holds = script.fails = true;
  scripted_cache cache({&script}, script.clock());
  std::vector<std::thread> threads;
  std::atomic<int> told{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      try {
        (void)cache.current();
      } catch (ps::error& e) {
        told += e.file() == "the token" && e.recurs() && e.for_key("mine").key() == "mine";
      }
    });
  script.wait_for(1);
  script.let_go();
  for (std::thread& one : threads) one.join();
  CHECK(told == 8);
}

TEST_CASE("storage/s3/credential_cache: a lack of memory ends a round, and the next one succeeds") {
  credential_script script;
  script.throws_other = true;
  scripted_cache cache({&script}, script.clock());
  CHECK_THROWS_AS(cache.current(), std::bad_alloc);
  script.throws_other = false;
  CHECK(cache.current()->secret() == "secret1");
}

TEST_CASE("storage/s3/credential_cache: many threads, servers that refuse, and a clock that runs") {
  credential_script script;
  script.lifetime = 8s;
  scripted_cache cache({&script}, script.clock());
  std::vector<std::thread> threads;
  std::atomic<int> given{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const auto held = cache.current();
        given += !held->anonymous();
        if (i % 50 == t) cache.expired(held);
        if (i % 10 == 0) ++script.seconds;
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(given == 2000);
}
