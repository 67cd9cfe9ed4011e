// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/source/tables/arrow_batch.hpp>

namespace penstock::inline v0_1::detail {

class shared_loop;

/// Batches in memory that all workers of a run share, up to a limit of bytes: those used last, and if they
/// are asked for one after another, the first ones, which are there at the next epoch. Each one is
/// loaded by one thread. The others that want it help, as far as it shares its work; then, if batches are
/// asked for one after another, and three fit in the limit, one of them loads the next one; then they wait.
///
/// Threads: any number at once.
class batch_cache {
 public:
  /// Of `count` batches, keeps up to `keep` bytes, and always the one that was asked for last.
  batch_cache(std::size_t count, std::uint64_t keep);
  batch_cache(batch_cache&&) noexcept;
  ~batch_cache();

  /// Shares a loop with the threads that wait for a batch.
  class sharing {
   public:
    /// Runs it, with their help.
    void run(shared_loop& loop);

   private:
    friend batch_cache;
    sharing(batch_cache& all, std::size_t which) noexcept : all_(&all), which_(which) {}
    batch_cache* all_;
    std::size_t which_;
  };

  /// A batch; `load(which, sharing)` returns the result of `new`, and may throw.
  template <class Load>
  [[nodiscard]] shared<const arrow_batch> get(std::size_t which, Load&& load) {
    using load_type = std::remove_reference_t<Load>;
    return get(
        which,
        [](void* what, std::size_t one, sharing& help) {
          return (*static_cast<load_type*>(what))(one, help);
        },
        const_cast<std::remove_const_t<load_type>*>(&load));
  }
  /// Empty if it is not in memory. Counts as a use.
  [[nodiscard]] shared<const arrow_batch> find(std::size_t which) noexcept;

 private:
  using load_call = const arrow_batch* (*)(void* what, std::size_t which, sharing& help);
  [[nodiscard]] shared<const arrow_batch> get(std::size_t which, load_call load, void* what);
  // Of an entry that says that it is loading.
  [[nodiscard]] shared<const arrow_batch> load_one(std::size_t which, load_call load, void* what);

  struct state;
  owned<state> state_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/batch_cache.ipp>
#endif
