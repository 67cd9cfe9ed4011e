// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <compare>
#include <span>
#include <vector>

namespace penstock::inline v0_1 {

/// One packet of a film's video stream, as its container has it.
struct film_packet {
  std::int64_t time = 0;      ///< when its frame is shown, in units of the stream's time base
  std::int64_t duration = 0;  ///< how long, or 0 if the container does not say
  std::uint64_t offset = 0;   ///< where its bytes are: in the file, or in `copies`
  std::uint32_t size = 0;     ///< of its bytes
  bool key = false;           ///< decoding can begin here
  bool shown = true;          ///< false for what is decoded for others' sake alone, as edit lists have it
  bool copied = false;        ///< the bytes are not in the file as they are, and lie in `copies`

  friend bool operator==(const film_packet&, const film_packet&) = default;
};

/// Which packets to decode for some frames: from one that decoding can begin at to the last one that is
/// needed.
struct decode_range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  friend constexpr bool operator==(const decode_range&, const decode_range&) = default;
};

/// The index of a film: its packets in the order of decoding, and its frames in the order in which they are
/// shown. Made by demuxing alone: no frame is decoded.
///
/// Frames are numbered from 0, by their times; of equal times, as they are decoded. A frame is shown until
/// the next one is; the last one as long as its packet says, or as long as the one before it.
///
/// Cost: 40 bytes a packet and 4 a frame; `finish` sorts the times. Memory is kept when it is cleared.
///
///     frame_index film(25.0);
///     film.add({.time = 0, .key = true}).add({.time = 2}).add({.time = 1}).finish();
///     const decode_range needed = film.packets_for(1);  // 0 to 2: the frame between needs both others
class frame_index {
 public:
  frame_index() = default;
  /// `units`: how many units of time are a second.
  explicit frame_index(double units) : units_(units) {}

  /// Forgets all packets, and takes another unit of time: so many of them are so many seconds.
  void clear(double units, double seconds = 1) noexcept;
  frame_index& add(const film_packet& packet) {
    packets_.push_back(packet);
    return *this;
  }
  /// To be called when all packets are there, before anything below.
  void finish();

  [[nodiscard]] std::span<const film_packet> packets() const noexcept {
    return {packets_.data(), packets_.size()};
  }
  [[nodiscard]] std::uint32_t frames() const noexcept { return static_cast<std::uint32_t>(shown_.size()); }
  /// The packet of frame n.
  [[nodiscard]] std::uint32_t packet_of(std::uint32_t frame) const noexcept { return shown_[frame]; }
  /// The frame of a packet that is shown.
  [[nodiscard]] std::uint32_t frame_of(std::uint32_t packet) const noexcept { return ranks_[packet]; }
  /// When frame n begins to be shown, in seconds: the number next to it, so that 0.12 is where a frame begins
  /// of which the file says so.
  [[nodiscard]] double time_of(std::uint32_t frame) const noexcept {
    return in_seconds(static_cast<double>(packets_[shown_[frame]].time));
  }
  /// When the first frame begins to be shown, and the last one ceases to be, in seconds; 0 without frames.
  [[nodiscard]] double begin_time() const noexcept { return frames() == 0 ? 0 : time_of(0); }
  [[nodiscard]] double end_time() const noexcept;
  /// The frame that is shown at this second; `frames()` if none is.
  [[nodiscard]] std::uint32_t frame_at(double seconds) const noexcept;

  /// What must be decoded for a frame. A frame that is shown before the key frame that it is decoded after,
  /// as in an open group of pictures, needs the group before, too.
  [[nodiscard]] decode_range packets_for(std::uint32_t frame) const noexcept;
  /// Where to begin if decoding from packet `first` did not do: `groups` key frames earlier.
  [[nodiscard]] std::uint32_t earlier(std::uint32_t first, std::uint32_t groups) const noexcept;
  /// The memory that it takes.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return packets_.capacity() * sizeof(film_packet) +
           (shown_.capacity() + ranks_.capacity() + keys_.capacity()) * sizeof(std::uint32_t);
  }
  /// By how many frames, at most, the order of decoding is ahead of that of showing; at most 16.
  [[nodiscard]] unsigned reordered() const noexcept { return reordered_; }

 private:
  [[nodiscard]] double in_seconds(double time) const noexcept { return time * seconds_ / units_; }

  std::vector<film_packet> packets_;
  std::vector<std::uint32_t> shown_;  // frames to packets
  std::vector<std::uint32_t> ranks_;  // packets to frames
  std::vector<std::uint32_t> keys_;   // packets at which decoding can begin
  double units_ = 1, seconds_ = 1;
  unsigned reordered_ = 0;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/video/frame_index.ipp>
#endif
