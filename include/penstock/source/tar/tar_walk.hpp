// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The largest extension header that is read where nothing is said.
inline constexpr std::uint64_t default_extension_limit = std::uint64_t{1} << 20;

/// A member that holds a file's bytes.
struct member {
  std::string_view path;     ///< lives until the next one is asked for
  std::uint64_t header = 0;  ///< where its first header begins: pax (but `g`) and long-name headers included
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  bool sparse = false;  ///< its bytes are stored with the holes left out
};

/// Where a walk has its bytes from: an archive in which any place can be reached, or one that goes by.
struct walk_input {
  /// Of an input that has `get` and `reach`, and `static constexpr bool forward`; it must outlive this.
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
  /// Goes to `offset`, and says how far that was possible.
  std::uint64_t (*reach)(void* archive, std::uint64_t offset);
  /// Whether it cannot look ahead: whether a member is whole is found when it has been passed.
  bool forward;
};

/// Goes through the headers of an archive, forward only, and keeps its memory.
class member_walk {
 public:
  explicit member_walk(walk_input in, std::uint64_t extension_limit = default_extension_limit) noexcept
      : in_(in), extension_limit_(extension_limit) {}

  /// Begins anew, at the beginning of an archive or at a header in it.
  void restart(std::uint64_t at = 0) noexcept;

  /// The next file in the archive; false behind the last, at the first zero block or at the end of the bytes.
  /// Throws errc::format with the offset, and the path where it is known, for what is not a whole tar
  /// archive.
  [[nodiscard]] bool next(member& found);
  /// Behind the last: whether the bytes ended there, without the zero blocks that end an archive.
  [[nodiscard]] bool unended() const noexcept { return unended_; }

  /// What is thrown where the archive ends within the member that was shown last.
  [[noreturn]] void cut_off(std::uint64_t reached) const;

 private:
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::uint64_t count) const {
    return in_.get(in_.archive, offset, static_cast<std::size_t>(count));
  }
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const { return in_.reach(in_.archive, offset); }
  void extension(char type, std::optional<std::uint64_t> stored);

  // A header that no extension follows: whether it is a file's. `block` is good until the next `get`.
  bool file(bytes_view block, char type, std::optional<std::uint64_t> stored, member& found);

  // Old GNU sparse files: blocks with the rest of the map stand before the data.
  void pass_map(bool more);

  void check_end() const;
  void forget() noexcept;

  static constexpr std::uint64_t most = (std::uint64_t{1} << 63) - block_size;

  walk_input in_;
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
  bool unended_ = false;
  std::uint64_t extension_limit_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_walk.ipp>
#endif
