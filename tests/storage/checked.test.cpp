// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/checked.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
#include "support/deadline.hpp"
#include "support/held_storage.hpp"
#include "support/noting_storage.hpp"
#include "support/read_outcomes.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::deadline;
using penstock_test::eventually;
using penstock_test::noting_storage;
using penstock_test::read_outcomes;

namespace checked_test {

constexpr std::size_t piece = std::size_t{4} << 20;

using far_memory = ps::simulated_storage<ps::memory_files>;
static_assert(ps::storage<ps::checked<ps::memory_files>> &&
              ps::has_sidecars<ps::checked<ps::memory_files>>());
static_assert(ps::renaming_storage<ps::checked<ps::memory_files>>);
static_assert(ps::all_mapped<ps::checked<ps::memory_files>::session>());
static_assert(ps::all_mapped<ps::checked<ps::mapped_file>::session>());
static_assert(ps::mapped_session<ps::checked<ps::file>::session>);
static_assert(ps::session_traits_of<ps::checked<ps::file>::session>().prefetches);
static_assert(!ps::is_local<ps::checked<ps::file>>(), "an index beside a file would not be compared");
static_assert(ps::background_session<ps::checked<far_memory>::session>);
static_assert(ps::session_traits_of<ps::checked<far_memory>::session>().latency);
static_assert(!ps::abandons<ps::checked<far_memory>::session>());
static_assert(ps::storage<ps::checked<ps::checked<far_memory>>>, "one may be in another");

std::string noise(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string made(size, '\0');
  for (char& one : made) one = static_cast<char>(random());
  return made;
}
ps::error error_in(auto&& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return e;
  }
  return {ps::errc::state, "no error"};
}
template <class Session>
std::string read_of(const Session& session, ps::object_id id, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\xEE');
  session.read(id, offset, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  return text;
}

/// Files in memory whose version and bytes may change, and whose reads wait while a test wants it.
struct gated_storage {
  struct gate {
    std::mutex lock;
    std::condition_variable changed;
    bool closed = false;
    std::size_t waiting = 0, reads = 0;
    std::uint64_t stamp = 7, bytes = 0;
    ps::memory_files files;

    void close(bool now) {
      {
        const std::scoped_lock held(lock);
        closed = now;
      }
      changed.notify_all();
    }
    [[nodiscard]] std::size_t waits() {
      const std::scoped_lock held(lock);
      return waiting;
    }
    void replace(ps::memory_files by, std::uint64_t with_stamp) {
      const std::scoped_lock held(lock);
      files = std::move(by);
      stamp = with_stamp;
    }
  };
  std::shared_ptr<gate> at = std::make_shared<gate>();
  std::vector<std::string> all;

  explicit gated_storage(const ps::memory_files& files) : all(files.names().begin(), files.names().end()) {
    at->files = files;
  }
  struct session {
    std::shared_ptr<gate> at;

    [[nodiscard]] std::uint64_t size(ps::object_id id) const { return version(id).size; }
    [[nodiscard]] ps::object_version version(ps::object_id id) const {
      const std::scoped_lock held(at->lock);
      return {at->files.connect().size(id), at->stamp};
    }
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
      std::unique_lock held(at->lock);
      ++at->reads;
      ++at->waiting;
      at->changed.wait(held, [&] { return !at->closed; });
      --at->waiting;
      at->bytes += into.size();
      at->files.connect().read(id, offset, into);
    }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const noexcept {}
  };
  [[nodiscard]] std::span<const std::string> names() const { return all; }
  [[nodiscard]] session connect() const { return {at}; }
};

/// The same, read in the background by a simulated line.
auto over_a_line(const gated_storage& where) {
  return ps::simulated_storage(where, {.latency = std::chrono::microseconds(0)});
}

TEST_CASE("storage/checked: says what it is") {
  const auto files = ps::memory_files().add("d/a", "four").add("d/b", "five");
  const ps::checked where(files, ps::sha256_of(files));
  CHECK(where.describe() == "checked(memory_files(2 objects), SHA-256 of 2 objects)");
  CHECK(where.names().size() == 2);
  const auto session = where.connect();
  CHECK(session.report().names[1] == "d/b");
  CHECK(session.size(0) == 4);
  CHECK(session.version(1) == ps::object_version{4, 0});
  CHECK(error_in([&] { (void)ps::checked(files, ps::sha256_list(), {.max_checks_in_flight = 0}); }).code() ==
        ps::errc::argument);
}

