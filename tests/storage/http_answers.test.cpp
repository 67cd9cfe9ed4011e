// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a server may answer, and what becomes of it.

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/http_error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

namespace {

/// The error of reading 10 bytes at offset 100 where the server answers GET with this; nothing if it
/// succeeds.
std::optional<ps::error> read_of(const std::string& answer, ps::http_options options = {}) {
  web_server server(answering([&](const web_request&) { return answer; }));
  const auto session = ps::http({server.at("/a?secret").c_str()}, direct(std::move(options))).connect();
  std::string into(10, 'x');
  try {
    session.read(0, 100, std::as_writable_bytes(std::span(into)));
  } catch (const ps::error& e) {
    CHECK(e.file() == server.at("/a?..."));
    CHECK(e.offset() == 100u);
    CHECK_FALSE(says(e, "secret"));
    return e;
  }
  CHECK(into == "0123456789");
  return std::nullopt;
}
std::string part(std::string_view headers, std::string_view body = "0123456789") {
  return web_answer("206 Partial Content", headers, body);
}

}  // namespace

TEST_CASE("storage/http: answers that are the range") {
  const deadline limit("good answers");
  CHECK_FALSE(read_of(part("Content-Range: bytes 100-109/1000\r\n")));
  CHECK(says(read_of(part("Content-Range: bytes 100-109/*\r\n")).value(), "does not tell how long"));
  CHECK_FALSE(read_of(part("content-range: bytes 100-109/1000\r\nContent-Encoding: identity\r\n")));
  CHECK_FALSE(read_of("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" +
                      part("Content-Range: bytes 100-109/1000\r\n")));
  const std::string head =
      "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-109/1000\r\nTransfer-Encoding: "
      "chunked\r\n\r\n";
  CHECK_FALSE(read_of(head + "4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n"));
}

TEST_CASE("storage/http: a connection that ends with the body") {
  const deadline limit("an answer that ends with its connection");
  web_server server([](web_peer& peer) {
    web_request request;
    if (peer.next(request)) peer.send("HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9/1000\r\n\r\n0123456789");
  });
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  for (int i = 0; i < 2; ++i) {
    std::string into(10, 'x');
    session.read(0, 0, std::as_writable_bytes(std::span(into)));
    CHECK(into == "0123456789");
  }
  CHECK(server.connections() == 2);
}

