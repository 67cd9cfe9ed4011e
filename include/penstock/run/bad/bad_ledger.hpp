// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// The name of a rank's ledger: `{rank}` is replaced by the rank's number. A name without it, when there are
/// several ranks, gets ".rank3" before the extension.
[[nodiscard]] std::string ledger_name(std::string name, std::uint64_t rank, std::uint64_t world);

/// A file that lines are appended to, each in a single write. One thread. Throws `errc::io`, with the file.
class bad_ledger {
 public:
  bad_ledger() = default;
  /// Opens a file, creating it if necessary; an empty name opens nothing. An unfinished last line is
  /// terminated first.
  explicit bad_ledger(std::string path);
  bad_ledger(bad_ledger&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}
  bad_ledger& operator=(bad_ledger&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~bad_ledger() {
    if (file_ != nullptr) std::fclose(file_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }
  /// Appends a line and flushes it to the system.
  void write(std::string line);

 private:
  [[noreturn]] void fail(std::string_view what);

  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/bad/bad_ledger.ipp>
#endif
