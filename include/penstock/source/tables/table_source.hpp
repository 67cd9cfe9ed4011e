// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/base/prefetch_lines.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tables/arrow_batch.hpp>
#include <penstock/source/tables/batch_cache.hpp>
#include <penstock/source/where.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

// Always inline, as prefetch_lines.

/// Prefetches the offsets of a row's value, if it has some.
[[gnu::always_inline]] inline void prefetch_arrow_offsets(const arrow_leaf& leaf,
                                                          std::uint64_t row) noexcept {
  if (leaf.rows != 0) return;
  const arrow_column& column = *leaf.column;
  const arrow_layout layout = column.type->layout;
  const bool wide = layout == arrow_layout::bytes64 || layout == arrow_layout::list64;
  if (column.offsets != nullptr)
    __builtin_prefetch(column.offsets + to_size(column.offset + leaf.add + row) * (wide ? 8 : 4));
}

/// The bytes of a row's value, to be prefetched: of fixed width, also in lists of fixed length, or bytes
/// behind offsets. Empty for any other.
[[nodiscard]] inline bytes_view arrow_value_bytes(const arrow_leaf& leaf, std::uint64_t row) noexcept {
  if (row < leaf.rows) [[likely]]
    return {leaf.first + to_size(row * leaf.width), to_size(leaf.width)};
  const arrow_column& column = *leaf.column;
  if (column.type->layout != arrow_layout::bytes32 || column.values == nullptr ||
      row + leaf.add >= column.length)
    return {};
  std::uint32_t begin = 0, end = 0;
  const std::byte* const offsets = column.offsets + 4 * to_size(column.offset + leaf.add + row);
  std::memcpy(&begin, offsets, sizeof(begin));
  std::memcpy(&end, offsets + 4, sizeof(end));
  if (begin >= end || end > column.bytes) return {};
  return {column.values + begin, end - begin};
}

/// What a worker keeps from row to row.
struct arrow_row_memory {
  struct place {
    std::string_view name;
    std::size_t i = 0;
  };
  std::string key;
  std::array<place, 16> places{};  // of the columns that are asked for by name
};

/// A row of a dataset of columns, as an open sample with a member for each column.
template <class Files>
class arrow_row {
 public:
  using is_open_sample = void;
  using blob_type = arrow_member_value;

  arrow_row(const Files& files, std::size_t shard, const arrow_batch& batch, std::uint64_t row,
            arrow_row_memory& memory) noexcept
      : files_(&files), batch_(&batch), shard_(shard), row_(row), memory_(&memory) {}

  [[nodiscard]] std::string_view key() const { return memory_->key = files_->key_of(shard_, row_); }
  [[nodiscard]] std::string_view url() const { return files_->path(shard_); }
  [[nodiscard]] std::size_t size() const noexcept { return files_->leaves.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept { return files_->leaves[i]; }
  /// The place of a column, or their number. The name must live as long as the program. Throws
  /// errc::argument if two columns have it.
  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    // Names often lie beside each other.
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(name.data());
    auto& known = memory_->places[to_size(at * 0x9e3779b97f4a7c15 >> 60)];
    if (known.name.data() != name.data() || known.name.size() != name.size()) [[unlikely]]
      known = {name, find_arrow_leaf(files_->leaves, name)};
    return known.i;
  }
  [[nodiscard]] blob_type member(std::size_t i) const { return {batch_->leaves[i], row_}; }

 private:
  const Files* files_;
  const arrow_batch* batch_;
  std::size_t shard_;
  std::uint64_t row_;
  arrow_row_memory* memory_;
};

/// A run's reader of a dataset of columns: a session, and the batches used so far. `Files` is a `known_files`
/// that has `leaves`, `row_of(shard, sample)` and `key_of(shard, row)`; `Batches` says whether its batches
/// may lie `in_place` in what the session shows, and has `get(session, shard, held)`, `find(shard)` for
/// batches that stay, and `find_kept(shard)` for others that are in memory.
template <class Storage, class Files, class Known, class Batches>
class arrow_rows {
  using session_type = typename Storage::session;

 public:
  static constexpr reader_traits traits = {.in_memory = true, .shows_contiguous = true};

