// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/sigbus_guard.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/faults.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// A mapped file of a given number of pages.
class mapping {
 public:
  mapping(const fs::path& path, std::size_t pages) : size_(pages * page()) {
    std::ofstream(path, std::ios::binary) << std::string(size_, 'x');
    const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(opened >= 0);
    where_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, opened, 0);
    ::close(opened);
    REQUIRE(where_ != MAP_FAILED);
  }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  ~mapping() { ::munmap(where_, size_); }

  [[nodiscard]] penstock::bytes_view view() const { return {static_cast<const std::byte*>(where_), size_}; }
  /// Reads a byte through volatile, so that it is really read.
  [[nodiscard]] char at(std::size_t i) const { return static_cast<const volatile char*>(where_)[i]; }

 private:
  std::size_t size_;
  void* where_ = nullptr;
};

volatile std::sig_atomic_t passed_on = 0;
volatile std::sig_atomic_t address_known = 0;

// The first time it was a sent signal; the second time a fault, from which there is no return.
void count(int) {
  passed_on = passed_on + 1;
  if (passed_on == 2) ::_exit(42);
}
void count_with_address(int number, siginfo_t* info, void*) {
  if (passed_on == 1) address_known = info->si_addr != nullptr && info->si_code > 0 ? 1 : 0;
  if (passed_on == 1 && address_known == 0) ::_exit(43);
  count(number);
}

/// Runs this program again, without an earlier guard, for the test case below; returns its exit
/// status.
int in_own_process(const std::string& how) {
  std::array<char, 4096> self{};
  REQUIRE(::readlink("/proc/self/exe", self.data(), self.size() - 1) > 0);
  const int status = penstock_test::run_program("PENSTOCK_TEST_SIGBUS=" + how + " '" + self.data() +
                                                "' 'storage/sigbus_guard: in a process of its own'")
                         .status;
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("storage/sigbus_guard: a lost page reads as zeros, and is reported as lost") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  const mapping file(dir / "a", 8), other(dir / "b", 2);
  penstock::sigbus_guard guard(file.view());
  const penstock::sigbus_guard of_other(other.view());
  CHECK_FALSE(guard.lost());
  fs::resize_file(dir / "a", 3 * page());
  CHECK(file.at(3 * page() - 1) == 'x');
  CHECK_FALSE(guard.lost());
  CHECK(file.at(5 * page() + 7) == '\0');
  CHECK(guard.lost() == 5 * page());
  CHECK(file.at(8 * page() - 1) == '\0');
  CHECK(file.at(3 * page()) == '\0');
  CHECK(guard.lost() == 3 * page());
  CHECK(file.at(0) == 'x');
  CHECK_FALSE(of_other.lost());
  CHECK(other.at(0) == 'x');
  penstock::sigbus_guard moved(std::move(guard));
  CHECK(moved.lost() == 3 * page());
  moved = penstock::sigbus_guard();
  CHECK_FALSE(moved.lost());
  CHECK_FALSE(penstock::sigbus_guard(penstock::bytes_view()).lost());
}

TEST_CASE("storage/sigbus_guard: more guards than fit in one block, made and destroyed in any order") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  std::vector<std::unique_ptr<mapping>> files;
  std::vector<penstock::sigbus_guard> guards;
  for (std::size_t i = 0; i < 600; ++i) {
    files.push_back(std::make_unique<mapping>(dir / std::to_string(i), 1));
    guards.emplace_back(files.back()->view());
  }
  for (std::size_t i = 0; i < 600; i += 2) guards[i] = penstock::sigbus_guard();
  for (std::size_t i = 0; i < 600; i += 4) guards[i] = penstock::sigbus_guard(files[i]->view());
  for (const std::size_t i : {0u, 1u, 4u, 301u, 599u}) {
    fs::resize_file(dir / std::to_string(i), 0);
    CHECK(files[i]->at(0) == '\0');
    CHECK(guards[i].lost() == 0);
  }
  CHECK_FALSE(guards[8].lost());
}

