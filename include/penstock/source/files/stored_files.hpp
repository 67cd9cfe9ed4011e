// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/element.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>

/// What sources of plain files share: reading them for a plan, and arrays in them that have not been read.
namespace penstock::inline v0_1 {
namespace detail {

/// What was found in a file when a plan was made; `content` is a hash for the fingerprint, and `ends` that of
/// `hash_of_file`, if it is known.
struct file_facts {
  std::uint64_t samples = 0, payload = 0, content = 0, ends = 0;
};

/// Reads all objects of a storage, several at a time, in up to `threads` threads (0: one per processor, or 32
/// for distant ones): `read(i, version)` returns what is in one. Throws what it throws, with the object's
/// name, and errc::argument if there is none.
template <class Read>
void read_each(known_files& files, storage_facts where, session_view session, Read&& read,
               std::size_t threads = 0) {
  const std::span<const std::string> names = where.names;
  if (names.empty()) throw error(errc::argument, "a dataset needs at least one file");
  files.versions.resize(names.size());
  files.ends.resize(names.size());
  std::vector<manifest::shard> entries(names.size());
  constexpr std::size_t distant = 32;
  for_each_in_parallel(names.size(), threads != 0 || where.local ? threads : distant, [&](std::size_t i) {
    const auto object = static_cast<object_id>(i);
    reading_object(session, object, names[i], [&] {
      const object_version version = files.versions[i] = session.version(object);
      const file_facts found = read(i, version);
      files.ends[i] = found.ends != 0 ? found.ends : ends_of(session, object, version.size);
      entries[i] = {names[i], version.size, found.samples, found.payload, found.content, version.stamp};
    });
  });
  files.shards = manifest(std::move(entries));
}

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
    write_or_copy(
        into, [this](T* to) { write_dense(to); }, [this] { return finish(); });
  }
  /// A view of the values: in place if the session has views and the values are aligned and in this
  /// machine's byte order, otherwise of a copy in the worker's scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    if (const T* const there = in_place()) return {there, this->shape()};
    worker_->scratch.resize_for_overwrite(bytes());
    T* const values = reinterpret_cast<T*>(worker_->scratch.data());
    write_dense(values);
    return {values, this->shape()};
  }
  /// The values where they are, if `finish` would show them in place and there are any; otherwise null.
  [[nodiscard]] const T* in_place() const {
    if constexpr (all_mapped<Session>() && !std::same_as<T, bool>) {
      const std::byte* const data = session_->view(object_, offset_, bytes()).data();
      if (!swapped_ && reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0)
        return reinterpret_cast<const T*>(data);
    }
    return nullptr;
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
