// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3.hpp>

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fake_s3.hpp"
#include "support/read_outcomes.hpp"
#include "support/s3_session.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

static_assert(ps::background_session<ps::s3::session>);
static_assert(!ps::is_local<ps::s3>() && !std::is_copy_constructible_v<ps::s3::session>);

namespace {

const std::string s3_bytes = web_content(5000);

ps::s3::session s3_session_of(const web_server& server, ps::s3_options options) {
  options.place.endpoint = server.at("");
  return ps::s3({"bucket/folder/a b.tar"}, std::move(options)).connect();
}
ps::s3::session s3_session_of(const web_server& server) { return s3_session_of(server, s3_at("")); }

}  // namespace

TEST_CASE("storage/s3: names and descriptions") {
  const ps::s3 shards("bucket/train-{000..002}.tar?#");
  REQUIRE(shards.names().size() == 3);
  CHECK(shards.names()[2] == "s3://bucket/train-002.tar?#");
  CHECK(shards.describe() == "s3(bucket/train-{000..002}.tar?#, 64 connections)");
  const ps::s3 two({"s3://one/a{0..1}", "two/b"}, {.place = {.endpoint = "http://h:9/s3"}});
  CHECK(two.names()[0] == "s3://one/a{0..1}");
  CHECK(two.names()[1] == "s3://two/b");
  CHECK(two.describe() == "s3(2 objects, at http://h:9/s3, 64 connections)");
  shows_no_secret(ps::s3({"one/a"}, s3_at("https://h")).describe());

  using any = ps::any_of<ps::file, ps::http, ps::s3>;
  CHECK(any("S3://bucket/a-{0..1}.tar").names()[1] == "s3://bucket/a-1.tar");
  CHECK(any("http://h/a").names()[0] == "http://h/a");
}

