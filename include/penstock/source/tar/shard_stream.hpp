// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/output_file.hpp>
#include <penstock/source/detail/packed_format.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// What to write to read a shard that is packed in a way that `reader` was not told of.
[[nodiscard]] inline error not_unpacked(std::string_view format, std::string_view reader) {
  return error(packed_format_of(format).format.empty() ? errc::format : errc::argument,
               packed_advice(format, std::string(reader) + "<", ">(...)"));
}

/// The bytes of a file or a pipe, forward only; unpacked where the first of them show that they are packed.
///
/// What a `member_walk` reads from: `get` shows bytes ahead, `reach` goes on, `read` takes bytes. Memory:
/// what was read and what was unpacked, 256 KiB each, up to 1 MiB where a header asks for it.
template <unpacker... Unpack>
class shard_stream {
 public:
  static constexpr bool forward = true;

  /// Whether a path is the standard input, or a file that can be read only once.
  [[nodiscard]] static bool is_pipe(const std::string& path) {
    struct stat status {};
    return path == "-" ||
           (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
  }

  /// `used` says of a pipe whether it was read before. A path of "-" is the standard input. `reader` is who
  /// asks, for messages.
  void open(const std::string& path, std::atomic<bool>& used, std::string_view reader = "webdataset_stream") {
    close();
    const bool standard_input = path == "-";
    const bool pipe = is_pipe(path);
    struct stat status {};
    if (!pipe && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
      throw error(errc::io, "this is a folder; name the shards in it");
    if (pipe && used.exchange(true)) {
      throw error(errc::state, (standard_input ? "the standard input" : "a pipe") +
                                   std::string(" can be read once, and was read already; write it to a file "
                                               "to read it again"));
    }
    if (!standard_input) {
      file_ = owned_descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (file_.get() < 0) throw failed("open");
    }
    number_ = standard_input ? STDIN_FILENO : file_.get();
    if (raw_.size() == 0) raw_.resize_for_overwrite(piece);
    while (raw_end_ < sniffed && !raw_ended_) fill();
    const bytes_view head = raw_.view().first(raw_end_);
    const std::string_view format = compression_of(head);
    // a member's name may look like one
    if (!format.empty() && !(head.size() >= block_size && checksum_matches(head.first(block_size))))
      begin(format, reader);
    drained_ = packed_ == plain && !pipe;
  }

  void close() noexcept {
    file_ = {};
    packed_ = plain;
    raw_at_ = raw_end_ = at_ = end_ = 0;
    offset_ = 0;
    raw_ended_ = whole_ = false;
  }

  /// Shows `count` bytes at `offset`, fewer at the end. Lives until the next call of any member.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t count) {
    if (reach(offset) < offset) return {};
    if (end_ - at_ < count) {
      reserve(count);
      while (end_ < count) {
        const std::size_t got = make(window_.span().subspan(end_));
        if (got == 0) break;
        end_ += got;
      }
    }
    return window_.view().subspan(at_, std::min(count, end_ - at_));
  }

  /// Goes on to `offset`, and says how far it came.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) {
    while (offset_ < offset) {
      if (at_ == end_ && !refill()) break;
      const auto some = static_cast<std::size_t>(std::min<std::uint64_t>(offset - offset_, end_ - at_));
      at_ += some;
      offset_ += some;
    }
    return offset_;
  }

  /// Takes bytes; the number is smaller only at the end.
  [[nodiscard]] std::size_t read(mutable_bytes into) {
    std::size_t done = 0;
    while (done < into.size()) {
      const mutable_bytes rest = into.subspan(done);
      std::size_t some = 0;
      if (at_ == end_ && rest.size() >= piece) {
        some = make(rest);
        if (some == 0) break;
      } else {
        if (at_ == end_ && !refill()) break;
        some = std::min(rest.size(), end_ - at_);
        std::memcpy(rest.data(), window_.data() + at_, some);
        at_ += some;
      }
      done += some;
      offset_ += some;
    }
    return done;
  }