TEST_CASE("storage/checked: any range has its bytes, and each object is read whole once before") {
  deadline guard("reads of checked objects");
  const std::vector<std::size_t> sizes{0, 1, 1000, piece - 1, piece, piece + 1, 2 * piece + 777};
  ps::memory_files files;
  std::vector<std::string> contents;
  std::uint64_t total = 0;
  for (const std::size_t size : sizes) {
    contents.push_back(noise(size, static_cast<unsigned>(size)));
    files.add("o" + std::to_string(contents.size()), contents.back());
    total += size;
  }
  const noting_storage noted{files};
  const ps::checked where(noted, ps::sha256_of(files));
  const auto session = where.connect();
  std::mt19937 random(4);
  std::uint64_t wanted = 0;
  for (int i = 0; i < 200; ++i) {
    const auto id = static_cast<ps::object_id>(random() % sizes.size());
    const std::size_t offset = random() % (sizes[id] + 1);
    const std::size_t size = random() % std::min<std::size_t>(sizes[id] - offset + 1, 5000);
    REQUIRE((read_of(session, id, offset, size) == contents[id].substr(offset, size)));
    wanted += size;
  }
  CHECK(noted.notes->bytes_read() == total + wanted);
  for (const auto& read : noted.notes->reads) CHECK(read.end - read.begin <= piece);
  CHECK(error_in([&] { (void)read_of(session, 2, 990, 11); }).code() == ps::errc::format);
}

TEST_CASE("storage/checked: files, mapped files and memory give the same, or the same error") {
  const penstock_test::temp_dir folder;
  const std::string text = noise(2 * piece);
  const std::string path = (folder / "a.tar").string();
  std::ofstream(path, std::ios::binary) << text;
  const ps::sha256_list good({{"a.tar", ps::sha256_of(ps::bytes_of(text))}});
  const ps::sha256_list bad({{"a.tar", ps::sha256_of(ps::bytes_of(text.substr(1)))}});
  const auto check = [&](const auto& where) {
    const auto session = ps::checked(where, good).connect();
    CHECK((read_of(session, 0, 1000, 5000) == text.substr(1000, 5000)));
    const auto other = ps::checked(where, bad).connect();
    CHECK(other.size(0) == text.size());
    const ps::error e = error_in([&] { (void)read_of(other, 0, 1000, 10); });
    CHECK(e.code() == ps::errc::io);
    CHECK(std::string(e.file()).ends_with("a.tar"));
    if constexpr (ps::mapped_session<std::remove_const_t<decltype(session)>>) {
      if (!ps::is_mapped(session, 0)) return;
      CHECK(ps::text_of(session.view(0, 7, 100)) == std::string_view(text).substr(7, 100));
      CHECK(error_in([&] { (void)other.view(0, 7, 100); }).code() == ps::errc::io);
    }
  };
  check(ps::memory_files().add("x/a.tar", text));
  check(ps::file(path, {.access = ps::file_access::map}));
  check(ps::file(path, {.access = ps::file_access::read}));
  check(ps::mapped_file(path));
  check(far_memory(ps::memory_files().add("x/a.tar", text), {.latency = std::chrono::microseconds(1)}));
}

TEST_CASE("storage/checked: of an object with a flipped bit, cut off or too long nothing is delivered") {
  const std::string text = noise(piece + 1000);
  const auto files = ps::memory_files().add("a", text).add("b", "beside it");
  const ps::sha256_list list = ps::sha256_of(files);
  std::string flipped = text;
  flipped[piece + 500] = static_cast<char>(flipped[piece + 500] ^ 0x10);
  for (const std::string& other : {flipped, text.substr(0, text.size() - 1), text + "x", std::string()}) {
    const noting_storage harmed{ps::memory_files().add("a", other).add("b", "beside it")};
    const auto session = ps::checked(harmed, list).connect();
    for (std::uint64_t again = 1; again <= 2; ++again) {
      std::string into(other.empty() ? 0 : 10, '\xEE');
      const ps::error e = error_in([&] {
        session.read(0, 0, {reinterpret_cast<std::byte*>(into.data()), into.size()});
      });
      CHECK(e.code() == ps::errc::io);
      CHECK_FALSE(e.recurs());
      CHECK(e.file() == "a");
      CHECK(std::string(e.message()).find("fetch or write the object again") != std::string::npos);
      CHECK(into == std::string(into.size(), '\xEE'));
      CHECK(harmed.notes->bytes_read() == again * other.size());
    }
    CHECK(read_of(session, 1, 0, 9) == "beside it");
  }
}

