// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/http_options.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// Throws unless a header can be sent. What is wrong with a name may be that the secret is in it.
PENSTOCK_INLINE void check_header(std::string_view name, std::string_view value) {
  const auto may_name = [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), may_name))
    throw error(errc::argument,
                "http_options::headers has a name that no header may have; write the name and the value "
                "apart, as in {{\"Authorization\", \"Bearer \" + token}}");
  const auto is_control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; };
  if (std::any_of(value.begin(), value.end(), is_control))
    throw error(errc::argument,
                {"the header ", name, " of http_options::headers has a line break or another ",
                 "control character in its value; take it out"});
  const std::string lower = lowered(name);
  for (const std::string_view own :
       {"accept-encoding", "connection", "content-length", "expect", "host", "if-match", "if-range",
        "proxy-authorization", "range", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"})
    if (lower == own)
      throw error(errc::argument,
                  {"http sets the header ", name, " itself; leave it out of http_options::headers"});
}

PENSTOCK_INLINE void check(const http_options& options) {
  if (options.connections == 0 || options.connections > 4096)
    throw error(errc::argument,
                {"http keeps from 1 to 4096 connections, not ", options.connections, "; 64 is the default"});
  constexpr std::chrono::milliseconds least{1}, day{86'400'000};
  for (const auto time : {options.connect_time, options.first_byte_time, options.progress_time,
                          options.throughput_window, options.max_time, options.idle_time})
    if (time < least || time > day)
      throw error(errc::argument, {"http waits from 1 ms to a day, not ", time.count(), " ms"});
  if (options.warn_after.count() < 0 || options.warn_after > day)
    throw error(errc::argument, {"http warns after 0 ms to a day, not ", options.warn_after.count(), " ms"});
  for (const auto& [name, value] : options.headers) check_header(name, value);
}

PENSTOCK_INLINE retry_policy policy_of(const http_options& options) {
  retry_policy made = policy_of(options.retries, options.stop);
  if (options.throttle.max_in_flight != 0u) {
    made.max_pause = policy_of(options.throttle).max_pause;
    made.max_in_flight =
        std::min(options.throttle.max_in_flight.value_or(options.connections), options.connections);
  }
  const retry_policy second = policy_of(options.hedges);
  if (second.hedges->max_extra_requests > 0) made.hedges = second.hedges;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
