// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/file.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/local/mapping.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void put_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string file_text(const penstock::file::session& session, penstock::object_id id, std::uint64_t offset,
                      std::size_t n) {
  std::string text(n, '\0');
  session.read(id, offset, {reinterpret_cast<std::byte*>(text.data()), n});
  return text;
}

penstock::error file_error(const penstock::file& storage) {
  const auto session = storage.connect();
  try {
    std::array<std::byte, 1> one{};
    session.read(0, 0, one);
  } catch (const penstock::error& e) {
    return e;
  }
  return {penstock::errc::state, "no error"};
}

/// Lowers the limit on open files during its lifetime.
class fewer_descriptors {
 public:
  explicit fewer_descriptors(rlim_t n) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lower = before_;
    lower.rlim_cur = n;
    ::setrlimit(RLIMIT_NOFILE, &lower);
  }
  fewer_descriptors(const fewer_descriptors&) = delete;
  fewer_descriptors& operator=(const fewer_descriptors&) = delete;
  ~fewer_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("storage/file: ranges are read, from patterns and from lists") {
  const penstock_test::temp_dir dir;
  put_file(dir / "a-0", "hello");
  put_file(dir / "a-1", "world");
  put_file(dir / "{odd}", "braces");
  const penstock::file pattern((dir / "a-{0..1}").string());
  REQUIRE(pattern.names().size() == 2);
  const auto session = pattern.connect();
  CHECK(session.size(1) == 5);
  CHECK(file_text(session, 0, 1, 3) == "ell");
  CHECK(file_text(session, 1, 0, 5) == "world");
  CHECK(session.version(0).stamp != 0);
  session.read(0, 5, {});
  session.will_need(0, 0, 5);
  const penstock::file list(std::vector<std::string>{(dir / "{odd}").string()});
  CHECK(file_text(list.connect(), 0, 0, 6) == "braces");
  CHECK(penstock::file({"a", "b", "c"}).names().size() == 3);
}

TEST_CASE("storage/file: a file that cannot be opened is an error that says why and what to do") {
  const penstock_test::temp_dir dir;
  const auto missing = file_error(penstock::file((dir / "none.tar").string()));
  CHECK(missing.code() == penstock::errc::io);
  CHECK_THAT(missing.what(), penstock_test::contains("No such file") && penstock_test::contains("none.tar") &&
                                 penstock_test::contains("check the path"));
  put_file(dir / "cut", "x");
  const auto cut =
      file_error(penstock::file(std::vector<std::string>{(dir / "cut").string() + '\0' + "off"}));
  CHECK(cut.code() == penstock::errc::io);
  const auto folder = file_error(penstock::file(dir.path().string()));
  CHECK(folder.code() == penstock::errc::io);
  CHECK_THAT(folder.what(), penstock_test::contains("is a folder"));
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  const auto pipe = file_error(penstock::file((dir / "pipe").string()));
  CHECK_THAT(pipe.what(), penstock_test::contains("not a regular file"));
  if (::geteuid() == 0) {
    WARN("not tested as root: a file without permission to read");
  } else {
    put_file(dir / "secret", "x");
    ::chmod((dir / "secret").c_str(), 0);
    CHECK_THAT(file_error(penstock::file((dir / "secret").string())).what(),
               penstock_test::contains("Permission denied"));
  }
  const auto session = penstock::file((dir / "none.tar").string()).connect();
  session.will_need(0, 0, 1);  // a hint never throws
  CHECK_THROWS_AS(session.size(7), penstock::error);
}

TEST_CASE("storage/file: a range beyond the end is an error that names the offset") {
  const penstock_test::temp_dir dir;
  put_file(dir / "a", "hello");
  const auto session = penstock::file((dir / "a").string()).connect();
  for (const std::uint64_t offset :
       {std::uint64_t{3}, std::uint64_t{5}, std::uint64_t{100}, ~std::uint64_t{0}}) {
    std::array<std::byte, 3> three{};
    try {
      session.read(0, offset, three);
      FAIL("read beyond the end");
    } catch (const penstock::error& e) {
      CHECK(e.code() == penstock::errc::format);
      CHECK(e.offset() == offset);
      CHECK_THAT(std::string(e.file()), penstock_test::contains("/a"));
    }
  }
}

TEST_CASE("storage/file: a file that was replaced while it was closed is an error") {
  const penstock_test::temp_dir dir;
  put_file(dir / "a", "first");
  put_file(dir / "b", "other");
  const auto session = penstock::file((dir / "{a,b}").string(), {.descriptors = 1}).connect();
  CHECK(file_text(session, 0, 0, 5) == "first");
  CHECK(file_text(session, 1, 0, 5) == "other");
  put_file(dir / "a", "second one");
  CHECK_THROWS_WITH(file_text(session, 0, 0, 5), penstock_test::contains("changed while it was in use"));
}

