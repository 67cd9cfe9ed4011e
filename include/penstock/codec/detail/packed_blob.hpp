// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::inline v0_1::detail {

/// The content of a payload of frames, as a blob. If the frames give their sizes, nothing is decompressed
/// until the destination is known. `Scratch` is the worker's: it has `format`, `content` and
/// `expand(packed, into, bounded)`.
template <class Scratch>
class packed_blob {
 public:
  using unfinished = void;

  /// Content of `size` bytes, still packed.
  packed_blob(Scratch& scratch, bytes_view packed, std::uint64_t size) noexcept
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
    } else if (scratch_->expand(packed_, into, false) != size_) {
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

}  // namespace penstock::inline v0_1::detail
