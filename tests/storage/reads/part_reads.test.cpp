// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/reads/part_reads.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/held_storage.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock::literals;
using penstock_test::abandoning_storage;
using penstock_test::deadline;
using penstock_test::eventually;
using penstock_test::held_storage;
using ps::detail::part_reads;

namespace {

constexpr std::size_t whole = 64_MiB;

/// An object of 64 MiB and a few bytes, no two MiB of which are equal.
const ps::memory_files& large_file() {
  static const ps::memory_files made = [] {
    std::vector<std::byte> bytes(whole + 100);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + (i >> 16));
    return ps::memory_files().add("large.tar", bytes);
  }();
  return made;
}
bool are_bytes_of_file(std::span<const std::byte> bytes, std::size_t offset) {
  const auto all = large_file().connect().view(0, offset, bytes.size());
  return std::memcmp(all.data(), bytes.data(), bytes.size()) == 0;
}

/// A thread that reads 64 MiB from offset 7 on.
template <class Session>
class reader {
 public:
  explicit reader(const Session& from)
      : thread_([this, &from] {
          try {
            from.read(0, 7, bytes_);
          } catch (const ps::error& e) {
            failed_ = e;
          }
        }) {}
  /// Its error, once it has ended.
  const std::optional<ps::error>& wait() {
    thread_.join();
    return failed_;
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(whole);
  std::optional<ps::error> failed_;
  std::thread thread_;
};

std::exception_ptr broken_at(std::uint64_t offset) {
  return std::make_exception_ptr(ps::error(ps::errc::io, "broken").in_file("large.tar").at_offset(offset));
}
const std::vector<std::uint64_t> offsets{7, 7 + 16_MiB, 7 + 32_MiB, 7 + 48_MiB};

/// A session that begins reads, and leaves it to the test to end them.
class listed_reads {
 public:
  struct one {
    ps::read_request request;
    ps::read_listener listener;
  };
  void read_many(std::span<const ps::read_request> requests, ps::read_listener listener) {
    const std::scoped_lock held(lock_);
    for (const auto& request : requests) begun_.push_back({request, listener});
  }
  void end(std::size_t i) {
    const one mine = begun()[i];
    mine.listener.done(mine.listener.self, mine.request.tag, nullptr);
  }
  [[nodiscard]] std::vector<one> begun() {
    const std::scoped_lock held(lock_);
    return begun_;
  }

 private:
  std::mutex lock_;
  std::vector<one> begun_;
};

}  // namespace

TEST_CASE("storage/reads/part_reads: a long read comes in parts, side by side, straight to its place") {
  const deadline limit("a long read");
  const auto run = [](const auto& storage, held_storage& far) {
    const auto session = storage.connect();
    reader reads(session);
    eventually([&] { return far.reads->count() == 4; });
    CHECK(far.reads->offsets() == offsets);
    for (const std::size_t i : {2u, 0u, 1u, 0u}) far.reads->end(i);
    CHECK_FALSE(reads.wait().has_value());
    CHECK(are_bytes_of_file(reads.bytes(), 7));
    CHECK(far.reads->begun() == 4);
  };
  held_storage far(large_file()), throttled(large_file());
  run(ps::retrying(far), far);
  run(ps::throttled(throttled), throttled);
  abandoning_storage hedged(large_file());
  const auto session = ps::hedged(hedged).connect();
  reader reads(session);
  eventually([&] { return hedged.reads->count() == 4; });
  CHECK(hedged.reads->offsets() == offsets);
  hedged.reads->end_all();
  CHECK_FALSE(reads.wait().has_value());
  CHECK(are_bytes_of_file(reads.bytes(), 7));
}