TEST_CASE("storage/s3: names and options that make no sense") {
  for (const char* pattern : {"bucket", "bucket/", "/key", "https://bucket/key", "id:SeCrEt@bucket/key{0..1}",
                              "s3://id:SeCrEt@bucket/{0..", "b/key", "bucket/{0..x"}) {
    const ps::error e = s3_error_of([&] { (void)ps::s3(pattern); });
    INFO(pattern);
    CHECK(e.code() == ps::errc::argument);
  }
  const auto refused = [](ps::s3_options options) {
    const ps::error e = s3_error_of([&] { (void)ps::s3({"bucket/key"}, options).connect(); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::argument);
  };
  refused({.place = {.region = "nowhere at all"}});
  refused({.place = {.region = "us-east-1", .endpoint = "http://id:SeCrEt@h"}});
  refused({.identity = {.profile = "missing"}, .environment = ps::s3_environment()});
  refused({.connection = {.connections = 0}});
  // Credentials are looked for at the first request.
  ps::s3_options nobody = s3_at("http://127.0.0.1:1");
  nobody.identity = {};
  nobody.environment =
      ps::s3_environment({std::pair<std::string, std::string>("AWS_EC2_METADATA_DISABLED", "true")});
  const auto session = ps::s3({"bucket/key"}, nobody).connect();
  const ps::error none = s3_error_of([&] { (void)session.size(0); });
  CHECK(none.code() == ps::errc::argument);
  CHECK(says(none, "there are no credentials for S3"));
  CHECK(says(none, "s3://bucket/key"));
}

TEST_CASE("storage/s3: what a request has, and how often it is sent") {
  const deadline limit("requests to S3");
  web_log log;
  web_server server(answering([&](const web_request& request) {
    log.add(request.head);
    return web_object(request, s3_bytes);
  }));
  const auto session = s3_session_of(server);
  CHECK(session.size(0) == 5000);
  CHECK(log.last().starts_with("HEAD /bucket/folder/a%20b.tar HTTP/1.1\r\n"));
  CHECK((s3_read(session, 0, 50, 100) == s3_bytes.substr(50, 100)));
  const std::string part = log.last();
  CHECK(part.starts_with("GET /bucket/folder/a%20b.tar HTTP/1.1\r\n"));
  CHECK(part.find("\r\nIf-Match: \"one\"\r\n") != std::string::npos);
  CHECK(part.find("\r\nx-amz-security-token: SeCrEt-token\r\n") != std::string::npos);
  CHECK(part.find("\r\nauthorization: AWS4-HMAC-SHA256 Credential=key-id/") != std::string::npos);
  CHECK(part.find("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,") !=
        std::string::npos);
  CHECK(part.find("checksum") == std::string::npos);
  CHECK((s3_read(session, 0, 0, 5000) == s3_bytes));
  CHECK(log.last().find("\r\nx-amz-checksum-mode: ENABLED\r\n") != std::string::npos);
  CHECK(log.all().size() == 3);
  CHECK(session.report().counters == ps::storage_counters{.requests = 3, .bytes = 5100});
  CHECK(session.report().requests.answered == 3);
  CHECK(session.report().requests.durations.count() == 3);
  CHECK_THROWS_AS(s3_read(session, 0, 4990, 11), ps::error);
  CHECK(log.all().size() == 3);

  // Nobody signs for an anonymous reader, and who pays is signed.
  ps::s3_options options = s3_at("", ps::s3_credentials());
  options.verify_checksums = false;
  (void)s3_read(s3_session_of(server, options), 0, 0, 5000);
  CHECK(log.last().find("uthorization") == std::string::npos);
  CHECK(log.last().find("x-amz") == std::string::npos);
  options = s3_at("");
  options.requester_pays = true;
  (void)s3_read(s3_session_of(server, options), 0, 0, 10);
  CHECK(log.last().find("\r\nx-amz-request-payer: requester\r\n") != std::string::npos);
  CHECK(log.last().find("x-amz-request-payer;") != std::string::npos);
}

TEST_CASE("storage/s3: what a refusal asks for is done once, and then the refusal is the error") {
  const deadline limit("refusals");
  std::atomic<int> asked{0};
  const auto tries = [&](std::string answer) {
    asked = 0;
    web_server server(answering([&](const web_request&) {
      ++asked;
      return answer;
    }));
    const auto session = s3_session_of(server);
    const ps::error e = s3_error_of([&] { (void)s3_read(session, 0, 0, 10); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::io);
    CHECK(says(e, "s3://bucket/folder/a b.tar"));
    return e;
  };
  CHECK(tries(s3_refusal("403 Forbidden", "AccessDenied")).recurs());
  CHECK(asked == 1);
  CHECK_FALSE(tries(s3_refusal("500 Internal Server Error", "InternalError")).recurs());
  CHECK(asked == 1);
  const ps::error slow = tries(s3_refusal("503 Slow Down", "SlowDown", "Retry-After: 3\r\n"));
  CHECK_FALSE(slow.recurs());
  CHECK(slow.retry_after_ms() == 3000u);
  CHECK(asked == 1);
  CHECK(says(
      tries(s3_refusal("301 Moved Permanently", "PermanentRedirect", "x-amz-bucket-region: eu-west-1\r\n")),
      "another region"));
  CHECK(asked == 2);
  (void)tries(s3_refusal("403 Forbidden", "RequestTimeTooSkewed", "Date: Mon, 23 Nov 2026 20:15:00 GMT\r\n"));
  CHECK(asked == 2);
  CHECK(says(tries(s3_refusal("400 Bad Request", "ExpiredToken")), "no newer ones"));
  CHECK(asked == 1);  // there are no others than those that were given
  CHECK(says(tries(s3_refusal("412 Precondition Failed", "PreconditionFailed")), "replaced"));
  CHECK(says(tries(web_answer("403 Forbidden", "", "no XML")), "403"));
  CHECK(tries(s3_refusal("400 Bad Request", "Throttling")).retry_after_ms() == 0u);
}

TEST_CASE("storage/s3: threads that want to know the same ask once, and are cancelled together") {
  const deadline limit("one question");
  std::atomic<int> asked{0};
  std::atomic<bool> answers{false};
  web_server server([&](web_peer& peer) {
    for (web_request request; peer.next(request);) {
      ++asked;
      if (!answers.load()) return peer.stall();
      std::this_thread::sleep_for(20ms);
      if (!peer.send(web_object(request, s3_bytes))) return;
    }
  });
  const auto session = s3_session_of(server);
  std::atomic<int> stopped{0}, right{0};
  const auto ask = [&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        try {
          right += session.size(0) == 5000 ? 1 : 0;
        } catch (const ps::error& e) {
          stopped += e.code() == ps::errc::stopped ? 1 : 0;
        }
      });
    return threads;
  };
  std::vector<std::thread> first = ask();
  while (asked.load() == 0) std::this_thread::sleep_for(1ms);
  while (stopped.load() != 4) {  // one that has not asked yet is not cancelled
    session.cancel();
    std::this_thread::sleep_for(1ms);
  }
  for (std::thread& one : first) one.join();
  answers = true;
  asked = 0;
  std::vector<std::thread> second = ask();
  for (std::thread& one : second) one.join();
  CHECK(right == 4);
  CHECK(asked == 1);
}

