// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Servers that would keep a program waiting without end, and what ends the wait.

#include <penstock/storage/http.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/iceberg_catalog.hpp>
#include <penstock/storage/s3.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/http_session.hpp"
#include "support/nowhere.hpp"
#include "support/s3_session.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

/// Sends a text, then another one again and again until the client has gone.
web_server::script dripping(std::string first, std::string drop, std::chrono::milliseconds pause = 2ms) {
  return [=](web_peer& peer) {
    web_request request;
    if (!peer.next(request) || !peer.send(first)) return;
    while (peer.send(drop)) std::this_thread::sleep_for(pause);
  };
}
const std::string thousand_bytes =
    "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-999/1000\r\nContent-Length: 1000\r\n\r\n";
/// One that says nothing.
web_server::script silent() {
  return [](web_peer& peer) { peer.stall(); };
}

/// What a program writes to its error stream meanwhile.
class error_stream {
 public:
  error_stream() {
    std::fflush(stderr);
    before_ = ::dup(2);
    const int file = ::open(path().c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(before_ >= 0);
    REQUIRE(::dup2(file, 2) == 2);
    ::close(file);
  }
  error_stream(const error_stream&) = delete;
  error_stream& operator=(const error_stream&) = delete;
  ~error_stream() { restore(); }

  /// All of its lines.
  [[nodiscard]] std::vector<std::string> lines() {
    restore();
    std::ifstream in(path());
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

 private:
  [[nodiscard]] std::string path() const { return (folder_ / "stderr").string(); }
  void restore() {
    if (before_ < 0) return;
    std::fflush(stderr);
    ::dup2(before_, 2);
    ::close(before_);
    before_ = -1;
  }
  temp_dir folder_;
  int before_ = -1;
};

/// Does it in a thread, asks it to stop after a moment, and returns the error.
template <class F>
ps::error stopped(std::stop_source& stop, F&& f) {
  std::thread asks([&] {
    std::this_thread::sleep_for(30ms);
    stop.request_stop();
  });
  const ps::error e = web_error_of(f);
  asks.join();
  return e;
}

}  // namespace

TEST_CASE("storage/http: an answer that brings too little is given up") {
  const deadline limit("a byte from time to time");
  web_server slow(dripping(thousand_bytes, "x"));
  const ps::error e = web_error_of([&] {
    first_of(session_of(slow.at("/a"), direct({.min_throughput = 100'000, .throughput_window = 50ms})), 1000);
  });
  INFO(e.what());
  CHECK(says(e, "fewer than http_options::min_throughput asks for (100000 bytes/s)"));
  CHECK(e.timed_out());
  CHECK_FALSE(e.recurs());
  // Without the limit it comes to its end.
  web_server brief(dripping(thousand_bytes, std::string(50, 'x')));
  CHECK(first_of(session_of(brief.at("/a"), direct({.min_throughput = 0, .throughput_window = 5ms})), 1000) ==
        std::string(1000, 'x'));
}

TEST_CASE("storage/http: neither provisional answers nor a header in drops last for ever") {
  const deadline limit("headers without end");
  for (const auto& [first, drop] : std::vector<std::pair<std::string, std::string>>{
           {"", "HTTP/1.1 100 Continue\r\n\r\n"},
           {"", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"},
           {"HTTP/1.1 206 OK\r\nX-Long: ", "x"}}) {
    web_server endless(dripping(first, drop, 5ms));
    const ps::error e = web_error_of([&] {
      first_of(session_of(endless.at("/a"), direct({.first_byte_time = 80ms, .progress_time = 5s})));
    });
    INFO(e.what());
    CHECK(says(e, "no answer within 80 ms"));
    CHECK_FALSE(e.recurs());
  }
}

TEST_CASE(
    "storage/http: provisional answers that come as fast as they can do not keep the clock from being read") {
  const deadline limit("a flood of headers");
  web_server flood([](web_peer& peer) {
    std::string many;
    for (int i = 0; i < 1000; ++i) many += "HTTP/1.1 100 Continue\r\n\r\n";
    web_request request;
    if (!peer.next(request)) return;
    while (peer.send(many)) {
    }
  });
  const ps::error e =
      web_error_of([&] { first_of(session_of(flood.at("/a"), direct({.first_byte_time = 80ms}))); });
  INFO(e.what());
  CHECK(says(e, "no answer within 80 ms"));
}

TEST_CASE("storage/http: a byte from time to time ends no question that is not a read either") {
  const deadline limit("sizes, lists, catalogues and credentials in drops");
  const ps::http_options hasty =
      direct({.first_byte_time = 80ms, .min_throughput = 100'000, .throughput_window = 50ms});
  web_server head(dripping("HTTP/1.1 200 OK\r\nX-Long: ", "x"));
  CHECK(
      says(web_error_of([&] { (void)session_of(head.at("/a"), hasty).size(0); }), "no answer within 80 ms"));

  const std::string long_body = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
  web_server body(dripping(long_body, "x"));
  web_server stalled([&](web_peer& peer) {
    web_request request;
    if (peer.next(request) && peer.send(long_body)) peer.stall();
  });
  ps::s3_options store = s3_at(body.at(""));
  store.connection = hasty;
  const ps::error listed = web_error_of([&] { (void)ps::s3::list("s3://bucket/a", store); });
  CHECK(says(listed, "http_options::min_throughput"));
  CHECK(listed.timed_out());
  store.place.endpoint = stalled.at("");
  store.connection.min_throughput = 0;
  store.connection.progress_time = 50ms;
  CHECK(says(web_error_of([&] { (void)ps::s3::list("s3://bucket/a", store); }), "no byte within 50 ms"));

  store.connection = hasty;
  store.identity.credentials.reset();
  for (web_server* const service : {&head, &body}) {
    store.environment = ps::s3_environment(
        {std::pair<std::string, std::string>("AWS_CONTAINER_CREDENTIALS_FULL_URI", service->at("/role"))});
    const ps::error e = web_error_of([&] { (void)ps::s3("bucket/a", store).connect().size(0); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::io);
    CHECK(says(e, service == &head ? "no answer within 80 ms" : "http_options::min_throughput"));
  }
  CHECK(says(web_error_of([&] { (void)ps::iceberg_location(body.at(""), "a.b", {.connection = hasty}); }),
             "http_options::min_throughput"));
}

TEST_CASE("storage/http: a read ends although each of its attempts gets a few bytes") {
  const deadline limit("attempts that get a few bytes");
  web_server slow(dripping(thousand_bytes, "x"));
  ps::http_options options = without_proxies({.min_throughput = 100'000, .throughput_window = 20ms});
  options.retries = {
      .attempts = 100'000, .initial_backoff = 1ms, .max_backoff = 2ms, .max_time = 100ms, .budget = 0};
  for (const double hedges : {0.0, 0.5}) {
    options.hedges.max_extra_requests = hedges;
    const ps::error e = web_error_of([&] { first_of(session_of_all(slow.at("/a"), options), 1000); });
    INFO(e.what());
    CHECK(says(e, "http_options::min_throughput"));
    CHECK(says(e, "retrying_options::max_time"));
    CHECK(e.timed_out());
  }
}

TEST_CASE("storage/http: redirects take their time from that of their request") {
  const deadline limit("redirects that come late");
  std::atomic<int> asked{0};
  web_server leads_on(answering([&](const web_request&) {
    std::this_thread::sleep_for(40ms);
    return web_answer("302 Found", "Location: /" + std::to_string(++asked) + "\r\n", "");
  }));
  const ps::error e =
      web_error_of([&] { (void)session_of(leads_on.at("/a"), direct({.max_time = 60ms})).size(0); });
  INFO(e.what());
  CHECK(says(e, "not over after 60 ms; see http_options::max_time"));
  CHECK(asked < 5);
}

TEST_CASE("storage/http: a request has a longest time in all") {
  const deadline limit("the time of a request");
  web_server slow(dripping(thousand_bytes, "xx"));
  const ps::error e = web_error_of(
      [&] { first_of(session_of(slow.at("/a"), direct({.min_throughput = 0, .max_time = 60ms})), 1000); });
  INFO(e.what());
  CHECK(says(e, "not over after 122 ms; see http_options::max_time"));
  CHECK(e.timed_out());
}

TEST_CASE("storage/http: the time of all attempts is bounded, whatever the server asks for") {
  const deadline limit("Retry-After of a day");
  std::atomic<int> asked{0};
  web_server busy(answering([&](const web_request&) {
    ++asked;
    return web_answer("429 Too Many Requests", "Retry-After: 86400\r\n", "");
  }));
  ps::http_options options = without_proxies();
  options.retries = {.attempts = 1000, .initial_backoff = 1ms, .max_retry_after = 20ms, .max_time = 100ms};
  options.throttle.max_in_flight = 0;
  const ps::error e = web_error_of([&] { first_of(session_of_all(busy.at("/a"), options)); });
  INFO(e.what());
  CHECK(says(e, "429"));
  CHECK(says(e, "retrying_options::max_time"));
  CHECK(asked >= 2);
  CHECK(asked < 10);
}

TEST_CASE("storage/http: a server that cannot be reached is given up sooner") {
  const deadline limit("refused connections");
  const nowhere none;
  ps::http_options options = without_proxies();
  options.retries = {.attempts = 100'000,
                     .initial_backoff = 1ms,
                     .max_backoff = 5ms,
                     .max_unreachable_time = 60ms,
                     .budget = 0};
  for (const std::size_t max_in_flight : {0u, 64u}) {  // the second notices that the store is down
    options.throttle.max_in_flight = max_in_flight;
    const ps::error e = web_error_of([&] { first_of(session_of_all(none.url(), options)); });
    INFO(e.what());
    CHECK(e.unreachable());
    CHECK(says(e, "cannot connect to"));
    CHECK(says(e, "max_unreachable_time"));
  }
  // What it was made of is known to each of its copies.
  CHECK_FALSE(ps::error(ps::errc::io, "x").unreachable());
}

TEST_CASE("storage/http: https to a port without TLS, and http to one with it, say so at once") {
  const deadline limit("the wrong scheme");
  web_server plain([](web_peer& peer) {  // as most servers answer what is no request
    peer.send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  std::string secure = plain.at("/a");
  secure.insert(4, "s");
  const ps::error e = web_error_of([&] { first_of(session_of(secure)); });
  INFO(e.what());
  CHECK(says(e, "does not speak TLS at this port; write http://"));
  CHECK(e.recurs());
  web_server tls([](web_peer& peer) {  // as TLS answers what is no handshake: a fatal alert
    web_request request;
    if (peer.next(request)) peer.send(std::string("\x15\x03\x01\x00\x02\x02\x46", 7));
  });
  const ps::error other = web_error_of([&] { first_of(session_of(tls.at("/a"))); });
  INFO(other.what());
  CHECK(says(other, "speaks TLS at this port; write https://"));
  CHECK(other.recurs());
}

TEST_CASE("storage/http: a stop token ends whatever waits for a server, a plan that is made included") {
  const deadline limit("stop tokens");
  web_server says_nothing(silent());
  web_server busy(answering(
      [](const web_request&) { return web_answer("503 Service Unavailable", "Retry-After: 30\r\n", ""); }));
  for (const std::string& where : {says_nothing.at("/a.tar"), busy.at("/a.tar")}) {
    std::stop_source stop;
    const ps::error e = stopped(stop, [&] {
      (void)ps::webdataset(ps::http({where.c_str()}, without_proxies({.stop = stop.get_token()})));
    });
    INFO(e.what());
    CHECK(e.code() == ps::errc::stopped);
    // From then on nothing is asked.
    const ps::error later =
        web_error_of([&] { first_of(session_of_all(where, without_proxies({.stop = stop.get_token()}))); });
    CHECK(later.code() == ps::errc::stopped);
  }
  {
    const std::string where = says_nothing.at("/a.tar");
    std::stop_source stop;
    const ps::http shards(where, {.stop = stop.get_token()});
    stop.request_stop();
    CHECK(web_error_of([&] { (void)shards.connect().size(0); }).code() == ps::errc::stopped);
  }
  for (web_server* const server : {&says_nothing, &busy}) {
    std::stop_source stop;
    ps::s3_options options = s3_at(server->at(""));
    options.connection.retries = {};
    options.connection.stop = stop.get_token();
    const ps::error e = stopped(stop, [&] { (void)ps::s3::list("s3://bucket/a", options); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::stopped);
  }
}

TEST_CASE(
    "storage/http: a stop token ends the wait for credentials, for a catalogue and for the index of a plan") {
  const deadline limit("stop tokens before there is a plan");
  web_server says_nothing(silent());
  std::stop_source stop;
  ps::s3_options store = s3_at("http://127.0.0.1:1");
  store.identity.credentials.reset();
  store.environment = ps::s3_environment(
      {std::pair<std::string, std::string>("AWS_CONTAINER_CREDENTIALS_FULL_URI", says_nothing.at("/role"))});
  store.connection.retries = {};
  store.connection.stop = stop.get_token();
  CHECK(stopped(stop, [&] { (void)ps::webdataset(ps::s3("bucket/a.tar", store)); }).code() ==
        ps::errc::stopped);
  stop = std::stop_source();
  CHECK(stopped(stop, [&] {
          (void)ps::iceberg_location(says_nothing.at(""), "a.b",
                                     {.connection = without_proxies({.stop = stop.get_token()})});
        }).code() == ps::errc::stopped);
  // The size is known; the bytes of the index never come.
  web_server knows_sizes([](web_peer& peer) {
    web_request request;
    while (peer.next(request)) {
      if (request.method() != "HEAD") return peer.stall();
      if (!peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10240\r\nETag: \"a\"\r\n\r\n")) return;
    }
  });
  stop = std::stop_source();
  CHECK(stopped(stop, [&] {
          (void)ps::webdataset(
              ps::http(knows_sizes.at("/{0..9}.tar"), without_proxies({.stop = stop.get_token()})));
        }).code() == ps::errc::stopped);
}

TEST_CASE("storage/http: making a plan over a server that says nothing ends by itself") {
  const deadline limit("a plan over a server that says nothing");
  web_server says_nothing(silent());
  ps::http_options options = without_proxies({.first_byte_time = 30ms});
  options.retries = {.attempts = 100'000, .initial_backoff = 1ms, .max_backoff = 2ms, .max_time = 50ms};
  const ps::error e =
      web_error_of([&] { (void)ps::webdataset(ps::http(says_nothing.at("/{0..9}.tar"), options)); });
  INFO(e.what());
  CHECK(says(e, "no answer within 30 ms"));
  CHECK(says(e, "retrying_options::max_time"));
}

TEST_CASE("storage/http: one line says what is waited for") {
  const deadline limit("a line of warning");
  web_server says_nothing(silent());
  web_server slow(dripping(thousand_bytes, "x"));
  web_server busy(answering(
      [](const web_request&) { return web_answer("503 Service Unavailable", "Retry-After: 0\r\n", ""); }));
  const nowhere none;
  struct {
    std::string where;
    std::string_view reason;
  } const cases[] = {{says_nothing.at("/a"), "no answer for 0 s"},
                     {slow.at("/a"), " bytes came in 0 s"},
                     {busy.at("/a"), "the server cannot answer now (503)"},
                     {none.url(), "cannot connect to"}};
  for (const auto& each : cases) {
    ps::http_options options =
        without_proxies({.first_byte_time = 150ms, .throughput_window = 150ms, .warn_after = 40ms});
    options.retries = {.attempts = 1000,
                       .initial_backoff = 2ms,
                       .max_backoff = 4ms,
                       .max_time = 300ms,
                       .max_unreachable_time = 300ms,
                       .budget = 0};
    options.throttle.max_in_flight = 0;
    options.hedges.max_extra_requests = 0;
    std::vector<std::string> lines;
    {
      error_stream seen;
      (void)web_error_of([&] { first_of(session_of_all(each.where, options), 1000); });
      lines = seen.lines();
    }
    CAPTURE(each.where, lines.size());
    REQUIRE(lines.size() == 1);
    INFO(lines[0]);
    CHECK(lines[0].starts_with("penstock: "));
    CHECK(lines[0].find(each.where) != std::string::npos);
    CHECK(lines[0].find(each.reason) != std::string::npos);

    options.warn_after = 0ms;
    error_stream quiet;
    (void)web_error_of([&] { first_of(session_of_all(each.where, options), 1000); });
    CHECK(quiet.lines().empty());
  }
}
