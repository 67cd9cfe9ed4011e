// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/bad/bad_entry.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE std::optional<std::uint64_t> next_number(json_reader& json, std::string_view name) {
  return json.next_name(name) ? std::optional(json.number()) : std::nullopt;
}
PENSTOCK_INLINE std::string next_text(json_reader& json, std::string_view name) {
  return json.next_name(name) ? json.string() : std::string();
}
PENSTOCK_INLINE std::uint64_t number_of(json_reader& json, std::string_view name) {
  json.name(name);
  return json.number();
}

// Accepts exactly what `ledger_line` writes, apart from blanks between tokens.
PENSTOCK_INLINE bad_entry read_bad_entry(json_reader& json) {
  bad_entry made;
  json.expect('{');
  made.rank = number_of(json, "rank");
  if (const auto epoch = next_number(json, "epoch")) {
    made.epoch = *epoch;
    json.expect(',');
    made.index = number_of(json, "index");
    made.source = next_number(json, "source");
  } else {
    made.shard = true;
  }
  made.key = next_text(json, "key");
  made.file = next_text(json, "file");
  made.offset = next_number(json, "offset");
  made.stage = next_text(json, "stage");
  made.code = next_text(json, "code");
  made.reason = next_text(json, "reason");
  json.expect(',');
  json.name("done");
  const std::size_t begin = json.at();
  const std::string done = json.string();
  if (made.shard) {
    if (done != "taken up to there") json.fail("\"taken up to there\"", begin);
  } else if (done == "replaced") {
    json.expect(',');
    json.name("substitute");
    json.expect('{');
    bad_entry::substitute_place other;
    other.index = number_of(json, "index");
    other.source = next_number(json, "source");
    other.key = next_text(json, "key");
    other.file = next_text(json, "file");
    json.expect('}');
    made.substitute = std::move(other);
  } else if (done != "skipped") {
    json.fail("\"skipped\" or \"replaced\"", begin);
  }
  json.expect('}');
  return made;
}

}  // namespace detail

PENSTOCK_INLINE std::optional<bad_entry> bad_entry_from(std::string_view line) {
  detail::json_reader json(line,
                           {errc::format, "this is not a line of a ledger of bad samples", "bad_samples"});
  bad_entry made;
  try {
    made = detail::read_bad_entry(json);
  } catch (const error&) {
    if (json.was_cut()) return std::nullopt;
    throw;
  }
  json.end("the end of the line");
  return made;
}

PENSTOCK_INLINE bad_entries read_bad_ledger(const std::string& path) {
  std::string text;
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(path.c_str(), "rb"), std::fclose);
    if (in == nullptr)
      throw error(errc::io, "this ledger of bad samples cannot be opened; check its name").in_file(path);
    char piece[1 << 14];
    for (std::size_t got = 0; (got = std::fread(piece, 1, sizeof piece, in.get())) != 0;)
      text.append(piece, got);
    if (std::ferror(in.get()) != 0)
      throw error(errc::io, "this ledger of bad samples cannot be read").in_file(path);
  }
  bad_entries found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    try {
      if (auto one = line.empty() ? std::nullopt : bad_entry_from(line))
        found.all.push_back(std::move(*one));
      else
        found.cut += line.empty() ? 0u : 1u;
    } catch (error& e) {
      throw error(e.code(), e.message())
          .in_stage("bad_samples")
          .in_file(path)
          .at_offset(begin + e.offset().value_or(0));
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace penstock::inline v0_1
