// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/loaded_once.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/record_format.hpp>
#include <penstock/source/records/record_reader.hpp>
#include <penstock/source/records/record_sample.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1::detail {

/// Covers where the values of all records are, and those that the index has.
template <class Index>
[[nodiscard]] std::uint64_t mark_of(const Index& index) {
  if constexpr (requires { index.mark(); }) {
    return index.mark();
  } else {
    std::uint64_t mark = index.records();
    const auto add = [&](const value_place& one) {
      mark = hash_words(mark, std::array{one.begin, one.size});
      if (one.in_memory != nullptr) mark = hash_bytes(mark, {one.in_memory, to_size(one.size)});
    };
    for (std::uint64_t i = 0; i < index.records(); ++i)
      if constexpr (places_values<Index>)
        for (std::size_t field = 0; field < index.fields().size(); ++field) add(index.place(i, field));
      else
        add(index.record(i));
    return mark;
  }
}

/// The files of a format as part of a plan, with all their indexes.
template <class Format>
struct indexed_files : known_files {
  using index_type = typename Format::index;
  std::vector<owned<const index_type>> indexes;  // by shard

  indexed_files(const Format& format, storage_facts where, session_view session)
      : indexes(where.names.size()) {
    read_each(*this, where, session, [&](std::size_t i, object_version version) {
      indexes[i] = owned(new const index_type(format.read_index(session, static_cast<object_id>(i))));
      const index_type& index = *indexes[i];
      file_facts found{index.records(), version.size, mark_of(index)};
      if constexpr (requires { index.payload(); }) found.payload = index.payload();
      return found;
    });
    for (std::size_t i = 1; i < indexes.size(); ++i)
      if (!(indexes[i]->fields() == fields()))
        throw error(errc::format, {"the file has other fields than the first one, '", path(0), "'"})
            .in_file(path(i));
  }

  [[nodiscard]] const auto& fields() const noexcept { return indexes.front()->fields(); }
  [[nodiscard]] const auto& fields_of(std::size_t) const noexcept { return fields(); }
  void append_key(std::string& to, std::size_t shard, const index_type& index, std::uint64_t record) const {
    if constexpr (requires { index.key(record); })
      append(to, {std::string_view(index.key(record))});
    else
      append(to, {path(shard).substr(path(shard).rfind('/') + 1), ":", record});
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    if constexpr (requires { Format::mark; })
      return mix64(shards.fingerprint() ^ Format::mark);
    else
      return mix64(shards.fingerprint() ^ hash_bytes(0, bytes_of(Format::source_name)));
  }
  [[nodiscard]] std::string describe() const {
    std::string line =
        text({Format::source_name, "(", indexes.size(), indexes.size() == 1 ? " file, " : " files, ",
              shards.bytes(), " bytes): ", shards.samples(), " samples of "});
    for (std::size_t i = 0; i < fields().size(); ++i)
      append(line, {i == 0 ? "" : ", ", fields()[i].name, " (", fields()[i].type, ")"});
    return line;
  }
  template <class Field>
  static void check_codec(const Field& field, std::string_view codec)
    requires requires { Format::check_codec(field, codec); }
  {
    Format::check_codec(field, codec);
  }
};

/// The indexes of a run, which the plan has.
template <class Files>
class run_indexes {
 public:
  explicit run_indexes(const shared<const Files>& files) noexcept : files_(files.get()) {}
  [[nodiscard]] const auto& get(session_view, std::size_t shard) const noexcept {
    return *files_->indexes[shard];
  }
  [[nodiscard]] const auto* find(std::size_t shard) const noexcept { return files_->indexes[shard].get(); }

 private:
  const Files* files_;
};

/// Those of files whose `load(session, shard)` reads the index of one when it is first used.
template <class Files>
  requires requires(const Files& files, session_view session) { files.load(session, std::size_t{}); }
class run_indexes<Files> {
  using index_type = typename Files::index_type;

 public:
  explicit run_indexes(const shared<const Files>& files)
      : files_(files.get()),
        loaded_(
            new loaded_once<index_type>(files->shards.shards().size(), files->shards.starts()->size() - 1)) {}
  [[nodiscard]] const index_type& get(session_view session, std::size_t shard) const {
    const index_type* known = loaded_->find(shard);
    return known != nullptr ? *known : loaded_->get(shard, [&] { return files_->load(session, shard); });
  }
  /// Null if it is not loaded.
  [[nodiscard]] const index_type* find(std::size_t shard) const noexcept { return loaded_->find(shard); }
  void get_ready(session_view session, std::span<const position> samples) const {
    loaded_->get_ready(
        samples, [&](std::uint64_t index) { return files_->locate(index).shard; },
        [&](std::size_t shard) { (void)get(session, shard); });
  }
  [[nodiscard]] bool are_ready() const noexcept { return loaded_->complete(); }

 private:
  const Files* files_;
  owned<loaded_once<index_type>> loaded_;
};

