// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/detail/trace_text.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE trace_text::trace_text() : pid_(static_cast<std::uint64_t>(::getpid())) {}
PENSTOCK_INLINE void trace_text::process(std::string_view name) {
  begin("process_name", "M", 0);
  append(text_, {",\"args\":{\"name\":", detail::json_quoted(name), "}}"});
}
PENSTOCK_INLINE void trace_text::thread(std::uint64_t tid, std::string_view name) {
  begin("thread_name", "M", tid);
  append(text_, {",\"args\":{\"name\":", detail::json_quoted(name), "}}"});
  begin("thread_sort_index", "M", tid);
  append(text_, {",\"args\":{\"sort_index\":", tid, "}}"});
}
PENSTOCK_INLINE void trace_text::complete(std::uint64_t tid, const run_event& e, std::string_view name) {
  begin(name, "X", tid);
  append(text_, {",\"cat\":\"", category(e.what), "\",\"ts\":"});
  microseconds(e.begin_ns);
  text_ += ",\"dur\":";
  microseconds(e.end_ns - e.begin_ns);
  arguments(e);
}
PENSTOCK_INLINE void trace_text::counted(const run_event& e) {
  begin(to_string(e.what), "C", 0);
  text_ += ",\"ts\":";
  microseconds(e.begin_ns);
  if (e.what == activity::cache_counts) {
    append(text_,
           {",\"args\":{\"hits\":", e.samples, ",\"fetched\":", e.first, ",\"fetched again\":", e.last,
            ",\"evicted\":", e.batch, ",\"corrupt\":", e.block, ",\"past the cache\":", e.epoch, "}}"});
    return;
  }
  append(text_, {",\"args\":{\"requests\":", e.samples, ",\"retries\":", e.first, ",\"given up\":", e.epoch,
                 ",\"second reads\":", e.last, ",\"second reads that won\":", e.stage,
                 ",\"slow downs\":", e.batch, ",\"throttled\":", e.block, "}}"});
}
PENSTOCK_INLINE void trace_text::held(std::uint64_t tid, std::string_view id, const run_event& e,
                                      std::string_view name) {
  for (const bool opens : {true, false}) {
    begin(name, opens ? "b" : "e", tid);
    append(text_, {",\"cat\":\"hold\",\"id\":", detail::json_quoted(id), ",\"ts\":"});
    microseconds(opens ? e.begin_ns : e.end_ns);
    if (opens)
      arguments(e);
    else
      text_ += ",\"args\":{}}";
  }
}
PENSTOCK_INLINE void trace_text::lost(std::uint64_t tid, std::uint64_t when_ns, std::uint64_t count) {
  begin("events before this were dropped", "i", tid);
  text_ += ",\"s\":\"t\",\"ts\":";
  microseconds(when_ns);
  append(text_, {",\"args\":{\"dropped\":", count, "}}"});
}
PENSTOCK_INLINE std::string trace_text::finish(std::uint64_t dropped) {
  std::string whole = "{\"traceEvents\":[\n";
  whole += text_;
  append(whole, {"\n],\n\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped\":", dropped, "}}\n"});
  return whole;
}
PENSTOCK_INLINE std::string_view trace_text::category(activity a) noexcept {
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
PENSTOCK_INLINE void trace_text::begin(std::string_view name, std::string_view phase, std::uint64_t tid) {
  append(text_, {text_.empty() ? "" : ",\n", "{\"name\":", detail::json_quoted(name), ",\"ph\":\"", phase,
                 "\",\"pid\":", pid_, ",\"tid\":", tid});
}
PENSTOCK_INLINE void trace_text::microseconds(std::uint64_t ns) {
  const std::uint64_t rest = ns % 1000;
  append(text_, {ns / 1000, '.', rest / 100, rest / 10 % 10, rest % 10});
}
PENSTOCK_INLINE void trace_text::arguments(const run_event& e) {
  text_ += ",\"args\":{";
  bool any = false;
  const auto add = [&](std::string_view name, std::uint64_t value) {
    append(text_, {any ? ",\"" : "\"", name, "\":", value});
    any = true;
  };
  if (e.what == activity::request) {
    add("object", e.block);
    add("offset", e.first);
    add("bytes", e.last - e.first);
    text_ += "}}";
    return;
  }
  if (e.block != run_event::none) add("block", e.block);
  if (e.batch != run_event::none) add("batch", e.batch);
  if (e.epoch != run_event::none) add("epoch", e.epoch);
  if (e.first != run_event::none) add("first position", e.first);
  if (e.last != run_event::none) add("last position", e.last);
  if (e.samples != 0) add("samples", e.samples);
  text_ += "}}";
}

PENSTOCK_INLINE void write_whole_file(const std::string& path, std::string_view bytes) {
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
