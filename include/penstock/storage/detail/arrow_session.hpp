// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<arrow/filesystem/filesystem.h>)
#error "penstock/storage/detail/arrow_session.hpp needs Arrow C++: link penstock::arrow"
#endif

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>
#include <penstock/storage/reads/single_flight.hpp>
#include <penstock/storage/storage_counters.hpp>

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// Reads files of a file system of Arrow, in the calling thread. Keeps some of them open.
class arrow_session {
  using opened = std::shared_ptr<arrow::io::RandomAccessFile>;
  /// What is known of a file; once it is, it holds for the session.
  struct facts {
    std::optional<object_version> version;
    opened file;
    std::list<object_id>::iterator place;  // if there is a file
  };

 public:
  arrow_session(std::shared_ptr<arrow::fs::FileSystem> where, std::span<const std::string> names,
                std::size_t max_open)
      : file_system_(std::move(where)), names_(names), max_open_(max_open), facts_(names.size()) {}
  arrow_session(const arrow_session&) = delete;
  arrow_session& operator=(const arrow_session&) = delete;

  [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
  [[nodiscard]] object_version version(object_id id) const {
    check(id);
    {
      const std::scoped_lock held(lock_);
      if (facts_[id].version) return *facts_[id].version;
    }
    (void)open(id);
    const std::scoped_lock held(lock_);
    return *facts_[id].version;
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    check(id);
    const opened file = open(id);
    const std::uint64_t all = size(id);
    if (offset > all || into.size() > all - offset)
      throw error(errc::format,
                  {"the range of ", into.size(), " bytes goes beyond the end of the object, which has ", all})
          .in_file(names_[id])
          .at_offset(offset);
    if (into.empty()) return;
    requests_.fetch_add(1, std::memory_order_relaxed);
    const auto got =
        file->ReadAt(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(into.size()), into.data());
    if (!got.ok()) throw_arrow(got.status(), names_[id], offset);
    if (*got != static_cast<std::int64_t>(into.size()))
      throw error(errc::io, {"the file ended after ", *got, " of ", into.size(),
                             " bytes, although it had more when it was opened"})
          .recurring()
          .in_file(names_[id])
          .at_offset(offset);
    bytes_.fetch_add(into.size(), std::memory_order_relaxed);
  }
  [[nodiscard]] storage_counters counters() const noexcept {
    return {.requests = requests_.load(std::memory_order_relaxed),
            .bytes = bytes_.load(std::memory_order_relaxed)};
  }

 private:
  void check(object_id id) const {
    if (id >= names_.size()) throw error(errc::argument, {"there is no object ", id});
  }
  [[nodiscard]] opened kept(object_id id) const {
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.file) recent_.splice(recent_.begin(), recent_, one.place);
    return one.file;
  }
  /// The file; one thread opens it, if several want to.
  [[nodiscard]] opened open(object_id id) const {
    opened found = kept(id);
    while (!found) {
      flight_.ask(id, [&] {
        found = kept(id);
        if (!found) found = open_anew(id);
      });
      if (!found) found = kept(id);  // another thread has opened it
    }
    return found;
  }
  [[nodiscard]] opened open_anew(object_id id) const {
    const std::string& path = names_[id];
    const auto info = file_system_->GetFileInfo(path);
    if (!info.ok()) throw_arrow(info.status(), path);
    if (info->type() != arrow::fs::FileType::File) {
      const bool missing = info->type() == arrow::fs::FileType::NotFound;
      throw error(errc::io, missing ? "there is no such file" : "it is a folder, not a file")
          .recurring()
          .in_file(path);
    }
    auto made = file_system_->OpenInputFile(*info);
    if (!made.ok()) throw_arrow(made.status(), path);
    const auto size = info->size() >= 0 ? arrow::Result<std::int64_t>(info->size()) : (*made)->GetSize();
    if (!size.ok()) throw_arrow(size.status(), path);
    const auto changed = info->mtime();
    const object_version now{
        static_cast<std::uint64_t>(*size),
        changed == arrow::fs::kNoTime ? 0 : static_cast<std::uint64_t>(changed.time_since_epoch().count())};
    opened oldest;  // is closed without the lock
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.version && *one.version != now)
      throw error(errc::io, "the object was replaced while it was read; start again with the new one")
          .recurring()
          .in_file(path);
    recent_.push_front(id);
    one.version = now;
    one.file = *std::move(made);
    one.place = recent_.begin();
    if (recent_.size() > max_open_) {
      oldest = std::exchange(facts_[recent_.back()].file, nullptr);
      recent_.pop_back();
    }
    return one.file;
  }

  std::shared_ptr<arrow::fs::FileSystem> file_system_;
  std::span<const std::string> names_;
  std::size_t max_open_;
  mutable single_flight flight_;
  mutable std::mutex lock_;
  mutable fixed_array<facts> facts_;
  mutable std::list<object_id> recent_;  // of the files that are open, the one used last first
  mutable std::atomic<std::uint64_t> requests_{0}, bytes_{0};
};

}  // namespace detail
}  // namespace penstock::inline v0_1