TEST_CASE("storage/checked: an object that the list does not have is an error, and counts as not there") {
  const auto files = ps::memory_files().add("a", "1").add("b", "2").add("a.idx", "3");
  const ps::checked where(files, ps::sha256_list({{"a", ps::sha256_of(ps::bytes_of("1"))}}));
  const auto session = where.connect();
  CHECK(read_of(session, 0, 0, 1) == "1");
  for (int call = 0; call < 4; ++call) {
    const ps::error e = error_in([&] {
      if (call == 0) (void)session.size(1);
      if (call == 1) (void)session.version(1);
      if (call == 2) (void)read_of(session, 1, 0, 1);
      if (call == 3) (void)session.view(1, 0, 1);
    });
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs());
    CHECK(e.file() == "b");
  }
  const auto beside = where.sidecars({".idx"});
  CHECK(beside.names()[0] == "a.idx");
  CHECK(error_in([&] { (void)beside.connect().size(0); }).recurs());
  const ps::checked all(files, ps::sha256_of(files));
  CHECK(read_of(all.sidecars({".idx"}).connect(), 0, 0, 1) == "3");
}

TEST_CASE("storage/checked: threads that want the same object wait for the one that compares it") {
  deadline guard("threads wait for a comparison");
  const std::string text = noise(3 * piece);
  const gated_storage gated(ps::memory_files().add("a", text));
  const auto session = ps::checked(gated, ps::sha256_of(gated.at->files)).connect();
  gated.at->close(true);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      if (read_of(session, 0, i * 1000, 100) == text.substr(i * 1000, 100)) ++right;
    });
  eventually([&] { return gated.at->waits() == 1; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(gated.at->waits() == 1);
  CHECK(right == 0);
  gated.at->close(false);
  for (std::thread& one : threads) one.join();
  CHECK(right == 8);
  CHECK(gated.at->bytes == text.size() + 800);
}

TEST_CASE("storage/checked: no more objects are compared at the same time than the options say") {
  deadline guard("a limit for comparisons");
  ps::memory_files files;
  for (int i = 0; i < 6; ++i) files.add("o" + std::to_string(i), noise(1000, static_cast<unsigned>(i)));
  const gated_storage gated(files);
  const auto session = ps::checked(gated, ps::sha256_of(files), {.max_checks_in_flight = 2}).connect();
  gated.at->close(true);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (ps::object_id id = 0; id < 6; ++id)
    threads.emplace_back([&, id] {
      if (read_of(session, id, 0, 1000) == noise(1000, id)) ++right;
    });
  eventually([&] { return gated.at->waits() == 2; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(gated.at->waits() == 2);
  gated.at->close(false);
  for (std::thread& one : threads) one.join();
  CHECK(right == 6);
}

TEST_CASE(
    "storage/checked: a comparison that fails is tried again by those that waited, and each gets its error") {
  deadline guard("failures of comparisons");
  const std::string text = noise(1000);
  const auto good = ps::memory_files().add("a", text);
  const gated_storage gated(ps::memory_files().add("a", noise(1000, 9)));
  const auto session = ps::checked(gated, ps::sha256_of(good)).connect();
  gated.at->close(true);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      if (error_in([&] { (void)read_of(session, 0, 0, 10); }).code() == ps::errc::io) ++failed;
    });
  eventually([&] { return gated.at->waits() == 1; });
  gated.at->close(false);
  for (std::thread& one : threads) one.join();
  CHECK(failed == 4);
  CHECK(gated.at->reads == 4);
  gated.at->replace(good, 7);
  CHECK(read_of(session, 0, 0, 10) == text.substr(0, 10));
}

TEST_CASE("storage/checked: cancelling ends a comparison, and the waits for it, and nothing later") {
  deadline guard("a comparison is cancelled");
  const std::string text = noise(3 * piece);
  const gated_storage gated(ps::memory_files().add("a", text));
  const auto session = ps::checked(gated, ps::sha256_of(gated.at->files)).connect();
  gated.at->close(true);
  std::atomic<int> stopped{0};
  std::vector<std::thread> threads;
  const auto read = [&] {
    const ps::error e = error_in([&] { (void)read_of(session, 0, 0, 10); });
    if (e.code() == ps::errc::stopped && e.file() == "a") ++stopped;
  };
  threads.emplace_back(read);
  eventually([&] { return gated.at->waits() == 1; });
  for (int i = 0; i < 3; ++i) threads.emplace_back(read);
  while (stopped != 3) {  // all but the one whose read is in progress, as soon as they wait
    session.cancel();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  CHECK(gated.at->waits() == 1);
  gated.at->close(false);
  for (std::thread& one : threads) one.join();
  CHECK(stopped == 4);
  CHECK(gated.at->reads == 1);
  CHECK(read_of(session, 0, 5, 10) == text.substr(5, 10));
  session.end_reads();
  CHECK(read_of(session, 0, 5, 10) == text.substr(5, 10));  // it was compared

  const auto other = ps::checked(gated, ps::sha256_of(gated.at->files)).connect();
  other.end_reads();
  CHECK(error_in([&] { (void)read_of(other, 0, 0, 10); }).code() == ps::errc::stopped);
}

TEST_CASE("storage/checked: reads in the background wait for the comparison; later ones pass through") {
  deadline guard("reads in the background");
  const std::string a = noise(2 * piece + 5), b = noise(3000, 2);
  const auto files = ps::memory_files().add("a", a).add("b", b).add("c", "unlisted");
  const far_memory far(files, {.latency = std::chrono::microseconds(50)});
  const ps::checked where(far, ps::sha256_of(files.with_names({"a", "b"})));
  auto session = where.connect();
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> into(40, std::string(50, ' '));
    std::vector<ps::read_request> requests;
    for (std::size_t i = 0; i < into.size(); ++i)
      requests.push_back({static_cast<ps::object_id>(i % 4 == 3 ? 2 : i / 2 % 2),
                          i * 50,
                          {reinterpret_cast<std::byte*>(into[i].data()), 50},
                          i});
    read_outcomes outcomes(into.size());
    session.read_many(requests, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == 10);
    CHECK(outcomes.failures(ps::errc::io) == 10);
    for (std::size_t i = 0; i < into.size(); ++i)
      if (i % 4 != 3) CHECK(into[i] == (i / 2 % 2 == 0 ? a : b).substr(i * 50, 50));
  }
  CHECK(session.report().counters.bytes == a.size() + b.size() + 2 * 30 * 50);
  CHECK(session.report().counters.held == 0);
}

TEST_CASE(
    "storage/checked: cancelling ends what waits in the background, and destruction waits for its threads") {
  deadline guard("background reads are cancelled");
  const std::string text = noise(3 * piece);
  const gated_storage gated(ps::memory_files().add("a", text).add("b", text));
  const ps::checked where(over_a_line(gated), ps::sha256_of(gated.at->files));
  auto session = where.connect();
  gated.at->close(true);
  std::vector<std::string> into(6, std::string(50, ' '));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < into.size(); ++i)
    requests.push_back(
        {static_cast<ps::object_id>(i % 2), 0, {reinterpret_cast<std::byte*>(into[i].data()), 50}, i});
  read_outcomes outcomes(6);
  session.read_many(requests, outcomes.listener());
  eventually([&] { return gated.at->waits() != 0; });
  while (outcomes.ended() < 4) {
    session.cancel();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  gated.at->close(false);
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) == 6);

  read_outcomes later(6);
  session.read_many(requests, later.listener());
  later.wait();
  CHECK(later.failures() == 0);

  auto other = where.connect();
  gated.at->close(true);
  read_outcomes abandoned(6);
  other.read_many(requests, abandoned.listener());
  eventually([&] { return gated.at->waits() != 0; });
  std::thread opens([&] {
    eventually([&] { return abandoned.ended() >= 4; });
    gated.at->close(false);
  });
  { const auto ends = std::move(other); }
  opens.join();
  CHECK(abandoned.each_once());
  CHECK(abandoned.failures(ps::errc::stopped) == 6);
}

