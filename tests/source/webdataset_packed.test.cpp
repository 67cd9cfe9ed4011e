// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/webdataset_stream.hpp>

#include "support/catch.hpp"
#include "support/external_program.hpp"
#include "support/forward_listing.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"
#include "support/test_data.hpp"

#include <penstock/codec/unpack_bzip2.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_xz.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/source/unpacked.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using penstock_test::forward_listing;
using penstock_test::raw_tar;

template <class Text>
auto any_stream(const Text& pattern, penstock::webdataset_stream_options options = {}) {
  return penstock::webdataset_stream<penstock::unpack_gzip, penstock::unpack_zstd, penstock::unpack_lz4,
                                     penstock::unpack_bzip2, penstock::unpack_xz>(pattern, options);
}

/// The programs that compress the unpackers' inputs.
constexpr const char* programs[] = {"gzip", "zstd", "lz4", "bzip2", "xz"};

/// Whether a file gives these samples wherever it is stored.
void check_everywhere(const fs::path& path, const std::vector<std::string>& lines) {
  penstock_test::in_each_store({path.string()}, [&](const std::string& kind, const auto& where) {
    INFO(kind);
    CHECK(forward_listing(any_stream(where)) == lines);
  });
}
/// The error that a file gives wherever it is stored; errc::argument if it gives none.
penstock::errc problem_everywhere(const fs::path& path, penstock::webdataset_stream_options options = {}) {
  std::vector<penstock::errc> codes;
  penstock_test::in_each_store({path.string()}, [&](const std::string& kind, const auto& where) {
    INFO(kind);
    codes.push_back(penstock::errc::argument);
    try {
      (void)forward_listing(any_stream(where, options));
    } catch (const penstock::error& e) {
      CHECK(e.file() == where.names()[0]);
      codes.back() = e.code();
    }
    CHECK((codes.back() == codes.front()));
  });
  return codes.front();
}

std::string bytes_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("source/webdataset_packed: shards compressed by other programs give the samples of the plain one") {
  const penstock_test::temp_dir dir;
  raw_tar tar;
  for (int i = 0; i < 50; ++i) {
    const std::string key = "k" + std::to_string(i);
    tar.member(key + ".txt", "text of " + key)
        .member(key + ".bin", std::string(static_cast<std::size_t>(i) * 9001, 'b'));
  }
  tar.end().save((dir / "t.tar").string());
  const auto lines = forward_listing(penstock::webdataset_stream(dir / "t.tar"));
  CHECK(lines.size() == 50);
  for (const std::string program : programs) {
    INFO(program);
    if (!penstock_test::have_program(program, program + " --version </dev/null")) continue;
    // a misleading name
    const fs::path packed = dir / "packed.tar.zip";
    REQUIRE(penstock_test::run_program(program + " -c <" + (dir / "t.tar").string() + " >" + packed.string())
                .status == 0);
    CHECK(forward_listing(any_stream(packed)) == lines);
    check_everywhere(packed, lines);
    // in several streams, cut at any byte
    REQUIRE(penstock_test::run_program("(head -c 700 " + (dir / "t.tar").string() + " | " + program +
                                       " -c; tail -c +701 " + (dir / "t.tar").string() + " | " + program +
                                       " -c) >" + packed.string())
                .status == 0);
    CHECK(forward_listing(any_stream(packed)) == lines);
    check_everywhere(packed, lines);

    std::string bytes = bytes_of_file(packed);
    const auto problem = [&](const std::string& changed) {
      std::ofstream(packed, std::ios::binary) << changed;
      return problem_everywhere(packed);
    };
    CHECK((problem(bytes.substr(0, bytes.size() - 2)) == penstock::errc::format));
    CHECK((problem(bytes.substr(0, bytes.size() / 2)) == penstock::errc::format));
    int damaged = 0, tried = 0;
    const std::size_t places = penstock_test::long_tests() ? 40 : 12;
    for (std::size_t i = 20; i < bytes.size(); i += 1 + bytes.size() / places, ++tried) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 0x10);
      const auto code = problem(changed);
      damaged += code == penstock::errc::format || code == penstock::errc::checksum ? 1 : 0;
    }
    CHECK(damaged > 3 * tried / 4);
  }
}

TEST_CASE("source/webdataset_packed: a bomb costs no more than the limit") {
  const penstock_test::temp_dir dir;
  raw_tar().header("a.bin", 0).patch(124, "00777777777").save((dir / "head").string());
  for (const std::string program : programs) {
    INFO(program);
    if (!penstock_test::have_program(program, program + " --version </dev/null")) continue;
    const std::string packed = (dir / (program + ".tar")).string();
    REQUIRE(penstock_test::run_program("(cat " + (dir / "head").string() +
                                       "; head -c 134217727 /dev/zero) | " + program + " -1 -c >" + packed)
                .status == 0);
    CHECK(fs::file_size(packed) < 2'000'000);
    try {
      (void)forward_listing(any_stream(packed, {.limit = 1u << 20}));
      FAIL("read a bomb");
    } catch (const penstock::error& e) {
      CHECK((e.code() == penstock::errc::limit));
      CHECK(e.offset() == 0);
      CHECK(e.key() == "a");
    }
    CHECK((problem_everywhere(packed, {.limit = 1u << 20}) == penstock::errc::limit));
    try {
      (void)penstock::unpacked<penstock::unpack_gzip, penstock::unpack_zstd, penstock::unpack_lz4,
                               penstock::unpack_bzip2, penstock::unpack_xz>(packed, {.limit = 1u << 20});
      FAIL("unpacked a bomb");
    } catch (const penstock::error& e) {
      CHECK((e.code() == penstock::errc::limit));
      CHECK(e.file() == packed);
    }
    CHECK_FALSE(fs::exists(packed + ".penstock-unpacked"));
  }
}

TEST_CASE("source/webdataset_packed: real compressed archives give the samples of their plain versions") {
  const auto root = penstock_test::test_data("tar");
  if (!root) {
    WARN("PENSTOCK_TEST_DATA is not set: real compressed archives are not read");
    return;
  }
  int compared = 0;
  if (fs::is_directory(*root / "torchdata")) {
    for (const auto& entry : fs::directory_iterator(*root / "torchdata")) {
      if (entry.path().extension() != ".gz") continue;
      INFO(entry.path().string());
      fs::path twin = entry.path();
      twin.replace_extension();
      if (!fs::exists(twin)) continue;
      const auto lines = forward_listing(penstock::webdataset_stream(twin));
      CHECK(forward_listing(any_stream(entry.path())) == lines);
      check_everywhere(entry.path(), lines);
      ++compared;
    }
  }
  CHECK(compared > 0);
  if (fs::exists(*root / "webdataset" / "sample.tgz"))
    CHECK_FALSE(forward_listing(any_stream(*root / "webdataset" / "sample.tgz")).empty());
}

TEST_CASE("source/webdataset_packed: files found by fuzzers give samples or one error") {
  for (const char* folder : {"tar", "gzip", "zstd", "lz4"}) {
    const auto root = penstock_test::test_data(folder);
    if (!root) {
      WARN("PENSTOCK_TEST_DATA is not set: the files of fuzzers are not read, " << folder);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(*root)) {
      if (!entry.is_regular_file()) continue;
      INFO(entry.path().string());
      const auto code = problem_everywhere(entry.path(), {.limit = 64u << 20});
      CHECK((code == penstock::errc::format || code == penstock::errc::checksum ||
             code == penstock::errc::limit || code == penstock::errc::argument));
    }
  }
}