TEST_CASE("storage/s3: slow-downs of any status are counted") {
  const deadline limit("slow-downs");
  std::atomic<int> asked{0};
  web_server server(answering([&](const web_request&) {
    return ++asked == 1 ? s3_refusal("503 Slow Down", "SlowDown")
                        : s3_refusal("400 Bad Request", "Throttling");
  }));
  const auto session = s3_session_of(server);
  for (int i = 0; i < 3; ++i) (void)s3_error_of([&] { (void)s3_read(session, 0, 0, 10); });
  CHECK(session.report().counters.slow_downs == 3);
}

TEST_CASE("storage/s3: the store's region and clock are remembered") {
  const deadline limit("region and clock");
  web_log log;
  web_server server(answering([&](const web_request& request) {
    const std::string scope = request.header("authorization");
    log.add(scope + request.header("x-amz-date"));
    if (scope.find("/eu-west-1/s3/") == std::string::npos)
      return s3_refusal("400 Bad Request", "AuthorizationHeaderMalformed", "", "<Region>eu-west-1</Region>");
    if (!request.header("x-amz-date").starts_with("20200101T0"))
      return s3_refusal("403 Forbidden", "RequestTimeTooSkewed", "Date: Wed, 01 Jan 2020 00:00:00 GMT\r\n");
    return web_object(request, s3_bytes);
  }));
  const auto session = s3_session_of(server);
  CHECK((s3_read(session, 0, 0, 10) == s3_bytes.substr(0, 10)));
  CHECK(log.all().size() == 3);
  CHECK((s3_read(session, 0, 0, 10) == s3_bytes.substr(0, 10)));
  CHECK(log.all().size() == 4);
}

TEST_CASE("storage/s3: a token that expires in mid-run is fetched again, and reads wait for it") {
  const deadline limit("an expired token");
  std::atomic<int> given{0}, refused{0};
  web_server service(answering([&](const web_request& request) {
    const std::string number = std::to_string(++given);
    CHECK(request.header("authorization") == "SeCrEt-of-service");
    return web_answer("200 OK", "",
                      R"({"AccessKeyId": "id)" + number +
                          R"(", "SecretAccessKey": "SeCrEt", "Token": "SeCrEt)" + number +
                          R"(", "Expiration": "2099-01-01T00:00:00Z"})");
  }));
  std::atomic<int> valid{1};
  web_server server(answering([&](const web_request& request) {
    if (request.header("x-amz-security-token") == "SeCrEt" + std::to_string(valid.load()))
      return web_object(request, s3_bytes);
    ++refused;
    return s3_refusal("400 Bad Request", "ExpiredToken");
  }));
  ps::s3_options options = s3_at("");
  options.identity = {};
  options.environment = ps::s3_environment({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", service.at("/role")},
                                            {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "SeCrEt-of-service"}});
  const auto session = s3_session_of(server, options);
  CHECK((s3_read(session, 0, 0, 10) == s3_bytes.substr(0, 10)));
  CHECK(given == 1);
  valid = 2;
  std::vector<std::string> parts(20, std::string(100, 'x'));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests.push_back({0, i * 100, std::as_writable_bytes(std::span(parts[i])), i});
  read_outcomes outcomes(parts.size());
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures() == 0);
  for (std::size_t i = 0; i < parts.size(); ++i) CHECK((parts[i] == s3_bytes.substr(i * 100, 100)));
  CHECK(given == 2);
  CHECK(refused >= 1);
  valid = 9;  // a token that is refused again is the error of its read
  const ps::error e = s3_error_of([&] { (void)s3_read(session, 0, 0, 10); });
  CHECK(says(e, "ExpiredToken"));
}

