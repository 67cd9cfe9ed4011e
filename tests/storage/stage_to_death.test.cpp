// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processes that stage together and are killed at any moment, and disks that are full or cannot be written.
#include <penstock/storage/stage_to.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/deadline.hpp"
#include "support/staged_store.hpp"
#include "support/temp_dir.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace stage_to_death_test {

using penstock_test::in_child;
using penstock_test::staged_counts;
using penstock_test::staged_store;
using penstock_test::temp_dir;

constexpr std::uint64_t max_in_flight = 4, part = 4096;

std::vector<std::string> stage(const staged_store& far, const std::string& folder) {
  const ps::file local = ps::stage_to(far, folder, {.max_in_flight = max_in_flight, .part_size = part});
  return {local.names().begin(), local.names().end()};
}
/// The same, where it would be a hang if it did not end. The guard is a thread, and a process that has more
/// than one should not fork.
std::vector<std::string> stage_here(const staged_store& far, const std::string& folder) {
  const penstock_test::deadline guard("stage_to after others were killed");
  return stage(far, folder);
}
/// A process that stages, and is wrong if the copies are.
pid_t start(const staged_store& far, const std::string& folder) {
  const pid_t made = ::fork();
  REQUIRE(made >= 0);
  if (made == 0) {
    ::alarm(200);
    try {
      if (far.wrong(stage(far, folder)) != 0) ++far.counts->failures;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      ++far.counts->failures;
    }
    ::_exit(0);
  }
  return made;
}
void wait_for(pid_t one) { REQUIRE(::waitpid(one, nullptr, 0) == one); }
void kill_now(pid_t one) {
  REQUIRE(::kill(one, SIGKILL) == 0);
  wait_for(one);
}

TEST_CASE("storage/stage_to: a process that is killed twenty times goes on where it was") {
  constexpr int kills = 20;
  const temp_dir dir;
  staged_store far(staged_counts::make(), {300'000, 1, 0, 70'001, 500'000, 4096, 250'000});
  far.takes = std::chrono::microseconds(500);
  far.special = [](const staged_store&) { (void)::kill(::getpid(), SIGKILL); };
  std::mt19937 random(11);
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    // By itself in one of its next reads, or by this process at a moment that may be any.
    const bool by_itself = i % 2 == 0;
    far.counts->special_read = by_itself ? far.counts->reads + 1 + random() % 20 : 0;
    const pid_t one = start(far, dir.path().string());
    if (!by_itself) {
      std::this_thread::sleep_for(std::chrono::microseconds(1000 + random() % 8000));
      REQUIRE(::kill(one, SIGKILL) == 0);
    }
    int status = 0;
    REQUIRE(::waitpid(one, &status, 0) == one);
    if (WIFSIGNALED(status)) ++killed;
  }
  far.special = nullptr;
  CHECK(killed > 0);
  const std::uint64_t before = far.counts->all();
  CHECK(before > 0);
  CHECK(far.wrong(stage_here(far, dir.path().string())) == 0);
  CHECK(far.counts->failures == 0);
  CHECK(far.counts->all() <= far.size() + kills * max_in_flight * part);
  // Nothing of it is left to do.
  far.counts->forget();
  (void)stage_here(far, dir.path().string());
  CHECK(far.counts->all() == 0);
}

TEST_CASE("storage/stage_to: copies of local files, made by a process that is killed") {
  const temp_dir dir;
  std::vector<std::string> paths, texts;
  for (unsigned i = 0; i < 3; ++i) {
    std::string text(5'000'000 + 77 * i, '\0');
    for (std::size_t k = 0; k < text.size(); ++k) text[k] = static_cast<char>(staged_store::byte_at(i, 0, k));
    paths.push_back((dir / ("far-" + std::to_string(i))).string());
    std::ofstream(paths.back(), std::ios::binary) << text;
    texts.push_back(std::move(text));
  }
  const ps::file far(paths);
  const std::string folder = (dir / "near").string();
  std::mt19937 random(13);
  for (int i = 0; i < 20; ++i) {
    const pid_t one = ::fork();
    REQUIRE(one >= 0);
    if (one == 0) {
      ::alarm(200);
      (void)ps::stage_to(far, folder, {.max_in_flight = 2, .part_size = 50'000});
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 3000));
    kill_now(one);
  }
  const ps::file local = ps::stage_to(far, folder);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::ifstream in(local.names()[i], std::ios::binary);
    CHECK((std::string(std::istreambuf_iterator<char>(in), {}) == texts[i]));
  }
}