  /// Reads what stands behind the archive: the checksums of packed files, and what another program still
  /// writes to a pipe.
  void drain() {
    if (!drained_) {
      do {
        offset_ += end_ - at_;
      } while (refill());
    }
    close();
  }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// Whether what was opened is packed.
  [[nodiscard]] bool packed() const noexcept { return packed_ != plain; }

 private:
  static constexpr std::size_t piece = 256_KiB;
  static constexpr std::size_t sniffed = 4_KiB;
  static constexpr std::size_t plain = sizeof...(Unpack);

  [[nodiscard]] error failed(const char* doing) const {
    return error(errc::io,
                 std::string("cannot ") + doing + " the shard: " + std::generic_category().message(errno));
  }

  void begin(std::string_view format, std::string_view reader) {
    std::size_t number = 0;
    const auto try_one = [&]<class U>(typename U::stream& stream, U*) {
      if (packed_ == plain && U::unpacker_format == format) {
        stream.begin();
        packed_ = number;
      }
      ++number;
    };
    std::apply([&](auto&... streams) { (try_one(streams, static_cast<Unpack*>(nullptr)), ...); }, streams_);
    if (packed_ == plain) throw not_unpacked(format, reader);
  }

  /// Reads more of the file; `raw_ended_` where there is nothing more.
  void fill() {
    if (raw_at_ == raw_end_) raw_at_ = raw_end_ = 0;
    const std::size_t got = read_some(raw_.span().subspan(raw_end_));
    raw_end_ += got;
    raw_ended_ = got == 0;
  }
  [[nodiscard]] std::size_t read_some(mutable_bytes into) {
    while (true) {
      const auto got = ::read(number_, into.data(), std::min<std::size_t>(into.size(), 1_GiB));
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) throw failed("read").at_offset(offset_);
    }
  }

  [[nodiscard]] unpack_step step(bytes_view in, mutable_bytes out) {
    unpack_step done;
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (void)((packed_ == Is && (done = std::get<Is>(streams_).step(in, out, raw_ended_), true)) || ...);
    }(std::index_sequence_for<Unpack...>{});
    return done;
  }

  /// The next bytes of the archive; none at its end.
  [[nodiscard]] std::size_t make(mutable_bytes out) {
    if (packed_ == plain) {
      if (raw_at_ == raw_end_) return raw_ended_ ? 0 : read_some(out);
      const std::size_t some = std::min(out.size(), raw_end_ - raw_at_);
      std::memcpy(out.data(), raw_.data() + raw_at_, some);
      raw_at_ += some;
      return some;
    }
    while (true) {
      if (raw_at_ == raw_end_ && !raw_ended_) fill();
      const bytes_view in = raw_.view().subspan(raw_at_, raw_end_ - raw_at_);
      const unpack_step done = step(in, out);
      raw_at_ += done.taken;
      whole_ = done.whole;
      if (done.made != 0) return done.made;
      if (done.taken != 0 || (in.empty() && !raw_ended_)) continue;
      if (in.empty() && whole_) return 0;
      throw error(errc::format,
                  in.empty() ? "the compressed shard is cut off" : "the compressed shard is damaged");
    }
  }

  [[nodiscard]] bool refill() {
    if (window_.size() == 0) window_.resize_for_overwrite(piece);
    at_ = 0;
    end_ = make(window_.span());
    return end_ != 0;
  }

  /// Moves what is in the window to its front, and makes room for `count` bytes.
  void reserve(std::size_t count) {
    const std::size_t held = end_ - at_;
    if (window_.size() < count || window_.size() == 0) {
      buffer larger(std::max(count, piece));
      if (held != 0) std::memcpy(larger.data(), window_.data() + at_, held);
      window_ = std::move(larger);
    } else if (held != 0) {
      std::memmove(window_.data(), window_.data() + at_, held);
    }
    at_ = 0;
    end_ = held;
  }

  owned_descriptor file_;
  int number_ = -1;
  buffer raw_;  // as it is in the file
  std::size_t raw_at_ = 0, raw_end_ = 0;
  bool raw_ended_ = false, whole_ = false, drained_ = true;
  std::size_t packed_ = plain;  // which of the unpackers
  std::tuple<typename Unpack::stream...> streams_;
  buffer window_;  // as it is in the archive
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;  // of window_[at_]
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
