// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program of its own: it replaces operator new, and every allocation, start of a thread, read and decoding
// fails in turn. Whatever fails, a run delivers the whole sequence or one error after a true prefix of it; it
// does not hang, nothing leaks, and the plan works afterwards.

#include <penstock/codec/text.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/threaded_reads.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"
#include "sweep/sweep.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <list>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace ps = penstock;
using namespace penstock_sweep;

namespace {

countdown thread_starts, calls, reads, system_calls;
std::atomic<bool> reads_come_short{false};  // the failing read returns half the requested bytes
std::atomic<bool> interrupted{false};       // failing system calls are only interrupted

void* allocate(std::size_t size, std::size_t alignment) {
  void* memory = nullptr;
  if (allocations.pass())
    memory = alignment <= alignof(std::max_align_t)
                 ? std::malloc(size == 0 ? 1 : size)
                 : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}
void release(void* memory) noexcept {
  if (memory != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return allocate(size, 1); }
[[gnu::noinline]] void* operator new[](std::size_t size) { return allocate(size, 1); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return allocate(size, 1);
  } catch (...) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment,
                                     const std::nothrow_t&) noexcept {
  try {
    return allocate(size, static_cast<std::size_t>(alignment));
  } catch (...) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

// The sanitizers have functions of their own under these names.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

/// The C library's function behind one of the replacements below.
template <class Function>
Function* behind(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
/// Whether this system call works; otherwise errno says why not.
bool works(bool transfers) noexcept {
  if ((interrupted && !transfers) || system_calls.pass()) return true;
  errno = interrupted ? EINTR : EIO;
  return false;
}

}  // namespace

extern "C" ssize_t read(int descriptor, void* into, std::size_t size) {
  static const auto real = behind<ssize_t(int, void*, std::size_t)>("read");
  return works(true) ? real(descriptor, into, size) : -1;
}
extern "C" ssize_t preadv(int descriptor, const iovec* parts, int count, off_t offset) {
  static const auto real = behind<ssize_t(int, const iovec*, int, off_t)>("preadv");
  return works(true) ? real(descriptor, parts, count, offset) : -1;
}
extern "C" ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  static const auto real = behind<ssize_t(int, const void*, std::size_t)>("write");
  return works(true) ? real(descriptor, bytes, size) : -1;
}
extern "C" int open(const char* path, int flags, ...) {
  static const auto real = behind<int(const char*, int, ...)>("open");
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    std::va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return works(false) ? real(path, flags, mode) : -1;
}
extern "C" int fstat(int descriptor, struct stat* found) noexcept {
  static const auto real = behind<int(int, struct stat*)>("fstat");
  return works(false) ? real(descriptor, found) : -1;
}
extern "C" int stat(const char* path, struct stat* found) noexcept {
  static const auto real = behind<int(const char*, struct stat*)>("stat");
  return works(false) ? real(path, found) : -1;
}
extern "C" int fsync(int descriptor) {
  static const auto real = behind<int(int)>("fsync");
  return works(false) ? real(descriptor) : -1;
}
extern "C" int rename(const char* old_path, const char* new_path) noexcept {
  static const auto real = behind<int(const char*, const char*)>("rename");
  return works(false) ? real(old_path, new_path) : -1;
}
extern "C" void* mmap(void* where, std::size_t size, int protection, int flags, int descriptor,
                      off_t offset) noexcept {
  static const auto real = behind<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  return descriptor < 0 || works(false) ? real(where, size, protection, flags, descriptor, offset)
                                        : MAP_FAILED;
}
extern "C" ssize_t pread(int descriptor, void* into, std::size_t size, off_t offset) {
  static const auto real = behind<ssize_t(int, void*, std::size_t, off_t)>("pread");
  if (!works(true)) return -1;
  if (!reads.pass()) {
    if (!reads_come_short) {
      errno = EIO;
      return -1;
    }
    size -= size / 2;
  }
  return real(descriptor, into, size, offset);
}
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  static const auto real =
      behind<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return thread_starts.pass() ? real(thread, attributes, start, argument) : 11;  // EAGAIN
}
#endif

