// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/tar_header.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// A member that holds a file's bytes.
struct member {
  std::string_view path;
  std::uint64_t header = 0;  ///< where its first header begins, pax and long-name headers included
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  bool sparse = false;  ///< its bytes are stored with the holes left out
};

/// Reads headers, not payloads: small reads where members are far apart, large ones where they are close
/// together.
template <storage_session Session>
class header_reader {
 public:
  header_reader(Session& session, object_id id, std::uint64_t size)
      : session_(session), id_(id), size_(size) {}

  /// `count` bytes at `offset`, which the caller has found to be within the archive. Lives until the next
  /// call.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t count) {
    if constexpr (viewing_session<Session>) {
      return session_.view(id_, offset, count);
    } else {
      if (offset < begin_ || offset + count > begin_ + window_.size()) fill(offset, count);
      return window_.view().subspan(static_cast<std::size_t>(offset - begin_), count);
    }
  }

 private:
  static constexpr std::uint64_t smallest = 2048;
  static constexpr std::uint64_t largest = 256 * 1024;
  static constexpr std::uint64_t close_by = 32 * 1024;

  void fill(std::uint64_t offset, std::size_t count) {
    const std::uint64_t end = begin_ + window_.size();
    const bool follows = offset >= begin_ && (offset < end || offset - end < close_by);
    ahead_ = follows ? std::min(ahead_ * 4, largest) : smallest;
    const std::uint64_t wanted =
        std::min<std::uint64_t>(std::max<std::uint64_t>(count, ahead_), size_ - offset);
    window_.resize_for_overwrite(static_cast<std::size_t>(wanted));
    begin_ = offset;
    session_.read(id_, offset, window_.span());
  }

  Session& session_;
  object_id id_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_ = smallest;
  buffer window_;
};

/// Calls `visit(member)` for each file in the archive, in order. Reads headers only. Ends at the first zero
/// block or at the end of the object. Throws errc::format with the offset, and the path where it is known,
/// for what is not a whole tar archive.
template <storage_session Session, class Visit>
void scan(Session& session, object_id id, std::uint64_t size, Visit&& visit) {
  constexpr std::uint64_t longest_extension = std::uint64_t{1} << 20;
  header_reader<Session> in(session, id, size);
  pax_records everywhere;
  std::optional<pax_records> records;  // of the next member; begins as what holds everywhere
  std::optional<std::string> long_path;
  std::uint64_t at = 0;
  std::uint64_t first = 0;
  bool extended = false;

  if (size == 0)
    throw error(errc::format, "the file is empty: a tar archive has at least one block").at_offset(0);
  const auto compressed =
      compression_of(in.get(0, static_cast<std::size_t>(std::min<std::uint64_t>(size, 8))));
  const bool whole_block = size >= block_size;
  if (!compressed.empty() && !(whole_block && checksum_matches(in.get(0, block_size)))) {
    throw error(
        errc::format,
        "the archive is compressed with " + std::string(compressed) +
            ": samples can be reached in uncompressed archives only; unpack it, or compress the members")
        .at_offset(0);
  }
  while (at < size) {
    if (size - at < block_size) {
      throw error(errc::format, "the archive is cut off within a header").at_offset(at);
    }
    const bytes_view block = in.get(at, block_size);
    if (is_zero(block)) break;
    if (!checksum_matches(block)) {
      throw error(errc::format, at == 0 ? "this is not a tar archive: the first header's checksum is wrong"
                                        : "the checksum of a tar header is wrong")
          .at_offset(at);
    }
    if (!extended) first = at;
    const char type = static_cast<char>(block[156]);
    std::string path = header_path(block);
    const auto stored = number_field(block, 124, 12);
    std::uint64_t data = at + block_size;

    if (type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K') {
      if (!stored || *stored > longest_extension) {
        throw error(errc::format, "an extension header has no size, or one above 1 MiB").at_offset(at);
      }
      if (*stored > size - data)
        throw error(errc::format, "the archive is cut off within an extension header").at_offset(at);
      const bytes_view body = in.get(data, static_cast<std::size_t>(*stored));
      try {
        if (type == 'g') {
          everywhere.read(body);
        } else if (type == 'L') {
          long_path = std::string(text_field(body, 0, body.size()));
        } else if (type != 'K') {
          if (!records) records = everywhere;
          records->read(body);
        }
      } catch (error& e) {
        e.at_offset(at);
        throw;
      }
      extended = true;
      at = data + padded(*stored);
      continue;
    }

    const pax_records& known = records ? *records : everywhere;
    const bool sparse = type == 'S' || known.sparse;
    const bool folder = type == '5' || (type == '\0' && path.ends_with('/'));
    if (known.path) {
      path = *known.path;
    } else if (known.sparse_path) {
      path = *known.sparse_path;
    } else if (long_path) {
      path = *long_path;
    }
    const auto bytes = known.size ? known.size : stored;
    const bool has_data = !folder && !(type >= '1' && type <= '6');
    if (!bytes && has_data) {
      throw error(errc::format, "the size of a member is not a number, or is negative")
          .at_offset(at)
          .for_key(path);
    }
    if (type == 'S') {  // old GNU sparse files: blocks with the rest of the map stand before the data
      bool more = block[482] != std::byte{0};
      while (more) {
        if (size - data < block_size) {
          throw error(errc::format, "the archive is cut off within the map of a sparse file")
              .at_offset(data)
              .for_key(path);
        }
        more = in.get(data, block_size)[504] != std::byte{0};
        data += block_size;
        if (data > size) break;
      }
    }
    at = data;
    if (has_data) {
      if (*bytes > size - data) {
        throw error(errc::format, {"the archive is cut off: the member '", path, "' has ", *bytes,
                                   " bytes, and ", size - data, " are left"})
            .at_offset(data)
            .for_key(path);
      }
      at = data + padded(*bytes);
      const bool regular = type == '0' || type == '\0' || type == '7' || type == 'S';
      if (regular) visit(member{path, first, data, *bytes, sparse});
    }
    records.reset();
    long_path.reset();
    extended = false;
  }
  if (extended && (records || long_path)) {
    throw error(errc::format, "the archive ends where a member was announced by an extension header")
        .at_offset(first);
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
