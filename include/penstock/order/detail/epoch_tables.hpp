// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The tables of an order that needs one per epoch: keeps those that a binding still uses, and always the
/// one built last. Copies share them. If another thread is building the table you ask for, the call
/// blocks; requests for other epochs do not block. `Key` is what a table depends on.
template <class Table, class Key = std::uint64_t>
class epoch_tables {
 public:
  /// The table of an epoch; calls `make()` if there is none.
  template <class Make>
  [[nodiscard]] std::shared_ptr<const Table> get(const Key& epoch, const Make& make) const {
    std::unique_lock lock(tables_->guard);
    const std::shared_ptr<entry> mine = entry_of(epoch);
    if (std::shared_ptr<const Table> there = mine->made.lock()) return there;
    lock.unlock();
    const std::lock_guard making(mine->making);
    lock.lock();
    if (std::shared_ptr<const Table> there = mine->made.lock()) return there;
    tables_->last.reset();  // first, because memory may not hold both tables
    lock.unlock();
    std::shared_ptr<const Table> made(new const Table(make()));
    lock.lock();
    mine->made = made;
    tables_->last = made;
    return made;
  }

 private:
  struct entry {
    explicit entry(const Key& number) : epoch(number) {}
    Key epoch;
    std::weak_ptr<const Table> made;  // guarded by `guard`
    std::mutex making;
  };
  struct known {
    std::mutex guard;
    std::vector<std::shared_ptr<entry>> entries;
    std::shared_ptr<const Table> last;
  };

  // Call with `guard` held. Drops entries whose table is gone, unless a thread is building or waiting for
  // it.
  [[nodiscard]] std::shared_ptr<entry> entry_of(const Key& epoch) const {
    auto& all = tables_->entries;
    std::erase_if(all, [](const auto& one) { return one.use_count() == 1 && one->made.expired(); });
    for (const auto& one : all)
      if (one->epoch == epoch) return one;
    return all.emplace_back(new entry(epoch));
  }

  std::shared_ptr<known> tables_{new known()};
};

}  // namespace penstock::inline v0_1::detail
