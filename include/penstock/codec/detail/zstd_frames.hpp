// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {
namespace detail {

/// The frame information of a zstd payload, before any of it is decompressed.
struct zstd_extent {
  std::uint64_t content = 0;  // the sum of the frames' content sizes; valid if `known`
  std::uint64_t bound = 0;    // the most that the blocks can hold
  bool known = true;          // whether every frame gives its size
};

/// Walks the frames of a payload, block by block, without decompressing. It costs a few nanoseconds per 128
/// KiB of content and yields an upper bound that no header can fake, so a false size allocates nothing.
/// Source: RFC 8878, sections 3.1.1 and 3.1.2.
class zstd_frame_walk {
 public:
  explicit zstd_frame_walk(bytes_view packed) noexcept : packed_(packed) {}

  [[nodiscard]] zstd_extent run();

 private:
  static constexpr std::uint32_t magic = 0xfd2fb528u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are arbitrary

  [[nodiscard]] std::uint64_t little(std::size_t bytes);
  void skip(std::uint64_t bytes);

  void frame();

  [[nodiscard]] std::uint64_t blocks();

  bytes_view packed_;
  std::size_t at_ = 0;
  zstd_extent found_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/zstd_frames.ipp>
#endif
