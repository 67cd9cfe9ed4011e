// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {
namespace detail {

/// One frame of an lz4 payload, before any of it is decompressed.
struct lz4_frame {
  bytes_view bytes;           // the whole frame
  bool skippable = false;     // has no content
  bool known = false;         // whether the frame gives the size of its content
  std::uint64_t content = 0;  // that size
  std::uint64_t bound = 0;    // the most that its blocks can hold
};

/// Walks the frames of a payload, block by block, without decompressing. It costs a few nanoseconds per
/// block and yields an upper bound that no header can fake, so a false size allocates nothing.
/// Source: LZ4 Frame Format Description, versions 1.5.1 to 1.6.4.
class lz4_frame_walk {
 public:
  explicit lz4_frame_walk(bytes_view packed);

  [[nodiscard]] bool done() const noexcept { return at_ == packed_.size(); }

  [[nodiscard]] lz4_frame next();

 private:
  static constexpr std::uint32_t magic = 0x184d2204u;
  static constexpr std::uint32_t legacy = 0x184c2102u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are arbitrary

  [[nodiscard]] std::uint64_t little(std::size_t bytes);
  void skip(std::uint64_t bytes);
  void need(std::uint64_t bytes) const;

  void read(lz4_frame& frame, std::size_t start);

  bytes_view packed_;
  std::size_t at_ = 0;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/lz4_frames.ipp>
#endif