TEST_CASE("storage/s3: cancelling ends reads that wait for credentials") {
  const deadline limit("cancelling");
  std::atomic<bool> waits{false};
  web_server service([&](web_peer& peer) {
    web_request request;
    if (!peer.next(request)) return;
    waits = true;
    peer.stall();
  });
  ps::s3_options options = s3_at("http://127.0.0.1:1");
  options.identity = {};
  options.environment = ps::s3_environment(
      {std::pair<std::string, std::string>("AWS_CONTAINER_CREDENTIALS_FULL_URI", service.at("/role"))});
  {
    const auto session = ps::s3({"bucket/key"}, options).connect();
    std::string into(10, 'x');
    const std::vector<ps::read_request> requests{{0, 0, std::as_writable_bytes(std::span(into)), 0},
                                                 {0, 0, std::as_writable_bytes(std::span(into)), 1}};
    read_outcomes outcomes(2);
    session.read_many(requests, outcomes.listener());
    while (!waits.load()) std::this_thread::sleep_for(1ms);
    session.cancel();
    outcomes.wait();
    CHECK(outcomes.failures(ps::errc::stopped) == 2);
    CHECK(outcomes.each_once());
    session.end_reads();
    CHECK(s3_error_of([&] { (void)s3_read(session, 0, 0, 10); }).code() == ps::errc::stopped);
  }
  read_outcomes outcomes(1);
  std::string into(10, 'x');
  {
    waits = false;
    const auto session = ps::s3({"bucket/key"}, options).connect();
    const std::vector<ps::read_request> requests{{0, 0, std::as_writable_bytes(std::span(into)), 0}};
    session.read_many(requests, outcomes.listener());
    while (!waits.load()) std::this_thread::sleep_for(1ms);
  }
  CHECK(outcomes.ended() == 1);
}

TEST_CASE("storage/s3: an ETag with nothing in it is none") {
  const deadline limit("empty ETags");
  std::atomic<bool> kept{false};
  web_server empty(answering([&](const web_request& request) {
    std::string answer = web_object(request, s3_bytes, "");  // 412 if there is an If-Match
    return answer.insert(answer.find("\r\n") + 2, kept ? "ETag: \"7357dbd74e7c\"\r\n" : "ETag: \"\"\r\n");
  }));
  const auto by_s3 = s3_session_of(empty);
  const auto by_http = ps::http({empty.at("/bucket/a").c_str()}, direct()).connect();
  CHECK(by_s3.version(0).stamp == 0);
  CHECK(by_http.version(0).stamp == 0);
  kept = true;
  CHECK((s3_read(by_s3, 0, 10, 50) == s3_bytes.substr(10, 50)));
  CHECK((s3_read(by_http, 0, 10, 50) == s3_bytes.substr(10, 50)));
  CHECK(s3_session_of(empty).version(0).stamp != 0);
}

