// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/records/shard_sequence.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/tar/stream_sample.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// Reads the samples of tar shards one after another.
class tar_stream_reader : public shard_sequence {
 public:
  using element = tar_stream_sample;

  tar_stream_reader(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects = nullptr)
      : shard_sequence(std::move(set), unpack, objects, tar_streams()),
        walk_(tar::walk_input::of(input()), this->set().extension_limit) {}

  [[nodiscard]] bool next(tar_stream_sample& e);
  void rewind() noexcept;
  /// Opens the marked shard and reads past the samples already delivered; earlier shards are not
  /// touched.
  void seek(source_mark place);

 private:
  void close() noexcept;
  /// Looks for the next member that belongs to a sample. At the end it reads through to the checksums,
  /// before the last sample is delivered.
  bool find();
  /// False at the end of the shard.
  bool read_sample(tar_stream_sample& e, const std::string& url);

  tar::member_walk walk_;
  tar::member found_;
  split_path parts_;  // the name of the member that was found but not taken yet
  bool pending_ = false;
  bool ended_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/stream_reader.ipp>
#endif
