// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libdeflate.h>)
#error "penstock/codec/npz.hpp needs libdeflate: link penstock::gzip"
#endif

#include <penstock/base/name_list.hpp>
#include <penstock/codec/layouts/inflater.hpp>
#include <penstock/codec/layouts/zip_archive.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <libdeflate.h>

namespace penstock::inline v0_1 {

namespace detail {

/// The member of an archive that is an array: the one of this name, or, without a name, the only one.
[[nodiscard]] inline zip_entry npz_entry(bytes_view file, std::string_view array) {
  zip_archive archive(file);
  if (array.empty() && archive.members() == 1) return archive.first();
  if (!array.empty())
    if (const std::optional<zip_entry> found = archive.find(array)) return *found;
  std::string known;
  for (const zip_entry& one : archive.all()) list_name(known, one.array());
  if (known.empty()) throw error(errc::missing, "the npz file has no arrays");
  if (array.empty())
    throw error(errc::argument, {"the npz file has ", known, ": name one, as in npz<float>{.array = \"x\"}"});
  throw error(errc::missing, {"the npz file has no array '", array, "'; it has: ", known})
      .at_offset(archive.begin());
}

/// The bytes of a member: in place if it is stored, otherwise unpacked into `room`.
[[nodiscard]] inline bytes_view npz_member(bytes_view file, const zip_entry& member, std::uint64_t limit,
                                           inflater& unpacker, buffer& room) {
  const bytes_view packed = file.subspan(to_size(member.begin), to_size(member.packed));
  bytes_view content = packed;
  if (member.method == 8) {
    constexpr std::uint64_t max_expansion = 1032;  // of deflate: a two-bit match yields 258 bytes
    if (member.unpacked > limit)
      throw error(errc::limit, {"the array '", member.array().substr(0, 80), "' has ", member.unpacked,
                                " bytes, and the limit is ", limit, "; raise it with npz<T>{.limit = ...}"});
    if (member.unpacked / max_expansion > member.packed)
      member.refuse("is damaged: it cannot have as many bytes as the directory says");
    room.resize_for_overwrite(to_size(member.unpacked));
    std::size_t used = 0;
    const auto result = libdeflate_deflate_decompress_ex(unpacker.get(), packed.data(), packed.size(),
                                                         room.data(), room.size(), &used, nullptr);
    if (result != LIBDEFLATE_SUCCESS || used != packed.size()) member.refuse("is damaged");
    content = room.view();
  } else if (member.method != 0) {
    member.refuse("is compressed by another method than deflate; save it with numpy.savez_compressed");
  }
  if (libdeflate_crc32(0, content.data(), content.size()) != member.checksum)
    throw error(errc::checksum,
                {"the array '", member.array().substr(0, 80), "' does not match the npz file's checksum"})
        .at_offset(member.begin);
  return content;
}

}  // namespace detail

/// Reads an array of the element type `T` from numpy's npz files, compressed or not: what `numpy.savez` and
/// `numpy.savez_compressed` write, and the `CompressedNdarrayCodec` of Petastorm.
///
///     auto clips = webdataset("train-{0000..0127}.tar") | decode<field<"npz", npz<float>>>;
///
/// In: any byte element, as a whole. Out: as for `npy<T>`, an array expression; in place if the array is not
/// compressed, otherwise of the worker's scratch. `.array` is the array's name; without it the file must have
/// only one.
/// Kind: pointwise, keeps all guarantees. Cost per sample: the archive's directory, the checksum of the
/// array, and decompressing it; no allocation in the steady state. Thread-safe, with a scratch per thread.
/// Throws `errc::missing` for a name that the file does not have, or a file without arrays, and
/// `errc::argument` for several arrays without a name, with what there is; `errc::checksum`; `errc::limit`
/// for an array of more than `limit`
/// bytes; `errc::format` for what is no npz file or is damaged, encrypted or compressed otherwise; and as
/// `npy<T>`, with offsets in the array.
/// Source: PKWARE's APPNOTE.TXT, version 6.3.10; numpy, numpy/lib/npyio.py.
template <class T>
struct npz {
  std::string_view array = {};
  std::uint64_t limit = 1_GiB;  ///< of an unpacked array

  static constexpr std::string_view codec_name = "npz";
  static constexpr std::string_view extensions[] = {"npz"};
  struct scratch {
    detail::inflater inflater;
    buffer content;
    typename npy<T>::scratch values;
  };

  template <byte_element Bytes>
  [[nodiscard]] npy_array<T> decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    const detail::zip_entry member = detail::npz_entry(file, array);
    const bytes_view content = detail::npz_member(file, member, limit, s.inflater, s.content);
    try {
      return npy<T>{}.decode(content, s.values);
    } catch (error& e) {
      e.within("the array '" + std::string(member.array().substr(0, 80)) + "'", member.begin);
      throw;
    }
  }
};

}  // namespace penstock::inline v0_1
