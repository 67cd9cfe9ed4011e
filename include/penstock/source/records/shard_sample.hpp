// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/cold_copy.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

/// A sample of a tar shard in flight: the worker's state, the sample, and the bytes of its members.
namespace penstock::inline v0_1 {
namespace detail {

inline constexpr std::uint64_t no_offset = std::numeric_limits<std::uint64_t>::max();

/// The current sample of a worker.
struct sample_cursor {
  const shard_index* tables = nullptr;
  const std::string* url = nullptr;
  object_id shard = 0;
  std::uint64_t sample = 0;  ///< in the shard
  std::uint32_t first = 0;   ///< first and end member
  std::uint32_t end = 0;
  std::uint64_t touched = no_offset;  ///< the offset of the bytes requested last

  /// Adds shard, offset and key to an error.
  void add_context(error& e) const;
};

/// Throws the error for a buffer whose size is not the member's.
[[noreturn]] void wrong_size(std::uint64_t size, std::uint64_t room);

/// Members from this size on are read straight into their destinations.
inline constexpr std::uint64_t direct_from = 32_KiB;

/// The bytes of a member that has not gone through the window.
struct spare_member {
  buffer bytes;
  std::uint64_t generation = 0;
};
void grow(std::vector<spare_member>& spares, std::size_t count);

/// The state of one worker that reads through a session that copies.
///
/// Members below 32 KiB come through a window, unless the session shows their shard in place. One read fills
/// it with all adjacent small members of the sample that are used, including gaps of up to 8 KiB that are not
/// used; when samples are read in order, the window grows, so that small samples cost one memcpy each. Larger
/// members are read straight into their destination. Bytes that were fetched ahead are not read again.
template <storage_session Session>
class copying_worker : public fetch_link<Session> {
 public:
  static constexpr bool views = false;
  sample_cursor at;

  void begin(Session& session, bool in_order) noexcept {
    session_ = &session;
    in_order_ = in_order;
    pinned_ = false;
    needs_confirm_ = false;
    ++generation_;
  }

  /// Whether the current sample has given out views of a file, which only `confirm` makes sure of.
  [[nodiscard]] bool needs_confirm() const noexcept { return needs_confirm_; }

  void read(std::uint32_t member, std::uint64_t offset, mutable_bytes into) {
    if (into.empty()) return;
    at.touched = offset;
    if (const bytes_view there = this->find(*session_, at.shard, offset, into.size()); !there.empty()) {
      std::memcpy(into.data(), there.data(), into.size());
      return;
    }
    if (mapped()) {
      if (in_order_ && into.size() < direct_from) return copy_shown(offset, into);
    } else if (into.size() < direct_from) {
      if (!holds(offset, into.size()) && !pinned_) {
        const span_of_members span = around(member);
        if (span.first != span.last) fill(span);
      }
      if (holds(offset, into.size())) {
        std::memcpy(into.data(), in_window(offset), into.size());
        return;
      }
    }
    session_->read(at.shard, offset, into);
  }

  /// Whether `finish` would read these bytes into memory of the worker, so that `read` saves a copy.
  [[nodiscard]] bool reads_straight(std::uint64_t offset, std::uint64_t size) const {
    if (size < direct_from || mapped()) return false;
    return this->find(*session_, at.shard, offset, size).empty();
  }
  /// Reads bytes that belong to those that were read before.
  void read_more(std::uint64_t offset, mutable_bytes into) { session_->read(at.shard, offset, into); }

