// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/storage/s3/requests/percent.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
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

}  // namespace penstock::inline v0_1::detail::s3
