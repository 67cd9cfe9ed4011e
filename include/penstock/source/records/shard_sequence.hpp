// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/records/shard_stream.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The shards of a plan that are read forward.
struct stream_shards {
  stream_shards(std::vector<std::string> given, std::uint64_t maximum, std::uint64_t longest_extension,
                bool regular, std::string_view source, bool skips_apple_double = true);

  std::vector<std::string> names;
  std::vector<std::atomic<bool>> used;  // by shard: whether it is a pipe that has been read
  std::uint64_t limit;                  // bytes in a sample
  std::uint64_t extension_limit;        // bytes in an extension header
  bool files;                           // whether the shards must be files and not pipes
  std::string_view source_name;
  bool skip_apple_double;

  [[nodiscard]] std::string describe() const;
  /// Covers the shards' names without their folders: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

/// Shards that are read one after another: which one it is, and how much of it was delivered. It must not be
/// moved: others refer to its input.
class shard_sequence {
 public:
  shard_sequence(const shard_sequence&) = delete;
  shard_sequence& operator=(const shard_sequence&) = delete;

  [[nodiscard]] source_mark mark() const noexcept { return {shard_, given_}; }

 protected:
  /// With `objects`, the shards are those, and otherwise files.
  shard_sequence(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects,
                 const stream_kind& kind)
      : set_(std::move(set)), stored_(objects != nullptr), input_(unpack, objects, kind) {}

  /// Delivers the next sample. `read(url)` reads it from the input, or returns false at the end of the shard;
  /// `begin()` is called after a shard was opened, `close()` to close it after an error.
  template <class Begin, class Read, class Close>
  bool next_of(Begin&& begin, Read&& read, Close&& close) {
    while (shard_ < set_->names.size()) {
      const std::string& url = set_->names[shard_];
      try {
        if (!open_) {
          open(url);
          begin();
        }
        if (read(url)) {
          ++given_;
          return true;
        }
      } catch (error& problem) {
        shard_ = set_->names.size();
        problem.in_file(url);
        if (open_) problem.at_offset(input_.offset());
        close();
        throw;
      }
      ++shard_;
      given_ = 0;
    }
    return false;
  }
  /// Goes to the marked shard, after `rewind`, and past the samples already delivered: `pass()` reads one.
  template <class Pass>
  void seek_to(source_mark place, Pass&& pass) {
    enter(place);
    while (given_ != place.sample)
      if (!pass() || shard_ != place.shard) too_few(place);
  }

  void rewind_shards() noexcept { shard_ = given_ = 0; }
  void close_input() noexcept {
    input_.close();
    open_ = false;
  }
  [[nodiscard]] const stream_shards& set() const noexcept { return *set_; }
  [[nodiscard]] shard_stream& input() noexcept { return input_; }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }

 private:
  void open(const std::string& url);
  void enter(source_mark place);
  [[noreturn]] void too_few(source_mark place) const;

  shared<stream_shards> set_;
  bool stored_;
  std::size_t shard_ = 0;
  std::uint64_t given_ = 0;  // samples of the current shard delivered so far
  shard_stream input_;
  bool open_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/shard_sequence.ipp>
#endif
