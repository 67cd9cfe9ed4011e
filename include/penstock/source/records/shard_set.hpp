// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/loaded_once.hpp>
#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/records/index_file.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// How the indexes of a dataset are found, made and kept; see `webdataset_options`.
struct index_rules : webdataset_options {
  const shard_kind* kind = nullptr;
};

struct known_shards;

/// What only shards in a store need: programs that read files do not compile it.
struct store_calls {
  /// The index of a shard that lies beside it; nothing if there is none that agrees with the shard: `why`
  /// then gets what is wrong with it.
  std::optional<buffer> (*find)(const known_shards& set, session_view session, object_id id,
                                sidecar_objects& near, std::string& why);
  std::string (*kept_path)(const std::string& folder, const std::string& name, object_version object);
};

/// What a plan knows about the shards of a dataset: their manifest, and the indexes that could not be kept in
/// files.
struct known_shards : known_files, unmovable {
  index_rules rules;
  const store_calls* store;                     // null if all names are paths
  bool local = false;                           // whether the names are paths
  bool distant = false;                         // whether reads have latency, and the shards are not files
  std::vector<shared<const buffer>> in_memory;  // null if the index is in a file
  std::vector<damaged_shard> damages;           // of shards of which what is there was taken

  known_shards(index_rules chosen, bool latent, const store_calls* in_store);
  ~known_shards();
  [[nodiscard]] scan_pace pace() const noexcept {
    return distant ? scan_pace::far(rules.scan_gap) : scan_pace();
  }
  /// Throws errc::argument for a dataset without shards.
  static void check_any(std::size_t shards);
  /// Throws errc::format for the first shard without end-of-archive blocks.
  void check_ends() const;
  /// Reads the index headers of all shards, and builds the indexes that are missing. `near`: the files beside
  /// the shards, if they are not local.
  void look(storage_facts where, session_view session, sidecar_objects& near);
  /// Takes the manifest of another process: nothing is listed or read. If a shard has no index file, its
  /// index is built at its first use.
  void take(storage_facts where, manifest known);
  /// Whether the modification times are known: a writer's manifest has none.
  [[nodiscard]] bool has_stamps() const noexcept;
  void learn_stamps(session_view session);

  /// Gets the index of a shard according to the policy: from the store, or by building it. `own`: the state
  /// of the file that may hold it. `damage`: what was wrong with the shard, if what is there may be taken.
  [[nodiscard]] shared<const buffer> build(session_view session, sidecar_objects& near, std::size_t shard,
                                           const std::string& name, index_state own,
                                           shard_damage& damage) const;
  /// The files that may hold the index of a shard, in the order in which they are tried.
  [[nodiscard]] std::vector<std::string> index_files(const std::string& name, object_version shard) const;
  /// Keeps an index in its file, unless the shard is damaged; returns false if it must stay in memory.
  [[nodiscard]] bool keep(const std::string& name, object_version shard, const buffer& built,
                          const shard_damage& damage) const;
  /// One line for a source of these shards; `where` is the description of their storage, or empty.
  [[nodiscard]] std::string describe(std::string where) const;
};

[[nodiscard]] std::optional<buffer> find_in_store(const known_shards& set, session_view session, object_id id,
                                                  sidecar_objects& near, std::string& why);
inline constexpr store_calls shards_in_store{&find_in_store, &kept_index_path};

/// Whether shards of a storage may be in a store: its names are no paths, or not always.
template <storage Storage>
inline constexpr bool may_be_stored =
    !is_local<Storage>() || requires(const Storage& where) { where.local(); };

[[nodiscard]] std::vector<std::string> names_in(const manifest& known);

/// The shards of a dataset, as part of a plan.
template <storage Storage>
struct shard_set : known_shards {
  Storage where;

  shard_set(Storage given, index_rules chosen)
      : known_shards(std::move(chosen), is_distant(given), calls()), where(std::move(given)) {
    check_any(where.names().size());
    sidecar_objects near(where);
    auto session = where.connect();
    look(facts_of(where), session, near);
  }
  shard_set(Storage given, index_rules chosen, manifest known)
      : known_shards(std::move(chosen), is_distant(given), calls()), where(std::move(given)) {
    take(facts_of(where), std::move(known));
    if (has_stamps()) return;
    auto session = where.connect();
    learn_stamps(session);
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return shards.fingerprint(); }
  [[nodiscard]] std::string describe() const {
    if constexpr (requires {
                    { where.describe() } -> std::convertible_to<std::string>;
                  })
      return known_shards::describe(where.describe());
    else
      return known_shards::describe({});
  }

 private:
  [[nodiscard]] static bool is_distant(const Storage& given) {
    return session_traits_of<typename Storage::session>().latency && !is_local(given);
  }
  [[nodiscard]] static const store_calls* calls() noexcept {
    if constexpr (may_be_stored<Storage>)
      return &shards_in_store;
    else
      return nullptr;
  }
};

/// The indexes of a run: each is mapped and checked when its shard is first used, and marks the members that
/// are used.
class open_indexes {
 public:
  template <storage Storage>
  open_indexes(shared<const shard_set<Storage>> set, const projection& used)
      : open_indexes(set, used, detail::owned(new sidecar_objects(set->where))) {}

  open_indexes(open_indexes&&) noexcept;
  ~open_indexes();

  /// The tables of a shard. Takes no lock once they are loaded.
  [[nodiscard]] const shard_index& get(session_view session, std::size_t shard) const {
    const loaded_index* known = loaded_->find(shard);
    return known != nullptr ? known->tables() : load(session, shard);
  }
  /// The tables of a shard if they are loaded, else null.
  [[nodiscard]] const shard_index* find(std::size_t shard) const noexcept {
    const loaded_index* known = loaded_->find(shard);
    return known != nullptr ? &known->tables() : nullptr;
  }
  /// Loads the tables of the shards of these samples, several at once. A failure is ignored here and reported
  /// when the tables are needed.
  void get_ready(session_view session, std::span<const position> samples) const;
  /// Whether the tables of all shards are loaded.
  [[nodiscard]] bool are_ready() const noexcept { return loaded_->complete(); }

  /// Ends reading what lies beside the shards.
  void end_reads() const noexcept { near_->end_reads(); }

 private:
  open_indexes(shared<const known_shards> set, const projection& used, detail::owned<sidecar_objects> near);

  [[nodiscard]] const shard_index& load(session_view session, std::size_t shard) const;
  /// Throws errc::io if the shard is not the one that its index was made from.
  void compare(session_view session, std::size_t shard, const shard_index& tables) const;
  [[nodiscard]] std::unique_ptr<loaded_index> from_file(session_view session, std::size_t shard,
                                                        const manifest::shard& entry) const;

  shared<const known_shards> set_;
  projection used_;
  detail::owned<sidecar_objects> near_;  // of a storage that `set_` has
  detail::owned<loaded_once<loaded_index>> loaded_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/shard_set.ipp>
#endif
