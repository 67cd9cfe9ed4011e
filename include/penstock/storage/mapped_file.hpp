// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/paths.hpp>
#include <penstock/storage/sigbus_guard.hpp>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// What the kernel is told about the order in which a mapping will be read.
enum class access_pattern { normal, in_order, random };

/// Choices of `mapped_file`.
struct mapped_file_options {
  access_pattern access = access_pattern::normal;
  /// Each view is brought into memory and its file looked at before it is given: two system calls, of about a
  /// microsecond, that make a file which has shrunk or changed errc::io. Needs Linux 5.14.
  bool checked = false;
  /// SIGBUS from a file that has shrunk becomes errc::io: see `sigbus_guard`, whose handler is put into the
  /// process at the first mapping. One load for each view and each `confirm`; with `checked` a third system
  /// call in `confirm`, and nothing is left that is not noticed. Without it a file that shrinks ends the
  /// process.
  bool guarded = true;
};

/// Storage of local files, mapped read-only at their first use: one path, a pattern with braces, or a list of
/// paths.
///
/// Samples are views into the mappings and cost no copy; the views live as long as the session. The mappings
/// are not bounded in number: Linux allows 65,530 in a process by default. A file must not shrink while it is
/// mapped: the system sends SIGBUS when the lost part is touched, and ends the process where nobody takes it.
/// So the first mapping puts a handler into the process, and the file is errc::io; `{.guarded = false}`
/// leaves the process's signals alone. The guard sees whole pages; with `checked` as well nothing is left
/// that is not noticed. `file` leaves nothing either, and takes no handler.
///
/// Views of a guarded file are good when `confirm` says so after their use; sources do that for each sample.
/// Errors and threads as for `file`; the first use of a file maps it, later ones take no lock.
template <class = void>
class basic_mapped_file {
  struct shared_names {
    std::vector<std::string> names;
    std::string pattern;
  };
  struct mapping {
    const std::byte* data = nullptr;
    object_signature signature;
    sigbus_guard guard;

    mapping() = default;
    mapping(const mapping&) = delete;
    mapping& operator=(const mapping&) = delete;
    ~mapping() {
      guard = sigbus_guard();  // before the addresses may be somebody else's
      if (data != nullptr) ::munmap(const_cast<std::byte*>(data), static_cast<std::size_t>(signature.size));
    }
  };
  struct state {
    state(std::shared_ptr<const shared_names> given, mapped_file_options chosen)
        : names(std::move(given)),
          options(chosen),
          mapped(std::make_unique<std::atomic<const mapping*>[]>(names->names.size())) {}
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state() {
      for (std::size_t i = 0; i < names->names.size(); ++i) delete mapped[i].load(std::memory_order_relaxed);
    }
    std::shared_ptr<const shared_names> names;
    mapped_file_options options;
    std::unique_ptr<std::atomic<const mapping*>[]> mapped;
  };

 public:
  static constexpr bool names_are_paths = true;

  /// What a run reads through; see `storage_session` and `viewing_session`.
  class session {
   public:
    static constexpr bool views = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return get(id).signature.size; }
    [[nodiscard]] object_signature signature(object_id id) const { return get(id).signature; }

