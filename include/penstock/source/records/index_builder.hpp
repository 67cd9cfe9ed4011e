// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/storage/concepts.hpp>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// Groups members into samples by WebDataset's rules, and makes the index of the shard.
class index_builder {
 public:
  /// `bytewise`: of a file of records, which begin anywhere.
  explicit index_builder(bool bytewise = false, bool skip_apple_double = true) noexcept
      : bytewise_(bytewise), skip_apple_double_(skip_apple_double) {}

  /// Adds the next member of the archive; a member that belongs to no sample is skipped.
  void add(const shard_member& m);
  /// Adds a sample of one member without a name, to a bytewise index: anywhere in the first TiB.
  void add_record(std::uint64_t offset, std::uint64_t size);

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_.size(); }
  /// The number of samples so far, including those left out because they are marked bad.
  [[nodiscard]] std::uint64_t met() const noexcept { return met_; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return payload_; }
  /// The key of the sample that the next member may still belong to.
  [[nodiscard]] std::string_view last_key() const noexcept {
    return samples_.empty() ? std::string_view{} : std::string_view(keys_).substr(samples_.back().key);
  }

  /// Leaves out the last sample if it may lack members, since the archive is damaged behind it: if `next`,
  /// the name of the member there, belongs to it, or, with an unknown name, if it has fewer members than the
  /// sample before it.
  void leave_out_unfinished(std::string_view next);

  /// Notes whether the archive lacks the zero blocks that should end it.
  void note_unended(bool unended) noexcept { unended_ = unended; }

  /// The index as bytes, for a shard of this size and stamp.
  [[nodiscard]] buffer finish(object_version shard);

 private:
  struct sample {
    std::uint32_t first;
    std::uint32_t key;
  };
  struct entry {
    std::uint64_t place;
    std::uint64_t size;
  };

  static void check_room(std::size_t used, const char* what);

  void open_sample_of(std::string_view key);

  // Drops the last sample if one of its members marks it bad.
  void leave_out_bad();

  // The number of a suffix. Samples usually repeat the suffixes of the previous sample in order, so
  // the next number is tried first.
  std::uint32_t number_of(const std::string& suffix);

  std::vector<sample> samples_;
  std::vector<entry> members_;
  std::string keys_;
  std::vector<std::string> suffixes_;
  std::vector<std::size_t> last_seen_;  // by suffix: the last sample that has it
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint64_t payload_ = 0;
  std::size_t guess_ = 0;
  std::size_t met_ = 0;
  std::uint64_t apple_double_ = 0;
  bool bad_ = false, unended_ = false, bytewise_, skip_apple_double_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/index_builder.ipp>
#endif
