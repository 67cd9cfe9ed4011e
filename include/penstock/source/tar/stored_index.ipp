// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/stored_index.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/tar/foreign_index.hpp>
#include <penstock/source/tar/index_builder.hpp>
#include <penstock/source/tar/index_file.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/source/tar/tar_header.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

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
      if (!skipped_member(found_.path) && split_member(found_.path)) return true;
    return false;
  }
  // Whether the header before a sample's first member is that member's. A name that needs another header
  // before it is not compared.
  [[nodiscard]] bool has(std::uint64_t sample) {
    const std::uint32_t first = index_.first_member(sample);
    const bytes_view block = in_.get(index_.offset(first) - block_size, block_size);
    if (block.size() != block_size || !checksum_matches(block)) return false;
    if (block[156] != std::byte{'0'} && block[156] != std::byte{0} && block[156] != std::byte{'7'})
      return false;
    const std::uint64_t size = index_.size(first);
    const bool large = size >> 33 != 0;  // beyond the range of the octal digits
    if (!large && number_field(block, 124, 12) != size) return false;
    const std::string_view key = index_.key(sample), suffix = index_.suffix(first);
    const bool plain = key.size() + suffix.size() < 100 &&
                       std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
    if (!plain) return true;
    header_path(block, path_);
    const auto parts = split_member(path_);
    return parts && parts->key == key && lower_case(parts->suffix) == suffix;
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

PENSTOCK_INLINE const shard_kind& tar_shards() noexcept {
  static constexpr shard_kind kind{"webdataset", false, true, &build_index, &agrees_with_headers};
  return kind;
}

// Whether an index of Penstock's belongs to the shard; writes the shard's signature into it.
PENSTOCK_INLINE bool adopt(buffer& bytes, session_view session, object_id id, object_signature shard,
                           const shard_kind& kind, scan_pace pace, std::uint64_t extension_limit,
                           std::string& why) {
  const auto tables = shard_index::over(bytes.view());
  if (!tables || (tables->header().bytewise != 0) != kind.bytewise) {
    why = to_text(index_state::damaged);
    return false;
  }
  index_header header = tables->header();
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

PENSTOCK_INLINE std::optional<buffer> index_in_store(session_view session, object_id id, objects_beside& near,
                                                     const shard_kind& kind, scan_pace pace,
                                                     std::uint64_t extension_limit, std::string& why) {
  const object_signature shard = session.signature(id);
  const std::uint64_t most = most_index_bytes(shard.size);
  try {
    if (auto own = near.read(id, own_index, most, &why);
        own && adopt(*own, session, id, shard, kind, pace, extension_limit, why))
      return own;
    if (!kind.has_foreign_indexes) return std::nullopt;
    const auto text = near.read(id, dali_index, most);
    if (text && text_of(text->view()).starts_with("v1.2 "))
      return index_from_dali(session, id, shard, text_of(text->view()), extension_limit, pace,
                             stored_index_checks);
  } catch (const disagreement&) {
  } catch (const error& e) {
    // What is wrong with the shard itself is said by the scan.
    if (!depends_on_bytes(e.code())) throw;
  }
  return std::nullopt;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
