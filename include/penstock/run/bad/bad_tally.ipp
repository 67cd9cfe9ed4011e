// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/bad/bad_tally.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <cerrno>
#include <cstring>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string ledger_name(std::string name, std::uint64_t rank, std::uint64_t world) {
  const std::string number = std::to_string(rank);
  bool named = false;
  for (std::size_t at = 0; (at = name.find("{rank}", at)) != std::string::npos; at += number.size()) {
    name.replace(at, 6, number);
    named = true;
  }
  if (named || world == 1) return name;
  const std::size_t slash = name.rfind('/'), first = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = name.rfind('.');
  return name.insert(dot == std::string::npos || dot <= first ? name.size() : dot, ".rank" + number);
}

PENSTOCK_INLINE bad_ledger::bad_ledger(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::FILE* const file = std::fopen(path_.c_str(), "ab+");
  if (file == nullptr) fail("cannot be opened");
  file_.reset(file);
  if (std::fseek(file, 0, SEEK_END) == 0 && std::ftell(file) > 0 && std::fseek(file, -1, SEEK_END) == 0) {
    const int last = std::fgetc(file);
    std::fseek(file, 0, SEEK_END);
    if (last != '\n' && last != EOF) write("");
  }
}
PENSTOCK_INLINE void bad_ledger::write(std::string line) {
  line += '\n';
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
    fail("cannot be written");
}
PENSTOCK_INLINE void bad_ledger::fail(std::string_view what) {
  const int code = errno;
  throw error(errc::io, {"the ledger of bad samples ", what, ": ", std::strerror(code),
                         "; give bad_samples::ledger another place"})
      .in_stage("bad_samples")
      .in_file(path_);
}

PENSTOCK_INLINE std::string ledger_line(const bad_slot& one, const world& share, const sample_place& mine,
                                        const sample_place& other) {
  std::string line;
  const auto place = [&](position at, const sample_place& found) {
    detail::append(line, {"\"index\": ", at.index});
    if (found.source) detail::append(line, {", \"source\": ", *found.source});
  };
  const auto text = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) detail::append(line, {", \"", name, "\": ", detail::json_quoted(value)});
  };
  detail::append(line, {"{\"rank\": ", share.rank, ", \"epoch\": ", one.at.epoch, ", "});
  place(one.at, mine);
  text("key", one.what.key().empty() ? std::string_view(mine.key) : one.what.key());
  text("file", one.what.file().empty() ? std::string_view(mine.file) : one.what.file());
  if (one.what.offset()) detail::append(line, {", \"offset\": ", *one.what.offset()});
  text("stage", one.what.stage());
  text("code", to_string(one.what.code()));
  text("reason", one.what.message());
  text("done", one.substitute ? "replaced" : "skipped");
  if (one.substitute) {
    line += ", \"substitute\": {";
    place(*one.substitute, other);
    text("key", other.key);
    text("file", other.file);
    line += '}';
  }
  return line + '}';
}

PENSTOCK_INLINE std::string ledger_line(const damaged_shard& one, const world& share) {
  return detail::text(
      {"{\"rank\": ", share.rank, ", \"file\": ", detail::json_quoted(one.file), ", \"offset\": ", one.offset,
       ", \"code\": ", detail::json_quoted(to_string(errc::format)), ", \"reason\": ",
       detail::json_quoted(
           detail::text({one.reason, "; the ", one.samples, " samples before it are in the dataset"})),
       ", \"done\": \"taken up to there\"}"});
}

PENSTOCK_INLINE void tolerant_tally::note(std::span<const damaged_shard> damaged) {
  if (!ledger_ || share_.rank != 0) return;
  for (const damaged_shard& one : damaged) ledger_.write(ledger_line(one, share_));
}

PENSTOCK_INLINE tolerant_tally::tolerant_tally(const world& share, std::string policy, std::uint64_t max_bad,
                                               const std::string& path)
    : share_(share), policy_(std::move(policy)), limit_(max_bad) {
  // Replicas of a rank see the same bad samples; only one of them writes the ledger.
  if (share_.replica == 0 && !path.empty()) ledger_ = bad_ledger(ledger_name(path, share_.rank, share_.size));
}
PENSTOCK_INLINE void tolerant_tally::see(std::uint64_t epoch, const bad_slot& one) {
  const std::uint64_t before = count(epoch) + pending_.size();
  if (before >= limit_)
    throw detail::error_like(one.what, {policy_, ": rank ", share_.rank, " has spent its budget of ", limit_,
                                        " bad samples in epoch ", epoch, ", and this is number ", before + 1,
                                        "; fix the data or raise the budget: ", one.what.message()});
  pending_.push_back(one);
}
PENSTOCK_INLINE void tolerant_tally::commit(std::uint64_t epoch, sample_place (*place_of)(void*, position),
                                            void* plan) {
  if (pending_.empty()) return;
  if (ledger_)
    for (const bad_slot& one : pending_)
      ledger_.write(ledger_line(one, share_, place_of(plan, one.at),
                                one.substitute ? place_of(plan, *one.substitute) : sample_place()));
  for (const bad_slot& one : pending_)
    (one.substitute ? replaced_ : skipped_).fetch_add(1, std::memory_order_relaxed);
  restore(epoch, count(epoch) + pending_.size());
  pending_.clear();
}

}  // namespace penstock::inline v0_1
