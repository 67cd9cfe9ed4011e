// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/sidecar.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"

#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>
#include <penstock/storage/uring_file.hpp>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using penstock::sidecar;
using far_files = penstock::simulated_storage<penstock::memory_files>;

static_assert(penstock::has_sidecars<penstock::http>() && penstock::has_sidecars<far_files>() &&
              penstock::has_sidecars<penstock::any_of<penstock::file, penstock::http>>());
static_assert(!penstock::has_sidecars<penstock::file>() &&
              !penstock::has_sidecars<penstock::retrying<penstock::file>>());

static_assert(penstock::renaming_storage<penstock::file> &&
              penstock::renaming_storage<penstock::mapped_file> &&
              penstock::renaming_storage<penstock::retrying<penstock::uring_file>> &&
              penstock::renaming_storage<penstock::any_of<penstock::file, penstock::http>>);

penstock::memory_files sidecar_files() {
  return penstock::memory_files().add("a.tar", "one").add("a.tar.idx", "index of a").add("b.tar", "two");
}
std::string all_of(auto& session, penstock::object_id id) {
  std::string into(static_cast<std::size_t>(session.size(id)), 'x');
  session.read(id, 0, std::as_writable_bytes(std::span(into)));
  return into;
}
std::vector<std::string> names_of(const auto& where) { return {where.names().begin(), where.names().end()}; }

}  // namespace

TEST_CASE("storage/sidecar: names of files beside an object") {
  const sidecar added{".idx"}, instead{".idx", true};
  CHECK(added.of("a/train-0.tar") == "a/train-0.tar.idx");
  CHECK(instead.of("a/train-0.tar") == "a/train-0.idx");
  CHECK(instead.of("a.b/train.v1-0.tar.gz") == "a.b/train.idx");
  CHECK(instead.of("train") == "train.idx");
  CHECK(instead.of(".hidden.tar") == ".hidden.idx");
  CHECK(instead.of("a/.hidden.tar") == "a/.hidden.idx");
  CHECK(instead.of("http://127.0.0.1:80/a.tar?...") == "http://127.0.0.1:80/a.idx");
}

TEST_CASE("storage/sidecar: storages around another one pass it on") {
  const auto check = [](const auto& where) {
    INFO(where.describe());
    const auto near = where.sidecars(sidecar{".idx"});
    CHECK(names_of(near) == std::vector<std::string>{"a.tar.idx", "a.tar.idx.idx", "b.tar.idx"});
    auto session = near.connect();
    CHECK(all_of(session, 0) == "index of a");
    const auto missing = penstock_test::web_error_of([&] { (void)session.size(2); });
    CHECK(missing.code() == penstock::errc::io);
    CHECK(missing.recurs());
    CHECK(missing.file() == "b.tar.idx");
    CHECK_THROWS_AS(all_of(session, 1), penstock::error);
  };
  const far_files far(sidecar_files(), {.latency = std::chrono::microseconds(1)});
  check(sidecar_files());
  check(far);
  check(penstock::retrying(penstock::throttled(penstock::hedged(far))));
}

TEST_CASE("storage/sidecar: a storage can name other objects, and keeps its options") {
  const auto check = [](const auto& where) {
    INFO(where.describe());
    const auto others = where.with_names({"b.tar", "gone", "a.tar.idx"});
    CHECK(names_of(others) == std::vector<std::string>{"b.tar", "gone", "a.tar.idx"});
    auto session = others.connect();
    CHECK(all_of(session, 0) == "two");
    CHECK(all_of(session, 2) == "index of a");
    const auto missing = penstock_test::web_error_of([&] { (void)session.size(1); });
    CHECK(missing.code() == penstock::errc::io);
    CHECK(missing.recurs());
    CHECK(missing.file() == "gone");
  };
  const far_files far(sidecar_files(), {.latency = std::chrono::microseconds(1)});
  check(sidecar_files());
  check(far);
  check(penstock::retrying(penstock::throttled(penstock::hedged(far))));

  const penstock_test::temp_dir dir;
  for (const char* const name : {"{a}.tar", "b.tar"}) std::ofstream(dir / name) << name;
  const std::vector<std::string> names{(dir / "{a}.tar").string(), (dir / "gone").string()};
  const auto check_files = [&](const auto& where) {
    const auto others = where.with_names(names);  // braces are not expanded
    CHECK(names_of(others) == names);
    auto session = others.connect();
    CHECK(all_of(session, 0) == "{a}.tar");
    CHECK(penstock_test::web_error_of([&] { (void)session.size(1); }).recurs());
  };
  const std::string there = (dir / "b.tar").string();
  check_files(penstock::file(there));
  check_files(penstock::mapped_file(there));
  check_files(penstock::uring_file(there));
  check_files(penstock::any_of<penstock::file, penstock::http>(penstock::file(there)));

  const penstock::http web({"http://h.example/a.tar"}, penstock_test::direct({.connections = 3}));
  CHECK(names_of(web.with_names({"https://i.example/b"})) == std::vector<std::string>{"https://i.example/b"});
  CHECK_THAT(web.with_names({"http://h.example/b"}).describe(), penstock_test::contains("3 connections"));
}

TEST_CASE("storage/sidecar: the reads of sidecars count as the storage's own, and have no faults") {
  const far_files far(sidecar_files(), {.latency = std::chrono::microseconds(0), .faults = {{.object = 0}}});
  auto session = far.sidecars(sidecar{".idx"}).connect();
  CHECK(all_of(session, 0) == "index of a");
  CHECK(far.reads() == 1);
  auto own = far.connect();
  CHECK_THROWS_AS(all_of(own, 0), penstock::error);
}

TEST_CASE("storage/sidecar: memory files that are added later stay beside those there are") {
  auto near = sidecar_files().sidecars(sidecar{".idx", true});
  near.add("c.idx", "new");
  auto session = near.connect();
  CHECK(all_of(session, 3) == "new");
  CHECK_THROWS_AS(session.size(0), penstock::error);
  CHECK_THROWS_WITH(session.size(4), penstock_test::contains("there is no object 4"));
}

TEST_CASE("storage/sidecar: http puts it before the query, which stays secret") {
  const penstock::http where({"http://h.example:81/d/a.tar?sig=secret", "https://h.example/b%20c.tar"},
                             penstock_test::direct({.connections = 3}));
  const auto near = where.sidecars(sidecar{".penstock-index"});
  CHECK(names_of(near) == std::vector<std::string>{"http://h.example:81/d/a.tar.penstock-index?...",
                                                   "https://h.example/b%20c.tar.penstock-index"});
  CHECK_THAT(near.describe(), penstock_test::contains("3 connections"));
  const penstock::any_of<penstock::file, penstock::http> any(where);
  CHECK(names_of(any.sidecars(sidecar{".penstock-index"})) == names_of(near));
  const penstock::any_of<penstock::file, penstock::http> path("a.tar");
  CHECK_THROWS_WITH(path.sidecars(sidecar{".idx"}), penstock_test::contains("found by their paths"));
}
