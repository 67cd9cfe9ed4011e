// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/observe/counters.hpp>

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// A label that all series of a run get, such as {"run", "train"} or {"rank", "0"}.
struct metric_label {
  std::string name;
  std::string value;

  friend auto operator<=>(const metric_label&, const metric_label&) = default;
};
using metric_labels = std::vector<metric_label>;

/// The counters of one of several runs, with the labels that tell it from the others.
struct labelled_counters {
  run_counters counters;
  metric_labels labels = {};
};

/// A format that Prometheus reads.
enum class metrics_format : std::uint8_t {
  prometheus,   ///< text format 0.0.4
  openmetrics,  ///< OpenMetrics 1.0
};

/// The media type of a page, for the header Content-Type.
[[nodiscard]] constexpr std::string_view media_type_of(metrics_format format) noexcept {
  return format == metrics_format::prometheus ? "text/plain; version=0.0.4; charset=utf-8"
                                              : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

namespace detail {

enum class metric_kind : std::uint8_t { counter, gauge, histogram };

/// One series of a metric: its own label's value, and what it shows.
struct metric_point {
  std::string label;
  std::uint64_t value = 0;  // nanoseconds if the metric is in seconds
  const duration_counts* durations = nullptr;
};

/// What all series of one name have in common.
struct metric_family {
  std::string_view name, help;
  metric_kind kind = metric_kind::counter;
  bool seconds = false;
  std::string_view label = {};  // that tells its series apart
  void (*read)(const run_counters& from, std::vector<metric_point>& into) = nullptr;
};

/// All metrics of a run, in the order of a page.
[[nodiscard]] std::span<const metric_family> metric_families() noexcept;

/// Appends nanoseconds as seconds; of two of them, the larger one has the larger text.
void append_seconds(std::string& line, std::uint64_t ns);

/// Throws errc::argument for a label that no series can have.
void check_labels(const metric_labels& labels);

/// What stands between the braces: `a="x",b="y"`. The same for labels that Prometheus takes for the same: in
/// another order, or with one of an empty value, which is none.
[[nodiscard]] std::string labels_text(metric_labels labels);

}  // namespace detail

/// The counters of a run as a page for Prometheus. `docs/metrics.md` lists the series.
///
/// In: counters, of `run.counters()` or of a monitor; labels, which every series gets. Of two copies of a
/// run's counters, the later one has no smaller counter. Errors: errc::argument for a label whose name is
/// none, or is one of the page's own. Values may be any text; what is not UTF-8 becomes U+FFFD. Cost: about
/// 200 lines; the run notices nothing.
///
///     std::cout << metrics_text(run.counters(), {{"run", "train"}});
[[nodiscard]] std::string metrics_text(const run_counters& counters, const metric_labels& labels = {},
                                       metrics_format format = metrics_format::prometheus);

/// The counters of several runs as one page: each metric once, with the series of all runs. Throws
/// errc::argument if two runs have the same labels.
[[nodiscard]] std::string metrics_text(std::span<const labelled_counters> runs,
                                       metrics_format format = metrics_format::prometheus);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/observe/metrics.ipp>
#endif
