// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// Writes local files, one after another, as an `object_writer`: for what goes around one, such as
/// `encrypting`.
///
///     file_writer out;
///     out.open("one.bin");
///     out.write(bytes_of("four"));
///     const std::uint64_t four = out.finish().size;
///
/// In: paths, in folders that exist. A file appears under its name at `finish`, whole and flushed to disk, in
/// the place of one that was there before; before that it has a temporary name beside it, and `abort`, an
/// error, the next `open` and the destructor remove it. Its permissions are 0666 without what the umask
/// takes.
/// Out: its size and time of modification, as a session of `file` gives them.
/// Errors: errc::io with the path, and then nothing is left of the file; errc::state for `write` and `finish`
/// without `open`.
/// Threads: one at a time. Cost: one copy of the bytes into a buffer of 1 MiB, or none for larger parts.
class file_writer {
 public:
  /// Begins a file; one that is unfinished is given up.
  void open(std::string_view path) {
    abort();
    file_.emplace(std::string(path));
  }
  /// Appends bytes.
  void write(bytes_view bytes) {
    or_abort([&] { file_->write(bytes); });
  }
  /// Makes the file appear.
  object_version finish() {
    const object_version made = or_abort([this] { return file_->commit(); });
    abort();
    return made;
  }
  /// Gives an unfinished file up.
  void abort() noexcept { file_.reset(); }

 private:
  template <class Work>
  auto or_abort(Work&& work) -> decltype(work()) {
    if (!file_)
      throw error(errc::state,
                  "no file is open in this file_writer: call open(path) first, also after an error");
    try {
      return work();
    } catch (...) {
      abort();
      throw;
    }
  }

  std::optional<detail::output_file> file_;
};

}  // namespace penstock::inline v0_1
