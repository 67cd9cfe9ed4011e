// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/tar/shard_stream.hpp>
#include <penstock/source/tar/stream_sample.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The shards of a plan that are read forward.
struct stream_shards {
  stream_shards(std::vector<std::string> given, std::uint64_t most, std::uint64_t longest_extension,
                bool regular, std::string_view source);

  std::vector<std::string> names;
  std::vector<std::atomic<bool>> used;  // by shard: whether it is a pipe that has been read
  std::uint64_t limit;                  // bytes in a sample
  std::uint64_t extension_limit;        // bytes in an extension header
  bool files;                           // whether the shards must be files and not pipes
  std::string_view source_name;

  [[nodiscard]] std::string describe() const;
  /// Covers the shards' names without their folders: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

/// Reads the samples of shards one after another. It must not be moved: the walk refers to the input.
class stream_reader {
 public:
  /// With `objects`, the shards are those, and otherwise files.
  stream_reader(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects = nullptr)
      : set_(std::move(set)),
        stored_(objects != nullptr),
        input_(unpack, objects),
        walk_(walk_input::of(input_), set_->extension_limit) {}
  stream_reader(const stream_reader&) = delete;
  stream_reader& operator=(const stream_reader&) = delete;

  [[nodiscard]] bool next(stream_sample& e);
  void rewind() noexcept;
  [[nodiscard]] source_mark mark() const noexcept { return {shard_, given_}; }
  /// Opens the marked shard and reads past the samples already delivered; earlier shards are not
  /// touched.
  void seek(source_mark place);

 private:
  void open(const std::string& url);
  void close() noexcept;
  /// Looks for the next member that belongs to a sample. At the end it reads through to the checksums,
  /// before the last sample is delivered.
  bool find();
  /// False at the end of the shard.
  bool read_sample(stream_sample& e, const std::string& url);

  shared<stream_shards> set_;
  bool stored_;
  std::size_t shard_ = 0;
  std::uint64_t given_ = 0;  // samples of the current shard delivered so far
  shard_stream input_;
  member_walk walk_;
  member found_;
  split_path parts_;  // the name of the member that was found but not taken yet
  bool open_ = false;
  bool pending_ = false;
  bool ended_ = false;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/stream_reader.ipp>
#endif
