// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The tables of an order that has one for each epoch: those that some binding still has, and the one made
/// last in any case. Copies share them; a mutex guards them, and making one holds it.
template <class Table>
class epoch_tables {
 public:
  /// The table of an epoch, by `make()` where it is not there.
  template <class Make>
  [[nodiscard]] std::shared_ptr<const Table> get(std::uint64_t epoch, const Make& make) const {
    const std::lock_guard lock(known_->guard);
    std::erase_if(known_->entries, [](const auto& one) { return one.made.expired(); });
    for (const auto& one : known_->entries) {
      if (one.epoch != epoch) continue;
      if (std::shared_ptr<const Table> there = one.made.lock()) return there;
    }
    known_->last.reset();  // before the next one is made: there need not be memory for both
    known_->last = std::shared_ptr<const Table>(new const Table(make()));
    known_->entries.push_back({epoch, known_->last});
    return known_->last;
  }

 private:
  struct entry {
    std::uint64_t epoch;
    std::weak_ptr<const Table> made;
  };
  struct known {
    std::mutex guard;
    std::vector<entry> entries;
    std::shared_ptr<const Table> last;
  };
  std::shared_ptr<known> known_{new known()};
};

}  // namespace penstock::inline v0_1::detail
