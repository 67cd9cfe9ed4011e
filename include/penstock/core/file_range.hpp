// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/tensor.hpp>

#include <string>
#include <vector>

/// Samples that are located and not read: a source says where their bytes are, and something after `batch`
/// reads them, straight to where they will be used.
namespace penstock::inline v0_1 {

/// Where the bytes of a sample are. Its column in a batch has these three numbers for each row; the names of
/// the files are with the source.
struct file_range {
  std::uint64_t file = 0;  ///< its place in `located_files::files`
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend constexpr bool operator==(const file_range&, const file_range&) = default;
};

/// The files that ranges are of.
struct located_files {
  struct entry {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t stamp = 0;  ///< when it was changed last, in nanoseconds
  };
  std::vector<entry> files;
  extents row;  ///< the shape of a sample's array
};

}  // namespace penstock::inline v0_1
