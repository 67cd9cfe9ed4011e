// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/unpacked.hpp>

#include <penstock/codec/npy.hpp>
#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_xz.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/storage/mapped_file.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/forward_listing.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"
#include "support/zip_writer.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using penstock::webdataset;
using penstock_test::raw_tar;

template <class Paths>
auto any_unpacked(const Paths& paths, const penstock::unpacked_options& options = {}) {
  return penstock::unpacked<penstock::unpack_gzip, penstock::unpack_zstd, penstock::unpack_lz4,
                            penstock::unpack_bzip2, penstock::unpack_xz>(paths, options);
}

/// All samples, from the last to the first, which a forward source cannot do.
template <class Source>
std::vector<std::string> backward_listing(const Source& data) {
  std::vector<std::string> lines;
  const auto reader = data.connect();
  typename decltype(data.connect())::worker worker;
  for (std::uint64_t i = data.size(); i-- > 0;)
    reader.evaluate({0, i}, worker, [&lines](const auto& s) { lines.push_back(penstock_test::line_of(s)); });
  return lines;
}

raw_tar small_tar(int samples = 50) {
  raw_tar tar;
  for (int i = 0; i < samples; ++i) {
    const std::string key = "k" + std::to_string(i);
    tar.member(key + ".txt", "text of " + key)
        .member(key + ".bin", std::string(static_cast<std::size_t>(i) * 901, 'b'));
  }
  return std::move(tar.end());
}

bool pack(const std::string& program, const fs::path& plain, const fs::path& packed) {
  return penstock_test::run_program(program + " -c <" + plain.string() + " >" + packed.string()).status == 0;
}

ino_t inode(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

/// The names in a folder, in order.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

penstock::error problem_of(const fs::path& packed, const penstock::unpacked_options& options = {}) {
  try {
    (void)any_unpacked(packed, options);
  } catch (const penstock::error& e) {
    return e;
  }
  FAIL("unpacked what it must not");
  return {penstock::errc::argument, ""};
}

/// Kills the process with SIGKILL after it has made some bytes.
struct killed_gzip {
  static constexpr std::string_view unpacker_format = "gzip";
  class stream {
   public:
    void begin() { inner_.begin(); }
    penstock::unpack_step step(penstock::bytes_view in, penstock::mutable_bytes out, bool last) {
      const penstock::unpack_step done = inner_.step(in, out, last);
      made_ += done.made;
      if (made_ > 3'000'000) ::raise(SIGKILL);
      return done;
    }

   private:
    penstock::unpack_gzip::stream inner_;
    std::size_t made_ = 0;
  };
};

/// Counts the bytes that it makes.
struct counted_gzip {
  static constexpr std::string_view unpacker_format = "gzip";
  static inline std::atomic<std::uint64_t> made{0};
  struct stream : penstock::unpack_gzip::stream {
    penstock::unpack_step step(penstock::bytes_view in, penstock::mutable_bytes out, bool last) {
      const penstock::unpack_step done = penstock::unpack_gzip::stream::step(in, out, last);
      made += done.made;
      return done;
    }
  };
};

}  // namespace

TEST_CASE("source/unpacked: webdataset reads the samples of packed shards in any order") {
  const penstock_test::temp_dir dir;
  small_tar().save((dir / "t.tar").string());
  const auto lines = backward_listing(webdataset(dir / "t.tar"));
  REQUIRE(lines.size() == 50);
  for (const std::string program : {"gzip", "zstd", "lz4", "bzip2", "xz"}) {
    INFO(program);
    if (!penstock_test::have_program(program, program + " --version </dev/null")) continue;
    const fs::path packed = dir / (program + ".tar");
    REQUIRE(pack(program, dir / "t.tar", packed));
    const auto copies = any_unpacked(packed);
    REQUIRE(copies == std::vector<std::string>{packed.string() + ".penstock-unpacked"});
    CHECK(fs::file_size(copies[0]) == fs::file_size(dir / "t.tar"));
    CHECK(backward_listing(webdataset(copies)) == lines);
    CHECK(backward_listing(webdataset(penstock::mapped_file(copies))) == lines);
    const auto before = inode(copies[0]);
    CHECK(any_unpacked(packed) == copies);
    CHECK(inode(copies[0]) == before);
  }
}

