// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/ipc_batches.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/loaded_once.hpp>

#include <algorithm>
#include <array>
#include <atomic>

// Source: Arrow, "Arrow columnar format", "Serialization and interprocess communication (IPC)".
namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE ipc_files::own_columns own_ipc_columns(const std::vector<std::string>& paths,
                                                       const ipc_file& file) {
  const std::vector<std::string> own = arrow_leaf_paths(file.schema);
  ipc_files::own_columns made{own.size(), {}};
  if (own == paths) return made;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < own.size(); ++i) places.emplace(own[i], i);
  for (const std::string& path : paths) {
    const auto at = places.find(path);
    made.places.push_back(at == places.end() ? own.size() : at->second);
  }
  return made;
}

PENSTOCK_INLINE ipc_files::ipc_files(storage_facts where, session_view session) {
  if (where.names.empty()) throw error(errc::argument, "a dataset needs at least one file");
  std::vector<manifest::shard> entries;
  std::uint64_t hash = mix64(0x697063);
  column_union all;
  for (std::size_t i = 0; i < where.names.size(); ++i) {
    const std::string& path = where.names[i];
    const auto object = static_cast<object_id>(i);
    reading_object(session, object, path, [&] {
      const object_version version = session.version(object);
      files.push_back(ipc_file::read(session, object));
      learn_ends(object, ends_of(session, object, version.size));
      const ipc_file& file = files.back();
      all.add(file.schema, path);
      std::uint64_t rows = 0;
      for (std::size_t k = 0; k < file.batches.size(); ++k) {
        const ipc_batch& one = file.batches[k];
        entries.push_back({path, one.body_size, one.rows, one.body_size, one.body, version.stamp});
        versions.push_back(version);
        objects.push_back(object);
        batch_in.push_back(k);
        rows_before.push_back(rows);
        rows += one.rows;
      }
    });
  }
  schema = all.schema();
  conflicts = all.conflicts();
  leaves = arrow_leaf_names(schema);
  const std::vector<std::string> paths = arrow_leaf_paths(schema);
  for (const ipc_file& one : files) own.push_back(own_ipc_columns(paths, one));
  shards = manifest(std::move(entries));
  mark = hash_words(hash_bytes(hash, bytes_of(schema.text())), std::array{shards.fingerprint()});
}

PENSTOCK_INLINE std::vector<const arrow_type*> ipc_files::types() const {
  const std::vector<std::string> names = arrow_leaf_names(schema);
  std::vector<const arrow_type*> all = arrow_leaf_types(schema);
  if (leaves == names) return all;
  std::vector<const arrow_type*> made;
  for (const std::string& leaf : leaves)
    made.push_back(all[static_cast<std::size_t>(std::ranges::find(names, leaf) - names.begin())]);
  return made;
}
PENSTOCK_INLINE std::vector<source_field> ipc_files::fields() const {
  const std::vector<const arrow_type*> all = types();
  std::vector<source_field> made;
  for (std::size_t i = 0; i < leaves.size(); ++i) made.push_back({leaves[i], all[i]->text()});
  return made;
}
PENSTOCK_INLINE void ipc_files::show(const std::vector<std::string>& names) {
  const std::vector<std::string> all = arrow_leaf_names(schema), all_paths = arrow_leaf_paths(schema);
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    (void)place_of(name);
    paths.push_back(all_paths[find_arrow_leaf(all, name)]);
  }
  leaves = names;
  own.clear();
  for (const ipc_file& one : files) own.push_back(own_ipc_columns(paths, one));
  for (const std::string& name : names) mark = hash_bytes(mark, bytes_of(name));
}

/// Reads the columns of a batch. Buffers are shown in place, or read to `owned`.
struct ipc_loader {
  session_view session;
  object_id object;
  const ipc_file& file;
  const ipc_place& place;
  ipc_batches::unpack_call unpack;
  /// The parts of a dictionary.
  const std::vector<std::vector<const arrow_column*>>* dictionaries;  // as `dictionary_ids`
  const std::vector<std::int64_t>* dictionary_ids;

