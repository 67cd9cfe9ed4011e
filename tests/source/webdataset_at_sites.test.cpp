// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The caches that a site may have: shards in them give the samples of the same shards as local files.

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/s3.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fake_aistore.hpp"
#include "support/forward_listing.hpp"
#include "support/juicefs.hpp"
#include "support/raw_tar.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/stored.hpp"
#include "support/stored_listing.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace webdataset_at_sites_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

/// Shards as local files, and what they are called.
class local_shards {
 public:
  local_shards() {
    for (std::size_t shard = 0; shard < 3; ++shard) {
      raw_tar tar;
      for (std::size_t i = 0; i < 10; ++i) {
        const std::string key = std::to_string(10 * shard + i);
        tar.member(key + ".jpg", web_content(40'000 + 7 * i + shard).substr(shard)).member(key + ".cls", key);
      }
      bytes_.push_back(tar.end().bytes);
      paths_.push_back((folder_ / name(shard)).string());
      std::ofstream(paths_.back(), std::ios::binary) << bytes_.back();
    }
  }
  [[nodiscard]] static std::string name(std::size_t shard) {
    return "train-" + std::to_string(shard) + ".tar";
  }
  [[nodiscard]] const std::vector<std::string>& bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::vector<s3_server::object> objects() const {
    std::vector<s3_server::object> all;
    for (std::size_t i = 0; i < bytes_.size(); ++i) all.push_back({name(i), bytes_[i]});
    return all;
  }
  /// The names of all shards behind a prefix.
  [[nodiscard]] static std::vector<std::string> names(const std::string& prefix) {
    return {prefix + name(0), prefix + name(1), prefix + name(2)};
  }

  /// In order, and shuffled by a run with workers.
  void gives_the_same(const stored& there) const {
    const temp_dir indexes;
    const auto data = [&](const stored& shards, const char* folder) {
      return ps::webdataset(shards, {.index_folder = (indexes / folder).string()});
    };
    const auto here = data(stored(ps::file(paths_)), "here"), far = data(there, "there");
    const std::vector<std::string> expected = indexed_listing(here);
    REQUIRE(expected.size() == 30);
    CHECK((indexed_listing(far) == expected));
    const auto shuffled = [](const auto& source) {
      auto run = (source | ps::shuffle(ps::seed(7)) |
                  ps::map([](const auto& sample) { return line_of(sample); }) | ps::workers(2))
                     .open();
      std::vector<std::string> lines;
      for (const auto& line : run.epoch(1)) lines.push_back(line);
      return lines;
    };
    CHECK((shuffled(far) == shuffled(here)));
    CHECK((indexed_listing(data(there, "there")) == expected));  // with the indexes that were kept
  }
  void gives_the_same_mounted(const fuse_mount& there) const {
    const std::filesystem::path folder = there.path() / "data";
    std::filesystem::create_directories(folder);
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      std::ofstream(folder / name(i), std::ios::binary) << bytes_[i];
    gives_the_same(stored(ps::file(names(folder.string() + "/"))));
  }

 private:
  temp_dir folder_;
  std::vector<std::string> bytes_, paths_;
};

}  // namespace webdataset_at_sites_test

using namespace webdataset_at_sites_test;

TEST_CASE("source/webdataset_at_sites: the S3 gateway and the mount of JuiceFS") {
  if (!have_juicefs() || !have_boto3()) return;
  const deadline limit("JuiceFS", 120s);
  const local_shards shards;
  const juicefs_volume volume;
  {
    const juicefs_gateway server(volume);
    server.put("bucket", shards.objects());
    shards.gives_the_same(stored(ps::s3(local_shards::names("bucket/"), s3_at(server))));
  }
  if (can_mount()) shards.gives_the_same_mounted(*mounted(volume));
}

TEST_CASE("source/webdataset_at_sites: the S3 and the mount of SeaweedFS") {
  if (!have_seaweed()) return;
  const deadline limit("SeaweedFS", 120s);
  const local_shards shards;
  const seaweed_server server;
  server.put("bucket", shards.objects());
  shards.gives_the_same(stored(ps::s3(local_shards::names("bucket/"), s3_at(server))));
  if (!can_mount()) return;
  const auto there = server.mounted();
  // What was put as an object is a file.
  shards.gives_the_same(stored(ps::file(local_shards::names((there->path() / "bucket").string() + "/"))));
  shards.gives_the_same_mounted(*there);
}

TEST_CASE("source/webdataset_at_sites: SeaweedFS as the cache of another store") {
  if (!have_seaweed()) return;
  const deadline limit("SeaweedFS before a store", 120s);
  const local_shards shards;
  seaweed_server far;
  far.put("bucket", shards.objects());
  const seaweed_server near(seaweed_server::tables::without, seaweed_server::others::on_loopback);
  near.cache_bucket_of(far, "bucket");
  const ps::s3 names(local_shards::names("bucket/"), s3_at(near));
  // The first read of an object fetches it, and it has an ETag from then on.
  const auto session = names.connect();
  CHECK(session.version(0).stamp == 0);
  CHECK((s3_read(session, 0, 1000, 5000) == shards.bytes()[0].substr(1000, 5000)));
  CHECK((s3_read(session, 0, 0, 100) == shards.bytes()[0].substr(0, 100)));
  CHECK(names.connect().version(0).stamp != 0);
  // A dataset is opened when all of them have.
  (void)near.shell("remote.cache -dir=/buckets/bucket");
  const stored cached(names);
  shards.gives_the_same(cached);
  far.kill();
  shards.gives_the_same(cached);
}

TEST_CASE("source/webdataset_at_sites: how the page about storage points at them") {
  const ps::s3 seaweedfs("bucket/train-{0000..0127}.tar", {.place = {.endpoint = "http://site:8333"}});
  const ps::s3 juicefs("bucket/train-{0000..0127}.tar", {.place = {.endpoint = "http://site:9000"}});
  const ps::file mounted("/mnt/site/bucket/train-{0000..0127}.tar");
  CHECK(seaweedfs.names().size() == 128);
  CHECK(juicefs.names()[127] == "s3://bucket/train-0127.tar");
  CHECK(mounted.names()[0] == "/mnt/site/bucket/train-0000.tar");
  const ps::s3 aistore("bucket/train-{0000..0127}.tar", {.place = {.endpoint = "http://gateway:51080/s3"},
                                                         .identity = {.credentials = ps::s3_credentials()}});
  const ps::http by_url("http://gateway:51080/ais/bucket/train-{0000..0127}.tar");
  CHECK(aistore.names().size() == by_url.names().size());
}

TEST_CASE("source/webdataset_at_sites: the S3 and the URLs of AIStore") {
  const deadline limit("AIStore", 120s);
  const local_shards shards;
  for (const auto release : {fake_aistore::release::now, fake_aistore::release::before_206}) {
    fake_aistore site(release);
    for (std::size_t i = 0; i < shards.bytes().size(); ++i)
      site.put(local_shards::name(i), shards.bytes()[i]);
    shards.gives_the_same(
        stored(ps::s3(local_shards::names("bucket/"), s3_at(site.endpoint(), ps::s3_credentials()))));
    std::vector<std::string> urls;
    for (std::size_t i = 0; i < shards.bytes().size(); ++i) urls.push_back(site.url(local_shards::name(i)));
    shards.gives_the_same(stored(ps::http(std::move(urls), direct())));
  }
}