/// What a run keeps for files of records: their indexes, and which fields are used.
template <class Files, class Session>
class open_records {
  using index_type = typename Files::index_type;

 public:
  using worker = record_worker<Session, Files>;
  using element = record_sample<worker>;

  open_records(const shared<const Files>& files, const projection& used)
      : files_(files.get()), indexes_(files), unread_(used.nothing()) {
    if constexpr (places_values<index_type>) {
      for (std::size_t i = 0; i < files->fields().size(); ++i)
        if (!files->fields()[i].in_index && used.uses(files->fields()[i].name)) used_.push_back(i);
      unread_ = used_.empty();
    }
  }

  [[nodiscard]] const run_indexes<Files>& indexes() const noexcept { return indexes_; }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
    return unread_ || files_->shards.samples() == 0 ? 0 : files_->shards.bytes() / files_->shards.samples();
  }
  void enter(Session& session, std::size_t shard, worker& w) const {
    w.enter(*files_, shard, indexes_.get(session, shard));
  }
  [[nodiscard]] element open(Session& session, const manifest::place& at, worker& w) const {
    w.begin(session, at.sample, unread_);
    return element(w);
  }
  /// Whether files are looked at, which then must be those of the plan.
  [[nodiscard]] static constexpr bool reads() noexcept { return true; }
  [[nodiscard]] static bool needs_confirm(const worker& w) noexcept { return w.needs_confirm(); }
  static void add_context(error& e, Session&, const manifest::place&, const worker& w) { w.add_context(e); }
  [[nodiscard]] std::string key(Session& session, const manifest::place& at) const {
    std::string made;
    if constexpr (requires { files_->append_key(made, at.shard, at.sample); })
      files_->append_key(made, at.shard, at.sample);
    else
      files_->append_key(made, at.shard, indexes_.get(session, at.shard), at.sample);
    return made;
  }

  /// The bytes of a record that are used: one range if they lie close together.
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    if (unread_) return;
    if constexpr (requires { sink.unknown(); })
      if (indexes_.find(at.shard) == nullptr) return sink.unknown();
    const index_type& index = indexes_.get(session, at.shard);
    const extent all = extent_of(index, at.sample);
    if (all.dense()) return sink(session, object, all.begin, all.end - all.begin);
    if constexpr (places_values<index_type>)
      if (all.end != 0)
        for (const std::size_t field : used_)
          if (const value_place one = index.place(at.sample, field);
              one.size != 0 && one.in_memory == nullptr)
            sink(session, object, one.begin, one.size);
  }
  /// Prefetches what says where a record is.
  void glance(const manifest::place& at) const noexcept {
    if (const index_type* index = indexes_.find(at.shard))
      if constexpr (requires { index->prefetch(at.sample); }) try {
          index->prefetch(at.sample);
        } catch (...) {  // it is a hint
        }
  }
  /// From the first to the last byte that is used, if they lie close together; else nothing.
  [[nodiscard]] coming_sample::stretch seen(const manifest::place& at) const noexcept {
    const index_type* const index = indexes_.find(at.shard);
    if (index == nullptr || unread_) return {};
    const extent all = extent_of(*index, at.sample);
    if (!all.dense()) return {};
    return {all.begin, all.end - all.begin};
  }

 private:
  struct extent {
    std::uint64_t begin = std::numeric_limits<std::uint64_t>::max(), end = 0, sum = 0;
    [[nodiscard]] bool dense() const noexcept { return end != 0 && end - begin <= 2 * sum; }
    void add(const value_place& one) noexcept {
      if (one.size == 0 || one.in_memory != nullptr) return;
      begin = std::min(begin, one.begin);
      end = std::max(end, one.begin + one.size);
      sum += one.size;
    }
  };
  [[nodiscard]] extent extent_of(const index_type& index, std::uint64_t record) const noexcept {
    extent all;
    try {
      if constexpr (places_values<index_type>)
        for (const std::size_t field : used_) all.add(index.place(record, field));
      else
        all.add(index.record(record));
    } catch (...) {  // told when the value is asked for
      return {};
    }
    return all;
  }

  const Files* files_;  // which the reader holds
  run_indexes<Files> indexes_;
  std::vector<std::size_t> used_;  // the fields that are read
  bool unread_;
};

/// How `record_files` reads a format: one that has `files` says it itself.
template <class Format>
struct layout_of_format {
  using files = indexed_files<Format>;
  template <class Session>
  using opened = open_records<files, Session>;
};
template <own_layout Format>
struct layout_of_format<Format> : Format {};

/// The files of a plan with their storage: one that has `stored` says it itself.
template <class Layout, class Storage>
struct files_of_layout {
  using type = stored_in<typename Layout::files, Storage>;
};
template <class Layout, class Storage>
  requires requires { typename Layout::template stored<Storage>; }
struct files_of_layout<Layout, Storage> {
  using type = typename Layout::template stored<Storage>;
};

}  // namespace penstock::inline v0_1::detail
