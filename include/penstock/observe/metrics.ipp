// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/metrics.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/version.hpp>

#include <algorithm>
#include <cmath>

namespace penstock::inline v0_1 {

namespace detail {

using metric_points = std::vector<metric_point>;

inline std::uint64_t in_ns(double seconds) noexcept {
  return seconds > 0 ? static_cast<std::uint64_t>(std::llround(seconds * 1e9)) : 0;
}

/// A second stage of one name becomes "name#2".
template <class Read>
void read_stages(const run_counters& c, metric_points& into, Read read) {
  for (const stage_counters& one : c.stages) {
    const auto same = std::count_if(c.stages.data(), &one, [&](const auto& s) { return s.name == one.name; });
    into.push_back({same == 0 ? one.name : text({one.name, "#", same + 1}), read(one)});
  }
}

template <auto Member>
void read_count(const run_counters& c, metric_points& into) {
  into.push_back({{}, static_cast<std::uint64_t>(c.*Member)});
}
template <auto Member>
void read_storage(const run_counters& c, metric_points& into) {
  into.push_back({{}, c.storage.*Member});
}

PENSTOCK_INLINE std::span<const metric_family> metric_families() noexcept {
  using c = run_counters;
  using s = storage_counters;
  using enum metric_kind;
  static constexpr metric_family all[] = {
      {"penstock_build_info", "The version of penstock that this program was compiled with.", gauge, false,
       "version",
       [](const c&, metric_points& into) {
         into.push_back({std::string(version), 1});
       }},
      {"penstock_run_seconds_total", "Time since the run was opened.", counter, true, "",
       [](const c& of, metric_points& into) {
         into.push_back({{}, in_ns(of.seconds)});
       }},
      {"penstock_samples_delivered_total", "Samples delivered to the loop.", counter, false, "",
       read_count<&c::samples>},
      {"penstock_batches_delivered_total", "Batches delivered; without batches, rows.", counter, false, "",
       read_count<&c::batches>},
      {"penstock_delivered_bytes_total", "Bytes of what was delivered.", counter, false, "",
       read_count<&c::bytes>},
      {"penstock_epoch", "The epoch of what was delivered last.", gauge, false, "", read_count<&c::epoch>},
      {"penstock_step", "Batches of that epoch delivered so far.", gauge, false, "", read_count<&c::step>},
      {"penstock_consumer_stall_seconds_total", "Time that the loop waited for data, by the reason.", counter,
       true, "reason",
       [](const c& of, metric_points& into) {
         // of doubles, whose difference is exact, so that neither goes back by a nanosecond
         into.push_back({"throughput", in_ns(of.stall_seconds - of.stall_on_slow_sample)});
         into.push_back({"slow_sample", in_ns(of.stall_on_slow_sample)});
         into.push_back({"evaluation", of.workers == 0 ? in_ns(of.worker_busy_seconds) : 0});
         into.push_back({"copy", in_ns(of.waiting_for_copy)});
       }},
      {"penstock_next_duration_seconds", "How long the loop waited for each batch that was delivered.",
       histogram, true, "",
       [](const c& of, metric_points& into) {
         into.push_back({{}, 0, &of.block_waits});
       }},
      {"penstock_batches_ready", "Batches that are ready and not yet requested.", gauge, false, "",
       read_count<&c::ready>},
      {"penstock_depth", "Batches in flight at most.", gauge, false, "", read_count<&c::depth>},
      {"penstock_held_bytes", "Memory of batches, of what is fetched ahead and of what is kept.", gauge,
       false, "", read_count<&c::bytes_held>},
      {"penstock_workers", "Threads that work now.", gauge, false, "", read_count<&c::workers>},
      {"penstock_worker_seconds_total", "Time of all workers together, by what they did.", counter, true,
       "state",
       [](const c& of, metric_points& into) {
         into.push_back({"busy", in_ns(of.worker_busy_seconds)});
         into.push_back({"waiting_for_room", in_ns(of.waiting_for_room)});
         into.push_back({"waiting_for_input", in_ns(of.waiting_for_input)});
       }},
      {"penstock_stage_busy_seconds_total", "Time spent in each stage, estimated from timed samples.",
       counter, true, "stage",
       [](const c& of, metric_points& into) {
         read_stages(of, into, [](const stage_counters& one) { return in_ns(one.busy_seconds); });
       }},
      {"penstock_stage_samples_total", "Samples that each stage has made.", counter, false, "stage",
       [](const c& of, metric_points& into) {
         read_stages(of, into, [](const stage_counters& one) { return one.samples; });
       }},
      {"penstock_longest_sample_seconds", "The longest time that a worker was at one sample.", gauge, true,
       "",
       [](const c& of, metric_points& into) {
         into.push_back({{}, in_ns(of.longest_sample_seconds)});
       }},
      {"penstock_bad_samples_total", "Bad samples among those delivered, by what became of them.", counter,
       false, "kind",
       [](const c& of, metric_points& into) {
         into.push_back({"skipped", of.skipped});
         into.push_back({"replaced", of.replaced});
         into.push_back({"damaged", of.warnings});
       }},
      {"penstock_storage_requests_total", "Requests to the store that have ended, by their outcome.", counter,
       false, "outcome",
       [](const c& of, metric_points& into) {
         into.push_back({"ok", of.storage_requests.answered});
         into.push_back({"failed", of.storage_requests.failed});
         into.push_back({"cancelled", of.storage_requests.cancelled});
       }},
      {"penstock_storage_request_duration_seconds", "How long each of these requests took.", histogram, true,
       "",
       [](const c& of, metric_points& into) {
         into.push_back({{}, 0, &of.storage_requests.durations});
       }},
      {"penstock_storage_events_total", "What became of requests that failed or were late.", counter, false,
       "event",
       [](const c& of, metric_points& into) {
         into.push_back({"retry", of.storage.retries});
         into.push_back({"give_up", of.storage.given_up});
         into.push_back({"slow_down", of.storage.slow_downs});
         into.push_back({"throttle", of.storage.throttled});
         into.push_back({"hedge", of.storage.hedges});
         into.push_back({"hedge_won", of.storage.hedges_won});
       }},
      {"penstock_storage_read_bytes_total", "Bytes received from the store.", counter, false, "",
       read_storage<&s::bytes>},
      {"penstock_cache_hits_total",
       "Samples that keep_in_memory had, and blocks that a cache of the storage had.", counter, false, "tier",
       [](const c& of, metric_points& into) {
         into.push_back({"memory", of.kept.hits});
         into.push_back({"storage", of.storage.hits});
       }},
      {"penstock_cache_misses_total",
       "Samples that keep_in_memory did not have, and blocks or reads that a cache of the storage did not.",
       counter, false, "tier",
       [](const c& of, metric_points& into) {
         into.push_back({"memory", of.kept.samples + of.kept.uncached});
         into.push_back({"storage", of.storage.fetched + of.storage.uncached});
       }},
      {"penstock_cache_events_total", "What else happened to blocks in a cache of the storage.", counter,
       false, "event",
       [](const c& of, metric_points& into) {
         into.push_back({"evict", of.storage.evicted});
         into.push_back({"damaged", of.storage.corrupt});
         into.push_back({"refetch", of.storage.refetched});
       }},
      {"penstock_kept_samples", "Samples that keep_in_memory has.", gauge, false, "",
       [](const c& of, metric_points& into) {
         into.push_back({{}, of.kept.samples});
       }},
      {"penstock_kept_bytes", "Memory of the samples that keep_in_memory has.", gauge, false, "",
       [](const c& of, metric_points& into) {
         into.push_back({{}, of.kept.bytes});
       }},
  };
  return all;
}

PENSTOCK_INLINE void check_labels(const metric_labels& labels) {
  const auto letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  for (const metric_label& one : labels) {
    const std::string& name = one.name;
    const bool good = !name.empty() && !(name[0] >= '0' && name[0] <= '9') && !name.starts_with("__") &&
                      std::all_of(name.begin(), name.end(),
                                  [&](char c) { return letter(c) || c == '_' || (c >= '0' && c <= '9'); });
    if (!good)
      throw error(errc::argument, {"a label cannot be called '", as_utf8(name),
                                   "': a name has letters, digits and underscores, begins with no digit and "
                                   "not with two underscores"});
    const auto families = metric_families();
    if (name == "le" || std::any_of(families.begin(), families.end(),
                                    [&](const metric_family& family) { return family.label == name; }))
      throw error(errc::argument, {"the label '", name,
                                   "' is one that tells a run's own series apart; give yours another name"});
    if (std::count_if(labels.begin(), labels.end(), [&](const auto& l) { return l.name == name; }) != 1)
      throw error(errc::argument, {"the label '", name, "' is given twice"});
  }
}

PENSTOCK_INLINE std::string labels_text(metric_labels labels) {
  std::sort(labels.begin(), labels.end());
  std::string line;
  for (const metric_label& one : labels) {
    if (one.value.empty()) continue;
    append(line, {line.empty() ? "" : ",", one.name, "=\""});
    for (const char c : as_utf8(one.value)) {
      if (c == '\n')
        line += "\\n";
      else if (c == '"' || c == '\\')
        append(line, {'\\', c});
      else
        line += c;
    }
    line += '"';
  }
  return line;
}

PENSTOCK_INLINE void append_seconds(std::string& line, std::uint64_t ns) {
  append(line, {ns / 1'000'000'000});
  if (ns % 1'000'000'000 == 0) return;
  char digits[10] = {'.'};
  std::size_t last = 0;
  for (std::uint64_t rest = ns % 1'000'000'000, i = 9; i != 0; --i, rest /= 10) {
    digits[i] = static_cast<char>('0' + rest % 10);
    if (last == 0 && rest % 10 != 0) last = i;
  }
  line.append(digits, last + 1);
}

/// The bound of a bucket, as its label `le` has it.
inline std::string bound_text(std::size_t bucket) {
  if (bucket + 1 == duration_counts::buckets) return "+Inf";
  const double bound = duration_counts::bound(bucket);
  return number_text(bound) + (bound >= 1 ? ".0" : "");
}

class metrics_page {
 public:
  explicit metrics_page(metrics_format format) : format_(format) {}

  void add(const metric_family& family, std::span<const labelled_counters> runs,
           const std::vector<std::string>& labels) {
    const bool counter = family.kind == metric_kind::counter;
    std::string_view called = family.name;
    if (format_ == metrics_format::openmetrics && counter) called.remove_suffix(6);  // "_total"
    append(page_, {"# HELP ", called, " ", family.help, "\n# TYPE ", called, " ",
                   enum_name({"counter", "gauge", "histogram"}, family.kind), "\n"});
    for (std::size_t i = 0; i < runs.size(); ++i) {
      points_.clear();
      family.read(runs[i].counters, points_);
      for (const metric_point& one : points_) {
        own_ = labels[i];
        if (!family.label.empty())
          append(own_, {own_.empty() ? "" : ",", labels_text({{std::string(family.label), one.label}})});
        if (one.durations != nullptr)
          add_histogram(family.name, *one.durations);
        else
          add_line(family.name, "", own_, one.value, family.seconds);
      }
    }
  }
  [[nodiscard]] std::string take() {
    if (format_ == metrics_format::openmetrics) page_ += "# EOF\n";
    return std::move(page_);
  }

 private:
  void add_line(std::string_view name, std::string_view ending, std::string_view labels, std::uint64_t value,
                bool seconds) {
    append(page_, {name, ending});
    if (!labels.empty()) append(page_, {"{", labels, "}"});
    page_ += ' ';
    seconds ? append_seconds(page_, value) : append(page_, {value});
    page_ += '\n';
  }
  void add_histogram(std::string_view name, const duration_counts& durations) {
    std::uint64_t so_far = 0;
    for (std::size_t i = 0; i < duration_counts::buckets; ++i) {
      so_far += durations.counts[i];
      add_line(name, "_bucket", text({own_, own_.empty() ? "" : ",", "le=\"", bound_text(i), "\""}), so_far,
               false);
    }
    add_line(name, "_sum", own_, durations.sum_ns, true);
    add_line(name, "_count", own_, so_far, false);
  }

  metrics_format format_;
  std::string page_, own_;
  metric_points points_;
};

}  // namespace detail

PENSTOCK_INLINE std::string metrics_text(std::span<const labelled_counters> runs, metrics_format format) {
  std::vector<std::string> labels;
  for (const labelled_counters& one : runs) {
    detail::check_labels(one.labels);
    labels.push_back(detail::labels_text(one.labels));
    if (std::count(labels.begin(), labels.end(), labels.back()) != 1)
      throw error(errc::argument, {"two runs have the same labels {", labels.back(),
                                   "}, so that nobody could tell their series apart; give each one its own, "
                                   "such as {\"run\", \"train\"}"});
  }
  detail::metrics_page page(format);
  for (const detail::metric_family& one : detail::metric_families()) page.add(one, runs, labels);
  return page.take();
}

PENSTOCK_INLINE std::string metrics_text(const run_counters& counters, const metric_labels& labels,
                                         metrics_format format) {
  const labelled_counters one{counters, labels};
  return metrics_text({&one, 1}, format);
}

}  // namespace penstock::inline v0_1