TEST_CASE("storage/stage_to: processes that are killed and replaced while others work") {
  constexpr int kills = 20;
  const temp_dir dir;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 40; ++i) sizes.push_back(1 + i * 3001 % 60'000);
  staged_store far(staged_counts::make(), sizes);
  far.takes = std::chrono::microseconds(500);
  std::mt19937 random(12);
  std::vector<pid_t> all;
  for (int i = 0; i < 3; ++i) all.push_back(start(far, dir.path().string()));
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    pid_t& one = all[random() % all.size()];
    kill_now(one);
    one = start(far, dir.path().string());
  }
  for (const pid_t one : all) wait_for(one);
  CHECK(far.counts->failures == 0);
  CHECK(far.wrong(stage_here(far, dir.path().string())) == 0);
  CHECK(far.counts->all() <= far.size() + kills * max_in_flight * part);
}

TEST_CASE("storage/stage_to: four processes at once fetch each byte once") {
  const temp_dir dir;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < 60; ++i) sizes.push_back(i * 2999 % 50'000);
  staged_store far(staged_counts::make(), sizes);
  far.takes = std::chrono::microseconds(200);
  std::vector<pid_t> all;
  for (int i = 0; i < 4; ++i) all.push_back(start(far, dir.path().string()));
  for (const pid_t one : all) wait_for(one);
  CHECK(far.counts->failures == 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) CHECK(far.counts->fetched[i] == sizes[i]);
  CHECK(far.wrong(stage_here(far, dir.path().string())) == 0);
}

TEST_CASE("storage/stage_to: threads of one process at once fetch each byte once") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {50'000, 60'000, 10, 0, 70'000, 4096});
  far.takes = std::chrono::microseconds(200);
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i)
    all.emplace_back([&] {
      if (far.wrong(stage(far, dir.path().string())) != 0) ++far.counts->failures;
    });
  for (std::thread& one : all) one.join();
  CHECK(far.counts->failures == 0);
  CHECK(far.counts->all() == far.size());
}

TEST_CASE("storage/stage_to: a child that outlives a killed process keeps none of its locks") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {50'000});
  far.counts->special_read = 5;
  far.special = [](const staged_store& here) {
    const pid_t made = ::fork();
    if (made == 0)
      for (;;) ::pause();
    here.counts->failures = static_cast<std::uint64_t>(made);
    (void)::kill(::getpid(), SIGKILL);
  };
  wait_for(start(far, dir.path().string()));
  const auto child = static_cast<pid_t>(far.counts->failures);
  REQUIRE(child != 0);
  far.special = nullptr;
  CHECK(far.wrong(stage_here(far, dir.path().string())) == 0);
  (void)::kill(child, SIGKILL);
}

TEST_CASE("storage/stage_to: a process that waits for another one can be stopped") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {50'000});
  far.counts->special_read = 2;
  far.special = [](const staged_store&) {
    for (;;) ::pause();
  };
  const pid_t other = start(far, dir.path().string());
  while (far.counts->reads < 2) std::this_thread::yield();
  std::stop_source stop;
  const auto watch = [&](const ps::stage_progress& now) {
    if (now.bytes != 0) stop.request_stop();
  };
  CHECK_THROWS_AS(ps::stage_to(far, dir.path().string(), {.stop = stop.get_token()}, watch), ps::error);
  kill_now(other);
  CHECK(far.wrong(stage_here(far, dir.path().string())) == 0);
}

