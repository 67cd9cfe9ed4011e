// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/npy_header.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/source/rows/row_source.hpp>

#include <algorithm>
#include <bit>

namespace penstock::inline v0_1::detail {

/// A type in the notation of npy files: "f4" has kind 'f' and 4 bytes.
struct npy_type {
  char kind;
  std::size_t size;

  template <class T>
  [[nodiscard]] static constexpr npy_type of() noexcept {
    static_assert(
        npy_kind<T> != '\0' && std::is_trivially_copyable_v<T>,
        "penstock: rows of npy arrays need a bool, integer or floating type; for a half-float type of "
        "your own specialise penstock::npy_kind");
    return {npy_kind<T>, sizeof(T)};
  }
  [[nodiscard]] std::string name() const { return detail::text({kind, size}); }
  friend bool operator==(const npy_type&, const npy_type&) = default;
};

// The number of bytes to read for the header, if the file is npy; a length in `start` beyond a bound
// throws.
inline std::uint64_t npy_header_length(bytes_view start) {
  constexpr std::uint64_t longest_header = 1_MiB;
  constexpr std::uint64_t recognised = 512;  // enough to say what another file is
  if (start.size() < 12 || !text_of(start).starts_with("\x93NUMPY")) return recognised;
  const bool wide = start[6] > std::byte{1};
  const std::uint64_t length =
      wide ? load_little<std::uint32_t>(start.data() + 8) : load_little<std::uint16_t>(start.data() + 8);
  if (length > longest_header)
    throw error(errc::limit, {"the npy header says it has ", length, " bytes, and at most 1 MiB is read"})
        .at_offset(8);
  return length + (wide ? 12 : 10);
}

inline void check_npy_rows(const npy_header& header, npy_type wanted) {
  const std::string descr(header.descr);
  if (header.kind != wanted.kind || header.item_size != wanted.size)
    throw error(errc::format, {"the npy file holds dtype '", descr, "', but '", wanted.kind, wanted.size,
                               "' was asked for"})
        .at_offset(8);
  if (header.shape.rank() == 0)
    throw error(errc::format, "the npy file holds one number, which has no rows").at_offset(8);
  if (header.fortran && header.shape.rank() > 1)
    throw error(errc::format,
                "the npy file is in Fortran order, in which a row is not contiguous: save it with "
                "numpy.ascontiguousarray")
        .at_offset(8);
}

/// The rows of an array in npy format that occupies a range of a file, or all of it. Offsets in errors count
/// from the beginning of the range.
[[nodiscard]] inline stored_rows find_npy_rows(session_view session, object_id object, std::uint64_t begin,
                                               std::uint64_t size, npy_type wanted) {
  const object_bytes start = session.range(object, begin, std::min<std::uint64_t>(size, 12));
  const object_bytes whole = session.range(object, begin, std::min(size, npy_header_length(start)));
  const npy_header header = read_npy_header(whole);
  check_npy_rows(header, wanted);
  const std::uint64_t expected = npy_payload(header);
  if (expected != size - header.data_offset)
    throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                               "', which is ", expected, " bytes, but ", size - header.data_offset,
                               " follow it; copy the file again if it was cut"})
        .at_offset(header.data_offset);
  const bool swapped = header.order == (std::endian::native == std::endian::little ? '>' : '<');
  return {header.shape, begin + header.data_offset, begin + 8, swapped};
}

/// The files of `npy_rows`.
template <class T>
struct npy_format {
  static constexpr std::string_view source_name = "npy_rows", holder = "this npy file";
  static constexpr npy_type type = npy_type::of<T>();

  [[nodiscard]] static constexpr std::uint64_t mark() noexcept { return 0x6e7079; }
  [[nodiscard]] static std::string type_name() { return type.name(); }
  [[nodiscard]] static stored_rows find(session_view session, object_id object, std::uint64_t size) {
    return find_npy_rows(session, object, 0, size, type);
  }
};

}  // namespace penstock::inline v0_1::detail
