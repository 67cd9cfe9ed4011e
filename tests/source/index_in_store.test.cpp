// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/webdataset.hpp>

#include "support/catch.hpp"
#include "support/nginx.hpp"
#include "support/raw_tar.hpp"
#include "support/tar_cases.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"

#include <penstock/source/dali_index.hpp>
#include <penstock/source/energon_index.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using penstock::dali_index;
using penstock::energon_index;
using penstock::index_policy;
using penstock::webdataset;
using penstock::webdataset_options;
using penstock_test::contains;
using penstock_test::have_nginx;
using penstock_test::nginx_server;
using penstock_test::raw_tar;

using far_data = webdataset<penstock::http>;

std::string bytes_in(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> all;
  if (!fs::exists(folder)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all.push_back(entry.path());
  return all;
}

/// A shard of numbered samples, with a payload of `size` bytes each.
raw_tar shard_of(int first, int count, std::size_t size = 600) {
  raw_tar tar;
  for (int i = first; i < first + count; ++i) {
    const std::string key = "k" + std::to_string(i);
    tar.member(key + ".txt", std::to_string(i)).member(key + ".bin", std::string(size, static_cast<char>(i)));
  }
  return tar.end();
}
template <class Data>
std::string text_at(const Data& data, std::uint64_t index) {
  const auto reader = data.connect();
  typename Data::reader::worker worker;
  std::string text;
  reader.evaluate({0, index}, worker,
                  [&](const auto& s) { text = std::string(penstock::text_of(s.member(0).finish())); });
  return text;
}
std::vector<std::uint64_t> some_offsets(const std::string& index) {
  const auto tables = penstock::detail::shard_index::over(penstock::bytes_of(index)).value();
  std::vector<std::uint64_t> all;
  for (std::uint32_t i = 0; i < tables.header().members; ++i) all.push_back(tables.offset(i));
  return all;
}

/// Two shards on a server, a folder for indexes, and the numbers of requests.
struct store {
  explicit store(const std::string& lines = {}) : server({.lines = lines}) {
    server.put("s-0.tar", shard_of(0, 30).bytes);
    server.put("s-1.tar", shard_of(30, 20).bytes);
    server.clear_requests();
  }
  [[nodiscard]] far_data open(webdataset_options options = {}) const {
    if (options.index_folder.empty()) options.index_folder = folder().string();
    return far_data(penstock::http(server.url("s-{0..1}.tar"), penstock_test::direct()), options);
  }
  [[nodiscard]] fs::path folder() const { return dir / "indexes"; }
  /// Makes the index of a shard as a program with the file at hand would, and puts it into the store.
  void put_index(const std::string& shard, const std::string& of) const {
    const fs::path copy = dir / "copy.tar";
    std::ofstream(copy, std::ios::binary) << of;
    fs::remove(dir / "copy.tar.penstock-index");
    (void)webdataset(copy, {.index = index_policy::keep});
    server.put(shard + ".penstock-index", bytes_in(dir / "copy.tar.penstock-index"));
  }
  /// How many requests there were for names with that ending, and forgets none.
  [[nodiscard]] std::size_t requests(std::string_view method, std::string_view ending, int status = 0) const {
    const auto all = server.requests();
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& one) {
      return one.method == method && one.target.ends_with(ending) && (status == 0 || one.status == status);
    }));
  }

  penstock_test::temp_dir dir;
  mutable nginx_server server;
};

}  // namespace

TEST_CASE("source/index_in_store: the first start scans, the second one asks for versions only") {
  if (!have_nginx()) return;
  const store here;
  const far_data first = here.open();
  CHECK(first.size() == 50);
  CHECK(here.requests("HEAD", ".tar") == 2);
  CHECK(here.requests("HEAD", ".tar.penstock-index", 404) == 2);
  CHECK(here.requests("HEAD", ".idx") == 0);  // of other programs, which nobody named
  CHECK(files_in(here.folder()).size() == 2);
  CHECK(text_at(first, 31) == "31");

  here.server.clear_requests();
  const far_data second = here.open();
  CHECK(here.requests("HEAD", ".tar") == 2);
  CHECK(here.server.requests().size() == 2);
  CHECK(second.fingerprint() == first.fingerprint());
  here.server.clear_requests();
  CHECK(text_at(second, 7) == "7");
  // The ETags of nginx are made of a time and a size, so the ends are compared; then comes the sample.
  CHECK(here.requests("GET", "s-0.tar") == 3);
  CHECK(here.server.requests().size() <= 4);

  here.server.clear_requests();  // `require` is content with what is kept
  CHECK(text_at(here.open({.index = index_policy::require}), 7) == "7");
  CHECK(here.requests("HEAD", "index") == 0);

  // the same as over files
  const penstock_test::temp_dir files;
  std::ofstream(files / "s-0.tar", std::ios::binary) << shard_of(0, 30).bytes;
  std::ofstream(files / "s-1.tar", std::ios::binary) << shard_of(30, 20).bytes;
  CHECK(webdataset((files / "s-{0..1}.tar").string()).fingerprint() == first.fingerprint());
}