TEST_CASE("storage/sigbus_guard: in a process of its own") {
  if (!penstock_test::faults_have_addresses()) return;
  const char* given = std::getenv("PENSTOCK_TEST_SIGBUS");
  if (given == nullptr) return;  // the next test case starts it
  const std::string_view how(given);
  const penstock_test::temp_dir dir;
  const mapping guarded(dir / "a", 2), bare(dir / "b", 2);
  fs::resize_file(dir / "a", 0);
  fs::resize_file(dir / "b", 0);
  struct sigaction before {};
  ::sigemptyset(&before.sa_mask);
  if (how == "handler") before.sa_handler = &count;
  if (how == "ignored") before.sa_handler = SIG_IGN;
  if (how == "information") {
    before.sa_flags = SA_SIGINFO;
    before.sa_sigaction = &count_with_address;
  }
  ::sigaction(SIGBUS, &before, nullptr);

  const penstock::sigbus_guard guard(guarded.view());
  if (guarded.at(page()) != '\0' || guard.lost() != page() || passed_on != 0) ::_exit(1);
  if (how != "default") {
    (void)::raise(SIGBUS);
    if (passed_on != (how == "ignored" ? 0 : 1)) ::_exit(2);
  }
  if (bare.at(page()) == '\0') ::_exit(3);  // it is not guarded
}

TEST_CASE("storage/sigbus_guard: other faults and signals go where they went before") {
  if (!penstock_test::faults_have_addresses()) return;
  CHECK(in_own_process("handler") == 42);
  CHECK(in_own_process("information") == 42);
  for (const char* how : {"default", "ignored"}) {
    INFO(how);
    const int status = in_own_process(how);
    // a shell returns 128 plus the number
    CHECK(status == 128 + SIGBUS);
  }
}

TEST_CASE("storage/sigbus_guard: a mapped file that is cut while threads read it is an error in each") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  const auto cut_while_threads_read = [&](const auto& storage) {
    std::ofstream(path, std::ios::binary) << std::string(64 * page(), 'x');
    const auto session = storage.connect();
    std::array<std::byte, 1> one{};
    session.read(0, 0, one);  // from now on the file is mapped
    std::atomic<int> begun{0}, errors{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> room(8 * page());
        // until the file is cut: bytes that were read and confirmed are the file's
        for (std::size_t round = 0; errors.load() < 4; ++round) {
          const std::uint64_t offset = round * 8 % 64 * page();
          try {
            penstock::bytes_view seen(room);
            if (t % 2 == 0) {
              session.read(0, offset, room);
            } else {
              seen = session.view(0, offset, room.size());
              for (std::size_t i = 0; i < room.size(); ++i)
                room[i] = static_cast<const volatile std::byte*>(seen.data())[i];
              session.confirm(0);
            }
            for (const std::byte b : room) wrong += b == std::byte{'x'} ? 0 : 1;
          } catch (const penstock::error& e) {
            if (e.code() != penstock::errc::io || e.file() != path || !e.offset()) ++wrong;
            ++errors;
            return;
          }
          if (round == 20) ++begun;
        }
      });
    }
    while (begun < 4) std::this_thread::yield();
    fs::resize_file(path, 5 * page());
    for (auto& thread : threads) thread.join();
    CHECK(errors == 4);
    CHECK(wrong == 0);
  };
  cut_while_threads_read(penstock::mapped_file({path.c_str()}, {.checked = false}));
  cut_while_threads_read(penstock::mapped_file({path.c_str()}, {.checked = true}));
  cut_while_threads_read(penstock::file({path.c_str()}, {.access = penstock::file_access::map}));
}

TEST_CASE("storage/sigbus_guard: with checked too, bytes lost within a page are noticed after use") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  std::ofstream(path, std::ios::binary) << std::string(100, 'x');
  const auto session = penstock::mapped_file({path.c_str()}, {.checked = true, .guarded = true}).connect();
  const auto seen = session.view(0, 0, 100);
  session.confirm(0);
  fs::resize_file(path, 50);
  CHECK(static_cast<const volatile char*>(static_cast<const void*>(seen.data()))[99] == '\0');
  CHECK_THROWS_WITH(session.confirm(0),
                    penstock_test::contains("cut off or changed") && penstock_test::contains(path));
}