TEST_CASE("storage/s3: redirects lead to signed URLs as they are, and are signed for the same server") {
  const deadline limit("redirects");
  web_log far;
  web_server target(answering([&](const web_request& request) {
    far.add(request.head);
    return web_object(request, s3_bytes);
  }));
  web_log near;
  std::string location = target.at("/t/bucket/a%20b?signed=SeCrEt");
  web_server gate(answering([&](const web_request& request) {
    near.add(request.head);
    if (request.target() == "/other") return web_object(request, s3_bytes);
    return web_answer("307 Temporary Redirect", "Location: " + location + "\r\n", "");
  }));
  CHECK((s3_read(s3_session_of(gate), 0, 10, 50) == s3_bytes.substr(10, 50)));
  CHECK(far.last().starts_with("GET /t/bucket/a%20b?signed=SeCrEt HTTP/1.1\r\n"));
  CHECK(far.last().find("Range: bytes=10-59") != std::string::npos);
  CHECK(far.last().find("uthorization") == std::string::npos);
  CHECK(far.last().find("x-amz") == std::string::npos);
  location = "/other";
  CHECK((s3_read(s3_session_of(gate), 0, 10, 50) == s3_bytes.substr(10, 50)));
  CHECK(near.last().starts_with("GET /other HTTP/1.1\r\n"));
  CHECK(near.last().find("\r\nauthorization: AWS4") != std::string::npos);
  location = "/bucket/folder/a%20b.tar";
  const ps::error circle = s3_error_of([&] { (void)s3_read(s3_session_of(gate), 0, 0, 10); });
  CHECK(circle.recurs());
}

TEST_CASE("storage/s3: the store's checksum of a whole object is verified, if it is one of its bytes") {
  const deadline limit("checksums");
  const std::string check = "123456789";
  std::string headers;
  web_server server(answering([&](const web_request& request) {
    std::string answer = web_object(request, check);
    return answer.insert(answer.find("\r\n") + 2, headers);
  }));
  const auto read = [&](std::string given, bool verifies = true) {
    headers = std::move(given);
    ps::s3_options options = s3_at("");
    options.verify_checksums = verifies;
    return s3_read(s3_session_of(server, options), 0, 0, 9);
  };
  const std::string whole = "x-amz-checksum-type: FULL_OBJECT\r\n";
  for (const char* good : {"x-amz-checksum-crc32: y/Q5Jg==\r\n", "x-amz-checksum-crc32c: 4waSgw==\r\n",
                           "x-amz-checksum-crc64nvme: rosUhgp5mIg=\r\n",
                           "x-amz-checksum-sha256: FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=\r\n",
                           "x-goog-hash: crc32c=4waSgw==,md5=AAAA\r\n", "x-amz-checksum-sha1: AAAA\r\n"}) {
    INFO(good);
    CHECK(read(good) == check);
    CHECK(read(whole + good) == check);
  }
  for (const char* bad : {"x-amz-checksum-crc32: y/Q5Jw==\r\n", "x-amz-checksum-crc32c: 4wbSgw==\r\n",
                          "x-amz-checksum-crc64nvme: rpsUhgp5mIg=\r\n",
                          "x-amz-checksum-sha256: AeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=\r\n",
                          "x-goog-hash: crc32c=4waSgg==\r\n"}) {
    INFO(bad);
    const ps::error e = s3_error_of([&] { (void)read(bad); });
    CHECK(e.code() == ps::errc::io);
    CHECK_FALSE(e.recurs());
    CHECK(says(e, "do not have the "));
    CHECK(read(bad, false) == check);
  }
  CHECK(read("x-amz-checksum-crc32: AAAAAA==-3\r\n") == check);
  CHECK(read("x-amz-checksum-type: COMPOSITE\r\nx-amz-checksum-crc32: AAAAAA==\r\n") == check);
}