  flat_table batch;
  std::uint64_t limit;  // of the bytes that are owned
  flat_table::vector nodes = batch.list(1, 16), buffers = batch.list(2, 16), variadic = batch.list(4, 8);
  std::optional<flat_table> compression = batch.table(3);
  bool in_place = session.views() && !compression && !file.swapped;
  std::uint64_t used_bytes = 0, owned_bytes = 0;
  std::size_t node = 0, at = 0, view = 0;
  std::int64_t nulls = 0;  // of the column that was begun last
  std::vector<buffer> owned{};

  [[noreturn, gnu::cold]] void damaged(const arrow_type& type, std::string_view what) const {
    bad_ipc({"the column '", type.name, "' of the batch ", what, ": the file is damaged"}, place.body);
  }

  // A buffer that has `needed` bytes at least. Buffers that nobody uses are not read.
  [[nodiscard]] bytes_view take(const arrow_type& type, std::uint64_t needed, std::uint64_t swapped_width,
                                bool used) {
    if (at == buffers.size()) damaged(type, "lacks a buffer");
    const auto offset = buffers.number<std::uint64_t>(at, 0), size = buffers.number<std::uint64_t>(at, 8);
    ++at;
    if (offset > place.body_size || size > place.body_size - offset)
      damaged(type, "has a buffer outside of it");
    if (!used || (size == 0 && needed == 0)) return {};
    // Buffers do not overlap; if they did, few bytes could ask for much memory.
    if (size > place.body_size - used_bytes) damaged(type, "has buffers that overlap");
    used_bytes += size;
    bytes_view found;
    if (in_place) {
      found = session.view(object, place.body + offset, size);
    } else {
      if (!compression) own(size);
      buffer room(to_size(size));
      session.read(object, place.body + offset, room.span());
      if (compression && size != 0) room = unpacked(type, std::move(room));
      if (file.swapped && swapped_width > 1) swap(room, to_size(swapped_width));
      found = room.view();
      owned.push_back(std::move(room));
    }
    if (found.size() < needed) damaged(type, "has a buffer that is too short for its rows");
    return found;
  }
  [[nodiscard]] buffer unpacked(const arrow_type& type, buffer packed) {
    constexpr std::size_t head = 8;
    if (packed.size() < head) damaged(type, "has a compressed buffer without its length");
    const auto size = static_cast<std::int64_t>(load_little<std::uint64_t>(packed.data()));
    const bytes_view content = packed.view().subspan(head);
    buffer made;
    if (size == -1) {  // not worth compressing
      own(content.size());
      made.append(content);
      return made;
    }
    // Neither format packs better than this, so that a damaged length asks for no memory.
    constexpr std::uint64_t best = 1 << 16;
    if (size < 0 || static_cast<std::uint64_t>(size) / best > content.size())
      damaged(type, "has a compressed buffer of an impossible length");
    own(static_cast<std::uint64_t>(size));
    made.resize_for_overwrite(static_cast<std::size_t>(size));
    const std::string_view format = compression->number<std::uint8_t>(0) == 0 ? "lz4" : "zstd";
    const auto done = unpack(content, made.span(), format);
    if (!done)
      throw error(errc::argument, {"the batches are compressed with ", format, ": write arrow_ipc<unpack_",
                                   format, ">(...), and link penstock::", format});
    if (*done != made.size()) damaged(type, "has a compressed buffer that is shorter than it says");
    return made;
  }
  void own(std::uint64_t bytes) {
    if (bytes > limit - owned_bytes)
      throw error(errc::limit,
                  {"the batch needs more than ", limit,
                   " bytes of memory; raise it with arrow_ipc_options{.limit = ...}, or write smaller "
                   "batches"})
          .at_offset(place.body);
    owned_bytes += bytes;
  }
  static void swap(buffer& room, std::size_t width) noexcept {
    std::byte* const begin = room.data();
    for (std::size_t i = 0; i + width <= room.size(); i += width) std::reverse(begin + i, begin + i + width);
  }

  [[nodiscard]] static std::uint64_t bits(std::uint64_t rows) noexcept { return rows / 8 + (rows % 8 != 0); }
  [[nodiscard]] std::uint64_t times(const arrow_type& type, std::uint64_t rows, std::uint64_t width) const {
    std::uint64_t all = 0;
    if (__builtin_mul_overflow(rows, width, &all)) damaged(type, "has more rows than there can be");
    return all;
  }

