// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/storage/s3/requests/http_answer.hpp>
#include <penstock/storage/url.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace penstock::inline v0_1::detail::s3 {

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
