// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/name_list.hpp>
#include <penstock/codec/layouts/zip_archive.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/rows/stored_npy.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <optional>

namespace penstock::inline v0_1 {

namespace detail {

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

template <class T>
struct npz_format {
  static constexpr std::string_view source_name = "npz_rows", holder = "this array";
  static constexpr npy_type type = npy_type::of<T>();

  std::string name;

  [[nodiscard]] std::uint64_t mark() const { return hash_bytes(0x6e707a, bytes_of(name)); }
  [[nodiscard]] static std::string type_name() { return type.name(); }
  [[nodiscard]] stored_rows find(session_view session, object_id object, std::uint64_t size) const {
    return find_npz_rows(session, object, size, name, type);
  }
};

}  // namespace detail

/// The source that `npz_rows` makes of npz files.
template <class T, storage Storage, std::uint64_t... Lengths>
using npz_row_source = detail::row_source<detail::npz_format<T>, T, Storage, Lengths...>;

/// The rows of one array of numpy's `.npz` files along its first dimension, all files as one dataset.
///
///     auto images = npz_rows<std::uint8_t>("part-{00..07}.npz", "images") | shuffle | batch(256);
///     auto fields = zip<"image", "label">(npz_rows<std::uint8_t, 28, 28>("mnist.npz", "x_train"),
///                                         npz_rows<std::uint8_t>("mnist.npz", "y_train"));
///
/// In: a pattern of names or a list of paths, which are `mapped_file`, or any storage; the array's name as
/// `numpy.load` takes it, which is common to all files.
/// Out, kind, cost, threads: as for `npy_rows`. Making the plan reads the directory of each file, at most 64
/// MiB. An array that is joined by `zip<...>` but not used by the plan (`| fields<"image">`) is neither
/// opened nor read when the plan runs.
/// Throws what `npy_rows` throws; `errc::missing` for an unknown name; `errc::format`, with file and offset,
/// for arrays that are compressed (`numpy.savez_compressed`) or encrypted, and for archives that are cut or
/// split into several parts. The archive's checksums are not checked: that would mean reading each array
/// whole.
/// Source: numpy/lib/npyio.py; PKWARE's APPNOTE.TXT, version 6.3.10.
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] npz_row_source<T, Storage, Lengths...> npz_rows(Storage where, std::string_view array) {
  return npz_row_source<T, Storage, Lengths...>(std::move(where), {std::string(array)});
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] npz_row_source<T, mapped_file, Lengths...> npz_rows(detail::mapped_paths paths,
                                                                  std::string_view array) {
  return npz_row_source<T, mapped_file, Lengths...>(std::move(paths).files(), {std::string(array)});
}

}  // namespace penstock::inline v0_1