TEST_CASE("storage/s3: Content-Encoding is a property of an object, whose bytes are read as they were put") {
  const deadline limit("encoded objects");
  for (const char* const encoding : {"gzip", "aws-chunked"}) {
    web_server server(answering([&](const web_request& request) {
      std::string answer = web_object(request, s3_bytes);
      return answer.insert(answer.find("\r\n") + 2, "Content-Encoding: " + std::string(encoding) + "\r\n");
    }));
    const auto session = s3_session_of(server);
    CHECK((s3_read(session, 0, 10, 100) == s3_bytes.substr(10, 100)));
    CHECK((s3_read(session, 0, 0, 5000) == s3_bytes));
    CHECK(s3_session_of(server).size(0) == 5000);
  }
}

TEST_CASE("storage/s3: what may pass is tried again, and single reads can be ended") {
  const deadline limit("retries");
  std::atomic<int> asked{0};
  web_server server(answering([&](const web_request& request) {
    return asked++ % 2 == 0 ? s3_refusal("503 Slow Down", "SlowDown") : web_object(request, s3_bytes);
  }));
  ps::s3_options options = s3_at("");
  options.connection.retries = {
      .attempts = 3, .initial_backoff = 1ms, .max_backoff = 2ms, .max_retry_after = 2ms};
  {
    const auto session = s3_session_of(server, options);
    CHECK(session.size(0) == 5000);
    CHECK((s3_read(session, 0, 7, 90) == s3_bytes.substr(7, 90)));
    CHECK(session.report().counters ==
          ps::storage_counters{.requests = 4, .bytes = 90, .slow_downs = 2, .retries = 2});
    const ps::store_requests requests = session.report().requests;
    CHECK(requests.answered == 2);
    CHECK(requests.failed == 2);
    CHECK(requests.durations.count() == 4);
  }
  options.connection.retries = {.attempts = 0};
  const ps::error e = s3_error_of([&] { (void)ps::s3({"bucket/key"}, options); });
  CHECK(e.code() == ps::errc::argument);
  CHECK(ps::s3({"bucket/a.tar"}).sidecars({".idx", true}).names()[0] == "s3://bucket/a.idx");
  const std::string location = "s3://bucket/t/metadata/00007-0a1b.metadata.json";  // as a catalogue names it
  CHECK(ps::s3(location).names()[0] == location);
  CHECK(ps::s3({"bucket/a.tar"}).with_names({"s3://other/b{0..1}"}).names()[0] == "s3://other/b{0..1}");
}

TEST_CASE("storage/s3: one of the reads that wait for credentials, or for an answer, can be ended") {
  const deadline limit("abandoned reads");
  std::atomic<int> stalled{0};
  const auto silent = [&](web_peer& peer) {
    web_request request;
    if (!peer.next(request)) return;
    ++stalled;
    peer.stall();
  };
  web_server service(silent), server(silent);
  const auto ends_one = [&](const ps::s3_options& options, int waiting) {
    auto list = std::make_unique<ps::detail::s3::object_names>();
    list->names = {"s3://bucket/key"};
    const ps::detail::plain_s3 where(ps::shared<const ps::detail::s3::object_names>(list.release()), options);
    const auto session = where.connect();
    std::string into(10, 'x');
    const ps::mutable_bytes place = std::as_writable_bytes(std::span(into));
    const std::vector<ps::read_request> requests{{0, 0, place, 0}, {0, 0, place, 1}};
    read_outcomes outcomes(2);
    stalled = 0;
    session.read_many(requests, outcomes.listener());
    while (stalled.load() != waiting) std::this_thread::sleep_for(1ms);
    session.abandon(1);
    while (outcomes.ended() == 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    CHECK(outcomes.ended() == 1);
    CHECK(outcomes.failures(ps::errc::stopped) == 1);
    session.cancel();
    outcomes.wait();
    CHECK(outcomes.each_once());
  };
  ends_one(s3_at(server.at("")), 2);
  ps::s3_options options = s3_at("http://127.0.0.1:1");
  options.identity = {};
  options.environment = ps::s3_environment(
      {std::pair<std::string, std::string>("AWS_CONTAINER_CREDENTIALS_FULL_URI", service.at("/role"))});
  ends_one(options, 1);
}
