// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/forward_pieces.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

/// The base of the sources whose shards are read forward, and their reader.
namespace penstock::inline v0_1::detail {

/// The shards of a plan that are read forward.
struct stream_shards {
  stream_shards(std::vector<std::string> given, std::uint64_t maximum, std::uint64_t longest_extension,
                bool regular, std::string_view source, bool skips_apple_double = true)
      : names(std::move(given)),
        used(names.size()),
        limit(maximum),
        extension_limit(longest_extension),
        files(regular),
        source_name(source),
        skip_apple_double(skips_apple_double) {
    if (names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
  }

  std::vector<std::string> names;
  std::vector<std::atomic<bool>> used;  // by shard: whether it is a pipe that has been read
  std::uint64_t limit;                  // bytes in a sample
  std::uint64_t extension_limit;        // bytes in an extension header
  bool files;                           // whether the shards must be files and not pipes
  std::string_view source_name;
  bool skip_apple_double;

  [[nodiscard]] std::string describe() const {
    return std::string(source_name) + "(" +
           (names.size() == 1 ? names.front()
                              : std::to_string(names.size()) + " shards from " + names.front()) +
           ", read forward)";
  }
  /// Covers the shards' names without their folders: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const {
    penstock::fingerprint mark;
    // pipes give what files do
    mark.add(source_name == "webdataset_pipe" ? "webdataset_stream" : source_name, names.size());
    for (const std::string& name : names) mark.add(std::string_view(name).substr(name.rfind('/') + 1));
    return mark.value();
  }
};

/// Shards that are read one after another: which one it is, and how much of it was delivered. It must not be
/// moved: others refer to its input.
class shard_sequence : unmovable {
 public:
  [[nodiscard]] source_mark mark() const noexcept { return {shard_, given_}; }
  void rewind_shards() noexcept { shard_ = given_ = 0; }
  void close() noexcept {
    input_.close();
    open_ = false;
  }
  /// Goes from the beginning to the marked shard, and past the samples already delivered: `pass()` reads one.
  template <class Pass>
  void seek_to(source_mark place, Pass&& pass) {
    enter(place);
    while (given_ != place.sample)
      if (!pass() || shard_ != place.shard) too_few(place);
  }

 protected:
  /// With `objects`, the shards are those, and otherwise files.
  shard_sequence(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects,
                 const stream_kind& kind)
      : set_(std::move(set)), stored_(objects != nullptr), input_(unpack, objects, kind) {}

  /// Delivers the next sample. `read(url)` reads it from the input, or returns false at the end of the shard;
  /// `begin()` is called after a shard was opened, `close()` to close it after an error.
  template <class Begin, class Read, class Close>
  bool next_of(Begin&& begin, Read&& read, Close&& close) {
    while (shard_ < set_->names.size()) {
      const std::string& url = set_->names[shard_];
      try {
        if (!open_) {
          open(url);
          begin();
        }
        if (read(url)) {
          ++given_;
          return true;
        }
      } catch (error& problem) {
        shard_ = set_->names.size();
        problem.in_file(url);
        if (open_) problem.at_offset(input_.offset());
        close();
        throw;
      }
      ++shard_;
      given_ = 0;
    }
    return false;
  }
  [[nodiscard]] const stream_shards& set() const noexcept { return *set_; }
  [[nodiscard]] shard_stream& input() noexcept { return input_; }
  [[nodiscard]] std::uint64_t given() const noexcept { return given_; }

 private:
  void open(const std::string& url) {
    if (stored_) {
      input_.open(shard_, set_->source_name);
    } else {
      if (set_->files && shard_stream::is_pipe(url))
        throw error(errc::argument,
                    "this is a pipe, and a run over a pipe cannot be resumed; write webdataset_pipe");
      input_.open(url, set_->used[shard_], set_->source_name);
    }
    open_ = true;
  }
  void enter(source_mark place) {
    const std::uint64_t shards = set_->names.size();
    if (place.shard > shards || (place.shard == shards && place.sample != 0))
      throw error(errc::state, {"there is no shard ", place.shard, "; the dataset has ", shards});
    shard_ = detail::to_size(place.shard);
  }
  [[noreturn]] void too_few(source_mark place) const {
    throw error(errc::state, {"the shard has fewer than the ", place.sample,
                              " samples that the state counts; it was changed"})
        .in_file(set_->names[detail::to_size(place.shard)]);
  }

