// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// A column of an MDS dataset: its name, its encoding as MosaicML writes it ("int", "ndarray:uint8:2,3"), and
/// the bytes of each of its values; 0 if they differ.
struct mds_column {
  std::string name;
  std::string encoding;
  std::uint32_t size = 0;
  friend bool operator==(const mds_column&, const mds_column&) = default;
};

namespace detail {

/// The columns of a shard, and how its samples begin.
struct mds_columns {
  std::vector<mds_column> all;
  std::uint32_t head = 0;  ///< bytes before the first value: the sizes of those that differ

  explicit mds_columns(std::vector<mds_column> columns);
};

/// Throws `errc::format` if a codec of this name cannot read a column of this encoding.
void check_mds_codec(const mds_column& column, std::string_view codec);

/// The current sample of a worker.
struct mds_cursor {
  static constexpr std::uint64_t nothing_touched = std::numeric_limits<std::uint64_t>::max();

  const mds_columns* columns = nullptr;
  const std::string* path = nullptr;
  const std::string* name = nullptr;  ///< of the shard in the index
  object_id shard = 0;
  std::uint64_t sample = 0;  ///< in the shard
  std::uint64_t begin = 0;   ///< in the shard's file
  std::uint64_t size = 0;
  std::uint64_t touched = nothing_touched;  ///< the offset of the bytes requested last, from `begin`

  /// Moves to another shard.
  void enter(const mds_columns& new_columns, const std::string& new_path, const std::string& new_name,
             object_id new_shard);
  /// Finds where values begin. `head` is at least the first `columns->head` bytes, or all there are.
  void divide(bytes_view head);
  /// Values are unknown, and look empty.
  void forget() { begins.assign(columns->all.size() + 1, 0); }
  [[nodiscard]] std::uint64_t value_begin(std::size_t column) const noexcept { return begins[column]; }
  [[nodiscard]] std::uint64_t value_size(std::size_t column) const noexcept {
    return begins[column + 1] - begins[column];
  }
  /// The shard's name and the sample's number in it: "shard.00000.mds:17".
  [[nodiscard]] std::string_view key() const;
  /// Adds shard, offset and key to an error.
  void add_context(error& e) const;
  [[nodiscard]] bool knows_codec(std::size_t column, std::string_view codec) const noexcept {
    return column < codecs.size() && codecs[column].data() == codec.data() &&
           codecs[column].size() == codec.size() && codec.data() != nullptr;
  }
  void learn_codec(std::size_t column, std::string_view codec);

 private:
  std::vector<std::uint64_t> begins;     // of the values, from `begin`, and their end
  std::vector<std::string_view> codecs;  // by column: the codec that was checked last
  mutable std::string key_text;
};

/// The state of one worker. A sample is shown in place where the session can; a smaller one is otherwise read
/// as a whole, and of a larger one the values that are asked for, straight into their destinations.
template <class Session>
class mds_worker : public fetch_link<Session> {
 public:
  static constexpr bool views = viewing_session<Session>;
  mds_cursor at;

  /// Finds the values of the sample that `at` names; with `unread`, none may be asked for.
  void begin(Session& session, bool unread) {
    session_ = &session;
    sample_bytes_ = {};
    needs_confirm_ = views;
    at.touched = mds_cursor::nothing_touched;
    for (std::size_t i = 0; i < read_.size(); ++i) read_[i] = false;
    if (unread) return at.forget();
    if constexpr (views) {
      sample_bytes_ = session.view(at.shard, at.begin, at.size);
    } else {
      sample_bytes_ = this->find(session, at.shard, at.begin, at.size);
      if constexpr (mapped_session<Session>)
        if (sample_bytes_.empty() && session.mapped(at.shard)) {
          needs_confirm_ = true;
          sample_bytes_ = session.view(at.shard, at.begin, at.size);
        }
      if (sample_bytes_.empty()) {
        room_.resize_for_overwrite(detail::to_size(at.size));
        const std::uint64_t first =
            at.size < direct || at.columns->head > at.size ? at.size : at.columns->head;
        if (first != 0) session.read(at.shard, at.begin, room_.span().first(detail::to_size(first)));
        if (first == at.size) sample_bytes_ = room_.view();
      }
    }
    at.divide(sample_bytes_.empty() ? room_.view() : sample_bytes_);
  }
  /// Whether the sample was shown in place, which only `confirm` makes sure of.
  [[nodiscard]] bool needs_confirm() const noexcept { return needs_confirm_; }

