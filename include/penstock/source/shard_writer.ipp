// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/shard_writer.hpp>

#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void shard_writer::write(std::string_view key, std::span<const tar_member> members) {
  if (closed_) throw error(errc::state, "this shard_writer is closed").for_key(key);
  if (current_ &&
      (current_->index().samples() >= options_.maxcount || current_->index().payload() >= options_.maxsize))
    finish_shard();
  if (!current_) {
    const std::string next = name(options_.start_shard + shards_.size());
    store_.open(next);
    current_.emplace(next, options_.tar);
  }
  current_->write(key, members, store_.sink());
}

PENSTOCK_INLINE manifest shard_writer::close() {
  if (closed_) throw error(errc::state, "this shard_writer is closed");
  if (current_) finish_shard();
  closed_ = true;
  return manifest(shards_);
}

PENSTOCK_INLINE void shard_writer::finish_shard() {
  current_->end(store_.sink());
  shards_.push_back(current_->finish(store_.finish(), [this](const std::string& name, bytes_view index) {
    store_.open(name);
    store_.write(index);
    (void)store_.finish();
  }));
  current_.reset();
}

PENSTOCK_INLINE void shard_writer::parse(std::string_view pattern) {
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
      throw error(errc::argument,
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

}  // namespace penstock::inline v0_1
