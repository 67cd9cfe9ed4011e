// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A cache whose disk fails, whose users' clocks differ, that another version uses, or whose lock is not let
// go.
#include <penstock/storage/cached.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/cache/block_files.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/local/own_files.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/held_storage.hpp"
#include "support/stamped_files.hpp"
#include "support/temp_dir.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_TEST_MAY_PRELOAD 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PENSTOCK_TEST_MAY_PRELOAD 0
#endif
#endif
#ifndef PENSTOCK_TEST_MAY_PRELOAD
#define PENSTOCK_TEST_MAY_PRELOAD 1
#endif

namespace ps = penstock;
using namespace ps::literals;

namespace cached_faults_test {

namespace fs = std::filesystem;
namespace parts = ps::detail::blocks;
using penstock_test::eventually;
using penstock_test::stamped_files;

// The sanitizers have wrappers of their own around what the libraries here are preloaded for.
constexpr bool may_preload = PENSTOCK_TEST_MAY_PRELOAD == 1;

constexpr std::uint64_t block = 128 << 10, limit = 40 * block;

/// Objects of 20 blocks.
struct objects {
  std::vector<std::string> contents;
  stamped_files files;

  objects() {
    std::mt19937 random(3);
    for (const std::size_t size : std::initializer_list<std::size_t>{1, block, 9 * block + 777, 8 * block}) {
      std::string made(size, '\0');
      for (char& one : made) one = static_cast<char>(random());
      files.files = files.files.add("object-" + std::to_string(contents.size()), made);
      contents.push_back(std::move(made));
    }
  }
  static constexpr std::uint64_t blocks = 1 + 1 + 10 + 8;

  template <class Session>
  bool is_right(Session& session, ps::object_id id, std::size_t offset, std::size_t size) const {
    std::vector<std::byte> got(size);
    session.read(id, offset, got);
    return ps::text_of(got) == std::string_view(contents[id]).substr(offset, size);
  }
  /// Reads everything, in ranges that end anywhere.
  template <class Session>
  bool all_right(Session& session, unsigned seed = 1) const {
    std::mt19937 random(seed);
    bool right = true;
    for (ps::object_id id = 0; id < contents.size(); ++id)
      for (std::size_t at = 0, size = 0; at < contents[id].size(); at += size) {
        size = std::min<std::size_t>(contents[id].size() - at, 1 + random() % (2 * block));
        right = is_right(session, id, at, size) && right;
      }
    return right;
  }
};

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ps::error& e) {
    return std::string(ps::to_string(e.code())) + ": " + e.what();
  }
  return "none";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::string given(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}
std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// The command that runs a hidden test case of this program again.
std::string again(const std::string& before, const std::string& test, const std::string& how,
                  const fs::path& folder = {}) {
  std::array<char, 4096> self{};
  REQUIRE(::readlink("/proc/self/exe", self.data(), self.size() - 1) > 0);
  return "PENSTOCK_TEST_FAULTS=" + how + " PENSTOCK_TEST_FOLDER=" + quoted(folder.string()) + " " + before +
         " " + quoted(self.data()) + " -w NoTests " + quoted(test);
}

// ---- disks that fail

const std::string failing_disk = "storage/cached: in a process whose disk fails";
const std::string with_faults = "fiu-run -x -f ''";

/// Whether calls of the system can be made to fail. With CI=true they must be.
bool have_faults() {
  if (!may_preload) return false;
  static const bool have =
      penstock_test::have_program("libfiu (fiu-utils)", again(with_faults, failing_disk, "probe"));
  return have;
}

/// Which calls fail: each `every`th, or the `at`th alone.
struct times {
  unsigned every = 0, at = 0;
};

/// Makes a call of the system fail while this lives.
/// Asks libfiu, which `fiu-run` has preloaded.
class fault {
 public:
  using decision = int(const char* name, int* number, void** information, unsigned* flags);

