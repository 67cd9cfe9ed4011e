// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <string>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The numbers in a 64-bit Roaring bitmap as Delta writes it, ascending. Throws errc::format, with the
/// offset, for bytes that are none, and errc::limit for more than `maximum` numbers.
///
/// Source: Delta, PROTOCOL.md, "Deletion Vector Format"; Roaring, "Specification of the compressed-bitmaps
/// formats".
[[nodiscard]] std::vector<std::uint64_t> read_deletion_vector(bytes_view bytes, std::uint64_t maximum);

/// Z85, five characters for four bytes. Throws errc::format.
///
/// Source: ZeroMQ, RFC 32.
[[nodiscard]] std::vector<std::byte> from_z85(std::string_view text);

/// The name of a file of deletion vectors, from the table's folder: a prefix, and a UUID in Z85.
[[nodiscard]] std::string deletion_vector_name(std::string_view text);

/// CRC-32 of gzip. Deletion vectors are read once per plan, so that a table would gain nothing.
[[nodiscard]] std::uint32_t deletion_vector_checksum(bytes_view bytes) noexcept;

/// The bytes of a deletion vector of `size` bytes that a file has at `offset`, as tables of Delta and of
/// Iceberg have it: the size, the vector, and its CRC-32. The file begins with `magic`. Throws errc::format
/// for a file that has none of that size there, and errc::checksum.
///
/// Source: Delta, PROTOCOL.md, "Deletion Vector File Storage Format"; Apache Iceberg, "Puffin Spec",
/// "deletion-vector-v1 blob type".
[[nodiscard]] std::vector<std::byte> deletion_vector_in_file(session_view session, object_id file,
                                                             std::string_view magic, std::uint64_t offset,
                                                             std::uint64_t size);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/deletion_vector.ipp>
#endif
