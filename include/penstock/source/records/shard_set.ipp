// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/shard_set.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/files/parallel.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE error index_required(const std::string& index, const std::string& shard, std::string_view why,
                                     errc code) {
  return error(code, {"the index ", index, " of the shard ", shard, " ", why,
                      ", and index_policy::require allows no other; index_policy::keep writes it beside a "
                      "file, index_shards into a store"})
      .in_file(shard);
}

PENSTOCK_INLINE known_shards::known_shards(index_rules chosen, bool latent, const store_calls* in_store)
    : rules(std::move(chosen)), store(in_store), distant(latent) {}
PENSTOCK_INLINE known_shards::~known_shards() = default;

PENSTOCK_INLINE void known_shards::check_any(std::size_t shards) {
  if (shards == 0) throw error(errc::argument, "a dataset needs at least one shard");
}

PENSTOCK_INLINE void known_shards::look(storage_facts where, session_view session, sidecar_objects& near) {
  local = where.local;
  const std::span<const std::string> names = where.names;
  // Threads that wait for a distant store cost little.
  constexpr std::size_t max_in_flight = 32;
  const std::size_t threads = rules.threads == 0 && distant ? max_in_flight : rules.threads;
  versions.resize(names.size());
  in_memory.resize(names.size());

  // First find the existing indexes: a few system calls per shard, so threads pay off only for many
  // shards, unless it takes a request to know that a shard is the same.
  std::vector<index_header> headers(names.size());
  std::vector<index_state> states(names.size(), index_state::missing);
  const std::size_t lookers =
      distant ? threads : std::min<std::size_t>(threads == 0 ? 8 : threads, 1 + names.size() / 256);
  for_each_in_parallel(names.size(), lookers, [&](std::size_t i) {
    versions[i] = session.version(static_cast<object_id>(i));
    for (const std::string& path : index_files(names[i], versions[i])) {
      auto [state, header] = peek_index(path, versions[i]);
      if (state == index_state::good &&
          ((header.bytewise != 0) != rules.kind->bytewise || !header.fits(rules.skip_apple_double)))
        state = index_state::stale;
      headers[i] = header;
      if (state != index_state::missing) states[i] = state;
      if (state == index_state::good) return;
      if (rules.index == index_policy::require && local)
        throw index_required(path, names[i], to_text(state), errc::missing);
    }
  });
  // Then get the missing ones: from the store, or by a pass over the headers of the shard.
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (states[i] != index_state::good) missing.push_back(i);
  }
  std::vector<shard_damage> found_damages(missing.size());
  for_each_in_parallel(missing.size(), threads, [&](std::size_t m) {
    const std::size_t i = missing[m];
    shared<const buffer> built = build(session, near, i, names[i], states[i], found_damages[m]);
    headers[i] = *index_header::load(built->view());
    versions[i] = {headers[i].shard_size, headers[i].shard_stamp};
    if (!keep(names[i], versions[i], *built, found_damages[m])) in_memory[i] = std::move(built);
  });
  for (std::size_t m = 0; m < missing.size(); ++m)
    if (shard_damage& one = found_damages[m]; one.found)
      damages.push_back({names[missing[m]], one.offset, std::move(one.reason), headers[missing[m]].samples});
  std::vector<manifest::shard> entries(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    entries[i] = {names[i],           headers[i].shard_size, headers[i].samples,     headers[i].payload,
                  headers[i].content, versions[i].stamp,     headers[i].unended != 0};
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

PENSTOCK_INLINE void known_shards::take(storage_facts where, manifest known) {
  local = where.local;
  shards = std::move(known);
  const std::span<const std::string> names = where.names;
  check_any(names.size());
  if (names.size() != shards.shards().size()) {
    throw error(errc::argument,
                {"the manifest lists ", shards.shards().size(), " shards, and the storage has ", names.size(),
                 "; give the storage the manifest's names"});
  }
  versions.resize(names.size());
  in_memory.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const manifest::shard& entry = shards.shards()[i];
    if (names[i] != entry.name) {
      throw error(errc::argument, {"the manifest calls shard ", i, " ", entry.name, ", and here it is ",
                                   names[i], "; give the storage the manifest's names"});
    }
    versions[i] = {entry.bytes, entry.stamp};
  }
}

PENSTOCK_INLINE bool known_shards::has_stamps() const noexcept {
  return std::all_of(versions.begin(), versions.end(), [](const object_version& s) { return s.stamp != 0; });
}

PENSTOCK_INLINE void known_shards::learn_stamps(session_view session) {
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i].stamp != 0) continue;
    const object_version found = session.version(static_cast<object_id>(i));
    if (found.size != versions[i].size) {
      throw error(errc::io, {"the shard has ", found.size, " bytes, and the manifest says ", versions[i].size,
                             "; make the manifest again"})
          .in_file(shards.shards()[i].name);
    }
    versions[i] = found;
  }
}