  fault(std::string name, int code, times when) : fault(std::move(name), code, &decide) {
    calls = 0;
    chosen = when;
  }
  fault(std::string name, int code, decision* decides) : name_(std::move(name)) {
    using enable = int(const char*, int, void*, unsigned, decision*);
    auto* const call = reinterpret_cast<enable*>(::dlsym(RTLD_DEFAULT, "fiu_enable_external"));
    REQUIRE(call != nullptr);
    injected = 0;
    // An errno value takes the place of a pointer.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    REQUIRE(call(name_.c_str(), 1, reinterpret_cast<void*>(static_cast<std::intptr_t>(code)), 0, decides) ==
            0);
  }
  fault(const fault&) = delete;
  fault& operator=(const fault&) = delete;
  ~fault() {
    using disable = int(const char*);
    reinterpret_cast<disable*>(::dlsym(RTLD_DEFAULT, "fiu_disable"))(name_.c_str());
  }

  inline static std::atomic<unsigned> injected{0};

 private:
  static int decide(const char*, int*, void**, unsigned*) {
    const unsigned number = ++calls;
    const bool fails = chosen.every != 0 ? number % chosen.every == 0 : number == chosen.at;
    if (fails) ++injected;
    return fails ? 1 : 0;
  }
  inline static std::atomic<unsigned> calls{0};
  inline static times chosen;

  std::string name_;
};

constexpr const char* reads = "posix/io/rw/preadv";
constexpr const char* writes = "posix/io/rw/pwrite";

/// Reads while calls fail, and says what the cache did.
void read_with_faults(const std::string& how, const ps::disk_cache& where) {
  const objects all;
  const ps::cached near(all.files, where);
  auto session = near.connect();
  if (how == "reads") {
    REQUIRE(all.all_right(session, 1));
    {
      const fault third(reads, EIO, {.every = 3});
      for (unsigned seed = 2; seed < 6; ++seed) REQUIRE(all.all_right(session, seed));
      CHECK(session.report().counters.corrupt == fault::injected);
      CHECK(fault::injected > 0);
    }
    CHECK(session.report().counters.refetched > 0);
    CHECK(session.report().counters.uncached == 0);
    const fault each(reads, EIO, {.every = 1});
    // The first read finds the block damaged and fetches it again, and so on.
    for (unsigned seed = 6; seed < 8; ++seed) REQUIRE(all.all_right(session, seed));
  } else if (how == "writes") {
    const fault fourth(writes, EIO, {.every = 4});
    for (unsigned seed = 1; seed < 4; ++seed) REQUIRE(all.all_right(session, seed));
    CHECK(fault::injected > 0);
    CHECK(session.report().counters.uncached > 0);
    CHECK(session.report().counters.corrupt == 0);
  } else if (how == "short") {
    const fault cut_reads("posix/io/rw/preadv/reduce", EIO, {.every = 2});
    const fault cut_writes("posix/io/rw/pwrite/reduce", EIO, {.every = 2});
    for (unsigned seed = 1; seed < 4; ++seed) REQUIRE(all.all_right(session, seed));
    CHECK(fault::injected > 0);
    CHECK(session.report().counters.fetched == objects::blocks);
    CHECK(session.report().counters.corrupt + session.report().counters.uncached == 0);
  } else {
    REQUIRE(how == "threads");
    const fault failing("posix/io/rw/*", EIO, {.every = 5});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (unsigned k = 0; k < 5; ++k)
          if (!all.all_right(session, 10 * i + k)) ++wrong;
      });
    for (std::thread& one : threads) one.join();
    CHECK(wrong == 0);
    CHECK(fault::injected > 0);
  }
}

