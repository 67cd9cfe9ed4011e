// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/records/header_reader.hpp>
#include <penstock/source/tar/tar_header.hpp>
#include <penstock/source/tar/tar_walk.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The files in an archive, in order. Reads headers only. Ends at the first zero block or at the end of the
/// object. Throws errc::format with the offset, and the path if it is known, if the object is not a
/// complete tar archive.
class member_scan : header_reader, public member_walk {
 public:
  member_scan(session_view session, object_id id, std::uint64_t size, std::uint64_t extension_limit,
              scan_pace pace = {})
      : header_reader(session, id, size, pace),
        member_walk(walk_input::of<header_reader>(*this), extension_limit) {
    const bytes_view head = header_reader::get(0, 4096);
    const auto compressed = compression_of(head);
    if (!compressed.empty() && !(head.size() >= block_size && checksum_matches(head.first(block_size)))) {
      std::string advice = packed_advice(compressed, "webdataset(unpacked<", ">(...))");
      if (!packed_format_of(compressed).format.empty())
        advice +=
            ", from <penstock/source/unpacked.hpp>, for copies in which samples can be reached, or use "
            "webdataset_stream to read it forward";
      throw error(errc::format, advice).at_offset(0);
    }
  }
  member_scan(const member_scan&) = delete;  // the walk refers to the reader
  member_scan& operator=(const member_scan&) = delete;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
