// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/prefetch_lines.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/local/mapping.hpp>
#include <penstock/storage/local/paths.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The order in which a mapping will be read, as a hint to the kernel.
enum class access_pattern { normal, in_order, random };

/// Options of `mapped_file`.
struct mapped_file_options {
  access_pattern access = access_pattern::normal;
  /// Loads each view into memory and checks its file before returning it: two system calls, of about a
  /// microsecond, that turn a file which has shrunk or changed into errc::io. Needs Linux 5.14.
  bool checked = false;
  /// Turns SIGBUS from a file that has shrunk into errc::io: see `sigbus_guard`, whose handler the first
  /// mapping installs in the process. Costs one load per view and per `confirm`; with `checked`, a third
  /// system call in `confirm`, and then every change is noticed. Without `guarded`, a file that shrinks ends
  /// the process.
  bool guarded = true;
};

/// Storage of local files, mapped read-only at first use: one path, a pattern of names, or a list of
/// paths.
///
/// Samples are views into the mappings and cost no copy; the views live as long as the session. The number of
/// mappings is not bounded: Linux allows 65,530 per process by default (vm.max_map_count), and a file beyond
/// that is errc::io that says so. A file must not shrink while it is mapped: touching the lost part raises
/// SIGBUS, which ends the process unless a handler takes it. So the first mapping installs a handler in the
/// process, and the file is errc::io; `{.guarded = false}` leaves the process's signals alone. The guard sees
/// whole pages; with `checked` as well, every change is noticed.
/// `file` with `file_access::read` notices every change too, and needs no handler.
///
/// Views of a guarded file are valid if `confirm` does not throw after their use; sources check that for each
/// sample. Errors and threads as for `file`; the first use of a file maps it, later ones take no lock.
class mapped_file {
  using mapping = detail::files::mapping;
  struct state {
    state(file given, mapped_file_options chosen);
    ~state();
    file files;
    std::span<const std::string> names;
    mapped_file_options options;
    detail::fixed_array<std::atomic<const mapping*>> mapped;
  };

 public:
  static constexpr bool names_are_paths = true;
  static constexpr std::string_view schemes[] = {"file"};  ///< see `any_of`

  /// What a run reads through; see `mapped_session`.
  class session {
   public:
    static constexpr session_traits traits = {.mapped = mapped_objects::all, .prefetches = true};

    [[nodiscard]] std::uint64_t size(object_id id) const { return get(id).size(); }
    [[nodiscard]] object_version version(object_id id) const { return get(id).version(); }

    [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
      const mapping& found = get(id);
      detail::files::check_range(offset, size, found.size(), path(id));
      found.check_lost(path(id));
      if (state_->options.checked) check(found, offset, size, path(id));
      return {found.data() + offset, detail::to_size(size)};
    }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const bytes_view found = view(id, offset, into.size());
      if (!found.empty()) std::memcpy(into.data(), found.data(), found.size());
      confirm(id);
    }
    /// Throws errc::io if bytes seen through views of this object may not have been the file's.
    void confirm(object_id id) const {
      if (!state_->options.guarded || id >= state_->names.size()) return;
      const mapping* const known = state_->mapped[id].load(std::memory_order_acquire);
      if (known == nullptr) return;
      known->check_lost(path(id));
      if (state_->options.checked) check_version(*known, path(id), 0);
    }
    /// Prefetches a range that will be read soon into the processor's cache, if the file is mapped by now.
    [[gnu::always_inline]] void prefetch(object_id id, std::uint64_t offset,
                                         std::uint64_t size) const noexcept {
      if (id >= state_->names.size()) return;
      const mapping* const known = state_->mapped[id].load(std::memory_order_acquire);
      if (known != nullptr && offset < known->size()) detail::prefetch_lines(known->data() + offset, size);
    }
    void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept;

   private:
    friend mapped_file;
    explicit session(std::shared_ptr<state> made) : state_(std::move(made)) {}

    [[nodiscard]] const std::string& path(object_id id) const { return state_->names[id]; }
    [[nodiscard]] const mapping& get(object_id id) const {
      if (id < state_->names.size()) [[likely]] {
        if (const mapping* known = state_->mapped[id].load(std::memory_order_acquire)) return *known;
      }
      return map(id);
    }
    /// Two threads may map one file at once; the slower one discards its mapping.
    [[nodiscard]] const mapping& map(object_id id) const;
    /// The size alone would catch a lost page, but bytes lost within the last page read as zeros.
    static void check(const mapping& found, std::uint64_t offset, std::uint64_t size,
                      const std::string& path);
    static void check_version(const mapping& found, const std::string& path, std::uint64_t offset);

    std::shared_ptr<state> state_;
  };

  explicit mapped_file(std::string_view pattern, mapped_file_options options = {});
  explicit mapped_file(std::vector<std::string> paths, mapped_file_options options = {});
  mapped_file(std::initializer_list<const char*> paths, mapped_file_options options = {});

  [[nodiscard]] std::span<const std::string> names() const noexcept { return files_.names(); }
  [[nodiscard]] session connect() const { return session(std::make_shared<state>(files_, options_)); }
  /// See `renaming_storage`.
  [[nodiscard]] mapped_file with_names(std::vector<std::string> names) const {
    return mapped_file(std::move(names), options_);
  }
  [[nodiscard]] std::string describe() const;

 private:
  file files_;
  mapped_file_options options_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/mapped_file.ipp>
#endif
