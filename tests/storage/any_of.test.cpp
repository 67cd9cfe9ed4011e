// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/any_of.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/noting_storage.hpp"
#include "support/read_outcomes.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::read_outcomes;
using penstock_test::temp_dir;

namespace {

/// What the storages below hold, by the names after their schemes.
ps::memory_files& shelf() {
  static ps::memory_files files;
  return files;
}
ps::memory_files taken(const std::vector<std::string>& urls) {
  ps::memory_files files;
  for (const std::string& url : urls) {
    const std::string_view name = std::string_view(url).substr(url.find("://") + 3);
    const auto all = shelf().connect();
    for (ps::object_id id = 0; id < shelf().names().size(); ++id)
      if (shelf().names()[id] == name) files.add(url, all.view(id, 0, all.size(id)));
  }
  return files;
}

/// Shows its bytes in place.
class shown {
 public:
  static constexpr std::string_view schemes[] = {"mem"};
  using session = ps::memory_files::session;
  explicit shown(std::string_view pattern) : files_(taken(ps::expand_braces(pattern))) {}
  explicit shown(const std::vector<std::string>& urls) : files_(taken(urls)) {}
  [[nodiscard]] std::span<const std::string> names() const { return files_.names(); }
  [[nodiscard]] session connect() const { return files_.connect(); }

 private:
  ps::memory_files files_;
};

/// Is far away, and takes one pattern.
class far {
 public:
  static constexpr std::string_view schemes[] = {"far", "fars"};
  using session = ps::simulated_storage<ps::memory_files>::session;
  explicit far(std::string_view pattern)
      : files_(taken(ps::expand_braces(pattern)), {.latency = std::chrono::microseconds(100)}) {}
  [[nodiscard]] std::span<const std::string> names() const { return files_.names(); }
  [[nodiscard]] session connect() const { return files_.connect(); }
  [[nodiscard]] std::string describe() const { return "far away"; }

 private:
  ps::simulated_storage<ps::memory_files> files_;
};

/// Is read by copying in the calling thread, and its session cannot be moved.
class copied {
 public:
  static constexpr std::string_view schemes[] = {"copied"};
  struct session : penstock_test::noting_storage::session {
    explicit session(penstock_test::noting_storage::session one)
        : penstock_test::noting_storage::session(std::move(one)) {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;
  };
  explicit copied(std::string_view pattern) : files_{taken(ps::expand_braces(pattern))} {}
  [[nodiscard]] std::span<const std::string> names() const { return files_.names(); }
  [[nodiscard]] session connect() const { return session(files_.connect()); }

