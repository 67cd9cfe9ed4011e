// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// AIStore, by its S3 and by its own URLs: a gateway that sends each request on to a target. There is no
// package of it to start here; support/fake_aistore.hpp says what it does, and where that is written.

#include <penstock/storage/http.hpp>
#include <penstock/storage/s3.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fake_aistore.hpp"
#include "support/read_outcomes.hpp"
#include "support/s3_session.hpp"
#include "support/web_reads.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace s3_aistore_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

constexpr std::size_t objects = 12;

std::string name_of(std::size_t i) { return "shards/train-" + std::to_string(i) + ".tar"; }
std::string bytes_of(std::size_t i) { return web_content(20'000 + i).substr(i); }

void fill(fake_aistore& site) {
  for (std::size_t i = 0; i < objects; ++i) site.put(name_of(i), bytes_of(i));
}
ps::s3 by_s3(const fake_aistore& site, const ps::s3_options& options) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < objects; ++i) names.push_back("bucket/" + name_of(i));
  ps::s3_options at = options;
  at.place.endpoint = site.endpoint();
  return ps::s3(std::move(names), at);
}
ps::http by_url(const fake_aistore& site, const ps::http_options& options) {
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < objects; ++i) urls.push_back(site.url(name_of(i)));
  return ps::http(std::move(urls), options);
}

/// Reads ranges of all objects, one after the other and many at once.
template <class Storage>
void reads_ranges(const Storage& shards) {
  const auto session = shards.connect();
  for (std::size_t i = 0; i < objects; ++i) {
    const auto id = static_cast<ps::object_id>(i);
    const std::string bytes = bytes_of(i);
    CHECK(session.size(id) == bytes.size());
    CHECK((s3_read(session, id, 1000, 5000) == bytes.substr(1000, 5000)));
    CHECK((s3_read(session, id, 0, bytes.size()) == bytes));
  }
  std::vector<std::string> parts(8 * objects, std::string(500, 'x'));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests.push_back({static_cast<ps::object_id>(i % objects), 700 * (i / objects),
                        std::as_writable_bytes(std::span(parts[i])), i});
  read_outcomes outcomes(parts.size());
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures() == 0);
  for (std::size_t i = 0; i < parts.size(); ++i)
    CHECK((parts[i] == bytes_of(i % objects).substr(700 * (i / objects), 500)));
  const ps::error beyond = web_error_of([&] { (void)s3_read(session, 0, 19'999, 10); });
  CHECK(beyond.code() == ps::errc::format);
}

}  // namespace s3_aistore_test

using namespace s3_aistore_test;

TEST_CASE("storage/s3_aistore: its S3 and its own URLs lead to the targets, which get no credentials") {
  const deadline limit("AIStore");
  for (const auto release : {fake_aistore::release::now, fake_aistore::release::before_206}) {
    const bool now = release == fake_aistore::release::now;
    CAPTURE(now);
    fake_aistore site(release);
    fill(site);
    reads_ranges(by_s3(site, s3_at("")));
    reads_ranges(by_url(site, direct()));
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<std::string> heads = site.target(i).all();
      CHECK(heads.size() > 50);  // both have objects
      for (const std::string& head : heads) {
        INFO(head);
        CHECK(head.find("uthorization") == std::string::npos);
        CHECK(head.find("x-amz") == std::string::npos);
      }
    }
    // An object's own URL has no ETag, so that its blocks in a cache are those of one run.
    CHECK(by_url(site, direct()).connect().version(0).stamp == 0);
    CHECK((by_s3(site, s3_at("")).connect().version(0).stamp != 0) == now);
  }
}

TEST_CASE("storage/s3_aistore: lists without ETags find names, and each size is asked for") {
  const deadline limit("lists");
  fake_aistore site;
  fill(site);
  ps::s3_options options = s3_at(site.endpoint());
  std::vector<std::string> names = ps::s3::list("bucket/shards/", options);
  CHECK(names.size() == objects);
  CHECK(names.front() == "s3://bucket/shards/train-0.tar");
  const auto session = by_s3(site, options).connect();
  for (std::size_t i = 0; i < objects; ++i)
    CHECK(session.size(static_cast<ps::object_id>(i)) == bytes_of(i).size());
  std::size_t heads = 0;
  for (const std::string& head : site.gateway().all()) heads += head.starts_with("HEAD ") ? 1u : 0u;
  CHECK(heads == objects);
}

TEST_CASE("storage/s3_aistore: an object that is replaced is an error, although nobody looks at If-Match") {
  const deadline limit("a replaced object");
  fake_aistore site;
  fill(site);
  const auto session = by_s3(site, s3_at("")).connect();
  CHECK((s3_read(session, 0, 0, 10) == bytes_of(0).substr(0, 10)));
  site.put(name_of(0), std::string(bytes_of(0).size(), 'y'));
  const ps::error replaced = s3_error_of([&] { (void)s3_read(session, 0, 0, 10); });
  CHECK(says(replaced, "replaced while it was read"));
  CHECK(replaced.recurs());

  // Without ETags only another size shows it.
  const auto plain = by_url(site, direct()).connect();
  CHECK((s3_read(plain, 1, 0, 10) == bytes_of(1).substr(0, 10)));
  site.put(name_of(1), std::string(bytes_of(1).size() + 1, 'y'));
  CHECK(says(web_error_of([&] { (void)s3_read(plain, 1, 0, 10); }), "replaced while it was read"));
}

TEST_CASE("storage/s3_aistore: what a target refuses is asked of the gateway again") {
  const deadline limit("targets that refuse", 120s);
  fake_aistore site;
  fill(site);
  ps::s3_options options = s3_at("");
  options.connection.retries = {.initial_backoff = 1ms};
  const auto session = by_s3(site, options).connect();
  site.refuse_then_move(2);
  CHECK((s3_read(session, 3, 50, 100) == bytes_of(3).substr(50, 100)));
  CHECK(session.report().counters.retries == 2);
  CHECK(site.gateway().all().size() == 3);
  const auto plain =
      by_url(site,
             {.proxies = false, .retries = {.initial_backoff = 1ms}, .hedges = {.max_extra_requests = 0}})
          .connect();
  site.refuse_then_move(1);
  CHECK((s3_read(plain, 4, 50, 100) == bytes_of(4).substr(50, 100)));
  CHECK(plain.report().counters.retries == 1);
}
