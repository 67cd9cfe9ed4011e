// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/npy_header.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/text.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/row_source.hpp>
#include <penstock/source/detail/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// The files of an array that is cut along its first length, and where their rows are.
template <class T, class Storage>
struct npy_files : row_files<T, Storage> {
  static_assert(npy_kind<T> != '\0' && std::is_trivially_copyable_v<T>,
                "penstock: npy_rows<T> needs a bool, integer or floating type; for a half-float type of your "
                "own specialise penstock::npy_kind");
  using row_files<T, Storage>::row_files;

  static constexpr std::string_view source_name = "npy_rows";
  static constexpr std::uint64_t mark = 0x6e7079;
  static std::string type_name() { return detail::text({npy_kind<T>, sizeof(T)}); }

  void read(const extents* wanted) {
    this->read_each(wanted, "this npy file", [](auto& session, object_id object, std::uint64_t size) {
      return find(session, object, size);
    });
  }

 private:
  static constexpr std::uint64_t longest_header = 1_MiB;

  template <class Session>
  static stored_rows find(Session& session, object_id object, std::uint64_t size) {
    buffer room;
    const bytes_view start = range_of(session, object, 0, std::min<std::uint64_t>(size, 12), room);
    const npy_header header =
        read_npy_header(range_of(session, object, 0, std::min(size, length_of(start)), room));
    check(header);
    const std::uint64_t expected = npy_payload(header);
    if (expected != size - header.data_offset)
      throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                                 "', which is ", expected, " bytes, but ", size - header.data_offset,
                                 " follow it; copy the file again if it was cut"})
          .at_offset(header.data_offset);
    const bool swapped = header.order == (std::endian::native == std::endian::little ? '>' : '<');
    return {header.shape, header.data_offset, 8, swapped};
  }

  // How much of a file its header takes, if it is one; what `start` says is not believed beyond a bound.
  static std::uint64_t length_of(bytes_view start) {
    if (start.size() < 12) return start.size();
    const auto byte_at = [start](std::size_t i) { return std::to_integer<std::uint64_t>(start[i]); };
    const bool wide = byte_at(6) > 1;
    const std::uint64_t length =
        byte_at(8) | byte_at(9) << 8 | (wide ? byte_at(10) << 16 : 0) | (wide ? byte_at(11) << 24 : 0);
    if (length > longest_header)
      throw error(errc::limit,
                  {"the npy header says it has ", length, " bytes, and more than a MiB is not read"})
          .at_offset(8);
    return length + (wide ? 12 : 10);
  }

  static void check(const npy_header& header) {
    const std::string descr(header.descr);
    if (header.kind != npy_kind<T> || header.item_size != sizeof(T))
      throw error(errc::format, {"the npy file holds dtype '", descr, "', but '", npy_kind<T>, sizeof(T),
                                 "' was asked for; see npy_rows<T>"})
          .at_offset(8);
    if (header.shape.rank() == 0)
      throw error(errc::format, "the npy file holds one number, which has no rows").at_offset(8);
    if (header.fortran && header.shape.rank() > 1)
      throw error(errc::format,
                  "the npy file is in Fortran order, in which a row is not in one piece: save it with "
                  "numpy.ascontiguousarray")
          .at_offset(8);
  }
};

}  // namespace detail

/// The source that `npy_rows` makes of npy files.
template <class T, storage Storage, std::uint64_t... Lengths>
using npy_row_source = detail::row_source<detail::npy_files<T, Storage>, T, Storage, Lengths...>;

/// The rows of numpy's `.npy` files along their first length, all files as one dataset.
///
///     auto features = npy_rows<float>("features-{00..07}.npy") | shuffle(seed) | batch(256);
///     auto images = npy_rows<std::uint8_t, 28, 28>("images.npy");     // their shape is part of the type
///
/// In: a pattern with braces, which is `mapped_file`, or any storage. Out: an array expression of the files'
/// shape without its first length, a view of the mapping until it is written to its slot; with lengths in the
/// type a batch is written in place from the first one on. Versions 1.0 to 3.0 of the format, either byte
/// order.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the header and
/// the ends of each file.
/// Cost per sample: a binary search among the files and one copy of the row; with a storage that has no views
/// one read; no allocation, but for the scratch of `finish` where a file's values are misaligned or of the
/// other byte order.
/// Threads: any number at once.
/// Throws, with file and offset, `errc::format` for what is no npy file, another dtype than `T`,
/// Fortran order, an array without a length, and a header that does not fit the file's size;
/// `errc::shape` for rows of another shape than asked for or than those of the first file; `errc::io`, also
/// for a file that was changed after the plan was made; for one that shrinks while it is mapped see
/// `mapped_file_options`.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npy_row_source<T, Storage, Lengths...> npy_rows(Storage where) {
  return npy_row_source<T, Storage, Lengths...>(std::move(where));
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npy_row_source<T, mapped_file, Lengths...> npy_rows(std::string_view pattern) {
  return npy_row_source<T, mapped_file, Lengths...>(mapped_file(pattern));
}

static_assert(indexed_source<npy_row_source<float, mapped_file>>, "npy_row_source is an indexed source");

}  // namespace penstock::inline v0_1
