// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The bytes of a member that its sample holds.
class held_blob {
 public:
  using unfinished = void;

  held_blob() = default;
  explicit held_blob(bytes_view bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_.size(); }
  void read_into(mutable_bytes into) const {
    if (into.size() != bytes_.size()) {
      throw error(errc::argument, "a member of " + std::to_string(bytes_.size()) +
                                      " bytes was to be read into " + std::to_string(into.size()));
    }
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
  }
  [[nodiscard]] bytes_view finish() const noexcept { return bytes_; }

 private:
  bytes_view bytes_;
};

/// An open sample that owns its bytes, for sources that read forward. Its memory is used again.
template <class = void>
class basic_stream_sample {
 public:
  using is_open_sample = void;
  using blob_type = held_blob;

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

  /// Another sample begins.
  void start(std::string_view key, std::string_view url) {
    key_ = key;
    url_ = url;
    names_.clear();
    members_.clear();
    bytes_.clear();
    bad_ = false;
  }

  /// Takes a member, which must have this sample's key. `read(bytes)` takes that many from the archive, fewer
  /// at its end; `cut_off(got)` throws when they end early.
  template <class Read, class CutOff>
  void take(const tar::member& m, std::string_view suffix, std::uint64_t limit, Read&& read,
            CutOff&& cut_off) {
    if (m.sparse) {
      throw error(errc::format, "'" + std::string(m.path) +
                                    "' is a sparse file, which is stored with its holes left out; write the "
                                    "archive without --sparse")
          .at_offset(m.header)
          .for_key(key_);
    }
    const std::size_t name = names_.size();
    for (const char c : suffix) names_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const std::string_view lowered = std::string_view(names_).substr(name);
    if (marks_bad(lowered, m.size)) bad_ = true;
    if (reserved_suffix(lowered) || !fresh(lowered)) {
      throw error(errc::format, (reserved_suffix(lowered)
                                     ? "WebDataset keeps this name for itself, no member may have it: '"
                                     : "the sample has two members '") +
                                    std::string(lowered) + "'")
          .at_offset(m.header)
          .for_key(key_);
    }
    const std::size_t begin = bytes_.size();
    const std::uint64_t held = begin + names_.size() + (members_.size() + 1) * sizeof(entry);
    if (held > limit || m.size > limit - held) {
      throw error(errc::limit, "with the member '" + std::string(m.path) + "' of " + std::to_string(m.size) +
                                   " bytes the sample is larger than the limit of " + std::to_string(limit) +
                                   "; raise it with webdataset_stream_options{.limit = ...}")
          .at_offset(m.header)
          .for_key(key_);
    }
    // What a header announces may not be there: memory grows with what is.
    const auto size = static_cast<std::size_t>(m.size);
    for (std::size_t done = 0; done < size;) {
      const std::size_t some = std::min(size - done, std::max<std::size_t>(1_MiB, begin + done));
      grow(begin + done + some);
      const std::size_t got = read(bytes_.span().subspan(begin + done, some));
      done += got;
      if (got < some) cut_off(m.data + done);
    }
    members_.push_back({name, names_.size() - name, begin, size});
  }

  /// Whether the sample says of itself that it shall be left out.
  [[nodiscard]] bool bad() const noexcept { return bad_; }

 private:
  struct entry {
    std::size_t name, name_size;
    std::size_t begin, size;
  };

  /// Whether no member has this name, which stands at the end of `names_` already. A table takes over from
  /// looking at all where a sample has very many.
  [[nodiscard]] bool fresh(std::string_view lowered) {
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
  [[nodiscard]] std::size_t slot(std::string_view lowered) const noexcept {
    std::size_t at = std::hash<std::string_view>{}(lowered) & (table_.size() - 1);
    while (table_[at] != empty && name(table_[at]) != lowered) at = (at + 1) & (table_.size() - 1);
    return at;
  }

  void grow(std::size_t size) {
    if (size > bytes_.capacity()) {
      buffer larger(std::max(size, 2 * bytes_.capacity()));
      if (bytes_.size() != 0) std::memcpy(larger.data(), bytes_.data(), bytes_.size());
      bytes_ = std::move(larger);
    }
    bytes_.resize_for_overwrite(size);
  }

  static constexpr std::size_t empty = static_cast<std::size_t>(-1);

  std::string key_;
  std::string url_;
  std::string names_;
  std::vector<entry> members_;
  std::vector<std::size_t> table_;
  buffer bytes_;
  bool bad_ = false;
};
using stream_sample = basic_stream_sample<>;

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