TEST_CASE("storage/checked: an object of another version is compared again") {
  deadline guard("an object is replaced");
  const auto good = ps::memory_files().add("a", "good"), bad = ps::memory_files().add("a", "evil");
  const gated_storage gated(good);
  const auto session = ps::checked(gated, ps::sha256_of(good)).connect();
  CHECK(read_of(session, 0, 0, 4) == "good");
  CHECK(session.version(0) == ps::object_version{4, 7});
  CHECK(read_of(session, 0, 0, 4) == "good");
  CHECK(gated.at->reads == 3);  // nothing was compared again
  gated.at->replace(bad, 8);
  CHECK(session.version(0) == ps::object_version{4, 8});
  CHECK(error_in([&] { (void)read_of(session, 0, 0, 4); }).code() == ps::errc::io);
  gated.at->replace(good, 9);
  CHECK(read_of(session, 0, 0, 4) == "good");
  CHECK(session.version(0) == ps::object_version{4, 9});

  // replaced while it is compared
  const auto large = ps::memory_files().add("a", noise(1000));
  gated.at->replace(large, 10);
  const auto other = ps::checked(gated, ps::sha256_of(large)).connect();
  gated.at->close(true);
  std::string message;
  std::thread reads([&] { message = error_in([&] { (void)read_of(other, 0, 0, 4); }).what(); });
  eventually([&] { return gated.at->waits() == 1; });
  gated.at->replace(large, 11);
  gated.at->close(false);
  reads.join();
  CHECK(message.find("replaced while") != std::string::npos);
  CHECK(read_of(other, 0, 0, 4) == noise(1000).substr(0, 4));
}