/// Opens a cache while one call fails, and then without faults.
void open_with_faults(const fs::path& folder) {
  const objects all;
  const std::string path = (folder / "cache").string();
  const auto connect = [&](std::uint64_t maximum) {
    return ps::cached(all.files, ps::disk_cache(path, maximum, {.block = block})).connect();
  };
  const auto opens = [&](const char* name, int code, unsigned at, std::uint64_t maximum) {
    const fault one(name, code, {.at = at});
    const std::string said = error_of([&] { (void)connect(maximum); });
    CHECK(fault::injected == 1);
    return said;
  };
  const std::string error = "Input/output error", index = path + "/penstock.index";
  const std::string data = path + "/penstock.blocks";
  const auto says = [](const std::string& said, const std::string& what, const std::string& file) {
    INFO(said);
    CHECK(contains(said, "io: penstock: " + what));
    CHECK(contains(said, file));
  };
  // While it is made.
  constexpr const char *open = "posix/io/oc/open", *read = "posix/io/rw/pread",
                       *cut = "posix/io/rw/ftruncate", *map = "posix/mm/mmap";
  says(opens(open, EIO, 1, limit), "cannot open the cache folder: " + error, path);
  says(opens(cut, EIO, 1, limit), "cannot empty the cache: " + error, data);
  says(opens(cut, EIO, 2, limit), "cannot empty the cache: " + error, index);
  says(opens(writes, EIO, 1, limit), "cannot make the cache: " + error, data);
  says(opens(writes, EIO, 2, limit), "cannot make the cache's index: " + error, index);
  says(opens(map, ENOMEM, 1, limit), "cannot map the cache's index: ", index);
  {
    auto session = connect(limit);
    CHECK(all.all_right(session));
    CHECK(session.report().counters.fetched == objects::blocks);
  }
  // What is there stays.
  says(opens(read, EIO, 1, limit), "cannot read the cache: " + error, index);
  says(opens(read, EIO, 2, limit), "cannot read the cache: " + error, data);
  says(opens(map, ENOMEM, 1, limit), "cannot map the cache's index: ", index);
  // Its blocks need not be mapped, nor its file be as long as all of them.
  CHECK(opens(map, ENOMEM, 2, limit) == "none");
  CHECK(opens(cut, EIO, 1, limit) == "none");
  // The heads of the files come in pieces, of other sizes each time.
  for (int i = 0; i < 20; ++i) {
    const fault cut_reads("posix/io/rw/pread/reduce", EIO, {.every = 1});
    CHECK(error_of([&] { (void)connect(limit); }) == "none");
    CHECK(fault::injected > 2);
  }
  for (const bool blocks : {false, true}) {
    std::unique_ptr<fault> unmapped;
    if (blocks) unmapped = std::make_unique<fault>(map, ENOMEM, times{.at = 2});
    auto session = connect(limit);
    CHECK(all.all_right(session));
    CHECK(all.all_right(session, 2));
    CHECK(session.report().counters.fetched == 0);
    CHECK(session.report().counters.corrupt + session.report().counters.uncached == 0);
  }
  // While it is emptied for another limit.
  says(opens(cut, EIO, 1, limit / 2), "cannot empty the cache: " + error, data);
  says(opens(cut, EIO, 2, limit / 2), "cannot empty the cache: " + error, index);
  says(opens(writes, EIO, 2, limit / 2), "cannot make the cache's index: " + error, index);
  CHECK(opens(cut, EIO, 3, limit / 2) == "none");
  auto session = connect(limit);
  CHECK(all.all_right(session));
  CHECK(session.report().counters.fetched == objects::blocks);
  CHECK(session.report().counters.corrupt + session.report().counters.uncached == 0);
}

/// The words of the slots that have blocks, in a mapping of their own.
std::vector<std::uint32_t*>& full_slots() {
  static std::vector<std::uint32_t*> all;
  return all;
}
/// Looks like another process that puts each block into its slot once more.
int move_blocks(const char*, int*, void**, unsigned*) {
  for (std::uint32_t* const word : full_slots()) std::atomic_ref(*word).fetch_add(4);
  ++fault::injected;
  return 0;
}

