// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/records/shard_sample.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/records/stream_source.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/source/tar/tar_walk.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// The bytes of a member, held by its sample.
class tar_held_blob {
 public:
  using unfinished = void;

  tar_held_blob() = default;
  explicit tar_held_blob(bytes_view bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_.size(); }
  void read_into(mutable_bytes into) const {
    if (into.size() != bytes_.size()) wrong_size(bytes_.size(), into.size());
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
  }
  [[nodiscard]] bytes_view finish() const noexcept { return bytes_; }

 private:
  bytes_view bytes_;
};

/// An open sample that owns its bytes, for sources that read forward. Its memory is reused.
class tar_stream_sample {
 public:
  using is_open_sample = void;
  using blob_type = tar_held_blob;

  [[nodiscard]] std::string_view key() const noexcept { return key_; }
  /// The shard that the sample is in.
  [[nodiscard]] std::string_view url() const noexcept { return url_; }
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept {
    return std::string_view(names_).substr(members_[i].name, members_[i].name_size);
  }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept {
    return blob_type(bytes_.view().subspan(members_[i].begin, members_[i].size));
  }

  /// Starts another sample.
  void start(std::string_view key, std::string_view url) {
    key_ = key;
    url_ = url;
    names_.clear();
    members_.clear();
    bytes_.clear();
    bad_ = false;
  }

  /// Adds a member, which must have this sample's key and be the last one that `walk` found in `in`.
  void take(const tar::member& m, std::string_view suffix, std::uint64_t limit, shard_stream& in,
            const tar::member_walk& walk);

  /// Whether the sample is marked to be left out.
  [[nodiscard]] bool bad() const noexcept { return bad_; }

 private:
  struct entry {
    std::size_t name, name_size;
    std::size_t begin, size;
  };

  /// Whether no member has this name, which is already at the end of `names_`. Samples with very many
  /// members use a hash table instead of a linear search.
  [[nodiscard]] bool fresh(std::string_view lowered);
  [[nodiscard]] std::size_t slot(std::string_view lowered) const noexcept;

  void grow(std::size_t size);

  static constexpr std::size_t empty = static_cast<std::size_t>(-1);

  std::string key_;
  std::string url_;
  std::string names_;
  std::vector<entry> members_;
  std::vector<std::size_t> table_;
  buffer bytes_;
  bool bad_ = false;
};

/// Reads the samples of tar shards one after another.
class tar_stream_reader : public shard_sequence {
 public:
  using element = tar_stream_sample;

  tar_stream_reader(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects = nullptr)
      : shard_sequence(std::move(set), unpack, objects, tar_streams()),
        walk_(tar::walk_input::of(input()), this->set().extension_limit) {}

  [[nodiscard]] bool next(tar_stream_sample& e) {
    return next_of([&] { walk_.restart(); }, [&](const std::string& url) { return read_sample(e, url); },
                   [&] { close(); });
  }
  void close() noexcept {
    shard_sequence::close();
    pending_ = ended_ = false;
  }

 private:
  /// Looks for the next member that belongs to a sample. At the end it reads through to the checksums,
  /// before the last sample is delivered.
  bool find() {
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
  /// False at the end of the shard.
  bool read_sample(tar_stream_sample& e, const std::string& url) {
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
