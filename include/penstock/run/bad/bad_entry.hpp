// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// A bad sample recorded in a ledger of `bad_samples`.
struct bad_entry {
  /// The sample that took its slot; absent where the bad sample was skipped.
  struct substitute_place {
    std::uint64_t index = 0;  ///< of its position, in the same epoch
    std::optional<std::uint64_t> source{};
    std::string key, file;
    friend bool operator==(const substitute_place&, const substitute_place&) = default;
  };

  std::uint64_t rank = 0;
  /// Whether this is about a shard that is cut off or damaged, of which the samples before `offset` are in
  /// the dataset (see `on_damaged_shard`): then there is no position, sample or substitute.
  bool shard = false;
  std::uint64_t epoch = 0, index = 0;     ///< the position
  std::optional<std::uint64_t> source{};  ///< the sample's number in the source
  std::string key, file;
  std::optional<std::uint64_t> offset{};
  std::string stage, code, reason;
  std::optional<substitute_place> substitute{};

  friend bool operator==(const bad_entry&, const bad_entry&) = default;
};

/// The lines of a ledger.
struct bad_entries {
  std::vector<bad_entry> all;
  std::uint64_t cut = 0;  ///< lines left unfinished by a process that was killed
};

/// Parses a line that `bad_samples` wrote into a ledger; returns nothing if the line is incomplete. Any other
/// malformed line throws `error(errc::format)`, with the offset. Bytes of a name that were not valid UTF-8
/// come back as U+FFFD.
[[nodiscard]] std::optional<bad_entry> bad_entry_from(std::string_view line);

/// Reads a ledger that `bad_samples` wrote, entirely into memory and in the order of the file; a bad sample
/// that was delivered again appears again. Throws `error(errc::io)`, or `error(errc::format)` with the offset
/// in the file.
[[nodiscard]] bad_entries read_bad_ledger(const std::string& path);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/bad/bad_entry.ipp>
#endif
