// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/shard_stream.hpp>

#include <penstock/source/files/packed_format.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

// The error for a shard whose compression `reader` has no unpacker for: what to write to read it.
PENSTOCK_INLINE error not_unpacked(std::string_view format, std::string_view reader) {
  return error(packed_format_of(format).format.empty() ? errc::format : errc::argument,
               packed_advice(format, std::string(reader) + "<", ">(...)"));
}

PENSTOCK_INLINE bool shard_stream::is_pipe(const std::string& path) {
  struct stat status {};
  return path == "-" ||
         (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

PENSTOCK_INLINE void shard_stream::open(const std::string& path, std::atomic<bool>& used,
                                        std::string_view reader) {
  close();
  const bool standard_input = path == "-";
  const bool pipe = is_pipe(path);
  struct stat status {};
  if (!pipe && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    throw error(errc::io, "this is a folder; name the shards in it");
  if (pipe && used.exchange(true)) {
    throw error(errc::state,
                (standard_input ? "standard input" : "a pipe") +
                    std::string(" can be read only once, and was read already; write it to a file "
                                "to read it again"));
  }
  if (!standard_input) {
    file_ = owned_descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file_.get() < 0) throw failed("open");
  }
  number_ = standard_input ? STDIN_FILENO : file_.get();
  if (raw_.size() == 0) raw_.resize_for_overwrite(piece);
  raw_from_ = raw_.data();
  while (raw_end_ < sniffed && !raw_ended_) fill();
  recognise(reader);
  if (pipe) drained_ = false;
}

PENSTOCK_INLINE void shard_stream::open(std::size_t object, std::string_view reader) {
  close();
  objects_->open(object);
  fill();
  recognise(reader);
}

PENSTOCK_INLINE void shard_stream::close() noexcept {
  file_ = {};
  packed_ = plain;
  raw_at_ = raw_end_ = at_ = end_ = 0;
  offset_ = 0;
  raw_ended_ = whole_ = false;
}

PENSTOCK_INLINE bytes_view shard_stream::get(std::uint64_t offset, std::size_t count) {
  if (reach(offset) < offset) return {};
  if (end_ - at_ < count) {
    reserve(count);
    while (end_ < count) {
      const std::size_t got = make(window_.span().subspan(end_));
      if (got == 0) break;
      end_ += got;
    }
  }
  return {shown_ + at_, std::min(count, end_ - at_)};
}

PENSTOCK_INLINE std::uint64_t shard_stream::reach(std::uint64_t offset) {
  while (offset_ < offset) {
    if (at_ == end_ && !refill()) break;
    const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(offset - offset_, end_ - at_));
    at_ += some;
    offset_ += some;
  }
  return offset_;
}

PENSTOCK_INLINE std::size_t shard_stream::read(mutable_bytes into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const mutable_bytes rest = into.subspan(done);
    std::size_t some = 0;
    if (at_ == end_ && rest.size() >= piece && objects_ == nullptr) {
      some = make(rest);
      if (some == 0) break;
    } else {
      if (at_ == end_ && !refill()) break;
      some = std::min(rest.size(), end_ - at_);
      std::memcpy(rest.data(), shown_ + at_, some);
      at_ += some;
    }
    done += some;
    offset_ += some;
  }
  return done;
}

PENSTOCK_INLINE void shard_stream::drain() {
  if (!drained_) {
    do {
      offset_ += end_ - at_;
    } while (refill());
  }
  close();
}

PENSTOCK_INLINE error shard_stream::failed(const char* doing) const {
  return error(errc::io,
               std::string("cannot ") + doing + " the shard: " + std::generic_category().message(errno));
}

PENSTOCK_INLINE void shard_stream::recognise(std::string_view reader) {
  const bytes_view head(raw_from_, raw_end_);
  std::string_view format = kind_->compression(head);
  if (format.empty() && kind_->may_be_zlib && may_begin_zlib(head)) format = "zlib";
  if (!format.empty() && !kind_->is_plain(head)) {
    packed_ = unpackers_.begin(unpackers_.streams, format);
    if (packed_ == plain) throw not_unpacked(format, reader);
  }
  drained_ = packed_ == plain;
}

PENSTOCK_INLINE void shard_stream::fill() {
  if (raw_at_ == raw_end_) raw_at_ = raw_end_ = 0;
  if (objects_ != nullptr) {
    const bytes_view next = objects_->next();
    raw_from_ = next.data();
    raw_end_ = next.size();
    raw_ended_ = next.empty();
    return;
  }
  const std::size_t got = read_some(raw_.span().subspan(raw_end_));
  raw_end_ += got;
  raw_ended_ = got == 0;
}

PENSTOCK_INLINE std::size_t shard_stream::read_some(mutable_bytes into) {
  while (true) {
    const auto got = ::read(number_, into.data(), std::min<std::size_t>(into.size(), 1_GiB));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw failed("read").at_offset(offset_);
  }
}

PENSTOCK_INLINE std::size_t shard_stream::make(mutable_bytes out) {
  if (packed_ == plain) {
    if (raw_at_ == raw_end_ && !raw_ended_) {
      if (objects_ == nullptr) return read_some(out);
      fill();
    }
    const std::size_t some = std::min(out.size(), raw_end_ - raw_at_);
    if (some != 0) std::memcpy(out.data(), raw_from_ + raw_at_, some);
    raw_at_ += some;
    return some;
  }
  while (true) {
    if (raw_at_ == raw_end_ && !raw_ended_) fill();
    const bytes_view in(raw_from_ + raw_at_, raw_end_ - raw_at_);
    const unpack_step done = unpackers_.step(unpackers_.streams, packed_, in, out, raw_ended_);
    raw_at_ += done.taken;
    whole_ = done.whole;
    if (done.made != 0) return done.made;
    if (done.taken != 0 || (in.empty() && !raw_ended_)) continue;
    if (in.empty() && whole_) return 0;
    throw error(errc::format,
                in.empty() ? "the compressed shard is cut off" : "the compressed shard is damaged");
  }
}

PENSTOCK_INLINE bool shard_stream::refill() {
  if (packed_ == plain && objects_ != nullptr) {
    if (raw_at_ == raw_end_ && !raw_ended_) fill();
    shown_ = raw_from_;
    at_ = raw_at_;
    raw_at_ = end_ = raw_end_;
    return at_ != end_;
  }
  if (window_.size() == 0) window_.resize_for_overwrite(piece);
  shown_ = window_.data();
  at_ = 0;
  end_ = make(window_.span());
  return end_ != 0;
}

PENSTOCK_INLINE void shard_stream::reserve(std::size_t count) {
  const std::size_t held = end_ - at_;
  if (window_.size() < count || window_.size() == 0) {
    buffer larger(std::max(count, piece));
    if (held != 0) std::memcpy(larger.data(), shown_ + at_, held);
    window_ = std::move(larger);
  } else if (held != 0) {
    std::memmove(window_.data(), shown_ + at_, held);
  }
  shown_ = window_.data();
  at_ = 0;
  end_ = held;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
