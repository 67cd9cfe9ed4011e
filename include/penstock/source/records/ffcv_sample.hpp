// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/records/ffcv_files.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The state of one worker, and its current sample. Values are shown in place where the session can, and read
/// one by one otherwise.
template <class Session>
class ffcv_worker : public fetch_link<Session> {
 public:
  static constexpr bool views = viewing_session<Session>;

  std::size_t shard = 0;
  std::uint64_t sample = 0;         // in the shard
  const ffcv_file* file = nullptr;  // of the current sample
  const ffcv_files* files = nullptr;
  bytes_view fetched_part;  // of the file, from `fetched_begin`
  std::uint64_t fetched_begin = 0;
  mutable std::string key;

  void begin(Session& session, const ffcv_files& all) {
    session_ = &session;
    files = &all;
    file = &all.files[shard];
    fetched_part = {};
    if (parts_.size() < file->fields.size()) {
      parts_.resize(file->fields.size());
      rooms_.resize(file->fields.size());
    }
    for (part& one : parts_) one = {};
  }
  [[nodiscard]] const ffcv_place& place(std::size_t field) {
    part& one = parts_[field];
    if (!one.found) {
      file->find_place(sample, field, one.place);
      one.found = true;
    }
    return one.place;
  }
  void read(std::size_t field, mutable_bytes into) {
    const ffcv_place& where = place(field);
    if (into.empty()) return;
    if (const bytes_view shown = show(where, into.size()); !shown.empty())
      std::memcpy(into.data(), shown.data(), into.size());
    else
      session_->read(static_cast<object_id>(shard), where.begin, into);
  }
  [[nodiscard]] bytes_view bytes(std::size_t field, std::uint64_t size) {
    const ffcv_place& where = place(field);
    if (size == 0) return {};
    if (const bytes_view shown = show(where, size); !shown.empty()) return shown;
    part& one = parts_[field];
    buffer& room = rooms_[field];
    if (!one.read) {
      room.resize_for_overwrite(to_size(size));
      session_->read(static_cast<object_id>(shard), where.begin, room.span());
      one.read = true;
    }
    return room.view();
  }
  void check_codec(std::size_t field, std::string_view codec) {
    if (checked_.size() <= field) checked_.resize(field + 1);
    if (checked_[field].data() == codec.data() && checked_[field].size() == codec.size()) return;
    check_ffcv_codec(file->fields[field], codec);
    checked_[field] = codec;
  }

 private:
  struct part {
    ffcv_place place;
    bool found = false, read = false;
  };

  [[nodiscard]] bytes_view show(const ffcv_place& where, std::uint64_t size) {
    const auto object = static_cast<object_id>(shard);
    if constexpr (views) {
      return session_->view(object, where.begin, size);
    } else {
      if constexpr (mapped_session<Session>)
        if (session_->mapped(object)) return session_->view(object, where.begin, size);
      if (where.begin >= fetched_begin && where.begin - fetched_begin <= fetched_part.size() &&
          size <= fetched_part.size() - (where.begin - fetched_begin))
        return fetched_part.subspan(to_size(where.begin - fetched_begin), to_size(size));
      return {};
    }
  }

  Session* session_ = nullptr;
  std::vector<part> parts_;    // by field
  std::vector<buffer> rooms_;  // by field
  std::vector<std::string_view> checked_;
};

/// A value of a field. Valid during the call that delivers its sample.
template <class Worker>
class ffcv_value {
 public:
  using unfinished = void;
  /// Views of mapped files are valid as long as the run, so holding one needs no copy.
  static constexpr bool lasting = Worker::views;

  ffcv_value() = default;
  ffcv_value(Worker& worker, std::size_t field) noexcept : worker_(&worker), field_(field) {}

  [[nodiscard]] std::uint64_t size() const {
    if (!field().points()) return 8;
    const std::uint64_t stored = worker_->place(field_).size;
    // The writer ends a text of JSON with a NUL.
    return field().kind == ffcv_kind::json && stored != 0 ? stored - 1 : stored;
  }
  /// The offset of the bytes in the file.
  [[nodiscard]] std::uint64_t offset() const { return field().points() ? worker_->place(field_).begin : 0; }
  void read_into(mutable_bytes into) const {
    if (into.size() != size())
      throw error(errc::argument, {"a value of ", size(), " bytes was to be read into ", into.size()});
    if (!field().points())
      std::memcpy(into.data(), in_row(), into.size());
    else
      worker_->read(field_, into);
  }
  [[nodiscard]] bytes_view finish() const {
    if (!field().points()) return {in_row(), 8};
    return worker_->bytes(field_, size());
  }
  /// The field's type: "float64", "int64", "image", "bytes", "json", "ndarray:float32:2,3".
  [[nodiscard]] std::string_view encoding() const noexcept { return field().encoding; }
  /// Of an image.
  [[nodiscard]] const ffcv_place& image() const { return worker_->place(field_); }
  /// Throws `errc::format` if a codec of this name cannot read the field.
  void check_codec(std::string_view codec) const { worker_->check_codec(field_, codec); }

 private:
  [[nodiscard]] const ffcv_field& field() const noexcept { return worker_->file->fields[field_]; }
  [[nodiscard]] const std::byte* in_row() const noexcept {
    return worker_->file->row(worker_->sample) + field().offset;
  }

  Worker* worker_ = nullptr;
  std::size_t field_ = 0;
};

/// An open sample of a file of FFCV: a member for each field.
template <class Worker>
class ffcv_sample {
 public:
  using is_open_sample = void;
  using blob_type = ffcv_value<Worker>;

  explicit ffcv_sample(Worker& worker) noexcept : worker_(&worker) {}

  [[nodiscard]] std::string_view key() const {
    return worker_->key = worker_->files->key_of(worker_->shard, worker_->sample);
  }
  [[nodiscard]] std::string_view url() const { return worker_->files->path(worker_->shard); }
  [[nodiscard]] std::size_t size() const noexcept { return worker_->file->fields.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept { return worker_->file->fields[i].name; }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept { return {*worker_, i}; }

 private:
  Worker* worker_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
