// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/observe/metrics.hpp>
#include <penstock/observe/run_monitor.hpp>
#include <penstock/observe/verdict.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace penstock::inline v0_1::detail {

/// The runs that one server shows. Any thread may call.
class watched_runs {
 public:
  /// `common`: labels of all of them.
  explicit watched_runs(metric_labels common = {}) : common_(std::move(common)) {}

  void add(run_monitor run, metric_labels labels) {
    labels.insert(labels.end(), common_.begin(), common_.end());
    check_labels(labels);
    const std::lock_guard guard(lock_);
    const auto same = find(labels);
    if (same == all_.end()) {
      all_.push_back({std::move(labels), std::move(run), {}});
    } else if (same->run.ended()) {
      *same = {std::move(labels), std::move(run), {}};
    } else {
      throw error(errc::argument,
                  "another run is served with the same labels; give each its own, as {{\"run\", \"eval\"}}");
    }
  }
  void remove(metric_labels labels) {
    labels.insert(labels.end(), common_.begin(), common_.end());
    const std::lock_guard guard(lock_);
    if (const auto same = find(labels); same != all_.end()) all_.erase(same);
  }

  [[nodiscard]] std::string page() const {
    std::vector<labelled_counters> shown;
    {
      const std::lock_guard guard(lock_);
      for (const watched& one : all_) shown.push_back({one.run.counters(), one.labels});
    }
    return metrics_text(shown);
  }

  /// What happened since the last look: of the run that waited most, the part of its time, the seconds of it
  /// all, and why.
  struct glance {
    double stall = 0, seconds = 0;
    std::string why = {};
  };
  [[nodiscard]] glance look() {
    glance most;
    const std::lock_guard guard(lock_);
    for (watched& one : all_) {
      const run_counters before = std::exchange(one.seen, one.run.counters());
      const run_counters recent = since(one.seen, before);
      if (recent.seconds == 0 || (most.seconds != 0 && recent.stall() <= most.stall)) continue;
      const verdict why = judge(one.seen, before);
      most = {recent.stall(), recent.seconds, text({to_string(why.limit), ": ", why.advice})};
      std::replace(most.why.begin(), most.why.end(), '\n', ' ');  // it becomes a comment of the page
    }
    return most;
  }

 private:
  struct watched {
    metric_labels labels;
    run_monitor run;
    run_counters seen;  ///< when `look` was called last
  };
  std::vector<watched>::iterator find(const metric_labels& labels) {
    return std::find_if(all_.begin(), all_.end(), [series = labels_text(labels)](const watched& one) {
      return labels_text(one.labels) == series;
    });
  }

  const metric_labels common_;
  mutable std::mutex lock_;
  std::vector<watched> all_;
};

}  // namespace penstock::inline v0_1::detail
