// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/hash_bytes.hpp>
#include <penstock/source/detail/row_source.hpp>
#include <penstock/source/detail/stored_npy.hpp>
#include <penstock/source/detail/zip_directory.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

template <class T, class Storage>
struct npz_files : row_files<T, Storage> {
  static constexpr std::string_view source_name = "npz_rows";
  static std::string type_name() { return stored_npy<T>::type_name(); }

  std::string name;

  npz_files(Storage given, std::string_view array) : row_files<T, Storage>(std::move(given)), name(array) {}

  [[nodiscard]] std::uint64_t mark() const { return hash_bytes(0x6e707a, bytes_of(name)); }

  void read(const extents* wanted) {
    this->read_each(wanted, "this array", [this](auto& session, object_id object, std::uint64_t size) {
      const zip_member member = zip_directory(session, object, size).array(name);
      try {
        return stored_npy<T>::find(session, object, member.begin, member.size);
      } catch (error& e) {
        // storage says where in the file itself
        if (e.file().empty()) e.within(detail::text({"the array '", name, "'"}), member.begin);
        throw;
      }
    });
  }
};

}  // namespace detail

/// The source that `npz_rows` makes of npz files.
template <class T, storage Storage, std::uint64_t... Lengths>
using npz_row_source = detail::row_source<detail::npz_files<T, Storage>, T, Storage, Lengths...>;

/// The rows of one array of numpy's `.npz` files along its first length, all files as one dataset.
///
///     auto images = npz_rows<std::uint8_t>("part-{00..07}.npz", "images") | shuffle(seed) | batch(256);
///     auto fields = zip<"image", "label">(npz_rows<std::uint8_t, 28, 28>("mnist.npz", "x_train"),
///                                         npz_rows<std::uint8_t>("mnist.npz", "y_train"));
///
/// In: a pattern with braces, which is `mapped_file`, or any storage; the array's name, the same in all
/// files, as `numpy.load` takes it.
/// Out, kind, cost, threads: as `npy_rows`. Making the plan reads the directory of each file, at most 64 MiB.
/// Throws as `npy_rows`; `errc::missing` for a name that is not there; `errc::format`, with file and offset,
/// for arrays that are compressed (`numpy.savez_compressed`) or encrypted, and for archives that are cut or
/// not in one piece. The archive's checksums are not looked at: that would read each array whole.
/// Source: numpy/lib/npyio.py; PKWARE's APPNOTE.TXT, version 6.3.10.
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npz_row_source<T, Storage, Lengths...> npz_rows(Storage where, std::string_view array) {
  return npz_row_source<T, Storage, Lengths...>(std::move(where), array);
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npz_row_source<T, mapped_file, Lengths...> npz_rows(std::string_view pattern,
                                                                  std::string_view array) {
  return npz_row_source<T, mapped_file, Lengths...>(mapped_file(pattern), array);
}

static_assert(indexed_source<npz_row_source<float, mapped_file>>, "npz_row_source is an indexed source");

}  // namespace penstock::inline v0_1