  // The number of rows of the next column, and of those that are null.
  void count_rows(arrow_column& made) {
    if (node == nodes.size()) damaged(*made.type, "lacks a number of rows");
    const auto rows = nodes.number<std::int64_t>(node, 0);
    nulls = nodes.number<std::int64_t>(node, 8);
    ++node;
    if (rows < 0) damaged(*made.type, "has a negative number of rows");
    made.length = static_cast<std::uint64_t>(rows);
  }
  void read_validity(arrow_column& made, bool used) {
    const bytes_view validity = take(*made.type, 0, 0, used);
    if (nulls != 0 && !validity.empty()) {
      if (validity.size() < bits(made.length)) damaged(*made.type, "has too few bits for its rows");
      made.validity = validity.data();
    } else if (nulls > 0 && used && made.length != 0) {
      damaged(*made.type, "has nulls without saying which");
    }
  }
  // `used`: whether values of the column, or of one inside it, are asked for.
  [[nodiscard]] arrow_column column(const arrow_type& type, bool used) {
    arrow_column made;
    made.type = &type;
    count_rows(made);
    if (type.layout == arrow_layout::nothing) return made;
    if (type.layout == arrow_layout::other) {
      for (std::uint64_t i = 0; i < type.unread_buffers; ++i) (void)take(type, 0, 0, false);
    } else {
      read_validity(made, used);
    }
    const auto offsets = [&](std::uint64_t width) {
      made.offsets =
          take(type, made.length == 0 ? 0 : times(type, made.length + 1, width), width, used).data();
    };
    switch (type.layout) {
      case arrow_layout::bits:
        made.values = take(type, bits(made.length), 0, used).data();
        break;
      case arrow_layout::fixed: {
        // Dates and times are numbers; decimals swap as one, other bytes not at all, intervals by their
        // parts.
        const std::uint64_t parts = type.format == "tiD" ? 4 : type.format == "tin" ? 0 : type.width;
        made.values =
            take(type, times(type, made.length, type.width), type.format.starts_with('w') ? 0 : parts, used)
                .data();
        break;
      }
      case arrow_layout::bytes32:
      case arrow_layout::bytes64: {
        offsets(type.layout == arrow_layout::bytes32 ? 4 : 8);
        const bytes_view all = take(type, 0, 0, used);
        made.values = all.data();
        made.bytes = all.size();
        break;
      }
      case arrow_layout::views: {
        made.values = take(type, times(type, made.length, 16), 0, used).data();
        if (view == variadic.size()) damaged(type, "lacks a number of buffers");
        const auto count = variadic.number<std::uint64_t>(view++);
        if (count > buffers.size() - at) damaged(type, "has more buffers than there are");
        for (std::uint64_t i = 0; i < count; ++i) made.buffers.push_back(take(type, 0, 0, used));
        break;
      }
      case arrow_layout::list32:
      case arrow_layout::list64:
        offsets(type.layout == arrow_layout::list32 ? 4 : 8);
        break;
      case arrow_layout::list_view32:
      case arrow_layout::list_view64: {
        const std::uint64_t width = type.layout == arrow_layout::list_view32 ? 4 : 8;
        made.offsets = take(type, times(type, made.length, width), width, used).data();
        made.sizes = take(type, times(type, made.length, width), width, used).data();
        break;
      }
      default:
        break;
    }
    if (used && file.swapped && (type.layout == arrow_layout::views || type.format == "tin"))
      bad_ipc({"the column '", type.name, "' is of type ", type.text(),
               " and of the other byte order, which is not read"},
              place.body);
    if (!type.dictionary.empty()) {
      if (!used) return made;
      const auto found = std::ranges::find(*dictionary_ids, type.dictionary_id);
      // A column without a value may get its dictionary later.
      if (found == dictionary_ids->end()) return made;
      made.dictionary = (*dictionaries)[static_cast<std::size_t>(found - dictionary_ids->begin())];
      return made;
    }
    for (const arrow_type& child : type.children) {
      made.children.push_back(column(child, used));
      if (type.layout == arrow_layout::record && made.children.back().length < made.length)
        damaged(child, "has fewer rows than the struct it is in");
    }
    return made;
  }
  // The children of a struct, of which the leaves that are used are read.
  [[nodiscard]] arrow_column record(const arrow_type& type, const std::vector<bool>& used, std::size_t& leaf,
                                    bool root, std::uint64_t rows) {
    arrow_column made;
    made.type = &type;
    made.length = rows;
    if (!root) {
      if (node == nodes.size()) damaged(type, "lacks a number of rows");
      count_rows(made);
      read_validity(made, true);
    }
    for (const arrow_type& child : type.children) {
      if (child.layout == arrow_layout::record && child.dictionary.empty())
        made.children.push_back(record(child, used, leaf, false, 0));
      else
        made.children.push_back(column(child, used[leaf++]));
      if (made.children.back().length < made.length) damaged(child, "has fewer rows than it says");
    }
    return made;
  }
};

