// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/memory_files.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace penstock_test {

/// Files in memory with a stamp, as those of a store have one.
struct stamped_files {
  penstock::memory_files files;
  std::uint64_t stamp = 7;

  struct session : penstock::memory_files::session {
    static constexpr penstock::session_traits traits = {};  // shows nothing in place
    std::uint64_t stamp;
    session(const penstock::memory_files& of, std::uint64_t given)
        : penstock::memory_files::session(of.connect()), stamp(given) {}
    [[nodiscard]] penstock::object_version version(penstock::object_id id) const {
      return {this->size(id), stamp};
    }
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files, stamp}; }
};

}  // namespace penstock_test
