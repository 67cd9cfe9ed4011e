// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/verdict.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>
#include <cstdio>

namespace penstock::inline v0_1 {

namespace detail {

inline constexpr double little_stall = 0.02;  // below this, more data would not make the loop faster

PENSTOCK_INLINE std::string percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * std::clamp(share, 0.0, 9.999));
  return text;
}

PENSTOCK_INLINE std::string as_fast(double ratio) {
  if (ratio < 2) return percent(ratio - 1) + " faster";
  char text[32];
  std::snprintf(text, sizeof text, ratio < 9.95 ? "%.1f times as fast" : "%.0f times as fast", ratio);
  return text;
}

PENSTOCK_INLINE std::string in_units(double value,
                                     std::initializer_list<std::pair<double, const char*>> units) {
  auto unit = units.begin();
  if (value <= 0) return std::string("0 ") + unit->second;
  while (unit + 1 != units.end() && value < 0.9995 * unit->first) ++unit;  // 0.9995 prints as 1.00
  const double shown = value / unit->first;
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %s", shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0, shown, unit->second);
  return text;
}

PENSTOCK_INLINE std::string in_bytes(std::uint64_t bytes) {
  return in_units(static_cast<double>(bytes), {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}});
}

PENSTOCK_INLINE std::string in_seconds(double seconds) {
  return in_units(seconds, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}});
}

/// Where batches are kept ready for less time than the longest sample takes, no order of work helps: says so,
/// and how many batches it would take. Otherwise empty.
inline std::string too_long_a_sample(const run_counters& c, double threads) {
  if (c.workers == 0 || c.depth == 0 || c.batches == 0) return {};
  const double batch = c.worker_busy_seconds / static_cast<double>(c.batches) / threads;
  const double covered = batch * static_cast<double>(c.depth - 1);  // the loop has one
  if (batch <= 0 || c.longest_sample_seconds <= covered) return {};
  const auto wanted = static_cast<std::uint64_t>(std::min(1e6, c.longest_sample_seconds / batch)) + 1;
  return detail::text(
      {"the longest sample took ", in_seconds(c.longest_sample_seconds), ", and the ", c.depth,
       " batches in flight take ", c.workers, c.workers == 1 ? " worker " : " workers ", in_seconds(covered),
       ": whatever is begun first, the loop waits for it; keep more of them ready with prefetch(", wanted,
       ") after batch"});
}

/// Judges by the counters alone.
inline verdict judge_counters(const run_counters& c) {
  verdict v;
  if (c.batches == 0 || c.seconds <= 0) {
    v.advice = "nothing was delivered yet; ask again after some batches";
    return v;
  }
  // the average, because the number of workers can change
  const double threads = c.worker_seconds > 0 ? c.worker_seconds / c.seconds : std::max(1u, c.workers);
  v.stall = c.stall();
  double all = 0;
  std::size_t maximum = 0;
  for (std::size_t i = 0; i < c.stages.size(); ++i) {
    all += c.stages[i].busy_seconds;
    if (c.stages[i].busy_seconds > c.stages[maximum].busy_seconds) maximum = i;
  }
  if (!c.stages.empty() && all > 0) {
    v.busiest = c.stages[maximum].name;
    v.busiest_share = c.stages[maximum].busy_seconds / all;
  }
  v.busy = c.worker_busy_seconds / (c.seconds * threads);
  if (v.stall < detail::little_stall) {
    v.limit = bottleneck::consumer;
    v.advice = "the loop gets its batches without waiting: the time is in the training step";
    return v;
  }
  const double waiting = c.waiting_for_room + c.waiting_for_input + c.worker_busy_seconds;
  const double input = waiting > 0 ? c.waiting_for_input / waiting : 0;
  const double room = waiting > 0 ? c.waiting_for_room / waiting : 0;
  // It is normal for workers to lack room while the loop computes or is between two epochs.
  const double idle = c.stall_seconds > 0 ? c.waiting_for_room_in_stall / (c.stall_seconds * threads) : 0;
  if (c.workers != 0 && idle > 0.25 && room > input) {
    v.limit = bottleneck::jitter;
    v.advice = detail::too_long_a_sample(c, threads);
    if (!v.advice.empty()) return v;
    v.advice =
        "the loop waits for a batch while workers wait for room: batches take unequal times; keep more of "
        "them ready with prefetch(n) after batch, or make batches larger";
    return v;
  }
  if (input <= 0.5 && all <= 0) {
    v.advice = "no stage was timed yet; ask again after more batches";
    return v;
  }
  if (input > 0.5 || (maximum == 0 && !c.source_computes)) {
    v.limit = bottleneck::io;
    v.advice = input > 0.5
                   ? "workers wait for the serial front of a forward-only source; use an indexed source, or "
                     "open several plans over parts of the data"
                   : "most of the work is reading: try prefetch(n), larger shards on a faster disk, more "
                     "workers, or fewer bytes per sample (fields<...>, a codec that packs tighter)";
    return v;
  }
  v.limit = bottleneck::cpu;
  v.advice = "most of the work is '" + v.busiest + "': " +
             (c.workers == 0 ? "give it threads with workers(n)"
                             : "give it more workers if there are processors, make it cheaper, or do it once "
                               "when the data are packed");
  return v;
}

}  // namespace detail

