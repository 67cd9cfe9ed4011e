// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/throttled.hpp>
#include <penstock/storage/url.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `http`. None of them changes the bytes.
struct http_options {
  /// The maximum number of connections of a session, and so of requests in flight; others wait in order. A
  /// connection is opened when a request needs one, and a run has no more requests in flight than make it
  /// faster.
  std::size_t connections = 64;
  /// The time to reach the server: to look up its name, connect, and agree on TLS.
  std::chrono::milliseconds connect_time{10'000};
  /// The time from a request to the header of its answer. Provisional answers (1xx) do not extend it.
  std::chrono::milliseconds first_byte_time{30'000};
  /// The longest time without a further byte of an answer.
  std::chrono::milliseconds progress_time{30'000};
  /// An answer that brings fewer bytes per second than this, over each `throughput_window`, is given up; 0:
  /// none is. As `--speed-limit` and `--speed-time` of curl.
  std::uint64_t min_throughput = 1024;
  std::chrono::milliseconds throughput_window{30'000};
  /// The time of a request from its start to the last byte of its answer, redirects included. It gets one
  /// more millisecond for each 256 bytes that it sends, and for each 16 bytes of the range that it asks for.
  std::chrono::milliseconds max_time{300'000};
  /// A connection that was idle for longer is not used again: what lies between may have forgotten it.
  std::chrono::milliseconds idle_time{30'000};
  /// A file of certificates (PEM) to trust instead of the system's.
  std::string ca_file = {};
  /// Whether the server must prove by its certificate that it is the host. Switch this off for tests only.
  bool verify = true;
  /// Whether to use the proxies that the environment names: http_proxy, https_proxy, all_proxy and no_proxy.
  bool proxies = true;
  /// What to send with each request beside its own headers: `{{"Authorization", "Bearer " + token}}`. It is
  /// for the servers that the URLs name, and is not sent to another one that a redirect leads to. No name,
  /// error, description, counter or state shows it. `s3` has credentials of its own, and sends none of this.
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// How reads that fail are tried again; `{.attempts = 1}`: they are not.
  retrying_options retries = {};
  /// How many reads are in flight: as many as `connections` unless `max_in_flight` is less, and fewer after
  /// the server asked for that; `{.max_in_flight = 0}`: always as many as are wanted.
  throttled_options throttle = {};
  /// When a read that is late gets a second request; `{.max_extra_requests = 0}`: none.
  hedged_options hedges = {};
  /// After so long without a good answer, one line on the standard error stream names the object that is
  /// waited for, and why; 0: none. No other line follows within a minute.
  std::chrono::milliseconds warn_after{5'000};
  /// Ends all requests and waits of all sessions, of lists, catalogues and credentials, with errc::stopped,
  /// while a plan is made as while it runs: `http(urls, {.stop = source.get_token()})`.
  std::stop_token stop = {};
};

namespace detail {

/// Throws errc::argument for options that make no sense.
void check(const http_options& options);

/// What is done about requests that fail or are late. `attempts` of 1, `max_in_flight` of 0 and a
/// `max_extra_requests` of 0 switch it off. No more reads than `connections` are let through in any case:
/// more would wait inside, where they would look late. Throws errc::argument for options that make no sense.
[[nodiscard]] retry_policy policy_of(const http_options& options);
}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/http_options.ipp>
#endif