TEST_CASE(
    "storage/checked: failures of the storage inside pass through, and are tried again outside or inside") {
  const std::string text = noise(2 * piece);
  const auto files = ps::memory_files().add("a", text);
  const ps::sha256_list list = ps::sha256_of(files);
  const noting_storage worn{files};
  worn.notes->worn_begin = piece + 10;
  worn.notes->worn_end = piece + 20;
  const auto session = ps::checked(worn, list).connect();
  CHECK(std::string(error_in([&] { (void)read_of(session, 0, 0, 4); }).message()) == "worn out");
  worn.notes->worn_end = 0;
  CHECK(read_of(session, 0, 0, 4) == text.substr(0, 4));

  const far_memory failing(files, {.latency = std::chrono::microseconds(0), .failing = 0.3});
  const ps::retrying_options soon{.attempts = 50, .initial_backoff = std::chrono::milliseconds(0)};
  CHECK(read_of(ps::checked(ps::retrying(failing, soon), list).connect(), 0, 9, 4) == text.substr(9, 4));
  CHECK(read_of(ps::retrying(ps::checked(failing, list), soon).connect(), 0, 9, 4) == text.substr(9, 4));
}

TEST_CASE("storage/checked: reads of compared objects allocate nothing") {
  const std::string text = noise(100'000);
  const auto files = ps::memory_files().add("a", text);
  const auto session = ps::checked(noting_storage{files}.files, ps::sha256_of(files)).connect();
  std::string into(1000, ' ');
  const ps::mutable_bytes room(reinterpret_cast<std::byte*>(into.data()), into.size());
  session.read(0, 0, room);
  CHECK(penstock_test::allocations_of([&] {
          for (std::uint64_t i = 0; i < 50; ++i) session.read(0, i * 997, room);
        }) == 0);
}

TEST_CASE("storage/checked: without memory a read fails and the session stays whole") {
  const std::string text = noise(5000);
  const auto files = ps::memory_files().add("a", text);
  const ps::sha256_list list = ps::sha256_of(files);
  const noting_storage noted{files};
  const auto session = ps::checked(noted, list).connect();
  const std::uint64_t failed = penstock_test::fail_each_allocation([&] {
    const auto fresh = ps::checked(files, list).connect();
    if (read_of(fresh, 0, 0, 100) != text.substr(0, 100)) throw ps::error(ps::errc::state, "other bytes");
  });
  // A sanitizer may have its own operator new.
  const bool counted = penstock_test::allocations_of([] { ::operator delete(::operator new(1)); }) != 0;
  CHECK((failed > 3 || !counted));
  CHECK(read_of(session, 0, 0, 100) == text.substr(0, 100));
}

}  // namespace checked_test
