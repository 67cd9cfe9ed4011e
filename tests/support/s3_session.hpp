// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_options.hpp>

#include "support/catch.hpp"
#include "support/s3_server.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// What every secret of these tests has in it, and nothing else.
inline constexpr std::string_view secret_mark = "SeCrEt";

/// Texts that must not show a secret.
inline void shows_no_secret(std::string_view text) {
  INFO(text);
  CHECK(text.find(secret_mark) == std::string_view::npos);
}

/// Options for a store at an endpoint, without this machine's environment. Each read is one request, unless
/// `retries` and `hedges` of the connection say otherwise.
inline penstock::s3_options s3_at(std::string endpoint, penstock::s3_credentials as) {
  penstock::s3_options options;
  options.place = {.region = "us-east-1", .endpoint = std::move(endpoint)};
  options.identity.credentials = std::move(as);
  options.connection.proxies = false;
  options.connection.retries.attempts = 1;
  options.connection.throttle.max_in_flight = 0;
  options.connection.hedges.max_extra_requests = 0;
  options.environment = penstock::s3_environment();
  return options;
}
inline penstock::s3_options s3_at(std::string endpoint) {
  return s3_at(std::move(endpoint), {"key-id", "SeCrEt-of-key", "SeCrEt-token"});
}
inline penstock::s3_options s3_at(const s3_server& server) {
  return s3_at(server.endpoint(), {server.key(), server.secret()});
}

/// A range of an object.
template <class Session>
std::string s3_read(Session&& session, penstock::object_id id, std::uint64_t offset, std::size_t size) {
  std::string into(size, 'x');
  session.read(id, offset, std::as_writable_bytes(std::span(into)));
  return into;
}

/// The error that `f` must throw, which shows no secret.
template <class F>
penstock::error s3_error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const penstock::error& e) {
    shows_no_secret(e.what());
    return e;
  }
  FAIL("no error was thrown");
  throw 0;
}

}  // namespace penstock_test
