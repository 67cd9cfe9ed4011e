// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/flat_json.hpp>
#include <penstock/core/message.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/observe/verdict.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// What a dashboard remembers of a run, and how it tells it to its page: rates of each second of the last ten
/// minutes, and the counters of the last ten seconds, by which the run is judged.
///
/// JSON: `points` are [number, seconds, samples a second, bytes a second, stall, ready], those after the
/// number that the page has; all else is as of now. Threads: one at a time. Cost: about 40 KB.
class run_history {
 public:
  static constexpr std::size_t longest = 600, judged = 10;
  static constexpr double shortest = 0.25;  // seconds

  /// In: the stages of the plan as they are written, and what `describe` says of it.
  run_history(const std::vector<std::string>& stages, std::string_view description) {
    for (const std::string& one : stages) append(plan_, {plan_.empty() ? "" : ",", json_quoted(one)});
    description_ = json_quoted(description.substr(0, description.find("\ntuning:")));
  }

  /// Adds the counters of now, of a run that has `ended` or not. If hardly any time has passed, they add no
  /// point: its rates would be noise.
  void add(run_counters now, bool ended) {
    ended_ = ended;
    if (!recent_.empty() && now.seconds < recent_.back().seconds + shortest) {
      recent_.back() = std::move(now);
      return;
    }
    const run_counters last = since(now, recent_.empty() ? run_counters{} : recent_.back());
    points_.push_back({++number_, now.seconds, last.samples_per_second(), last.bytes_per_second(),
                       std::min(1.0, last.stall()), now.ready});
    if (points_.size() > longest) points_.pop_front();
    recent_.push_back(std::move(now));
    if (recent_.size() > judged + 1) recent_.pop_front();
  }

  /// Everything, with the points after the one of this number, all of them if there is none; `sheet` is JSON,
  /// too.
  [[nodiscard]] std::string json(std::uint64_t after, std::string_view sheet,
                                 std::uint64_t sheet_number) const {
    if (after > number_) after = 0;
    const run_counters none, &now = recent_.empty() ? none : recent_.back(),
                             &before = recent_.size() < 2 ? none : recent_.front();
    const verdict why = judge(now, before);
    std::string made = "{\"ended\":";
    append(made, {ended_ ? "true" : "false", ",\"plan\":[", plan_, "],\"description\":", description_,
                  ",\"verdict\":{\"limit\":", json_quoted(to_string(why.limit)),
                  ",\"advice\":", json_quoted(why.advice)});
    add_number(made, "stall", why.stall);
    add_number(made, "busy", why.busy);
    made += "},\"points\":[";
    for (const point& one : points_) {
      if (one.number <= after) continue;
      append(made,
             {made.back() == '[' ? "[" : ",[", one.number, ',', number(one.seconds), ',', number(one.samples),
              ',', number(one.bytes), ',', number(one.stall), ',', one.ready, ']'});
    }
    made += "],\"stages\":[";
    for (const stage_counters& one : now.stages) {
      append(made, {made.back() == '[' ? "{\"name\":" : ",{\"name\":", json_quoted(one.name),
                    ",\"samples\":", one.samples});
      add_number(made, "seconds", one.busy_seconds);
      made += '}';
    }
    made += "],\"run\":{";
    const storage_counters& s = now.storage;
    add_all(made, {{"samples", now.samples},
                   {"bytes", now.bytes},
                   {"batches", now.batches},
                   {"epoch", now.epoch},
                   {"step", now.step},
                   {"ready", now.ready},
                   {"depth", now.depth},
                   {"workers", now.workers},
                   {"held", now.bytes_held},
                   {"skipped", now.skipped},
                   {"replaced", now.replaced},
                   {"damaged", now.warnings},
                   {"requests", s.requests},
                   {"read", s.bytes},
                   {"retries", s.retries},
                   {"given_up", s.given_up},
                   {"failed", now.storage_requests.failed},
                   {"slow_downs", s.slow_downs},
                   {"throttled", s.throttled},
                   {"hedges", s.hedges},
                   {"hits", s.hits},
                   {"fetched", s.fetched},
                   {"uncached", s.uncached},
                   {"evicted", s.evicted},
                   {"corrupt", s.corrupt},
                   {"kept", now.kept.samples},
                   {"kept_bytes", now.kept.bytes},
                   {"kept_hits", now.kept.hits},
                   {"kept_uncached", now.kept.uncached}});
    add_number(made, "seconds", now.seconds);
    add_number(made, "stalled", now.stall() * now.seconds);
    add_number(made, "on_slow_sample", now.stall_on_slow_sample);
    add_number(made, "for_copy", now.waiting_for_copy);
    add_number(made, "worker_seconds", now.worker_seconds);
    add_number(made, "busy", now.worker_busy_seconds);
    add_number(made, "no_room", now.waiting_for_room);
    add_number(made, "no_input", now.waiting_for_input);
    made += '}';
    add_durations(made, "waits", now.block_waits);
    add_durations(made, "latency", now.storage_requests.durations);
    append(made, {",\"sheet\":", sheet, ",\"sheet_number\":", sheet_number, '}'});
    return made;
  }

 private:
  struct point {
    std::uint64_t number;
    double seconds, samples, bytes, stall;
    std::uint64_t ready;
  };

  static std::string number(double value) { return std::isfinite(value) ? number_text(value) : "0"; }
  static void add_number(std::string& made, std::string_view name, double value) {
    append(made, {",\"", name, "\":", number(value)});
  }
  static void add_all(std::string& made,
                      std::initializer_list<std::pair<std::string_view, std::uint64_t>> numbers) {
    for (const auto& [name, value] : numbers)
      append(made, {made.back() == '{' ? "\"" : ",\"", name, "\":", value});
  }
  /// The buckets up to the last one that counted anything; the upper bound of bucket i is 2^(i - 20) s.
  static void add_durations(std::string& made, std::string_view name, const duration_counts& all) {
    std::size_t end = duration_counts::buckets;
    while (end != 0 && all.counts[end - 1] == 0) --end;
    append(made, {",\"", name, "\":["});
    for (std::size_t i = 0; i < end; ++i) append(made, {i == 0 ? "" : ",", all.counts[i]});
    made += ']';
  }

  std::string plan_, description_;  // JSON
  bool ended_ = false;
  std::uint64_t number_ = 0;
  std::deque<point> points_;
  std::deque<run_counters> recent_;
};

}  // namespace penstock::inline v0_1::detail