namespace {

std::vector<int> numbers(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}
const std::vector<std::string> words = {"a", "bc", "def", "", "g", "hij", "kl", "m", "nop"};

struct failing_map {
  int operator()(int x) const {
    if (!calls.pass()) throw std::runtime_error("a function fails");
    return x + 1;
  }
};
/// A codec whose n-th decoding fails.
struct failing_text : ps::text {
  template <class In>
  auto decode(const In& in, ps::no_scratch& scratch) const {
    if (!calls.pass()) throw ps::error(ps::errc::format, "a decoding fails");
    return ps::text::decode(in, scratch);
  }
};

/// A map that fails for some values.
struct sometimes_bad {
  int operator()(int x) const {
    if (x % 7 == 3) throw ps::error(ps::errc::format, "a bad value");
    return x;
  }
};

/// 40 rows of a numpy array.
const ps::memory_files rows = [] {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (40, 3), }";
  header.resize(117, ' ');
  std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n';
  for (int i = 0; i < 120; ++i) file += static_cast<char>(i);
  return ps::memory_files().add("rows.npy", file);
}();

template <class Test>
void on_plans(Test test) {
  for (const unsigned workers : {0u, 2u}) {
    INFO(workers << " workers");
    test("direct", [=] {
      return ps::from(numbers(40)) | ps::shuffle(ps::seed(3)) | ps::shard(1, 2) | ps::map(failing_map{}) |
             ps::batch(4) | ps::workers(workers);
    });
    test("decoded and ragged", [=] {
      return ps::from(words) | ps::decode<failing_text> | ps::batch(4, ps::ragged) | ps::workers(workers);
    });
    test("bad samples skipped", [=] {
      return ps::from(numbers(30)) | ps::map(sometimes_bad{}) | ps::map(failing_map{}) |
             ps::bad_samples::skip(100) | ps::batch(4) | ps::workers(workers);
    });
    test("bad samples replaced", [=] {
      return ps::from(numbers(30)) | ps::shuffle(ps::seed(2)) | ps::map(sometimes_bad{}) |
             ps::map(failing_map{}) | ps::bad_samples::replace(100) | ps::batch(4) | ps::workers(workers);
    });
    test("bad samples dropped", [=] {
      return ps::from(numbers(30)) | ps::map(sometimes_bad{}) | ps::map(failing_map{}) |
             ps::filter([](int x) { return x % 4 != 0; }) | ps::bad_samples::skip(100) | ps::batch(4) |
             ps::workers(workers);
    });
    test("filter", [=] {
      return ps::from(numbers(60)) | ps::filter([](int x) { return x % 3 != 0; }) | ps::map(failing_map{}) |
             ps::batch(4) | ps::steps(7) | ps::workers(workers);
    });
    test("shuffle_buffer", [=] {
      return ps::from(numbers(40)) | ps::shuffle_buffer(8) | ps::map(failing_map{}) | ps::batch(4) |
             ps::workers(workers) | ps::prefetch(3);
    });
    test("fetched", [=] {
      const ps::simulated_storage far(rows, {.latency = std::chrono::microseconds(20)});
      return ps::npy_rows<std::uint8_t, 3>(far) | ps::shuffle(ps::seed(2)) | ps::prefetch(8) |
             ps::map([](const auto& row) { return static_cast<int>(row.data()[0]); }) |
             ps::map(failing_map{}) | ps::batch(4) | ps::workers(workers);
    });
    test("without batches",
         [=] { return ps::from(numbers(30)) | ps::map(failing_map{}) | ps::workers(workers); });
    test("forward", [=] {
      const auto all = numbers(30);
      return ps::from(std::list<int>(all.begin(), all.end())) | ps::shuffle_buffer(5) |
             ps::map(failing_map{}) | ps::batch(4) | ps::workers(workers);
    });
  }
}

