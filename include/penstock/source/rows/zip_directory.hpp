// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/name_list.hpp>
#include <penstock/codec/layouts/zip_archive.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/rows/stored_npy.hpp>

#include <optional>

/// The members of numpy's npz files that lie there uncompressed.
namespace penstock::inline v0_1::detail {

/// The bytes of a member of a zip archive.
struct zip_member {
  std::uint64_t begin = 0, size = 0;
};

// An object that is an archive.
struct stored_archive {
  session_view session;
  object_id object;

  [[nodiscard]] zip_archive::bytes_of bytes() const noexcept {
    return {this, [](const void* from, std::uint64_t offset, std::uint64_t size, buffer& room) {
              const auto& self = *static_cast<const stored_archive*>(from);
              if (self.session.views()) return self.session.view(self.object, offset, size);
              room.resize_for_overwrite(to_size(size));
              self.session.read(self.object, offset, room.span());
              return room.view();
            }};
  }
};

/// The member called `name`, or else `name` plus ".npy", as numpy looks for arrays. Throws `errc::missing`,
/// with the names of the members, if there is neither.
[[nodiscard]] inline zip_member find_zip_array(session_view session, object_id object, std::uint64_t size,
                                               std::string_view name) {
  const stored_archive stored{session, object};
  zip_archive archive(stored.bytes(), size);
  const std::optional<zip_entry> found = archive.find(name);
  if (!found) {
    std::string known;
    for (const zip_entry& one : archive.all()) list_name(known, one.array());
    throw error(errc::missing, {"the npz file has no array '", name, "'",
                                known.empty() ? "; it has none" : "; it has: ", known})
        .at_offset(archive.begin());
  }
  if (found->method != 0)
    found->refuse(
        "is compressed, so its rows cannot be reached one by one: link penstock::zlib, include "
        "<penstock/source/unpacked_npz.hpp> and write npz_rows<T>(unpacked_npz(...), name), or save it with "
        "numpy.savez instead of numpy.savez_compressed");
  return {found->begin, found->unpacked};
}

/// The names of the arrays, as numpy calls them.
[[nodiscard]] inline std::vector<std::string> zip_arrays(session_view session, object_id object,
                                                         std::uint64_t size) {
  const stored_archive stored{session, object};
  std::vector<std::string> names;
  zip_archive archive(stored.bytes(), size);
  for (const zip_entry& one : archive.all()) names.emplace_back(one.array());
  return names;
}

/// The rows of the array in the member that `find_zip_array` finds.
[[nodiscard]] inline stored_rows find_npz_rows(session_view session, object_id object, std::uint64_t size,
                                               std::string_view name, npy_type wanted) {
  const zip_member member = find_zip_array(session, object, size, name);
  try {
    return find_npy_rows(session, object, member.begin, member.size, wanted);
  } catch (error& e) {
    // an error with a file comes from the storage, and its offset is already in the file
    if (e.file().empty()) e.within(detail::text({"the array '", name, "'"}), member.begin);
    throw;
  }
}

}  // namespace penstock::inline v0_1::detail
