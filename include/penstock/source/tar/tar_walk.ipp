// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/tar_walk.hpp>

#include <penstock/core/known_formats.hpp>

namespace penstock::inline v0_1 {
namespace detail::tar {

PENSTOCK_INLINE void member_walk::restart(std::uint64_t at) noexcept {
  at_ = at;
  end_of_data_ = at;
  everywhere_ = {};
  unended_ = false;
  forget();
}

PENSTOCK_INLINE bool member_walk::next(member& found) {
  while (true) {
    if (const std::uint64_t reached = reach(at_); reached < at_) cut_off(reached);
    const bytes_view block = get(at_, block_size);
    if (block.empty() && at_ == 0) {
      throw error(errc::format, "the file is empty: a tar archive has at least one block").at_offset(0);
    }
    if (block.empty() || (block.size() == block_size && is_zero(block))) {
      check_end();
      unended_ = block.empty();
      return false;
    }
    if (block.size() < block_size) {
      if (const std::string_view known = known_format(block);
          at_ == 0 && !known.empty() && known != "a tar archive")
        throw not_a("a tar archive", block, {});
      throw error(errc::format, "the archive is cut off within a header").at_offset(at_);
    }
    if (!checksum_matches(block)) {
      if (at_ == 0) throw not_a("a tar archive", block, {"the first header's checksum is wrong"});
      throw error(errc::format, "the checksum of a tar header is wrong").at_offset(at_);
    }
    found_any_ = true;
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

PENSTOCK_INLINE void member_walk::cut_off(std::uint64_t reached) const {
  if (reached >= end_of_data_) {
    throw error(errc::format,
                {"the archive is cut off: the last block of the member '", path_, "' is incomplete"})
        .at_offset(data_)
        .for_key(path_);
  }
  throw error(errc::format, {"the archive is cut off: the member '", path_, "' has ", end_of_data_ - data_,
                             " bytes, and ", reached - data_, " are left"})
      .at_offset(data_)
      .for_key(path_);
}

PENSTOCK_INLINE void member_walk::extension(char type, std::optional<std::uint64_t> stored) {
  if (!stored)
    throw error(errc::format, "the size of an extension header is not a number, or is negative")
        .at_offset(at_);
  if (*stored > extension_limit_) {
    throw error(errc::limit, {"an extension header has ", *stored, " bytes, and the limit is ",
                              extension_limit_, "; raise it with the option extension_limit of the source"})
        .at_offset(at_);
  }
  const bytes_view body = get(at_ + block_size, *stored);
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
  if (type != 'g') extended_ = true;  // a global header is not part of the next member
  const std::uint64_t behind = at_ + block_size + padded(*stored);
  if (reach(behind) < behind)
    throw error(errc::format, "the archive is cut off within an extension header").at_offset(at_);
  end_of_data_ = at_ = behind;
}

PENSTOCK_INLINE bool member_walk::file(bytes_view block, char type, std::optional<std::uint64_t> stored,
                                       member& found) {
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
  // types without data, whatever their size field says
  if (folder || (type >= '1' && type <= '6')) return false;
  if (!bytes) {
    throw error(errc::format, "the size of a member is not a number, or is negative")
        .at_offset(data_ - block_size)
        .for_key(path_);
  }
  if (*bytes > maximum - data_) {
    throw error(errc::format, "the size of a member is larger than any file")
        .at_offset(data_ - block_size)
        .for_key(path_);
  }
  end_of_data_ = data_ + *bytes;
  at_ = data_ + padded(*bytes);
  if (in_.forward) {
    (void)reach(data_);  // the caller may read the member next
  } else {
    if (const std::uint64_t reached = reach(at_); reached < at_) cut_off(reached);
  }
  if (type != '0' && type != '\0' && type != '7' && type != 'S') return false;
  found = {path_, first_, data_, *bytes, sparse};
  return true;
}

PENSTOCK_INLINE void member_walk::pass_map(bool more) {
  while (more) {
    const bytes_view map = get(data_, block_size);
    if (map.size() < block_size) {
      throw error(errc::format, "the archive is cut off within the map of a sparse file")
          .at_offset(data_)
          .for_key(path_);
    }
    more = map[504] != std::byte{0};
    data_ += block_size;
  }
}

PENSTOCK_INLINE void member_walk::check_end() const {
  if (extended_ && (has_records_ || long_path_.known)) {
    throw error(errc::format, "the archive ends where a member was announced by an extension header")
        .at_offset(first_);
  }
}

PENSTOCK_INLINE void member_walk::forget() noexcept {
  has_records_ = false;
  long_path_.known = false;
  extended_ = false;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
