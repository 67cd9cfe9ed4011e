// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// A member that holds a file's bytes.
struct member {
  std::string_view path;     ///< lives until the next one is asked for
  std::uint64_t header = 0;  ///< where its first header begins: pax (but `g`) and long-name headers included
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  bool sparse = false;  ///< its bytes are stored with the holes left out
};

/// Goes through the headers of an archive, forward only, and keeps its memory.
///
/// `In` gives bytes: `get(offset, count)` shows that many, fewer at the end; `reach(offset)` goes there and
/// says how far that was possible. One that cannot look ahead has `static constexpr bool forward`: whether a
/// member is whole is found when it has been passed.
template <class In>
class member_walk {
 public:
  explicit member_walk(In& in) noexcept : in_(&in) {}

  /// Begins anew, at the beginning of an archive or at a header in it.
  void restart(std::uint64_t at = 0) noexcept {
    at_ = at;
    end_of_data_ = at;
    everywhere_ = {};
    forget();
  }

  /// The next file in the archive; false behind the last, at the first zero block or at the end of the bytes.
  /// Throws errc::format with the offset, and the path where it is known, for what is not a whole tar
  /// archive.
  [[nodiscard]] bool next(member& found) {
    while (true) {
      if (const std::uint64_t reached = in_->reach(at_); reached < at_) cut_off(reached);
      const bytes_view block = in_->get(at_, block_size);
      if (block.empty() && at_ == 0) {
        throw error(errc::format, "the file is empty: a tar archive has at least one block").at_offset(0);
      }
      if (block.empty() || (block.size() == block_size && is_zero(block))) {
        check_end();
        return false;
      }
      if (block.size() < block_size)
        throw error(errc::format, "the archive is cut off within a header").at_offset(at_);
      if (!checksum_matches(block)) {
        throw error(errc::format, at_ == 0 ? "this is not a tar archive: the first header's checksum is wrong"
                                           : "the checksum of a tar header is wrong")
            .at_offset(at_);
      }
      if (!extended_) first_ = at_;
      const char type = static_cast<char>(block[156]);
      const auto stored = number_field(block, 124, 12);
      if (type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K') {
        extension(type, stored);
      } else if (file(block, type, stored, found)) {
        return true;
      }
    }
  }

  /// What is thrown where the archive ends within the member that was shown last.
  [[noreturn]] void cut_off(std::uint64_t reached) const {
    if (reached >= end_of_data_) {
      throw error(errc::format,
                  "the archive is cut off: the last block of the member '" + path_ + "' is not whole")
          .at_offset(data_)
          .for_key(path_);
    }
    throw error(errc::format, "the archive is cut off: the member '" + path_ + "' has " +
                                  std::to_string(end_of_data_ - data_) + " bytes, and " +
                                  std::to_string(reached - data_) + " are left")
        .at_offset(data_)
        .for_key(path_);
  }

 private:
  static constexpr std::uint64_t longest_extension = std::uint64_t{1} << 20;
  static constexpr bool forward = requires { requires In::forward; };

  void extension(char type, std::optional<std::uint64_t> stored) {
    if (!stored || *stored > longest_extension) {
      throw error(errc::format, "an extension header has no size, or one above 1 MiB").at_offset(at_);
    }
    const bytes_view body = in_->get(at_ + block_size, static_cast<std::size_t>(*stored));
    if (body.size() < *stored)
      throw error(errc::format, "the archive is cut off within an extension header").at_offset(at_);
    try {
      if (type == 'g') {
        everywhere_.read(body);
      } else if (type == 'L') {
        long_path_.set(text_field(body, 0, body.size()));
      } else if (type != 'K') {
        if (!has_records_) records_ = everywhere_;
        has_records_ = true;
        records_.read(body);
      }
    } catch (error& e) {
      e.at_offset(at_);
      throw;
    }
    if (type != 'g') extended_ = true;  // what holds everywhere is no part of the next member
    const std::uint64_t behind = at_ + block_size + padded(*stored);
    if (in_->reach(behind) < behind)
      throw error(errc::format, "the archive is cut off within an extension header").at_offset(at_);
    end_of_data_ = at_ = behind;
  }

  // A header that no extension follows: whether it is a file's. `block` is good until the next `get`.
  bool file(bytes_view block, char type, std::optional<std::uint64_t> stored, member& found) {
    header_path(block, path_);
    const pax_records& known = has_records_ ? records_ : everywhere_;
    const bool folder = type == '5' || (type == '\0' && path_.ends_with('/'));
    if (known.sparse_path.known) {
      path_.assign(known.sparse_path.text);
    } else if (known.path.known) {
      path_.assign(known.path.text);
    } else if (long_path_.known) {
      path_.assign(long_path_.text);
    }
    const auto bytes = known.size ? known.size : stored;
    const bool sparse = type == 'S' || known.sparse;
    data_ = at_ + block_size;
    if (type == 'S') pass_map(block[482] != std::byte{0});
    end_of_data_ = data_;
    at_ = data_;
    forget();
    if (folder || (type >= '1' && type <= '6')) return false;  // what has no data, whatever its size says
    if (!bytes) {
      throw error(errc::format, "the size of a member is not a number, or is negative")
          .at_offset(data_ - block_size)
          .for_key(path_);
    }
    if (*bytes > most - data_) {
      throw error(errc::format, "the size of a member is larger than any file")
          .at_offset(data_ - block_size)
          .for_key(path_);
    }
    end_of_data_ = data_ + *bytes;
    at_ = data_ + padded(*bytes);
    if constexpr (forward) {
      (void)in_->reach(data_);  // the caller may read the member next
    } else {
      if (const std::uint64_t reached = in_->reach(at_); reached < at_) cut_off(reached);
    }
    if (type != '0' && type != '\0' && type != '7' && type != 'S') return false;
    found = {path_, first_, data_, *bytes, sparse};
    return true;
  }

  // Old GNU sparse files: blocks with the rest of the map stand before the data.
  void pass_map(bool more) {
    while (more) {
      const bytes_view map = in_->get(data_, block_size);
      if (map.size() < block_size) {
        throw error(errc::format, "the archive is cut off within the map of a sparse file")
            .at_offset(data_)
            .for_key(path_);
      }
      more = map[504] != std::byte{0};
      data_ += block_size;
    }
  }

  void check_end() const {
    if (extended_ && (has_records_ || long_path_.known)) {
      throw error(errc::format, "the archive ends where a member was announced by an extension header")
          .at_offset(first_);
    }
  }
  void forget() noexcept {
    has_records_ = false;
    long_path_.known = false;
    extended_ = false;
  }

  static constexpr std::uint64_t most = (std::uint64_t{1} << 63) - block_size;

  In* in_;
  std::uint64_t at_ = 0;           // of the next header
  std::uint64_t end_of_data_ = 0;  // before the padding
  std::uint64_t data_ = 0;
  std::uint64_t first_ = 0;
  pax_records everywhere_;
  pax_records records_;  // of the next member; begin as what holds everywhere
  known_text long_path_;
  std::string path_;
  bool has_records_ = false;
  bool extended_ = false;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