  shared<stream_shards> set_;
  bool stored_;
  std::size_t shard_ = 0;
  std::uint64_t given_ = 0;  // samples of the current shard delivered so far
  shard_stream input_;
  bool open_ = false;
};

/// Shards that are files, which can seek, or pipes.
template <bool Files>
struct local_shards {
  static constexpr bool stored = false, seekable = Files;
  struct session {
    session(const local_shards&, std::size_t) noexcept {}
    [[nodiscard]] forward_pieces* objects() noexcept { return nullptr; }
  };
};
/// Shards in a storage, of which so many bytes are requested ahead of the reader.
template <storage Storage>
struct stored_shards {
  static constexpr bool stored = true, seekable = true;
  struct session {
    session(const stored_shards& shards, std::size_t count)
        : opened(shards.where.connect()), pieces(opened, count, shards.ahead) {}
    [[nodiscard]] forward_pieces* objects() noexcept { return &pieces; }

    typename Storage::session opened;
    forward_pieces pieces;
  };

  Storage where;
  std::uint64_t ahead;
};
template <storage Storage>
[[nodiscard]] std::vector<std::string> shard_names(const Storage& where) {
  return {where.names().begin(), where.names().end()};
}

/// Reads samples with `Samples`, a `shard_sequence`.
template <class Samples, class Shards, unpacker... Unpack>
class stream_reader {
 public:
  using element = typename Samples::element;
  using shards_type = Shards;

  stream_reader(const Shards& where, shared<stream_shards> set)
      : state_(std::make_unique<state>(where, std::move(set))) {}

  [[nodiscard]] bool next(element& e) { return state_->samples.next(e); }
  void rewind(std::uint64_t) noexcept {
    state_->samples.close();
    state_->samples.rewind_shards();
  }
  [[nodiscard]] source_mark mark() const noexcept
    requires Shards::seekable
  {
    return state_->samples.mark();
  }
  /// Opens the marked shard and reads past the samples already delivered; earlier shards are not touched.
  void seek(std::uint64_t epoch, source_mark place)
    requires Shards::seekable
  {
    rewind(epoch);
    element passed;
    state_->samples.seek_to(place, [&] { return next(passed); });
  }
  /// That of the session.
  [[nodiscard]] session_report report() const
    requires Shards::stored
  {
    return report_of(std::as_const(state_->session.opened));
  }
  /// Ends the session's reads. Any thread.
  void cancel_reads() const noexcept
    requires Shards::stored
  {
    state_->session.pieces.end();
  }

 private:
  // Keeps its address when the reader is moved.
  struct state {
    state(const Shards& where, shared<stream_shards> set)
        : session(where, set->names.size()), samples(std::move(set), unpack.calls(), session.objects()) {}
    typename Shards::session session;
    unpackers<Unpack...> unpack;
    Samples samples;
  };

  std::unique_ptr<state> state_;
};

/// The base of the sources; `Reader` is a `stream_reader`.
template <class Source, class Reader>
class stream_source : public opens_as_plan<Source> {
 public:
  using penstock_part = source_tag;
  using element = typename Reader::element;
  using reader = Reader;
  static constexpr bool seekable = Reader::shards_type::seekable;

  [[nodiscard]] std::string describe() const { return set_->describe(); }
  [[nodiscard]] std::uint64_t fingerprint() const { return set_->fingerprint(); }
  [[nodiscard]] reader connect() const { return reader(where_, set_); }

 protected:
  using shards_type = typename Reader::shards_type;

  /// `extension_limit` and `skip_apple_double`: see `stream_shards`.
  stream_source(shards_type where, std::vector<std::string> names, std::uint64_t limit,
                std::uint64_t extension_limit = 0, bool skip_apple_double = true)
      : where_(std::move(where)),
        set_(std::make_shared<stream_shards>(std::move(names), limit, extension_limit, seekable,
                                             Source::source_name, skip_apple_double)) {}

 private:
  shards_type where_;
  shared<stream_shards> set_;
};

}  // namespace penstock::inline v0_1::detail
