// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/file_writer.hpp>

#include <penstock/core/error.hpp>

#include <string>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void file_writer::open(std::string_view path) {
  abort();
  file_.emplace(std::string(path));
}

PENSTOCK_INLINE void file_writer::write(bytes_view bytes) {
  opened();
  try {
    file_->write(bytes);
  } catch (...) {
    abort();
    throw;
  }
}

PENSTOCK_INLINE object_version file_writer::finish() {
  opened();
  try {
    const object_version made = file_->commit();
    abort();
    return made;
  } catch (...) {
    abort();
    throw;
  }
}

PENSTOCK_INLINE void file_writer::opened() const {
  if (!file_)
    throw error(errc::state,
                "no file is open in this file_writer: call open(path) first, also after an error");
}

}  // namespace penstock::inline v0_1
