// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/prefetch_lines.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/components.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file_names.hpp>
#include <penstock/storage/local/descriptor_cache.hpp>
#include <penstock/storage/local/mapping.hpp>
#include <penstock/storage/local/paths.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {
class uring_reads;
}

/// How `file` reads.
enum class file_access : std::uint8_t {
  automatic,  ///< files in memory through a mapping, others with pread
  read,       ///< with pread
  map,        ///< through mappings
};

/// Options of `file`. None of them changes the bytes.
struct file_options {
  /// The number of descriptors a session keeps open; 0: the smaller of 512 and half of what `ulimit -n`
  /// allows.
  std::size_t descriptors = 0;
  file_access access = file_access::automatic;
};

/// Storage of local files: one path, a pattern, or a list of paths.
///
///     const file shards("train-{0000..0127}.tar");
///     const file two({"a.tar", "b.tar"});
///     const file on_a_slow_disk("train-{0000..0127}.tar", {.access = file_access::read});
///
/// A pattern is expanded by `file_names`; the names of a list are taken literally. Nothing is opened
/// before `connect`.
/// A session opens a file at its first use and keeps a bounded number of descriptors, so 10,000 shards work
/// under `ulimit -n 1024`. A read is one system call and costs about 0.4 us plus the copy out of the page
/// cache.
/// A file that is in memory is read faster through a mapping; one that must come from the disk is better read
/// with pread, which loads less data that was not requested. So after 8, 16, 32 ... reads of a file, a
/// session checks 16 of its pages, and maps the file once at least 15 of them are in memory; from then on a
/// read is only the copy, and a look at the file's last page, which tells whether the file was cut off; in
/// that page the size is asked for. The choice is final: a file that leaves memory later comes back page by
/// page. Set `file_options::access` to choose by hand; `session::mapped` tells which choice was made. Files
/// below 1 MiB, files on file systems that cannot tell without waiting (mostly network file systems), and all
/// files beyond the first 16,384 in a session are read with pread.
/// The first mapping installs a handler for SIGBUS in the process, which passes on every fault that is not
/// its own: see `sigbus_guard`. With `file_access::read`, signals are left alone.
/// Errors: errc::io, with the file, the system's reason and what to do, for a file that cannot be opened or
/// read, or was changed or truncated while in use; errc::format for a range beyond the end.
/// Threads: any number of threads may use a session; a read of an open file takes no lock.
class file {
  using mapping = detail::files::mapping;
  struct shared_names {
    std::vector<std::string> names;
    std::string pattern;
  };
  /// How one file is read now, and when to reconsider.
  struct choice {
    std::atomic<const mapping*> mapped{nullptr};
    std::atomic<std::uint32_t> reads{0};  // with pread; simultaneous reads may count as one
    std::atomic<std::uint32_t> next_look{8};
  };
  struct state {
    state(shared<const shared_names> given, const file_options& options);
    ~state();

    shared<const shared_names> names;
    file_access access;
    detail::files::descriptor_cache open_files;
    detail::fixed_array<choice> choices;
    std::atomic<std::size_t> mappings{0};
    std::uint64_t page;
  };

 public:
  static constexpr bool names_are_paths = true;
  static constexpr std::string_view schemes[] = {"file"};  ///< see `any_of`

  /// What a run reads through; see `mapped_session`.
  class session {
   public:
    static constexpr session_traits traits = {.mapped = mapped_objects::some, .prefetches = true};

    [[nodiscard]] std::uint64_t size(object_id id) const {
      const mapping* const there = mapping_of(id);
      return there != nullptr ? there->size() : version(id).size;
    }
    /// The file's current version, even if it is mapped.
    [[nodiscard]] object_version version(object_id id) const;

    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      read(id, offset, into,
           [](mutable_bytes to, const std::byte* bytes) { std::memcpy(to.data(), bytes, to.size()); });
    }
    /// As above; what is mapped is copied by `copy(into, from)`.
    template <class Copy>
    void read(object_id id, std::uint64_t offset, mutable_bytes into, Copy&& copy) const {
      if (const mapping* const there = mapping_of(id)) [[likely]] {
        detail::files::check_range(offset, into.size(), there->size(), path(id));
        if (into.empty()) return;
        copy(into, there->data() + offset);
        check_whole(*there, id, offset + into.size());
      } else {
        read_from_file(id, offset, into);
      }
    }
    /// Whether an object is mapped by now; once true, it stays true.
    [[nodiscard]] bool mapped(object_id id) const noexcept { return mapping_of(id) != nullptr; }
    /// A range in place; the object must be mapped.
    [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
      const mapping* const there = mapping_of(id);
      if (there == nullptr) [[unlikely]]
        throw_not_mapped(id);
      detail::files::check_range(offset, size, there->size(), path(id));
      check_whole(*there, id, offset + size);
      return {there->data() + offset, detail::to_size(size)};
    }
    /// Throws errc::io if bytes seen through views of this object may not have been the file's, because the
    /// file was truncated since. A truncation within its last page is not noticed here, but by a read in that
    /// page.
    void confirm(object_id id) const {
      if (const mapping* const there = mapping_of(id)) touch_last_page(*there, id);
    }

