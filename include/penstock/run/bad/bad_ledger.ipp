// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/bad/bad_ledger.hpp>

#include <penstock/core/error.hpp>

#include <cerrno>
#include <cstddef>
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
  file_ = std::fopen(path_.c_str(), "ab+");
  if (file_ == nullptr) fail("cannot be opened");
  if (std::fseek(file_, 0, SEEK_END) == 0 && std::ftell(file_) > 0 && std::fseek(file_, -1, SEEK_END) == 0) {
    const int last = std::fgetc(file_);
    std::fseek(file_, 0, SEEK_END);
    if (last != '\n' && last != EOF) write("");
  }
}
PENSTOCK_INLINE void bad_ledger::write(std::string line) {
  line += '\n';
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    fail("cannot be written");
}
PENSTOCK_INLINE void bad_ledger::fail(std::string_view what) {
  const int code = errno;
  throw error(errc::io, {"the ledger of bad samples ", what, ": ", std::strerror(code),
                         "; give bad_samples::ledger another place"})
      .in_stage("bad_samples")
      .in_file(path_);
}

}  // namespace penstock::inline v0_1