void read_what_moves(const fs::path& folder) {
  const objects all;
  const ps::cached near(all.files, ps::disk_cache(folder.string(), limit, {.block = block}));
  auto session = near.connect();
  REQUIRE(all.is_right(session, 1, 0, block));
  const parts::shape shape{block, parts::piece_size,
                           parts::block_index::slots_within(limit, block, parts::piece_size)};
  const parts::descriptor opened(::open((folder / "penstock.index").c_str(), O_RDWR | O_CLOEXEC));
  void* const mapped = ::mmap(nullptr, static_cast<std::size_t>(parts::block_index::bytes(shape)),
                              PROT_READ | PROT_WRITE, MAP_SHARED, opened.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  const parts::block_index index(static_cast<std::byte*>(mapped), shape);
  for (std::uint32_t slot = 0; slot < shape.slots; ++slot)
    if (index.look_at(slot).now() == parts::phase::full) full_slots().push_back(index.word_of(slot));
  REQUIRE(full_slots().size() == 1);
  {
    const fault moves(reads, EIO, &move_blocks);
    CHECK(all.is_right(session, 1, 100, 1000));
    CHECK(fault::injected == 1000);
  }
  CHECK(session.report().counters.uncached == 1);
  CHECK(session.report().counters.hits == 0);
  CHECK(all.is_right(session, 1, 100, 1000));
  CHECK(session.report().counters.hits == 1);
  CHECK(session.report().counters.fetched == 1);
}

TEST_CASE("storage/cached: in a process whose disk fails", "[.]") {
  const std::string how = given("PENSTOCK_TEST_FAULTS");
  if (how.empty()) return;  // the test cases below start it
  const penstock_test::deadline guard("reads from a disk that fails", std::chrono::seconds(100));
  const fs::path folder = given("PENSTOCK_TEST_FOLDER");
  if (how == "probe")
    REQUIRE(::dlsym(RTLD_DEFAULT, "fiu_enable_external") != nullptr);
  else if (how == "opening")
    open_with_faults(folder);
  else if (how == "moves")
    read_what_moves(folder);
  else
    for (const auto verify : {ps::verify::each_read, ps::verify::once})
      read_with_faults(how, ps::disk_cache((folder / (verify == ps::verify::once ? "once" : "each")).string(),
                                           limit, {.block = block, .verify = verify}));
  std::cout << "ended: " << how << '\n';
}

/// Runs the test case above.
void run_failing(const std::string& how, const fs::path& folder) {
  const auto ran = penstock_test::run_program(again(with_faults, failing_disk, how, folder));
  INFO(ran.output);
  CHECK(ran.status == 0);
  CHECK(contains(ran.output, "ended: " + how));
}

TEST_CASE("storage/cached: a disk whose reads and writes fail, and what it leaves") {
  if (!have_faults()) return;
  const objects all;
  for (const char* const how : {"reads", "writes", "short", "threads"}) {
    const penstock_test::temp_dir dir;
    run_failing(how, dir.path());
    // What was written while it failed needs no cleaning.
    for (const char* const verify : {"each", "once"}) {
      const ps::cached near(all.files, ps::disk_cache((dir / verify).string(), limit, {.block = block}));
      auto session = near.connect();
      CHECK(all.all_right(session));
      CHECK(session.report().counters.corrupt + session.report().counters.uncached == 0);
      CHECK(all.all_right(session));
      CHECK(session.report().counters.fetched <= objects::blocks);
      auto next = near.connect();
      CHECK(all.all_right(next));
      CHECK(next.report().counters.fetched == 0);
    }
  }
}

TEST_CASE("storage/cached: a disk that fails while a cache is opened is one error, and loses nothing") {
  if (!have_faults()) return;
  const penstock_test::temp_dir dir;
  run_failing("opening", dir.path());
}

TEST_CASE("storage/cached: a block that moves with each read is read past the cache") {
  if (!have_faults()) return;
  const penstock_test::temp_dir dir;
  run_failing("moves", dir.path());
}

/// Below, no file of this process grows beyond that.
bool limit_files(std::uint64_t bytes) {
  const rlimit maximum{static_cast<rlim_t>(bytes), RLIM_INFINITY};
  return ::setrlimit(RLIMIT_FSIZE, &maximum) == 0;
}

TEST_CASE("storage/cached: files that may not grow: no index is an error, no room for blocks is none") {
  const penstock_test::temp_dir dir;
  const objects all;
  const fs::path folder = dir / "cache";
  const int code = penstock_test::in_child([&] {
    const ps::cached near(all.files, ps::disk_cache(folder.string(), limit, {.block = block}));
    (void)::signal(SIGXFSZ, SIG_IGN);
    if (!limit_files(4096)) return 1;
    const std::string said = error_of([&] { (void)near.connect(); });
    if (!contains(said, "cannot make the cache's index: File too large")) return 2;
    if (!contains(said, "penstock.index") || fs::file_size(folder / "penstock.index") != 0) return 3;
    constexpr std::uint64_t some = 5;
    const parts::shape shape{block, parts::piece_size,
                             parts::block_index::slots_within(limit, block, parts::piece_size)};
    const std::uint64_t room = parts::block_index::data_head + some * block;
    if (parts::block_index::bytes(shape) > room) return 4;
    if (!limit_files(room)) return 5;
    auto session = near.connect();
    if (!all.all_right(session) || !all.all_right(session, 2)) return 6;
    const ps::storage_counters did = session.report().counters;
    if (did.uncached == 0 || did.hits == 0 || did.corrupt != 0) return 7;
    return 0;
  });
  CHECK(code == 0);
  const ps::cached near(all.files, ps::disk_cache(folder.string(), limit, {.block = block}));
  auto session = near.connect();
  CHECK(all.all_right(session));
  CHECK(session.report().counters.fetched == objects::blocks - 5);
  CHECK(session.report().counters.corrupt + session.report().counters.uncached == 0);
}

// ---- clocks that differ

const std::string set_back = "storage/cached: in a process whose clock is a day behind";
const std::string a_day_behind = "FAKETIME_DONT_FAKE_MONOTONIC=1 faketime -f -1d";

/// Far enough away that two processes read at the same time.
ps::simulated_storage<stamped_files> slow(const objects& all) {
  return ps::simulated_storage(all.files, {.latency = std::chrono::milliseconds(2)});
}

TEST_CASE("storage/cached: in a process whose clock is a day behind", "[.]") {
  const std::string how = given("PENSTOCK_TEST_FAULTS");
  if (how.empty()) return;  // the test case below starts it
  const penstock_test::deadline guard("reads with another clock", std::chrono::seconds(100));
  const auto now =
      std::chrono::duration_cast<std::chrono::hours>(std::chrono::system_clock::now().time_since_epoch());
  if (how == "probe") {
    std::cout << "hours: " << now.count() << '\n';
    return;
  }
  const objects all;
  REQUIRE(std::stoll(how) - now.count() >= 23);
  const ps::cached near(slow(all), ps::disk_cache(given("PENSTOCK_TEST_FOLDER"), limit, {.block = block}));
  auto session = near.connect();
  REQUIRE(all.all_right(session, 1));
  REQUIRE(all.all_right(session, 2));
  CHECK(session.report().counters.evicted + session.report().counters.corrupt +
            session.report().counters.uncached ==
        0);
  std::cout << "fetched: " << session.report().counters.fetched << ".\n";
}

TEST_CASE("storage/cached: processes whose clocks differ by a day fetch each block once") {
  if (!may_preload ||
      !penstock_test::have_program("libfaketime (faketime)", again(a_day_behind, set_back, "probe")))
    return;
  const objects all;
  const penstock_test::temp_dir dir;
  const fs::path folder = dir / "cache";
  const ps::cached near(slow(all), ps::disk_cache(folder.string(), limit, {.block = block}));
  auto session = near.connect();
  const auto now =
      std::chrono::duration_cast<std::chrono::hours>(std::chrono::system_clock::now().time_since_epoch());
  const std::string command = again(a_day_behind, set_back, std::to_string(now.count()), folder);
  penstock_test::program_result ran;
  std::thread other([&] { ran = penstock_test::run_program(command); });
  bool right = true;
  for (ps::object_id id = 3; id != 0; --id)
    for (std::size_t at = all.contents[id].size(); at != 0; at -= std::min<std::size_t>(at, block))
      right = all.is_right(session, id, at - 1, 1) && right;
  other.join();
  INFO(ran.output);
  CHECK(right);
  CHECK(ran.status == 0);
  CHECK(all.all_right(session));
  CHECK(session.report().counters.evicted + session.report().counters.corrupt +
            session.report().counters.uncached ==
        0);
  const std::uint64_t left = objects::blocks - session.report().counters.fetched;
  CHECK(contains(ran.output, "fetched: " + std::to_string(left) + "."));
}

// ---- versions that differ

/// Writes the word of an index that says its version.
void set_version(const fs::path& folder, std::uint32_t version) {
  const parts::descriptor opened(::open((folder / "penstock.index").c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::pwrite(opened.get(), &version, sizeof(version), 16) == sizeof(version));
}

TEST_CASE("storage/cached: another version is refused while a session goes on, and neither loses anything") {
  const objects all;
  const penstock_test::temp_dir dir;
  const fs::path folder = dir / "cache";
  const ps::cached near(all.files, ps::disk_cache(folder.string(), limit, {.block = block}));
  auto session = near.connect();
  CHECK(all.is_right(session, 2, 0, 3 * block));
  CHECK(session.report().counters.fetched == 3);
  // The session's folder, as it looks to a program of another version.
  const std::string newer = std::to_string(parts::block_index::version + 1);
  set_version(folder, parts::block_index::version + 1);
  const std::string before = bytes_of(folder / "penstock.index");
  const auto refused = [&] {
    const std::string said = error_of([&] { (void)near.connect(); });
    return contains(said, "argument: penstock: the cache is of version " + newer + ", or") &&
           contains(said,
                    "; give each version a folder of its own, or delete the folder when nobody uses it");
  };
  CHECK(penstock_test::in_child([&] { return refused() ? 0 : 1; }) == 0);
  CHECK(refused());
  CHECK(bytes_of(folder / "penstock.index") == before);
  CHECK(all.all_right(session));
  CHECK(session.report().counters.fetched == objects::blocks);
  CHECK(session.report().counters.corrupt + session.report().counters.uncached == 0);
  set_version(folder, parts::block_index::version);
  auto next = near.connect();
  CHECK(all.all_right(next));
  CHECK(next.report().counters.fetched == 0);
}

TEST_CASE("storage/cached: a folder of version 1 is refused and left as it is, in use or not") {
  const objects all;
  const penstock_test::temp_dir dir;
  const fs::path folder = dir / "cache", index = folder / "penstock.index", data = folder / "penstock.blocks";
  const ps::cached near(all.files, ps::disk_cache(folder.string(), limit, {.block = block}));
  {
    auto session = near.connect();
    CHECK(all.all_right(session));
  }
  set_version(folder, 1);
  const std::string old_index = bytes_of(index), old_data = bytes_of(data);
  const auto is_refused = [&] {
    const std::string said = error_of([&] { (void)near.connect(); });
    INFO(said);
    CHECK(contains(said, "argument: penstock: the cache is of version 1, or"));
    CHECK(contains(said, "give each version a folder of its own, or delete the folder when nobody uses it"));
    CHECK((bytes_of(index) == old_index));  // these bytes are no message
    CHECK((bytes_of(data) == old_data));
  };
  const pid_t user = ::fork();
  REQUIRE(user >= 0);
  if (user == 0) {
    ::alarm(100);
    using ps::detail::byte_lock;
    for (const fs::path& path : {index, data}) {
      const int opened = ::open(path.c_str(), O_RDWR);
      if (!ps::detail::lock_byte(opened, parts::block_files::users_byte, byte_lock::shared)) ::_exit(1);
    }
    for (;;) ::pause();
  }
  {
    const penstock_test::deadline guard("waits for a user of the old version", std::chrono::seconds(60));
    const parts::descriptor opened(::open(data.c_str(), O_RDWR | O_CLOEXEC));
    eventually([&] { return ps::detail::is_locked(opened.get(), parts::block_files::users_byte); });
  }
  is_refused();
  REQUIRE(::kill(user, 0) == 0);  // it has used the folder until now
  REQUIRE(::kill(user, SIGKILL) == 0);
  REQUIRE(::waitpid(user, nullptr, 0) == user);
  is_refused();
  fs::remove_all(folder);
  auto session = near.connect();
  CHECK(all.all_right(session));
}

// ---- a lock that is not let go

/// A process that is stopped while it changes the folder, until this is destroyed.
class stopped_changer {
 public:
  explicit stopped_changer(const fs::path& folder) : index_((folder / "penstock.index").string()) {
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      using ps::detail::byte_lock;
      const int opened = ::open(index_.c_str(), O_RDWR);
      if (!ps::detail::lock_byte(opened, parts::block_files::change_byte, byte_lock::exclusive)) ::_exit(1);
      (void)::raise(SIGSTOP);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child_, &status, WUNTRACED) == child_);
    REQUIRE(WIFSTOPPED(status));
  }
  stopped_changer(const stopped_changer&) = delete;
  stopped_changer& operator=(const stopped_changer&) = delete;
  ~stopped_changer() {
    (void)::kill(child_, SIGKILL);
    (void)::waitpid(child_, nullptr, 0);
  }

 private:
  std::string index_;
  pid_t child_;
};

