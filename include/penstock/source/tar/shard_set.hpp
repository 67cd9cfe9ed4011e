// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/parallel.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar/foreign_index.hpp>
#include <penstock/source/tar/index_builder.hpp>
#include <penstock/source/tar/index_file.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// The shards of a dataset, as part of a plan: their manifest, and the indexes that could not be kept in
/// files.
template <storage Storage>
struct shard_set {
  Storage where;
  index_policy policy;
  manifest shards;
  std::vector<object_signature> signatures;
  std::vector<std::shared_ptr<const buffer>> in_memory;  // null where the index is a file

  shard_set(Storage given, index_policy chosen, std::size_t threads)
      : where(std::move(given)), policy(chosen) {
    const std::span<const std::string> names = where.names();
    if (names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
    if (policy == index_policy::require && !local_storage<Storage>) {
      throw error(errc::argument, "index_policy::require needs shards that are local files");
    }
    if (foreign() && !local_storage<Storage>) {
      throw error(errc::argument,
                  "the indexes of DALI and Energon are read beside shards that are local files");
    }
    signatures.resize(names.size());
    in_memory.resize(names.size());
    std::vector<manifest::shard> entries(names.size());
    auto session = where.connect();

    // First what is there: a few system calls for each shard, so that threads pay only for many.
    std::vector<index_header> headers(names.size());
    std::vector<std::size_t> found(names.size(), 0);
    const std::size_t lookers = std::min<std::size_t>(threads == 0 ? 8 : threads, 1 + names.size() / 256);
    for_each_in_parallel(names.size(), lookers, [&](std::size_t i) {
      signatures[i] = session.signature(static_cast<object_id>(i));
      if constexpr (local_storage<Storage>) {
        if (foreign()) return;
        const auto [state, header] = peek_index(names[i], signatures[i]);
        found[i] = state == index_state::good ? 1 : 0;
        headers[i] = header;
        if (state != index_state::good && policy == index_policy::require) {
          throw error(errc::missing, {"the index ", index_path(names[i]), " of the shard ", names[i], " ",
                                      to_text(state), ", and index_policy::require allows no other"})
              .in_file(names[i]);
        }
      }
    });
    // Then what is missing, which takes a pass over the headers of each shard.
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (found[i] == 0) missing.push_back(i);
    }
    for_each_in_parallel(missing.size(), threads, [&](std::size_t m) {
      const std::size_t i = missing[m];
      std::shared_ptr<const buffer> built(new const buffer(
          foreign() ? build_foreign_index(session, static_cast<object_id>(i), names[i], policy)
                    : build_index(session, static_cast<object_id>(i), names[i])));
      headers[i] = *index_header::load(built->view());
      signatures[i] = {headers[i].shard_size, headers[i].shard_stamp};
      if (!keep(i, *built)) in_memory[i] = std::move(built);
    });
    for (std::size_t i = 0; i < names.size(); ++i) {
      entries[i] = {names[i],           headers[i].shard_size, headers[i].samples,
                    headers[i].payload, headers[i].content,    signatures[i].stamp};
    }
    shards = manifest(std::move(entries));
  }

  /// Shards that another process has looked at: nothing is listed or read. Where no index is kept beside a
  /// shard, it is built at its first use.
  shard_set(Storage given, index_policy chosen, manifest known)
      : where(std::move(given)), policy(chosen), shards(std::move(known)) {
    const std::span<const std::string> names = where.names();
    if (names.empty()) throw error(errc::argument, "a dataset needs at least one shard");
    if (names.size() != shards.shards().size()) {
      throw error(errc::argument, {"the manifest is of ", shards.shards().size(), " shards, and these are ",
                                   names.size(), "; give the storage the manifest's names"});
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
    learn_stamps();
  }

  /// A manifest of a writer has no times of change.
  void learn_stamps() {
    const auto known = [](const object_signature& s) { return s.stamp != 0; };
    if (std::all_of(signatures.begin(), signatures.end(), known)) return;
    auto session = where.connect();
    for (std::size_t i = 0; i < signatures.size(); ++i) {
      if (known(signatures[i])) continue;
      const object_signature found = session.signature(static_cast<object_id>(i));
      if (found.size != signatures[i].size) {
        throw error(errc::io, {"the shard has ", found.size, " bytes, and the manifest says ",
                               signatures[i].size, "; make the manifest again"})
            .in_file(where.names()[i]);
      }
      signatures[i] = found;
    }
  }

  /// Whether the indexes are those that another program wrote.
  [[nodiscard]] bool foreign() const noexcept {
    return policy == index_policy::dali || policy == index_policy::energon;
  }

  /// Keeps an index in its file; false where it must stay in memory.
  bool keep(std::size_t shard, const buffer& built) const {
    if constexpr (local_storage<Storage>) {
      return policy == index_policy::keep && keep_index(where.names()[shard], built.view());
    } else {
      return false;
    }
  }
};

/// The indexes of a run: each is mapped and checked when its shard is first used.
template <storage Storage>
class open_indexes {
 public:
  explicit open_indexes(std::shared_ptr<const shard_set<Storage>> set)
      : set_(std::move(set)), slots_(std::make_unique<slots>(set_->signatures.size())) {}

