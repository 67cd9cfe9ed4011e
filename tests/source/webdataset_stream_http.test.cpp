// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What forward reading asks of a server; webdataset_stream_served.test.cpp has what it must survive.

#include <penstock/source/webdataset_stream.hpp>

#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/forward_listing.hpp"
#include "support/nginx.hpp"
#include "support/raw_tar.hpp"
#include "support/web_reads.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace http_stream_test {

namespace ps = penstock;
using namespace penstock_test;
using lines_type = std::vector<std::string>;

/// A server with two shards of several pieces.
struct stream_server {
  stream_server() {
    for (int s = 0; s < 2; ++s) {
      raw_tar tar;
      for (int i = 0; i < 30; ++i)
        tar.member(std::to_string(100 * s + i) + ".bin",
                   web_content(90'000 + static_cast<std::size_t>(i)).substr(static_cast<std::size_t>(i)));
      const std::string name = "s-" + std::to_string(s) + ".tar";
      server.put(name, tar.end().bytes);
      paths.push_back((server.root() / name).string());
    }
    lines = forward_listing(ps::webdataset_stream(paths));
    REQUIRE(lines.size() == 60);
  }
  nginx_server server;
  std::vector<std::string> paths;
  lines_type lines;
};

ps::http shards_at(const std::string& pattern, ps::http_options options = {}) {
  return ps::http(pattern, direct(std::move(options)));
}

}  // namespace http_stream_test

using namespace http_stream_test;

TEST_CASE("source/webdataset_stream_http: the samples of the files, each byte asked for once") {
  if (!have_nginx()) return;
  const deadline guard("stream over http");
  const stream_server here;
  const auto data = ps::webdataset_stream(shards_at(here.server.url("s-{0..1}.tar")));
  CHECK(forward_listing(data) == here.lines);
  const auto requests = here.server.requests();
  std::size_t bytes = 0;
  for (const logged_request& one : requests) bytes += one.method == "GET" ? one.body_bytes : 0;
  CHECK(bytes == std::filesystem::file_size(here.paths[0]) + std::filesystem::file_size(here.paths[1]));
  CHECK(requests.size() == 2 + 2 * 3);  // a version, and pieces of 1 MiB
  CHECK(data.fingerprint() == ps::webdataset_stream(here.paths).fingerprint());
  CHECK_THAT(data.describe(), contains("2 shards from http://"));
}
