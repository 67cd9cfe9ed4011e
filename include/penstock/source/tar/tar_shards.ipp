// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/tar_shards.hpp>

#include <penstock/source/files/known_files.hpp>
#include <penstock/source/records/index_builder.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/tar/tar_header.hpp>
#include <penstock/source/tar/tar_walk.hpp>

namespace penstock::inline v0_1 {
namespace detail {

// Whether a block is the header of a sample's member. A name that needs another header before it is not
// compared.
PENSTOCK_INLINE bool is_header_of(bytes_view block, const shard_index& index, std::uint64_t sample,
                                  std::uint32_t member, std::string& path) {
  if (block.size() != tar::block_size || !tar::checksum_matches(block)) return false;
  if (block[156] != std::byte{'0'} && block[156] != std::byte{0} && block[156] != std::byte{'7'})
    return false;
  const std::uint64_t size = index.size(member);
  const bool large = size >> 33 != 0;  // beyond the range of the octal digits
  if (!large && tar::number_field(block, 124, 12) != size) return false;
  const std::string_view key = index.key(sample), suffix = index.suffix(member);
  const bool plain = key.size() + suffix.size() < 100 &&
                     std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain) return true;
  tar::header_path(block, path);
  const auto parts = split_member(path);
  return parts && parts->key == key && lower_case(parts->suffix) == suffix;
}

class stored_check {
 public:
  stored_check(session_view session, object_id id, const shard_index& index, scan_pace pace,
               std::uint64_t extension_limit)
      : index_(index),
        in_(session, id, index.header().shard_size, pace),
        walk_(tar::walk_input::of(in_), extension_limit) {}

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
    walk_.restart(index_.offset(last) + tar::padded(index_.size(last)));
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
    return is_header_of(in_.get(index_.offset(first) - tar::block_size, tar::block_size), index_, sample,
                        first, path_);
  }

  const shard_index& index_;
  header_reader in_;
  tar::member_walk walk_;
  shard_member found_;
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
  const auto header_at = [&](std::uint32_t member) { return index.offset(member) - tar::block_size; };
  std::string path;
  std::uint64_t sample = 0;
  // Of a member from which on the headers lie within `bytes`, which begin at `begin`.
  const auto agree = [&](bytes_view bytes, std::uint64_t begin, std::uint32_t member) {
    for (; member != members && header_at(member) + tar::block_size <= begin + bytes.size(); ++member) {
      while (index.end_member(sample) <= member) ++sample;
      const bytes_view block = bytes.subspan(to_size(header_at(member) - begin), tar::block_size);
      if (!is_header_of(block, index, sample, member, path)) return false;
    }
    return true;
  };
  if (index.offset(0) < tar::block_size) return false;
  const std::uint64_t begin = header_at(0), size = index.header().shard_size;
  object_bytes bytes = session.range(id, begin, std::min(reach, size - begin));
  if (!agree(bytes, begin, 0)) return false;
  if (header_at(members - 1) + tar::block_size <= begin + bytes.size()) return true;
  std::uint32_t member = members - 1;
  const std::uint64_t end = index.offset(member);
  while (member != 0 && end - header_at(member - 1) <= reach) --member;
  sample = index.header().samples - 1;
  while (index.first_member(sample) > member) --sample;
  bytes = session.range(id, header_at(member), end - header_at(member), std::move(bytes));
  return agree(bytes, header_at(member), member);
}

PENSTOCK_INLINE buffer build_index(session_view session, object_id id, const std::string& name,
                                   std::uint64_t extension_limit, scan_pace pace, build_options options) {
  return reading_object(session, id, name, [&] {
    const object_version shard = session.version(id);
    index_builder builder(false, options.skip_apple_double);
    tar::member_scan members(session, id, shard.size, extension_limit, pace);
    const auto next = [&](shard_member& m) {
      try {
        return members.next(m);
      } catch (const error& e) {
        // An empty file may have been a shard; one that does not begin as an archive is none.
        const bool begins = members.found_any() || shard.size == 0;
        if (options.damage == nullptr || e.code() != errc::format || !begins) throw;
        session.confirm(id);
        options.damage->note(e, shard.size);
        builder.leave_out_unfinished(e.key());
        return false;
      }
    };
    for (shard_member m; next(m);) builder.add(m);
    builder.note_unended(members.unended() || (options.damage != nullptr && options.damage->found));
    session.confirm(id);
    if (session.version(id) != shard) {
      throw error(errc::io, "the shard was changed while its index was built");
    }
    return builder.finish(shard);
  });
}

PENSTOCK_INLINE const shard_kind& tar_shards() noexcept {
  static constexpr shard_kind kind{"webdataset", false, &build_index, &agrees_with_headers, &has_tar_ends};
  return kind;
}

PENSTOCK_INLINE const shard_kind& local_tar_shards() noexcept {
  static constexpr shard_kind kind{"webdataset", false, &build_index, nullptr, &has_tar_ends};
  return kind;
}

PENSTOCK_INLINE const stream_kind& tar_streams() noexcept {
  // the name of a tar member may look like the magic bytes of a format
  static constexpr stream_kind kind{[](bytes_view head) {
                                      return head.size() >= tar::block_size &&
                                             tar::checksum_matches(head.first(tar::block_size));
                                    },
                                    false};
  return kind;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
