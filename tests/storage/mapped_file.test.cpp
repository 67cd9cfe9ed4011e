// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/mapped_file.hpp>

#include <penstock/storage/file.hpp>
#include <penstock/storage/local/mapping.hpp>
#include <penstock/storage/local/paths.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

static_assert(penstock::storage<penstock::mapped_file> &&
              penstock::all_mapped<penstock::mapped_file::session>());

using penstock::text_of;

TEST_CASE("storage/mapped_file: views and reads of mapped ranges") {
  const penstock_test::temp_dir dir;
  std::ofstream(dir / "a0") << "hello";
  std::ofstream(dir / "a1") << std::string(100'000, 'x') << "end";
  std::ofstream(dir / "a2");
  for (const auto access : {penstock::access_pattern::normal, penstock::access_pattern::random,
                            penstock::access_pattern::in_order}) {
    const auto session = penstock::mapped_file((dir / "a{0..2}").string(), {.access = access}).connect();
    CHECK(text_of(session.view(0, 1, 3)) == "ell");
    CHECK(session.size(1) == 100'003);
    CHECK(text_of(session.view(1, 100'000, 3)) == "end");
    CHECK(session.view(2, 0, 0).empty());
    std::array<std::byte, 3> three{};
    session.read(1, 100'000, three);
    CHECK(text_of(three) == "end");
    session.will_need(1, 5000, 10'000'000);
    session.will_need(1, 10'000'000, 1);
    session.will_need(2, 0, 10);
    CHECK_THROWS_WITH(session.view(0, 3, 3),
                      penstock_test::contains("ends at 5") && penstock_test::contains("offset 3"));
    CHECK_THROWS_AS(session.view(2, 0, 1), penstock::error);
  }
}

TEST_CASE("storage/mapped_file: views live as long as the session, also when it is moved") {
  const penstock_test::temp_dir dir;
  std::ofstream(dir / "a") << "hello";
  std::optional<penstock::mapped_file::session> kept;
  penstock::bytes_view view;
  {
    auto session = penstock::mapped_file({(dir / "a").c_str()}).connect();
    view = session.view(0, 0, 5);
    kept = std::move(session);
  }
  CHECK(text_of(view) == "hello");
}

TEST_CASE("storage/mapped_file: a file that cannot be opened is an error that says why") {
  const penstock_test::temp_dir dir;
  const auto session = penstock::mapped_file({(dir / "none").c_str(), dir.path().c_str()}).connect();
  CHECK_THROWS_WITH(session.size(0),
                    penstock_test::contains("No such file") && penstock_test::contains("none"));
  CHECK_THROWS_WITH(session.size(1), penstock_test::contains("is a folder"));
  CHECK_THROWS_AS(session.size(2), penstock::error);
  session.will_need(0, 0, 1);  // a hint never throws
  std::array<std::byte, 1> one{};
  CHECK_THROWS_AS(session.read(0, 0, one), penstock::error);
}

TEST_CASE(
    "storage/mapped_file: a file that cannot be mapped is an error that names the limit and the remedy") {
  using penstock::detail::files::mapping_failure;
  using penstock_test::contains;
  const std::string many = mapping_failure("x/1.jsonl", 10, ENOMEM, {65'528, 65'530}).what();
  CHECK_THAT(many,
             contains("the process has 65528 mappings, one for each file, and the system allows 65530"));
  CHECK_THAT(many, contains("`sysctl vm.max_map_count=262120`") && contains("file(...)"));
  CHECK_THAT(many, contains("x/1.jsonl"));
  const std::string large = mapping_failure("x", 12'345, ENOMEM, {100, 65'530}).what();
  CHECK_THAT(large, contains("there are no 12345 bytes of addresses left for it; raise `ulimit -v`"));
  CHECK_THAT(mapping_failure("x", 10, ENOMEM, {}).what(), contains("of addresses left"));
  CHECK_THAT(mapping_failure("x", 10, ENODEV, {}).what(), contains("cannot map the file: No such device"));
#ifdef __linux__
  const auto counts = penstock::detail::files::count_mappings();
  CHECK(counts.there > 5);
  CHECK(counts.maximum > counts.there);

  // A file in memory, none of which is there, of more bytes than a process has addresses.
  const penstock::detail::files::descriptor huge(::memfd_create("huge", MFD_CLOEXEC));
  constexpr std::uint64_t size = std::uint64_t{1} << 58;
  if (huge.get() < 0 || ::ftruncate(huge.get(), static_cast<off_t>(size)) != 0) return;
  const std::string path = "/proc/self/fd/" + std::to_string(huge.get());
  const auto mapped = penstock::mapped_file({path.c_str()}).connect();
  CHECK_THROWS_WITH(
      mapped.size(0),
      contains("there are no 288230376151711744 bytes of addresses left for it") && contains(path));
  // The storage that reads needs no addresses.
  auto read = penstock::file(std::vector{path}).connect();
  for (int i = 0; i < 100; ++i) {
    std::array<std::byte, 2> some{std::byte{1}, std::byte{1}};
    read.read(0, size - 2, some);
    CHECK(some == std::array<std::byte, 2>{});
  }
#endif
}

TEST_CASE("storage/mapped_file: threads that use files for the first time at once see equal bytes") {
  const penstock_test::temp_dir dir;
  for (int i = 0; i < 50; ++i) std::ofstream(dir / ("f" + std::to_string(i))) << i << ".";
  const auto session = penstock::mapped_file((dir / "f{0..49}").string()).connect();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint32_t i = 0; i < 50; ++i) {
        const std::string wanted = std::to_string(i) + ".";
        if (text_of(session.view(i, 0, wanted.size())) != wanted) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("storage/mapped_file: with checked views, a file that shrinks is an error and not a signal") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  std::ofstream(path) << std::string(100'000, 'x');
  const auto session = penstock::mapped_file({path.c_str()}, {.checked = true}).connect();
  CHECK(session.view(0, 0, 100'000).size() == 100'000);
  CHECK(session.view(0, 100'000, 0).empty());
  const auto refused = [&](std::uint64_t offset, std::uint64_t size) {
    try {
      (void)session.view(0, offset, size);
    } catch (const penstock::error& e) {
      return e.code() == penstock::errc::io && e.file() == path && e.offset() == offset;
    }
    return false;
  };
  for (const std::uintmax_t left : {99'999u, 50'000u, 0u}) {
    std::filesystem::resize_file(path, left);
    CAPTURE(left);
    CHECK(refused(99'990, 10));
    CHECK(refused(0, 100'000));
    CHECK(refused(0, 1));
    std::array<std::byte, 3> three{};
    CHECK_THROWS_AS(session.read(0, 99'990, three), penstock::error);
  }
}

TEST_CASE("storage/mapped_file: with checked views, a file that is replaced or written to is an error") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  std::ofstream(path) << "hello";
  const auto session = penstock::mapped_file({path.c_str()}, {.checked = true}).connect();
  CHECK(text_of(session.view(0, 1, 3)) == "ell");
  std::ofstream(dir / "b") << "other";
  std::filesystem::last_write_time(dir / "b",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  std::filesystem::rename(dir / "b", path);
  CHECK_THROWS_WITH(session.view(0, 1, 3), penstock_test::contains("changed while it was mapped"));
  std::filesystem::remove(path);  // the mapping stays valid
  CHECK(text_of(session.view(0, 1, 3)) == "ell");
}
