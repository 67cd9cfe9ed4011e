// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/detail/row_files.hpp>
#include <penstock/source/detail/stored_npy.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <string_view>

/// Zip archives, as far as numpy's npz files need them: only uncompressed members. Archives must be in one
/// piece: nothing in front of them, nothing between the directory and the end record.
/// Source: PKWARE's APPNOTE.TXT, version 6.3.10, sections 4.3 and 4.5.3.
namespace penstock::inline v0_1 {
namespace detail {

/// The bytes of a member of a zip archive.
struct zip_member {
  std::uint64_t begin = 0, size = 0;
};

/// The member called `name`, or else `name` plus ".npy", as numpy looks for arrays. Throws `errc::missing`,
/// with the names of the members, if there is neither.
[[nodiscard]] zip_member find_zip_array(session_view session, object_id object, std::uint64_t size,
                                        std::string_view name);

/// The rows of the array in the member that `find_zip_array` finds.
[[nodiscard]] stored_rows find_npz_rows(session_view session, object_id object, std::uint64_t size,
                                        std::string_view name, npy_type wanted);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/zip_directory.ipp>
#endif