// Whether an index from the store belongs to the shard; writes the shard's version into it. It is taken as it
// is if it was made for this version; one that was made elsewhere, from a copy of the shard with another
// stamp, is compared with a few headers.
PENSTOCK_INLINE bool adopt(const known_shards& set, buffer& bytes, session_view session, object_id id,
                           object_version shard, std::string& why) {
  const auto tables = shard_index::over(bytes.view());
  const index_rules& rules = set.rules;
  if (!tables || (tables->header().bytewise != 0) != rules.kind->bytewise) {
    why = to_text(index_state::damaged);
    return false;
  }
  index_header header = tables->header();
  const bool same = header.shard_size == shard.size && header.shard_stamp == shard.stamp && shard.stamp != 0;
  if (!header.fits(rules.skip_apple_double) ||
      (!same && (header.shard_size != shard.size ||
                 !rules.kind->agrees(session, id, *tables, set.pace(), rules.extension_limit)))) {
    why = to_text(index_state::stale);
    return false;
  }
  header.shard_stamp = shard.stamp;
  header.store(bytes.data());
  return true;
}

PENSTOCK_INLINE std::optional<buffer> find_in_store(const known_shards& set, session_view session,
                                                    object_id id, sidecar_objects& near, std::string& why) {
  const object_version shard = session.version(id);
  try {
    auto own = near.read(id, own_index, max_index_bytes(shard.size), &why);
    if (own && adopt(set, *own, session, id, shard, why)) return own;
  } catch (const error& e) {
    // If the shard itself is damaged, the scan reports it.
    if (!depends_on_bytes(e.code())) throw;
  }
  return std::nullopt;
}

PENSTOCK_INLINE shared<const buffer> known_shards::build(session_view session, sidecar_objects& near,
                                                         std::size_t shard, const std::string& name,
                                                         index_state own, shard_damage& damage) const {
  const auto id = static_cast<object_id>(shard);
  const auto made = [](buffer bytes) { return shared<const buffer>(new const buffer(std::move(bytes))); };
  const foreign_index* const other = rules.index.foreign_;
  const auto translated = [&] {
    return made(other->build(*other,
                             {session, id, {}, rules.extension_limit, pace(), rules.skip_apple_double}, name,
                             local ? nullptr : &near));
  };
  if (rules.index.own_ == own_index_use::none) return translated();
  std::string why(to_text(own));
  if (!local) {
    if (auto found = store->find(*this, session, id, near, why)) return made(std::move(*found));
  }
  if (other != nullptr) try {
      return translated();
    } catch (const error& e) {
      if (!depends_on_bytes(e.code())) throw;  // what is wrong with the shard itself is said by the scan
      append(why, {"; ", e.message()});
    }
  if (rules.index.own_ == own_index_use::require)
    throw index_required(own_index.of(name), name, "cannot be used (" + why + ")", errc::missing);
  const bool takes = rules.on_damaged_shard == on_damaged_shard::take_what_is_there;
  return made(rules.kind->build(session, id, name, rules.extension_limit, pace(),
                                {rules.skip_apple_double, takes ? &damage : nullptr}));
}

// The path in the cache folder is empty if there is no such folder: then no such file is found or written.
PENSTOCK_INLINE std::vector<std::string> known_shards::index_files(const std::string& name,
                                                                   object_version shard) const {
  if (rules.index.own_ == own_index_use::none) return {};
  if (!local) return {store->kept_path(rules.index_folder, name, shard)};
  if (rules.index.own_ != own_index_use::cache) return {index_path(name)};
  return {index_path(name), cached_index_path(rules.index_folder, name)};
}

PENSTOCK_INLINE bool known_shards::keep(const std::string& name, object_version shard, const buffer& built,
                                        const shard_damage& damage) const {
  if (damage.found) return false;  // a plan that refuses damaged shards must not find it
  const own_index_use own = rules.index.own_;
  if (own == own_index_use::none || own == own_index_use::transient) return false;
  if (own == own_index_use::require && local) return false;  // that of another program stays the only one
  const std::string kept = index_files(name, shard).back();
  return !kept.empty() && keep_index(kept, built.view());
}

PENSTOCK_INLINE std::string known_shards::describe(std::string where) const {
  if (where.empty()) where = std::to_string(versions.size()) + " objects";
  std::string line = detail::text({rules.kind->source_name, "(", where, "): ", shards.shards().size(),
                                   " shards, ", shards.samples(), " samples, ", shards.payload(), " bytes"});
  if (!damages.empty())
    detail::append(line, {", ", damages.size(), damages.size() == 1 ? " damaged shard" : " damaged shards",
                          " of which what is there was taken"});
  const own_index_use own = rules.index.own_;
  const bool keeps = own == own_index_use::keep || own == own_index_use::cache;
  if (local || !keeps) return line;
  const auto homeless = std::count_if(in_memory.begin(), in_memory.end(),
                                      [](const shared<const buffer>& one) { return one != nullptr; });
  if (homeless != 0)
    detail::append(line, {", ", static_cast<std::uint64_t>(homeless), " indexes that could not be kept"});
  return line;
}

PENSTOCK_INLINE std::vector<std::string> names_in(const manifest& known) {
  std::vector<std::string> names;
  for (const auto& one : known.shards()) names.push_back(one.name);
  return names;
}