    [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
      const mapping& found = get(id);
      detail::files::check_range(offset, size, found.signature.size, state_->names->names[id]);
      check_lost(found, id);
      if (state_->options.checked) check(found, offset, size, state_->names->names[id]);
      return {found.data + offset, static_cast<std::size_t>(size)};
    }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const bytes_view found = view(id, offset, into.size());
      if (!found.empty()) std::memcpy(into.data(), found.data(), found.size());
      confirm(id);
    }
    /// Throws errc::io where bytes that were seen through views of this object may not have been the file's.
    void confirm(object_id id) const {
      if (!state_->options.guarded || id >= state_->names->names.size()) return;
      const mapping* known = state_->mapped[id].load(std::memory_order_acquire);
      if (known == nullptr) return;
      check_lost(*known, id);
      if (state_->options.checked) check_signature(*known, state_->names->names[id], 0);
    }
    template <class Done>
    void read_many(std::span<const read_request> requests, Done&& done) const {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        std::exception_ptr failed;
        try {
          read(requests[i].object, requests[i].offset, requests[i].into);
        } catch (...) {
          failed = std::current_exception();
        }
        done(i, failed);
      }
    }
    void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept {
      try {
        const mapping& found = get(id);
        if (offset >= found.signature.size) return;
        const std::uint64_t end = size > found.signature.size - offset ? found.signature.size : offset + size;
        const std::uint64_t begin = offset - offset % page_size();
        ::madvise(const_cast<std::byte*>(found.data) + begin, static_cast<std::size_t>(end - begin),
                  MADV_WILLNEED);
      } catch (...) {  // the read itself will say what is wrong
      }
    }

   private:
    friend basic_mapped_file;
    explicit session(std::shared_ptr<state> made) : state_(std::move(made)) {}

    static std::uint64_t page_size() noexcept {
      static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
      return size;
    }

    // The size alone would do where a page is lost; bytes lost within the last page read as zeros.
    static void check(const mapping& found, std::uint64_t offset, std::uint64_t size,
                      const std::string& path) {
      constexpr int populate_read = 22;  // MADV_POPULATE_READ, which older headers lack
      if (size == 0) return;
      const std::uint64_t begin = offset / page_size() * page_size();
      while (::madvise(const_cast<std::byte*>(found.data) + begin,
                       static_cast<std::size_t>(offset - begin + size), populate_read) != 0) {
        if (errno == EINTR) continue;
        if (errno == EFAULT) throw changed(path, offset);
        if (errno == EINVAL) {
          throw error(errc::argument, "mapped_file_options::checked needs Linux 5.14; use file")
              .in_file(path);
        }
        throw detail::files::failure("read", path, errno).at_offset(offset);
      }
      check_signature(found, path, offset);
    }
    static void check_signature(const mapping& found, const std::string& path, std::uint64_t offset) {
      struct stat now {};
      if (::stat(path.c_str(), &now) == 0 && detail::files::signature_in(now) != found.signature)
        throw changed(path, offset);
    }
    void check_lost(const mapping& found, object_id id) const {
      if (const auto offset = found.guard.lost()) [[unlikely]] {
        throw changed(state_->names->names[id], *offset);
      }
    }
    static error changed(const std::string& path, std::uint64_t offset) {
      return error(errc::io, "the file was cut off or changed while it was mapped; open the dataset again")
          .in_file(path)
          .at_offset(offset);
    }

    [[nodiscard]] const mapping& get(object_id id) const {
      if (id >= state_->names->names.size()) throw error(errc::argument, {"there is no object ", id});
      const mapping* known = state_->mapped[id].load(std::memory_order_acquire);
      return known != nullptr ? *known : map(id);
    }

    // Two threads may map the same file at once; the slower one takes its mapping back.
    [[nodiscard]] const mapping& map(object_id id) const {
      const std::string& path = state_->names->names[id];
      const detail::files::descriptor opened(detail::files::open_quietly(path));
      if (opened.get() < 0) throw detail::files::failure("open", path, errno);
      auto fresh = std::make_unique<mapping>();
      fresh->signature = detail::files::signature_of(opened.get(), path);
      if (fresh->signature.size != 0) {
        const auto length = static_cast<std::size_t>(fresh->signature.size);
        void* where = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, opened.get(), 0);
        if (where == MAP_FAILED) throw detail::files::failure("map the file", path, errno);
        fresh->data = static_cast<const std::byte*>(where);
        if (state_->options.guarded) fresh->guard = sigbus_guard({fresh->data, length});
        if (state_->options.access != access_pattern::normal) {
          ::madvise(where, length,
                    state_->options.access == access_pattern::random ? MADV_RANDOM : MADV_SEQUENTIAL);
        }
      }
      const mapping* expected = nullptr;
      if (!state_->mapped[id].compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
        return *expected;
      return *fresh.release();
    }

    std::shared_ptr<state> state_;
  };

  explicit basic_mapped_file(std::string_view pattern, mapped_file_options options = {})
      : names_(new shared_names{expand_braces(pattern), std::string(pattern)}), options_(options) {}
  explicit basic_mapped_file(std::vector<std::string> paths, mapped_file_options options = {})
      : names_(new shared_names{std::move(paths), {}}), options_(options) {}
  basic_mapped_file(std::initializer_list<const char*> paths, mapped_file_options options = {})
      : basic_mapped_file(std::vector<std::string>(paths.begin(), paths.end()), options) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return names_->names; }
  [[nodiscard]] session connect() const {
    return session(std::shared_ptr<state>(new state(names_, options_)));
  }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"mapped_file(",
         (names_->pattern.empty() ? std::to_string(names().size()) + " paths" : names_->pattern), ")"});
  }

 private:
  std::shared_ptr<const shared_names> names_;
  mapped_file_options options_;
};
/// The form to use: see `basic_mapped_file`.
using mapped_file = basic_mapped_file<>;

}  // namespace penstock::inline v0_1