  [[nodiscard]] bytes_view finish(std::uint32_t member, std::uint64_t offset, std::uint64_t size) {
    if (size == 0) return {};
    at.touched = offset;
    if (const bytes_view there = this->find(*session_, at.shard, offset, size); !there.empty()) return there;
    if constexpr (mapped_session<Session>) {
      if (mapped()) {
        needs_confirm_ = true;
        return session_->view(at.shard, offset, size);
      }
    }
    if (size < direct_from) {
      if (!holds(offset, size) && !pinned_) fill(around(member));
      if (holds(offset, size)) {
        pinned_ = true;  // the window must not move until the next sample
        return {in_window(offset), detail::to_size(size)};
      }
    }
    const std::size_t ordinal = member - at.first;
    if (spares_.size() <= ordinal) grow(spares_, ordinal + 1);
    spare_member& mine = spares_[ordinal];
    if (mine.generation != generation_) {
      mine.bytes.resize_for_overwrite(detail::to_size(size));
      session_->read(at.shard, offset, mine.bytes.span());
      mine.generation = generation_;
    }
    return mine.bytes.view();
  }

 private:
  static constexpr std::uint64_t first_ahead = 16_KiB;
  static constexpr std::uint64_t max_ahead = 256_KiB;
  // gaps of unused bytes up to this size are read along, to save another call
  static constexpr std::uint64_t max_gap = 8_KiB;

  struct span_of_members {
    std::uint32_t first;
    std::uint32_t last;
  };

  /// Whether the session shows the shard in place; then nothing goes through the window.
  [[nodiscard]] bool mapped() const { return is_mapped(*session_, at.shard); }
  void copy_shown([[maybe_unused]] std::uint64_t offset, [[maybe_unused]] mutable_bytes into) {
    if constexpr (!mapped_session<Session>) {
      return;  // shows nothing
    } else if constexpr (requires { session_->read(at.shard, offset, into, copy_); }) {
      session_->read(at.shard, offset, into, copy_);
    } else {
      needs_confirm_ = true;  // the session may not know before `confirm` whether these were the file's bytes
      copy_(into, session_->view(at.shard, offset, into.size()).data());
      (void)session_->view(at.shard, offset, into.size());  // in `file`, this also checks the last page
    }
  }
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t size) const noexcept {
    return window_shard_ == at.tables && offset >= window_begin_ &&
           offset - window_begin_ <= window_.size() && size <= window_.size() - (offset - window_begin_);
  }
  [[nodiscard]] const std::byte* in_window(std::uint64_t offset) const noexcept {
    return window_.data() + (offset - window_begin_);
  }
  [[nodiscard]] bool small(std::uint32_t member) const noexcept {
    return at.tables->size(member) < direct_from;
  }

  // The small members to read together with this one: those of its sample and, when samples are read in
  // order, of the following samples. Unused bytes are included only in small gaps.
  [[nodiscard]] span_of_members around(std::uint32_t member) noexcept {
    const shard_index& tables = *at.tables;
    span_of_members span{member, member};
    for (std::uint32_t m = member;
         m > at.first && small(m - 1) && tables.end(member) - tables.offset(m - 1) <= max_ahead;) {
      if (!tables.uses(--m)) continue;
      if (span.first - m != 1 && tables.offset(span.first) - tables.end(m) > max_gap) break;
      span.first = m;
    }
    const std::uint64_t begin = tables.offset(span.first);
    std::uint32_t seen = member;
    const auto extend = [&](std::uint32_t end, std::uint64_t maximum) {
      while (seen + 1 < end && small(seen + 1) && tables.end(seen + 1) - begin <= maximum) {
        if (!tables.uses(++seen)) continue;
        if (seen - span.last != 1 && tables.offset(seen) - tables.end(span.last) > max_gap) return false;
        span.last = seen;
      }
      return seen + 1 == end;
    };
    const bool whole = extend(at.end, max_ahead);
    ahead_ = in_order_ ? std::clamp(ahead_ * 4, first_ahead, max_ahead) : 0;
    if (ahead_ != 0 && whole) extend(static_cast<std::uint32_t>(tables.header().members), ahead_);
    return span;
  }

