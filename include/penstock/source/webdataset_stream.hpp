// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/file_pattern.hpp>
#include <penstock/source/detail/member_name.hpp>
#include <penstock/source/tar/shard_stream.hpp>
#include <penstock/source/tar/stream_sample.hpp>
#include <penstock/source/tar/tar_walk.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Choices of `webdataset_stream`.
struct webdataset_stream_options {
  /// The most bytes that one sample may hold, names included: what a hostile shard can cost.
  std::uint64_t limit = 1_GiB;
};

/// The source that `webdataset_stream` (of files: it can go to a place) and `webdataset_pipe` make.
template <bool Files, unpacker... Unpack>
class basic_webdataset_stream {
  struct shared {
    shared(std::vector<std::string> given, webdataset_stream_options chosen)
        : names(std::move(given)), used(names.size()), options(chosen) {}
    std::vector<std::string> names;
    std::vector<std::atomic<bool>> used;  // by shard: a pipe that has been read
    webdataset_stream_options options;
  };

 public:
  using penstock_part = source_tag;
  using element = detail::tar::stream_sample;
  static constexpr std::string_view source_name = Files ? "webdataset_stream" : "webdataset_pipe";
  static constexpr bool seekable = Files;

  class reader {
   public:
    [[nodiscard]] bool next(element& e) {
      while (shard_ < set_->names.size()) {
        const std::string& url = set_->names[shard_];
        try {
          if (!state_->open) open(url);
          if (read_sample(e, url)) {
            ++given_;
            return true;
          }
        } catch (error& problem) {
          shard_ = set_->names.size();
          problem.in_file(url);
          if (state_->open) problem.at_offset(state_->input.offset());
          state_->close();
          throw;
        }
        ++shard_;
        given_ = 0;
      }
      return false;
    }
    void rewind(std::uint64_t) noexcept {
      state_->close();
      shard_ = 0;
      given_ = 0;
    }
    [[nodiscard]] source_mark mark() const noexcept
      requires Files
    {
      return {shard_, given_};
    }
    /// Opens the shard, and reads those of its samples that were given; shards before it are not touched.
    void seek(std::uint64_t epoch, source_mark place)
      requires Files
    {
      rewind(epoch);
      const std::uint64_t shards = set_->names.size();
      if (place.shard > shards || (place.shard == shards && place.sample != 0))
        throw error(errc::state, {"there is no shard ", place.shard, "; the dataset has ", shards});
      shard_ = static_cast<std::size_t>(place.shard);
      for (element passed; given_ != place.sample;) {
        if (next(passed) && shard_ == place.shard) continue;
        throw error(errc::state, {"the shard has fewer than the ", place.sample,
                                  " samples of which the state speaks; it was changed"})
            .in_file(set_->names[static_cast<std::size_t>(place.shard)]);
      }
    }

   private:
    friend class basic_webdataset_stream;
    using stream = detail::tar::shard_stream<Unpack...>;

    // Stays where it is when the reader is moved: the walk refers to the input.
    struct state {
      stream input;
      detail::tar::member_walk<stream> walk{input};
      detail::tar::member found;
      detail::tar::split_path parts;  // of the member that was found, and is not taken yet
      bool open = false;
      bool pending = false;
      bool ended = false;

      void close() noexcept {
        input.close();
        open = pending = ended = false;
      }
    };

    explicit reader(std::shared_ptr<shared> set) : set_(std::move(set)), state_(std::make_unique<state>()) {}

    void open(const std::string& url) {
      if (Files && stream::is_pipe(url))
        throw error(errc::argument, "this is a pipe, in which no run can be resumed; write webdataset_pipe");
      state_->input.open(url, set_->used[shard_], source_name);
      state_->walk.restart();
      state_->open = true;
    }

    /// Looks for the next member that belongs to a sample. At the end it reads on to the checksums, before
    /// the last sample is given.
    bool find() {
      state& s = *state_;
      if (s.ended) return false;
      while (s.walk.next(s.found)) {
        if (detail::tar::skipped_member(s.found.path)) continue;
        const auto parts = detail::tar::split_member(s.found.path);
        if (!parts) continue;
        s.parts = *parts;
        return true;
      }
      s.ended = true;
      s.input.drain();
      return false;
    }

    /// False at the end of the shard.
    bool read_sample(element& e, const std::string& url) {
      state& s = *state_;
      while (s.pending || find()) {
        e.start(s.parts.key, url);
        do {
          e.take(
              s.found, s.parts.suffix, set_->options.limit,
              [&s](mutable_bytes into) { return s.input.read(into); },
              [&s](std::uint64_t reached) { s.walk.cut_off(reached); });
          s.pending = find();
        } while (s.pending && s.parts.key == e.key());
        if (!e.bad()) return true;
      }
      s.close();
      return false;
    }

