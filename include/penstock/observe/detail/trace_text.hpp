// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/observe/concepts.hpp>

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

/// The JSON of the Trace Event Format, as far as a timeline needs it.
namespace penstock::inline v0_1::detail {

inline std::uint64_t trace_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

/// A text in quotes. Bytes that are no ASCII become '?': names come from anywhere, and JSON is UTF-8.
[[nodiscard]] inline std::string json_string(std::string_view s) {
  std::string quoted = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') quoted += '\\';
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte < 0x20 || byte > 0x7e ? '?' : c;
  }
  return quoted + '"';
}

/// Collects events. `ph` is X for what has a length, M for names, b and e for what overlaps, i for a moment;
/// times are microseconds with three decimals.
template <class = void>
class basic_trace_text {
 public:
  basic_trace_text() : pid_(::getpid()) {}

  void process(std::string_view name) {
    begin("process_name", "M", 0);
    append(text_, {",\"args\":{\"name\":", json_string(name), "}}"});
  }
  void thread(std::uint64_t tid, std::string_view name) {
    begin("thread_name", "M", tid);
    append(text_, {",\"args\":{\"name\":", json_string(name), "}}"});
    begin("thread_sort_index", "M", tid);
    append(text_, {",\"args\":{\"sort_index\":", tid, "}}"});
  }
  void complete(std::uint64_t tid, const run_event& e, std::string_view name) {
    begin(name, "X", tid);
    append(text_, {",\"cat\":\"", category(e.what), "\",\"ts\":"});
    microseconds(e.begin_ns);
    text_ += ",\"dur\":";
    microseconds(e.end_ns - e.begin_ns);
    arguments(e);
  }
  void held(std::uint64_t tid, std::string_view id, const run_event& e, std::string_view name) {
    for (const bool opens : {true, false}) {
      begin(name, opens ? "b" : "e", tid);
      append(text_, {",\"cat\":\"hold\",\"id\":", json_string(id), ",\"ts\":"});
      microseconds(opens ? e.begin_ns : e.end_ns);
      if (opens)
        arguments(e);
      else
        text_ += ",\"args\":{}}";
    }
  }
  void lost(std::uint64_t tid, std::uint64_t when_ns, std::uint64_t count) {
    begin("events before this were dropped", "i", tid);
    text_ += ",\"s\":\"t\",\"ts\":";
    microseconds(when_ns);
    append(text_, {",\"args\":{\"dropped\":", count, "}}"});
  }
  [[nodiscard]] std::string finish(std::uint64_t dropped) {
    std::string whole = "{\"traceEvents\":[\n";
    whole += text_;
    append(whole, {"\n],\n\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":", dropped, "}}\n"});
    return whole;
  }

 private:
  static std::string_view category(activity a) noexcept {
    switch (a) {
      case activity::evaluate:
      case activity::stage:
      case activity::read:
        return "work";
      case activity::copy:
      case activity::wait_for_copy:
        return "device";
      default:
        return "wait";
    }
  }
  void begin(std::string_view name, std::string_view phase, std::uint64_t tid) {
    append(text_, {text_.empty() ? "" : ",\n", "{\"name\":", json_string(name), ",\"ph\":\"", phase,
                   "\",\"pid\":", pid_, ",\"tid\":", tid});
  }
  void microseconds(std::uint64_t ns) {
    const std::uint64_t rest = ns % 1000;
    append(text_, {ns / 1000, '.', rest / 100, rest / 10 % 10, rest % 10});
  }
  void arguments(const run_event& e) {
    text_ += ",\"args\":{";
    bool any = false;
    const auto add = [&](std::string_view name, std::uint64_t value) {
      append(text_, {any ? ",\"" : "\"", name, "\":", value});
      any = true;
    };
    if (e.block != run_event::none) add("block", e.block);
    if (e.batch != run_event::none) add("batch", e.batch);
    if (e.epoch != run_event::none) add("epoch", e.epoch);
    if (e.first != run_event::none) add("first position", e.first);
    if (e.last != run_event::none) add("last position", e.last);
    if (e.samples != 0) add("samples", e.samples);
    text_ += "}}";
  }

  pid_t pid_;
  std::string text_;
};
using trace_text = basic_trace_text<>;

/// Under a temporary name beside it, flushed, renamed; nothing is left behind where that fails.
template <class = void>
void write_whole_file(const std::string& path, std::string_view bytes) {
  const std::string temporary = text({path, ".tmp-", ::getpid(), '-', trace_now()});
  const auto fail = [&](std::string_view what) {
    const int code = errno;
    std::remove(temporary.c_str());
    throw error(errc::io, {"cannot ", what, " the timeline (", std::strerror(code), ")"}).in_file(path);
  };
  std::FILE* const out = std::fopen(temporary.c_str(), "wbx");
  if (out == nullptr) fail("create");
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), out) == bytes.size() &&
                       std::fflush(out) == 0 && ::fsync(::fileno(out)) == 0;
  if (std::fclose(out) != 0 || !written) fail("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("rename");
}

}  // namespace penstock::inline v0_1::detail