PENSTOCK_INLINE verdict judge(const run_counters& counters, const run_counters& before,
                              const std::vector<finding>& outside) {
  verdict v = detail::judge_counters(since(counters, before));
  if (!outside.empty() && v.limit != bottleneck::unknown && v.limit != bottleneck::consumer)
    v.advice = detail::text({outside.front().sentence, " (", outside.front().file, "); ", v.advice});
  return v;
}

PENSTOCK_INLINE verdict judge_against(const run_counters& real, const run_counters& without_reading) {
  verdict v = judge(real);
  const double rate = real.samples_per_second(), free_rate = without_reading.samples_per_second();
  if (v.limit == bottleneck::unknown || v.limit == bottleneck::consumer || rate <= 0) return v;
  if (free_rate > 1.2 * rate) {
    if (v.limit != bottleneck::jitter) v.limit = bottleneck::io;
    v.advice = "without reading the loop is " + detail::as_fast(free_rate / rate) + ": " +
               (v.limit == bottleneck::jitter
                    ? "reads take unequal times; raise prefetch(n)"
                    : "reading holds it back; try prefetch(n), faster storage or fewer bytes");
  } else if (v.limit == bottleneck::io) {
    v.limit = bottleneck::cpu;
    v.advice = "without reading the loop is no faster: what comes after reading holds it back";
  }
  return v;
}

PENSTOCK_INLINE std::string why_kept(const kept_choice& choice) {
  if (choice.chosen == kept_choice::undecided)
    return "keep_in_memory: measures what to keep; ask again after more samples";
  const bool any = choice.chosen < choice.places.size();
  std::string text = any ? "kept behind " + choice.places[choice.chosen].behind + ": "
                         : std::string("nothing is kept in memory: ");
  if (!choice.measured) return text + "as the program says";
  if (any) {
    const kept_place& best = choice.places[choice.chosen];
    detail::append(text, {"saves ", detail::in_seconds(best.saved_seconds), " of ",
                          detail::in_seconds(choice.whole_seconds), " a sample, ",
                          detail::in_bytes(static_cast<std::uint64_t>(best.bytes)), " each; "});
    const double room = best.bytes > 0 ? static_cast<double>(choice.limit) / best.bytes : 0;
    if (best.bytes * static_cast<double>(choice.samples) <= static_cast<double>(choice.limit))
      detail::append(text, {"all ", choice.samples, " samples fit in "});
    else
      detail::append(text, {static_cast<std::uint64_t>(room), " of ", choice.samples, " samples fit in "});
    text += detail::in_bytes(choice.limit);
  } else {
    detail::append(text, {"no place saves much of the ", detail::in_seconds(choice.whole_seconds),
                          " that a sample takes"});
  }
  for (std::size_t i = 0; i < choice.places.size(); ++i) {
    const kept_place& one = choice.places[i];
    if (i == choice.chosen) continue;
    detail::append(text, {"; behind ", one.behind});
    if (one.differs)
      text += ", values could be others: of images that may be decoded smaller, or of parts of sounds";
    else
      detail::append(text, {": ", one.saved_seconds < 0 ? "nothing" : detail::in_seconds(one.saved_seconds),
                            ", ", detail::in_bytes(static_cast<std::uint64_t>(one.bytes))});
  }
  if (!choice.random_behind.empty())
    detail::append(text, {"; behind ", choice.random_behind, ", numbers are random"});
  return text;
}

