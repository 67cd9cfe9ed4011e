// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/detail/arrow_member.hpp>
#include <penstock/source/detail/file_pattern.hpp>
#include <penstock/source/detail/ipc_batches.hpp>
#include <penstock/source/detail/known_files.hpp>
#include <penstock/source/detail/touch_arrow.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar/shard_stream.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `arrow_ipc`.
struct arrow_ipc_options {
  /// The bytes of batches that a run keeps in memory, of those that are not shown in place: compressed, in a
  /// storage that is not mapped, or of the other byte order. The one in use counts, and is always kept.
  std::uint64_t keep = 1_GiB;
  /// The maximum bytes of one such batch.
  std::uint64_t limit = 4_GiB;
};

namespace detail {

/// A row of an Arrow file, as an open sample with a member for each column.
class ipc_row {
 public:
  using is_open_sample = void;
  using blob_type = arrow_member_value;

  ipc_row(const ipc_files& files, std::size_t shard, const arrow_batch& batch, std::uint64_t row,
          std::string& key) noexcept
      : files_(&files), batch_(&batch), shard_(shard), row_(row), key_(&key) {}

  [[nodiscard]] std::string_view key() const;
  [[nodiscard]] std::string_view url() const { return files_->path(shard_); }
  [[nodiscard]] std::size_t size() const noexcept { return files_->leaves.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept { return files_->leaves[i]; }
  [[nodiscard]] blob_type member(std::size_t i) const { return blob_type(batch_->leaves[i].at(row_)); }

 private:
  const ipc_files* files_;
  const arrow_batch* batch_;
  std::size_t shard_;
  std::uint64_t row_;
  std::string* key_;  // of the worker, so that its memory is reused
};

/// The paths of a dataset: the files of a folder, or those that a pattern names. Throws errc::missing for a
/// folder without Arrow files, or without some of those that their names count.
[[nodiscard]] std::vector<std::string> arrow_paths(const std::string& pattern);

template <unpacker... Unpack>
std::optional<std::size_t> unpack_arrow_buffer(bytes_view packed, mutable_bytes into,
                                               std::string_view format) {
  tar::unpackers<Unpack...> unpack;
  const tar::unpacker_calls calls = unpack.calls();
  const std::size_t which = calls.begin(calls.streams, format);
  if (which == tar::unpacker_calls::none) return std::nullopt;
  std::size_t made = 0;
  while (made != into.size()) {
    const unpack_step step = calls.step(calls.streams, which, packed, into.subspan(made), true);
    packed = packed.subspan(step.taken);
    made += step.made;
    if (step.taken == 0 && step.made == 0) break;
  }
  return made;
}

}  // namespace detail

/// The source that `arrow_ipc` makes of Arrow files.
template <storage Storage>
class arrow_ipc_source : public opens_as_plan<arrow_ipc_source<Storage>> {
  using session_type = typename Storage::session;
  using files = detail::stored_in<detail::ipc_files, Storage>;

 public:
  using penstock_part = source_tag;
  using element = detail::ipc_row;
  static constexpr std::string_view source_name = "arrow_ipc";

  /// A run's reader: a session, and the batches used so far.
  class reader {
   public:
    struct worker {
      std::uint64_t begin = 0, end = 0;  // the rows of the current batch, in the dataset
      std::size_t shard = 0;
      const detail::arrow_batch* batch = nullptr;
      shared<const detail::arrow_batch> held;
      std::string key;
      struct coming {
        const detail::arrow_batch* batch = nullptr;  // null if it is not in place, or not loaded
        manifest::place place;
        std::uint64_t index = 0;
      };
      std::array<coming, 64> next{};  // the rows that come next
      std::size_t turn = 0;           // of the one that is evaluated next
    };