TEST_CASE("storage/reads/part_reads: eight parts are in flight, and another one begins when one ends") {
  const deadline limit("many parts");
  listed_reads line;
  constexpr std::size_t size = 10 * 16_MiB + 1;  // eleven parts
  const auto room = std::make_unique_for_overwrite<std::byte[]>(size);
  std::thread reads([&] { ps::detail::read_by_parts(line, 0, 0, {room.get(), size}); });
  eventually([&] { return line.begun().size() == 8; });
  for (std::size_t i = 0; i < 11; ++i) {
    CHECK(line.begun().size() == std::min<std::size_t>(11, 8 + i));
    line.end(i);
  }
  reads.join();
  const std::byte* next = room.get();
  for (const auto& [request, listener] : line.begun()) {
    CHECK(request.into.data() == next);
    CHECK(request.offset == static_cast<std::uint64_t>(next - room.get()));
    CHECK(request.into.size() <= part_reads::longest);
    CHECK(request.into.size() > part_reads::longest / 2);
    next += request.into.size();
  }
  CHECK(next == room.get() + size);
}

TEST_CASE("storage/reads/part_reads: a part that fails is one error, with its place") {
  const deadline limit("a part that fails");
  const held_storage far(large_file());
  const auto session = ps::retrying(far, {.attempts = 1}).connect();
  {
    reader reads(session);
    eventually([&] { return far.reads->count() == 4; });
    far.reads->end(3, broken_at(offsets[3]));
    far.reads->end(1, broken_at(offsets[1]));
    far.reads->end_all();
    const auto failed = reads.wait();
    REQUIRE(failed.has_value());
    CHECK(failed->offset() == offsets[1]);
    CHECK(failed->file() == "large.tar");
    CHECK(failed->code() == ps::errc::io);
  }
  reader again(session);
  eventually([&] { return far.reads->count() == 4; });
  far.reads->end_all();
  CHECK_FALSE(again.wait().has_value());
  CHECK(are_bytes_of_file(again.bytes(), 7));
}

TEST_CASE("storage/reads/part_reads: only the part that failed is tried again") {
  const deadline limit("a part that is tried again");
  const held_storage far(large_file());
  const auto session = ps::retrying(far, {.initial_backoff = 1ms, .max_backoff = 1ms}).connect();
  reader reads(session);
  eventually([&] { return far.reads->count() == 4; });
  for (const std::size_t i : {3u, 1u, 0u}) far.reads->end(i);
  far.reads->end(0, broken_at(offsets[2]));
  eventually([&] { return far.reads->begun() == 5 && far.reads->count() == 1; });
  CHECK(far.reads->offsets() == std::vector<std::uint64_t>{offsets[2]});
  far.reads->end_all();
  CHECK_FALSE(reads.wait().has_value());
  CHECK(are_bytes_of_file(reads.bytes(), 7));
  CHECK(session.report().counters.retries == 1);
}

TEST_CASE("storage/reads/part_reads: a cancellation ends all parts, and the read once") {
  const deadline limit("parts that are cancelled");
  const held_storage far(large_file());
  const auto session = ps::retrying(far).connect();
  reader reads(session);
  eventually([&] { return far.reads->count() == 4; });
  session.cancel();
  const auto failed = reads.wait();
  REQUIRE(failed.has_value());
  CHECK(failed->code() == ps::errc::stopped);
  CHECK(far.reads->count() == 0);
  CHECK(far.reads->begun() == 4);
}

TEST_CASE("storage/reads/part_reads: short reads, and those of a storage that only blocks, stay whole") {
  const deadline limit("whole reads");
  std::vector<std::byte> bytes(whole);
  const held_storage far(large_file());
  ps::retrying(far).connect().read(0, 7, std::span(bytes).first(16_MiB));
  CHECK(far.reads->begun() == 0);  // it blocks
  CHECK(are_bytes_of_file(std::span(bytes).first(16_MiB), 7));
  ps::retrying(large_file()).connect().read(0, 7, bytes);
  CHECK(are_bytes_of_file(bytes, 7));
  CHECK(ps::retrying(large_file()).connect().report().counters.requests == 0);
}