PENSTOCK_INLINE std::string report(const run_counters& counters, const run_counters& before,
                                   const std::vector<finding>& outside) {
  const run_counters c = since(counters, before);
  const verdict v = judge(counters, before);
  char line[256];
  std::snprintf(
      line, sizeof line, "%llu samples in %s: %.*f samples/s, %s, %u workers\n",
      static_cast<unsigned long long>(c.samples), detail::in_seconds(c.seconds).c_str(),
      c.samples_per_second() < 9.95 ? 2 : 0, c.samples_per_second(),
      detail::in_units(c.bytes_per_second(), {{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}})
          .c_str(),
      c.workers);
  std::string text = line;
  if (c.depth != 0) text.insert(text.size() - 1, ", " + std::to_string(c.depth) + " in flight");
  if (c.skipped + c.replaced != 0) {
    detail::append(text, {"bad samples: ", c.skipped, " skipped, ", c.replaced, " replaced\n"});
  }
  if (c.warnings != 0)
    detail::append(text, {"damaged samples used as far as they could be decoded: ", c.warnings, "\n"});
  const storage_counters& s = c.storage;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count != 0) detail::append(text, {", ", count, what});
  };
  if (s.requests + s.bytes + s.retries + s.given_up + s.slow_downs + s.throttled + s.hedges != 0) {
    detail::append(text, {"storage: ", s.requests, " requests, ", detail::in_bytes(s.bytes)});
    add(s.retries, " tried again");
    add(s.given_up, " given up");
    add(s.slow_downs, " asked for fewer");
    add(s.throttled, " times throttled");
    add(s.hedges, " hedged");
    add(s.hedges_won, " of them in time");
    text += "\n";
  }
  if (s.hits + s.fetched + s.uncached != 0) {
    detail::append(text, {"cache: ", s.hits, " hits, ", s.fetched, " fetched"});
    add(s.refetched, " of them again");
    add(s.evicted, " evicted");
    add(s.corrupt, " that did not match their checksums");
    add(s.uncached, " past the cache");
    text += "\n";
  }
  if (c.kept.samples + c.kept.hits + c.kept.uncached != 0) {
    detail::append(text, {"kept in memory: ", c.kept.samples, " samples, ", detail::in_bytes(c.kept.bytes),
                          ", shown ", c.kept.hits, " times"});
    add(c.kept.uncached, " made for which there was no room");
    text += "\n";
  }
  for (const kept_choice& one : c.kept.choices) text += why_kept(one) + "\n";
  if (c.autotune.tunes)
    detail::append(text,
                   {"autotune", c.autotune.quiet ? ": " : ", still trying: ", c.autotune.trials, " trials, ",
                    c.autotune.kept, " kept: ",
                    c.autotune.stages.empty() ? "the defaults" : std::string_view(c.autotune.stages), "\n"});
  double all = 0;
  for (const stage_counters& one : c.stages) all += one.busy_seconds;
  for (const stage_counters& one : c.stages) {
    const double each = one.samples == 0 ? 0 : one.busy_seconds / static_cast<double>(one.samples);
    std::snprintf(line, sizeof line, "  %-32.80s %6s  %9s a sample\n", one.name.c_str(),
                  detail::percent(all > 0 ? one.busy_seconds / all : 0).c_str(),
                  detail::in_seconds(each).c_str());
    text += line;
  }
  for (const finding& one : outside)
    detail::append(text, {one.what, ": ", one.sentence, " (", one.file, ")\n"});
  text += "stall " + detail::percent(v.stall) +
          (c.workers == 0 ? ": the consumer makes its batches itself"
                          : ": the consumer waited, workers busy " + detail::percent(v.busy)) +
          "\n" + std::string(to_string(v.limit)) + ": " + v.advice + "\n";
  return text;
}

}  // namespace penstock::inline v0_1
