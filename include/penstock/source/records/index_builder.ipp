// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/index_builder.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/records/shard_index.hpp>

#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void index_builder::add(const shard_member& m) {
  if (skipped_member(m.path)) return;
  const auto parts = split_member(m.path);
  if (!parts) return;
  if (is_apple_double(m.path)) {
    apple_double_ = skip_apple_double_ ? 1 : 2;
    if (skip_apple_double_) return;
  }
  if (m.sparse) refuse_sparse(m, parts->key);
  if (samples_.empty() || parts->key != last_key()) open_sample_of(parts->key);
  const std::string lowered = lower_case(parts->suffix);
  if (marks_bad(lowered, m.size)) bad_ = true;
  const std::uint32_t suffix = number_of(lowered);
  if (last_seen_[suffix] == met_ || reserved_suffix(lowered)) refuse_suffix(m, lowered, parts->key);
  last_seen_[suffix] = met_;
  check_room(members_.size(), "members");
  members_.push_back({(m.data / 512) << 24 | suffix, m.size});
  payload_ += m.size;
}

PENSTOCK_INLINE void index_builder::add_record(std::uint64_t offset, std::uint64_t size) {
  if (offset >> 40 != 0) throw error(errc::format, "a file of records may have up to 1 TiB");
  open_sample_of({});
  check_room(members_.size(), "records");
  members_.push_back({offset << 24 | number_of({}), size});
  payload_ += size;
}

PENSTOCK_INLINE buffer index_builder::finish(object_version shard) {
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
  header.unended = unended_ ? 1 : 0;
  header.bytewise = bytewise_ ? 1 : 0;
  header.apple_double = apple_double_;
  check_room(detail::to_size(header.suffix_bytes), "bytes of suffixes");

  buffer out(detail::to_size(header.file_size()));
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

PENSTOCK_INLINE void index_builder::check_room(std::size_t used, const char* what) {
  if (used >= std::numeric_limits<std::uint32_t>::max()) {
    throw error(errc::format, {"a shard may not have more than 4,294,967,295 ", what});
  }
}

PENSTOCK_INLINE void index_builder::open_sample_of(std::string_view key) {
  leave_out_bad();
  ++met_;
  check_room(keys_.size() + key.size(), "bytes of keys");
  samples_.push_back({static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(keys_.size())});
  keys_ += key;
}

PENSTOCK_INLINE void index_builder::leave_out_unfinished(std::string_view next) {
  if (samples_.empty()) return;
  const std::size_t last = members_.size() - samples_.back().first;
  if (const auto parts = next.empty() ? std::nullopt : split_member(next))
    bad_ = bad_ || parts->key == last_key();
  else if (samples_.size() > 1)
    bad_ = bad_ || last < samples_.back().first - samples_[samples_.size() - 2].first;
  leave_out_bad();
}

PENSTOCK_INLINE void index_builder::leave_out_bad() {
  if (!std::exchange(bad_, false)) return;
  for (std::size_t i = samples_.back().first; i < members_.size(); ++i) payload_ -= members_[i].size;
  members_.resize(samples_.back().first);
  keys_.resize(samples_.back().key);
  samples_.pop_back();
}

PENSTOCK_INLINE std::uint32_t index_builder::number_of(const std::string& suffix) {
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

}  // namespace detail
}  // namespace penstock::inline v0_1