TEST_CASE("source/unpacked: files that are not packed are used unchanged") {
  const penstock_test::temp_dir dir;
  for (const char* name : {"a-0.tar", "plain-1.tar", "b-2.tar"}) small_tar(3).save((dir / name).string());
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  REQUIRE(pack("gzip", dir / "a-0.tar", dir / "a-0.tar.gz"));
  const std::string plain = (dir / "plain-1.tar").string();
  const auto list = any_unpacked(std::vector<std::string>{(dir / "a-0.tar.gz").string(), plain});
  CHECK(list == std::vector<std::string>{(dir / "a-0.tar.gz.penstock-unpacked").string(), plain});
  CHECK(any_unpacked((dir / "a-0.tar.gz").string() + "::" + plain) == list);
  CHECK(webdataset(list).size() == 6);
  CHECK(penstock::unpacked<>({plain.c_str()}) == std::vector<std::string>{plain});
  std::ofstream(dir / "empty");
  CHECK(any_unpacked(dir / "empty") == std::vector<std::string>{(dir / "empty").string()});
}

TEST_CASE("source/unpacked: a copy is made anew if the packed file, the copy or its record changes") {
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  const penstock_test::temp_dir dir;
  small_tar(5).save((dir / "t.tar").string());
  const fs::path packed = dir / "t.tar.gz";
  REQUIRE(pack("gzip", dir / "t.tar", packed));
  const std::string copy = any_unpacked(packed)[0];
  const auto lines = backward_listing(webdataset(std::vector<std::string>{copy}));

  const auto again = [&](const char* what) {
    INFO(what);
    CHECK(backward_listing(webdataset(any_unpacked(packed))) == lines);
    const auto made = inode(copy);
    CHECK(any_unpacked(packed)[0] == copy);
    CHECK(inode(copy) == made);
  };
  fs::resize_file(copy, fs::file_size(copy) - 600);
  again("a copy that was cut");
  {
    std::fstream bytes(copy, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(3);
    bytes.put('!');
  }
  fs::last_write_time(copy, fs::last_write_time(copy) + std::chrono::seconds(5));
  again("a copy that was written to");
  fs::remove(copy);
  again("a copy that was removed");
  fs::remove(copy + ".record");
  again("a record that was removed");
  for (const std::size_t at : {0u, 9u, 13u, 17u, 30u, 40u, 50u, 63u}) {
    std::fstream bytes(copy + ".record", std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put('\x7f');
    bytes.close();
    again("a record that was damaged");
  }
  std::ofstream(copy + ".record") << "short";
  again("a record that was cut");

  small_tar(7).save((dir / "t.tar").string());
  REQUIRE(pack("gzip", dir / "t.tar", packed));
  CHECK(webdataset(any_unpacked(packed)).size() == 7);
  // unchanged size, new modification time
  fs::last_write_time(packed, fs::last_write_time(packed) + std::chrono::hours(1));
  const auto before = inode(copy);
  CHECK(any_unpacked(packed)[0] == copy);
  CHECK(inode(copy) != before);
}

TEST_CASE("source/unpacked: damage, bombs and unknown compressions are one error and leave no copy") {
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  const penstock_test::temp_dir dir;
  small_tar().save((dir / "t.tar").string());
  const fs::path packed = dir / "t.tar.gz";
  REQUIRE(pack("gzip", dir / "t.tar", packed));
  const auto size = fs::file_size(dir / "t.tar");
  const auto leaves_nothing = [&] {
    const auto names = names_in(dir.path());
    return names == std::vector<std::string>{"t.tar", "t.tar.gz", "t.tar.gz.penstock-unpacked.record"};
  };

  const auto bomb = problem_of(packed, {.limit = size - 1, .threads = 1});
  CHECK((bomb.code() == penstock::errc::limit));
  CHECK(bomb.file() == packed.string());
  CHECK(bomb.offset() == size - 1);
  CHECK_THAT(bomb.what(), penstock_test::contains("raise unpacked_options::limit"));
  CHECK(leaves_nothing());
  CHECK(any_unpacked(packed, {.limit = size, .threads = 1}).size() == 1);
  fs::remove(packed.string() + ".penstock-unpacked");

  fs::resize_file(packed, fs::file_size(packed) - 3);
  const auto cut = problem_of(packed);
  CHECK((cut.code() == penstock::errc::format));
  CHECK(cut.file() == packed.string());
  CHECK(cut.offset() == size);
  CHECK(leaves_nothing());

  REQUIRE(pack("gzip", dir / "t.tar", packed));
  {
    std::fstream bytes(packed, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(-8, std::ios::end);
    bytes.put('!');
  }
  CHECK((problem_of(packed).code() == penstock::errc::checksum));
  CHECK(leaves_nothing());

  CHECK((problem_of(dir / "none").code() == penstock::errc::io));
  CHECK_THAT(problem_of(dir.path()).what(), penstock_test::contains("not a regular file"));
}

TEST_CASE("source/unpacked: a missing unpacker is an error that says what to write") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "t.tar").string();
  std::ofstream(path) << std::string("\x1f\x8b\x08\0\0\0\0\0", 8) << std::string(600, 'z');
  CHECK_THROWS_WITH(penstock::unpacked<penstock::unpack_zstd>(path),
                    penstock_test::contains("compressed with gzip: link penstock::zlib, include "
                                            "<penstock/codec/unpack_gzip.hpp> and write "
                                            "unpacked<unpack_gzip>(...)") &&
                        penstock_test::contains(path));
  CHECK_THROWS_WITH(webdataset(path),
                    penstock_test::contains("compressed with gzip: link penstock::zlib, include "
                                            "<penstock/codec/unpack_gzip.hpp> and write "
                                            "webdataset(unpacked<unpack_gzip>(...))") &&
                        penstock_test::contains("webdataset_stream") && penstock_test::contains(path));
  std::ofstream(path) << "LZIP" << std::string(600, 'z');
  CHECK_THROWS_WITH(webdataset(path), penstock_test::contains("compress it with gzip, zstd"));
}

TEST_CASE("source/unpacked: a separate folder keeps files of one name apart, and gives one fingerprint") {
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  const penstock_test::temp_dir dir;
  std::vector<std::string> packed;
  for (const int i : {3, 4}) {
    const fs::path folder = dir / std::to_string(i);
    fs::create_directory(folder);
    small_tar(i).save((folder / "t.tar").string());
    REQUIRE(pack("gzip", folder / "t.tar", folder / "t.tar.gz"));
    packed.push_back((folder / "t.tar.gz").string());
  }
  const penstock::unpacked_options cached{.folder = (dir / "deep" / "cache").string()};
  const auto copies = any_unpacked(packed, cached);
  REQUIRE(copies.size() == 2);
  CHECK(copies[0] != copies[1]);
  CHECK(copies[0].starts_with(cached.folder));
  CHECK(names_in(dir / "3") == std::vector<std::string>{"t.tar", "t.tar.gz"});
  CHECK(webdataset(copies).size() == 7);
  // another spelling of the path
  CHECK(any_unpacked(dir / "4" / ".." / "3" / "t.tar.gz", cached)[0] == copies[0]);
  CHECK(webdataset(any_unpacked(packed)).fingerprint() == webdataset(copies).fingerprint());

  std::ofstream(dir / "file") << "x";
  const auto refused = problem_of(packed[0], {.folder = (dir / "file").string()});
  CHECK((refused.code() == penstock::errc::io));
  CHECK_THAT(refused.what(), penstock_test::contains("unpacked_options::folder"));
}

TEST_CASE("source/unpacked: a killed process leaves nothing that is used later") {
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  const penstock_test::temp_dir dir;
  raw_tar tar;
  for (int i = 0; i < 10; ++i) tar.member("k" + std::to_string(i) + ".bin", std::string(800'000, 'b'));
  tar.end().save((dir / "t.tar").string());
  const fs::path packed = dir / "t.tar.gz";
  REQUIRE(pack("gzip -1", dir / "t.tar", packed));
  for (int round = 0; round < 2; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        (void)penstock::unpacked<killed_gzip>(packed, {.threads = 1});
      } catch (...) {
      }
      ::_exit(1);
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGKILL);
    const auto names = names_in(dir.path());
    REQUIRE(names.size() == 4);  // the second child's alone: it removed the first one's
    CHECK(names[2] == "t.tar.gz.penstock-unpacked.record");
    CHECK(names[3].starts_with("t.tar.gz.penstock-unpacked.tmp-"));
  }
  const auto data = webdataset(any_unpacked(packed));
  CHECK(backward_listing(data) == backward_listing(webdataset(dir / "t.tar")));
  CHECK(names_in(dir.path()) == std::vector<std::string>{"t.tar", "t.tar.gz", "t.tar.gz.penstock-unpacked",
                                                         "t.tar.gz.penstock-unpacked.record"});
}

TEST_CASE("source/unpacked: processes and threads that want one copy at once make it only once") {
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  const penstock_test::temp_dir dir;
  small_tar(200).save((dir / "t.tar").string());
  const fs::path packed = dir / "t.tar.gz";
  REQUIRE(pack("gzip", dir / "t.tar", packed));
  const auto lines = backward_listing(webdataset(dir / "t.tar"));

  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool right = false;
      try {
        right = backward_listing(webdataset(any_unpacked(packed, {.threads = 1}), {.threads = 1})) == lines;
      } catch (...) {
      }
      ::_exit(right ? 0 : 1);
    }
    REQUIRE(child > 0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }

  fs::remove(packed.string() + ".penstock-unpacked");
  counted_gzip::made = 0;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      try {
        const auto copies = penstock::unpacked<counted_gzip>(packed, {.threads = 1});
        if (fs::file_size(copies[0]) != fs::file_size(dir / "t.tar")) ++wrong;
      } catch (...) {
        ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(counted_gzip::made == fs::file_size(dir / "t.tar"));
  CHECK(names_in(dir.path()).size() == 4);
}

TEST_CASE("source/unpacked: any source of local files takes the copies") {
  const penstock_test::temp_dir dir;
  const auto write = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(dir / name, std::ios::binary) << bytes;
    REQUIRE(pack("gzip", dir / name, dir / (name + ".gz")));
    fs::remove(dir / name);
  };
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const std::vector<std::byte> array = penstock::npy_bytes<float>(penstock::extents(3, 2), values);
  const std::string npy(reinterpret_cast<const char*>(array.data()), array.size());
  write("a.jsonl", "{\"n\": 1}\n\n{\"n\": 2}\n");
  write("a.npy", npy);
  write("a.npz", penstock_test::zip_writer().add("x.npy", npy).text());
  write("a.bin", std::string("\1\0\2\0\3\0\4\0", 8));
  const auto copies = [&](const std::string& name) { return any_unpacked((dir / name).string()); };
  const auto lines = penstock::lines(copies("a.jsonl.gz"));
  CHECK(lines.size() == 2);
  CHECK_THAT(lines.connect().key(1), penstock_test::contains(":3"));
  const auto rows = [](const auto& source) {
    return penstock_test::values_of(source | penstock::batch(3), 1);
  };
  CHECK(rows(penstock::npy_rows<float>(copies("a.npy.gz"))) == values);
  CHECK(rows(penstock::npy_rows<float, 2>(copies("a.npy.gz"))) == values);
  CHECK(rows(penstock::npz_rows<float>(copies("a.npz.gz"), "x")) == values);
  CHECK(penstock::raw_tokens<std::uint16_t>(copies("a.bin.gz"), penstock::token_window<1>{}).size() == 3);
}