/// Runs `body` with a file system of this size at `where`, which only its process sees. Warns where none can
/// be mounted.
template <class Body>
void on_small_disk(const std::string& where, const char* size, Body body) {
  const int code = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
    (void)::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("tmpfs", where.c_str(), "tmpfs", 0, size) != 0) return 77;
    return body();
  });
  if (code == 77)
    WARN("not run: no small file system can be mounted here");
  else
    CHECK(code == 0);
}
/// Whether `stage` throws an error of this kind with this text.
bool fails_with(const staged_store& far, const std::string& folder, ps::errc code, std::string_view text) {
  try {
    (void)stage(far, folder);
  } catch (const ps::error& e) {
    if (e.code() == code && std::string_view(e.what()).find(text) != std::string_view::npos) return true;
    std::fprintf(stderr, "%s\n", e.what());
  }
  return false;
}

TEST_CASE("storage/stage_to: a disk with too little room is refused before anything is fetched") {
  const temp_dir dir;
  const staged_store far(staged_counts::make(), {700'000, 700'000});
  const std::string mounted = dir.path().string();
  on_small_disk(mounted, "size=1200k,mode=700", [&] {
    if (!fails_with(far, mounted + "/near", ps::errc::io, "and 1400000 more are needed")) return 1;
    if (far.counts->all() != 0) return 2;
    // What is there needs no room.
    staged_store half(*far.counts, {700'000});
    (void)stage(half, mounted + "/near");
    half.sizes.push_back(300'000);
    half.list.push_back("far/object-1.bin");
    half.counts->forget();
    if (half.wrong(stage(half, mounted + "/near")) != 0) return 3;
    return half.counts->all() == 300'000 ? 0 : 4;
  });
}

TEST_CASE("storage/stage_to: what a disk that becomes full has taken is gone on with") {
  const temp_dir dir;
  staged_store far(staged_counts::make(), {700'000});
  const std::string mounted = dir.path().string();
  far.note = mounted + "/other";
  far.counts->special_read = 50;
  far.special = [](const staged_store& here) { std::ofstream(here.note) << std::string(2 << 20, 'x'); };
  on_small_disk(mounted, "size=1200k,mode=700", [&] {
    if (!fails_with(far, mounted + "/near", ps::errc::io, "bytes free, and ")) return 1;
    far.special = nullptr;
    const std::uint64_t before = far.counts->all();
    if (!fails_with(far, mounted + "/near", ps::errc::io, "more are needed")) return 2;
    if (far.counts->all() != before) return 3;
    fs::remove(far.note);
    if (far.wrong(stage(far, mounted + "/near")) != 0) return 4;
    return far.counts->all() <= 700'000 + max_in_flight * part ? 0 : 5;
  });
}

TEST_CASE("storage/stage_to: files of another file system are read where the system cannot copy them") {
  const temp_dir dir, other;
  const std::string mounted = dir.path().string(), path = (other / "far.bin").string();
  const std::string text(300'000, 'x');
  std::ofstream(path, std::ios::binary) << text;
  on_small_disk(mounted, "size=1200k,mode=700", [&] {
    const ps::file local = ps::stage_to(ps::file({path.c_str()}), mounted, {.part_size = 10'000});
    std::ifstream in(local.names()[0], std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {}) == text ? 0 : 1;
  });
}

TEST_CASE("storage/stage_to: a folder that cannot be written is an error") {
  const temp_dir dir;
  const staged_store far(staged_counts::make(), {700'000});
  const std::string mounted = dir.path().string();
  on_small_disk(mounted, "size=1200k,mode=700", [&] {
    if (::mount("none", mounted.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return 77;
    if (!fails_with(far, mounted, ps::errc::io, "cannot make the folder")) return 1;
    if (!fails_with(far, mounted + "/near", ps::errc::io, "cannot make the folder")) return 2;
    return far.counts->all() == 0 ? 0 : 3;
  });
}

}  // namespace stage_to_death_test