  struct worker {
    std::uint64_t begin = 0, end = 0;  // the rows of the current batch, in the dataset
    std::size_t shard = 0;
    const arrow_batch* batch = nullptr;
    shared<const arrow_batch> held;
    arrow_row_memory memory;
    struct coming {
      const arrow_batch* batch = nullptr;  // null if it is not in memory
      manifest::place place;
      std::uint64_t index = 0;
    };
    std::array<coming, 64> next{};   // the rows that come next
    std::size_t count = 0;           // of those
    std::size_t next_row = 0;        // of the one that is evaluated next
    std::vector<bytes_view> values;  // of these rows, those that are prefetched
    struct kept {
      std::size_t shard = 0;
      shared<const arrow_batch> batch;
      bool used = false;
    };
    std::array<kept, 8> ahead{};  // batches of these rows that may go away otherwise
  };

  template <class... Args>
  explicit arrow_rows(shared<const Known> known, const projection& used, Args&&... args)
      : table_(std::move(known)),
        session_(table_->where.connect()),
        batches_(table_, used, std::forward<Args>(args)...) {
    for (const std::string_view name : used.names()) (void)find_arrow_leaf(table_->leaves, name);
    for (std::size_t i = 0; i < table_->leaves.size(); ++i)
      if (used.uses(table_->leaves[i])) touched_.push_back(i);
    if (used.everything()) touched_.clear();
  }

  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    std::size_t next_row =
        w.next_row;  // rows before it may not have been evaluated, because they are kept in memory
    while (next_row < w.count && w.next[next_row].index != p.index) ++next_row;
    if (next_row < w.count) w.next_row = next_row + 1;
    const auto& looked_up = w.next[next_row % w.next.size()];
    std::size_t shard = looked_up.place.shard;
    std::uint64_t sample = looked_up.place.sample;
    const arrow_batch* batch = looked_up.batch;
    if (next_row >= w.count || batch == nullptr) [[unlikely]] {
      if (p.index < w.begin || p.index >= w.end) move_to(w, p.index);
      shard = w.shard;
      sample = p.index - w.begin;
      batch = w.batch;
    }
    try {
      sink(arrow_row<Files>(*table_, shard, *batch, table_->row_of(shard, sample), w.memory));
      if constexpr (Batches::in_place) confirm(session_, table_->object(shard));
    } catch (error& e) {
      if constexpr (Batches::in_place) confirm(session_, table_->object(shard));
      e.in_file(table_->path(shard)).for_key(key(p.index));
      throw;
    }
  }

  /// Calls `sink` with the first of the rows from `first` on, and with how many of these `count` lie one
  /// behind the other in its batch. Returns that number if `sink` returns true, otherwise 0: the rows are to
  /// be evaluated one by one. The numbers of the rows of a batch are in ascending order.
  template <class Sink>
  [[nodiscard]] std::uint64_t evaluate_run(position first, std::uint64_t count, worker& w,
                                           Sink&& sink) const {
    if (first.index < w.begin || first.index >= w.end) move_to(w, first.index);
    const std::uint64_t at = first.index - w.begin, row = table_->row_of(w.shard, at);
    count = std::min(count, w.end - first.index);
    if (table_->row_of(w.shard, at + count - 1) != row + count - 1) return 0;
    if (!sink(arrow_row<Files>(*table_, w.shard, *w.batch, row, w.memory), count)) return 0;
    if constexpr (Batches::in_place) {
      try {
        confirm(session_, table_->object(w.shard));
      } catch (const error&) {  // one of them will throw it
        return 0;
      }
    }
    return count;
  }
  /// Finds the rows that come next, up to 64, and their values, unless they lie one behind the other, which
  /// the processor sees.
  void look_ahead(std::span<const position> next, worker& w) const {
    w.count = 0;
    if (seem_consecutive(next) || (next.size() == 1 && next[0].index >= w.begin && next[0].index < w.end)) {
      for (auto& one : w.ahead)
        if (one.batch) one.batch = {};
      return;
    }
    w.values.resize(w.next.size() * touched_.size());  // once
    w.next_row = 0;
    for (auto& one : w.ahead) one.used = false;
    w.count = std::min(next.size(), w.next.size());
    const std::uint64_t all = table_->shards.samples();
    manifest::place found;  // of the row before
    std::uint64_t count = 0;
    const arrow_batch* batch = nullptr;
    for (std::size_t i = 0; i < w.count; ++i) {
      auto& one = w.next[i];
      one.batch = nullptr;
      if (next[i].index >= all) continue;
      one.index = next[i].index;
      if (one.index - found.first < count) [[likely]] {
        one.place = {found.shard, one.index - found.first, found.first};
      } else {
        found = one.place = table_->shards.locate(one.index);
        count = table_->shards.shards()[found.shard].samples;
        batch = batches_.find(found.shard);
        if (batch == nullptr) batch = find_ahead(found.shard, w);
      }
      one.batch = batch;
      if (batch == nullptr) continue;
      const std::uint64_t row = table_->row_of(one.place.shard, one.place.sample);
      for (const std::size_t leaf : touched_) prefetch_arrow_offsets(batch->leaves[leaf], row);
    }
    find_values(w);
    for (auto& one : w.ahead)
      if (!one.used) one.batch = {};
    w.batch = nullptr;  // it may be one that was let go
    w.begin = w.end = 0;
  }
  /// Prefetches the first `maximum` bytes of each value of one of these rows.
  [[gnu::always_inline]] void prefetch_ahead(std::size_t i, const worker& w,
                                             std::uint64_t maximum) const noexcept {
    if (i >= w.count) return;
    for (std::size_t k = i * touched_.size(); k < (i + 1) * touched_.size(); ++k)
      prefetch_lines(w.values[k].data(), std::min<std::uint64_t>(maximum, w.values[k].size()));
  }

  /// The file, and the row's number in it: "data-00000-of-00002.arrow:17".
  [[nodiscard]] std::string key(std::uint64_t index) const {
    const manifest::place place = table_->locate(index);
    return table_->key_of(place.shard, table_->row_of(place.shard, place.sample));
  }
  [[nodiscard]] std::string url(std::uint64_t index) const {
    return table_->path(table_->locate(index).shard);
  }
  /// That of the session.
  [[nodiscard]] session_report report() const { return report_of(session_); }
  void cancel_reads() const noexcept { end_reads(session_); }
  /// The mean size of a row.
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
    const std::uint64_t rows = table_->shards.samples();
    return rows == 0 ? 0 : table_->shards.payload() / rows;
  }

 private:
  // After all offsets were asked for, so that these arrive together.
  void find_values(worker& w) const noexcept {
    auto value = w.values.begin();
    for (const auto& one : std::span(w.next).first(w.count)) {
      const std::uint64_t row = one.batch ? table_->row_of(one.place.shard, one.place.sample) : 0;
      for (const std::size_t leaf : touched_)
        *value++ = one.batch ? arrow_value_bytes(one.batch->leaves[leaf], row) : bytes_view();
    }
  }
  // A batch that is in memory, and stays there until the next look ahead.
  [[nodiscard]] const arrow_batch* find_ahead(std::size_t shard, worker& w) const noexcept {
    for (auto& one : w.ahead)
      if (one.batch && one.shard == shard) {
        one.used = true;
        return one.batch.get();
      }
    for (auto& one : w.ahead)
      if (!one.used) {
        one.batch = batches_.find_kept(shard);
        one.shard = shard;
        one.used = static_cast<bool>(one.batch);
        return one.batch.get();
      }
    return nullptr;
  }
  void move_to(worker& w, std::uint64_t index) const {
    const manifest::place place = table_->locate(index);
    w.begin = w.end = 0;  // if it cannot be read, the worker has none
    w.batch = &batches_.get(session_, place.shard, w.held);
    w.shard = place.shard;
    w.begin = place.first;
    w.end = place.first + table_->shards.shards()[place.shard].samples;
  }

  shared<const Known> table_;
  mutable session_type session_;  // a session may be used by many threads
  Batches batches_;
  std::vector<std::size_t> touched_;  // the leaves whose memory is prefetched
};

