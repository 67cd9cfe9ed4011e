// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::inline v0_1 {

/// The error of a server's answer: what `error` says, with the answer's status. Answers 408, 429 and 5xx do
/// not recur (see `error::recurs`); all others do.
///
///     const auto is_busy = [](const http_error& e) { return e.status() == 503 && e.retry_after_ms() > 0; };
class http_error : public error {
 public:
  http_error(errc code, std::string_view message, unsigned status) : error(code, message), status_(status) {}

  [[nodiscard]] unsigned status() const noexcept { return status_; }

 private:
  unsigned status_;
};

namespace detail {

/// Whether an answer of this status may be another one next time: 408, 429 and 5xx, but for 501 and 505.
[[nodiscard]] constexpr bool may_pass(unsigned status) noexcept {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

/// What to say of an answer that is not the object's bytes, and what to do.
[[nodiscard]] http_error answer_error(unsigned status, std::optional<std::chrono::seconds> retry_after = {});

/// A number of at most 19 digits, and nothing else.
[[nodiscard]] std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept;

/// The time that six numbers are, of which the last is a second; nothing if one is missing or too large.
[[nodiscard]] std::optional<std::chrono::sys_seconds> time_of(
    const std::array<std::optional<std::uint64_t>, 6>& numbers) noexcept;

/// `Mon, 23 Nov 2026 20:15:00 GMT`. The two older spellings of RFC 9110, which nobody sends any more, are not
/// read.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) noexcept;

/// The value of Retry-After: seconds, or a date of HTTP relative to `now`, in seconds since 1970. At most a
/// day; nothing if it is neither.
[[nodiscard]] std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, std::int64_t now);

/// The value of Content-Range.
struct content_range {
  bool has_bytes = false;  // false: "bytes */total"
  std::uint64_t first = 0, last = 0;
  std::optional<std::uint64_t> total;
  friend bool operator==(const content_range&, const content_range&) = default;
};
/// Nothing for a text that is none, or contradicts itself.
[[nodiscard]] std::optional<content_range> parse_content_range(std::string_view text) noexcept;

/// Whether a server seems to have made an ETag of an object's time and size, as nginx and Apache do: numbers
/// in hexadecimal, joined by dashes, of which one is the size. Another file of this time and size has the
/// same.
[[nodiscard]] bool is_of_time(std::string_view tag, std::uint64_t size) noexcept;

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/http_error.ipp>
#endif