    std::shared_ptr<shared> set_;
    std::unique_ptr<state> state_;
    std::size_t shard_ = 0;
    std::uint64_t given_ = 0;  // samples of the shard at hand
  };

  basic_webdataset_stream(std::vector<std::string> names, webdataset_stream_options options)
      : set_(std::make_shared<shared>(std::move(names), options)) {
    if (set_->names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
  }

  [[nodiscard]] std::string describe() const {
    return std::string(source_name) + "(" +
           (set_->names.size() == 1
                ? set_->names.front()
                : std::to_string(set_->names.size()) + " shards from " + set_->names.front()) +
           ", read forward)";
  }
  /// Of the shards' names without their folders: what they hold is not known before it is read.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    penstock::fingerprint mark;
    mark.add("webdataset_stream", set_->names.size());
    for (const std::string& name : set_->names) mark.add(std::string_view(name).substr(name.rfind('/') + 1));
    return mark.value();
  }
  [[nodiscard]] reader open() const { return reader(set_); }

 private:
  std::shared_ptr<shared> set_;
};

/// What `webdataset_stream` makes.
template <unpacker... Unpack>
using webdataset_stream_source = basic_webdataset_stream<true, Unpack...>;
/// What `webdataset_pipe` makes.
template <unpacker... Unpack>
using webdataset_pipe_source = basic_webdataset_stream<false, Unpack...>;

/// Shards in the WebDataset format, read from the beginning to the end: for archives that are compressed
/// as a whole; `webdataset_pipe` is the same for pipes. Where shards are plain files, `webdataset` can do
/// more: shuffle, go on with other ranks, read in parallel.
///
///     auto plain = webdataset_stream("train-{0000..0127}.tar");
///     auto packed = webdataset_stream<unpack_gzip, unpack_zstd>("train-{0000..0127}.tar.{gz,zst}");
///     auto piped = webdataset_pipe("-");                            // what another program writes
///
/// In: a pattern (with `::` between patterns) or a list of paths of local files, for
/// `webdataset_pipe` also FIFOs and "-" for the standard input; the unpackers that may be needed, as template
/// arguments. How a shard is packed is seen from its first bytes; its name says nothing. Out: open samples
/// that own their bytes: the same keys, members, bytes and order as those of `webdataset`.
/// Kind: a forward source: deterministic, and of files resumable: a run that goes on opens the shard where it
/// stood and reads the samples of it that were delivered once more; shards before it are not touched. One
/// shard is open at a time. A pipe can be read once.
/// Cost per sample: its bytes are copied out of a window once, and unpacked; members of 256 KiB and more of
/// plain files are read in place. No allocation in the steady state: samples keep their memory. Memory: a
/// window of 1 MiB and what the unpackers need, besides the samples, each of at most `limit`.
/// Threads: one reads at a time, all evaluate. Who reads a pipe waits for its writer, also when the run is
/// given up.
/// Errors: as `webdataset`, when the place is reached; offsets are those in the unpacked archive.
/// errc::argument for a shard that is packed in a way of which there is no unpacker, and for a pipe given to
/// `webdataset_stream`, with what to write;
/// errc::limit for a sample beyond `limit`, before its bytes are read; errc::checksum; errc::state for a pipe
/// that was read before.
/// Source: webdataset, tariterators.py.
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(const Text& pattern,
                                                                    webdataset_stream_options options = {}) {
  const file found = detail::tar::files_of(detail::tar::to_pattern(pattern));
  return {std::vector<std::string>(found.names().begin(), found.names().end()), options};
}

/// The same for a list of paths, which are taken as they are.
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::vector<std::string> paths,
                                                                    webdataset_stream_options options = {}) {
  return {std::move(paths), options};
}
template <unpacker... Unpack>
[[nodiscard]] webdataset_stream_source<Unpack...> webdataset_stream(std::initializer_list<const char*> paths,
                                                                    webdataset_stream_options options = {}) {
  return {std::vector<std::string>(paths.begin(), paths.end()), options};
}

/// Shards from pipes: see `webdataset_stream`. Not resumable: nobody can go back in a pipe.
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(const Text& pattern,
                                                                webdataset_stream_options options = {}) {
  const file found = detail::tar::files_of(detail::tar::to_pattern(pattern));
  return {std::vector<std::string>(found.names().begin(), found.names().end()), options};
}

/// The same for a list of paths, which are taken as they are.
template <unpacker... Unpack>
[[nodiscard]] webdataset_pipe_source<Unpack...> webdataset_pipe(std::vector<std::string> paths,
                                                                webdataset_stream_options options = {}) {
  return {std::move(paths), options};
}

}  // namespace penstock::inline v0_1
