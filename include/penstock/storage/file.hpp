// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/descriptor_cache.hpp>
#include <penstock/storage/detail/paths.hpp>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Choices of `file`.
struct file_options {
  /// How many descriptors a session keeps open; 0 is the smaller of 512 and half of what `ulimit -n` allows.
  std::size_t descriptors = 0;
};

/// Storage of local files, read with pread: one path, a pattern with braces, or a list of paths.
///
///     const file shards("train-{0000..0127}.tar");
///     const file two({"a.tar", "b.tar"});
///
/// A pattern is expanded as by `expand_braces`; the names of a list are taken as they are. Nothing is opened
/// before `connect`.
/// A session opens a file at its first use and keeps a bounded number of descriptors, so that 10,000 shards
/// work under `ulimit -n 1024`. A read is one system call and costs about 0.4 us and the copy out of the page
/// cache.
/// Errors: errc::io, with the file, the system's reason and what to do, for what cannot be opened or read and
/// for a file that was changed while it was in use; errc::format for a range beyond the end.
/// Threads: a session may be used by any number of threads; a read of an open file takes no lock.
template <class = void>
class basic_file {
  struct shared_names {
    std::vector<std::string> names;
    std::string pattern;
  };
  struct state {
    state(std::shared_ptr<const shared_names> given, std::size_t descriptors)
        : names(std::move(given)), open_files(names->names, descriptors) {}
    std::shared_ptr<const shared_names> names;
    detail::files::descriptor_cache open_files;
  };

 public:
  static constexpr bool names_are_paths = true;

  /// What a run reads through; see `storage_session`.
  class session {
   public:
    static constexpr bool views = false;

    [[nodiscard]] std::uint64_t size(object_id id) const { return signature(id).size; }
    [[nodiscard]] object_signature signature(object_id id) const {
      const auto opened = state_->open_files.use(id);
      return detail::files::signature_of(opened.get(), path(id));
    }

    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      const auto opened = state_->open_files.use(id);
      check_offset(id, offset, into.size());
      std::size_t done = 0;
      while (done < into.size()) {
        const ssize_t got =
            ::pread(opened.get(), into.data() + done, std::min(into.size() - done, most_at_once),
                    static_cast<off_t>(offset + done));
        done += advance(id, got, offset, into.size());
      }
    }

    /// Reads in the order given, in this thread; requests that continue each other are one system call.
    template <class Done>
    void read_many(std::span<const read_request> requests, Done&& done) const {
      for (std::size_t first = 0; first < requests.size();) {
        std::size_t last = first + 1;
        std::uint64_t end = requests[first].offset + requests[first].into.size();
        while (last < requests.size() && last - first < most_parts &&
               requests[last].object == requests[first].object && requests[last].offset == end) {
          end += requests[last++].into.size();
        }
        if (last - first == 1 || !read_together(requests.subspan(first, last - first))) {
          for (std::size_t i = first; i < last; ++i) read_alone(requests[i], i, done);
        } else {
          for (std::size_t i = first; i < last; ++i) done(i, std::exception_ptr{});
        }
        first = last;
      }
    }

    void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const noexcept {
      try {
        const auto opened = state_->open_files.use(id);
        ::posix_fadvise(opened.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                        POSIX_FADV_WILLNEED);
      } catch (...) {  // the read itself will say what is wrong
      }
    }

    /// How many descriptors are open at the moment, and how many may be.
    [[nodiscard]] std::size_t descriptors() const { return state_->open_files.open_now(); }
    [[nodiscard]] std::size_t descriptor_limit() const noexcept { return state_->open_files.limit(); }

   private:
    friend basic_file;
    static constexpr std::size_t most_at_once = std::size_t{1} << 30;
    static constexpr std::size_t most_parts = 64;

    explicit session(std::shared_ptr<state> made) : state_(std::move(made)) {}

    [[nodiscard]] const std::string& path(object_id id) const { return state_->names->names[id]; }

    void check_offset(object_id id, std::uint64_t offset, std::uint64_t size) const {
      constexpr auto furthest = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
      detail::files::check_range(offset, size, furthest, path(id));
    }

    // What one system call brought; throws at the end of the file and for failures other than EINTR.
    std::size_t advance(object_id id, ssize_t got, std::uint64_t offset, std::size_t wanted) const {
      if (got > 0) return static_cast<std::size_t>(got);
      if (got < 0 && errno == EINTR) return 0;
      if (got < 0) throw detail::files::failure("read", path(id), errno).at_offset(offset);
      detail::files::check_range(offset, wanted, size(id), path(id));
      throw error(errc::io, "the file was cut off while it was read").in_file(path(id)).at_offset(offset);
    }

    // False where it did not work out; the requests are then read one by one, so that each gets its own
    // error.
    [[nodiscard]] bool read_together(std::span<const read_request> requests) const {
      std::array<iovec, most_parts> parts;
      std::uint64_t size = 0;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        parts[i] = {requests[i].into.data(), requests[i].into.size()};
        size += requests[i].into.size();
      }
      if (size > most_at_once) return false;
      try {
        const auto opened = state_->open_files.use(requests.front().object);
        check_offset(requests.front().object, requests.front().offset, size);
        const ssize_t got = ::preadv(opened.get(), parts.data(), static_cast<int>(requests.size()),
                                     static_cast<off_t>(requests.front().offset));
        return got >= 0 && static_cast<std::uint64_t>(got) == size;
      } catch (...) {
        return false;
      }
    }

    template <class Done>
    void read_alone(const read_request& request, std::size_t place, Done& done) const {
      std::exception_ptr failed;
      try {
        read(request.object, request.offset, request.into);
      } catch (...) {
        failed = std::current_exception();
      }
      done(place, failed);
    }

    std::shared_ptr<state> state_;
  };

  explicit basic_file(std::string_view pattern, file_options options = {})
      : names_(new shared_names{expand_braces(pattern), std::string(pattern)}), options_(options) {}
  explicit basic_file(std::vector<std::string> paths, file_options options = {})
      : names_(new shared_names{std::move(paths), {}}), options_(options) {}
  basic_file(std::initializer_list<const char*> paths, file_options options = {})
      : basic_file(std::vector<std::string>(paths.begin(), paths.end()), options) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return names_->names; }
  [[nodiscard]] session connect() const {
    return session(std::shared_ptr<state>(new state(names_, options_.descriptors)));
  }
  [[nodiscard]] std::string describe() const {
    return detail::text(
        {"file(", (names_->pattern.empty() ? std::to_string(names().size()) + " paths" : names_->pattern),
         ")"});
  }

 private:
  std::shared_ptr<const shared_names> names_;
  file_options options_;
};
/// The form to use: see `basic_file`.
class file : public basic_file<> {
 public:
  using basic_file<>::basic_file;
};

static_assert(storage<file>, "file is a storage");

}  // namespace penstock::inline v0_1
