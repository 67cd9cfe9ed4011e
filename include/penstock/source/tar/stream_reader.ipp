// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/stream_reader.hpp>

#include <algorithm>
#include <functional>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void tar_stream_sample::take(const tar::member& m, std::string_view suffix,
                                             std::uint64_t limit, shard_stream& in,
                                             const tar::member_walk& walk) {
  if (m.sparse) refuse_sparse(m, key_);
  const std::size_t name = names_.size();
  for (const char c : suffix) names_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const std::string_view lowered = std::string_view(names_).substr(name);
  if (marks_bad(lowered, m.size)) bad_ = true;
  if (reserved_suffix(lowered) || !fresh(lowered)) refuse_suffix(m, lowered, key_);
  const std::size_t begin = bytes_.size();
  const std::uint64_t held = begin + names_.size() + (members_.size() + 1) * sizeof(entry);
  if (held > limit || m.size > limit - held) {
    throw error(errc::limit, {"with the member '", m.path, "' of ", m.size,
                              " bytes the sample is larger than the limit of ", limit,
                              "; raise it with webdataset_stream_options{.limit = ...}"})
        .at_offset(m.header)
        .for_key(key_);
  }
  // A header may announce more bytes than there are, so memory grows only as bytes arrive.
  const auto size = static_cast<std::size_t>(m.size);
  for (std::size_t done = 0; done < size;) {
    const std::size_t some = std::min(size - done, std::max<std::size_t>(1_MiB, begin + done));
    grow(begin + done + some);
    const std::size_t got = in.read(bytes_.span().subspan(begin + done, some));
    done += got;
    if (got < some) walk.cut_off(m.data + done);
  }
  members_.push_back({name, names_.size() - name, begin, size});
}

PENSTOCK_INLINE bool tar_stream_sample::fresh(std::string_view lowered) {
  constexpr std::size_t few = 32;
  if (members_.size() < few) {
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (name(i) == lowered) return false;
    return true;
  }
  if (members_.size() == few || (members_.size() + 1) * 2 > table_.size()) {
    std::size_t size = 4 * few;
    while (size < members_.size() * 4) size *= 2;
    table_.assign(size, empty);
    for (std::size_t i = 0; i < members_.size(); ++i) table_[slot(name(i))] = i;
  }
  std::size_t& mine = table_[slot(lowered)];
  if (mine != empty) return false;
  mine = members_.size();
  return true;
}

PENSTOCK_INLINE std::size_t tar_stream_sample::slot(std::string_view lowered) const noexcept {
  std::size_t at = std::hash<std::string_view>{}(lowered) & (table_.size() - 1);
  while (table_[at] != empty && name(table_[at]) != lowered) at = (at + 1) & (table_.size() - 1);
  return at;
}

PENSTOCK_INLINE void tar_stream_sample::grow(std::size_t size) {
  if (size > bytes_.capacity()) {
    buffer larger(std::max(size, 2 * bytes_.capacity()));
    if (bytes_.size() != 0) std::memcpy(larger.data(), bytes_.data(), bytes_.size());
    bytes_ = std::move(larger);
  }
  bytes_.resize_for_overwrite(size);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
