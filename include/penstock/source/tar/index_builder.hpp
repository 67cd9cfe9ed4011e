// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/source/tar/tar_scan.hpp>
#include <penstock/storage/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// Groups members into samples by the rules of WebDataset, and makes the index of the shard.
template <class = void>
class basic_index_builder {
 public:
  /// Takes the next member of the archive; what belongs to no sample is passed over.
  void add(const member& m) {
    if (skipped_member(m.path)) return;
    const auto parts = split_member(m.path);
    if (!parts) return;
    if (m.sparse) {
      throw error(errc::format, {"'", m.path,
                                 "' is a sparse file, which is stored with its holes left out; write the "
                                 "archive without --sparse"})
          .at_offset(m.header)
          .for_key(parts->key);
    }
    if (samples_.empty() || parts->key != last_key()) open_sample_of(parts->key);
    const std::string lowered = lower_case(parts->suffix);
    if (marks_bad(lowered, m.size)) bad_ = true;
    const std::uint32_t suffix = number_of(lowered);
    if (last_seen_[suffix] == met_ || reserved_suffix(lowered)) {
      throw error(errc::format, {reserved_suffix(lowered)
                                     ? "WebDataset keeps this name for itself, no member may have it: '"
                                     : "the sample has two members '",
                                 lowered, "'"})
          .at_offset(m.header)
          .for_key(parts->key);
    }
    last_seen_[suffix] = met_;
    check_room(members_.size(), "members");
    members_.push_back({(m.data / 512) << 24 | suffix, m.size});
    payload_ += m.size;
  }

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_.size(); }
  /// Samples so far, with those that are left out since they call themselves bad.
  [[nodiscard]] std::uint64_t met() const noexcept { return met_; }
  [[nodiscard]] std::uint64_t payload() const noexcept { return payload_; }
  /// The key of the sample that the next member may still belong to.
  [[nodiscard]] std::string_view last_key() const noexcept {
    return samples_.empty() ? std::string_view{} : std::string_view(keys_).substr(samples_.back().key);
  }

  /// The index as bytes, for a shard of this size and stamp.
  [[nodiscard]] buffer finish(object_signature shard) {
    leave_out_bad();
    index_header header;
    header.shard_size = shard.size;
    header.shard_stamp = shard.stamp;
    header.samples = samples_.size();
    header.members = members_.size();
    header.suffixes = suffixes_.size();
    for (const std::string& suffix : suffixes_) header.suffix_bytes += suffix.size();
    header.key_bytes = keys_.size();
    header.payload = payload_;
    check_room(static_cast<std::size_t>(header.suffix_bytes), "bytes of suffixes");

    buffer out(static_cast<std::size_t>(header.file_size()));
    std::byte* to = out.data() + index_header::size;
    const auto put = [&to](auto value) {
      store_little(to, value);
      to += sizeof(value);
    };
    for (const sample& s : samples_) {
      put(s.first);
      put(s.key);
    }
    put(static_cast<std::uint32_t>(members_.size()));
    put(static_cast<std::uint32_t>(keys_.size()));
    for (const entry& m : members_) {
      put(m.place);
      put(m.size);
    }
    std::uint32_t end = 0;
    for (const std::string& suffix : suffixes_) {
      end += static_cast<std::uint32_t>(suffix.size());
      put(end);
    }
    const auto copy = [&to](std::string_view text) {
      if (!text.empty()) std::memcpy(to, text.data(), text.size());
      to += text.size();
    };
    for (const std::string& suffix : suffixes_) copy(suffix);
    copy(keys_);
    header.content = checksum(out.view().subspan(index_header::size));
    header.store(out.data());
    return out;
  }

 private:
  struct sample {
    std::uint32_t first;
    std::uint32_t key;
  };
  struct entry {
    std::uint64_t place;
    std::uint64_t size;
  };

  static void check_room(std::size_t used, const char* what) {
    if (used >= std::numeric_limits<std::uint32_t>::max()) {
      throw error(errc::format, {"a shard may not have more than 4,294,967,295 ", what});
    }
  }

  void open_sample_of(std::string_view key) {
    leave_out_bad();
    ++met_;
    check_room(keys_.size() + key.size(), "bytes of keys");
    samples_.push_back(
        {static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(keys_.size())});
    keys_ += key;
  }

  // The last sample, if it has a member that says so.
  void leave_out_bad() {
    if (!std::exchange(bad_, false)) return;
    for (std::size_t i = samples_.back().first; i < members_.size(); ++i) payload_ -= members_[i].size;
    members_.resize(samples_.back().first);
    keys_.resize(samples_.back().key);
    samples_.pop_back();
  }

  // Samples repeat the suffixes of the one before, in the same order: the next number is tried first.
  std::uint32_t number_of(const std::string& suffix) {
    const std::size_t next = guess_ + 1 < suffixes_.size() ? guess_ + 1 : 0;
    if (next < suffixes_.size() && suffixes_[next] == suffix) {
      guess_ = next;
      return static_cast<std::uint32_t>(next);
    }
    const auto [found, fresh] = numbers_.try_emplace(suffix, static_cast<std::uint32_t>(suffixes_.size()));
    if (fresh) {
      if (suffixes_.size() == (1u << 24))
        throw error(errc::format, "a shard may not have more than 16,777,216 suffixes");
      suffixes_.push_back(suffix);
      last_seen_.push_back(0);
    }
    guess_ = found->second;
    return found->second;
  }

  std::vector<sample> samples_;
  std::vector<entry> members_;
  std::string keys_;
  std::vector<std::string> suffixes_;
  std::vector<std::size_t> last_seen_;  // by suffix: the sample in which it was last met
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::uint64_t payload_ = 0;
  std::size_t guess_ = 0;
  std::size_t met_ = 0;
  bool bad_ = false;
};
using index_builder = basic_index_builder<>;

/// Makes the index of an object in one pass over its headers.
template <storage_session Session>
[[nodiscard]] buffer build_index(Session& session, object_id id, const std::string& name) {
  try {
    const object_signature shard = session.signature(id);
    index_builder builder;
    scan(session, id, shard.size, [&builder](const member& m) { builder.add(m); });
    confirm(session, id);
    if (session.signature(id) != shard) {
      throw error(errc::io, "the shard was changed while its index was built");
    }
    return builder.finish(shard);
  } catch (error& e) {
    confirm(session, id);
    e.in_file(name);
    throw;
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
