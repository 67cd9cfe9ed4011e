// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/litdata_chunks.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/files/packed_format.hpp>

#include <algorithm>
#include <cstring>
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

PENSTOCK_INLINE unpack_step litdata_sample_unpacker::step(const calls& unpack, bytes_view in,
                                                          mutable_bytes out, bool last) {
  unpack_step done;
  const auto take = [&](std::size_t bytes) {
    in = in.subspan(bytes);
    done.taken += bytes;
  };
  if (samples_ == 0) {
    take(take_table(in));
    if (samples_ != 0) unpack.begin(unpack.stream);
  }
  while (samples_ != 0 && sample_ != samples_ && !in.empty()) take(take_sample(unpack, in));
  if (samples_ == 0 || sample_ != samples_) {
    if (last && in.empty()) throw error(errc::format, "the chunk ends within a sample: it is cut off");
    return done;
  }
  if (!in.empty())
    throw error(errc::format, {"the chunk has bytes behind its ", samples_, " samples: it is damaged"});
  done.made = std::min(out.size(), end_ - shown_);
  std::memcpy(out.data(), made_.data() + shown_, done.made);
  shown_ += done.made;
  done.whole = shown_ == end_;
  return done;
}

PENSTOCK_INLINE std::size_t litdata_sample_unpacker::take_table(bytes_view in) {
  constexpr std::size_t number = sizeof(std::uint32_t);
  std::size_t taken = 0;
  const auto fill_up_to = [&](std::uint64_t size) {
    const std::size_t some =
        static_cast<std::size_t>(std::min<std::uint64_t>(size - table_.size(), in.size() - taken));
    table_.insert(table_.end(), in.begin() + static_cast<std::ptrdiff_t>(taken),
                  in.begin() + static_cast<std::ptrdiff_t>(taken + some));
    taken += some;
    return table_.size() == size;
  };
  if (table_.size() < number && !fill_up_to(number)) return taken;
  const auto samples = load_little<std::uint32_t>(table_.data());
  const std::uint64_t size = number * (std::uint64_t{samples} + 2);
  if (samples == 0 || size > limit)
    throw error(errc::format, {"the chunk says that it has ", samples, " samples: it is damaged"});
  if (!fill_up_to(size)) return taken;
  std::uint64_t before = size;
  for (std::size_t i = 0; i <= samples; ++i) {
    const auto begin = load_little<std::uint32_t>(table_.data() + number * (i + 1));
    if (i == 0 ? begin != size : begin <= before)
      throw error(errc::format, {"the chunk says that its sample ", i, " begins at ", begin,
                                 ", where none can: it is damaged"});
    before = begin;
  }
  samples_ = samples;
  made_ = table_;
  end_ = table_.size();
  write_offset(0);
  left_ = load_little<std::uint32_t>(table_.data() + 2 * number) - size;
  return taken;
}

PENSTOCK_INLINE std::size_t litdata_sample_unpacker::take_sample(const calls& unpack, bytes_view in) {
  constexpr std::size_t number = sizeof(std::uint32_t), room = 64_KiB;
  std::size_t taken = 0;
  while (true) {
    if (made_.size() - end_ < room)
      made_.resize(
          static_cast<std::size_t>(std::min<std::uint64_t>(end_ + std::max(room, end_), limit + room)));
    const bytes_view rest = in.subspan(taken);
    const bytes_view some = rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(left_, rest.size())));
    const unpack_step done =
        unpack.step(unpack.stream, some, mutable_bytes(made_).subspan(end_), some.size() == left_);
    taken += done.taken;
    left_ -= done.taken;
    end_ += done.made;
    if (end_ > limit)
      throw error(errc::limit,
                  {"the samples of the chunk unpack to more than ", limit, " bytes: write smaller chunks"});
    if (done.taken != 0 || done.made != 0) {
      if (left_ != 0 && taken == in.size()) return taken;
      continue;
    }
    if (!done.whole || left_ != 0)
      throw error(errc::format,
                  {"sample ", sample_, " of the chunk is cut off, or no sample: it is damaged"});
    write_offset(++sample_);
    if (sample_ != samples_) {
      const std::byte* const at = table_.data() + number * (sample_ + 1);
      left_ = load_little<std::uint32_t>(at + number) - load_little<std::uint32_t>(at);
      unpack.begin(unpack.stream);
    }
    return taken;
  }
}

PENSTOCK_INLINE void litdata_sample_unpacker::write_offset(std::size_t sample) {
  for (std::size_t byte = 0; byte < sizeof(std::uint32_t); ++byte)
    made_[sizeof(std::uint32_t) * (sample + 1) + byte] = static_cast<std::byte>(end_ >> 8 * byte & 255);
}

// A chunk that is not compressed is told by its first sample, if that is among the first bytes.
PENSTOCK_INLINE std::string_view litdata_sample_compression(bytes_view head) {
  constexpr std::size_t number = sizeof(std::uint32_t);
  if (head.size() < 2 * number) return "zstd";
  const std::uint64_t samples = load_little<std::uint32_t>(head.data());
  const auto first = load_little<std::uint32_t>(head.data() + number);
  const bool shown = first == number * (samples + 2) && first < head.size();
  return shown && compression_of(head.subspan(first)) != "zstd" ? "" : "zstd";
}

PENSTOCK_INLINE const stream_kind& litdata_sample_streams() noexcept {
  static constexpr stream_kind kind{[](bytes_view) { return false; }, false, &litdata_sample_compression};
  return kind;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
