// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/metrics_file.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/observe/detail/whole_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

inline void append_json_point(std::string& line, const metric_family& family, const metric_point& one) {
  const auto add = [&](std::uint64_t value) {
    family.seconds ? append_seconds(line, value) : append(line, {value});
  };
  if (one.durations == nullptr) return add(one.value);
  append(line, {"{\"count\":", one.durations->count(), ",\"sum\":"});
  add(one.durations->sum_ns);
  line += ",\"buckets\":";
  char before = '[';
  for (const std::uint64_t count : one.durations->counts) append(line, {std::exchange(before, ','), count});
  line += "]}";
}

/// The counters of a run at a time in milliseconds since 1970.
inline void append_json_line(std::string& line, std::uint64_t ms, const labelled_counters& run) {
  check_labels(run.labels);
  line += "{\"time\":";
  append_seconds(line, ms * 1'000'000);
  line += ",\"labels\":{";
  const char* between = "";
  for (const metric_label& one : run.labels)
    append(line, {std::exchange(between, ","), json_quoted(one.name), ":", json_quoted(one.value)});
  line += '}';
  std::vector<metric_point> points;
  for (const metric_family& family : metric_families()) {
    points.clear();
    family.read(run.counters, points);
    append(line, {",\"", family.name, "\":"});
    if (family.label.empty()) {
      append_json_point(line, family, points.front());
      continue;
    }
    char before = '{';
    for (const metric_point& one : points) {
      append(line, {std::exchange(before, ','), json_quoted(one.label), ":"});
      append_json_point(line, family, one);
    }
    line += points.empty() ? "{}" : "}";
  }
  line += "}\n";
}

inline bool is_metrics_page(const std::string& path) {
  if (path.ends_with(".prom")) return true;
  if (path.ends_with(".jsonl")) return false;
  throw error(errc::argument,
              "metrics are written to a file called *.prom, as node_exporter wants it, or to one called "
              "*.jsonl, as lines of JSON")
      .in_file(path);
}

/// A part of the text is not left behind.
inline void append_whole(const std::string& path, std::string_view bytes) {
  const auto fail = [&](int code) {
    throw error(errc::io, {"cannot append to the file of metrics (", std::strerror(code), ")"}).in_file(path);
  };
  const int out = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (out < 0) fail(errno);
  struct stat before {};
  ::ssize_t written = -1;
  if (::fstat(out, &before) == 0) do
      written = ::write(out, bytes.data(), bytes.size());
    while (written < 0 && errno == EINTR);
  int code = written < 0 ? errno : ENOSPC;
  const bool whole = written == static_cast<::ssize_t>(bytes.size());
  if (written > 0 && !whole && ::ftruncate(out, before.st_size) != 0) code = errno;
  if (::close(out) != 0 && whole) fail(errno);
  if (!whole) fail(code);
}

}  // namespace detail

PENSTOCK_INLINE std::string metrics_lines(std::span<const labelled_counters> runs) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  std::string lines;
  for (const labelled_counters& one : runs)
    detail::append_json_line(lines, static_cast<std::uint64_t>(ms), one);
  return lines;
}

PENSTOCK_INLINE std::string metrics_lines(const run_counters& counters, const metric_labels& labels) {
  const labelled_counters one{counters, labels};
  return metrics_lines({&one, 1});
}

PENSTOCK_INLINE void write_metrics(const std::string& path, std::span<const labelled_counters> runs) {
  if (!detail::is_metrics_page(path)) return detail::append_whole(path, metrics_lines(runs));
  constexpr ::mode_t all_may_read = 0644;
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const auto number = static_cast<std::uint64_t>(now) ^ reinterpret_cast<std::uintptr_t>(&now);
  detail::write_whole_file(path, metrics_text(runs), "page of metrics", number, all_may_read);
}

PENSTOCK_INLINE void write_metrics(const std::string& path, const run_counters& counters,
                                   const metric_labels& labels) {
  const labelled_counters one{counters, labels};
  write_metrics(path, {&one, 1});
}

PENSTOCK_INLINE metrics_writer::metrics_writer(run_monitor of, std::string path,
                                               metrics_writer_options options)
    : of_(std::move(of)), path_(std::move(path)), options_(std::move(options)) {
  static_cast<void>(detail::is_metrics_page(path_));
  detail::check_labels(options_.labels);
  constexpr std::chrono::hours longest(24);
  if (options_.every.count() <= 0 || options_.every > longest)
    throw error(errc::argument,
                {"metrics are written every 1 ms to every day, not every ", options_.every.count(), " ms"});
  thread_ = std::thread([this]() noexcept { work(); });
}

PENSTOCK_INLINE metrics_writer::~metrics_writer() {
  {
    const std::lock_guard guard(lock_);
    ends_ = true;
  }
  ends_now_.notify_one();
  thread_.join();
}

PENSTOCK_INLINE void metrics_writer::work() noexcept {
  for (bool last = false; !last;) {
    {
      std::unique_lock held(lock_);
      last = ends_now_.wait_for(held, options_.every, [this] { return ends_; });
    }
    last = of_.ended() || last;
    write();
  }
}

PENSTOCK_INLINE void metrics_writer::write() noexcept {
  try {
    write_metrics(path_, of_.counters(), options_.labels);
    ++written_;
  } catch (const std::exception& why) {
    if (failures_.fetch_add(1) == 0 && options_.complaints != nullptr)
      std::fprintf(options_.complaints, "%s\n", why.what());
  }
}

}  // namespace penstock::inline v0_1
