// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/detail/known_files.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/tar/index_file.hpp>
#include <penstock/source/tar/shard_index.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// What a plan knows of the shards of a dataset: their manifest, and the indexes that could not be kept in
/// files.
struct known_shards : known_files {
  index_policy policy = index_policy::keep;
  bool local = false;                                    // whether their names are paths
  std::vector<std::shared_ptr<const buffer>> in_memory;  // null where the index is a file

  /// Throws errc::argument for shards that cannot have such a policy.
  void begin(storage_facts where, index_policy chosen);
  /// Looks at all shards, and builds the indexes that are missing.
  void look(storage_facts where, session_view session, std::size_t threads);
  /// Takes the shards of another process: nothing is listed or read. Where no index is kept beside a shard,
  /// it is built at its first use.
  void take(storage_facts where, index_policy chosen, manifest known);
  /// Whether the times of change are known: a manifest of a writer has none.
  [[nodiscard]] bool has_stamps() const noexcept;
  void learn_stamps(session_view session);

  /// Makes the index of a shard as the policy says.
  [[nodiscard]] std::shared_ptr<const buffer> build(session_view session, std::size_t shard,
                                                    const std::string& name) const;
  /// Keeps an index in its file; false where it must stay in memory.
  [[nodiscard]] bool keep(const std::string& name, const buffer& built) const;
  /// One line for a source of these shards; `where` is what their storage says of itself, or nothing.
  [[nodiscard]] std::string describe(std::string where) const;
};

[[nodiscard]] std::vector<std::string> names_in(const manifest& known);

/// The shards of a dataset, as part of a plan.
template <storage Storage>
struct shard_set : known_shards {
  Storage where;

  shard_set(Storage given, index_policy chosen, std::size_t threads) : where(std::move(given)) {
    begin(facts_of(where), chosen);
    auto session = where.connect();
    look(facts_of(where), session, threads);
  }
  shard_set(Storage given, index_policy chosen, manifest known) : where(std::move(given)) {
    take(facts_of(where), chosen, std::move(known));
    if (has_stamps()) return;
    auto session = where.connect();
    learn_stamps(session);
  }
};

/// The indexes of a run: each is mapped and checked when its shard is first used.
class open_indexes {
 public:
  explicit open_indexes(std::shared_ptr<const known_shards> set);

  /// The tables of a shard. Takes no lock once they are there.
  [[nodiscard]] const shard_index& get(session_view session, std::size_t shard) const {
    const loaded_index* known = slots_->loaded[shard].load(std::memory_order_acquire);
    return known != nullptr ? known->tables() : load(session, shard);
  }

 private:
  struct slots {
    explicit slots(std::size_t n) : loaded(n) {}
    slots(const slots&) = delete;
    slots& operator=(const slots&) = delete;
    ~slots();
    std::vector<std::atomic<const loaded_index*>> loaded;
    std::array<std::mutex, 64> mutexes;
  };

  [[nodiscard]] const shard_index& load(session_view session, std::size_t shard) const;
  [[nodiscard]] std::unique_ptr<loaded_index> from_file(session_view session, std::size_t shard,
                                                        const manifest::shard& entry) const;

  std::shared_ptr<const known_shards> set_;
  std::unique_ptr<slots> slots_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/shard_set.ipp>
#endif
