// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "peers/usage.hpp"
#include "support/folder.hpp"

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

/// What the programs share that copy from a mapped npy file.
namespace bench {

/// The rows of an npy file of bytes.
class npy_rows {
 public:
  /// The header of the file has fewer bytes than there are samples.
  npy_rows(const std::string& path, std::size_t samples)
      : file_(path), samples_(samples), size_(descriptor(path).size()) {}

  [[nodiscard]] std::size_t samples() const noexcept { return samples_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return size_ / samples_; }
  [[nodiscard]] const std::byte* data() const { return file_.data() + (size_ - samples_ * bytes()); }

 private:
  mapping file_;
  std::size_t samples_, size_;
};

/// Prints the one line that peers.py reads.
inline void print_result(std::uint64_t samples, double seconds, double cpu, double first,
                         const megabytes& used, std::uint64_t check) {
  std::printf(R"({"samples": %)" PRIu64 R"(, "seconds": %.9g, "cpu_seconds": %.9g, )"
              R"("first_batch_seconds": %.9g, "memory_mb": %.6g, "own_memory_mb": %.6g, "check": %)" PRIu64
              "}\n",
              samples, seconds, cpu, first, used.all, used.own, check);
}

}  // namespace bench
