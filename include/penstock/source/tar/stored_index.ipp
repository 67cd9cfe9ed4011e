// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/stored_index.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/tar/foreign_index.hpp>
#include <penstock/source/tar/index_builder.hpp>
#include <penstock/source/tar/index_file.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/source/tar/tar_header.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

// Whether a block is the header of a sample's member. A name that needs another header before it is not
// compared.
PENSTOCK_INLINE bool is_header_of(bytes_view block, const shard_index& index, std::uint64_t sample,
                                  std::uint32_t member, std::string& path) {
  if (block.size() != block_size || !checksum_matches(block)) return false;
  if (block[156] != std::byte{'0'} && block[156] != std::byte{0} && block[156] != std::byte{'7'})
    return false;
  const std::uint64_t size = index.size(member);
  const bool large = size >> 33 != 0;  // beyond the range of the octal digits
  if (!large && number_field(block, 124, 12) != size) return false;
  const std::string_view key = index.key(sample), suffix = index.suffix(member);
  const bool plain = key.size() + suffix.size() < 100 &&
                     std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain) return true;
  header_path(block, path);
  const auto parts = split_member(path);
  return parts && parts->key == key && lower_case(parts->suffix) == suffix;
}

class stored_check {
 public:
  stored_check(session_view session, object_id id, const shard_index& index, scan_pace pace,
               std::uint64_t extension_limit)
      : index_(index),
        in_(session, id, index.header().shard_size, pace),
        walk_(walk_input::of(in_), extension_limit) {}

  [[nodiscard]] bool passes() {
    const std::uint64_t samples = index_.header().samples;
    const bool any = next();
    if (any != (samples != 0)) return false;
    if (!any) return walk_.unended() == (index_.header().unended != 0);
    if (found_.data != index_.offset(0)) return false;
    constexpr std::size_t places = stored_index_checks + 1;
    std::uint64_t before = samples;
    for (std::size_t i = 0; i <= places; ++i) {
      const std::uint64_t sample = (samples - 1) * i / places;
      if (std::exchange(before, sample) != sample && !has(sample)) return false;
    }
    const auto last = static_cast<std::uint32_t>(index_.header().members - 1);
    walk_.restart(index_.offset(last) + padded(index_.size(last)));
    return !next() && walk_.unended() == (index_.header().unended != 0);
  }

 private:
  // The next member that is part of a sample.
  [[nodiscard]] bool next() {
    while (walk_.next(found_))
      if (!skipped_member(found_.path) && split_member(found_.path) &&
          (index_.header().apple_double == 2 || !is_apple_double(found_.path)))
        return true;
    return false;
  }
  [[nodiscard]] bool has(std::uint64_t sample) {
    const std::uint32_t first = index_.first_member(sample);
    return is_header_of(in_.get(index_.offset(first) - block_size, block_size), index_, sample, first, path_);
  }

  const shard_index& index_;
  header_reader in_;
  member_walk walk_;
  member found_;
  std::string path_;
};

// Compares an index with some headers of its archive: the first, the last, and a few between them.
PENSTOCK_INLINE bool agrees_with_headers(session_view session, object_id id, const shard_index& index,
                                         scan_pace pace, std::uint64_t extension_limit) {
  return stored_check(session, id, index, pace, extension_limit).passes();
}

// Compares an index with the headers at both ends of its archive: of the first and the last member, and of
// those between them that the same small reads reach.
PENSTOCK_INLINE bool has_tar_ends(session_view session, object_id id, const shard_index& index) {
  constexpr std::uint64_t reach = 4_KiB;
  const auto members = static_cast<std::uint32_t>(index.header().members);
  if (members == 0) return true;
  const auto header_at = [&](std::uint32_t member) { return index.offset(member) - block_size; };
  std::string path;
  std::uint64_t sample = 0;
  // Of a member from which on the headers lie within `bytes`, which begin at `begin`.
  const auto agree = [&](bytes_view bytes, std::uint64_t begin, std::uint32_t member) {
    for (; member != members && header_at(member) + block_size <= begin + bytes.size(); ++member) {
      while (index.end_member(sample) <= member) ++sample;
      const bytes_view block = bytes.subspan(to_size(header_at(member) - begin), block_size);
      if (!is_header_of(block, index, sample, member, path)) return false;
    }
    return true;
  };
  if (index.offset(0) < block_size) return false;
  const std::uint64_t begin = header_at(0), size = index.header().shard_size;
  object_bytes bytes = session.range(id, begin, std::min(reach, size - begin));
  if (!agree(bytes, begin, 0)) return false;
  if (header_at(members - 1) + block_size <= begin + bytes.size()) return true;
  std::uint32_t member = members - 1;
  const std::uint64_t end = index.offset(member);
  while (member != 0 && end - header_at(member - 1) <= reach) --member;
  sample = index.header().samples - 1;
  while (index.first_member(sample) > member) --sample;
  bytes = session.range(id, header_at(member), end - header_at(member), std::move(bytes));
  return agree(bytes, header_at(member), member);
}

PENSTOCK_INLINE const shard_kind& tar_shards() noexcept {
  static constexpr shard_kind kind{"webdataset",         false,        true, &build_index,
                                   &agrees_with_headers, &has_tar_ends};
  return kind;
}

// Whether an index of Penstock's belongs to the shard; writes the shard's version into it.
PENSTOCK_INLINE bool adopt(buffer& bytes, session_view session, object_id id, object_version shard,
                           const shard_kind& kind, scan_pace pace, std::uint64_t extension_limit,
                           bool skip_apple_double, std::string& why) {
  const auto tables = shard_index::over(bytes.view());
  if (!tables || (tables->header().bytewise != 0) != kind.bytewise) {
    why = to_text(index_state::damaged);
    return false;
  }
  index_header header = tables->header();
  if (!header.fits(skip_apple_double)) {
    why = to_text(index_state::stale);
    return false;
  }
  const bool same = header.shard_size == shard.size && header.shard_stamp == shard.stamp && shard.stamp != 0;
  if (!same &&
      (header.shard_size != shard.size || !kind.agrees(session, id, *tables, pace, extension_limit))) {
    why = to_text(index_state::stale);
    return false;
  }
  header.shard_stamp = shard.stamp;
  header.store(bytes.data());
  return true;
}

PENSTOCK_INLINE std::optional<buffer> index_in_store(session_view session, object_id id,
                                                     sidecar_objects& near, const shard_kind& kind,
                                                     scan_pace pace, std::uint64_t extension_limit,
                                                     std::string& why, bool skip_apple_double) {
  const object_version shard = session.version(id);
  const std::uint64_t maximum = max_index_bytes(shard.size);
  try {
    if (auto own = near.read(id, own_index, maximum, &why);
        own && adopt(*own, session, id, shard, kind, pace, extension_limit, skip_apple_double, why))
      return own;
    if (!kind.has_foreign_indexes) return std::nullopt;
    const auto text = near.read(id, dali_index, maximum);
    if (text && text_of(text->view()).starts_with("v1.2 "))
      return index_from_dali(session, id, shard, text_of(text->view()), extension_limit, pace,
                             stored_index_checks, skip_apple_double);
  } catch (const disagreement&) {
  } catch (const error& e) {
    // What is wrong with the shard itself is said by the scan.
    if (!depends_on_bytes(e.code())) throw;
  }
  return std::nullopt;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
