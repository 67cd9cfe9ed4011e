// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/stored_npy.hpp>

/// The members of numpy's npz files that lie there uncompressed.
namespace penstock::inline v0_1::detail {

/// The bytes of a member of a zip archive.
struct zip_member {
  std::uint64_t begin = 0, size = 0;
};

/// The member called `name`, or else `name` plus ".npy", as numpy looks for arrays. Throws `errc::missing`,
/// with the names of the members, if there is neither.
[[nodiscard]] zip_member find_zip_array(session_view session, object_id object, std::uint64_t size,
                                        std::string_view name);

/// The names of the arrays, as numpy calls them.
[[nodiscard]] std::vector<std::string> zip_arrays(session_view session, object_id object, std::uint64_t size);

/// The rows of the array in the member that `find_zip_array` finds.
[[nodiscard]] stored_rows find_npz_rows(session_view session, object_id object, std::uint64_t size,
                                        std::string_view name, npy_type wanted);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/zip_directory.ipp>
#endif
