// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds SeaweedFS, with what boto3 puts there, to the stores from which the tests of webdataset read; see
// support/stored.hpp.

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/s3.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/stored.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace webdataset_over_s3_test {

using namespace std::chrono_literals;

/// One server for the program, started by the first test that needs it.
const penstock_test::seaweed_server& server_of_objects() {
  static const penstock_test::seaweed_server server;
  return server;
}
class own_seaweed final : public penstock_test::store_server {
 public:
  void put(const std::vector<std::string>& paths) override {
    std::vector<penstock_test::s3_server::object> objects;
    for (const std::string& path : paths)
      objects.push_back({std::filesystem::path(path).filename().string(), penstock_test::text_in(path)});
    server_.put("own", objects);
  }
  penstock_test::stored open(const std::vector<std::string>& names, std::uint16_t port) const override {
    penstock::s3_options options = penstock_test::s3_at(server_);
    options.place.endpoint = "http://127.0.0.1:" + std::to_string(port);
    options.connection.first_byte_time = options.connection.progress_time = 1s;
    std::vector<std::string> objects;
    for (const std::string& name : names) objects.push_back("own/" + name);
    return penstock_test::stored(penstock::s3(std::move(objects), std::move(options)));
  }
  std::uint16_t port() const override { return server_.port(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }

 private:
  penstock_test::seaweed_server server_;
};
const bool added = penstock_test::add_store(
    {"s3",
     [] {
       static const bool here = penstock_test::have_seaweed();
       return here;
     },
     [](const std::vector<std::string>& paths) {
       static penstock_test::s3_putter putter(server_of_objects());
       std::vector<std::pair<std::string, std::string>> files;
       std::vector<std::string> names;
       for (const std::string& path : paths) {
         files.emplace_back(std::filesystem::absolute(path).string().substr(1), path);
         names.push_back("shards/" + files.back().first);
       }
       putter.put("shards", files);
       return penstock_test::stored(
           penstock::s3(std::move(names), penstock_test::s3_at(server_of_objects())));
     },
     []() -> std::unique_ptr<penstock_test::store_server> { return std::make_unique<own_seaweed>(); }});

}  // namespace webdataset_over_s3_test

TEST_CASE("source/webdataset_over_s3: the tests of webdataset read from a store, too") {
  CHECK(webdataset_over_s3_test::added);
  if (!penstock_test::have_seaweed()) return;
  std::vector<std::string> kinds;
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").end().bytes;
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    kinds.push_back(kind);
    CHECK(where.names()[0].starts_with("s3://shards/") == (kind == "s3"));
    CHECK(penstock::webdataset(where).size() == 1);
  });
  CHECK(std::count(kinds.begin(), kinds.end(), "s3") == 1);
}
