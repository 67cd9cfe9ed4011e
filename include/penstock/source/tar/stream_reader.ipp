// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/stream_reader.hpp>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE bool tar_stream_reader::next(tar_stream_sample& e) {
  return next_of([&] { walk_.restart(); }, [&](const std::string& url) { return read_sample(e, url); },
                 [&] { close(); });
}

PENSTOCK_INLINE void tar_stream_reader::rewind() noexcept {
  close();
  rewind_shards();
}

PENSTOCK_INLINE void tar_stream_reader::seek(source_mark place) {
  rewind();
  tar_stream_sample passed;
  seek_to(place, [&] { return next(passed); });
}

PENSTOCK_INLINE void tar_stream_reader::close() noexcept {
  close_input();
  pending_ = ended_ = false;
}

PENSTOCK_INLINE bool tar_stream_reader::find() {
  if (ended_) return false;
  while (walk_.next(found_)) {
    if (skipped_member(found_.path) || (set().skip_apple_double && is_apple_double(found_.path))) continue;
    const auto parts = split_member(found_.path);
    if (!parts) continue;
    parts_ = *parts;
    return true;
  }
  ended_ = true;
  input().drain();
  return false;
}

PENSTOCK_INLINE bool tar_stream_reader::read_sample(tar_stream_sample& e, const std::string& url) {
  while (pending_ || find()) {
    e.start(parts_.key, url);
    do {
      e.take(found_, parts_.suffix, set().limit, input(), walk_);
      pending_ = find();
    } while (pending_ && parts_.key == e.key());
    if (!e.bad()) return true;
  }
  close();
  return false;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
