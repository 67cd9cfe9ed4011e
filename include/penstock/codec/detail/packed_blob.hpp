// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::inline v0_1::detail {

/// Walks the frames of a payload, block by block, without decompressing; lz4 took the form of its frames from
/// zstd. It costs a few nanoseconds per block, which is 128 KiB of content in zstd, and yields an upper bound
/// that no header can fake, so a false size allocates nothing.
class frame_reader {
 public:
  /// `frame` is what one is called, with an article.
  frame_reader(bytes_view packed, std::string_view frame);

 protected:
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are arbitrary

  [[nodiscard]] std::uint64_t little(std::size_t bytes);
  void skip(std::uint64_t bytes);
  /// The number that a frame begins with; for a skippable one, which it skips, `skippable`.
  [[nodiscard]] std::uint32_t begin_frame();
  [[noreturn, gnu::cold]] void refuse_begin(std::size_t start) const;
  /// Throws if the frame needs a dictionary, or says that it holds more than its blocks can.
  void check_dictionary(std::uint64_t dictionary, std::size_t start) const;
  void check_content(std::uint64_t content, std::uint64_t bound, std::size_t start) const;

  bytes_view packed_;
  std::size_t at_ = 0;

 private:
  [[nodiscard]] std::string_view name() const noexcept { return frame_.substr(frame_.find(' ') + 1); }
  void need(std::uint64_t bytes) const;

  std::string_view frame_;
};

/// The frames of a payload, before any of it is decompressed.
struct frames_extent {
  std::uint64_t content = 0;  // the sum of the frames' content sizes; valid if `known`
  std::uint64_t bound = 0;    // the most that the blocks can hold
  bool known = true;          // whether every frame gives its size
};

/// Source: RFC 8878, sections 3.1.1 and 3.1.2.
class zstd_frame_walk : frame_reader {
 public:
  explicit zstd_frame_walk(bytes_view packed) : frame_reader(packed, "a zstd frame") {}

  [[nodiscard]] frames_extent run();

 private:
  static constexpr std::uint32_t magic = 0xfd2fb528u;

  void frame();
  [[nodiscard]] std::uint64_t blocks();

  frames_extent found_;
};

struct lz4_frame {
  bytes_view bytes;           // the whole frame
  bool skippable = false;     // has no content
  bool known = false;         // whether the frame gives the size of its content
  std::uint64_t content = 0;  // that size
  std::uint64_t bound = 0;    // the most that its blocks can hold
};

/// Source: LZ4 Frame Format Description, versions 1.5.1 to 1.6.4.
class lz4_frame_walk : frame_reader {
 public:
  explicit lz4_frame_walk(bytes_view packed) : frame_reader(packed, "an lz4 frame") {}

  [[nodiscard]] bool done() const noexcept { return at_ == packed_.size(); }
  [[nodiscard]] lz4_frame next();
  [[nodiscard]] frames_extent run();

 private:
  static constexpr std::uint32_t magic = 0x184d2204u;
  static constexpr std::uint32_t legacy = 0x184c2102u;

  void read(lz4_frame& frame, std::size_t start);
};

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

[[noreturn, gnu::cold]] void beyond_unpack_limit(std::string_view format, const std::string& size,
                                                 std::uint64_t limit);
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

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/packed_blob.ipp>
#endif