    reader(shared<const files> known, const projection& used, const arrow_ipc_options& options,
           detail::ipc_batches::unpack_call unpack)
        : known_(std::move(known)),
          session_(known_->where.connect()),
          batches_(known_, used, {options.keep, options.limit}, unpack) {
      for (std::size_t i = 0; i < known_->leaves.size(); ++i)
        if (used.uses(known_->leaves[i])) touched_.push_back(i);
      if (used.everything()) touched_.clear();
    }

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const auto& looked_up = w.next[w.turn++ % w.next.size()];
      if (looked_up.index == p.index && looked_up.batch != nullptr) [[likely]]
        stand_in(w, looked_up.place, looked_up.batch);
      else if (p.index < w.begin || p.index >= w.end)
        move_to(w, p.index);
      const std::uint64_t row = p.index - w.begin;
      try {
        sink(detail::ipc_row(*known_, w.shard, *w.batch, row, w.key));
        confirm(session_, known_->object(w.shard));
      } catch (error& e) {
        confirm(session_, known_->object(w.shard));
        e.in_file(known_->path(w.shard)).for_key(key(p.index));
        throw;
      }
    }

    /// Finds the rows that come next, up to 64, and prefetches what says where their values are.
    void look_ahead(std::span<const position> next, worker& w) const noexcept {
      w.turn = 0;
      for (std::size_t i = 0; i < std::min(next.size(), w.next.size()); ++i) {
        auto& one = w.next[i];
        one.batch = nullptr;
        if (next[i].index >= known_->shards.samples()) continue;
        one.index = next[i].index;
        one.place = known_->shards.locate(one.index);
        one.batch = batches_.find(one.place.shard);
        if (one.batch == nullptr) continue;
        for (const std::size_t leaf : touched_)
          detail::touch_arrow_offsets(one.batch->leaves[leaf], one.place.sample);
      }
    }
    /// Prefetches the values of one of these rows.
    [[gnu::always_inline]] void touch_ahead(std::size_t i, const worker& w) const noexcept {
      if (i >= w.next.size() || w.next[i].batch == nullptr) return;
      for (const std::size_t leaf : touched_)
        detail::touch_arrow_value(w.next[i].batch->leaves[leaf], w.next[i].place.sample);
    }

    /// The file, and the row's number in it: "data-00000-of-00002.arrow:17".
    [[nodiscard]] std::string key(std::uint64_t index) const {
      const manifest::place place = known_->locate(index);
      return known_->key_of(place.shard, place.sample);
    }
    [[nodiscard]] std::string url(std::uint64_t index) const {
      return known_->path(known_->locate(index).shard);
    }
    [[nodiscard]] storage_counters counters() const
      requires counting_session<session_type>
    {
      return session_.counters();
    }
    [[nodiscard]] std::optional<named_read> oldest_read() const { return oldest_read_of(session_); }
    void cancel_reads() const noexcept { end_reads(session_); }
    /// The mean size of a row.
    [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
      const std::uint64_t rows = known_->shards.samples();
      return rows == 0 ? 0 : known_->shards.payload() / rows;
    }

   private:
    void stand_in(worker& w, const manifest::place& place, const detail::arrow_batch* batch) const noexcept {
      w.batch = batch;
      w.shard = place.shard;
      w.begin = place.first;
      w.end = place.first + known_->shards.shards()[place.shard].samples;
    }
    void move_to(worker& w, std::uint64_t index) const {
      const manifest::place place = known_->locate(index);
      w.begin = w.end = 0;  // if it cannot be read, the worker has none
      stand_in(w, place, &batches_.get(session_, place.shard, w.held));
    }

    shared<const files> known_;
    mutable session_type session_;  // a session may be used by many threads
    detail::ipc_batches batches_;
    std::vector<std::size_t> touched_;  // the leaves whose memory is prefetched
  };

  arrow_ipc_source(Storage where, arrow_ipc_options options, detail::ipc_batches::unpack_call unpack)
      : known_(made(std::move(where))), options_(options), unpack_(unpack) {}