 private:
  penstock_test::noting_storage files_;
};

using three = ps::any_of<ps::file, shown, far>;
using near = ps::any_of<ps::file, copied>;
static_assert(ps::storage<three>);
static_assert(ps::background_session<three::session> && ps::session_traits_of<three::session>().latency);
static_assert(ps::mapped_session<three::session>);
static_assert(!ps::all_mapped<three::session>() && !ps::is_local<three>());
static_assert(!ps::background_session<near::session> && !ps::session_traits_of<near::session>().latency);
static_assert(ps::mapped_session<near::session> && ps::storage<near>);
static_assert(ps::all_mapped<ps::any_of<ps::mapped_file, shown>::session>());
static_assert(!ps::mapped_session<ps::any_of<copied, far>::session>);
static_assert(ps::is_local<ps::any_of<ps::file>>() &&
              !ps::session_traits_of<ps::any_of<ps::file>::session>().latency);

void put(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
std::string error_of(const std::string& url) {
  try {
    const three made(url);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return e.what();
  }
  return "no error";
}
template <class Session>
std::string all_of(Session&& session, ps::object_id id) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(session.size(id)));
  session.read(id, 0, bytes);
  return std::string(ps::text_of(bytes));
}

std::string shard(int first, int count) {
  std::string bytes;
  ps::tar_writer out([&](ps::bytes_view piece) { bytes += ps::text_of(piece); });
  for (int i = first; i < first + count; ++i)
    out.write(std::to_string(i),
              {{"cls", std::to_string(i)}, {"txt", std::string(500, static_cast<char>('a' + i % 26))}});
  out.close();
  return bytes;
}

template <class Source>
std::vector<std::int64_t> labels(const Source& source) {
  std::vector<std::int64_t> seen;
  auto plan = source | ps::shuffle(ps::seed(7)) |
              ps::decode<ps::field<"cls", ps::integer>, ps::field<"txt", ps::text>> |
              ps::batch(8, ps::ragged) | ps::workers(3) | ps::prefetch(64);
  for (auto&& b : plan.epoch(1)) {
    for (std::size_t i = 0; i < b.size(); ++i) {
      seen.push_back(ps::get<"cls">(b)[i]);
      const auto letters = ps::get<"txt">(b)[i];
      if (std::string(letters.begin(), letters.end()) !=
          std::string(500, static_cast<char>('a' + seen.back() % 26)))
        seen.push_back(-1);
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("storage/any_of: a path, a file:// URL and a list are files, with their names and versions") {
  const temp_dir dir;
  const std::string path = (dir / "a 100%.bin").string(), other = (dir / "b.bin").string();
  put(path, "first");
  put(other, "second");
  const ps::file plain(path);
  for (const std::string& url : {path, "file://" + path, "FILE://localhost" + path}) {
    const three made(url);
    CHECK(made.local());
    CHECK(made.describe() == plain.describe());
    REQUIRE(made.names().size() == 1);
    CHECK(made.names()[0] == path);
    const auto session = made.connect();
    CHECK(session.size(0) == 5);
    CHECK(session.version(0) == plain.connect().version(0));
    CHECK(all_of(session, 0) == "first");
  }
  CHECK(three("file://" + (dir / "{b,c}.bin").string()).names().size() == 2);
  const three list({path.c_str(), other.c_str()});
  CHECK(all_of(list.connect(), 1) == "second");
  CHECK(three(std::vector<std::string>{"file://" + path, other}).names()[0] == path);
  const three mine(ps::file(path, {.access = ps::file_access::map}));
  CHECK(mine.connect().resident(0));
  CHECK(mine.describe().find("mapped") != std::string::npos);
  CHECK_THROWS_AS(three(path + "missing").connect().size(0), ps::error);
}

TEST_CASE("storage/any_of: the scheme chooses the storage, whatever its case") {
  shelf() = ps::memory_files().add("a", "of memory").add("b", "another");
  const three in_memory("MEM://a"), away("fars://{a,b}");
  CHECK_FALSE(in_memory.local());
  CHECK(in_memory.describe() == "any_of(1 objects)");
  CHECK(in_memory.names()[0] == "mem://a");
  CHECK(away.describe() == "far away");
  CHECK(away.names().size() == 2);
  CHECK(all_of(away.connect(), 1) == "another");
  CHECK(three({"mem://b", "mem://a"}).names()[0] == "mem://b");
  CHECK(three({"far://b"}).names().size() == 1);
  CHECK(three(std::vector<std::string>{"Mem://b"}).names()[0] == "mem://b");

  const auto mapped = in_memory.connect();
  CHECK(mapped.mapped(0));
  CHECK(mapped.resident(0));
  CHECK(ps::text_of(mapped.view(0, 3, 6)) == "memory");
  mapped.confirm(0);
  mapped.will_need(0, 0, 9);
  const auto copies = away.connect();
  CHECK_FALSE(copies.mapped(0));
  CHECK_FALSE(copies.resident(0));
  CHECK_THROWS_WITH(copies.view(0, 0, 1), contains("is not shown in place; read it"));
  const ps::any_of<copied, far> apart("copied://a");
  CHECK(all_of(apart.connect(), 0) == "of memory");
}

TEST_CASE(
    "storage/any_of: a scheme that is not in the list is an error that says what to add, and no secrets") {
  const std::string secret = "user:PASSWORD@host/a.tar?X-Amz-Signature=SIGNATURE";
  CHECK_THAT(error_of("s3://" + secret),
             contains("this any_of has no storage for s3://, only for file, mem, far, fars; include "
                      "<penstock/storage/s3.hpp>, link penstock::s3 and add s3 to its list"));
  CHECK_THAT(error_of("https://" + secret),
             contains("this any_of has no storage for https://, only for file, mem, far, fars; include "
                      "<penstock/storage/http.hpp>, link penstock::http and add http to its list"));
  CHECK_THAT(error_of("HTTPS://" + secret), contains("no storage for https://"));
  CHECK_THAT(error_of("http://" + secret),
             contains("<penstock/storage/http.hpp>, link penstock::http and add http"));
  CHECK_THAT(error_of("gopher://" + secret), contains("add a storage whose schemes have it to its list"));
  for (const std::string scheme : {"gs", "gcs", "abfs", "abfss", "hdfs", "ViewFS"})
    CHECK_THAT(
        error_of(scheme + "://" + secret),
        contains(
            "include <penstock/storage/arrow_files.hpp>, link penstock::arrow and read with arrow_files"));
  for (const std::string scheme : {"s3", "HTTPS", "http", "gs", "abfss", "hdfs", "gopher", "file"}) {
    CHECK(error_of(scheme + "://" + secret).find("PASSWORD") == std::string::npos);
    CHECK(error_of(scheme + "://" + secret).find("SIGNATURE") == std::string::npos);
  }
  CHECK_THAT(error_of("file://elsewhere/a.tar"), contains("names a file on another machine"));
  CHECK_THAT(error_of("pipe:cat a.tar"), contains("webdataset_pipe"));
  CHECK_THAT(error_of("{s3,mem}://a"), contains("s3://"));
  CHECK_THROWS_WITH(
      (ps::any_of<shown>("a.tar")),
      contains("has no storage for local files, only for mem; include <penstock/storage/file.hpp>"));
  CHECK_THROWS_WITH(three({"mem://a", "far://b"}),
                    contains("number 0 is for mem while number 1 is for far; make a source of each list"));
  CHECK_THROWS_WITH(three({"far://a", "far://b"}), contains("takes one URL, not a list"));
  CHECK_THROWS_WITH(three(std::vector<std::string>()), contains("and got none"));
}

TEST_CASE("storage/any_of: reads in the background whatever was chosen, and ends what it began") {
  const deadline limit("background reads of any_of");
  std::string text(100'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  const temp_dir dir;
  put(dir / "a", text);
  shelf() = ps::memory_files().add("a", text);
  for (const std::string& url : {(dir / "a").string(), std::string("mem://a"), std::string("far://a")}) {
    const three where(url);
    std::vector<std::byte> bytes(100 * 1000);
    std::vector<ps::read_request> requests;
    for (std::size_t i = 0; i < 100; ++i)
      requests.push_back({0, i * 991, ps::mutable_bytes(bytes).subspan(i * 1000, 1000), i});
    requests.push_back({0, 99'999, ps::mutable_bytes(bytes).first(0), 100});
    std::array<std::byte, 2> beyond{};
    requests.push_back({0, 99'999, beyond, 101});
    read_outcomes first(102), second(102), third(102);
    {
      auto moved_from = where.connect();
      auto session = std::move(moved_from);
      session.read_many(requests, first.listener());
      first.wait();
      bool right = true;
      for (std::size_t i = 0; i < 100; ++i)
        right = right && ps::text_of(requests[i].into) == std::string_view(text).substr(i * 991, 1000);
      CHECK(right);
      CHECK(first.failures() == 1);
      CHECK(first.error_of(101)->code() == ps::errc::format);
      session.read_many(requests, second.listener());
      session.cancel();
      second.wait();
      session.read_many(requests, third.listener());
    }
    for (read_outcomes* one : {&first, &second, &third}) CHECK(one->each_once());
    CHECK(second.failures() <= second.failures(ps::errc::stopped) + 1);
  }
}

TEST_CASE("storage/any_of: webdataset over each of them gives what it gives over a path") {
  const deadline limit("webdataset over any_of");
  const temp_dir dir;
  shelf() = ps::memory_files();
  for (int i = 0; i < 3; ++i) {
    const std::string bytes = shard(i * 50, 50);
    shelf().add("train-" + std::to_string(i) + ".tar", bytes);
    put(dir / ("train-" + std::to_string(i) + ".tar"), bytes);
  }
  const std::string pattern = (dir / "train-{0..2}.tar").string();
  const ps::webdataset_options kept{.index = ps::index_policy::keep};
  const auto plain = ps::webdataset(pattern);
  const auto same = ps::webdataset(three("file://" + pattern), kept);
  CHECK(same.fingerprint() == plain.fingerprint());
  CHECK(same.describe() == plain.describe());
  CHECK(same.size() == 150);
  CHECK(std::filesystem::exists(dir / "train-0.tar.penstock-index"));
  const auto wanted = labels(plain);
  CHECK(wanted.size() == 150);
  CHECK(labels(same) == wanted);
  CHECK(labels(ps::webdataset(three("mem://train-{0..2}.tar"))) == wanted);
  CHECK(labels(ps::webdataset(three("far://train-{0..2}.tar"))) == wanted);
  CHECK(labels(ps::webdataset(near("copied://train-{0..2}.tar"))) == wanted);
  CHECK(labels(ps::webdataset(near(pattern))) == wanted);
  CHECK(labels(ps::webdataset(ps::any_of<ps::mapped_file, shown>("mem://train-{0..2}.tar"))) == wanted);
  CHECK(labels(ps::webdataset(ps::any_of<ps::mapped_file, shown>(pattern))) == wanted);

  // Indexes are kept beside local shards even if the list has storages that are not local.
  for (int i = 0; i < 3; ++i)
    std::filesystem::remove(dir / ("train-" + std::to_string(i) + ".tar.penstock-index"));
  CHECK(labels(ps::webdataset(three(pattern), kept)) == wanted);
  CHECK(std::filesystem::exists(dir / "train-0.tar.penstock-index"));
  CHECK(labels(ps::webdataset(ps::simulated_storage(three(pattern)))) == wanted);
}
