// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/concepts.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// The subset of the Trace Event Format's JSON that a timeline needs.
namespace penstock::inline v0_1::detail {

[[nodiscard]] inline std::uint64_t trace_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// Collects events. `ph` is X for intervals, M for names, b and e for overlapping intervals, i for instants,
/// C for counts;
/// times are microseconds with three decimals.
class trace_text {
 public:
  trace_text();

  void process(std::string_view name);
  void thread(std::uint64_t tid, std::string_view name);
  void complete(std::uint64_t tid, const run_event& e, std::string_view name);
  /// A track for each count: "storage requests" and so on, "cache hits" and so on.
  void counted(const run_event& e);
  void held(std::uint64_t tid, std::string_view id, const run_event& e, std::string_view name);
  void lost(std::uint64_t tid, std::uint64_t when_ns, std::uint64_t count);
  [[nodiscard]] std::string finish(std::uint64_t dropped);

 private:
  static std::string_view category(activity a) noexcept;
  void begin(std::string_view name, std::string_view phase, std::uint64_t tid);
  void microseconds(std::uint64_t ns);
  void arguments(const run_event& e);

  std::uint64_t pid_;
  std::string text_;
};

/// Writes under a temporary name in the same folder, flushes and renames; leaves nothing behind on failure.
void write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/detail/trace_text.ipp>
#endif
