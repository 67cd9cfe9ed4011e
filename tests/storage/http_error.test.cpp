// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/http_error.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <string_view>

namespace ps = penstock;
using namespace std::chrono_literals;
using ps::detail::parse_content_range;

TEST_CASE("storage/http_error: which answers recur") {
  for (const unsigned status : {408u, 429u, 500u, 502u, 503u, 504u, 507u, 599u}) {
    INFO(status);
    CHECK_FALSE(ps::detail::answer_error(status).recurs());
  }
  for (const unsigned status :
       {204u, 300u, 304u, 400u, 401u, 403u, 404u, 405u, 407u, 410u, 412u, 416u, 451u, 501u, 505u}) {
    INFO(status);
    const ps::http_error made = ps::detail::answer_error(status);
    CHECK(made.recurs());
    CHECK(made.code() == ps::errc::io);
    CHECK(made.message().find(std::to_string(status)) != std::string_view::npos);
    CHECK(made.status() == status);
  }
}

TEST_CASE("storage/http_error: the status and the time to wait stay with a thrown error") {
  try {
    auto made = ps::detail::answer_error(503, 7s);
    made.in_file("http://h/a");
    std::rethrow_exception(std::make_exception_ptr(made));
  } catch (const ps::http_error& e) {
    CHECK(e.status() == 503);
    CHECK(e.retry_after_ms() == 7000);
    CHECK(e.file() == "http://h/a");
    CHECK(e.message() == "the server cannot answer now (503); it asks to wait 7 s");
    CHECK_FALSE(e.recurs());
  }
}

TEST_CASE("storage/http_error: which answers ask for fewer requests, and which came too late") {
  for (const unsigned status : {429u, 503u}) CHECK(ps::detail::answer_error(status).retry_after_ms() == 0);
  for (const unsigned status : {408u, 500u, 504u, 404u})
    CHECK_FALSE(ps::detail::answer_error(status, 7s).retry_after_ms().has_value());
  CHECK(ps::detail::answer_error(504).timed_out());
  CHECK_FALSE(ps::detail::answer_error(503).timed_out());
}

TEST_CASE("storage/http_error: what Retry-After says") {
  using ps::detail::parse_retry_after;
  constexpr std::int64_t then = 784'111'777;  // Sun, 06 Nov 1994 08:49:37 GMT
  CHECK(parse_retry_after("120", 0) == 120s);
  CHECK(parse_retry_after("0", 0) == 0s);
  CHECK(parse_retry_after("999999999999", 0) == 86'400s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", then - 30) == 30s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", then + 30) == 0s);
  CHECK(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 0) == 86'400s);
  for (const char* text :
       {"", "-1", "1.5", "soon", "Sun, 06 Nox 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "99999999999999999999"}) {
    INFO(text);
    CHECK_FALSE(parse_retry_after(text, 0).has_value());
  }
}

TEST_CASE("storage/http_error: what Content-Range says") {
  const auto whole = parse_content_range("bytes 0-9/10");
  REQUIRE(whole.has_value());
  CHECK(*whole == ps::detail::content_range{true, 0, 9, 10});
  CHECK(*parse_content_range("bytes 5-5/*") == ps::detail::content_range{true, 5, 5, {}});
  CHECK(*parse_content_range("bytes */0") == ps::detail::content_range{false, 0, 0, 0});
  for (const char* text :
       {"", "bytes", "bytes ", "bytes 0-9", "bytes 9-0/10", "bytes 0-10/10", "bytes */*", "items 0-9/10",
        "bytes -9/10", "bytes 0-/10", "bytes 0-9/", "bytes 0-9/x", "bytes a-b/c", "bytes 0 - 9/10",
        "bytes 0-99999999999999999999/*", "bytes 0-9/10 "}) {
    INFO(text);
    CHECK_FALSE(parse_content_range(text).has_value());
  }
}

TEST_CASE("http_error: an ETag of a time and a size is known by its size") {
  using ps::detail::is_of_time;
  CHECK(is_of_time("\"5f3c1a2b-2800\"", 10240));            // nginx
  CHECK(is_of_time("2800-5d0a7c3b1f2c0", 10240));           // Apache
  CHECK(is_of_time("\"1a2b-2800-5d0a7c3b1f2c0\"", 10240));  // with an inode
  CHECK_FALSE(is_of_time("\"5f3c1a2b-2801\"", 10240));
  CHECK_FALSE(is_of_time("\"9bb58f26192e4ba00f01e2e7b136bbd8\"", 10240));    // S3
  CHECK_FALSE(is_of_time("\"9bb58f26192e4ba00f01e2e7b136bbd8-5\"", 10240));  // of five parts
  CHECK_FALSE(is_of_time("\"0x8DB1C5A6E7F0000\"", 10240));
  CHECK_FALSE(is_of_time("\"CPjk6bqEl\"", 10240));
  CHECK_FALSE(is_of_time("\"2800\"", 10240));
  CHECK_FALSE(is_of_time("\"\"", 0));
  CHECK_FALSE(is_of_time("", 0));
  CHECK_FALSE(is_of_time("-", 0));
}
