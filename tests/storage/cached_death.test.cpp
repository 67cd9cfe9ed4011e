// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processes that share a cache and are killed at any moment, and disks that are full.
#include <penstock/storage/cached.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/disk_cache.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

namespace cached_death_test {

constexpr std::uint64_t block = 128 << 10, blocks = 24;

/// What all processes of a test see.
struct shared_counts {
  std::atomic<std::uint64_t> fetched[blocks], reads, wrong, failures, child;

  [[nodiscard]] static shared_counts& make() {
    void* const where =
        ::mmap(nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(where != MAP_FAILED);
    return *new (where) shared_counts{};
  }
};

std::byte byte_at(std::uint64_t offset) {
  return static_cast<std::byte>((offset * 0x9e3779b97f4a7c15u) >> 56);
}

/// One object of `blocks` blocks, which takes its time and counts who asks for which.
struct counted_store {
  shared_counts* counts;
  std::vector<std::string> list{"object"};
  bool forks = false;

  struct session {
    shared_counts* counts;
    bool forks = false;
    [[nodiscard]] std::uint64_t size(ps::object_id) const { return blocks * block - 77; }
    [[nodiscard]] ps::object_version version(ps::object_id id) const { return {size(id), 5}; }
    void read(ps::object_id, std::uint64_t offset, ps::mutable_bytes into) const {
      ++counts->fetched[offset / block];
      if (forks) {
        const pid_t made = ::fork();
        if (made == 0)
          for (;;) ::pause();
        counts->child = static_cast<std::uint64_t>(made);
        (void)::kill(::getpid(), SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = byte_at(offset + i);
    }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const noexcept {}
  };
  [[nodiscard]] std::span<const std::string> names() const { return list; }
  [[nodiscard]] session connect() const { return {counts, forks}; }
};

/// A process that reads random ranges, and whatever is not there yet, until it is killed or has read enough.
[[noreturn]] void read_ranges(const std::string& folder, std::uint64_t limit, shared_counts& counts,
                              unsigned seed, int times) {
  try {
    const ps::cached near(counted_store{&counts}, ps::disk_cache(folder, limit, {.block = block}));
    auto session = near.connect();
    std::mt19937 random(seed);
    std::vector<std::byte> got;
    for (int i = 0; i < times; ++i) {
      const std::uint64_t size = session.size(0), offset = random() % size;
      got.resize(std::min<std::uint64_t>(size - offset, 1 + random() % (2 * block)));
      session.read(0, offset, got);
      (void)session.resident(0);
      for (std::size_t k = 0; k < got.size(); k += 61)
        if (got[k] != byte_at(offset + k)) ++counts.wrong;
      if (got.back() != byte_at(offset + got.size() - 1)) ++counts.wrong;
      ++counts.reads;
    }
  } catch (...) {
    ++counts.failures;
  }
  ::_exit(0);
}

/// What the files of a folder take of the disk.
std::uint64_t folder_bytes(const std::filesystem::path& folder) {
  std::uint64_t all = 0;
  for (const auto& one : std::filesystem::directory_iterator(folder)) {
    struct stat status {};
    REQUIRE(::stat(one.path().c_str(), &status) == 0);
    all += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return all;
}

/// Four processes at a time, of which `kills` are killed and replaced; then all of them read to their end.
void kill_at_random(const std::string& folder, std::uint64_t limit, shared_counts& counts, int kills) {
  std::mt19937 random(7);
  unsigned started = 0;
  const auto start = [&] {
    const pid_t made = ::fork();
    if (made == 0) read_ranges(folder, limit, counts, ++started, 1'000'000);
    ++started;
    return made;
  };
  std::vector<pid_t> all;
  for (int i = 0; i < 4; ++i) all.push_back(start());
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
    pid_t& one = all[random() % all.size()];
    REQUIRE(::kill(one, SIGKILL) == 0);
    REQUIRE(::waitpid(one, nullptr, 0) == one);
    one = start();
  }
  for (const pid_t one : all) {
    (void)::kill(one, SIGKILL);
    (void)::waitpid(one, nullptr, 0);
  }
  // The next start needs no cleaning.
  const pid_t last = ::fork();
  if (last == 0) read_ranges(folder, limit, counts, 99, 200);
  REQUIRE(::waitpid(last, nullptr, 0) == last);
}

TEST_CASE("storage/cached: processes of a node that are killed fifty times") {
  constexpr int kills = 50;
  const penstock_test::temp_dir dir;
  shared_counts& counts = shared_counts::make();
  const std::uint64_t limit = (blocks + 4) * block;
  const std::string folder = (dir.path() / "cache").string();
  kill_at_random(folder, limit, counts, kills);
  CHECK(counts.wrong == 0);
  CHECK(counts.failures == 0);
  CHECK(counts.reads >= 200);
  for (const auto& one : counts.fetched) CHECK(one <= 1 + kills);
  std::uint64_t all = 0;
  for (const auto& one : counts.fetched) all += one;
  CHECK(all <= blocks + kills + 4);
  CHECK(folder_bytes(folder) <= limit);
}

TEST_CASE("storage/cached: processes that are killed while blocks come and go") {
  const penstock_test::temp_dir dir;
  shared_counts& counts = shared_counts::make();
  const std::uint64_t limit = 7 * block;
  const std::string folder = (dir.path() / "cache").string();
  kill_at_random(folder, limit, counts, 30);
  CHECK(counts.wrong == 0);
  CHECK(counts.failures == 0);
  CHECK(folder_bytes(folder) <= limit);
}

TEST_CASE("storage/cached: a process that is stopped keeps nobody waiting for ever") {
  const penstock_test::temp_dir dir;
  shared_counts& counts = shared_counts::make();
  const std::string folder = (dir.path() / "cache").string();
  const ps::disk_cache where(folder, (blocks + 4) * block,
                             {.block = block, .max_wait = std::chrono::milliseconds(200)});
  const ps::cached near(counted_store{&counts}, where);
  auto session = near.connect();
  std::vector<std::byte> got(100);
  session.read(0, 0, got);
  const pid_t other = ::fork();
  if (other == 0) read_ranges(folder, where.limit(), counts, 1, 1'000'000);
  while (counts.reads < 3) std::this_thread::yield();
  REQUIRE(::kill(other, SIGSTOP) == 0);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    session.read(0, i * block, got);
    CHECK(got[7] == byte_at(i * block + 7));
  }
  (void)::kill(other, SIGKILL);
  (void)::waitpid(other, nullptr, 0);
}

TEST_CASE("storage/cached: a child that outlives a killed process keeps none of its locks") {
  const penstock_test::temp_dir dir;
  shared_counts& counts = shared_counts::make();
  const std::string folder = (dir.path() / "cache").string();
  const ps::disk_cache where(folder, (blocks + 4) * block,
                             {.block = block, .max_wait = std::chrono::hours(1)});
  // Forks in the middle of a fetch, and dies.
  const pid_t parent = ::fork();
  if (parent == 0) {
    counted_store store{&counts};
    store.forks = true;
    std::vector<std::byte> got(10);
    auto session = ps::cached(store, where).connect();
    session.read(0, 0, got);
    ::_exit(1);
  }
  REQUIRE(::waitpid(parent, nullptr, 0) == parent);
  auto session = ps::cached(counted_store{&counts}, where).connect();
  std::vector<std::byte> got(10);
  session.read(0, 0, got);  // would wait for an hour
  CHECK(got[7] == byte_at(7));
  CHECK(session.report().counters.fetched == 1);
  (void)::kill(static_cast<pid_t>(counts.child), SIGKILL);
}

TEST_CASE("storage/cached: on a full disk blocks go, and reads go past the cache") {
  const penstock_test::temp_dir dir;
  shared_counts& counts = shared_counts::make();
  const std::string mounted = dir.path().string();
  const pid_t child = ::fork();
  if (child == 0) {
    // A file system of 1.2 MiB, seen by this process alone.
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
    (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("tmpfs", mounted.c_str(), "tmpfs", 0, "size=1200k") != 0) ::_exit(77);
    try {
      const ps::cached near(counted_store{&counts},
                            ps::disk_cache(mounted + "/cache", (blocks + 4) * block, {.block = block}));
      auto session = near.connect();
      std::vector<std::byte> got(1000);
      for (std::uint64_t i = 0; i < 3 * blocks; ++i) {
        session.read(0, i % blocks * block, got);
        for (std::size_t k = 0; k < got.size(); ++k)
          if (got[k] != byte_at(i % blocks * block + k)) ++counts.wrong;
      }
      const auto before = session.report().counters.fetched;
      session.read(0, (blocks - 1) * block, got);  // the one that came last
      if (session.report().counters.fetched != before) ++counts.failures;
      // What has no room is not fetched whole again and again.
      if (counts.fetched[0] > 40) ++counts.failures;
      // Somebody else takes what is left.
      std::ofstream(mounted + "/other") << std::string(2 << 20, 'x');
      for (std::uint64_t i = 0; i < blocks; ++i) session.read(0, i * block, got);
      std::ofstream(mounted + "/more") << std::string(2 << 20, 'x');
      for (std::uint64_t i = 0; i < blocks; ++i) session.read(0, i * block, got);
      counts.reads = session.report().counters.corrupt;
    } catch (...) {
      ++counts.failures;
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    WARN("not run: no small file system can be mounted here");
    return;
  }
  CHECK(counts.wrong == 0);
  CHECK(counts.failures == 0);
  CHECK(counts.reads == 0);
}

}  // namespace cached_death_test
