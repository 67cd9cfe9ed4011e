// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/records/shard_stream.hpp>

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

/// Unpacks a LitData chunk whose samples are compressed one by one. Where samples begin stands in front of
/// them, so the chunk is made in memory, at most 1 GiB.
/// Source: litdata, streaming/framed_zstd.py, `pack_sample_zstd`.
class litdata_sample_unpacker {
 public:
  static constexpr std::uint64_t limit = 1_GiB;

  /// The unpacker of single samples.
  struct calls {
    void* stream;
    void (*begin)(void* stream);
    unpack_step (*step)(void* stream, bytes_view in, mutable_bytes out, bool last);
  };

  void begin() { *this = {}; }
  /// Throws errc::format for a table that LitData does not write and for a chunk that is cut off, errc::limit
  /// for samples that unpack to more than the limit, and what the unpacker throws.
  [[nodiscard]] unpack_step step(const calls& unpack, bytes_view in, mutable_bytes out, bool last);

 private:
  // The number of samples, where each begins, and where the last one ends.
  [[nodiscard]] std::size_t take_table(bytes_view in);
  [[nodiscard]] std::size_t take_sample(const calls& unpack, bytes_view in);
  void write_offset(std::size_t sample);

  std::vector<std::byte> table_;  // as it is in the chunk
  std::vector<std::byte> made_;   // the chunk without compression
  std::size_t end_ = 0;           // of what is made
  std::size_t sample_ = 0;        // that is unpacked now
  std::size_t samples_ = 0;
  std::uint64_t left_ = 0;  // packed bytes of this sample
  std::size_t shown_ = 0;   // of the finished chunk
};

/// Chunks of which the index says that their samples are compressed.
[[nodiscard]] const stream_kind& litdata_sample_streams() noexcept;

/// An unpacker for chunks of LitData whose samples are compressed one by one.
/// Out: the chunk as it is without compression.
template <unpacker Unpack>
struct litdata_samples {
  static constexpr std::string_view unpacker_format = Unpack::unpacker_format;

  class stream {
   public:
    void begin() { chunk_.begin(); }
    unpack_step step(bytes_view in, mutable_bytes out, bool last) {
      using one = typename Unpack::stream;
      return chunk_.step({&sample_, [](void* state) { static_cast<one*>(state)->begin(); },
                          [](void* state, bytes_view from, mutable_bytes into, bool end) {
                            return static_cast<one*>(state)->step(from, into, end);
                          }},
                         in, out, last);
    }

   private:
    litdata_sample_unpacker chunk_;
    typename Unpack::stream sample_;
  };
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/litdata_chunks.ipp>
#endif