TEST_CASE("storage/cached: a wait for the lock of a folder ends when it is told to, not when it is late") {
  const penstock_test::deadline guard("waits for the lock of a folder");
  const penstock_test::temp_dir dir;
  const fs::path folder = dir / "cache";
  const parts::shape shape{block, parts::piece_size, 4};
  parts::block_files files(folder.string(), shape);
  files.unlock_folder();
  const stopped_changer stopped(folder);
  bool locked = true;
  std::thread waits([&, begun = files.stops.now()] { locked = files.lock_folder(begun); });
  files.stops.stop();
  waits.join();
  CHECK_FALSE(locked);
  files.stops.stop_for_good();
  CHECK_FALSE(files.lock_folder(files.stops.now()));
  CHECK_FALSE(files.stuck);  // a wait of full length would say so
}

/// Files in memory that count who asked for a version, which is how a read of `cached` begins.
struct asked_files : stamped_files {
  std::atomic<int>* asked;

  struct session : stamped_files::session {
    std::atomic<int>* asked;
    session(const asked_files& of)
        : stamped_files::session(static_cast<const stamped_files&>(of).connect()), asked(of.asked) {}
    [[nodiscard]] ps::object_version version(ps::object_id id) const {
      ++*asked;
      return stamped_files::session::version(id);
    }
  };
  [[nodiscard]] session connect() const { return {*this}; }
};

