// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every source that takes a path says which storage reads a URL, and finds `~/` by HOME.

#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/core_formats.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/energon.hpp>
#include <penstock/source/ffcv.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/litdata.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/source/wids.hpp>

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/dataset_files.hpp"
#include "support/litdata_files.hpp"
#include "support/mds_files.hpp"
#include "support/tf_files.hpp"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace paths_test {

struct opened {
  const char* name;
  std::string path;  ///< of what it reads, below the home folder
  std::function<std::uint64_t(const std::string& path)> size;
};
std::vector<opened> all_sources() {
  static constexpr auto none = ps::index_policy::transient;
  return {
      {"webdataset", "a.tar", [](const auto& p) { return ps::webdataset(p, {.index = none}).size(); }},
      {"webdataset, a list", "a.tar",
       [](const auto& p) { return ps::webdataset(std::vector{p}, {.index = none}).size(); }},
      {"webdataset_stream", "a.tar",
       [](const auto& p) { return std::uint64_t{ps::webdataset_stream(p).describe().size()}; }},
      {"webdataset_stream, a list", "a.tar",
       [](const auto& p) { return std::uint64_t{ps::webdataset_stream(std::vector{p}).describe().size()}; }},
      {"unpacked", "a.tar",
       [](const auto& p) { return std::uint64_t{ps::unpacked<ps::unpack_gzip>(std::vector{p}).size()}; }},
      {"tfrecord", "a.tfrecord", [](const auto& p) { return ps::tfrecord(p, {.index = none}).size(); }},
      {"lines", "a.txt", [](const auto& p) { return ps::lines(p).size(); }},
      {"npy_rows", "a.npy", [](const auto& p) { return ps::npy_rows<float>(p).size(); }},
      {"raw_tokens", "a.bin",
       [](const auto& p) { return ps::raw_tokens<std::uint16_t>(p, ps::token_window<4>{}).size(); }},
      {"megatron_tokens", "mega",
       [](const auto& p) { return ps::megatron_tokens<std::uint16_t>(p, ps::token_window<4>{}).size(); }},
      {"ffcv", "a.beton", [](const auto& p) { return ps::ffcv(p).size(); }},
      {"arrow_ipc", "a.arrow", [](const auto& p) { return ps::arrow_ipc(p).size(); }},
      {"arrow_ipc, a folder", "arrow", [](const auto& p) { return ps::arrow_ipc(p).size(); }},
      {"idx", "a-idx", [](const auto& p) { return ps::idx(p).size(); }},
      {"directory", "classes", [](const auto& p) { return ps::directory(p, {}).size(); }},
      {"mds", "mds/values", [](const auto& p) { return ps::mds(p).size(); }},
      {"litdata", "litdata/values", [](const auto& p) { return ps::litdata(p).size(); }},
      {"litdata_rows", "litdata/rows", [](const auto& p) { return ps::litdata_rows(p).size(); }},
      {"wids", "wids.json", [](const auto& p) { return ps::wids(p, {.index = none}).size(); }},
      {"energon", "energon", [](const auto& p) { return ps::energon(p, "train", {.index = none}).size(); }},
      {"dataset", "classes",
       [](const auto& p) {
         return std::uint64_t{
             std::visit([](const auto& s) { return s.size(); }, ps::dataset(p, ps::directory_format{}))};
       }},
  };
}

/// HOME, for as long as this lives.
struct home {
  std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  explicit home(const std::string& folder) { ::setenv("HOME", folder.c_str(), 1); }
  home(const home&) = delete;
  home& operator=(const home&) = delete;
  ~home() { ::setenv("HOME", before.c_str(), 1); }
};

std::string said_by(const opened& one, const std::string& path) {
  try {
    static_cast<void>(one.size(path));
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return e.what();
  }
  return "none";
}

}  // namespace paths_test
using namespace paths_test;

TEST_CASE("source/paths: a URL where a path is wanted: the storage that reads it") {
  for (const opened& one : all_sources()) {
    INFO(one.name);
    CHECK_THAT(said_by(one, "s3://bucket/a-{0..3}.tar"),
               contains("s3(") && contains("<penstock/storage/s3.hpp>") && contains("penstock::s3"));
    CHECK_THAT(said_by(one, "https://user:pass@host/a.tar?signature=xyz"),
               contains("http(") && contains("<penstock/storage/http.hpp>") && !contains("pass") &&
                   !contains("xyz"));
    CHECK_THAT(said_by(one, "gs://bucket/a.tar"), contains("arrow_files"));
    CHECK_THAT(said_by(one, "az://container/a.tar"), contains("arrow_files"));
    CHECK_THAT(said_by(one, "hf://datasets/owner/name/a.tar"), contains("https://huggingface.co/datasets/"));
  }
}

TEST_CASE("source/paths: ~/ is the home folder") {
  const dataset_folder folder;
  folder.write("a.tar", shard_bytes(3));
  folder.write("a.tfrecord", tf_records_of({"one", "two"}));
  folder.write("a.txt", "one\ntwo\n");
  folder.write("a.npy", npy_text<float>(ps::extents{4, 2}));
  folder.write("a.bin", std::string(100, '\1'));
  folder.write("mega.bin", std::string(200, '\1'));
  folder.write("mega.idx", megatron_index(100, 8));
  folder.write("a.beton", ffcv_bytes());
  folder.write("a.arrow", arrow_oracle("file.arrow"));
  folder.write("arrow/a.arrow", arrow_oracle("file.arrow"));
  folder.write("a-idx", idx_bytes({5, 2}, 10));
  folder.write("classes/x/1.jpg", jpeg_beginning);
  folder.write("classes/y/2.jpg", jpeg_beginning);
  folder.write("wids.json", R"({"wids_version": 1, "shardlist": [{"url": "a.tar", "nsamples": 3}]})");
  folder.write("energon/a.tar", shard_bytes(2));
  folder.write("energon/.nv-meta/.info.json", R"({"shard_counts": {"a.tar": 2}})");
  folder.write("energon/.nv-meta/split.yaml", "split_parts:\n  train:\n  - a.tar\nexclude: []\n");
  std::filesystem::copy(mds_folder()(""), folder("mds"), std::filesystem::copy_options::recursive);
  std::filesystem::copy(litdata_folder()(""), folder("litdata"), std::filesystem::copy_options::recursive);
  const home here(folder());
  for (const opened& one : all_sources()) {
    INFO(one.name);
    const std::uint64_t there = one.size("~/" + one.path);
    CHECK(there > 0);
    CHECK(there == one.size(folder(one.path)));
  }
  // in patterns, too
  CHECK(ps::webdataset("~/{a,energon/a}.tar", {.index = ps::index_policy::transient}).size() == 5);
  CHECK(ps::webdataset("~/*.tar::~/energon/*.tar", {.index = ps::index_policy::transient}).size() == 5);

  ::unsetenv("HOME");
  CHECK_THAT(said_by(all_sources()[0], "~/a.tar"), contains("HOME is not set"));
}