/// Two shards in a folder.
struct shards {
  shards() {
    for (int shard = 0; shard < 2; ++shard) {
      penstock_test::raw_tar tar;
      for (int i = 0; i < 5; ++i)
        tar.member(std::to_string(5 * shard + i) + ".txt",
                   std::string(static_cast<std::size_t>(50 + i), 'x'));
      tar.end().save((folder / ("s" + std::to_string(shard) + ".tar")).string());
    }
  }
  void remove_indexes() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (entry.path().extension() != ".tar") std::filesystem::remove(entry.path());
  }
  /// `ahead`: samples are fetched ahead.
  [[nodiscard]] auto plan(std::uint64_t ahead = 0) const {
    return ps::webdataset(ps::file((folder / "s{0..1}.tar").string(), {.access = ps::file_access::read})) |
           ps::fields<"txt"> | ps::decode<ps::field<"txt", ps::text>> | ps::prefetch(ahead) |
           ps::map([](const auto& r) { return static_cast<int>(ps::get<"txt">(r).size()); }) | ps::batch(3) |
           ps::workers(2);
  }

  penstock_test::temp_dir folder;
};

}  // namespace

TEST_CASE("sweep: every allocation fails in turn") {
  const penstock_test::deadline guard("allocations fail", std::chrono::seconds(250));
  std::uint64_t points = 0;
  on_plans([&](const char* name, auto make) {
    INFO(name);
    points += sweep(allocations, make);
  });
  WARN(points << " allocations failed");
  CHECK(points > 300);
}

namespace {

/// Counts the reports of each read, and allocates nothing.
struct told_reads {
  std::array<std::atomic<int>, 12> times{};
  std::atomic<int> all{0}, failed{0};

  [[nodiscard]] ps::read_listener listener() {
    return {this, [](void* self, std::uint64_t tag, std::exception_ptr error) noexcept {
              auto& it = *static_cast<told_reads*>(self);
              ++it.times[tag];
              if (error) ++it.failed;
              error = nullptr;  // before it counts: then nothing remains of the read
              ++it.all;
              it.all.notify_all();
            }};
  }
  void wait() const {
    for (int seen = all; seen < 12; seen = all) all.wait(seen);
  }
  [[nodiscard]] bool each_once() const {
    return std::all_of(times.begin(), times.end(), [](const std::atomic<int>& n) { return n == 1; });
  }
};

/// Background reads of the first object, failing in turn: each read is reported once, as a failure or with
/// its bytes.
template <class Storage>
std::uint64_t sweep_reads(countdown& kind, const Storage& where, std::byte wanted) {
  for (std::int64_t n = 1;; ++n) {
    INFO("failure number " << n);
    const std::int64_t before = live.load();
    std::array<std::byte, 12> bytes{};
    told_reads told;
    bool connected = false;
    kind.arm(n);
    try {
      auto session = where.connect();
      connected = true;
      std::array<ps::read_request, 12> requests;
      for (std::size_t i = 0; i < 12; ++i) requests[i] = {0, i, {&bytes[i], 1}, i};
      session.read_many(requests, told.listener());
      told.wait();
    } catch (const std::exception&) {
    }
    kind.disarm();
    CHECK(live.load() == before);
    if (connected) {
      CHECK(told.each_once());
      CHECK(std::count(bytes.begin(), bytes.end(), wanted) == 12 - told.failed);
    }
    if (!kind.fired()) {
      CHECK(told.failed == 0);
      return static_cast<std::uint64_t>(n - 1);
    }
  }
}

/// A storage whose sessions read in the background with threads, like `uring_file` without io_uring.
struct pooled_storage {
  struct session {
    explicit session(const ps::memory_files& where)
        : files(where.connect()), pool(ps::session_view(files), {}, 3) {}
    void read_many(std::span<const ps::read_request> requests, ps::read_listener listener) {
      pool.read_many(requests, listener);
    }
    ps::memory_files::session files;
    ps::threaded_reads pool;
  };
  [[nodiscard]] session connect() const { return session(files); }
  ps::memory_files files;
};

void on_background_storages(countdown& kind, std::uint64_t least) {
  const auto files = ps::memory_files().add("a", std::string(100, 'a'));
  const ps::simulated_storage far(files, {.latency = std::chrono::microseconds(50), .max_in_flight = 4});
  CHECK(sweep_reads(kind, far, std::byte{'a'}) >= least);
  CHECK(sweep_reads(kind, pooled_storage{files}, std::byte{'a'}) >= least);
  CHECK(sweep_reads(kind, ps::hedged(far), std::byte{'a'}) >= least);
  CHECK(sweep_reads(kind, ps::hedged(ps::throttled(far)), std::byte{'a'}) >= least);
  CHECK(sweep_reads(kind, ps::retrying(far), std::byte{'a'}) >= least);
  CHECK(sweep_reads(kind, ps::throttled(ps::retrying(far), {.max_in_flight = 3}), std::byte{'a'}) >= least);
}

}  // namespace

