// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

/// How much a scan reads at once. A read that follows the one before it is four times as large.
struct scan_pace {
  std::uint64_t smallest = 2048;
  std::uint64_t largest = 256 * 1024;
  std::uint64_t gap = 32 * 1024;  ///< headers that are further apart are read one by one

  /// For a storage whose reads have latency, where a few bytes take as long as many.
  [[nodiscard]] static constexpr scan_pace far(std::uint64_t gap) noexcept {
    return {8 * 1024, 4 * 1024 * 1024, gap};
  }
};

/// Reads headers, not payloads: with small reads if members are far apart, with large ones if they are
/// close together.
class header_reader {
 public:
  static constexpr bool forward = false;

  header_reader(session_view session, object_id id, std::uint64_t size, scan_pace pace = {})
      : session_(session), id_(id), size_(size), pace_(pace), ahead_(pace.smallest) {}

  /// At most `maximum` bytes at `offset`, fewer at the end of the archive. The view is valid until the next
  /// call.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t maximum) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(maximum, size_ - reach(offset)));
    if (count == 0) return {};
    if (session_.views()) return session_.view(id_, offset, count);
    if (offset < begin_ || offset + count > begin_ + window_.size()) fill(offset, count);
    return window_.view().subspan(detail::to_size(offset - begin_), count);
  }

  /// `offset`, or the end if that is nearer.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const noexcept { return std::min(offset, size_); }

 private:
  void fill(std::uint64_t offset, std::size_t count) {
    const std::uint64_t end = begin_ + window_.size();
    const bool follows = offset >= begin_ && (offset < end || offset - end < pace_.gap);
    ahead_ = follows ? std::min(ahead_ * 4, pace_.largest) : pace_.smallest;
    const std::uint64_t wanted =
        std::min<std::uint64_t>(std::max<std::uint64_t>(count, ahead_), size_ - offset);
    window_.resize_for_overwrite(static_cast<std::size_t>(wanted));
    begin_ = offset;
    session_.read(id_, offset, window_.span());
  }

  session_view session_;
  object_id id_;
  std::uint64_t size_;
  scan_pace pace_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_;
  buffer window_;
};

/// The default maximum size of an extension header.
inline constexpr std::uint64_t default_extension_limit = std::uint64_t{1} << 20;

/// What was wrong with a shard, if the samples before it were taken.
struct shard_damage {
  bool found = false;
  std::uint64_t offset = 0;
  std::string reason;

  void note(const error& e, std::uint64_t at) {
    found = true;
    offset = e.offset().value_or(at);
    reason = e.message();
  }
};

/// How the index of a shard is made.
struct build_options {
  bool skip_apple_double = true;
  shard_damage* damage = nullptr;  ///< null: damage is an error; see `on_damaged_shard`
};

/// A kind of shards: how their indexes are made, and compared with them.
struct shard_kind {
  std::string_view source_name;  ///< the source that reads them
  bool bytewise;                 ///< whether samples begin anywhere, and not at multiples of 512

  /// Makes the index of an object in one pass over its headers. `name` is for errors.
  buffer (*build)(session_view session, object_id id, const std::string& name, std::uint64_t extension_limit,
                  scan_pace pace, build_options options);
  /// Whether an index of the object's size is that of its content, as far as a few headers show; null for
  /// local files.
  bool (*agrees)(session_view session, object_id id, const shard_index& index, scan_pace pace,
                 std::uint64_t extension_limit);
  /// Whether the headers of the first and the last member are where an index of the object's size says, and
  /// what it says: two small reads. May be false for an index that is right, if its archive writes names or
  /// sizes in an unusual way.
  bool (*has_ends)(session_view session, object_id id, const shard_index& index);
};

/// The number of headers that are compared with an index from a store, besides the first and the last.
inline constexpr std::size_t stored_index_checks = 4;

/// A shard, and how it is compared with an index that another program made of it.
struct foreign_shard {
  session_view session;
  object_id id;
  object_version version;
  std::uint64_t extension_limit = default_extension_limit;
  scan_pace pace = {};
  bool skip_apple_double = true;
  /// how many headers besides the first and the last, if the index names all members
  std::size_t checks = 62;
};

/// An index that another program writes beside a shard.
struct foreign_index {
  std::string_view program;
  sidecar file;
  /// Makes Penstock's of its bytes.
  buffer (*translate)(const foreign_shard& shard, bytes_view bytes);
  /// Reads it and makes Penstock's. Null `near`: a file beside the shard; else an object beside it in its
  /// store.
  buffer (*build)(const foreign_index& other, foreign_shard shard, const std::string& name,
                  sidecar_objects* near);
};

}  // namespace detail
}  // namespace penstock::inline v0_1
