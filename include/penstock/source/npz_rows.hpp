// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/rows/row_source.hpp>
#include <penstock/source/rows/zip_directory.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
struct npz_format {
  static constexpr std::string_view source_name = "npz_rows", holder = "this array";
  static constexpr npy_type type = npy_type::of<T>();

  std::string name;

  [[nodiscard]] std::uint64_t mark() const { return hash_bytes(0x6e707a, bytes_of(name)); }
  [[nodiscard]] static std::string type_name() { return type.name(); }
  [[nodiscard]] stored_rows find(session_view session, object_id object, std::uint64_t size) const {
    return find_npz_rows(session, object, size, name, type);
  }
};

}  // namespace detail

/// The source that `npz_rows` makes of npz files.
template <class T, storage Storage, std::uint64_t... Lengths>
using npz_row_source = detail::row_source<detail::npz_format<T>, T, Storage, Lengths...>;

/// The rows of one array of numpy's `.npz` files along its first dimension, all files as one dataset.
///
///     auto images = npz_rows<std::uint8_t>("part-{00..07}.npz", "images") | shuffle | batch(256);
///     auto fields = zip<"image", "label">(npz_rows<std::uint8_t, 28, 28>("mnist.npz", "x_train"),
///                                         npz_rows<std::uint8_t>("mnist.npz", "y_train"));
///
/// In: a pattern of names or a list of paths, which are `mapped_file`, or any storage; the array's name as
/// `numpy.load` takes it, which is common to all files.
/// Out, kind, cost, threads: as for `npy_rows`. Making the plan reads the directory of each file, at most 64
/// MiB. An array that is joined by `zip<...>` but not used by the plan (`| fields<"image">`) is neither
/// opened nor read when the plan runs.
/// Throws what `npy_rows` throws; `errc::missing` for an unknown name; `errc::format`, with file and offset,
/// for arrays that are compressed (`numpy.savez_compressed`) or encrypted, and for archives that are cut or
/// split into several parts. The archive's checksums are not checked: that would mean reading each array
/// whole.
/// Source: numpy/lib/npyio.py; PKWARE's APPNOTE.TXT, version 6.3.10.
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npz_row_source<T, Storage, Lengths...> npz_rows(Storage where, std::string_view array) {
  return npz_row_source<T, Storage, Lengths...>(std::move(where), {std::string(array)});
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npz_row_source<T, mapped_file, Lengths...> npz_rows(detail::mapped_paths paths,
                                                                  std::string_view array) {
  return npz_row_source<T, mapped_file, Lengths...>(std::move(paths).files(), {std::string(array)});
}

}  // namespace penstock::inline v0_1