TEST_CASE("source/index_in_store: a manifest needs no request, and the indexes that are kept") {
  if (!have_nginx()) return;
  const store here;
  const std::string known = to_string(here.open().manifest());
  here.server.clear_requests();
  const far_data data(penstock::http(here.server.url("s-{0..1}.tar"), penstock_test::direct()),
                      penstock::manifest_from_string(known), {.index_folder = here.folder().string()});
  CHECK(here.server.requests().empty());
  CHECK(text_at(data, 49) == "49");
  CHECK(here.requests("GET", "s-1.tar") == 3);  // both ends, and the sample
  CHECK(here.requests("GET", "s-0.tar") + here.requests("HEAD", "index") == 0);

  // without the folder, an index in the store is as good
  here.put_index("s-1.tar", shard_of(30, 20).bytes);
  here.server.clear_requests();
  const far_data elsewhere(penstock::http(here.server.url("s-{0..1}.tar"), penstock_test::direct()),
                           penstock::manifest_from_string(known),
                           {.index_folder = (here.dir / "other").string()});
  CHECK(text_at(elsewhere, 49) == "49");
  CHECK(here.requests("GET", "s-1.tar.penstock-index") == 1);
  CHECK(files_in(here.dir / "other").size() == 1);
}

TEST_CASE("source/index_in_store: a shard that was replaced has another index") {
  if (!have_nginx()) return;
  const store here;
  const far_data before = here.open();
  const fs::path path = here.server.root() / "s-0.tar";
  here.server.put("s-0.tar", shard_of(100, 30).bytes);  // as many bytes
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(10));
  CHECK(text_at(here.open(), 3) == "103");
  CHECK(files_in(here.folder()).size() == 3);
  CHECK_THROWS_WITH(text_at(before, 3), contains("was changed after the dataset was opened"));
}