TEST_CASE("storage/file: a file that shrinks while it is open is an error, not a crash") {
  const penstock_test::temp_dir dir;
  put_file(dir / "a", std::string(10000, 'x'));
  const auto session = penstock::file((dir / "a").string()).connect();
  CHECK(file_text(session, 0, 9000, 1000) == std::string(1000, 'x'));
  std::filesystem::resize_file(dir / "a", 100);
  CHECK_THROWS_AS(file_text(session, 0, 9000, 1000), penstock::error);
}

TEST_CASE("storage/file: 10,000 files under a limit of 1,024 descriptors, from four threads") {
  const penstock_test::temp_dir dir;
  constexpr std::uint32_t count = 10'000;
  for (std::uint32_t i = 0; i < count; ++i)
    put_file(dir / ("f" + std::to_string(i)), std::to_string(i) + ".");
  const fewer_descriptors limit(1024);
  const auto session = penstock::file((dir / "f{0..9999}").string()).connect();
  CHECK(session.descriptor_limit() == 512);
  std::atomic<std::uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t k = 0; k < count; ++k) {
        const std::uint32_t i = (k * 7919 + t * (k % 3)) % count;
        const std::string wanted = std::to_string(i) + ".";
        if (file_text(session, i, 0, wanted.size()) != wanted) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(session.descriptors() <= 512 + 4);
}