    /// Prefetches a range that will be read soon into the processor's cache, if the file is mapped by now.
    [[gnu::always_inline]] void prefetch(object_id id, std::uint64_t offset,
                                         std::uint64_t size) const noexcept {
      const mapping* const there = mapping_of(id);
      if (there == nullptr || offset >= there->size()) return;
      detail::prefetch_lines(there->data() + offset, size);
      detail::prefetch_lines(there->data() + last_page(*there), 1);  // which the read checks
    }
    void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept;
    /// Whether a file is in memory and mapped; checks now and then, as `read` does.
    [[nodiscard]] bool resident(object_id id) const;

    /// The number of descriptors open now, and its limit.
    [[nodiscard]] std::size_t descriptors() const { return state_->open_files.open_now(); }
    [[nodiscard]] std::size_t descriptor_limit() const noexcept { return state_->open_files.limit(); }

   private:
    friend file;
    friend class detail::uring_reads;  // reads the same files without waiting
    static constexpr std::size_t max_read_bytes = std::size_t{1} << 30;
    static constexpr std::size_t max_mappings = 16'384;  // Linux allows 65,530 in a process by default
    static constexpr std::uint64_t smallest = 1_MiB;

    explicit session(shared<state> made) : state_(std::move(made)) {}

    [[nodiscard]] const std::string& path(object_id id) const { return state_->names->names[id]; }
    [[noreturn, gnu::cold]] void throw_not_mapped(object_id id) const;
    [[nodiscard, gnu::always_inline]] const mapping* mapping_of(object_id id) const noexcept {
      return id < state_->names->names.size() ? state_->choices[id].mapped.load(std::memory_order_acquire)
                                              : nullptr;
    }

    /// Call after copying bytes up to `end`: throws if they may not have been the file's. Bytes lost within a
    /// page read as zeros and raise no signal; touching the file's last page after them does.
    void check_whole(const mapping& there, object_id id, std::uint64_t end) const {
      if (end > last_page(there)) [[unlikely]]
        return check_end(there, id);
      touch_last_page(there, id);
    }
    [[nodiscard]] std::uint64_t last_page(const mapping& there) const noexcept {
      return (there.size() - 1) & ~(state_->page - 1);
    }
    void touch_last_page(const mapping& there, object_id id) const {
      detail::order_reads();
      (void)*static_cast<const volatile std::byte*>(there.data() + last_page(there));
      there.check_lost(path(id));
    }
    void check_end(const mapping& there, object_id id) const;
    void read_from_file(object_id id, std::uint64_t offset, mutable_bytes into) const;
    /// Counts a read with pread, and checks from time to time whether a mapping would be better.
    void think_again(object_id id, int opened) const;
    void map(object_id id, int opened) const;
    void check_offset(object_id id, std::uint64_t offset, std::uint64_t size) const;
    /// Bytes read by one system call; throws at the end of the file and for failures other than EINTR.
    std::size_t advance(object_id id, std::ptrdiff_t got, std::uint64_t offset, std::size_t wanted) const;

    shared<state> state_;
  };

  explicit file(std::string_view pattern, file_options options = {});
  explicit file(std::vector<std::string> paths, file_options options = {});
  file(std::initializer_list<const char*> paths, file_options options = {});

  [[nodiscard]] std::span<const std::string> names() const noexcept;
  [[nodiscard]] session connect() const;
  /// See `renaming_storage`.
  [[nodiscard]] file with_names(std::vector<std::string> names) const {
    return file(std::move(names), options_);
  }
  [[nodiscard]] std::string describe() const;

 private:
  shared<const shared_names> names_;
  file_options options_;
};

static_assert(storage<file>, "file is a storage");

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/file.ipp>
#endif