/// The files of a dataset of columns, as part of a plan. A shard is a batch of rows.
struct table_files : known_files {
  std::vector<std::uint64_t> rows_before;  // by shard: rows of its file in front of it
  std::vector<std::string> leaves;         // the columns that are shown, structs replaced by their fields
  std::uint64_t mark = 0;

  [[nodiscard]] std::uint64_t row_of(std::size_t, std::uint64_t sample) const noexcept { return sample; }
  /// The file without its folder, and the row's number in it: "part-0.parquet:17".
  [[nodiscard]] std::string key_of(std::size_t shard, std::uint64_t row) const {
    const std::string_view name = path(shard);
    return text({name.substr(name.rfind('/') + 1), ":", rows_before[shard] + row});
  }
  /// "csv(2 files, 300 bytes): 7 rows of text (string), label (int64)".
  [[nodiscard]] std::string described(std::string_view source, std::size_t files, std::string_view of,
                                      std::span<const source_field> fields) const {
    std::string line = text(
        {source, "(", files, files == 1 ? " file, " : " files, ", of, "): ", shards.samples(), " rows of "});
    for (const source_field& one : fields)
      append(line, {&one == fields.data() ? "" : ", ", one.name, " (", one.type, ")"});
    return line;
  }
  /// The place of a column among those that are shown. Throws errc::argument, with these, if it is not there.
  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    const std::size_t at = find_arrow_leaf(leaves, name);
    if (at == leaves.size()) no_column(name, "", leaves);
    return at;
  }
  [[nodiscard]] static std::string listed(std::span<const std::string> names) {
    std::string line;
    for (const std::string& one : names) append(line, {line.empty() ? "" : ", ", one});
    return line;
  }
  [[noreturn, gnu::cold]] static void no_column(std::string_view name, std::string_view purpose,
                                                std::span<const std::string> all) {
    throw error(errc::argument, {"there is no column '", name, "'", purpose, ", only ", listed(all)});
  }
};