TEST_CASE("storage/sigbus_guard: a sample of a shard that is cut while it is read is an error, not zeros") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  penstock_test::raw_tar tar;
  for (int i = 0; i < 20; ++i) tar.member("k" + std::to_string(i) + ".bin", std::string(3 * page(), 'x'));
  tar.end();
  const auto cut_while_reading = [&](const auto& storage) {
    tar.save(path);
    const penstock::webdataset data(storage);
    const auto reader = data.connect();
    typename decltype(data.connect())::worker worker;
    int good = 0;
    const auto read = [&](std::uint64_t i, bool cut, bool complain) {
      reader.evaluate({0, i}, worker, [&](const auto& sample) {
        const auto bytes = sample.member(0).finish();
        if (cut) fs::resize_file(path, page());
        bool whole = true;
        for (std::size_t b = 0; b < bytes.size(); ++b)
          whole = whole && static_cast<const volatile std::byte*>(bytes.data())[b] == std::byte{'x'};
        CHECK(whole != cut);
        if (complain) throw penstock::error(penstock::errc::format, "these are no good bytes");
        ++good;
      });
    };
    for (std::uint64_t i = 0; i < 5; ++i) read(i, false, false);
    CHECK(good == 5);
    for (const bool complain : {true, false}) {
      try {
        read(complain ? 12 : 13, true, complain);
        FAIL("zeros were taken for a sample");
      } catch (const penstock::error& e) {
        CHECK((e.code() == penstock::errc::io));
        CHECK(e.file() == path);
        CHECK(e.offset().value_or(0) % page() == 0);
      }
    }
  };
  cut_while_reading(penstock::mapped_file({path.c_str()}));
  cut_while_reading(penstock::file({path.c_str()}, {.access = penstock::file_access::map}));
}

TEST_CASE(
    "storage/sigbus_guard: a file that shrinks while `file` has it mapped is an error, also within a page") {
  if (!penstock_test::faults_have_addresses()) return;
  const penstock_test::temp_dir dir;
  constexpr std::size_t large = 1'200'000;
  std::string content(large, '\0');
  for (std::size_t i = 0; i < large; ++i) content[i] = static_cast<char>('A' + i % 26);
  const auto text_at = [](const penstock::file::session& session, std::uint64_t offset, std::size_t n) {
    std::string text(n, '\0');
    session.read(0, offset, {reinterpret_cast<std::byte*>(text.data()), n});
    return text;
  };
  const auto error_at = [&](const penstock::file::session& session, std::uint64_t offset, std::size_t n) {
    try {
      (void)text_at(session, offset, n);
    } catch (const penstock::error& e) {
      return e;
    }
    return penstock::error(penstock::errc::state, "no error");
  };
  const penstock::file storage((dir / "a").string(), {.access = penstock::file_access::map});
  const auto fresh = [&] {
    std::ofstream(dir / "a", std::ios::binary) << content;
    auto session = storage.connect();
    CHECK(text_at(session, 0, 10) == content.substr(0, 10));
    CHECK(session.mapped(0));
    return session;
  };
  {
    const auto session = fresh();
    std::filesystem::resize_file(dir / "a", 10'000);
    CHECK(error_at(session, 10, 10).code() == penstock::errc::io);  // any read notices, wherever it is
    CHECK(error_at(session, 200'000, 100).code() == penstock::errc::io);
  }
  {
    const auto session = fresh();
    std::string text(20, '\0');
    const auto cut_and_copy = [&](penstock::mutable_bytes into, const std::byte* from) {
      std::filesystem::resize_file(dir / "a", 10'000);
      std::memcpy(into.data(), from, into.size());
    };
    CHECK_THROWS_AS(session.read(0, 9'990, {reinterpret_cast<std::byte*>(text.data()), 20}, cut_and_copy),
                    penstock::error);  // it is checked after copying
  }
  {
    const auto session = fresh();
    std::filesystem::resize_file(dir / "a", 10'000);  // the bytes after the end, in its page, read as zeros
    CHECK(error_at(session, 9'990, 20).code() == penstock::errc::io);
    CHECK(error_at(session, 9'990, 20).file() == (dir / "a").string());
  }
  {
    const auto session = fresh();
    std::filesystem::resize_file(dir / "a", large - 10);
    CHECK(error_at(session, large - 20, 15).code() == penstock::errc::io);
  }
  {
    const auto session = fresh();
    (void)session.view(0, 9'990, 20);
    std::filesystem::resize_file(dir / "a", 10'000);
    CHECK_THROWS_AS(session.view(0, 9'990, 20), penstock::error);
    CHECK_THROWS_AS(session.confirm(0), penstock::error);
  }
}
