// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/file.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE file::state::state(shared<const shared_names> given, const file_options& options)
    : names(std::move(given)),
      access(options.access),
      open_files(names->names, options.descriptors),
      choices(names->names.size()),
      page(mapping::page()) {}
PENSTOCK_INLINE file::state::~state() {
  for (std::size_t i = 0; i < names->names.size(); ++i)
    delete choices[i].mapped.load(std::memory_order_relaxed);
}

PENSTOCK_INLINE void file::session::throw_not_mapped(object_id id) const {
  throw error(errc::argument, {"object ", id, " is not shown in place; read it"});
}

PENSTOCK_INLINE object_version file::session::version(object_id id) const {
  const auto opened = state_->open_files.use(id);
  return detail::files::version_of(opened.get(), path(id));
}

PENSTOCK_INLINE void file::session::read_from_file(object_id id, std::uint64_t offset,
                                                   mutable_bytes into) const {
  const auto opened = state_->open_files.use(id);
  check_offset(id, offset, into.size());
  if (state_->access != file_access::read) {
    think_again(id, opened.get());
    if (mapped(id)) return read(id, offset, into);
  }
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(opened.get(), into.data() + done, std::min(into.size() - done, max_read_bytes),
                static_cast<off_t>(offset + done));
    done += advance(id, got, offset, into.size());
  }
}

PENSTOCK_INLINE bool file::session::resident(object_id id) const {
  if (state_->access == file_access::read || mapped(id)) return mapped(id);
  think_again(id, state_->open_files.use(id).get());
  return mapped(id);
}

PENSTOCK_INLINE void file::session::think_again(object_id id, int opened) const {
  if (state_->access == file_access::map) return map(id, opened);
  choice& one = state_->choices[id];
  const std::uint32_t reads = one.reads.load(std::memory_order_relaxed) + 1;
  one.reads.store(reads, std::memory_order_relaxed);
  std::uint32_t look = one.next_look.load(std::memory_order_relaxed);
  if (reads < look) return;
  if (!one.next_look.compare_exchange_strong(look, look > (1u << 30) ? ~0u : 2 * look)) return;
  const std::uint64_t bytes = detail::files::version_of(opened, path(id)).size;
  if (bytes < smallest || sizeof(void*) < 8 ||
      state_->mappings.load(std::memory_order_relaxed) >= max_mappings ||
      !detail::files::is_in_memory(opened, bytes, look))
    return;
  try {
    map(id, opened);
  } catch (const error&) {  // a file that cannot be mapped can still be read
    one.next_look.store(~0u, std::memory_order_relaxed);
    state_->mappings.store(max_mappings, std::memory_order_relaxed);  // and others would not be, either
  }
}

PENSTOCK_INLINE void file::session::map(object_id id, int opened) const {
  const object_version now = detail::files::version_of(opened, path(id));
  if (now.size == 0) return;
  auto fresh = std::make_unique<mapping>(opened, now, path(id), true);
  const mapping* expected = nullptr;
  // Two threads may map one file at once; the slower one discards its mapping.
  if (!state_->choices[id].mapped.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
    return;
  (void)fresh.release();
  state_->mappings.fetch_add(1, std::memory_order_relaxed);
}

PENSTOCK_INLINE void file::session::check_end(const mapping& there, object_id id) const {
  there.check_lost(path(id));
  const auto opened = state_->open_files.use(id);
  if (detail::files::version_of(opened.get(), path(id)).size < there.size())
    detail::files::throw_changed_while_mapped(path(id), there.size() - there.size() % state_->page);
}

PENSTOCK_INLINE void file::session::will_need(object_id id, std::uint64_t offset,
                                              std::uint64_t size) const noexcept {
  try {
    if (const mapping* const there = mapping_of(id)) return there->will_need(offset, size);
    const auto opened = state_->open_files.use(id);
    ::posix_fadvise(opened.get(), static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
  } catch (...) {  // the read itself reports the error
  }
}

PENSTOCK_INLINE void file::session::check_offset(object_id id, std::uint64_t offset,
                                                 std::uint64_t size) const {
  constexpr auto furthest = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  detail::files::check_range(offset, size, furthest, path(id));
}

PENSTOCK_INLINE std::size_t file::session::advance(object_id id, std::ptrdiff_t got, std::uint64_t offset,
                                                   std::size_t wanted) const {
  if (got > 0) return static_cast<std::size_t>(got);
  if (got < 0 && errno == EINTR) return 0;
  if (got < 0) throw detail::files::failure("read", path(id), errno).at_offset(offset);
  detail::files::check_range(offset, wanted, size(id), path(id));
  throw error(errc::io, "the file was cut off while it was read").in_file(path(id)).at_offset(offset);
}

PENSTOCK_INLINE file::file(std::string_view pattern, file_options options)
    : names_(new shared_names{file_names(pattern), std::string(pattern)}), options_(options) {}
PENSTOCK_INLINE file::file(std::vector<std::string> paths, file_options options)
    : names_(new shared_names{detail::files::listed_names(std::move(paths)), {}}), options_(options) {}
PENSTOCK_INLINE file::file(std::initializer_list<const char*> paths, file_options options)
    : file(std::vector<std::string>(paths.begin(), paths.end()), options) {}

PENSTOCK_INLINE file::session file::connect() const {
  return session(std::make_shared<state>(names_, options_));
}
PENSTOCK_INLINE std::string file::describe() const {
  const char* const how = options_.access == file_access::read  ? ", read"
                          : options_.access == file_access::map ? ", mapped"
                                                                : "";
  return detail::text(
      {"file(", (names_->pattern.empty() ? std::to_string(names().size()) + " paths" : names_->pattern), how,
       ")"});
}

PENSTOCK_INLINE std::span<const std::string> file::names() const noexcept { return names_->names; }

}  // namespace penstock::inline v0_1
