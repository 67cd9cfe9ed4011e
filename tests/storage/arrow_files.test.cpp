// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/arrow_files.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/index_shards.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/read_outcomes.hpp"
#include "support/temp_dir.hpp"

#include <arrow/filesystem/localfs.h>
#include <arrow/filesystem/mockfs.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace fs = arrow::fs;
using namespace std::chrono_literals;
using penstock_test::deadline;
using penstock_test::read_outcomes;
using penstock_test::temp_dir;

namespace {

std::string arrow_content(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}
void put_file(const std::filesystem::path& where, std::string_view bytes) {
  std::ofstream(where, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string arrow_read(const ps::arrow_files::session& session, std::uint64_t offset, std::size_t size) {
  std::string into(size, '?');
  session.read(0, offset, std::as_writable_bytes(std::span(into)));
  return into;
}
template <class F>
ps::error arrow_error(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const ps::error& e) {
    return e;
  }
  FAIL("no error was thrown");
  throw 0;
}
bool mentions(const ps::error& e, std::string_view part) {
  return std::string_view(e.what()).find(part) != std::string_view::npos;
}
std::shared_ptr<fs::LocalFileSystem> local() { return std::make_shared<fs::LocalFileSystem>(); }
std::shared_ptr<fs::internal::MockFileSystem> in_memory() {
  return std::make_shared<fs::internal::MockFileSystem>(fs::TimePoint(5s));
}

/// The local file system, whose files fail as the test says.
class failing_disk : public fs::LocalFileSystem {
 public:
  std::atomic<int> failures{0};
  arrow::Status how = arrow::Status::IOError("the wire is cut at https://store/x?sig=SECRET now\nand more");

  using fs::LocalFileSystem::GetFileInfo;
  arrow::Result<fs::FileInfo> GetFileInfo(const std::string& path) override {
    if (failures-- > 0) return how;
    return fs::LocalFileSystem::GetFileInfo(path);
  }
};

template <class Storage>
std::vector<std::string> arrow_epoch(const Storage& where, unsigned workers) {
  std::vector<std::string> all;
  const auto loader = ps::webdataset(where) | ps::shuffle(ps::seed(5)) | ps::fields<"bin"> | ps::batch(10) |
                      ps::workers(workers);
  for (auto&& b : loader.epoch(1)) {
    const auto rows = ps::get<"bin">(b);
    for (std::size_t i = 0; i < b.size(); ++i) all.emplace_back(ps::text_of(rows[i]));
  }
  return all;
}

}  // namespace

TEST_CASE("storage/arrow_files: bytes, size, version and names of three file systems") {
  const deadline limit("reads by Arrow");
  const temp_dir folder;
  const std::string bytes = arrow_content(100'000);
  put_file(folder / "a-0.bin", bytes);
  put_file(folder / "a-1.bin", "other");
  const auto mock = in_memory();
  REQUIRE(mock->CreateFile("inner/a-0.bin", bytes).ok());
  REQUIRE(mock->CreateFile("inner/a-1.bin", "other").ok());
  const std::string path = folder.path().string();
  for (const auto& [where, prefix] :
       {std::pair<std::shared_ptr<fs::FileSystem>, std::string>{local(), path + "/"},
        {std::make_shared<fs::SubTreeFileSystem>(path, local()), ""},
        {mock, "inner/"},
        {std::make_shared<fs::SubTreeFileSystem>("inner", mock), ""}}) {
    const ps::arrow_files some(where, prefix + "a-{0..1}.bin");
    INFO(some.describe());
    REQUIRE(some.names().size() == 2);
    CHECK(some.names()[1] == prefix + "a-1.bin");
    const auto session = some.connect();
    CHECK(session.size(0) == bytes.size());
    CHECK(session.version(1).size == 5);
    CHECK(session.version(0).stamp != 0);
    CHECK((arrow_read(session, 0, bytes.size()) == bytes));
    CHECK(arrow_read(session, 70'001, 40) == bytes.substr(70'001, 40));
    CHECK(arrow_read(session, bytes.size(), 0).empty());
    for (const auto& [offset, size] :
         {std::pair<std::uint64_t, std::size_t>{99'999, 2}, {100'001, 0}, {~std::uint64_t{0}, 2}}) {
      const ps::error e = arrow_error([&, o = offset, s = size] { arrow_read(session, o, s); });
      CHECK(e.code() == ps::errc::format);
      CHECK(mentions(e, "beyond the end of the object, which has 100000"));
      CHECK(e.file() == prefix + "a-0.bin");
      CHECK(e.offset() == offset);
    }
    CHECK(session.report().counters == ps::storage_counters{.requests = 2, .bytes = 100'040});
  }
  CHECK(ps::arrow_files(mock, "inner/a-{0..1}.bin").describe() == "arrow_files(mock, inner/a-{0..1}.bin)");
}

TEST_CASE("storage/arrow_files: the example") {
  const auto disk = std::make_shared<arrow::fs::LocalFileSystem>();
  const ps::arrow_files shards(disk, "/data/train-{0000..0127}.tar");
  const auto retried = ps::retrying(ps::throttled(shards));
  CHECK(retried.names().size() == 128);
}

TEST_CASE("storage/arrow_files: a selector lists files, sorted") {
  const auto mock = in_memory();
  for (const char* path : {"b/2", "b/10", "b/inner/1", "c/0"}) REQUIRE(mock->CreateFile(path, "x").ok());
  fs::FileSelector which;
  which.base_dir = "b";
  const ps::arrow_files flat(mock, which);
  REQUIRE(flat.names().size() == 2);
  CHECK(flat.names()[0] == "b/10");
  which.recursive = true;
  CHECK(ps::arrow_files(mock, which).names().size() == 3);
  CHECK(ps::arrow_files(mock, which).connect().size(2) == 1);
  REQUIRE(mock->CreateDir("empty").ok());
  which.base_dir = "empty";
  CHECK(arrow_error([&] { (void)ps::arrow_files(mock, which); }).code() == ps::errc::missing);
  which.base_dir = "nowhere";
  const ps::error e = arrow_error([&] { (void)ps::arrow_files(mock, which); });
  CHECK(e.code() == ps::errc::io);
  CHECK(e.file() == "nowhere");
}

TEST_CASE("storage/arrow_files: what cannot be read says so, and whether it may pass") {
  const deadline limit("errors of Arrow");
  const temp_dir folder;
  put_file(folder / "a", "some bytes");
  const std::string path = (folder / "a").string();
  const auto disk = std::make_shared<failing_disk>();
  const ps::arrow_files some(
      disk, std::vector<std::string>{path, (folder / "none").string(), folder.path().string()});
  const auto session = some.connect();
  disk->failures = 1;
  const ps::error cut = arrow_error([&] { arrow_read(session, 3, 4); });
  CHECK(cut.code() == ps::errc::io);
  CHECK_FALSE(cut.recurs());
  CHECK(mentions(cut, "the wire is cut at https://store/x?... now and more"));
  CHECK_FALSE(mentions(cut, "SECRET"));
  CHECK(cut.file() == path);
  CHECK(arrow_read(session, 5, 5) == "bytes");
  for (const auto& [number, sentence] :
       {std::pair<ps::object_id, const char*>{1, "there is no such file"}, {2, "it is a folder"}}) {
    const ps::error e = arrow_error([&, n = number] { (void)session.size(n); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs());
    CHECK(mentions(e, sentence));
  }
  CHECK(arrow_error([&] { (void)session.size(3); }).code() == ps::errc::argument);
  disk->how = arrow::Status::NotImplemented("not here");
  disk->failures = 1;
  CHECK(arrow_error([&] { (void)some.connect().size(0); }).recurs());
  disk->how = arrow::Status::OutOfMemory("full");
  disk->failures = 1;
  CHECK_THROWS_AS(some.connect().size(0), std::bad_alloc);
  disk->how = arrow::Status::IOError("again");
  disk->failures = 3;
  const auto retried = ps::retrying(some, {.initial_backoff = 0ms}).connect();
  CHECK(retried.size(0) == 10);
  CHECK(retried.report().counters.retries == 3);

  CHECK(arrow_error([&] { ps::arrow_files(nullptr, "a"); }).code() == ps::errc::argument);
  CHECK(arrow_error([&] { ps::arrow_files(nullptr, fs::FileSelector()); }).code() == ps::errc::argument);
  CHECK(arrow_error([&] { ps::arrow_files(disk, "a", {.threads = 0}); }).code() == ps::errc::argument);
  CHECK(arrow_error([&] { ps::arrow_files(disk, "a", {.open_files = 0}); }).code() == ps::errc::argument);
}

TEST_CASE("storage/arrow_files: a file that was opened again and has changed is an error, never a mixture") {
  const temp_dir folder;
  put_file(folder / "a", "first content");
  put_file(folder / "b", "b");
  const ps::arrow_files some(local(), folder.path().string() + "/{a,b}", {.open_files = 1});
  const auto session = some.connect();
  CHECK(arrow_read(session, 0, 5) == "first");
  std::array<std::byte, 1> one{};
  session.read(1, 0, one);  // a is closed
  CHECK(arrow_read(session, 6, 7) == "content");
  session.read(1, 0, one);
  std::filesystem::remove(folder / "a");
  put_file(folder / "a", "second, longer content");
  const ps::error e = arrow_error([&] { arrow_read(session, 0, 5); });
  CHECK(mentions(e, "the object was replaced while it was read"));
  CHECK(e.recurs());
  CHECK(arrow_read(some.connect(), 0, 6) == "second");
}

TEST_CASE("storage/arrow_files: many reads in the background, by few threads, each once") {
  const deadline limit("a thousand reads by Arrow");
  const auto mock = in_memory();
  const std::string bytes = arrow_content(50'000);
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    names.push_back("f" + std::to_string(i));
    REQUIRE(mock->CreateFile(names.back(), bytes.substr(static_cast<std::size_t>(i))).ok());
  }
  const ps::arrow_files some(mock, names, {.threads = 4, .open_files = 3});
  auto session = some.connect();
  std::vector<std::byte> into(1000 * 40);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 1000; ++i)
    requests.push_back({static_cast<ps::object_id>(i % 20), i * 40, std::span(into).subspan(i * 40, 40), i});
  read_outcomes outcomes(1000);
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 0);
  bool right = true;
  for (std::size_t i = 0; i < 1000; ++i)
    right = right && ps::text_of(std::span(into).subspan(i * 40, 40)) == bytes.substr(i * 40 + i % 20, 40);
  CHECK(right);
  read_outcomes stopped(1000);
  session.read_many(requests, stopped.listener());
  session.cancel();
  stopped.wait();
  CHECK(stopped.each_once());
  CHECK(stopped.failures() == stopped.failures(ps::errc::stopped));
}

TEST_CASE("storage/arrow_files: webdataset gives what it gives over files") {
  const deadline limit("epochs by Arrow");
  const temp_dir folder;
  for (int shard = 0; shard < 3; ++shard) {
    std::string made;
    ps::tar_writer out([&made](ps::bytes_view more) { made += ps::text_of(more); });
    for (std::size_t i = 0; i < 40; ++i)
      out.write(std::to_string(shard) + "-" + std::to_string(i), {{"bin", arrow_content(500 + i).substr(i)}});
    out.close();
    put_file(folder / ("a-" + std::to_string(shard) + ".tar"), made);
  }
  const std::string pattern = folder.path().string() + "/a-{0..2}.tar";
  const auto expected = arrow_epoch(ps::file(pattern), 2);
  REQUIRE(expected.size() == 120);
  for (const unsigned workers : {0u, 2u})
    CHECK((arrow_epoch(ps::arrow_files(local(), pattern), workers) == expected));
  const auto inside = std::make_shared<fs::SubTreeFileSystem>(folder.path().string(), local());
  CHECK((arrow_epoch(ps::retrying(ps::arrow_files(inside, "a-{0..2}.tar")), 2) == expected));
}

TEST_CASE("storage/arrow_files: indexes lie beside the shards, in any file system") {
  const deadline limit("indexes by Arrow");
  const temp_dir folder, indexes;
  const auto mock = in_memory();
  const std::string disk_path = folder.path().string();
  for (const auto& [where, prefix] :
       {std::pair<std::shared_ptr<fs::FileSystem>, std::string>{local(), disk_path + "/"},
        {mock, "inner/"}}) {
    const auto put = [&, to = where](const std::string& name, ps::bytes_view bytes) {
      const auto out = to->OpenOutputStream(name);
      REQUIRE(out.ok());
      REQUIRE((*out)->Write(bytes.data(), static_cast<std::int64_t>(bytes.size())).ok());
      REQUIRE((*out)->Close().ok());
    };
    REQUIRE(where->CreateDir(prefix).ok());
    for (const std::string number : {"0", "1"}) {
      std::string made;
      ps::tar_writer out([&made](ps::bytes_view more) { made += ps::text_of(more); });
      for (int i = 0; i < 30; ++i) out.write(number + "-" + std::to_string(i), {{"cls", number}});
      out.close();
      put(prefix + "a-" + number + ".tar", ps::bytes_of(made));
    }
    const ps::arrow_files shards(where, prefix + "a-{0..1}.tar");
    INFO(shards.describe());
    const auto beside = shards.sidecars({".penstock-index"});
    CHECK(beside.names()[1] == prefix + "a-1.tar.penstock-index");
    CHECK(shards.with_names({prefix + "b"}).names()[0] == prefix + "b");
    CHECK(arrow_error([&] { (void)beside.connect().size(0); }).recurs());

    // `require` and a folder without indexes: what opens found them beside the shards.
    const ps::webdataset_options found{.index = ps::index_policy::require,
                                       .index_folder = indexes.path().string()};
    CHECK(arrow_error([&] { (void)ps::webdataset(shards, found); }).code() == ps::errc::missing);
    const auto keep = [&](std::size_t, const std::string& name, ps::bytes_view index) { put(name, index); };
    CHECK(ps::index_shards(shards, keep) == ps::indexed_shards{2, 0});
    CHECK(ps::index_shards(shards, keep) == ps::indexed_shards{0, 2});
    const ps::webdataset data(shards, found);
    CHECK(data.size() == 60);
    CHECK(data.connect().key(59) == "1-29");
    CHECK(ps::webdataset(ps::retrying(shards), found).size() == 60);
  }
}
