// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/shard_set.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/detail/parallel.hpp>
#include <penstock/source/tar/foreign_index.hpp>
#include <penstock/source/tar/index_builder.hpp>

#include <algorithm>
#include <span>

namespace penstock::inline v0_1 {
namespace detail::tar {

// Whether the indexes come from another program.
PENSTOCK_INLINE bool foreign(index_policy policy) noexcept {
  return policy == index_policy::dali || policy == index_policy::energon;
}

PENSTOCK_INLINE void known_shards::begin(storage_facts where, index_policy chosen) {
  policy = chosen;
  local = where.local;
  if (where.names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
  if (policy == index_policy::require && !local)
    throw error(errc::argument, "index_policy::require needs shards that are local files");
  if (foreign(policy) && !local)
    throw error(errc::argument,
                "the indexes of DALI and Energon are read beside shards that are local files");
}

PENSTOCK_INLINE void known_shards::look(storage_facts where, session_view session, std::size_t threads) {
  const std::span<const std::string> names = where.names;
  signatures.resize(names.size());
  in_memory.resize(names.size());

  // First find the existing indexes: a few system calls per shard, so threads pay off only for many
  // shards.
  std::vector<index_header> headers(names.size());
  std::vector<std::size_t> found(names.size(), 0);
  const std::size_t lookers = std::min<std::size_t>(threads == 0 ? 8 : threads, 1 + names.size() / 256);
  for_each_in_parallel(names.size(), lookers, [&](std::size_t i) {
    signatures[i] = session.signature(static_cast<object_id>(i));
    for (const std::string& path : index_files(names[i])) {
      const auto [state, header] = peek_index(path, signatures[i]);
      found[i] = state == index_state::good ? 1 : 0;
      headers[i] = header;
      if (found[i] != 0) return;
      if (policy == index_policy::require) {
        throw error(errc::missing, {"the index ", path, " of the shard ", names[i], " ", to_text(state),
                                    ", and index_policy::require allows no other"})
            .in_file(names[i]);
      }
    }
  });
  // Then build the missing ones, which takes a pass over the headers of each shard.
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (found[i] == 0) missing.push_back(i);
  }
  for_each_in_parallel(missing.size(), threads, [&](std::size_t m) {
    const std::size_t i = missing[m];
    shared<const buffer> built = build(session, i, names[i]);
    headers[i] = *index_header::load(built->view());
    signatures[i] = {headers[i].shard_size, headers[i].shard_stamp};
    if (!keep(names[i], *built)) in_memory[i] = std::move(built);
  });
  std::vector<manifest::shard> entries(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    entries[i] = {names[i],           headers[i].shard_size, headers[i].samples,     headers[i].payload,
                  headers[i].content, signatures[i].stamp,   headers[i].unended != 0};
  }
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE void known_shards::check_ends() const {
  if (shards.unended() == 0) return;
  const auto all = shards.shards();
  const auto first = std::find_if(all.begin(), all.end(), [](const manifest::shard& s) { return s.unended; });
  throw error(errc::format, {"the shard has no end-of-archive blocks: it may have been cut off between two "
                             "members; require_end allows no such shard, and there are ",
                             shards.unended(), " of ", all.size()})
      .at_offset(first->bytes)
      .in_file(first->name);
}

PENSTOCK_INLINE void known_shards::take(storage_facts where, index_policy chosen, manifest known) {
  policy = chosen;
  local = where.local;
  shards = std::move(known);
  const std::span<const std::string> names = where.names;
  if (names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
  if (names.size() != shards.shards().size()) {
    throw error(errc::argument,
                {"the manifest lists ", shards.shards().size(), " shards, and the storage has ", names.size(),
                 "; give the storage the manifest's names"});
  }
  signatures.resize(names.size());
  in_memory.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const manifest::shard& entry = shards.shards()[i];
    if (names[i] != entry.name) {
      throw error(errc::argument, {"the manifest calls shard ", i, " ", entry.name, ", and here it is ",
                                   names[i], "; give the storage the manifest's names"});
    }
    signatures[i] = {entry.bytes, entry.stamp};
  }
}

PENSTOCK_INLINE bool known_shards::has_stamps() const noexcept {
  return std::all_of(signatures.begin(), signatures.end(),
                     [](const object_signature& s) { return s.stamp != 0; });
}

PENSTOCK_INLINE void known_shards::learn_stamps(session_view session) {
  for (std::size_t i = 0; i < signatures.size(); ++i) {
    if (signatures[i].stamp != 0) continue;
    const object_signature found = session.signature(static_cast<object_id>(i));
    if (found.size != signatures[i].size) {
      throw error(errc::io, {"the shard has ", found.size, " bytes, and the manifest says ",
                             signatures[i].size, "; make the manifest again"})
          .in_file(shards.shards()[i].name);
    }
    signatures[i] = found;
  }
}

PENSTOCK_INLINE shared<const buffer> known_shards::build(session_view session, std::size_t shard,
                                                         const std::string& name) const {
  const auto id = static_cast<object_id>(shard);
  return shared<const buffer>(
      new const buffer(foreign(policy) ? build_foreign_index(session, id, name, policy, extension_limit)
                                       : build_index(session, id, name, extension_limit)));
}

PENSTOCK_INLINE std::vector<std::string> known_shards::index_files(const std::string& name) const {
  std::vector<std::string> files;
  if (!local || foreign(policy)) return files;
  files.push_back(index_path(name));
  if (policy != index_policy::cache) return files;
  if (std::string cached = cached_index_path(name); !cached.empty()) files.push_back(std::move(cached));
  return files;
}

PENSTOCK_INLINE bool known_shards::keep(const std::string& name, const buffer& built) const {
  if (!local) return false;
  if (policy == index_policy::keep) return keep_index(index_path(name), built.view());
  if (policy != index_policy::cache) return false;
  const std::string cached = cached_index_path(name);
  return !cached.empty() && keep_index(cached, built.view());
}

PENSTOCK_INLINE std::string known_shards::describe(std::string where) const {
  if (where.empty()) where = std::to_string(signatures.size()) + " objects";
  return detail::text({"webdataset(", where, "): ", shards.shards().size(), " shards, ", shards.samples(),
                       " samples, ", shards.payload(), " bytes"});
}

PENSTOCK_INLINE std::vector<std::string> names_in(const manifest& known) {
  std::vector<std::string> names;
  for (const auto& one : known.shards()) names.push_back(one.name);
  return names;
}

PENSTOCK_INLINE open_indexes::open_indexes(shared<const known_shards> set, const projection& used)
    : set_(std::move(set)), used_(used), slots_(std::make_unique<slots>(set_->signatures.size())) {}

PENSTOCK_INLINE open_indexes::slots::~slots() {
  for (auto& one : loaded) delete one.load(std::memory_order_relaxed);
}

// Whether an index matches its shard in the manifest.
PENSTOCK_INLINE bool belongs(const loaded_index& index, const manifest::shard& entry) noexcept {
  const index_header& header = index.tables().header();
  return header.content == entry.content && header.samples == entry.samples &&
         header.shard_size == entry.bytes;
}

PENSTOCK_INLINE const shard_index& open_indexes::load(session_view session, std::size_t shard) const {
  const std::scoped_lock lock(slots_->mutexes[shard % slots_->mutexes.size()]);
  auto& slot = slots_->loaded[shard];
  if (const loaded_index* other = slot.load(std::memory_order_acquire)) return other->tables();
  const manifest::shard& entry = set_->shards.shards()[shard];
  if (session.signature(static_cast<object_id>(shard)) != set_->signatures[shard]) {
    throw error(errc::io, "the shard was changed after the dataset was opened; open it again")
        .in_file(entry.name);
  }
  std::unique_ptr<loaded_index> fresh = set_->in_memory[shard]
                                            ? loaded_index::from_buffer(set_->in_memory[shard])
                                            : from_file(session, shard, entry);
  if (!fresh || !belongs(*fresh, entry)) {
    throw error(errc::io, "the shard does not hold what its manifest says; open the dataset again")
        .in_file(entry.name);
  }
  fresh->use(used_);
  const loaded_index* shown = fresh.release();
  slot.store(shown, std::memory_order_release);
  slots_->missing.fetch_sub(1, std::memory_order_relaxed);
  return shown->tables();
}

PENSTOCK_INLINE void open_indexes::get_ready(session_view session, std::span<const position> samples) const {
  constexpr std::size_t at_once = 8;
  std::vector<std::size_t> missing;
  for (const position sample : samples) {
    const std::size_t shard = set_->locate(sample.index).shard;
    if (slots_->loaded[shard].load(std::memory_order_relaxed) == nullptr &&
        std::find(missing.begin(), missing.end(), shard) == missing.end())
      missing.push_back(shard);
  }
  if (missing.empty()) return;
  for_each_in_parallel(missing.size(), std::min(missing.size(), at_once), [&](std::size_t i) {
    try {
      (void)get(session, missing[i]);
    } catch (...) {
    }
  });
}

// The header was valid when the plan was made. If the rest is not, the index is rebuilt.
PENSTOCK_INLINE std::unique_ptr<loaded_index> open_indexes::from_file(session_view session, std::size_t shard,
                                                                      const manifest::shard& entry) const {
  for (const std::string& path : set_->index_files(entry.name)) {
    auto found = loaded_index::from_file(path);
    if (found && belongs(*found, entry)) return found;
  }
  if (set_->policy == index_policy::require) {
    throw error(errc::checksum,
                {"the index ", index_path(entry.name), " of the shard ", entry.name, " ",
                 to_text(index_state::damaged), ", and index_policy::require allows no other"})
        .in_file(entry.name);
  }
  shared<const buffer> built = set_->build(session, shard, entry.name);
  const bool kept = set_->keep(entry.name, *built);
  auto fresh = loaded_index::from_buffer(std::move(built));
  if (!fresh || !belongs(*fresh, entry)) {
    const auto files = set_->index_files(entry.name);
    throw error(errc::io, {"the index ", files.empty() ? "" : files.back() + " ", "of the shard ", entry.name,
                           " does not hold what its header says; ",
                           kept ? "it was made again: open the dataset again" : "delete it"})
        .in_file(entry.name);
  }
  return fresh;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
