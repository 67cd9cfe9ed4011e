// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/range_source.hpp>
#include <penstock/source/rows/stored_npy.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
struct npy_range_format : npy_format<T> {
  static constexpr std::string_view source_name = "npy_ranges";

  [[nodiscard]] static constexpr std::uint64_t mark() noexcept { return 0x6e70797267; }
};

}  // namespace detail

/// The source that `npy_ranges` makes.
template <class T>
using npy_range_source = detail::range_source<detail::npy_range_format<T>, T>;

/// Where the rows of numpy's `.npy` files are, for something after `batch` that reads them straight to a
/// device, as `cufile` does. What `npy_rows` reads this only locates.
///
///     auto rows = npy_ranges<float>("features-{00..07}.npy");
///     auto places = rows | shuffle | batch(256);  // each row: file, offset, bytes
///
/// In: a pattern of names of local files, whose rows have one shape. Out: a `file_range` for each row along
/// their first dimension; `located()` names the files.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the header and
/// the ends of each file.
/// Cost per sample: a binary search among the files. Nothing is read.
/// Threads: any number at once.
/// Errors, when the plan is made: those of `npy_rows`, and `errc::format` for files of the other byte order.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
template <class T>
[[nodiscard]] npy_range_source<T> npy_ranges(std::string_view pattern) {
  return {detail::files_of(std::string(pattern)), {}, nullptr};
}

}  // namespace penstock::inline v0_1
