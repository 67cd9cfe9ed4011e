// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/npy_header.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/detail/row_source.hpp>
#include <penstock/source/detail/stored_files.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1 {
namespace detail {

/// The rows of an array in npy format that takes a range of a file, or all of it.
template <class T>
class stored_npy {
  static_assert(
      npy_kind<T> != '\0' && std::is_trivially_copyable_v<T>,
      "penstock: rows of npy arrays need a bool, integer or floating type; for a half-float type of "
      "your own specialise penstock::npy_kind");

 public:
  static std::string type_name() { return detail::text({npy_kind<T>, sizeof(T)}); }

  /// Offsets in errors are those in the array's bytes.
  template <class Session>
  static stored_rows find(Session& session, object_id object, std::uint64_t begin, std::uint64_t size) {
    buffer room;
    const bytes_view start = range_of(session, object, begin, std::min<std::uint64_t>(size, 12), room);
    const npy_header header =
        read_npy_header(range_of(session, object, begin, std::min(size, length_of(start)), room));
    check(header);
    const std::uint64_t expected = npy_payload(header);
    if (expected != size - header.data_offset)
      throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                                 "', which is ", expected, " bytes, but ", size - header.data_offset,
                                 " follow it; copy the file again if it was cut"})
          .at_offset(header.data_offset);
    const bool swapped = header.order == (std::endian::native == std::endian::little ? '>' : '<');
    return {header.shape, begin + header.data_offset, begin + 8, swapped};
  }

 private:
  static constexpr std::uint64_t longest_header = 1_MiB;

  // How much of a file its header takes, if it is one; what `start` says is not believed beyond a bound.
  static std::uint64_t length_of(bytes_view start) {
    if (start.size() < 12 || !text_of(start).starts_with("\x93NUMPY")) return start.size();
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
                                 "' was asked for"})
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
}  // namespace penstock::inline v0_1
