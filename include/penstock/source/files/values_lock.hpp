// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/local/output_file.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// The right to make one file, which one thread of one process on the machine holds at a time. The lock
/// ends with the process, however that ends. The file is renamed into place, so a file system without locks
/// costs duplicate work and nothing else.
class making_lock : unmovable {
 public:
  /// Waits for the others.
  explicit making_lock(const std::string& path);
  ~making_lock();

 private:
  [[nodiscard]] bool still_there() const noexcept;

  std::string lock_;
  owned_descriptor opened_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/values_lock.ipp>
#endif
