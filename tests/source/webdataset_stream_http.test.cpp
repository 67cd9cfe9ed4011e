// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward reading from a server, and from one that does harm or dies.

#include <penstock/source/webdataset_stream.hpp>

#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/retrying.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/fault_proxy.hpp"
#include "support/forward_listing.hpp"
#include "support/nginx.hpp"
#include "support/raw_tar.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace http_stream_test {

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;
using lines_type = std::vector<std::string>;

constexpr ps::retrying_options patient{.attempts = 12, .first_wait = 5ms, .longest_wait = 200ms, .budget = 0};

/// A server with two shards of several pieces, plain and packed.
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
  CHECK(requests.size() == 2 + 2 * 3);  // a signature, and pieces of 1 MiB
  CHECK(data.fingerprint() == ps::webdataset_stream(here.paths).fingerprint());
  CHECK_THAT(data.describe(), contains("2 shards from http://"));
}

TEST_CASE("source/webdataset_stream_http: packed shards") {
  if (!have_nginx() || !have_program("gzip", "gzip --version")) return;
  const deadline guard("packed stream over http");
  const stream_server here;
  for (const std::string& path : here.paths) REQUIRE(run_program("gzip -1 '" + path + "'").status == 0);
  CHECK(forward_listing(ps::webdataset_stream<ps::unpack_gzip>(
            shards_at(here.server.url("s-{0..1}.tar.gz")))) == here.lines);
  CHECK_THROWS_WITH(forward_listing(ps::webdataset_stream(shards_at(here.server.url("s-{0..1}.tar.gz")))),
                    contains("webdataset_stream<unpack_gzip>(...)"));
  CHECK_THROWS_WITH(forward_listing(ps::webdataset_stream(shards_at(here.server.url("s-{0..2}.tar.gz")))),
                    contains("unpack_gzip"));
}

TEST_CASE("source/webdataset_stream_http: a server that does harm, with retries and hedges around it") {
  if (!have_nginx()) return;
  const deadline guard("harm to a stream");
  const stream_server here;
  fault_proxy proxy(here.server.port());
  const auto shards = shards_at(proxy.url("s-{0..1}.tar"), {.first_byte_time = 1s, .progress_time = 1s});
  proxy.sometimes(network_fault::cut(100'000), {.one_in = 3, .seed = 5, .most_for_one_request = 3});
  proxy.sometimes(network_fault::reset_before_answer(), {.one_in = 4, .seed = 6, .most_for_one_request = 3});
  proxy.sometimes(network_fault::unavailable(), {.one_in = 4, .seed = 7, .most_for_one_request = 3});
  CHECK(forward_listing(ps::webdataset_stream(ps::retrying(shards, patient))) == here.lines);
  CHECK(forward_listing(ps::webdataset_stream(ps::retrying(ps::hedged(shards), patient))) == here.lines);
  CHECK(proxy.faults() != 0);

  proxy.behave();  // without retries, one clear error
  proxy.script({network_fault::none(), network_fault::none(), network_fault::cut(1000)});
  const auto e = web_error_of([&] { (void)forward_listing(ps::webdataset_stream(shards)); });
  CHECK(e.code() == ps::errc::io);
  CHECK_FALSE(e.recurs());
  CHECK_THAT(e.what(), contains("the connection ended after 1000 of") && contains("s-0.tar"));
}

TEST_CASE("source/webdataset_stream_http: a server that dies and comes back, and a run that does") {
  if (!have_nginx()) return;
  const deadline guard("a server that dies");
  stream_server here;
  const auto payloads = [](auto&& batch, lines_type& into) {
    const auto rows = ps::get<"bin">(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) into.emplace_back(ps::text_of(rows[i]));
  };
  const auto plan_over = [](auto data) {
    return data | ps::fields<"bin"> | ps::batch(5, ps::ragged) | ps::workers(2);
  };
  lines_type expected;
  for (auto&& batch : plan_over(ps::webdataset_stream(here.paths))) payloads(batch, expected);
  REQUIRE(expected.size() == 60);

  const auto data = ps::webdataset_stream(ps::retrying(shards_at(here.server.url("s-{0..1}.tar")), patient),
                                          {.read_ahead = 0});
  auto run = plan_over(data).open();
  lines_type found;
  for (int i = 0; i < 2; ++i) payloads(*run.next(), found);
  here.server.kill();
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    here.server.start();
  });
  const ps::state middle = run.state();
  while (auto next = run.next()) payloads(*next, found);
  later.join();
  CHECK(found == expected);
  CHECK(run.counters().storage.requests >= 8);

  lines_type rest;
  auto again = plan_over(data).open(ps::state_from_string(to_string(middle)));
  while (auto next = again.next()) payloads(*next, rest);
  CHECK(rest == lines_type(expected.begin() + 10, expected.end()));
}