  /// The tables of a shard. Takes no lock once they are there.
  [[nodiscard]] const shard_index& get(typename Storage::session& session, std::size_t shard) const {
    const loaded_index* known = slots_->loaded[shard].load(std::memory_order_acquire);
    return known != nullptr ? known->tables() : load(session, shard);
  }

 private:
  struct slots {
    explicit slots(std::size_t n) : loaded(n) {}
    slots(const slots&) = delete;
    slots& operator=(const slots&) = delete;
    ~slots() {
      for (auto& one : loaded) delete one.load(std::memory_order_relaxed);
    }
    std::vector<std::atomic<const loaded_index*>> loaded;
    std::array<std::mutex, 64> mutexes;
  };

  const shard_index& load(typename Storage::session& session, std::size_t shard) const {
    const std::scoped_lock lock(slots_->mutexes[shard % slots_->mutexes.size()]);
    auto& slot = slots_->loaded[shard];
    if (const loaded_index* other = slot.load(std::memory_order_acquire)) return other->tables();
    const manifest::shard& entry = set_->shards.shards()[shard];
    if (session.signature(static_cast<object_id>(shard)) != set_->signatures[shard]) {
      throw error(errc::io, "the shard was changed after the dataset was opened; open it again")
          .in_file(entry.name);
    }
    std::unique_ptr<loaded_index> fresh;
    if (set_->in_memory[shard]) {
      fresh = loaded_index::from_buffer(set_->in_memory[shard]);
    } else {
      fresh = from_file(session, shard, entry);
    }
    if (!fresh || !belongs(*fresh, entry)) {
      throw error(errc::io, "the shard does not hold what its manifest says; open the dataset again")
          .in_file(entry.name);
    }
    const loaded_index* shown = fresh.release();
    slot.store(shown, std::memory_order_release);
    return shown->tables();
  }

  // The header was in order when the plan was made. If the rest is not, the index is built again.
  std::unique_ptr<loaded_index> from_file(typename Storage::session& session, std::size_t shard,
                                          const manifest::shard& entry) const {
    auto found = loaded_index::from_file(entry.name);
    if (found && belongs(*found, entry)) return found;
    if (set_->policy == index_policy::require) {
      throw error(errc::checksum,
                  {"the index ", index_path(entry.name), " of the shard ", entry.name, " ",
                   to_text(index_state::damaged), ", and index_policy::require allows no other"})
          .in_file(entry.name);
    }
    auto built = std::shared_ptr<const buffer>(new const buffer(
        set_->foreign()
            ? build_foreign_index(session, static_cast<object_id>(shard), entry.name, set_->policy)
            : build_index(session, static_cast<object_id>(shard), entry.name)));
    const bool kept = set_->keep(shard, *built);
    auto fresh = loaded_index::from_buffer(std::move(built));
    if (!fresh || !belongs(*fresh, entry)) {
      throw error(errc::io, {"the index ", index_path(entry.name), " of the shard ", entry.name,
                             " does not hold what its header says; ",
                             kept ? "it was made again: open the dataset again" : "delete it"})
          .in_file(entry.name);
    }
    return fresh;
  }

  static bool belongs(const loaded_index& index, const manifest::shard& entry) noexcept {
    const index_header& header = index.tables().header();
    return header.content == entry.content && header.samples == entry.samples &&
           header.shard_size == entry.bytes;
  }

  std::shared_ptr<const shard_set<Storage>> set_;
  std::unique_ptr<slots> slots_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