/// How reads in the background ended.
struct outcomes {
  std::atomic<int> done{0}, stopped{0};

  [[nodiscard]] ps::read_listener listener() {
    return {this, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
              auto& all = *static_cast<outcomes*>(self);
              try {
                if (failed) std::rethrow_exception(failed);
              } catch (const ps::error& e) {
                if (e.code() == ps::errc::stopped) ++all.stopped;
              } catch (...) {  // which is not stopped
              }
              ++all.done;
            }};
  }
};

TEST_CASE(
    "storage/cached: the wait for a stopped process that changes the folder ends when it is cancelled") {
  const penstock_test::deadline guard("waits for the lock of the folder");
  const objects all;
  const penstock_test::temp_dir dir;
  const fs::path folder = dir / "cache";
  std::atomic<int> asked{0};
  const ps::cached near(asked_files{all.files, &asked},
                        ps::disk_cache(folder.string(), limit, {.block = block}));
  auto session = near.connect(), ending = near.connect(), ended_before = near.connect();
  CHECK(all.is_right(session, 3, 0, block));
  std::vector<std::byte> first(10), second(10), third(10);
  outcomes seen;
  {
    const stopped_changer stopped(folder);
    CHECK(all.is_right(session, 3, 5, block - 5));  // what is there needs no lock

    // After 10 s each of these would be read past the cache, and not be stopped.
    const std::array<ps::read_request, 2> requests{{{0, 0, std::span(first).first(1), 0}, {1, 0, second, 0}}};
    session.read_many(requests, seen.listener());
    eventually([&] { return asked == 3; });  // they have begun
    eventually([&] {
      session.cancel();
      return seen.done == 2;
    });
    CHECK(seen.stopped == 2);

    // Somebody else's thread.
    std::string said;
    std::atomic<bool> ended{false};
    std::thread reads_too([&] {
      said = error_of([&] { session.read(2, 3, third); });
      ended = true;
    });
    eventually([&] { return asked == 4; });
    eventually([&] {
      session.cancel();
      return ended.load();
    });
    reads_too.join();
    CHECK(contains(said, "stopped: penstock: the read was cancelled"));
    CHECK(contains(said, "object-2"));
    CHECK(session.report().counters.uncached == 0);

    // The end of a session.
    const ps::read_request last{2, 0, first, 0};
    ending.read_many(std::span(&last, 1), seen.listener());
    eventually([&] { return asked == 5; });
    { const auto gone = std::move(ending); }
    CHECK(seen.done == 3);
    CHECK(seen.stopped == 3);
    // Reads that begin after it do not wait, either.
    ended_before.end_reads();
    CHECK(contains(error_of([&] { ended_before.read(2, 0, first); }), "stopped: "));
  }
  CHECK(all.all_right(session));
  CHECK(session.report().counters.fetched == objects::blocks);
}

}  // namespace cached_faults_test