PENSTOCK_INLINE open_indexes::open_indexes(shared<const known_shards> set, const projection& used,
                                           detail::owned<sidecar_objects> near)
    : set_(std::move(set)),
      used_(used),
      near_(std::move(near)),
      loaded_(
          new loaded_once<loaded_index>(set_->shards.shards().size(), set_->shards.starts()->size() - 1)) {}
PENSTOCK_INLINE open_indexes::open_indexes(open_indexes&&) noexcept = default;
PENSTOCK_INLINE open_indexes::~open_indexes() = default;

// Whether an index matches its shard in the manifest.
PENSTOCK_INLINE bool belongs(const loaded_index& index, const manifest::shard& entry) noexcept {
  const index_header& header = index.tables().header();
  return header.content == entry.content && header.samples == entry.samples &&
         header.shard_size == entry.bytes;
}

PENSTOCK_INLINE const shard_index& open_indexes::load(session_view session, std::size_t shard) const {
  const auto made = [&] {
    const manifest::shard& entry = set_->shards.shards()[shard];
    if (!session.has_version(static_cast<object_id>(shard), set_->versions[shard])) {
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
    compare(session, shard, fresh->tables());
    fresh->use(used_);
    return fresh.release();
  };
  return loaded_->get(shard, made).tables();
}

// Size and time do not tell a shard from another one that has both: tar programs pad archives to 10 KiB, and
// reproducible ones have constant times. What the ends do not settle, a pass over all headers does.
PENSTOCK_INLINE void open_indexes::compare(session_view session, std::size_t shard,
                                           const shard_index& tables) const {
  const auto id = static_cast<object_id>(shard);
  const shard_kind& kind = *set_->rules.kind;
  if (session.tagged(id)) return;
  const std::string& name = set_->path(shard);
  bool same = kind.has_ends(session, id, tables);
  session.confirm(id);
  if (!same) try {
      shard_damage damage;
      const bool takes = set_->rules.on_damaged_shard == on_damaged_shard::take_what_is_there;
      const buffer built = kind.build(session, id, name, set_->rules.extension_limit, set_->pace(),
                                      {set_->rules.skip_apple_double, takes ? &damage : nullptr});
      same = index_header::load(built.view())->content == tables.header().content;
    } catch (const error& e) {
      if (!depends_on_bytes(e.code())) throw;
    }
  if (same) return;
  std::string index, remedy = "open the dataset again";
  if (set_->rules.index.own_ == own_index_use::none) {
    index = set_->rules.index.foreign_->file.of(name);
    remedy = "make the index again";
  } else if (!set_->in_memory[shard]) {
    for (const std::string& path : set_->index_files(name, set_->versions[shard]))
      if (const auto found = loaded_index::from_file(path);
          found && belongs(*found, set_->shards.shards()[shard])) {
        index = path;  // the first one is used
        break;
      }
    remedy = "delete the index and open the dataset again";
  }
  throw error(errc::io, {"the shard was replaced by another one of the same size and time: its index",
                         index.empty() ? "" : " ", index, " was made from other content; ", remedy})
      .in_file(name)
      .recurring();
}

PENSTOCK_INLINE void open_indexes::get_ready(session_view session, std::span<const position> samples) const {
  loaded_->get_ready(
      samples, [&](std::uint64_t index) { return set_->locate(index).shard; },
      [&](std::size_t shard) { (void)get(session, shard); });
}

// The header was valid when the plan was made. If the rest is not, the index is rebuilt.
PENSTOCK_INLINE std::unique_ptr<loaded_index> open_indexes::from_file(session_view session, std::size_t shard,
                                                                      const manifest::shard& entry) const {
  const object_version version = set_->versions[shard];
  const std::vector<std::string> files = set_->index_files(entry.name, version);
  std::string believed;  // the file whose header the plan has
  index_state state = index_state::missing;
  for (const std::string& path : files) {
    auto found = loaded_index::from_file(path);
    if (found && belongs(*found, entry)) return found;
    const index_state seen = peek_index(path, version).first;
    if (believed.empty() && seen == index_state::good) believed = path;
    if (seen != index_state::missing) state = seen == index_state::good ? index_state::damaged : seen;
  }
  if (set_->rules.index == index_policy::require && set_->local)
    throw index_required(index_path(entry.name), entry.name, to_text(index_state::damaged), errc::checksum);
  shard_damage damage;
  shared<const buffer> built = set_->build(session, *near_, shard, entry.name, state, damage);
  const bool kept = set_->keep(entry.name, version, *built, damage);
  auto fresh = loaded_index::from_buffer(std::move(built));
  if (!fresh || !belongs(*fresh, entry)) {
    const bool again = kept && (believed.empty() || believed == files.back());
    throw error(errc::io, {"the index ", believed, believed.empty() ? "" : " ", "of the shard ", entry.name,
                           " does not hold what its header says; ",
                           again ? "it was made again: open the dataset again" : "delete it"})
        .in_file(entry.name);
  }
  return fresh;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
