// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/storage/s3/requests/percent.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail::s3 {

/// Dates are whole seconds since 1970, so that no clock's resolution decides how far they reach.
using wall_time = std::chrono::sys_seconds;

/// Reads numbers and separators of a date one after another.
class date_reader {
 public:
  explicit date_reader(std::string_view rest) : rest_(rest) {}
  /// Exactly `digits` digits.
  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (rest_.empty() || !is_digit(rest_.front())) {
        good_ = false;
        return 0;
      }
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return value;
  }
  /// One of these characters.
  char one_of(std::string_view choices) {
    if (rest_.empty() || choices.find(rest_.front()) == std::string_view::npos) {
      good_ = false;
      return choices.front();
    }
    const char found = rest_.front();
    rest_.remove_prefix(1);
    return found;
  }
  void word(std::string_view expected) {
    if (!rest_.starts_with(expected)) {
      good_ = false;
    } else {
      rest_.remove_prefix(expected.size());
    }
  }
  [[nodiscard]] std::string_view letters(std::size_t count) {
    const std::string_view found = rest_.substr(0, count);
    good_ = good_ && found.size() == count;
    rest_.remove_prefix(found.size());
    return found;
  }
  void fraction() {
    if (rest_.empty() || rest_.front() != '.') return;
    rest_.remove_prefix(1);
    (void)number(1);
    while (!rest_.empty() && is_digit(rest_.front())) rest_.remove_prefix(1);
  }
  [[nodiscard]] bool done() const noexcept { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

[[nodiscard]] inline std::optional<wall_time> time_of(int year, int month, int day, int hour, int minute,
                                                      int second) {
  using namespace std::chrono_literals;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;  // 60: a leap second
  return std::chrono::sys_days(date) + hour * 1h + minute * 1min + second * 1s;
}

/// `2026-11-23T20:15:00Z`, with a fraction of a second and an offset if there are any: RFC 3339, as
/// credentials give their end. A fraction is cut off.
[[nodiscard]] inline std::optional<wall_time> parse_rfc3339(std::string_view chars) {
  date_reader in(chars);
  const int year = in.number(4);
  in.one_of("-");
  const int month = in.number(2);
  in.one_of("-");
  const int day = in.number(2);
  in.one_of("Tt ");
  const int hour = in.number(2);
  in.one_of(":");
  const int minute = in.number(2);
  in.one_of(":");
  const int second = in.number(2);
  in.fraction();
  std::chrono::minutes ahead{0};
  if (const char zone = in.one_of("Zz+-"); zone == '+' || zone == '-') {
    const int hours = in.number(2);
    in.one_of(":");
    const int minutes = in.number(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    ahead = std::chrono::minutes((zone == '+' ? 1 : -1) * (hours * 60 + minutes));
  }
  if (!in.done()) return std::nullopt;
  const auto local = time_of(year, month, day, hour, minute, second);
  return local ? std::optional<wall_time>(*local - ahead) : std::nullopt;
}

inline constexpr std::array<std::string_view, 12> month_names{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// `Mon, 23 Nov 2026 20:15:00 GMT`, as the headers Date and Retry-After have it. The two older spellings of
/// RFC 9110, which nobody sends any more, are not read.
[[nodiscard]] inline std::optional<wall_time> parse_http_date(std::string_view chars) {
  date_reader in(trimmed(chars));
  (void)in.letters(3);
  in.word(", ");
  const int day = in.number(2);
  in.one_of(" ");
  const std::string_view name = in.letters(3);
  in.one_of(" ");
  const int year = in.number(4);
  in.one_of(" ");
  const int hour = in.number(2);
  in.one_of(":");
  const int minute = in.number(2);
  in.one_of(":");
  const int second = in.number(2);
  in.word(" GMT");
  if (!in.done()) return std::nullopt;
  for (std::size_t i = 0; i < month_names.size(); ++i)
    if (month_names[i] == name) return time_of(year, static_cast<int>(i) + 1, day, hour, minute, second);
  return std::nullopt;
}

/// `20261123T201500Z`, into `line`.
inline void write_amz_date(std::string& line, wall_time when) {
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(when - day);
  const auto digits = [&line](unsigned value, unsigned first) {
    for (unsigned at = first; at != 0; at /= 10) line += static_cast<char>('0' + value / at % 10);
  };
  line.clear();
  digits(static_cast<unsigned>(static_cast<int>(date.year())), 1000);
  digits(static_cast<unsigned>(date.month()), 10);
  digits(static_cast<unsigned>(date.day()), 10);
  line += 'T';
  digits(static_cast<unsigned>(clock.hours().count()), 10);
  digits(static_cast<unsigned>(clock.minutes().count()), 10);
  digits(static_cast<unsigned>(clock.seconds().count()), 10);
  line += 'Z';
}

}  // namespace penstock::inline v0_1::detail::s3
