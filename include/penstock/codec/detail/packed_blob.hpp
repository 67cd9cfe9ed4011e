// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/detail/packed_frames.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::inline v0_1::detail {

/// The content of a payload of frames, as a blob. If the frames give their sizes, nothing is decompressed
/// until the destination is known. `Scratch` is the worker's: it has `format`, `content` and, unless content
/// is always there first, `expand(packed, into, bounded)`, which decompresses all frames and returns the
/// number of bytes written; `bounded` means that the size of `into` is the user's limit, not a size from the
/// frames.
template <class Scratch>
class packed_blob {
 public:
  using unfinished = void;

  /// Content of `size` bytes, still packed.
  packed_blob(Scratch& scratch, bytes_view packed, std::uint64_t size) noexcept
    requires requires(mutable_bytes into) { scratch.expand(packed, into, false); }
      : scratch_(&scratch), packed_(packed), size_(size) {}
  /// Content that is already in the scratch.
  explicit packed_blob(Scratch& scratch) noexcept
      : scratch_(&scratch), size_(scratch.content.size()), expanded_(true) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Decompresses to a destination of `size()` bytes.
  void read_into(mutable_bytes into) const {
    if (into.size() != size_)
      throw error(errc::argument, {Scratch::format, "_bytes: the destination has ", into.size(),
                                   " bytes, the content ", size_});
    if (expanded_) {
      if (!into.empty()) std::memcpy(into.data(), scratch_->content.data(), into.size());
    } else if constexpr (requires { scratch_->expand(packed_, into, false); }) {
      if (scratch_->expand(packed_, into, false) != size_)
        throw error(errc::format,
                    {"the ", Scratch::format, " frames hold less than the ", size_, " bytes that they name"});
    }
  }

  /// The content, in the worker's scratch, valid until its next use.
  [[nodiscard]] bytes_view finish() const {
    if (!expanded_) {
      scratch_->content.resize_for_overwrite(static_cast<std::size_t>(size_));
      read_into(scratch_->content.span());
      expanded_ = true;
    }
    return scratch_->content.view();
  }

 private:
  Scratch* scratch_;
  bytes_view packed_;
  std::uint64_t size_;
  mutable bool expanded_ = false;
};

/// Throws for content of more bytes than `limit`; `size` says how many.
[[noreturn, gnu::cold]] inline void beyond_unpack_limit(std::string_view format, const std::string& size,
                                                        std::uint64_t limit) {
  throw error(errc::limit, {"the ", format, " content has ", size, " bytes, and the limit is ", limit,
                            "; raise it with ", format, "{.limit = ...}"});
}
/// The content of frames of this extent, if it is within the limit.
template <class Scratch>
[[nodiscard]] packed_blob<Scratch> unpacked(Scratch& s, bytes_view packed, const frames_extent& frames,
                                            std::uint64_t limit) {
  if (frames.known) {
    if (frames.content > limit) beyond_unpack_limit(Scratch::format, std::to_string(frames.content), limit);
    return {s, packed, frames.content};
  }
  s.content.resize_for_overwrite(static_cast<std::size_t>(std::min(frames.bound, limit)));
  s.content.resize_for_overwrite(s.expand(packed, s.content.span(), frames.bound > limit));
  return packed_blob<Scratch>(s);
}

}  // namespace penstock::inline v0_1::detail