TEST_CASE("source/index_in_store: an index beside the shard spares the scan") {
  if (!have_nginx()) return;
  const store here;
  here.server.put("s-0.tar", shard_of(0, 30, 400'000).bytes);
  here.put_index("s-0.tar", shard_of(0, 30, 400'000).bytes);
  here.put_index("s-1.tar", shard_of(30, 20).bytes);
  here.server.clear_requests();
  const far_data data = here.open({.index = index_policy::require});
  CHECK(here.requests("GET", "s-0.tar.penstock-index") == 1);
  CHECK(here.requests("GET", "s-0.tar") <= 7);
  CHECK(here.requests("HEAD", ".idx") == 0);
  CHECK(text_at(data, 29) == "29");
  const auto fingerprint = data.fingerprint();
  fs::remove(here.server.root() / "s-0.tar.penstock-index");
  CHECK(files_in(here.folder()).size() == 2);
  fs::remove_all(here.folder());
  CHECK(here.open({.index = index_policy::transient}).fingerprint() == fingerprint);
  CHECK(files_in(here.folder()).empty());
}

TEST_CASE("source/index_in_store: an index beside the shard that is not its own is not used") {
  if (!have_nginx()) return;
  const store here;
  const std::string shard = shard_of(0, 30).bytes;
  const auto scans = [&](const char* about) {
    INFO(about);
    CHECK_THROWS_WITH(here.open({.index = index_policy::require}),
                      contains("s-0.tar.penstock-index of the shard") && contains("index_policy::require"));
    const far_data data = here.open({.index = index_policy::transient});
    for (const std::uint64_t i : {0u, 1u, 13u, 29u, 49u}) CHECK(text_at(data, i) == std::to_string(i));
  };
  here.put_index("s-1.tar", shard_of(30, 20).bytes);
  here.put_index("s-0.tar", shard + std::string(512, '\0'));
  scans("another size");
  here.put_index("s-0.tar", shard_of(100, 30).bytes);
  scans("other keys");
  raw_tar shifted;  // one member is in other blocks, the size is the same
  shifted.member("k0.txt", "0").member("k0.bin", std::string(600, '\0'));
  for (int i = 1; i < 29; ++i) {
    const std::string key = "k" + std::to_string(i);
    shifted.member(key + ".txt", std::to_string(i)).member(key + ".bin", std::string(600, 'x'));
  }
  shifted.member("k29.txt", std::string(600, '2')).member("k29.bin", "x").end();
  REQUIRE(shifted.bytes.size() == shard.size());
  here.put_index("s-0.tar", shifted.bytes);
  scans("another last sample");
  here.put_index("s-0.tar", shard_of(0, 29).bytes + std::string(2560, '\0'));
  scans("one sample less");
  here.put_index("s-0.tar", shard);
  std::string index = bytes_in(here.server.root() / "s-0.tar.penstock-index");
  CHECK(some_offsets(index).size() == 60);
  index[200] = static_cast<char>(index[200] ^ 1);
  here.server.put("s-0.tar.penstock-index", index);
  scans("damaged");
  here.server.put("s-0.tar.penstock-index", "");
  scans("empty");
  here.server.put("s-0.tar.penstock-index", std::string(1'000'000, 'x'));
  scans("far too large");
}

TEST_CASE("source/index_in_store: DALI's and Energon's indexes in the store") {
  if (!have_nginx()) return;
  const store here;
  const std::string shard = shard_of(0, 30).bytes;
  here.put_index("s-1.tar", shard_of(30, 20).bytes);
  here.put_index("s-0.tar", shard);
  const auto offsets = some_offsets(bytes_in(here.server.root() / "s-0.tar.penstock-index"));
  fs::remove(here.server.root() / "s-0.tar.penstock-index");
  std::string named = "v1.2 30\n", nameless = "v1.1 30\n", energon;
  for (std::size_t i = 0; i < 30; ++i) {
    const std::string key = "k" + std::to_string(i), at = std::to_string(offsets[2 * i]);
    const std::string size = std::to_string(i < 10 ? 1 : 2), next = std::to_string(offsets[2 * i + 1]);
    named += "txt " + at + " " + size + " " + key + ".txt bin " + next + " 600 " + key + ".bin\n";
    nameless += "txt " + at + " " + size + " bin " + next + " 600\n";
    for (int b = 0; b < 8; ++b) energon += static_cast<char>((offsets[2 * i] - 512) >> (8 * b));
  }
  for (int b = 0; b < 8; ++b) energon += static_cast<char>((shard.size() - 1024) >> (8 * b));
  const auto fingerprint = here.open({.index = index_policy::transient}).fingerprint();
  const auto used = [&](index_policy policy) {
    fs::remove_all(here.folder());
    here.server.clear_requests();
    const far_data data = here.open({.index = policy});
    CHECK(data.fingerprint() == fingerprint);
    CHECK(text_at(data, 29) == "29");
    return here.requests("GET", ".idx");
  };
  here.server.put("s-0.idx", named);
  CHECK(used(index_policy::require.or_else(dali_index)) == 1);  // the other shard has Penstock's
  CHECK(used(index_policy::transient) == 0);                    // which nobody named
  here.server.put("s-0.idx", nameless);                         // spares nothing
  CHECK(used(index_policy::transient.or_else(dali_index)) == 1);
  CHECK_THROWS_WITH(here.open({.index = index_policy::require}), contains("index_policy::require"));
  CHECK_THROWS_WITH(here.open({.index = dali_index}),
                    contains("the DALI index " + here.server.url("s-1.idx")) && contains("(404)"));
  fs::rename(here.server.root() / "s-1.tar", here.server.root() / "t-1.tar");
  here.server.put("s-1.tar", shard);
  here.server.put("s-1.idx", nameless);
  here.server.put("s-0.tar.idx", energon);
  here.server.put("s-1.tar.idx", energon);
  for (const auto policy : {dali_index, energon_index})
    CHECK(text_at(here.open({.index = policy}), 59) == "29");
  here.server.put("s-1.idx", named.replace(named.find("k7.txt"), 2, "kk"));
  CHECK_THROWS_WITH(here.open({.index = dali_index}), contains("has members of two samples in line 9"));
  here.server.put("s-0.idx", "TFRecord 1 2\n");  // of another program: not ours to judge
  CHECK(here.open({.index = index_policy::transient.or_else(dali_index)}).size() == 60);
}

TEST_CASE("source/index_in_store: what may pass is an error, and what recurs means that there is none") {
  if (!have_nginx()) return;
  SECTION("403: signed URLs, and stores that do not let everybody list") {
    const store here("location ~ \\.(penstock-index|idx)$ { return 403; }");
    CHECK(here.open().size() == 50);
    CHECK_THROWS_WITH(here.open({.index = dali_index}), contains("(403)"));
  }
  SECTION("500") {
    const store here("location ~ \\.penstock-index$ { return 500; }");
    const auto failed = penstock_test::web_error_of([&] { (void)here.open(); });
    CHECK(failed.code() == penstock::errc::io);
    CHECK_FALSE(failed.recurs());
    CHECK_THAT(failed.what(), contains(".tar.penstock-index"));
  }
}

TEST_CASE("source/index_in_store: files in the folder that are damaged are made again") {
  if (!have_nginx()) return;
  const store here;
  (void)here.open();
  for (const std::string& bad : {std::string("x"), std::string(), std::string(5000, '\0')}) {
    std::vector<std::string> good;
    for (const fs::path& one : files_in(here.folder())) {
      good.push_back(bytes_in(one));
      std::ofstream(one, std::ios::binary) << bad;
    }
    CHECK(text_at(here.open(), 33) == "33");
    std::vector<std::string> again;
    for (const fs::path& one : files_in(here.folder())) again.push_back(bytes_in(one));
    CHECK(again == good);
  }
  // damaged behind the header, which is noticed when the tables are needed
  const far_data planned = here.open();
  for (const fs::path& one : files_in(here.folder())) {
    std::string bytes = bytes_in(one);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(one, std::ios::binary) << bytes;
  }
  CHECK(text_at(planned, 33) == "33");
}

TEST_CASE("source/index_in_store: a folder that cannot be written is no error") {
  if (!have_nginx()) return;
  const store here;
  std::ofstream(here.folder()) << "no folder";
  const far_data data = here.open();
  CHECK(text_at(data, 33) == "33");
  CHECK_THAT(data.describe(), contains(", 2 indexes that could not be kept"));
  fs::remove(here.folder());
  CHECK_THAT(here.open().describe(), !contains("could not be kept"));
  CHECK_THAT(here.open({.index = index_policy::transient}).describe(), !contains("could not be kept"));
}

TEST_CASE("source/index_in_store: names in the folder tell nothing, and a new signature finds the index") {
  if (!have_nginx()) return;
  const store here;
  const auto open = [&](const std::string& query) {
    return far_data(penstock::http({here.server.url("s-0.tar" + query).c_str()}, penstock_test::direct()),
                    {.index_folder = here.folder().string()});
  };
  CHECK(open("?X-Signature=secret1").size() == 30);
  const auto kept = files_in(here.folder());
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].filename().string().find("s-0") == std::string::npos);
  CHECK(kept[0].filename().string().size() == 32 + std::string_view(".penstock-index").size());
  CHECK_THAT(bytes_in(kept[0]), !contains("secret"));
  here.server.clear_requests();
  CHECK(open("?X-Signature=secret2").size() == 30);
  CHECK(here.server.requests().size() == 1);
}

TEST_CASE("source/index_in_store: many at once") {
  if (!have_nginx()) return;
  const store here;
  std::vector<std::string> found(6);
  std::vector<std::thread> threads;
  for (std::string& one : found) threads.emplace_back([&] { one = text_at(here.open(), 44); });
  for (std::thread& one : threads) one.join();
  CHECK(found == std::vector<std::string>(6, "44"));
  CHECK(files_in(here.folder()).size() == 2);  // and no temporary file
}

TEST_CASE("source/index_in_store: objects without a stamp are not kept") {
  const penstock_test::temp_dir dir;
  const auto shard = shard_of(0, 5).bytes;
  const webdataset data(penstock::memory_files().add("a.tar", shard), {.index_folder = dir.path().string()});
  CHECK(text_at(data, 4) == "4");
  CHECK(files_in(dir.path()).empty());
}

TEST_CASE("source/index_in_store: a scan reads much at once where members are small or close together") {
  using std::chrono::microseconds;
  const auto reads_for = [](const raw_tar& tar, webdataset_options options) {
    const penstock::simulated_storage far(
        penstock::memory_files().add_view("a.tar", penstock::bytes_of(tar.bytes)),
        {.latency = microseconds(0)});
    options.index = index_policy::transient;
    const webdataset data(far, options);
    CHECK(data.size() != 0);
    return std::pair(far.reads(), far.bytes());
  };
  const raw_tar many = shard_of(0, 5000, 100);
  CHECK(reads_for(many, {}).first <= 8);
  const raw_tar images = shard_of(0, 100, 110'000);
  CHECK(reads_for(images, {}).first <= 9);
  const auto [reads, bytes] = reads_for(images, {.scan_gap = 0});
  CHECK(reads <= 102);
  CHECK(bytes <= 102 * 8192);
  const auto [large_reads, large_bytes] = reads_for(shard_of(0, 20, 1'000'000), {});
  CHECK(large_reads <= 25);
  CHECK(large_bytes <= 1'000'000);
}
