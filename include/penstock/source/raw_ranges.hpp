// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/range_source.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// The rows of a file without a header, of so many bytes each. Throws `errc::format` if it does not end with
/// a row.
[[nodiscard]] inline stored_rows find_raw_rows(std::uint64_t size, const extents& row, std::size_t item) {
  const std::uint64_t elements = row.elements();
  if (row.rank() == extents::max_rank || elements == 0 ||
      elements > std::numeric_limits<std::uint64_t>::max() / item)
    throw error(errc::argument, {"rows of shape ", to_string(row),
                                 " are no rows of a file; write the shape of one row, as in "
                                 "raw_ranges<float>(pattern, extents(128))"});
  const std::uint64_t row_bytes = elements * item;
  if (size % row_bytes != 0)
    throw error(errc::format, {"this raw file has ", size, " bytes, which are not rows of ", row_bytes,
                               ": either it is cut, or its rows are not of shape ", to_string(row)})
        .at_offset(size - size % row_bytes);
  return {row.prepend(size / row_bytes), 0, 0, false};
}

template <class T>
struct raw_range_format {
  static constexpr std::string_view source_name = "raw_ranges", holder = "this raw file";
  extents row;

  [[nodiscard]] static constexpr std::uint64_t mark() noexcept { return 0x7261777267; }
  [[nodiscard]] static std::string type_name() { return text({sizeof(T), " bytes"}); }
  [[nodiscard]] stored_rows find(session_view /*session*/, object_id /*object*/, std::uint64_t size) const {
    return find_raw_rows(size, row, sizeof(T));
  }
};

}  // namespace detail

/// The source that `raw_ranges` makes.
template <class T>
using raw_range_source = detail::range_source<detail::raw_range_format<T>, T>;

/// Where the rows of files without a header are, which are arrays of one shape, one after another: for
/// something after `batch` that reads them straight to a device, as `cufile` does. A file of one row is one
/// sample.
///
///     auto images = raw_ranges<std::uint8_t>("images-{00..07}.raw", extents(224, 224, 3));
///     auto places = images | shuffle | batch(256);  // each row: file, offset, bytes
///
/// In: a pattern of names of local files, and the shape of a row. Out: a `file_range` for each row;
/// `located()` names the files. Nobody looks at the numbers, which are of this machine's byte order.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the ends of
/// each file.
/// Cost per sample: a binary search among the files. Nothing is read.
/// Threads: any number at once.
/// Errors, when the plan is made, with the file: `errc::format` if it does not consist of whole rows;
/// `errc::argument` for a shape without elements; `errc::io` for a file that cannot be opened.
template <class T>
[[nodiscard]] raw_range_source<T> raw_ranges(std::string_view pattern, const extents& row) {
  static_assert(std::is_trivially_copyable_v<T>,
                "penstock: raw_ranges<T> needs numbers, or other trivially copyable values");
  return {detail::files_of(std::string(pattern)), {row}, &row};
}

}  // namespace penstock::inline v0_1