struct ipc_batches::state {
  // The dictionaries of a file, in its order.
  struct values {
    std::vector<arrow_batch> all;
  };
  shared<const ipc_files> files;
  std::vector<bool> used;                // by leaf
  std::vector<const arrow_type*> types;  // that the dataset has, by leaf
  std::vector<bool> widens;              // by object: whether a leaf that is used has another type in it
  batch_limits limits;
  unpack_call unpack;
  loaded_once<arrow_batch> mapped;
  loaded_once<values> dictionaries;
  batch_cache kept;                         // those that are not shown
  fixed_array<std::atomic<bool>> compared;  // by object

  state(shared<const ipc_files> known, const projection& wanted, batch_limits maximum, unpack_call call)
      : files(std::move(known)),
        limits(maximum),
        unpack(call),
        mapped(files->batch_in.size(), files->batch_in.size()),
        dictionaries(files->files.size(), files->files.size()),
        kept(files->batch_in.size(), maximum.keep),
        compared(files->files.size()) {
    check_conflicts(files->conflicts, files->leaves, wanted);
    for (const std::string& leaf : files->leaves) used.push_back(wanted.uses(leaf));
    types = files->types();
    for (std::size_t i = 0; i < files->files.size(); ++i) widens.push_back(widens_file(i));
  }

