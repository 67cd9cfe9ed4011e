// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tables/table_objects.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/session_view.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

using penstock::detail::name_in_folder;
using penstock::detail::name_of_uri;
using penstock::detail::scheme_of_uri;
using penstock::detail::table_objects;

TEST_CASE("source/table_objects: files are opened by their names, and many are read at once") {
  penstock::memory_files where;
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back("t/" + std::to_string(i));
    where.add(names.back(), std::string(static_cast<std::size_t>(i), 'x'));
  }
  const table_objects objects(where);
  CHECK_FALSE(objects.local());
  CHECK(table_objects(penstock::file(std::vector<std::string>())).local());
  const std::vector<std::string> two{"t/7", "t/3"};
  objects.open(two, [&](penstock::session_view session) {
    CHECK(session.size(0) == 7);
    CHECK(session.size(1) == 3);
  });
  CHECK(penstock::text_of(objects.read("t/5", 5)) == "xxxxx");
  CHECK_THROWS_WITH(objects.read("t/5", 4), penstock_test::contains("metadata have 5 bytes; 4 is the limit"));

  std::size_t count = 0;
  const auto check = [&](std::size_t i, penstock::bytes_view bytes) {
    CHECK(i == count++);
    CHECK(penstock::text_of(bytes) == std::string(i, 'x'));
    return i != 80;
  };
  for (const std::uint64_t held : {std::uint64_t{0}, std::uint64_t{150}, table_objects::max_held}) {
    count = 0;
    CHECK_FALSE(objects.read_in_order(names, 99, check, held));
    CHECK(count == 81);
  }
  count = 0;
  const auto take = [&](std::size_t, penstock::bytes_view) {
    ++count;
    return true;
  };
  CHECK(objects.read_in_order(names, 99, take));
  CHECK(count == 100);
  CHECK_THROWS_WITH(
      objects.read_in_order(names, 98, take),
      penstock_test::contains("metadata have 99 bytes; 98 is the limit") && penstock_test::contains("t/99"));
  CHECK_THROWS_WITH(objects.read_in_order({"t/1", "gone"}, 10, take), penstock_test::contains("gone"));
  count = 0;
  CHECK(objects.read_in_order({}, 10, take));
  CHECK(count == 0);
}

namespace table_objects_test {

/// What the reads of a storage do together.
struct counts {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t sessions = 0, reading = 0, max_reading = 0, wanted = 0;
  std::uint64_t held = 0, max_held = 0;

  void begin(std::uint64_t bytes) {
    std::unique_lock lock(mutex);
    max_held = std::max(max_held, held += bytes);
    max_reading = std::max(max_reading, ++reading);
    changed.notify_all();
    // Waits for the others that are to be read at once; not for ever, if there are none.
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return max_reading >= wanted; });
    --reading;
  }
};

/// Objects in memory, whose reads are counted.
class counting_storage {
 public:
  struct session : penstock::memory_files::session {
    static constexpr penstock::session_traits traits = {};  // shows nothing in place
    counts* seen;

    void read(penstock::object_id id, std::uint64_t offset, penstock::mutable_bytes into) const {
      seen->begin(into.size());
      penstock::memory_files::session::read(id, offset, into);
    }
  };

  counting_storage(penstock::memory_files all, counts& seen) : all_(std::move(all)), seen_(&seen) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return all_.names(); }
  [[nodiscard]] session connect() const {
    ++seen_->sessions;
    return {all_.connect(), seen_};
  }
  [[nodiscard]] counting_storage with_names(std::vector<std::string> names) const {
    return {all_.with_names(std::move(names)), *seen_};
  }

 private:
  penstock::memory_files all_;
  counts* seen_;
};

}  // namespace table_objects_test

TEST_CASE("source/table_objects: the bytes in memory are bounded, and 16 files are read at once") {
  using namespace table_objects_test;
  CHECK(table_objects::fitting({}, 10) == 0);
  const std::vector<std::uint64_t> some{3, 4, 3, 0, 1, 99};
  CHECK(table_objects::fitting(some, 10) == 4);
  CHECK(table_objects::fitting(some, 9) == 2);
  CHECK(table_objects::fitting(some, 0) == 1);
  CHECK(table_objects::fitting(some, 1000) == 6);

  penstock::memory_files where;
  std::vector<std::string> names;
  constexpr std::size_t files = 200, large = 70, small_size = 10, large_size = 1000;
  for (std::size_t i = 0; i < files; ++i) {
    names.push_back(std::to_string(i));
    where.add(names.back(), std::string(i == large ? large_size : small_size, 'x'));
  }
  counts seen;
  seen.wanted = table_objects::max_in_flight;
  std::uint64_t total = 0;
  const auto work = [&](std::size_t, penstock::bytes_view bytes) {
    const std::lock_guard lock(seen.mutex);
    seen.held -= bytes.size();
    total += bytes.size();
    if (bytes.size() == large_size) CHECK(seen.held == 0);  // it was alone
    return true;
  };
  CHECK(table_objects(counting_storage(where, seen)).read_in_order(names, large_size, work, 20 * small_size));
  CHECK(total == large_size + (files - 1) * small_size);
  CHECK(seen.held == 0);
  CHECK(seen.max_held == large_size);
  CHECK(seen.max_reading == table_objects::max_in_flight);
  CHECK(seen.sessions == 1);

  seen.max_held = 0;
  names.resize(large);
  CHECK(table_objects(counting_storage(where, seen)).read_in_order(names, large_size, work, 20 * small_size));
  CHECK(seen.max_held == 20 * small_size);
}

TEST_CASE("source/table_objects: names, and URIs that stand for them") {
  CHECK(name_in_folder("a/b", "c") == "a/b/c");
  CHECK(name_in_folder("", "c") == "c");
  CHECK(name_in_folder("s3://b/t", "a=x%2Fy z/c") == "s3://b/t/a=x%2Fy z/c");
  CHECK(name_in_folder("https://h/t", "a=x%2Fy z/\xc3\xa9+c") == "https://h/t/a=x%252Fy%20z/%C3%A9%2Bc");
  CHECK(name_of_uri("file:///a/b c") == "/a/b c");
  CHECK(name_of_uri("file:/a") == "/a");
  CHECK(name_of_uri("s3a://bucket/key") == "s3://bucket/key");
  CHECK(name_of_uri("s3n://bucket/s3a://x") == "s3://bucket/s3a://x");
  CHECK(name_of_uri("gs://bucket/key") == "gs://bucket/key");
  CHECK(name_of_uri("plain/s3a://x") == "plain/s3a://x");
  CHECK(scheme_of_uri("s3://bucket") == "s3");
  CHECK(scheme_of_uri("dbfs:/mnt") == "dbfs");
  CHECK(scheme_of_uri("a:/b").empty());
  CHECK(scheme_of_uri("x y:/b").empty());
  CHECK(scheme_of_uri("/a/b").empty());
}