  void fill(span_of_members span) {
    const std::uint64_t begin = at.tables->offset(span.first);
    window_shard_ = nullptr;  // the window is empty if the read fails
    window_.resize_for_overwrite(static_cast<std::size_t>(at.tables->end(span.last) - begin));
    session_->read(at.shard, begin, window_.span());
    window_begin_ = begin;
    window_shard_ = at.tables;
  }

  Session* session_ = nullptr;
  const shard_index* window_shard_ = nullptr;
  buffer window_;
  std::uint64_t window_begin_ = 0;
  std::uint64_t ahead_ = 0;
  std::uint64_t generation_ = 0;
  cold_copy copy_;
  bool in_order_ = false;
  bool pinned_ = false;
  bool needs_confirm_ = false;
  std::vector<spare_member> spares_;  // by the member's number in its sample
};

/// The state of one worker whose session shows bytes in place.
template <storage_session Session>
class viewing_worker {
 public:
  static constexpr bool views = true;
  sample_cursor at;

  void begin(Session& session, bool in_order) noexcept {
    session_ = &session;
    in_order_ = in_order;
  }
  [[nodiscard]] static constexpr bool needs_confirm() noexcept { return true; }
  [[nodiscard]] static constexpr bool reads_straight(std::uint64_t, std::uint64_t) noexcept { return false; }
  void read_more(std::uint64_t offset, mutable_bytes into) { read(0, offset, into); }
  void read(std::uint32_t member, std::uint64_t offset, mutable_bytes into) {
    const bytes_view found = finish(member, offset, into.size());
    if (found.empty()) return;
    if (in_order_ && into.size() < direct_from)
      copy_(into, found.data());
    else
      std::memcpy(into.data(), found.data(), found.size());
  }
  [[nodiscard]] bytes_view finish(std::uint32_t, std::uint64_t offset, std::uint64_t size) {
    at.touched = offset;
    return session_->view(at.shard, offset, size);
  }

 private:
  Session* session_ = nullptr;
  cold_copy copy_;
  bool in_order_ = false;
};

template <class Session>
using worker_for =
    std::conditional_t<all_mapped<Session>(), viewing_worker<Session>, copying_worker<Session>>;

/// The bytes of a member, not read yet. Valid during the call that delivers its sample.
template <class Worker>
class member_blob {
 public:
  using unfinished = void;
  /// Views of mapped shards are valid as long as the run, so holding one needs no copy.
  static constexpr bool lasting = Worker::views;

  member_blob() = default;
  member_blob(Worker& worker, std::uint32_t member) noexcept
      : worker_(&worker),
        member_(member),
        offset_(worker.at.tables->offset(member)),
        size_(worker.at.tables->size(member)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The offset of the bytes in the shard.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  void read_into(mutable_bytes into) const {
    if (into.size() != size_) wrong_size(size_, into.size());
    worker_->read(member_, offset_, into);
  }
  [[nodiscard]] bytes_view finish() const { return worker_->finish(member_, offset_, size_); }

 private:
  Worker* worker_ = nullptr;
  std::uint32_t member_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
};

/// An open sample of a shard: its key, and a table of members that have not been read.
template <class Worker>
class shard_sample {
 public:
  using is_open_sample = void;
  using blob_type = member_blob<Worker>;

  explicit shard_sample(Worker& worker) noexcept : worker_(&worker) {}

  [[nodiscard]] std::string_view key() const noexcept { return worker_->at.tables->key(worker_->at.sample); }
  /// The shard that the sample is in.
  [[nodiscard]] std::string_view url() const noexcept { return *worker_->at.url; }
  [[nodiscard]] std::size_t size() const noexcept { return worker_->at.end - worker_->at.first; }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept {
    return worker_->at.tables->suffix(number(i));
  }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept { return {*worker_, number(i)}; }

 private:
  [[nodiscard]] std::uint32_t number(std::size_t i) const noexcept {
    return worker_->at.first + static_cast<std::uint32_t>(i);
  }
  Worker* worker_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/shard_sample.ipp>
#endif
