// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/mapped_file.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE mapped_file::state::state(file given, mapped_file_options chosen)
    : files(std::move(given)), names(files.names()), options(chosen), mapped(names.size()) {}
PENSTOCK_INLINE mapped_file::state::~state() {
  for (std::size_t i = 0; i < names.size(); ++i) delete mapped[i].load(std::memory_order_relaxed);
}

PENSTOCK_INLINE void mapped_file::session::will_need(object_id id, std::uint64_t offset,
                                                     std::uint64_t size) const noexcept {
  try {
    get(id).will_need(offset, size);
  } catch (...) {  // the read itself reports the error
  }
}

[[gnu::noinline]] PENSTOCK_INLINE const mapped_file::mapping& mapped_file::session::map(object_id id) const {
  if (id >= state_->names.size()) throw error(errc::argument, {"there is no object ", id});
  const detail::files::descriptor opened(detail::files::open_quietly(path(id)));
  if (opened.get() < 0) throw detail::files::failure("open", path(id), errno);
  auto fresh = std::make_unique<mapping>(opened.get(), detail::files::version_of(opened.get(), path(id)),
                                         path(id), state_->options.guarded);
  if (state_->options.access != access_pattern::normal)
    fresh->advise(state_->options.access == access_pattern::random ? MADV_RANDOM : MADV_SEQUENTIAL);
  const mapping* expected = nullptr;
  if (!state_->mapped[id].compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
    return *expected;
  return *fresh.release();
}

[[gnu::noinline]] PENSTOCK_INLINE void mapped_file::session::check(const mapping& found, std::uint64_t offset,
                                                                   std::uint64_t size,
                                                                   const std::string& path) {
  constexpr int populate_read = 22;  // MADV_POPULATE_READ, which older headers lack
  if (size == 0) return;
  const std::uint64_t begin = offset / mapping::page() * mapping::page();
  while (::madvise(const_cast<std::byte*>(found.data()) + begin, detail::to_size(offset - begin + size),
                   populate_read) != 0) {
    if (errno == EINTR) continue;
    if (errno == EFAULT) detail::files::throw_changed_while_mapped(path, offset);
    if (errno == EINVAL) {
      throw error(errc::argument, "mapped_file_options::checked needs Linux 5.14; use file").in_file(path);
    }
    throw detail::files::failure("read", path, errno).at_offset(offset);
  }
  check_version(found, path, offset);
}
PENSTOCK_INLINE void mapped_file::session::check_version(const mapping& found, const std::string& path,
                                                         std::uint64_t offset) {
  struct stat now {};
  if (::stat(path.c_str(), &now) == 0 && detail::files::version_in(now) != found.version())
    detail::files::throw_changed_while_mapped(path, offset);
}
PENSTOCK_INLINE mapped_file::mapped_file(std::string_view pattern, mapped_file_options options)
    : files_(pattern), options_(options) {}
PENSTOCK_INLINE mapped_file::mapped_file(std::vector<std::string> paths, mapped_file_options options)
    : files_(std::move(paths)), options_(options) {}
PENSTOCK_INLINE mapped_file::mapped_file(std::initializer_list<const char*> paths,
                                         mapped_file_options options)
    : files_(paths), options_(options) {}
PENSTOCK_INLINE std::string mapped_file::describe() const { return "mapped_" + files_.describe(); }

}  // namespace penstock::inline v0_1
