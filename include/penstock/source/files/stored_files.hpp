// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/session_report.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

/// What sources of plain files share: the files of a run, and arrays in them that have not been read.
namespace penstock::inline v0_1 {
namespace detail {

/// The files of a run. At its first use, each file is checked for changes since the plan was made.
template <storage Storage>
class open_files {
 public:
  using session_type = typename Storage::session;

  open_files(const known_files& known, const Storage& where)
      : files_(&known), session_(where.connect()), seen_(known.versions.size()) {}

  /// Throws errc::io if a shard is not the one of the plan, if that knows its version. Takes no lock.
  void check(std::size_t shard) const {
    if (files_->versions.empty() || seen_[shard].load(std::memory_order_relaxed)) [[likely]]
      return;
    files_->compare(session_, shard);
    seen_[shard].store(true, std::memory_order_relaxed);
  }
  [[nodiscard]] session_type& session() const noexcept { return session_; }
  /// Call after a sample of that shard has been used, or using it failed; see `penstock::confirm`.
  void confirm(std::size_t shard) const { penstock::confirm(session_, files_->object(shard)); }
  /// That of the session.
  [[nodiscard]] session_report report() const { return report_of(session_); }
  void cancel_reads() const noexcept { end_reads(session_); }

 private:
  const known_files* files_;      // belongs to the plan, which the reader holds
  mutable session_type session_;  // a session may be used by many threads
  fixed_array<std::atomic<bool>> seen_;
};

/// The state of one worker for arrays in files.
template <class Session>
struct values_worker : fetch_link<Session> {
  buffer scratch;  // for values requested without a destination
};

/// A shape that is part of the type.
template <std::uint64_t... Lengths>
struct known_shape {
  static constexpr extents static_shape{Lengths...};
  [[nodiscard]] static constexpr const extents& shape() noexcept { return static_shape; }
};
/// A shape that is known at run time.
struct given_shape {
  extents given;
  [[nodiscard]] const extents& shape() const noexcept { return given; }
};

/// An array stored contiguously in a file, in this machine's byte order or `swapped`: an array expression,
/// not read yet. Valid during the call that delivers it.
template <class T, class Shape, class Session>
class stored_array : public Shape {
 public:
  using unfinished = void;
  using value_type = T;

  stored_array(Shape shape, Session& session, object_id object, std::uint64_t offset,
               values_worker<Session>& worker, bool swapped) noexcept
      : Shape(shape),
        session_(&session),
        worker_(&worker),
        offset_(offset),
        object_(object),
        swapped_(sizeof(T) > 1 && swapped) {}

  /// Reads the values into their destination.
  void write_to(const destination<T>& into) const {
    if (into.dense())
      write_dense(into.data());
    else
      into.copy_from(finish());
  }
  /// A view of the values: in place if the session has views and the values are aligned and in this
  /// machine's byte order, otherwise of a copy in the worker's scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    if constexpr (viewing_session<Session> && !std::same_as<T, bool>) {
      const std::byte* const data = session_->view(object_, offset_, bytes()).data();
      if (!swapped_ && reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0)
        return {reinterpret_cast<const T*>(data), this->shape()};
    }
    worker_->scratch.resize_for_overwrite(bytes());
    T* const values = reinterpret_cast<T*>(worker_->scratch.data());
    write_dense(values);
    return {values, this->shape()};
  }
  /// The offset of the values in their file.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  void write_dense(T* into) const {
    auto* const to = reinterpret_cast<std::byte*>(into);
    if (const bytes_view there = worker_->find(*session_, object_, offset_, bytes()); !there.empty())
      std::memcpy(to, there.data(), there.size());
    else
      session_->read(object_, offset_, {to, bytes()});
    if (swapped_)
      for (std::size_t i = 0; i < bytes(); i += sizeof(T)) std::reverse(to + i, to + i + sizeof(T));
    if constexpr (std::same_as<T, bool>) {
      // a bool with a byte other than 0 and 1 is undefined behaviour, and files from elsewhere may hold
      // one
      std::transform(to, to + bytes(), to, [](std::byte b) { return std::byte{b != std::byte{0}}; });
    }
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(this->shape().elements()) * sizeof(T);
  }

  Session* session_;
  values_worker<Session>* worker_;
  std::uint64_t offset_;
  object_id object_;
  bool swapped_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
