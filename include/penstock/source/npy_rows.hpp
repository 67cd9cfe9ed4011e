// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/rows/row_source.hpp>
#include <penstock/source/rows/stored_npy.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

/// The source that `npy_rows` makes of npy files.
template <class T, storage Storage, std::uint64_t... Lengths>
using npy_row_source = detail::row_source<detail::npy_format<T>, T, Storage, Lengths...>;

/// The rows of numpy's `.npy` files along their first dimension, all files as one dataset.
///
///     auto features = npy_rows<float>("features-{00..07}.npy") | shuffle | batch(256);
///     auto images = npy_rows<std::uint8_t, 28, 28>("images.npy");     // their shape is part of the type
///
/// In: a pattern of names or a list of paths, which are `mapped_file`, or any storage. Out: an array
/// expression of the files' shape minus its first dimension, a view of the mapping until it is written to its
/// slot; with lengths in the type even the first batch is written in place. Versions 1.0 to 3.0 of the
/// format, either byte order.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the header and
/// the ends of each file.
/// Cost per sample: a binary search among the files and one copy of the row, or one read if the storage has
/// no views; no allocation, except for the scratch of `finish` if a file's values are misaligned or of the
/// other byte order.
/// Threads: any number at once.
/// Throws, with file and offset, `errc::format` for a file that is not npy, a dtype other than `T`, Fortran
/// order, an array of no dimensions, and a header that does not match the file's size; `errc::shape` if the
/// shape of the rows is not the one asked for or differs from that of the first file; `errc::io`, also for a
/// file that was changed after the plan was made. For a file that shrinks while it is mapped see
/// `mapped_file_options`.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npy_row_source<T, Storage, Lengths...> npy_rows(Storage where) {
  return npy_row_source<T, Storage, Lengths...>(std::move(where));
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npy_row_source<T, mapped_file, Lengths...> npy_rows(detail::mapped_paths paths) {
  return npy_row_source<T, mapped_file, Lengths...>(std::move(paths).files());
}

}  // namespace penstock::inline v0_1
