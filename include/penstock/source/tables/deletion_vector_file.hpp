// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The bytes of a deletion vector of `size` bytes that a file has at `offset`, as tables of Delta and of
/// Iceberg have it: the size, the vector, and its CRC-32. The file begins with `magic`. Throws errc::format
/// for a file that has none of that size there, and errc::checksum.
///
/// Source: Delta, PROTOCOL.md, "Deletion Vector File Storage Format"; Apache Iceberg, "Puffin Spec",
/// "deletion-vector-v1 blob type".
[[nodiscard]] std::vector<std::byte> deletion_vector_in_file(session_view session, object_id file,
                                                             std::string_view magic, std::uint64_t offset,
                                                             std::uint64_t size);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/deletion_vector_file.ipp>
#endif