/// How many bytes of batches a run keeps in memory, and one may take; and whether checksums are compared.
struct batch_limits {
  std::uint64_t keep, one = 0;
  bool checksums = true;
};

/// The batches of a run that are read, of which those used last are in memory. `Files` has `wanted(used)`,
/// the leaves that a run reads, and `load(session, shard, wanted, limits, help)`.
template <class Files>
class kept_batches {
 public:
  static constexpr bool in_place = false;

  kept_batches(shared<const Files> files, const projection& used, batch_limits limits)
      : files_(std::move(files)),
        limits_(limits),
        wanted_(files_->wanted(used)),
        kept_(files_->objects.size(), limits.keep),
        compared_(files_->objects.empty() ? 0 : files_->objects.back() + std::size_t{1}) {}

  [[nodiscard]] const arrow_batch& get(session_view session, std::size_t shard,
                                       shared<const arrow_batch>& held) const {
    held = kept_.get(shard, [&](std::size_t which, batch_cache::sharing& help) -> const arrow_batch* {
      std::atomic<bool>& compared = compared_[files_->object(which)];
      if (!compared.load(std::memory_order_relaxed)) {
        files_->compare(session, which);
        compared.store(true, std::memory_order_relaxed);
      }
      return files_->load(session, which, wanted_, limits_, &help).release();
    });
    return *held;
  }
  [[nodiscard]] static const arrow_batch* find(std::size_t) noexcept { return nullptr; }
  [[nodiscard]] shared<const arrow_batch> find_kept(std::size_t shard) const noexcept {
    return kept_.find(shard);
  }

 private:
  shared<const Files> files_;
  batch_limits limits_;
  std::vector<std::size_t> wanted_;
  mutable batch_cache kept_;
  mutable fixed_array<std::atomic<bool>> compared_;  // by object, in whose order shards are
};

/// The base of sources of rows in Arrow's form: `Files` knows the files, and `Batches` has those batches of a
/// run that are in memory.
template <class Source, class Storage, class Files, class Batches>
class table_source : public opens_as_plan<Source> {
 public:
  using penstock_part = source_tag;
  using element = arrow_row<Files>;
  using reader = arrow_rows<Storage, Files, stored_in<Files, Storage>, Batches>;

  /// The rows of all files, or those that filters left.
  [[nodiscard]] std::uint64_t size() const noexcept { return table_->shards.samples(); }
  /// Where the batches begin that are read at once.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return table_->shards.starts();
  }
  /// These batches, as shards.
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return table_->shards; }
  /// Covers what decides which rows there are and what they hold.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return table_->mark; }
  [[nodiscard]] std::string describe() const { return table_->describe(); }
  [[nodiscard]] std::vector<source_field> fields() const { return table_->fields(); }
  /// The columns' types, as the children of a struct.
  [[nodiscard]] const arrow_type& schema() const noexcept {
    if constexpr (requires { *table_->schema; })
      return *table_->schema;
    else
      return table_->schema;
  }

  /// Only these columns; see `columns`.
  [[nodiscard]] friend Source operator|(Source source, column_list names)
    requires requires(Files& shown) { shown.show(names.names); }
  {
    return std::move(source).changed([&](Files& shown) { shown.show(names.names); });
  }

 protected:
  using files = stored_in<Files, Storage>;

  /// `args`: what `Files` takes besides a storage's facts and a session.
  template <class... Args>
  explicit table_source(Storage where, Args&&... args) {
    auto session = where.connect();
    Files found(facts_of(where), session, std::forward<Args>(args)...);
    table_.reset(new const files(std::move(where), std::move(found)));
  }

  /// The source with other files.
  template <class Change>
  [[nodiscard]] Source changed(Change&& change) const {
    Source made(static_cast<const Source&>(*this));
    files other(*table_);
    change(other);
    made.table_.reset(new const files(std::move(other)));
    return made;
  }
  [[nodiscard]] const shared<const files>& table() const noexcept { return table_; }

 private:
  shared<const files> table_;
};

}  // namespace penstock::inline v0_1::detail
