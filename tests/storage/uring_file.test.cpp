// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/uring_file.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/read_outcomes.hpp"
#include "support/temp_dir.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::read_outcomes;

static_assert(ps::is_local<ps::uring_file>() && ps::mapped_session<ps::uring_file::session>);
static_assert(ps::background_session<ps::uring_file::session> &&
              !ps::session_traits_of<ps::uring_file::session>().latency);
static_assert(!std::is_copy_constructible_v<ps::uring_file::session>, "only one session may end its reads");

namespace {

std::string content(std::size_t size, unsigned seed) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8) * 7 + seed);
  return text;
}

/// Files of several sizes, their contents, and storages of them.
struct some_files {
  explicit some_files(const std::vector<std::size_t>& sizes) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      contents.push_back(content(sizes[i], static_cast<unsigned>(i)));
      paths.push_back((dir / ("f" + std::to_string(i))).string());
      std::ofstream(paths.back(), std::ios::binary) << contents.back();
    }
  }
  penstock_test::temp_dir dir;
  std::vector<std::string> contents, paths;
};

/// Requests with their buffers.
struct wishes {
  void add(ps::object_id object, std::uint64_t offset, std::size_t size) {
    room.emplace_back(size);
    requests.push_back({object, offset, room.back(), requests.size()});
  }
  [[nodiscard]] bool right(std::size_t i, const some_files& files) const {
    return ps::text_of(ps::bytes_view(room[i])) ==
           std::string_view(files.contents[requests[i].object]).substr(requests[i].offset, room[i].size());
  }
  std::vector<std::vector<std::byte>> room;
  std::vector<ps::read_request> requests;
};

/// A listener that blocks in its first call until it is released, so that nothing else is reported
/// meanwhile.
struct slow_listener {
  explicit slow_listener(read_outcomes& to) : outcomes(to) {}
  [[nodiscard]] ps::read_listener listener() {
    return {this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
              auto& it = *static_cast<slow_listener*>(self);
              it.entered = true;
              it.entered.notify_all();
              it.go.wait(false);
              it.outcomes.listener().done(&it.outcomes, tag, std::move(failed));
            }};
  }
  read_outcomes& outcomes;
  std::atomic<bool> entered{false}, go{false};
};

void let_go(slow_listener& listener) {
  listener.go = true;
  listener.go.notify_all();
}

/// Whether tests can have an io_uring on this machine; if not, both ways to read are the fallback.
bool has_io_uring() {
  static const bool has = [] {
    const bool found = ps::uring_file({"a"}).describe() == "uring_file(1 paths)";
    if (!found) WARN("this machine has no io_uring: " << ps::uring_file({"a"}).describe());
    return found;
  }();
  return has;
}