  void read(std::size_t column, mutable_bytes into) {
    at.touched = at.value_begin(column);
    if (into.empty()) return;
    if (!sample_bytes_.empty())
      std::memcpy(into.data(), sample_bytes_.data() + at.touched, into.size());
    else
      session_->read(at.shard, at.begin + at.touched, into);
  }
  [[nodiscard]] bytes_view finish(std::size_t column) {
    const std::size_t size = detail::to_size(at.value_size(column));
    at.touched = at.value_begin(column);
    const std::size_t begin = detail::to_size(at.touched);
    if (!sample_bytes_.empty() || size == 0)
      return sample_bytes_.empty() ? bytes_view() : sample_bytes_.subspan(begin, size);
    if (read_.size() <= column) read_.resize(column + 1);
    const mutable_bytes mine = room_.span().subspan(begin, size);
    if (!read_[column]) session_->read(at.shard, at.begin + begin, mine);
    read_[column] = true;
    return mine;
  }

 private:
  static constexpr std::uint64_t direct = 32_KiB;

  Session* session_ = nullptr;
  bytes_view sample_bytes_;  // the whole sample; empty: values are read one by one
  buffer room_;              // the sample, or those of its values that were read
  std::vector<bool> read_;   // by column: whether its value is in the room
  bool needs_confirm_ = false;
};

/// A value of a column: bytes that know their encoding. Valid during the call that delivers its sample.
template <class Worker>
class mds_value {
 public:
  using unfinished = void;
  /// Views of mapped shards are valid as long as the run, so holding one needs no copy.
  static constexpr bool lasting = Worker::views;

  mds_value() = default;
  mds_value(Worker& worker, std::size_t column) noexcept : worker_(&worker), column_(column) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return worker_->at.value_size(column_); }
  /// The offset of the bytes in the shard.
  [[nodiscard]] std::uint64_t offset() const noexcept {
    return worker_->at.begin + worker_->at.value_begin(column_);
  }
  void read_into(mutable_bytes into) const {
    if (into.size() != size())
      throw error(errc::argument, {"a value of ", size(), " bytes was to be read into ", into.size()});
    worker_->read(column_, into);
  }
  [[nodiscard]] bytes_view finish() const { return worker_->finish(column_); }
  /// The column's encoding, as MosaicML writes it.
  [[nodiscard]] std::string_view encoding() const noexcept {
    return worker_->at.columns->all[column_].encoding;
  }
  /// Throws `errc::format` if a codec of this name cannot read the column.
  void check_codec(std::string_view codec) const {
    worker_->at.touched = worker_->at.value_begin(column_);  // where an error of the codec belongs
    if (!worker_->at.knows_codec(column_, codec)) [[unlikely]]
      worker_->at.learn_codec(column_, codec);
  }

 private:
  Worker* worker_ = nullptr;
  std::size_t column_ = 0;
};

/// An open sample of an MDS shard: a member for each column.
template <class Worker>
class mds_sample {
 public:
  using is_open_sample = void;
  using blob_type = mds_value<Worker>;

  explicit mds_sample(Worker& worker) noexcept : worker_(&worker) {}

  [[nodiscard]] std::string_view key() const { return worker_->at.key(); }
  /// The shard that the sample is in.
  [[nodiscard]] std::string_view url() const noexcept { return *worker_->at.path; }
  [[nodiscard]] std::size_t size() const noexcept { return worker_->at.columns->all.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept {
    return worker_->at.columns->all[i].name;
  }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept { return {*worker_, i}; }

 private:
  Worker* worker_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/mds_sample.ipp>
#endif
