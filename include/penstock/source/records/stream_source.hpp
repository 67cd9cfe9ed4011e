// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/forward_pieces.hpp>
#include <penstock/source/records/shard_sequence.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The base of the sources whose shards are read forward, and their reader.
namespace penstock::inline v0_1::detail {

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
  void rewind(std::uint64_t) noexcept { state_->samples.rewind(); }
  [[nodiscard]] source_mark mark() const noexcept
    requires Shards::seekable
  {
    return state_->samples.mark();
  }
  /// Opens the marked shard and reads past the samples already delivered; earlier shards are not touched.
  void seek(std::uint64_t, source_mark place)
    requires Shards::seekable
  {
    state_->samples.seek(place);
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
  /// Covers the shards' names without their folders: their contents are not known until they are read.
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