std::string sentence_of(const ps::uring_file::session& session, const ps::read_request& request) {
  try {
    session.read(request.object, request.offset, request.into);
  } catch (const ps::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("storage/uring_file: reads in the background give the bytes of the files") {
  const deadline limit("reads of files in the background");
  const some_files files({0, 1, 4096, 100'000, 3'000'001});
  for (const std::size_t queue : {0u, 1u, 3u, 256u}) {
    const ps::uring_file storage(files.paths, {.queue = queue});
    CHECK(storage.names().size() == 5);
    auto session = storage.connect();
    CHECK_FALSE(session.uses_io_uring());
    wishes all;
    all.add(0, 0, 0);
    all.add(1, 0, 1);
    all.add(2, 0, 4096);
    all.add(3, 99'999, 1);
    all.add(4, 0, 3'000'001);
    for (std::uint64_t i = 0; i < 300; ++i) all.add(3, i * 331, 700);
    read_outcomes outcomes(all.requests.size());
    session.read_many(all.requests, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == 0);
    bool right = true;
    for (std::size_t i = 0; i < all.requests.size(); ++i) right = right && all.right(i, files);
    CHECK(right);
    CHECK(session.uses_io_uring() == (queue != 0 && has_io_uring()));
    std::array<std::byte, 10> ten{};
    session.read(3, 50, ten);
    CHECK(ps::text_of(ten) == files.contents[3].substr(50, 10));
    CHECK(session.size(4) == 3'000'001);
    CHECK(session.version(4) == ps::file(files.paths).connect().version(4));
  }
}

TEST_CASE("storage/uring_file: thousands of reads of more files than may be open") {
  const deadline limit("thousands of reads");
  const some_files files(std::vector<std::size_t>(40, 50'000));
  for (const std::size_t descriptors : {0u, 1u, 4u}) {
    auto session = ps::uring_file(files.paths, {.queue = 64, .descriptors = descriptors}).connect();
    wishes all;
    for (std::uint64_t i = 0; i < 5000; ++i)
      all.add(static_cast<ps::object_id>(i * 17 % 40), i * 7919 % 49'000, 1 + i % 999);
    read_outcomes outcomes(all.requests.size());
    const std::span<const ps::read_request> list(all.requests);
    for (std::size_t i = 0; i < 5000; i += 500) session.read_many(list.subspan(i, 500), outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == 0);
    bool right = true;
    for (std::size_t i = 0; i < all.requests.size(); ++i) right = right && all.right(i, files);
    CHECK(right);
    if (descriptors != 0)
      CHECK(session.descriptors() <= descriptors + 8);  // read by threads if there is no ring
  }
}

TEST_CASE("storage/uring_file: errors of background reads are those that read throws") {
  const deadline limit("reads that fail");
  some_files files({1000, 1000, 1000});
  std::filesystem::remove(files.paths[1]);
  files.paths.push_back(files.dir.path().string());
  for (const std::size_t queue : {0u, 256u}) {
    auto session = ps::uring_file(files.paths, {.queue = queue, .access = ps::file_access::read}).connect();
    wishes all;
    all.add(0, 990, 20);                // beyond the end, with bytes before it
    all.add(0, 1000, 1);                // at the end
    all.add(0, 5000, 10);               // beyond the end
    all.add(0, ~std::uint64_t{0}, 10);  // beyond any file
    all.add(1, 0, 10);                  // a missing file
    all.add(3, 0, 10);                  // a folder
    all.add(9, 0, 10);                  // no object
    all.add(2, 10, 990);                // up to the end
    read_outcomes outcomes(all.requests.size());
    session.read_many(all.requests, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.each_once());
    for (std::size_t i = 0; i < 7; ++i) {
      const auto told = outcomes.error_of(i);
      REQUIRE(told);
      CHECK(told->what() == sentence_of(session, all.requests[i]));
    }
    CHECK(outcomes.error_of(0)->code() == ps::errc::format);
    CHECK(outcomes.error_of(0)->offset() == 990);
    CHECK(outcomes.error_of(0)->file() == files.paths[0]);
    CHECK(outcomes.error_of(4)->code() == ps::errc::io);
    CHECK_THAT(outcomes.error_of(4)->what(), contains("No such file"));
    CHECK_THAT(outcomes.error_of(5)->what(), contains("this is a folder"));
    CHECK_FALSE(outcomes.failed(7));
    CHECK(all.right(7, files));

    // a file that shrinks while it is open
    std::filesystem::resize_file(files.paths[2], 100);
    read_outcomes again(1);
    session.read_many(std::span(all.requests).last(1),
                      {&again, [](void* self, std::uint64_t, std::exception_ptr e) noexcept {
                         auto& to = *static_cast<read_outcomes*>(self);
                         to.listener().done(&to, 0, std::move(e));
                       }});
    again.wait();
    REQUIRE(again.error_of(0));
    CHECK(again.error_of(0)->what() == sentence_of(session, all.requests[7]));
    std::ofstream(files.paths[2], std::ios::binary) << files.contents[2];
  }
}

TEST_CASE("storage/uring_file: cancel stops waiting reads, and the session can be used again") {
  const deadline limit("cancelling a thousand reads");
  const some_files files({200'000});
  for (const std::size_t queue : {0u, 1u, 200u}) {
    auto session = ps::uring_file(files.paths, {.queue = queue}).connect();
    session.cancel();  // nothing to do
    wishes all;
    for (std::uint64_t i = 0; i < 1000; ++i) all.add(0, i * 100, 500);
    read_outcomes outcomes(1000);
    slow_listener slow(outcomes);
    session.read_many(all.requests, slow.listener());
    slow.entered.wait(false);
    session.cancel();
    let_go(slow);
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == outcomes.failures(ps::errc::stopped));
    CHECK(outcomes.failures() >= 1000 - (queue == 0 ? 8 : 2 * queue));
    bool right = true;
    for (std::size_t i = 0; i < 1000; ++i) right = right && (outcomes.failed(i) || all.right(i, files));
    CHECK(right);
    CHECK(outcomes.error_of(999)->file() == files.paths[0]);
    CHECK(outcomes.error_of(999)->offset() == 99'900);
    read_outcomes more(1000);
    session.read_many(all.requests, more.listener());
    more.wait();
    CHECK(more.failures() == 0);
  }
}

TEST_CASE("storage/uring_file: a session that ends completes each of its reads") {
  const deadline limit("ending a session with a thousand reads in flight");
  const some_files files({200'000});
  for (const std::size_t queue : {0u, 1u, 256u}) {
    wishes all;
    for (std::uint64_t i = 0; i < 1000; ++i) all.add(0, i * 100, 50'000);
    read_outcomes outcomes(1000);
    slow_listener slow(outcomes);
    std::thread helper;
    {
      auto session = ps::uring_file(files.paths, {.queue = queue}).connect();
      session.read_many(all.requests, slow.listener());
      slow.entered.wait(false);
      helper = std::thread([&] { let_go(slow); });
    }
    helper.join();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == outcomes.failures(ps::errc::stopped));
  }
  {
    auto unused = ps::uring_file(files.paths).connect();
    auto moved = std::move(unused);
  }
}

TEST_CASE("storage/uring_file: threads read while others read in the background and cancel") {
  const deadline limit("threads that read and cancel");
  const some_files files({100'000, 2'000'000});
  for (const std::size_t queue : {0u, 16u}) {
    auto session = ps::uring_file(files.paths, {.queue = queue}).connect();
    std::atomic<bool> wrong{false};
    std::vector<std::thread> readers;
    for (unsigned t = 0; t < 3; ++t) {
      readers.emplace_back([&, t] {
        std::array<std::byte, 50> bytes{};
        for (std::uint64_t i = 0; i < 500; ++i) {
          session.read(t % 2, t * 1000 + i, bytes);
          if (ps::text_of(bytes) != files.contents[t % 2].substr(t * 1000 + i, 50)) wrong = true;
        }
      });
    }
    for (std::uint64_t round = 0; round < 20; ++round) {
      wishes all;
      for (std::uint64_t i = 0; i < 100; ++i) all.add(static_cast<ps::object_id>(i % 2), i * 911, 3000);
      read_outcomes outcomes(100);
      session.read_many(all.requests, outcomes.listener());
      if (round % 2 == 0) session.cancel();
      outcomes.wait();
      if (!outcomes.each_once() || outcomes.failures() != outcomes.failures(ps::errc::stopped)) wrong = true;
      for (std::size_t i = 0; i < 100; ++i)
        if (!outcomes.failed(i) && !all.right(i, files)) wrong = true;
    }
    for (std::thread& reader : readers) reader.join();
    CHECK_FALSE(wrong);
  }
}

TEST_CASE("storage/uring_file: files in memory become mapped, also by reads in the background") {
  const deadline limit("mapping files");
  const some_files files({4'000'000});
  auto session = ps::uring_file(files.paths, {.access = ps::file_access::map}).connect();
  CHECK_FALSE(session.mapped(0));
  wishes one;
  one.add(0, 3'999'000, 1000);
  read_outcomes outcomes(1);
  session.read_many(one.requests, outcomes.listener());
  outcomes.wait();
  CHECK(one.right(0, files));
  REQUIRE(session.mapped(0));
  CHECK(ps::text_of(session.view(0, 5, 6)) == files.contents[0].substr(5, 6));
  session.confirm(0);
}

TEST_CASE("storage/uring_file: a source reads through it") {
  const penstock_test::temp_dir dir;
  {
    ps::shard_writer out((dir / "s-%d.tar").string());
    for (int i = 0; i < 100; ++i) out.write(std::to_string(i), {{"cls", std::to_string(i * i)}});
    out.close();
  }
  const std::string shard = (dir / "s-0.tar").string();
  const auto collect = [](auto plan) {
    std::vector<std::int64_t> all;
    for (auto&& b : plan.epoch(0))
      for (const std::int64_t label : get<"cls">(b)) all.push_back(label);
    return all;
  };
  const auto rest = ps::shuffle(ps::seed(3)) | ps::prefetch(20) | ps::decode<ps::field<"cls", ps::integer>> |
                    ps::batch(7) | ps::workers(2);
  const auto expected = collect(ps::webdataset(ps::file(shard)) | rest);
  CHECK(expected.size() == 100);
  for (const std::size_t queue : {0u, 4u, 256u}) {
    const ps::uring_file shards({shard.c_str()}, {.queue = queue, .access = ps::file_access::read});
    CHECK(collect(ps::webdataset(shards) | rest) == expected);
  }
}

TEST_CASE("storage/uring_file: names, options and descriptions") {
  if (has_io_uring()) CHECK(ps::uring_file("a{0..3}").describe() == "uring_file(a{0..3})");
  CHECK(ps::uring_file({"a", "b"}, {.queue = 0}).describe() == "uring_file(2 paths, without io_uring)");
  CHECK(ps::uring_file({"a"}, {.queue = 0, .access = ps::file_access::read}).describe() ==
        "uring_file(1 paths, read, without io_uring)");
  CHECK_THROWS_WITH(ps::uring_file("a", {.queue = 16'385}), contains("up to 16384 reads"));
  CHECK(ps::uring_file({"a"}, {.descriptors = 7}).connect().descriptor_limit() == 7);
}

// The sanitizers need system calls of their own.
TEST_CASE("storage/uring_file: if io_uring is forbidden threads read, and describe says why") {
  const some_files files({100'000});
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::array<sock_filter, 4> rules{{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the system call
                                      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
                                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
    const sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(3);  // system calls cannot be forbidden here
    const ps::uring_file storage(files.paths);
    if (storage.describe() != "uring_file(1 paths, without io_uring: Operation not permitted)") ::_exit(1);
    wishes all;
    for (std::uint64_t i = 0; i < 100; ++i) all.add(0, i * 900, 5000);
    read_outcomes outcomes(100);
    bool right = true;
    {
      auto session = storage.connect();
      session.read_many(all.requests, outcomes.listener());
      outcomes.wait();
      right = !session.uses_io_uring() && outcomes.failures() == 0;
    }
    for (std::size_t i = 0; i < 100; ++i) right = right && all.right(i, files);
    ::_exit(right ? 0 : 2);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 3) WARN("system calls cannot be forbidden here");
  CHECK((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3));
}