TEST_CASE("storage/http: answers that lie") {
  const deadline limit("lies");
  const std::vector<std::pair<std::string, const char*>> recurring{
      {web_answer("200 OK", "", std::string(1000, 'x')), "ignores ranges"},
      {web_answer("200 OK", "", "0123456789"), "ignores ranges"},
      {part("Content-Range: bytes 100-109/1000\r\nContent-Encoding: gzip\r\n"), "Content-Encoding: gzip"},
  };
  for (const auto& [answer, sentence] : recurring) {
    const auto failed = read_of(answer);
    REQUIRE(failed);
    INFO(failed->what());
    CHECK(says(*failed, sentence));
    CHECK(failed->code() == ps::errc::io);
    CHECK(failed->recurs());
  }
  const std::vector<std::pair<std::string, const char*>> passing{
      {part(""), "without a Content-Range that makes sense: \"\""},
      {part("Content-Range: bytes 109-100/1000\r\n"), "makes sense"},
      {part("Content-Range: bytes 0-9/1000\r\n"),
       "another range than was asked for: bytes 0 to 9, not 100 to 109"},
      {part("Content-Range: bytes 100-110/1000\r\n", "0123456789a"), "another range"},
      {part("Content-Range: bytes 100-108/1000\r\n", "012345678"), "another range"},
      {part("Content-Range: bytes 100-109/1000\r\n", "012345678"), "contradicts itself"},
      {part("Content-Range: bytes 100-109/1000\r\n", "0123456789a"), "contradicts itself"},
      {"HTTP/1.1 206 OK\r\nContent-Range: bytes 100-109/1000\r\nTransfer-Encoding: "
       "chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n",
       "more bytes than the range has"},
      {"HTTP/1.1 206 OK\r\nContent-Range: bytes 100-109/1000\r\nTransfer-Encoding: "
       "chunked\r\n\r\n4\r\n0123\r\n0\r\n\r\n",
       "after 4 of 10 bytes"},
      {"HTTP/1.1 206 OK\r\nContent-Range: bytes 100-109/1000\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
       "is no HTTP/1.1"},
      {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "is no HTTP/1.1"},
      {"HTTP/1.1 062 OK\r\nContent-Length: 1\r\n\r\nx", "is no HTTP/1.1: bad status"},
      {"HTTP/1.1 206 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "is no HTTP/1.1"},
      {"HTTP/1.1 206 OK\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", "header"},
      {"HTTP/1.1 206 OK\r\n" + std::string(100'000, 'x'), "header"},
  };
  for (const auto& [answer, sentence] : passing) {
    const auto failed = read_of(answer);
    INFO(answer.substr(0, 200));
    REQUIRE(failed);
    INFO(failed->what());
    CHECK(says(*failed, sentence));
    CHECK(failed->code() == ps::errc::io);
    CHECK_FALSE(failed->recurs());
  }
}

TEST_CASE("storage/http: statuses") {
  const deadline limit("statuses");
  for (const char* status :
       {"401 Unauthorized", "403 Forbidden", "404 Not Found", "410 Gone", "412 Precondition Failed",
        "400 Bad Request", "405 Not Allowed", "300 Multiple Choices", "204 No Content"}) {
    const auto failed = read_of("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: 0\r\n\r\n");
    INFO(status);
    REQUIRE(failed);
    CHECK(says(*failed, std::string(status).substr(0, 3)));
    CHECK(failed->code() == ps::errc::io);
    CHECK(failed->recurs());
  }
  for (const char* status :
       {"408 Request Timeout", "429 Too Many Requests", "500 Error", "502 Bad Gateway", "503 Slow Down"}) {
    const auto failed = read_of(web_answer(status, "Retry-After: 3\r\n", "an explanation"));
    INFO(status);
    REQUIRE(failed);
    CHECK(says(*failed, std::string(status).substr(0, 3)));
    CHECK(says(*failed, "it asks to wait 3 s"));
    CHECK_FALSE(failed->recurs());
  }
}

TEST_CASE("storage/http: an error's body is read, and its connection serves the next request") {
  const deadline limit("errors between reads");
  int count = 0;
  web_server server(answering([&](const web_request& request) {
    switch (++count) {
      case 1:
        return web_answer("503 Busy", "", std::string(50'000, 'x'));
      case 2:
        return std::string("HTTP/1.1 500 Error\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
      default:
        return web_object(request, web_content(1000));
    }
  }));
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  std::string into(10, 'x');
  for (int i = 0; i < 2; ++i)
    CHECK_THROWS_AS(session.read(0, 0, std::as_writable_bytes(std::span(into))), ps::http_error);
  session.read(0, 0, std::as_writable_bytes(std::span(into)));
  CHECK(into == web_content(1000).substr(0, 10));
  CHECK(server.connections() == 1);
}

TEST_CASE("storage/http: a whole object needs no ranges") {
  const deadline limit("a server without ranges");
  const std::string bytes = web_content(5000);
  web_server server(answering([&](const web_request& request) {
    return request.method() == "HEAD" ? web_answer("405 Not Allowed", "", "")
                                      : web_answer("200 OK", "", bytes);
  }));
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  CHECK(session.size(0) == 5000);
  CHECK(session.version(0).stamp == 0);
  std::string into(5000, 'x');
  session.read(0, 0, std::as_writable_bytes(std::span(into)));
  CHECK((into == bytes));
  into.resize(4999);
  CHECK(says(web_error_of([&] { session.read(0, 0, std::as_writable_bytes(std::span(into))); }),
             "ignores ranges"));
}

TEST_CASE("storage/http: a range that comes with 200 is one if the answer says so in each way") {
  const deadline limit("ranges with 200");
  const std::string bytes = web_content(5000);
  const auto session_with = [&](std::string range, std::size_t size) {
    return std::make_unique<web_server>(answering([&bytes, range, size](const web_request& request) {
      if (request.method() == "HEAD") return web_answer("405 Not Allowed", "", "");
      if (request.header("Range") == "bytes=0-0")
        return web_answer("200 OK", "Content-Range: bytes 0-0/5000\r\n", bytes.substr(0, 1));
      return web_answer("200 OK", "Content-Range: " + range + "\r\n", bytes.substr(100, size));
    }));
  };
  const auto read = [](const web_server& server) {
    const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
    CHECK(session.size(0) == 5000);
    std::string into(10, 'x');
    session.read(0, 100, std::as_writable_bytes(std::span(into)));
    return into;
  };
  CHECK(read(*session_with("bytes 100-109/5000", 10)) == bytes.substr(100, 10));
  const std::vector<std::pair<std::string, std::size_t>> others{
      {"bytes 100-109/*", 10}, {"bytes 100-109/5000", 11}, {"nonsense", 10}, {"bytes */5000", 10}};
  for (const auto& [range, size] : others) {
    INFO(range);
    CHECK(says(web_error_of([&] { (void)read(*session_with(range, size)); }), "ignores ranges"));
  }
  CHECK(says(web_error_of([&] { (void)read(*session_with("bytes 101-110/5000", 10)); }), "another range"));
}

TEST_CASE("storage/http: the size without HEAD") {
  const deadline limit("sizes");
  for (const char* refused : {"403 Forbidden", "405 Not Allowed", "501 Not Implemented", "400 Bad Request"}) {
    web_server server(answering([&](const web_request& request) {
      return request.method() == "HEAD" ? "HTTP/1.1 " + std::string(refused) + "\r\n\r\n"
                                        : web_object(request, web_content(777));
    }));
    const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
    CHECK(session.size(0) == 777);
    CHECK(session.version(0).stamp != 0);
    CHECK(session.report().counters.requests == 2);
    CHECK(server.connections() <= 2);
  }
  web_server gone(
      answering([&](const web_request&) { return std::string("HTTP/1.1 404 Not Found\r\n\r\n"); }));
  const auto session = ps::http({gone.at("/a?secret").c_str()}, direct()).connect();
  const ps::error e = web_error_of([&] { (void)session.size(0); });
  CHECK(says(e, "no such object (404)"));
  CHECK(e.recurs());
  CHECK(e.file() == gone.at("/a?..."));
  web_server unknown(answering([&](const web_request& request) {
    return request.method() == "HEAD" ? std::string("HTTP/1.1 200 OK\r\n\r\n")
                                      : part("Content-Range: bytes 0-0/*\r\n", "x");
  }));
  CHECK(says(web_error_of([&] { (void)ps::http({unknown.at("/").c_str()}, direct()).connect().size(0); }),
             "does not tell how long"));
}

TEST_CASE("storage/http: an object that was replaced is an error, never a mixture") {
  const deadline limit("replaced objects");
  struct version {
    const char* etag;
    std::size_t size;
  };
  for (const auto& [before, after] : {std::pair<version, version>{{"\"one\"", 1000}, {"\"two\"", 1000}},
                                      {{"\"one\"", 1000}, {"\"one\"", 999}},
                                      {{"W/\"one\"", 1000}, {"W/\"two\"", 1000}},
                                      {{"", 1000}, {"", 1001}}}) {
    for (const bool known : {true, false}) {
      std::atomic<bool> replaced{false};
      web_server server(answering([&, was = before, is = after](const web_request& request) {
        const version& now = replaced ? is : was;
        return web_object(request, web_content(now.size), now.etag);
      }));
      const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
      std::string into(10, 'x');
      if (known) CHECK(session.size(0) == 1000);
      session.read(0, 5, std::as_writable_bytes(std::span(into)));
      CHECK(into == web_content(1000).substr(5, 10));
      replaced = true;
      const ps::error e = web_error_of([&] { session.read(0, 5, std::as_writable_bytes(std::span(into))); });
      INFO(e.what());
      CHECK(says(e, "the object was replaced"));
      CHECK(e.code() == ps::errc::io);
      CHECK(e.recurs());
      CHECK(session.version(0).size == 1000);
    }
  }
}

TEST_CASE("storage/http: the stamp is that of the ETag, or of the date") {
  const deadline limit("stamps");
  const auto stamp_of = [](const std::string& headers) {
    web_server server(answering(
        [&](const web_request&) { return "HTTP/1.1 200 OK\r\n" + headers + "Content-Length: 5\r\n\r\n"; }));
    return ps::http({server.at("/a").c_str()}, direct()).connect().version(0).stamp;
  };
  const auto one = stamp_of("ETag: \"one\"\r\n"),
             dated = stamp_of("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
  CHECK(one == stamp_of("ETag: \"one\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  CHECK(one == stamp_of("ETag: W/\"one\"\r\n"));
  CHECK(one != stamp_of("ETag: \"two\"\r\n"));
  CHECK(one != dated);
  CHECK(dated != stamp_of("Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n"));
}

TEST_CASE("storage/http: what a server says unasked is nobody's answer") {
  const deadline limit("unasked answers");
  const std::string bytes = web_content(1000);
  for (const char* unasked :
       {"HTTP/1.1 206 OK\r\nETag: \"one\"\r\nContent-Range: bytes 0-9/1000\r\nContent-Length: "
        "10\r\n\r\nSTALE DATA",
        "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"}) {
    std::atomic<int> sent{0};
    web_server server([&](web_peer& peer) {
      web_request request;
      if (!peer.next(request)) return;
      peer.send(web_object(request, bytes));
      std::this_thread::sleep_for(20ms);  // after the client has taken the answer
      peer.send(unasked);
      ++sent;
      peer.stall();
    });
    const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
    for (int i = 0; i < 2; ++i) {
      std::string into(10, 'x');
      session.read(0, 0, std::as_writable_bytes(std::span(into)));
      CHECK(into == bytes.substr(0, 10));
      while (sent == i) std::this_thread::sleep_for(1ms);
    }
  }
}

TEST_CASE("storage/http: an object that was replaced by a shorter one is no bad sample") {
  const deadline limit("a shorter object");
  std::atomic<bool> replaced{false};
  web_server server(answering([&](const web_request& request) {
    web_request lenient = request;  // a server that ignores If-Match
    if (const auto at = lenient.head.find("If-Match"); at != std::string::npos) lenient.head.erase(at, 8);
    return web_object(lenient, web_content(replaced ? 500 : 1000), replaced ? "\"two\"" : "\"one\"");
  }));
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  std::string into(10, 'x');
  session.read(0, 0, std::as_writable_bytes(std::span(into)));
  replaced = true;
  for (const std::uint64_t offset : {495u, 700u}) {
    const ps::error e =
        web_error_of([&] { session.read(0, offset, std::as_writable_bytes(std::span(into))); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs());
    CHECK(says(e, "was replaced"));
  }
}

TEST_CASE("storage/http: a refusal whose body is cut is still that refusal") {
  const deadline limit("cut refusals");
  web_server server([&](web_peer& peer) {
    web_request request;
    if (peer.next(request)) peer.send("HTTP/1.1 404 Not Found\r\nContent-Length: 100\r\n\r\nabc");
  });
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  std::string into(10, 'x');
  const ps::error e = web_error_of([&] { session.read(0, 0, std::as_writable_bytes(std::span(into))); });
  INFO(e.what());
  CHECK(says(e, "(404)"));
  CHECK(e.recurs());
}