TEST_CASE("sweep: every allocation of background reads fails in turn") {
  const penstock_test::deadline guard("allocations of reads fail");
  on_background_storages(allocations, 3);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("sweep: every start of a background-read thread fails in turn") {
  const penstock_test::deadline guard("starts of threads that read fail");
  on_background_storages(thread_starts, 1);
}

TEST_CASE("sweep: every start of a thread fails in turn") {
  const penstock_test::deadline guard("thread starts fail");
  std::uint64_t points = 0;
  on_plans([&](const char* name, auto make) {
    INFO(name);
    points += sweep(thread_starts, make);
  });
  WARN(points << " starts of threads failed");
  CHECK(points >= 6 * 2);
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("sweep: every read fails or is short in turn") {
  const penstock_test::deadline guard("reads fail", std::chrono::seconds(250));
  const shards here;
  for (const std::string_view way : {"with indexes", "without indexes", "fetched ahead"}) {
    const bool fresh = way == "without indexes";
    const std::uint64_t ahead = way == "fetched ahead" ? 4 : 0;
    const auto clean = [&] {
      if (fresh) here.remove_indexes();
    };
    reads_come_short = false;
    // When fetched ahead, adjacent samples are one read, and timing decides which: a run reads at least two
    // index headers and each shard once, and each of 15 failures is tried.
    const std::uint64_t tried = ahead != 0 ? 15 : 0;
    const std::uint64_t points = sweep(
        reads, [&] { return here.plan(ahead); }, clean, tried);
    CHECK(points >= (ahead != 0 ? 4u : 10u));
    WARN(points << " reads failed, " << way);
    // A short read is not a failure: the rest is read.
    reads_come_short = true;
    bool whole = false;
    const std::string expected = sequence_of(here.plan(ahead), whole);
    for (std::int64_t n = 1; n <= static_cast<std::int64_t>(std::max(points, tried)); ++n) {
      clean();
      reads.arm(n);
      const std::string seen = sequence_of(here.plan(ahead), whole);
      reads.disarm();
      INFO("short read number " << n);
      REQUIRE(whole);
      REQUIRE(seen == expected);
    }
    reads_come_short = false;
  }
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

/// Makes each system call fail in turn, then be interrupted in turn, which is not a failure.
template <class Make, class Prepare>
std::uint64_t sweep_system_calls(Make make, Prepare prepare) {
  const std::uint64_t points = sweep(system_calls, make, prepare);
  prepare();
  bool whole = false;
  const std::string expected = sequence_of(make(), whole);
  CHECK(whole);
  interrupted = true;
  for (std::int64_t n = 1;; ++n) {
    INFO("interruption number " << n);
    prepare();
    system_calls.arm(n);
    const std::string seen = sequence_of(make(), whole);
    system_calls.disarm();
    CHECK(whole);
    CHECK(seen == expected);
    if (!system_calls.fired() || !whole) break;
  }
  interrupted = false;
  return points;
}

}  // namespace

TEST_CASE("sweep: every system call fails or is interrupted in turn") {
  const penstock_test::deadline guard("calls of the system fail", std::chrono::seconds(250));
  const shards here;
  const auto leave = [] {};
  const auto remove = [&] { here.remove_indexes(); };
  std::uint64_t points = 0;
  const auto test = [&](const char* name, std::uint64_t least, auto make, auto prepare) {
    INFO(name);
    const std::uint64_t found = sweep_system_calls(make, prepare);
    CHECK(found >= least);
    points += found;
  };
  test(
      "shards without indexes", 30, [&] { return here.plan(); }, remove);
  test(
      "shards", 10, [&] { return here.plan(); }, leave);
  test(
      "shards, fetched ahead", 10, [&] { return here.plan(4); }, leave);
  for (const auto& entry : std::filesystem::directory_iterator(here.folder.path()))
    CHECK_THAT(entry.path().filename().string(), !penstock_test::contains(".tmp"));
  const auto size = [](const auto& r) { return static_cast<int>(ps::get<"txt">(r).size()); };
  test(
      "a stream", 8,
      [&] {
        return ps::webdataset_stream((here.folder / "s{0..1}.tar").string()) | ps::fields<"txt"> |
               ps::decode<ps::field<"txt", ps::text>> | ps::map(size) | ps::batch(3) | ps::workers(2);
      },
      leave);

  const penstock_test::temp_dir other;
  for (int i = 0; i < 4; ++i)
    std::ofstream(other / (std::to_string(i) + ".txt"))
        << std::string(static_cast<std::size_t>(10 + i), 'y') << "\nand another line\n";
  test(
      "lines", 6,
      [&] {
        return ps::lines((other / "{0..3}.txt").string()) |
               ps::map([](std::string_view line) { return static_cast<int>(line.size()); }) | ps::batch(3) |
               ps::workers(2);
      },
      leave);
  test(
      "a folder", 6,
      [&] {
        return ps::directory(other.path().string()) | ps::decode<ps::field<"bytes", ps::text>> |
               ps::map([](const auto& r) { return static_cast<int>(ps::get<"bytes">(r).size()); }) |
               ps::batch(3) | ps::workers(2);
      },
      leave);
  WARN(points << " calls of the system failed");
}
#endif

TEST_CASE("sweep: every call of a function and every decoding fails in turn") {
  const penstock_test::deadline guard("calls fail");
  std::uint64_t points = 0;
  on_plans([&](const char* name, auto make) {
    INFO(name);
    points += sweep(calls, make);
  });
  WARN(points << " calls failed");
  CHECK(points > 500);
}

TEST_CASE("sweep: every decoding is bad in turn, and the run continues without that sample") {
  const penstock_test::deadline guard("decodings are bad");
  for (const unsigned workers : {0u, 2u}) {
    const auto plan = [&](auto policy) {
      return ps::from(words) | ps::decode<failing_text> | policy | ps::batch(4, ps::ragged) |
             ps::workers(workers);
    };
    bool whole = false;
    const std::string expected = sequence_of(plan(ps::bad_samples::skip(1)), whole);
    REQUIRE(whole);
    const auto decodings = static_cast<std::int64_t>(2 * words.size());
    for (std::int64_t n = 1; n <= decodings; ++n) {
      INFO("decoding number " << n << ", " << workers << " workers");
      calls.arm(n);
      auto run = plan(ps::bad_samples::skip(1)).open();
      std::size_t holes = 0, steps = 0;
      for (auto epoch : run.epochs(2))
        for (auto&& b : epoch) {
          ++steps;
          const auto positions = b.positions();
          REQUIRE(positions.size() == b.size());
          for (std::size_t i = 0; i < b.size(); ++i) {
            const std::string& word = words[static_cast<std::size_t>(positions[i].index)];
            const auto value = b.values()[i];
            const std::string text(reinterpret_cast<const char*>(value.data()), value.size());
            holes += b.valid()[i] == 0;
            REQUIRE(text == (b.valid()[i] != 0 ? word : std::string()));
          }
        }
      calls.disarm();
      CHECK(holes == 1);
      CHECK(steps == 2 * 3);
    }
  }
}

TEST_CASE("sweep: an index is built completely or not at all") {
  const penstock_test::deadline guard("index", std::chrono::seconds(250));
  const shards here;
  const std::uint64_t points = sweep(
      allocations, [&] { return here.plan(); }, [&] { here.remove_indexes(); });
  WARN(points << " allocations failed");
  CHECK(points > 100);
  bool whole = false;
  CHECK(sequence_of(here.plan(), whole).size() > 10);
  CHECK(whole);
  for (const auto& entry : std::filesystem::directory_iterator(here.folder.path()))
    CHECK_THAT(entry.path().filename().string(), !penstock_test::contains(".tmp"));
}
