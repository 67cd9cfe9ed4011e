// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/http_options.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"

#include <chrono>

namespace ps = penstock;
using namespace std::chrono_literals;

TEST_CASE("storage/http_options: options that make no sense are refused") {
  CHECK_NOTHROW(ps::detail::check({}));
  CHECK_NOTHROW(ps::detail::check({.connections = 4096, .connect_time = 1ms, .idle_time = 24h}));
  for (const ps::http_options& bad :
       {ps::http_options{.connections = 0}, ps::http_options{.connections = 4097},
        ps::http_options{.connect_time = 0ms}, ps::http_options{.first_byte_time = -1ms},
        ps::http_options{.progress_time = 25h}, ps::http_options{.idle_time = 0ms}}) {
    try {
      ps::detail::check(bad);
      FAIL("accepted");
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::argument);
    }
  }
}

TEST_CASE("storage/http_options: retries, limit and second requests that make no sense are refused, too") {
  for (const ps::http_options& bad :
       {ps::http_options{.retries = {.attempts = 0}}, ps::http_options{.hedges = {.max_extra_requests = 2}},
        ps::http_options{.throttle = {.max_retry_after = -1ms}}})
    CHECK_THROWS_AS(ps::http("http://h/", bad), ps::error);
  CHECK_NOTHROW(ps::http("http://h/", {.throttle = {.max_in_flight = 0}}));
}

TEST_CASE("storage/http_options: as many reads as connections are let through, unless fewer are asked for") {
  const auto allowed = [](const ps::http_options& options) {
    return ps::http("http://h/", options).connect().report().max_in_flight;
  };
  CHECK(allowed({}) == 64);
  CHECK(allowed({.connections = 256}) == 256);
  CHECK(allowed({.connections = 256, .throttle = {.max_retry_after = 1s}}) == 256);
  CHECK(allowed({.connections = 256, .throttle = {.max_in_flight = 8}}) == 8);
  CHECK(allowed({.connections = 16, .throttle = {.max_in_flight = 64}}) == 16);
  CHECK(allowed({.connections = 256, .throttle = {.max_in_flight = 0}}) == 256);
}
