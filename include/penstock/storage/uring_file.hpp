// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<liburing.h>)
#error "penstock/storage/uring_file.hpp needs liburing: link penstock::uring"
#endif

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/local/uring_reads.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `uring_file`. None of them changes the bytes.
struct uring_file_options {
  /// The maximum number of reads in the kernel at once; others wait. 0: without io_uring.
  std::size_t queue = 256;
  std::size_t descriptors = 0;                  ///< as in `file_options`
  file_access access = file_access::automatic;  ///< as in `file_options`, for blocking reads
};

/// A `file` whose sessions also read in the background, through io_uring: hundreds of reads are in the kernel
/// at once, and the disk sees them all.
///
///     const uring_file shards("train-{0000..0127}.tar");
///     const uring_file deeper({"a.tar", "b.tar"}, {.queue = 1024});
///
/// In: what `file` takes. `read` and everything else work as in `file`; `read_many` passes its reads to one
/// thread of the session, started by the first of them, which keeps up to `queue` reads in the kernel, or as
/// many as the session may keep descriptors if that is less. A read that returns too little is resumed from
/// where it ended.
/// `cancel`: waiting reads end at once, and reads in the kernel when the kernel drops them; a read that a
/// disk is working on runs to its end.
/// If the kernel has no io_uring, or does not let this process use it, `describe` says so, and eight threads
/// do the work of `read_many`. After the first reads, `session::uses_io_uring` tells which it is.
/// Errors: those of `file`, also in the background. errc::argument for a queue above 16,384.
/// Threads: any number of threads may use a session. A child after `fork` must neither use nor destroy one.
class uring_file {
 public:
  static constexpr bool names_are_paths = true;
  static constexpr std::string_view schemes[] = {"file"};  ///< see `any_of`

  /// What a run reads through; see `background_session` and `mapped_session`.
  class session : public file::session {
   public:
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      reads_->read_many(requests, listener);
    }
    void cancel() const noexcept { reads_->cancel(); }
    /// Whether the reads of `read_many` go through io_uring; false before the first.
    [[nodiscard]] bool uses_io_uring() const noexcept { return reads_->uses_ring(); }

   private:
    friend uring_file;
    session(const file::session& files, std::size_t queue)
        : file::session(files), reads_(std::make_unique<detail::uring_reads>(files, queue)) {}

    std::unique_ptr<detail::uring_reads> reads_;
  };

  explicit uring_file(std::string_view pattern, uring_file_options options = {})
      : uring_file(file(pattern, of_file(options)), options) {}
  explicit uring_file(std::vector<std::string> paths, uring_file_options options = {})
      : uring_file(file(std::move(paths), of_file(options)), options) {}
  uring_file(std::initializer_list<const char*> paths, uring_file_options options = {})
      : uring_file(file(paths, of_file(options)), options) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return files_.names(); }
  [[nodiscard]] session connect() const { return session(files_.connect(), queue_); }
  /// See `renaming_storage`.
  [[nodiscard]] uring_file with_names(std::vector<std::string> names) const {
    uring_file made = *this;
    made.files_ = files_.with_names(std::move(names));
    return made;
  }
  /// Asks the kernel whether there is io_uring.
  [[nodiscard]] std::string describe() const {
    std::string line = "uring_" + files_.describe();
    const int code = queue_ == 0 ? 0 : detail::uring_reads::why_none(queue_);
    if (queue_ != 0 && code == 0) return line;
    line.pop_back();
    detail::append(line, {", without io_uring"});
    if (code != 0) detail::append(line, {": ", std::generic_category().message(code)});
    return line + ")";
  }

 private:
  uring_file(file files, const uring_file_options& options)
      : files_(std::move(files)), queue_(options.queue) {
    if (queue_ > detail::uring_reads::max_queue)
      throw error(errc::argument, {"uring_file keeps up to ", detail::uring_reads::max_queue,
                                   " reads in the kernel, not ", queue_});
  }
  [[nodiscard]] static file_options of_file(const uring_file_options& options) noexcept {
    return {.descriptors = options.descriptors, .access = options.access};
  }

  file files_;
  std::size_t queue_;
};

static_assert(storage<uring_file> && background_session<uring_file::session>,
              "uring_file is a storage that reads in the background");

}  // namespace penstock::inline v0_1
