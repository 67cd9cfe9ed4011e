// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/progress.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
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

}  // namespace detail

PENSTOCK_INLINE progress::progress(std::string label, std::uint64_t total, std::FILE* out)
    : label_(std::move(label)), total_(total), out_(out), on_terminal_(detail::is_terminal(out)) {}

PENSTOCK_INLINE void progress::begin(const run_counters& counters) {
  first_ = counters;
  first_.stages.clear();
}

PENSTOCK_INLINE std::string progress::line(const run_counters& counters) const {
  constexpr std::size_t width = 24;
  const double seconds = counters.seconds - first_.seconds;
  const auto rate = [seconds](double amount) { return seconds > 0 ? amount / seconds : 0.0; };
  char text[256];
  std::string result = label_ + " ";
  if (total_ != 0) {
    const std::uint64_t done = std::min(ticks_, total_);
    const auto filled = detail::to_size(done * width / total_);
    result += "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
    std::snprintf(text, sizeof text, "%llu/%llu  ", static_cast<unsigned long long>(ticks_),
                  static_cast<unsigned long long>(total_));
  } else {
    std::snprintf(text, sizeof text, "%llu  ", static_cast<unsigned long long>(ticks_));
  }
  result += text;
  std::snprintf(text, sizeof text, "%.0f samples/s  %.1f MB/s  stall %.1f %%",
                rate(static_cast<double>(counters.samples - first_.samples)),
                rate(static_cast<double>(counters.bytes - first_.bytes)) * 1e-6,
                100 * rate(counters.stall_seconds - first_.stall_seconds));
  result += text;
  if (const std::uint64_t bad = counters.skipped + counters.replaced - first_.skipped - first_.replaced;
      bad != 0)
    result += "  " + std::to_string(bad) + " bad";
  if (counters.warnings != first_.warnings)
    result += "  " + std::to_string(counters.warnings - first_.warnings) + " damaged";
  if (counters.storage.retries > first_.storage.retries)
    result += "  " + std::to_string(counters.storage.retries - first_.storage.retries) + " retries";
  return result;
}

PENSTOCK_INLINE void progress::write(const run_counters& counters, bool last) {
  last_ = clock::now();
  if (on_terminal_)
    std::fprintf(out_, "\r%s\033[K%s", line(counters).c_str(), last ? "\n" : "");
  else if (last)
    std::fprintf(out_, "%s\n", line(counters).c_str());
  std::fflush(out_);
}

}  // namespace penstock::inline v0_1
