// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/records/shard_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// Turns what stands in front of the frames of a LitData chunk that is compressed inside into the table of
/// one that is not: the number of samples, and where each begins.
/// Source: litdata, streaming/framed_zstd.py.
class litdata_frame_head {
 public:
  static constexpr std::string_view magic{"LDFZ01\0\0", 8};

  void begin() noexcept { *this = {}; }
  /// None behind the head, and for a chunk that has none. The first piece must have all of the first 24
  /// bytes.
  /// Throws errc::format for a head that LitData does not write.
  [[nodiscard]] std::optional<unpack_step> step(bytes_view in, mutable_bytes out, bool last);

 private:
  bool measured_ = false;
  std::size_t number_left_ = 0;     // bytes of the number of samples that have yet to be written
  std::uint64_t offsets_left_ = 0;  // bytes of where samples begin
  std::uint64_t frames_left_ = 0;   // bytes of the list of frames
  std::uint32_t samples_ = 0, add_ = 0;
  unsigned carry_ = 0;
};

/// Chunks of LitData: by these bytes a stream tells how one is compressed.
[[nodiscard]] const stream_kind& litdata_streams() noexcept;

/// An unpacker for chunks of LitData that are compressed as a whole, or inside, in frames of several samples.
/// Out: the chunk as it is without compression.
template <unpacker Unpack>
struct litdata_frames {
  static constexpr std::string_view unpacker_format = Unpack::unpacker_format;

  class stream {
   public:
    void begin() {
      head_.begin();
      frames_.begin();
    }
    unpack_step step(bytes_view in, mutable_bytes out, bool last) {
      if (const auto done = head_.step(in, out, last)) return *done;
      return frames_.step(in, out, last);
    }

   private:
    litdata_frame_head head_;
    typename Unpack::stream frames_;
  };
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/litdata_frames.ipp>
#endif
