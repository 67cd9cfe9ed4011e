// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/progress.hpp>

#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/ioctl.h>
#include <unistd.h>
#endif

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE bool is_terminal([[maybe_unused]] std::FILE* out) {
#if defined(__unix__) || defined(__APPLE__)
  return ::isatty(::fileno(out)) != 0;
#else
  return false;
#endif
}

/// The characters of a line of the terminal; 0 if it does not say.
inline std::size_t terminal_width([[maybe_unused]] std::FILE* out) {
#if defined(__unix__) || defined(__APPLE__)
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
#else
  return 0;
#endif
}

/// The first characters of a line of UTF-8.
inline std::string_view first_characters(std::string_view line, std::size_t count) {
  for (std::size_t i = 0; i < line.size(); ++i)
    if ((static_cast<unsigned char>(line[i]) & 0xc0u) != 0x80 && count-- == 0) return line.substr(0, i);
  return line;
}

/// "0:07", "1:02:03", "3 d 04:05:06"
inline std::string clock_text(double seconds) {
  constexpr double longest = 1e9;  // 31 years
  const auto all = static_cast<unsigned long long>(std::clamp(seconds, 0.0, longest));
  const unsigned long long days = all / 86'400, hours = all / 3600 % 24, minutes = all / 60 % 60;
  char text[64];
  if (days != 0)
    std::snprintf(text, sizeof text, "%llu d %02llu:%02llu:%02llu", days, hours, minutes, all % 60);
  else if (hours != 0)
    std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", hours, minutes, all % 60);
  else
    std::snprintf(text, sizeof text, "%llu:%02llu", minutes, all % 60);
  return text;
}

}  // namespace detail

PENSTOCK_INLINE void progress::begin(const run_counters& counters, std::uint64_t done) {
  first_ = counters;
  first_.stages.clear();
  done_ = done;
}

PENSTOCK_INLINE void progress::show(std::string_view name, double value) {
  for (auto& [known, number] : numbers_)
    if (known == name) {
      number = value;
      return;
    }
  numbers_.emplace_back(name, value);
}

PENSTOCK_INLINE std::string progress::line(const run_counters& counters) const {
  constexpr std::size_t width = 24;
  const run_counters c = since(counters, first_);
  const std::uint64_t done = done_ + ticks_;
  char text[256];
  std::string result = label_ + " ";
  if (total_ != 0) {
    const auto filled = detail::to_size(std::min(done, total_) * width / total_);
    result += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
  }
  detail::append(result, {done});
  if (total_ != 0) detail::append(result, {"/", total_});
  result += "  " + detail::clock_text(c.seconds);
  if (total_ > done && ticks_ != 0)
    result +=
        ", " +
        detail::clock_text(c.seconds / static_cast<double>(ticks_) * static_cast<double>(total_ - done)) +
        " left";
  for (const auto& [name, number] : numbers_) {
    std::snprintf(text, sizeof text, "%.4g", number);
    result += "  " + name + " " + text;
  }
  std::snprintf(text, sizeof text, "  %.0f samples/s  %.1f MB/s  stall %.1f%%", c.samples_per_second(),
                c.bytes_per_second() * 1e-6, 100 * c.stall());
  result += text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count != 0) detail::append(result, {"  ", count, what});
  };
  add(c.skipped + c.replaced, " bad");
  add(c.warnings, " damaged");
  add(c.storage.retries, " retries");
  return result;
}

PENSTOCK_INLINE void progress::write(const run_counters& counters, bool last) {
  last_ = clock::now();
  const std::string all = line(counters);
  if (on_terminal_) {
    // A line that is longer than the terminal would go on in the next, where it cannot be rewritten.
    const std::size_t width = last ? 0 : detail::terminal_width(out_);
    const std::string_view shown = width == 0 ? all : detail::first_characters(all, width);
    std::fprintf(out_, "\r%.*s\033[K%s", static_cast<int>(shown.size()), shown.data(), last ? "\n" : "");
  } else if (last) {
    std::fprintf(out_, "%s\n", all.c_str());
  }
  std::fflush(out_);
}

}  // namespace penstock::inline v0_1
