// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Choices of `shard_writer`; the bounds are those of WebDataset's ShardWriter.
struct shard_writer_options {
  std::uint64_t maxcount = 100'000;  ///< samples in a shard
  /// bytes of members in a shard; the sample that passes it is the shard's last
  std::uint64_t maxsize = 3'000'000'000u;
  std::uint64_t start_shard = 0;  ///< the number of the first shard
  tar_writer_options tar = {};
};

/// Writes samples into numbered shards, a new one when the last is full.
///
///     shard_writer out("train-%06d.tar", {.maxcount = 10'000});
///     out.write(key, {{"jpg", jpeg_bytes}, {"cls", "7"}});
///     manifest all = out.close();
///
/// In: as `tar_writer`, and a pattern with one `%d` (`%06d`, `%%` for a percent sign), or a path without `%`,
/// to which `-%06d.tar` is added. Out: the shards, each of which appears when it is complete, and a manifest.
/// A writer that is destroyed without `close` removes the shard it was at and leaves those before.
/// Errors and threads as for `tar_writer`. Source: webdataset, writer.py, ShardWriter.
template <class = void>
class basic_shard_writer {
 public:
  explicit basic_shard_writer(std::string_view pattern, shard_writer_options options = {})
      : options_(std::move(options)), next_(options_.start_shard) {
    parse(pattern);
    if (options_.maxcount == 0) throw error(errc::argument, "a shard needs room for at least one sample");
  }

  void write(std::string_view key, std::span<const tar_member> members) {
    if (closed_) throw error(errc::state, "this shard_writer is closed").for_key(key);
    if (current_ && (current_->samples() >= options_.maxcount || current_->payload() >= options_.maxsize))
      finish_shard();
    if (!current_) current_.emplace(std::string_view(name(next_)), options_.tar);
    current_->write(key, members);
  }
  void write(std::string_view key, std::initializer_list<tar_member> members) {
    write(key, std::span<const tar_member>(members.begin(), members.size()));
  }

  /// Completes the last shard. The manifest of all shards written; with no sample there is no shard.
  manifest close() {
    if (closed_) throw error(errc::state, "this shard_writer is closed");
    if (current_) finish_shard();
    closed_ = true;
    return manifest(shards_);
  }

  /// The shards that are complete.
  [[nodiscard]] std::span<const manifest::shard> shards() const noexcept { return shards_; }
  /// The path of a shard by its number.
  [[nodiscard]] std::string name(std::uint64_t number) const {
    std::string digits = std::to_string(number);
    if (digits.size() < width_) digits.insert(0, width_ - digits.size(), fill_);
    return before_ + digits + after_;
  }

 private:
  void finish_shard() {
    shards_.push_back(current_->close());
    current_.reset();
    ++next_;
  }

  void parse(std::string_view pattern) {
    if (pattern.empty())
      throw error(errc::argument, "a shard_writer needs a pattern, for example 'train-%06d.tar'");
    bool found = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      std::string& text = found ? after_ : before_;
      if (pattern[i] != '%') {
        text += pattern[i];
        continue;
      }
      if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
        text += pattern[++i];
        continue;
      }
      if (i + 1 < pattern.size() && pattern[i + 1] == '0') fill_ = '0';
      std::size_t width = 0;
      for (++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9' && width <= 20; ++i) {
        width = width * 10 + static_cast<std::size_t>(pattern[i] - '0');
      }
      if (found || width > 20 || i >= pattern.size() || (pattern[i] != 'd' && pattern[i] != 'u')) {
        throw error(
            errc::argument,
            "the pattern of a shard_writer has one number, written as in 'train-%06d.tar'; this is '" +
                std::string(pattern) + "'");
      }
      width_ = width;
      found = true;
    }
    if (!found) {
      if (before_.ends_with(".tar")) before_.resize(before_.size() - 4);
      before_ += "-";
      after_ = ".tar";
      width_ = 6;
      fill_ = '0';
    }
  }

  shard_writer_options options_;
  std::string before_;
  std::string after_;
  std::size_t width_ = 0;
  char fill_ = ' ';
  std::uint64_t next_ = 0;
  std::optional<tar_writer<>> current_;
  std::vector<manifest::shard> shards_;
  bool closed_ = false;
};
/// The form to use: see `basic_shard_writer`.
using shard_writer = basic_shard_writer<>;

}  // namespace penstock::inline v0_1
