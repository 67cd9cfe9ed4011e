// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/index_shards.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"

#include <penstock/source/dali_index.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace index_shards_test {

namespace ps = penstock;
using penstock_test::raw_tar;

/// Files in memory whose stamps are given, as a store gives ETags.
struct stamped_files {
  ps::memory_files files;
  std::uint64_t stamp = 7;

  class session {
   public:
    session(ps::memory_files::session made, std::uint64_t stamp) : made_(std::move(made)), stamp_(stamp) {}
    [[nodiscard]] std::uint64_t size(ps::object_id id) const { return made_.size(id); }
    [[nodiscard]] ps::object_version version(ps::object_id id) const { return {size(id), stamp_}; }
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
      made_.read(id, offset, into);
    }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const noexcept {}

   private:
    ps::memory_files::session made_;
    std::uint64_t stamp_;
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files.connect(), stamp}; }
  [[nodiscard]] stamped_files sidecars(ps::sidecar which) const { return {files.sidecars(which), stamp}; }
};
static_assert(ps::has_sidecars<stamped_files>());

ps::memory_files two_shards() {
  return ps::memory_files()
      .add("d/a.tar", raw_tar().member("a.txt", "1").member("b.txt", "2").end().bytes)
      .add("d/b.tar", raw_tar().member("c.txt", "3").end().bytes);
}

}  // namespace index_shards_test

TEST_CASE("source/index_shards: makes what is missing, and leaves the rest alone") {
  using namespace index_shards_test;
  std::map<std::string, std::string> made;
  const auto put = [&](std::size_t shard, const std::string& name, ps::bytes_view index) {
    CHECK(name == (shard == 0 ? "d/a.tar.penstock-index" : "d/b.tar.penstock-index"));
    made[name] = ps::text_of(index);
  };
  // the store's shards are named; what is put beside them is in another list
  const stamped_files shards{two_shards()};
  CHECK(ps::index_shards(shards, put, {.threads = 2}) == ps::indexed_shards{2, 0});
  REQUIRE(made.size() == 2);

  ps::memory_files with_one = two_shards();
  with_one.add("d/a.tar.penstock-index", made["d/a.tar.penstock-index"]);
  const ps::simulated_storage store(stamped_files{with_one}, {.latency = std::chrono::microseconds(0)});
  struct first_two {  // of a store that also holds an index
    ps::simulated_storage<stamped_files> where;
    using session = ps::simulated_storage<stamped_files>::session;
    [[nodiscard]] std::span<const std::string> names() const { return where.names().first(2); }
    [[nodiscard]] session connect() const { return where.connect(); }
    [[nodiscard]] first_two sidecars(ps::sidecar which) const { return {where.sidecars(which)}; }
  };
  made.clear();
  CHECK(ps::index_shards(first_two{store}, put) == ps::indexed_shards{1, 1});
  CHECK(made.size() == 1);
  CHECK(made.count("d/b.tar.penstock-index") == 1);

  // one that was made for another state of the shard is given again
  const first_two replaced{
      ps::simulated_storage(stamped_files{with_one, 8}, {.latency = std::chrono::microseconds(0)})};
  made.clear();
  CHECK(ps::index_shards(replaced, put) == ps::indexed_shards{2, 0});
  with_one = two_shards();
  for (const auto& [name, index] : made) with_one.add(name, index);
  const first_two whole{
      ps::simulated_storage(stamped_files{with_one, 8}, {.latency = std::chrono::microseconds(0)})};
  CHECK(ps::index_shards(whole, put) == ps::indexed_shards{0, 2});
  const std::uint64_t before = whole.where.reads();
  CHECK(ps::webdataset(whole, {.index = ps::index_policy::require}).size() == 3);
  CHECK(whole.where.reads() == before + 2);  // the indexes, and no header of a shard
}

TEST_CASE("source/index_shards: an index of another program spares the scan if it is named") {
  using namespace index_shards_test;
  struct first_two : stamped_files {  // of a store that also holds indexes
    [[nodiscard]] std::span<const std::string> names() const { return stamped_files::names().first(2); }
    [[nodiscard]] first_two sidecars(ps::sidecar which) const { return {stamped_files::sidecars(which)}; }
  };
  ps::memory_files with_indexes = two_shards();
  with_indexes.add("d/a.idx", "v1.2 2\ntxt 512 1 a.txt\ntxt 1536 1 b.txt\n").add("d/b.idx", "v1.2 1\n");
  std::map<std::string, std::string> scanned, made;
  const auto put_in = [](auto& all) {
    return
        [&](std::size_t, const std::string& name, ps::bytes_view index) { all[name] = ps::text_of(index); };
  };
  ps::index_shards(stamped_files{two_shards()}, put_in(scanned));
  const first_two shards{stamped_files{with_indexes}};
  CHECK(ps::index_shards(shards, put_in(made), {.index = ps::index_policy::cache.or_else(ps::dali_index)}) ==
        ps::indexed_shards{2, 0});
  CHECK(made == scanned);
  CHECK_THROWS_WITH(ps::index_shards(shards, put_in(made), {.index = ps::dali_index}),
                    penstock_test::contains("the DALI index d/b.idx of the shard d/b.tar"));
}

TEST_CASE("source/index_shards: the name of an index has no part of a URL's query") {
  using namespace index_shards_test;
  const stamped_files shards{
      ps::memory_files().add("http://h/a.tar?...", raw_tar().member("a.txt", "1").end().bytes)};
  std::string named;
  ps::index_shards(shards, [&](std::size_t, const std::string& name, ps::bytes_view) { named = name; });
  CHECK(named == "http://h/a.tar.penstock-index");
}

TEST_CASE("source/index_shards: a writer of the store puts the indexes beside the shards") {
  using namespace index_shards_test;
  struct writer {
    std::map<std::string, std::string>* all;
    std::string name, bytes;
    void open(std::string_view object) { name = object; }
    void write(ps::bytes_view more) { bytes += ps::text_of(more); }
    ps::object_version finish() {
      (*all)[name] = bytes;
      return {std::exchange(bytes, {}).size(), 1};
    }
    void abort() noexcept { bytes.clear(); }
  };
  std::map<std::string, std::string> given, written;
  const stamped_files shards{two_shards()};
  ps::index_shards(shards, [&](std::size_t, const std::string& name, ps::bytes_view index) {
    given[name] = ps::text_of(index);
  });
  CHECK(ps::index_shards(shards, writer{&written, {}, {}}) == ps::indexed_shards{2, 0});
  CHECK((written == given));
  writer kept{&written, {}, {}};
  CHECK(ps::index_shards(shards, kept, {.threads = 1}) == ps::indexed_shards{2, 0});
  CHECK((written == given));
}

TEST_CASE("source/index_shards: what fails") {
  using namespace index_shards_test;
  const auto put = [](std::size_t, const std::string&, ps::bytes_view) {};
  CHECK_THROWS_WITH(ps::index_shards(ps::memory_files(), put), penstock_test::contains("at least one shard"));
  CHECK_THROWS_WITH(ps::index_shards(ps::file({"a.tar"}), put), penstock_test::contains("local files"));
  CHECK_THROWS_WITH(ps::index_shards(two_shards().add("c.tar", "no tar"), put),
                    penstock_test::contains("[file c.tar"));
  int calls = 0;
  CHECK_THROWS_WITH(ps::index_shards(two_shards(),
                                     [&](std::size_t, const std::string&, ps::bytes_view) {
                                       ++calls;
                                       throw std::runtime_error("the store is full");
                                     },
                                     {.threads = 1}),
                    penstock_test::contains("the store is full"));
  CHECK(calls == 1);
}
