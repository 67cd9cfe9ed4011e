// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/litdata_frames.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/files/packed_format.hpp>

#include <algorithm>
#include <limits>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::optional<unpack_step> litdata_frame_head::step(bytes_view in, mutable_bytes out,
                                                                    bool last) {
  constexpr std::size_t prefix = 24, frame = 24;
  unpack_step done;
  const auto take = [&](std::size_t bytes) {
    in = in.subspan(bytes);
    done.taken += bytes;
  };
  const auto put = [&](unsigned byte) { out[done.made++] = static_cast<std::byte>(byte & 255); };
  if (!measured_) {
    measured_ = true;
    if (!text_of(in).starts_with(magic)) return std::nullopt;
    if (in.size() < prefix) throw error(errc::format, "the chunk ends within its head: it is cut off");
    const auto version = load_little<std::uint16_t>(in.data() + 8);
    const auto flags = load_little<std::uint16_t>(in.data() + 10);
    if (version != 1 || flags != 0)
      throw error(errc::format, {"the chunk has version ", version, " of LitData's frames with the flags ",
                                 flags, "; version 1 without flags is known"});
    samples_ = load_little<std::uint32_t>(in.data() + 12);
    const auto rows = load_little<std::uint32_t>(in.data() + 16);
    const auto frames = load_little<std::uint32_t>(in.data() + 20);
    // The table counts to 2^32 bytes, itself included.
    constexpr std::uint32_t maximum = std::numeric_limits<std::uint32_t>::max() / 4 - 2;
    if (samples_ == 0 || samples_ > maximum || rows == 0 || frames != (samples_ - 1) / rows + 1)
      throw error(errc::format, {"the chunk says that it has ", samples_, " samples in ", frames,
                                 " frames of ", rows, ": it is damaged"});
    number_left_ = 4;
    offsets_left_ = 4 * (std::uint64_t{samples_} + 1);
    frames_left_ = std::uint64_t{frame} * frames;
    add_ = 4 * (samples_ + 2);
    take(prefix);
  }
  if (frames_left_ == 0) return std::nullopt;
  for (; number_left_ != 0 && done.made != out.size(); --number_left_)
    put(samples_ >> 8 * (4 - number_left_));
  // Each number is read, and what is added to it, from its lowest byte to its highest.
  for (; number_left_ == 0 && offsets_left_ != 0 && !in.empty() && done.made != out.size(); --offsets_left_) {
    const auto byte = static_cast<unsigned>((4 - offsets_left_ % 4) % 4);
    if (byte == 0) carry_ = 0;
    const unsigned sum = std::to_integer<unsigned>(in[0]) + (add_ >> 8 * byte & 255) + carry_;
    carry_ = sum >> 8;
    if (byte == 3 && carry_ != 0)
      throw error(errc::format, "the chunk has a sample that begins beyond 4 GiB: it is damaged");
    put(sum);
    take(1);
  }
  if (offsets_left_ == 0) {
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(frames_left_, in.size()));
    frames_left_ -= some;
    take(some);
  }
  if (last && in.empty() && frames_left_ != 0 && done.made != out.size())
    throw error(errc::format, "the chunk ends within its head: it is cut off");
  return done;
}

// The first bytes of a chunk that is not compressed, a number, may look like another compression.
PENSTOCK_INLINE std::string_view litdata_compression(bytes_view head) {
  const bool inside = text_of(head).starts_with(litdata_frame_head::magic);
  return inside || compression_of(head) == "zstd" ? "zstd" : "";
}
PENSTOCK_INLINE const stream_kind& litdata_streams() noexcept {
  static constexpr stream_kind kind{[](bytes_view) { return false; }, false, &litdata_compression};
  return kind;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
