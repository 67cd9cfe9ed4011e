// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/http_error.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE http_error answer_error(unsigned status, std::optional<std::chrono::seconds> retry_after) {
  struct row {
    unsigned status;
    std::string_view line;
  };
  static constexpr row rows[] = {
      {401, "the server wants to know who asks (401); give credentials, in http_options::headers"},
      {403, "the server refuses access (403); check the permissions, and whether a signed URL has expired"},
      {404, "the server has no such object (404); check the URL, and the numbers of a pattern"},
      {407, "the proxy wants to know who asks (407); name user and password in http_proxy or https_proxy"},
      {410, "the object was removed from the server (410)"},
      {412, "the object was replaced while it was read (412); start again with the new one"},
      {416, "the server does not have this range of the object (416); the object is shorter than expected"},
      {429, "the server gets more requests than it allows (429); use fewer connections"},
  };
  std::string line;
  if (const auto known = std::ranges::find(rows, status, &row::status); known != std::end(rows))
    line = known->line;
  else if (may_pass(status))
    append(line, {"the server cannot answer now (", status, ")"});
  else if (status >= 300 && status < 400)
    append(line, {"the server redirects (", status, ") without saying where"});
  else if (status >= 200 && status < 300)
    append(line, {"the server answered ", status, " without the bytes that were asked for"});
  else
    append(line, {"the server refused the request (", status, ")"});
  if (retry_after) append(line, {"; it asks to wait ", retry_after->count(), " s"});
  http_error made(errc::io, line, status);
  static_cast<void>(std::move(made).recurring(!may_pass(status)));
  if (status == 429 || status == 503) {
    const std::chrono::milliseconds pause = retry_after.value_or(std::chrono::seconds(0));
    static_cast<void>(std::move(made).asked_to_wait(static_cast<std::uint64_t>(pause.count())));
  }
  if (status == 408 || status == 504) static_cast<void>(std::move(made).after_time_out());
  return made;
}

PENSTOCK_INLINE std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
  if (text.empty() || text.size() > 19) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

PENSTOCK_INLINE std::optional<std::chrono::sys_seconds> time_of(
    const std::array<std::optional<std::uint64_t>, 6>& numbers) noexcept {
  if (std::ranges::any_of(numbers, [](const auto& one) { return !one || *one > 9999; })) return std::nullopt;
  const auto number = [&](std::size_t i) { return static_cast<int>(*numbers[i]); };
  const std::chrono::year_month_day date{std::chrono::year(number(0)),
                                         std::chrono::month(static_cast<unsigned>(number(1))),
                                         std::chrono::day(static_cast<unsigned>(number(2)))};
  if (!date.ok() || number(3) > 23 || number(4) > 59 || number(5) > 60) return std::nullopt;  // a leap second
  return std::chrono::sys_days(date) + std::chrono::hours(number(3)) + std::chrono::minutes(number(4)) +
         std::chrono::seconds(number(5));
}
PENSTOCK_INLINE std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) noexcept {
  if (text.size() != 29 || text[3] != ',' || text.substr(25) != " GMT") return std::nullopt;
  const auto part = [&](std::size_t at, std::size_t size) { return parse_digits(text.substr(at, size)); };
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::size_t month = months.find(text.substr(8, 3));
  if (month == months.npos || month % 3 != 0) return std::nullopt;
  return time_of({part(12, 4), month / 3 + 1, part(5, 2), part(17, 2), part(20, 2), part(23, 2)});
}

PENSTOCK_INLINE std::optional<std::chrono::seconds> parse_retry_after(std::string_view text,
                                                                      std::int64_t now) {
  constexpr std::int64_t day = 86'400;
  if (const auto given = parse_digits(text))
    return std::chrono::seconds(std::min<std::uint64_t>(*given, static_cast<std::uint64_t>(day)));
  const auto then = parse_http_date(text);
  if (!then) return std::nullopt;
  return std::chrono::seconds(std::clamp<std::int64_t>(then->time_since_epoch().count() - now, 0, day));
}

PENSTOCK_INLINE std::optional<content_range> parse_content_range(std::string_view text) noexcept {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  content_range made;
  const std::string_view range = text.substr(0, slash), total = text.substr(slash + 1);
  if (total != "*") {
    made.total = parse_digits(total);
    if (!made.total) return std::nullopt;
  }
  if (range == "*") return made.total ? std::optional(made) : std::nullopt;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_digits(range.substr(0, dash)), last = parse_digits(range.substr(dash + 1));
  if (!first || !last || *first > *last || (made.total && *last >= *made.total)) return std::nullopt;
  made.has_bytes = true;
  made.first = *first;
  made.last = *last;
  return made;
}

PENSTOCK_INLINE bool is_of_time(std::string_view tag, std::uint64_t size) noexcept {
  if (tag.size() >= 2 && tag.starts_with('"') && tag.ends_with('"')) tag = tag.substr(1, tag.size() - 2);
  std::size_t parts = 0;
  bool has_size = false;
  while (true) {
    const std::size_t end = std::min(tag.find('-'), tag.size());
    std::uint64_t number = 0;
    const auto [rest, problem] = std::from_chars(tag.data(), tag.data() + end, number, 16);
    if (problem != std::errc{} || rest != tag.data() + end) return false;
    has_size = has_size || number == size;
    ++parts;
    if (end == tag.size()) return has_size && parts > 1;
    tag.remove_prefix(end + 1);
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1
