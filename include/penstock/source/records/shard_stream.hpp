// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/files/forward_pieces.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <atomic>

namespace penstock::inline v0_1 {
namespace detail {

/// The unpackers that a stream may use, behind function pointers: they are called once per window, not once
/// per sample.
struct unpacker_calls {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void* streams;
  /// Begins a new file of that format. Returns the number of its unpacker, or `none`.
  std::size_t (*begin)(void* streams, std::string_view format);
  unpack_step (*step)(void* streams, std::size_t number, bytes_view in, mutable_bytes out, bool last);
};

/// The memory of unpackers.
template <unpacker... Unpack>
class unpackers {
 public:
  /// The calls for a `shard_stream`. The unpackers must outlive it and keep their address.
  [[nodiscard]] unpacker_calls calls() noexcept {
    return {&streams_,
            [](void* streams, std::string_view format) {
              return begin(*static_cast<tuple*>(streams), format, std::index_sequence_for<Unpack...>{});
            },
            [](void* streams, std::size_t number, bytes_view in, mutable_bytes out, bool last) {
              return step(*static_cast<tuple*>(streams), number, in, out, last,
                          std::index_sequence_for<Unpack...>{});
            }};
  }

 private:
  using tuple = std::tuple<typename Unpack::stream...>;

  template <std::size_t... Is>
  static std::size_t begin([[maybe_unused]] tuple& streams, [[maybe_unused]] std::string_view format,
                           std::index_sequence<Is...>) {
    std::size_t number = unpacker_calls::none;
    (void)((Unpack::unpacker_format == format && (std::get<Is>(streams).begin(), number = Is, true)) || ...);
    return number;
  }
  template <std::size_t... Is>
  static unpack_step step([[maybe_unused]] tuple& streams, [[maybe_unused]] std::size_t number,
                          [[maybe_unused]] bytes_view in, [[maybe_unused]] mutable_bytes out,
                          [[maybe_unused]] bool last, std::index_sequence<Is...>) {
    unpack_step done;
    (void)((number == Is && (done = std::get<Is>(streams).step(in, out, last), true)) || ...);
    return done;
  }

  tuple streams_;
};

/// The bytes of a file, a pipe or an object, forward only; unpacked if the first bytes show that they are
/// packed.
///
/// `get` shows bytes ahead, `reach` moves forward, `read` takes bytes. Memory:
/// a window of packed and one of unpacked bytes, 256 KiB each, which grow up to the limit of extension
/// headers if needed. Pieces of an object are packed bytes, or shown as they are.
class shard_stream {
 public:
  /// With `objects`, it reads those, and otherwise files.
  shard_stream(unpacker_calls given, forward_pieces* objects, const stream_kind& kind) noexcept
      : kind_(&kind), objects_(objects), unpackers_(given) {}

  static constexpr bool forward = true;

  /// Whether a path is standard input, or a file that can be read only once.
  [[nodiscard]] static bool is_pipe(const std::string& path);

  /// `used`: whether a pipe was read before. The path "-" is standard input. `reader` is the name of the
  /// caller, for messages.
  void open(const std::string& path, std::atomic<bool>& used, std::string_view reader);
  void open(std::size_t object, std::string_view reader);

  void close() noexcept;

  /// Shows `count` bytes at `offset`, fewer at the end. The view is valid until the next call of any member.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t count);

  /// Moves forward to `offset`, and returns the offset it reached.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset);

  /// Takes bytes; returns fewer than asked for only at the end.
  [[nodiscard]] std::size_t read(mutable_bytes into);

  /// Reads everything after the archive: the checksums of packed files, and the rest of what another program
  /// writes to a pipe.
  void drain();

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// Whether the opened file is packed.
  [[nodiscard]] bool packed() const noexcept { return packed_ != plain; }

 private:
  static constexpr std::size_t piece = 256_KiB;
  static constexpr std::size_t sniffed = 4_KiB;
  static constexpr std::size_t plain = unpacker_calls::none;

  [[nodiscard]] error failed(const char* doing) const;

  /// Finds out from the first bytes how the shard is packed.
  void recognise(std::string_view reader);
  /// Reads more of the file; sets `raw_ended_` if there is nothing more.
  void fill();
  [[nodiscard]] std::size_t read_some(mutable_bytes into);

  /// The next bytes of the archive; none at its end.
  [[nodiscard]] std::size_t make(mutable_bytes out);

  [[nodiscard]] bool refill();

  /// Moves the contents of the window to its front, and makes room for `count` bytes.
  void reserve(std::size_t count);

  const stream_kind* kind_;
  forward_pieces* objects_;
  owned_descriptor file_;
  int number_ = -1;
  buffer raw_;                           // bytes as they are in the file
  const std::byte* raw_from_ = nullptr;  // these, or a piece of an object
  std::size_t raw_at_ = 0, raw_end_ = 0;
  bool raw_ended_ = false, whole_ = false, drained_ = true;
  std::size_t packed_ = plain;  // the number of the unpacker
  unpacker_calls unpackers_;
  buffer window_;                     // bytes as they are in the archive
  const std::byte* shown_ = nullptr;  // these, or a piece of an object
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t offset_ = 0;  // of shown_[at_]
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/shard_stream.ipp>
#endif
