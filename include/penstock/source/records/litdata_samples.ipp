// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/litdata_samples.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/files/packed_format.hpp>

#include <algorithm>
#include <cstring>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void litdata_sample_unpacker::begin() { *this = {}; }

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

// The number of samples, where each begins, and where the last one ends.
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
