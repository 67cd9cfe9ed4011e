// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/source/tar/tar_header.hpp>

namespace penstock::inline v0_1 {
namespace detail::tar {

using member = shard_member;

/// The input of a walk: an archive with random access, or a forward-only stream.
struct walk_input {
  /// Wraps an input that has `get` and `reach`, and `static constexpr bool forward`; the input must outlive
  /// the result.
  template <class In>
  [[nodiscard]] static walk_input of(In& in) noexcept {
    return {&in,
            [](void* from, std::uint64_t offset, std::size_t count) {
              return static_cast<In*>(from)->get(offset, count);
            },
            [](void* from, std::uint64_t offset) { return static_cast<In*>(from)->reach(offset); },
            In::forward};
  }

  void* archive;
  /// Shows `count` bytes at `offset`, fewer at the end.
  bytes_view (*get)(void* archive, std::uint64_t offset, std::size_t count);
  /// Moves to `offset`, and returns the offset it reached.
  std::uint64_t (*reach)(void* archive, std::uint64_t offset);
  /// Whether the input is forward-only: then a member that is cut off is noticed only after it has been
  /// passed.
  bool forward;
};

/// Walks through the headers of an archive, forward only, and reuses its memory.
class member_walk {
 public:
  explicit member_walk(walk_input in, std::uint64_t extension_limit = default_extension_limit) noexcept
      : in_(in), extension_limit_(extension_limit) {}

  /// Restarts at the beginning of an archive, or at a header in it.
  void restart(std::uint64_t at = 0) noexcept;

  /// Finds the next file in the archive; false after the last, at the first zero block or at the end of the
  /// bytes. Throws errc::format with the offset, and the path if it is known, if the input is not a complete
  /// tar archive.
  [[nodiscard]] bool next(member& found);
  /// After the last file: whether the zero blocks that end an archive are missing.
  [[nodiscard]] bool unended() const noexcept { return unended_; }
  /// Whether a header was read that is one: so it is an archive, or the beginning of one.
  [[nodiscard]] bool found_any() const noexcept { return found_any_; }

  /// Throws the error for an archive that ends within the member found last.
  [[noreturn]] void cut_off(std::uint64_t reached) const;

 private:
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::uint64_t count) const {
    return in_.get(in_.archive, offset, detail::to_size(count));
  }
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const { return in_.reach(in_.archive, offset); }
  void extension(char type, std::optional<std::uint64_t> stored);

  // Handles a header that is not an extension; returns whether it is a file's. `block` is valid until the
  // next `get`.
  bool file(bytes_view block, char type, std::optional<std::uint64_t> stored, member& found);

  // Skips the blocks with the rest of the map, which precede the data of old GNU sparse files.
  void pass_map(bool more);

  void check_end() const;
  void forget() noexcept;

  static constexpr std::uint64_t maximum = (std::uint64_t{1} << 63) - block_size;

  walk_input in_;
  std::uint64_t at_ = 0;           // of the next header
  std::uint64_t end_of_data_ = 0;  // before the padding
  std::uint64_t data_ = 0;
  std::uint64_t first_ = 0;
  pax_records everywhere_;
  pax_records records_;  // of the next member; start as a copy of `everywhere_`
  known_text long_path_;
  std::string path_;
  bool has_records_ = false;
  bool extended_ = false;
  bool unended_ = false;
  bool found_any_ = false;
  std::uint64_t extension_limit_;
};

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

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_walk.ipp>
#endif