TEST_CASE("storage/file: threads that share few descriptors read the right files") {
  const penstock_test::temp_dir dir;
  for (int i = 0; i < 20; ++i)
    put_file(dir / ("f" + std::to_string(i)), std::string(100, static_cast<char>('a' + i)));
  const auto session = penstock::file((dir / "f{0..19}").string(), {.descriptors = 2}).connect();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t k = 0; k < 3000; ++k) {
        const std::uint32_t i = (k * (t + 3) + k / 7) % 20;
        if (file_text(session, i, k % 50, 50) != std::string(50, static_cast<char>('a' + i))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(session.descriptors() <= 6);
}

namespace {

constexpr std::size_t large = 1'200'000;  // large enough to be mapped

/// Bytes without two equal ranges.
std::string many_bytes(std::size_t n) {
  std::string text(n, '\0');
  for (std::size_t i = 0; i < n; ++i) text[i] = static_cast<char>('A' + (i * 7 + i / 251) % 26);
  return text;
}

/// Whether the system says that the file is in memory.
bool in_memory(const std::filesystem::path& path) {
  const penstock::detail::files::descriptor opened(::open(path.c_str(), O_RDONLY));
  return penstock::detail::files::is_in_memory(opened.get(), std::filesystem::file_size(path), 1000);
}

penstock::error error_at(const penstock::file::session& session, std::uint64_t offset, std::size_t n) {
  try {
    (void)file_text(session, 0, offset, n);
  } catch (const penstock::error& e) {
    return e;
  }
  return {penstock::errc::state, "no error"};
}

}  // namespace

TEST_CASE("storage/file: a large file in memory is mapped after some reads, and its bytes do not change") {
  const penstock_test::temp_dir dir;
  const std::string content = many_bytes(large);
  put_file(dir / "large", content);
  put_file(dir / "small", content.substr(0, 60'000));
  const penstock::file both({(dir / "large").c_str(), (dir / "small").c_str()});
  const auto session = both.connect();
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t at = i * 2999 % (large - 5000);
    CHECK(file_text(session, 0, at, 5000) == content.substr(at, 5000));
    CHECK(file_text(session, 1, i * 11, 700) == content.substr(i * 11, 700));
    if (i < 7) CHECK_FALSE(session.mapped(0));
  }
  if (!in_memory(dir / "large")) {
    WARN("the file system does not tell what is in memory: everything is read with pread");
  } else {
    CHECK(session.mapped(0));
    CHECK(penstock::text_of(session.view(0, 100, 300)) == content.substr(100, 300));
    CHECK(session.size(0) == large);
    CHECK(session.version(0) == both.connect().version(0));
    session.will_need(0, 4000, large);
    session.will_need(0, large + 1, 1);
    session.confirm(0);
  }
  CHECK_FALSE(session.mapped(1));
  session.confirm(1);
  CHECK_FALSE(session.mapped(2));
}

TEST_CASE("storage/file: a file that is not in memory is read with pread") {
  const penstock_test::temp_dir dir;
  // Each look makes the kernel read a little ahead, so the file is larger than many looks bring in.
  put_file(dir / "cold", many_bytes(10));
  std::filesystem::resize_file(dir / "cold", std::uintmax_t{1} << 30);
  {
    const penstock::detail::files::descriptor opened(::open((dir / "cold").c_str(), O_RDONLY));
    ::fsync(opened.get());
    ::posix_fadvise(opened.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (in_memory(dir / "cold")) {
    WARN("the file system does not evict pages from memory");
    return;
  }
  const auto session = penstock::file((dir / "cold").string()).connect();
  for (int i = 0; i < 3000; ++i) CHECK(file_text(session, 0, 0, 10) == many_bytes(10));
  CHECK_FALSE(session.mapped(0));
}

TEST_CASE("storage/file: the choice can be made explicitly, and shows in describe") {
  const penstock_test::temp_dir dir;
  const std::string content = many_bytes(large);
  put_file(dir / "a", content);
  put_file(dir / "empty", "");
  const std::vector<std::string> names{(dir / "a").string(), (dir / "empty").string()};
  const penstock::file itself(names), reads(names, {.access = penstock::file_access::read}),
      maps(names, {.access = penstock::file_access::map});
  CHECK(itself.describe() == "file(2 paths)");
  CHECK(reads.describe() == "file(2 paths, read)");
  CHECK(maps.describe() == "file(2 paths, mapped)");
  const auto reading = reads.connect(), mapping = maps.connect();
  for (int i = 0; i < 20; ++i) CHECK(file_text(reading, 0, 70, 90) == content.substr(70, 90));
  CHECK_FALSE(reading.mapped(0));
  CHECK_FALSE(mapping.mapped(0));
  CHECK_THROWS_AS(mapping.view(0, 0, 1), penstock::error);
  CHECK(file_text(mapping, 0, large - 5, 5) == content.substr(large - 5));
  CHECK(mapping.mapped(0));
  CHECK(error_at(mapping, large - 5, 6).code() == penstock::errc::format);
  CHECK_THROWS_AS(mapping.view(0, large, 1), penstock::error);
  mapping.read(1, 0, {});
  CHECK_THROWS_AS(file_text(mapping, 1, 0, 1), penstock::error);
  std::array<std::byte, 8> some{};
  mapping.read(0, 0, some);
  CHECK(penstock::text_of(penstock::bytes_view(some)) == content.substr(0, 8));
}

TEST_CASE("storage/file: threads that map files at once see equal bytes") {
  const penstock_test::temp_dir dir;
  const std::string content = many_bytes(large);
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back((dir / ("f" + std::to_string(i))).string());
    put_file(names.back(), content);
  }
  const auto session = penstock::file(names).connect();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 20'000; ++i) {
        const std::size_t at = (i * 7919 + t * 104'729) % (large - 64);
        if (file_text(session, static_cast<penstock::object_id>(i % 20), at, 64) != content.substr(at, 64))
          ++wrong;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(session.mapped(0) == in_memory(names[0]));
}

TEST_CASE("storage/file: the way of reading does not change a run's samples and their order") {
  const penstock_test::temp_dir dir;
  {
    penstock::shard_writer out((dir / "%02d.tar").string(), {.maxcount = 200});
    for (std::size_t i = 0; i < 400; ++i)
      out.write(std::to_string(i), {{"bin", many_bytes(500 + i).substr(i)}, {"cls", std::to_string(i % 10)}});
    out.close();
  }
  const auto samples = [&](penstock::file_access access, const auto& in_which_order) {
    const penstock::file shards((dir / "{00..01}.tar").string(), {.access = access});
    std::string all;
    for (auto&& b : (penstock::webdataset(shards) | in_which_order | penstock::fields<"bin", "cls"> |
                     penstock::repeat(3) | penstock::batch(32) | penstock::workers(2))
                        .epoch(0)) {
      for (const auto position : b.positions()) all += std::to_string(position.index) + " ";
      const auto bins = penstock::get<"bin">(b);
      all.append(reinterpret_cast<const char*>(bins.data()), bins.shape().elements());
    }
    return all;
  };
  const auto check = [&](const auto& in_which_order) {
    const std::string read = samples(penstock::file_access::read, in_which_order);
    CHECK(read.size() > 400 * 3 * 500);
    CHECK(samples(penstock::file_access::map, in_which_order) == read);
    CHECK(samples(penstock::file_access::automatic, in_which_order) == read);
  };
  SECTION("shuffled") { check(penstock::shuffle(penstock::seed(3))); }
  SECTION("in order") { check(penstock::take(400)); }
}