  /// The rows of all files.
  [[nodiscard]] std::uint64_t size() const noexcept { return known_->shards.samples(); }
  /// Where batches of rows begin.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return known_->shards.starts();
  }
  /// The batches, as shards.
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return known_->shards; }
  /// Covers the columns, and each batch's file, place, size and rows.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return known_->mark; }
  [[nodiscard]] std::string describe() const { return known_->describe(); }
  /// The columns' types, as the children of a struct.
  [[nodiscard]] const arrow_type& schema() const noexcept { return known_->files.front().schema; }
  [[nodiscard]] reader connect(const projection& used = {}) const {
    return reader(known_, used, options_, unpack_);
  }

 private:
  static shared<const files> made(Storage where) {
    auto session = where.connect();
    const storage_facts facts = facts_of(where);
    detail::ipc_files found(facts, session);
    return shared<const files>(new const files(std::move(where), std::move(found)));
  }

  shared<const files> known_;
  arrow_ipc_options options_;
  detail::ipc_batches::unpack_call unpack_;
};

/// Arrow files: Feather (version 2), Arrow IPC files and streams, and the folders that Hugging Face's
/// `datasets`
/// writes with `save_to_disk` and keeps in its cache.
///
///     auto rows = arrow_ipc("imagenet/train") | shuffle(seed) |
///                 decode<field<"image.bytes", jpeg>, field<"label", arrow_value<std::int64_t>>>;
///     auto packed = arrow_ipc<unpack_zstd, unpack_lz4>("part-{00..15}.feather");
///
/// In: a pattern of paths (with `::` between patterns), which is `mapped_file`; a folder, whose files called
/// `*.arrow` are taken in the order of their names, which may differ in digits alone: they are those of one
/// split; or any storage, whose objects are the files. All have the same columns. As template arguments the
/// unpackers for compressed batches.
/// Out: an open sample with a member for each column; the fields of a struct are members of their own, with a
/// point between the names ("image.bytes"). `arrow_value<T>` reads numbers, texts, lists and nulls,
/// `arrow_array<T>` lists that are arrays; any other codec reads binary values and texts: `jpeg`, `identity`,
/// `json`. Dictionary values are followed. Unions, runs and list views are passed over, and an error when
/// they are asked for.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. `starts` are those of the record
/// batches, so that `shuffle` with a window reads each one once. Making the plan reads the metadata of all
/// batches, some 500 bytes each.
/// Cost per sample: in a mapped file that is not compressed nothing is read or copied but what is asked for.
/// A batch that is compressed, in another storage or of the other byte order is read once, its named columns
/// alone, and shared by all workers; such batches are kept up to `arrow_ipc_options::keep` bytes. No
/// allocation in the steady state for batches in place.
/// Errors: errc::format, with file and offset, for what is no Arrow IPC, a file that is cut off, buffers that
/// are too short, and a file of other columns than the first; with the row, for offsets that lead out of a
/// buffer; errc::limit for a batch that is not in place and exceeds `arrow_ipc_options::limit`;
/// errc::argument for a compression without an unpacker, with what to write; errc::io.
/// Threads: any number may evaluate, each with its own worker.
/// Source: Arrow, "Arrow columnar format", and format/{Message,Schema,File}.fbs.
template <unpacker... Unpack, storage Storage>
[[nodiscard]] arrow_ipc_source<Storage> arrow_ipc(Storage where, arrow_ipc_options options = {}) {
  return {std::move(where), options, &detail::unpack_arrow_buffer<Unpack...>};
}
template <unpacker... Unpack, detail::tar::pattern_text Text>
[[nodiscard]] arrow_ipc_source<mapped_file> arrow_ipc(const Text& pattern, arrow_ipc_options options = {}) {
  return {mapped_file(detail::arrow_paths(detail::tar::to_pattern(pattern))), options,
          &detail::unpack_arrow_buffer<Unpack...>};
}
/// From a list of paths, in which braces are not expanded.
template <unpacker... Unpack>
[[nodiscard]] arrow_ipc_source<mapped_file> arrow_ipc(std::vector<std::string> paths,
                                                      arrow_ipc_options options = {}) {
  return {mapped_file(std::move(paths)), options, &detail::unpack_arrow_buffer<Unpack...>};
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/arrow_ipc.ipp>
#endif
