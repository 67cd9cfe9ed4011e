// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/shard_writer.hpp>

#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

[[nodiscard]] inline archive_sink sink_of(shard_store& store) noexcept {
  return {&store, [](void* self, bytes_view bytes) { static_cast<shard_store*>(self)->write(bytes); }};
}

}  // namespace detail

PENSTOCK_INLINE shard_writer::shard_writer(std::string_view pattern, shard_writer_options options)
    : options_(std::move(options)), next_(options_.start_shard) {
  parse(pattern);
  if (options_.maxcount == 0) throw error(errc::argument, "a shard needs room for at least one sample");
}

PENSTOCK_INLINE void shard_writer::write(std::string_view key, std::span<const tar_member> members) {
  if (closed_) throw error(errc::state, "this shard_writer is closed").for_key(key);
  if (is_full()) finish_shard();
  if (!current_ && !stored_) begin_shard();
  if (current_)
    current_->write(key, members);
  else
    stored_->write(key, members, detail::sink_of(store_));
}

PENSTOCK_INLINE void shard_writer::use(detail::shard_store store) { store_ = std::move(store); }

PENSTOCK_INLINE bool shard_writer::is_full() const noexcept {
  if (!current_ && !stored_) return false;
  const std::uint64_t samples = current_ ? current_->samples() : stored_->index().samples();
  const std::uint64_t payload = current_ ? current_->payload() : stored_->index().payload();
  return samples >= options_.maxcount || payload >= options_.maxsize;
}

PENSTOCK_INLINE void shard_writer::begin_shard() {
  if (!store_) {
    current_.emplace(std::string_view(name(next_)), options_.tar);
    return;
  }
  store_.open(name(next_));
  stored_.emplace(name(next_), options_.tar);
}

PENSTOCK_INLINE manifest shard_writer::close() {
  if (closed_) throw error(errc::state, "this shard_writer is closed");
  if (current_ || stored_) finish_shard();
  closed_ = true;
  return manifest(shards_);
}

PENSTOCK_INLINE std::string shard_writer::name(std::uint64_t number) const {
  std::string digits = std::to_string(number);
  if (digits.size() < width_) digits.insert(0, width_ - digits.size(), fill_);
  return before_ + digits + after_;
}

PENSTOCK_INLINE void shard_writer::finish_shard() {
  if (current_) {
    shards_.push_back(current_->close());
    current_.reset();
  } else {
    stored_->end(detail::sink_of(store_));
    shards_.push_back(stored_->finish(store_.finish(), [this](const std::string& name, bytes_view index) {
      store_.open(name);
      store_.write(index);
      (void)store_.finish();
    }));
    stored_.reset();
  }
  ++next_;
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
