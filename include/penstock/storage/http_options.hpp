// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace penstock::inline v0_1 {

/// Options of `http`. None of them changes the bytes.
struct http_options {
  /// The maximum number of connections of a session, and so of requests in flight; others wait in order.
  std::size_t connections = 16;
  /// The time to reach the server: to look up its name, connect, and agree on TLS.
  std::chrono::milliseconds connect_time{10'000};
  /// The time from a request to the first byte of its answer.
  std::chrono::milliseconds first_byte_time{30'000};
  /// The longest time without a further byte of an answer.
  std::chrono::milliseconds progress_time{30'000};
  /// A connection that was idle for longer is not used again: what lies between may have forgotten it.
  std::chrono::milliseconds idle_time{30'000};
  /// A file of certificates (PEM) to trust instead of the system's.
  std::string ca_file = {};
  /// Whether the server must prove by its certificate that it is the host. Switch this off for tests only.
  bool verify = true;
  /// Whether to use the proxies that the environment names: http_proxy, https_proxy, all_proxy and no_proxy.
  bool proxies = true;
};

namespace detail {
/// Throws errc::argument for options that make no sense.
void check(const http_options& options);
}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/http_options.ipp>
#endif
