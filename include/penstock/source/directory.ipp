// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/directory.hpp>

#include <penstock/core/to_size.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/storage/file_names.hpp>

#include <fcntl.h>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void folder_blob::read_into(mutable_bytes into) const {
  if (into.size() != size_)
    throw error(errc::argument,
                {"a file of ", size_, " bytes cannot be read into a buffer of size ", into.size()});
  const regular_file opened(worker_->path);
  if (opened.size() != size_)
    throw error(errc::io, {"the file had ", size_, " bytes when the dataset was opened and has ",
                           opened.size(), " now; open the dataset again"})
        .in_file(worker_->path);
  opened.read(into);
}

PENSTOCK_INLINE bytes_view folder_blob::finish() const {
  if (!worker_->loaded) {
    worker_->scratch.resize_for_overwrite(static_cast<std::size_t>(size_));
    read_into(worker_->scratch.span());
    worker_->loaded = true;
  }
  return worker_->scratch.view();
}

}  // namespace detail

PENSTOCK_INLINE std::string directory::reader::key(std::uint64_t index) const {
  return std::string(files_->path(detail::to_size(checked(index))));
}

PENSTOCK_INLINE void directory::reader::will_need(std::uint64_t index) const noexcept {
  try {
    std::string path;
    name(detail::to_size(checked(index)), path);
    const detail::regular_file opened(path);
    ::posix_fadvise(opened.number(), 0, 0, POSIX_FADV_WILLNEED);
  } catch (...) {  // the read itself will report the error
  }
}

PENSTOCK_INLINE std::uint64_t directory::reader::checked(std::uint64_t index) const {
  if (index >= files_->size())
    throw error(errc::argument, {"there is no sample ", index, ": the dataset has ", files_->size()});
  return index;
}

PENSTOCK_INLINE directory::directory(std::string path, directory_options options)
    : files_(new const detail::folder_files(
          detail::files_below(detail::files::local_path(path), std::move(options.extensions)))) {}

PENSTOCK_INLINE directory::directory(std::string path, const named_split& which, directory_options options)
    : files_(new const detail::folder_files(
          detail::files_below(std::move(path), std::move(options.extensions), &which))) {}

PENSTOCK_INLINE std::string directory::describe() const {
  return detail::text({"directory(", files_->root, "): ", size(), " files, ", files_->classes.size(),
                       " classes, ", files_->bytes, " bytes"});
}

}  // namespace penstock::inline v0_1