  [[nodiscard]] bool widens_file(std::size_t object) const {
    if (files->files[object].schema.reads_like(files->schema)) return false;
    const std::vector<const arrow_type*> own = arrow_leaf_types(files->files[object].schema);
    const std::vector<std::size_t>& places = files->own[object].places;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const std::size_t place = places.empty() ? i : places[i];
      if (used[i] && place < own.size() && !reads_unchanged(*own[place], *types[i])) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_mapped(session_view session, object_id object) const noexcept {
    const ipc_file& file = files->files[object];
    return session.views() && !file.compressed && !file.swapped && !widens[object];
  }

  // Dictionaries by number, of which each has those parts that count for a batch.
  struct known_dictionaries {
    std::vector<std::int64_t> ids;
    std::vector<std::vector<const arrow_column*>> parts;

    void add(const ipc_dictionary& one, const arrow_column& column) {
      const auto found = std::ranges::find(ids, one.id);
      if (found == ids.end()) {
        ids.push_back(one.id);
        parts.push_back({&column});
        return;
      }
      std::vector<const arrow_column*>& list = parts[static_cast<std::size_t>(found - ids.begin())];
      if (!one.delta) list.clear();
      list.push_back(&column);
    }
  };

  // The header of a message, and the bytes that it is in.
  struct message_header {
    object_bytes bytes;
    flat_table header;

    message_header(session_view session, object_id object, const ipc_place& place)
        : bytes(session.range(object, place.begin, place.size)), header(ipc_message(bytes).header) {}
  };

  [[nodiscard]] const values& dictionaries_of(session_view session, object_id object) {
    if (const values* const known = dictionaries.find(object)) return *known;
    return dictionaries.get(object, [&] {
      const ipc_file& file = files->files[object];
      auto made = std::make_unique<values>();
      made->all.resize(file.dictionaries.size());
      known_dictionaries known;
      for (std::size_t i = 0; i < file.dictionaries.size(); ++i) {
        const ipc_dictionary& one = file.dictionaries[i];
        const arrow_type* const type = file.dictionary_type(one.id);
        if (type == nullptr) continue;  // no column uses it
        const message_header message(session, object, one);
        const auto data = message.header.table(1);
        if (!data) bad_ipc({"the dictionary has no values"}, one.begin);
        ipc_loader load{session, object, file, one, unpack, &known.parts, &known.ids, *data, limits.one};
        arrow_batch& batch = made->all[i];
        batch.root = load.column(*type, true);
        batch.owned = std::move(load.owned);
        known.add(one, batch.root);
      }
      return made.release();
    });
  }

  // The columns of a file that has others, or in another order: those that it lacks are null.
  void place_columns(arrow_batch& made, const ipc_files::own_columns& own) const {
    const std::vector<arrow_leaf> there = arrow_leaves(made.root);
    for (std::size_t i = 0; i < own.places.size(); ++i)
      made.leaves.push_back(own.places[i] == own.count
                                ? lacking_leaf(made, files->leaves[i], made.root.length)
                                : there[own.places[i]]);
  }

  [[nodiscard]] const arrow_batch* load(session_view session, std::size_t shard) {
    const object_id object = files->object(shard);
    auto made = std::make_unique<arrow_batch>();
    reading_object(session, object, files->path(shard), [&] {
      if (!compared[object].load(std::memory_order_relaxed)) {
        files->compare(session, shard);
        compared[object].store(true, std::memory_order_relaxed);
      }
      const ipc_file& file = files->files[object];
      const std::size_t which = files->batch_in[shard];
      const ipc_batch& place = file.batches[which];
      known_dictionaries known;
      if (!file.dictionaries.empty()) {
        const values& all = dictionaries_of(session, object);
        for (std::size_t i = 0; i < file.dictionaries.size(); ++i)
          if (file.dictionaries[i].before <= which && all.all[i].root.type != nullptr)
            known.add(file.dictionaries[i], all.all[i].root);
      }
      const message_header message(session, object, place);
      ipc_loader load{session,      object,     file,           place,     unpack,
                      &known.parts, &known.ids, message.header, limits.one};
      std::size_t leaf = 0;
      const ipc_files::own_columns& own = files->own[object];
      if (own.places.empty()) {
        made->root = load.record(file.schema, used, leaf, true, place.rows);
        made->leaves = arrow_leaves(made->root);
      } else {
        std::vector<bool> wanted(own.count);
        for (std::size_t i = 0; i < used.size(); ++i)
          if (own.places[i] != own.count) wanted[own.places[i]] = used[i];
        made->root = load.record(file.schema, wanted, leaf, true, place.rows);
        place_columns(*made, own);
      }
      made->owned = std::move(load.owned);
      if (widens[object])
        for (std::size_t i = 0; i < used.size(); ++i)
          if (used[i]) widen_leaf(*made, made->leaves[i], *types[i]);
    });
    return made.release();
  }
};

PENSTOCK_INLINE ipc_batches::ipc_batches(shared<const ipc_files> files, const projection& used,
                                         batch_limits limits, unpack_call unpack)
    : state_(new state(std::move(files), used, limits, unpack)) {}
PENSTOCK_INLINE ipc_batches::ipc_batches(ipc_batches&&) noexcept = default;
PENSTOCK_INLINE ipc_batches::~ipc_batches() = default;

PENSTOCK_INLINE const arrow_batch& ipc_batches::get(session_view session, std::size_t shard,
                                                    shared<const arrow_batch>& held) const {
  state& all = *state_;
  if (const arrow_batch* const known = all.mapped.find(shard)) return *known;
  if (all.is_mapped(session, all.files->object(shard)))
    return all.mapped.get(shard, [&] { return all.load(session, shard); });
  held =
      all.kept.get(shard, [&](std::size_t which, batch_cache::sharing&) { return all.load(session, which); });
  return *held;
}
PENSTOCK_INLINE const arrow_batch* ipc_batches::find(std::size_t shard) const noexcept {
  return state_->mapped.find(shard);
}
PENSTOCK_INLINE shared<const arrow_batch> ipc_batches::find_kept(std::size_t shard) const noexcept {
  return state_->kept.find(shard);
}

}  // namespace penstock::inline v0_1::detail
