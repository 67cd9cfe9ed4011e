// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The tables of an order that has one for each epoch: those that some binding still has, and the one made
/// last in any case. Copies share them. Whoever needs a table that another thread makes waits for it; for
/// other epochs nobody waits.
template <class Table>
class epoch_tables {
 public:
  /// The table of an epoch, by `make()` where it is not there.
  template <class Make>
  [[nodiscard]] std::shared_ptr<const Table> get(std::uint64_t epoch, const Make& make) const {
    std::unique_lock lock(known_->guard);
    const std::shared_ptr<entry> mine = entry_of(epoch);
    if (std::shared_ptr<const Table> there = mine->made.lock()) return there;
    lock.unlock();
    const std::lock_guard making(mine->making);
    lock.lock();
    if (std::shared_ptr<const Table> there = mine->made.lock()) return there;
    known_->last.reset();  // before the next one is made: there need not be memory for both
    lock.unlock();
    std::shared_ptr<const Table> made(new const Table(make()));
    lock.lock();
    mine->made = made;
    known_->last = made;
    return made;
  }

 private:
  struct entry {
    explicit entry(std::uint64_t number) : epoch(number) {}
    std::uint64_t epoch;
    std::weak_ptr<const Table> made;  // under `guard`
    std::mutex making;
  };
  struct known {
    std::mutex guard;
    std::vector<std::shared_ptr<entry>> entries;
    std::shared_ptr<const Table> last;
  };

  // Under `guard`. Entries are forgotten whose table is gone, unless somebody makes it or waits for it.
  [[nodiscard]] std::shared_ptr<entry> entry_of(std::uint64_t epoch) const {
    auto& all = known_->entries;
    std::erase_if(all, [](const auto& one) { return one.use_count() == 1 && one->made.expired(); });
    for (const auto& one : all)
      if (one->epoch == epoch) return one;
    return all.emplace_back(new entry(epoch));
  }

  std::shared_ptr<known> known_{new known()};
};

}  // namespace penstock::inline v0_1::detail
