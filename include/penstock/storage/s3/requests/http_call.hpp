// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/storage/s3/requests/percent.hpp>
#include <penstock/storage/url.hpp>

#include <chrono>
#include <span>
#include <vector>

namespace penstock::inline v0_1::detail::s3 {

/// A header of a request or an answer, or a parameter of a query, which is not encoded.
struct name_value {
  std::string name;
  std::string value;
};

/// An answer as a whole. It may hold credentials: nothing prints it.
struct http_answer {
  int status = 0;
  std::vector<name_value> headers;
  std::string body;
};

/// The first header of that name; names have no case.
[[nodiscard]] inline std::optional<std::string_view> header_of(std::span<const name_value> headers,
                                                               std::string_view name) noexcept {
  for (const name_value& one : headers)
    if (equal_but_for_case(one.name, name)) return trimmed(one.value);
  return std::nullopt;
}

/// A request as a whole. It may hold tokens: nothing prints it.
struct http_request {
  std::string method = "GET";
  url to;
  std::vector<name_value> headers;
  std::string body;
  /// When the answer must have come, from the call on; then `send` throws errc::io.
  std::chrono::milliseconds deadline{1000};
  /// The answer is cut off as errc::io if its body is longer.
  std::size_t max_body_size = std::size_t{1} << 20;
};

/// Who sends small requests for whoever needs credentials or a list, and waits for the answer. `send` follows
/// no redirect, throws errc::io when there is no answer, and may be called by several threads.
struct http_call {
  void* self = nullptr;
  http_answer (*send)(void* self, const http_request& request) = nullptr;

  [[nodiscard]] http_answer operator()(const http_request& request) const { return send(self, request); }
};

}  // namespace penstock::inline v0_1::detail::s3
