// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/batch_cache.hpp>

#include <penstock/source/files/parallel.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace penstock::inline v0_1::detail {

struct batch_cache::state {
  struct entry {
    shared<const arrow_batch> kept;
    std::uint64_t last_use = 0;
    bool loading = false;
    shared_loop* work = nullptr;  // with which others may help
    std::size_t helpers = 0;
  };

  std::uint64_t keep;
  std::mutex mutex{};
  std::condition_variable loaded{};
  std::vector<entry> entries;
  std::vector<std::size_t> present{};  // those that are kept
  std::uint64_t uses = 0, bytes = 0;
  std::size_t last = 0;       // that was asked for and not there
  bool in_sequence = false;   // it was the one behind the one before
  std::uint64_t largest = 0;  // of all so far
  std::size_t loads = 0;      // in progress

  [[nodiscard]] bool has_room(std::size_t which) const noexcept {
    return in_sequence && which < entries.size() && !entries[which].kept && !entries[which].loading &&
           loads == 1 && 3 * largest <= keep;  // for the one in use, the one being loaded, and this one
  }
  // How soon a batch that is kept may go; the lowest goes first. In sequence it is the last one that was
  // passed: the first ones are there at the next epoch, and its memory, which the caches still have, is
  // used again.
  [[nodiscard]] std::uint64_t rank(std::size_t one, std::size_t which) const noexcept {
    if (one == which || !entries[one].kept) return ~std::uint64_t{0};
    if (in_sequence && one + 1 < which) return which - one;
    return which + entries[one].last_use;
  }
  // Takes the ones that go first, but not `which`, until the others have no more than `maximum` bytes.
  void drop(std::size_t which, std::uint64_t maximum, std::vector<shared<const arrow_batch>>& dropped) {
    while (bytes > maximum && !present.empty()) {
      const auto first =
          std::ranges::min_element(present, {}, [&](std::size_t one) { return rank(one, which); });
      shared<const arrow_batch>& old = entries[*first].kept;
      if (*first == which || !old) break;
      bytes -= old->bytes();
      dropped.push_back(std::move(old));
      old = {};
      *first = present.back();
      present.pop_back();
    }
  }
};

PENSTOCK_INLINE batch_cache::batch_cache(std::size_t count, std::uint64_t keep)
    : state_(new state{.keep = keep, .entries = std::vector<state::entry>(count)}) {}
PENSTOCK_INLINE batch_cache::batch_cache(batch_cache&&) noexcept = default;
PENSTOCK_INLINE batch_cache::~batch_cache() = default;

PENSTOCK_INLINE void batch_cache::sharing::run(shared_loop& loop) {
  state& all = *all_->state_;
  state::entry& mine = all.entries[which_];
  {
    const std::scoped_lock lock(all.mutex);
    mine.work = &loop;
  }
  all.loaded.notify_all();
  loop.help();
  {
    std::unique_lock lock(all.mutex);
    mine.work = nullptr;
    all.loaded.wait(lock, [&] { return mine.helpers == 0; });
  }
  loop.end();
}

PENSTOCK_INLINE shared<const arrow_batch> batch_cache::get(std::size_t which, load_call load, void* what) {
  state& all = *state_;
  state::entry& mine = all.entries[which];
  std::unique_lock lock(all.mutex);
  const shared_loop* helped = nullptr;
  while (mine.loading) {
    if (mine.work != nullptr && mine.work != helped) {
      shared_loop& work = *mine.work;
      helped = &work;
      ++mine.helpers;
      lock.unlock();
      work.help();
      lock.lock();
      if (--mine.helpers == 0) all.loaded.notify_all();
    } else if (all.has_room(which + 1)) {
      std::vector<shared<const arrow_batch>> dropped;  // freed without the lock
      dropped.reserve(all.present.size());
      all.drop(which, all.keep - 2 * all.largest, dropped);  // the two that are being loaded fit, too
      all.entries[which + 1].loading = true;
      all.last = which + 1;
      ++all.loads;
      lock.unlock();
      dropped.clear();
      try {
        (void)load_one(which + 1, load, what);
      } catch (...) {  // it is told when it is asked for
      }
      lock.lock();
    } else {
      all.loaded.wait(lock);
    }
  }
  mine.last_use = ++all.uses;
  if (mine.kept) return mine.kept;
  all.in_sequence = which == all.last + 1;
  all.last = which;
  mine.loading = true;
  ++all.loads;
  lock.unlock();
  return load_one(which, load, what);
}

PENSTOCK_INLINE shared<const arrow_batch> batch_cache::find(std::size_t which) noexcept {
  const std::scoped_lock lock(state_->mutex);
  state::entry& mine = state_->entries[which];
  mine.last_use = ++state_->uses;
  return mine.kept;
}

PENSTOCK_INLINE shared<const arrow_batch> batch_cache::load_one(std::size_t which, load_call load,
                                                                void* what) {
  state& all = *state_;
  state::entry& mine = all.entries[which];
  shared<const arrow_batch> made;
  std::vector<shared<const arrow_batch>> dropped;  // freed without the lock
  try {
    sharing help(*this, which);
    made = shared<const arrow_batch>(load(what, which, help));
    const std::scoped_lock lock(all.mutex);
    all.present.push_back(which);
    dropped.reserve(all.present.size());
  } catch (...) {
    const std::scoped_lock lock(all.mutex);
    mine.loading = false;
    --all.loads;
    all.loaded.notify_all();
    throw;
  }
  const std::scoped_lock lock(all.mutex);
  mine.loading = false;
  --all.loads;
  mine.kept = made;
  mine.last_use = ++all.uses;
  const std::uint64_t size = made->bytes();
  all.bytes += size;
  all.largest = std::max(all.largest, size);
  // One batch is always kept: the one that was loaded last.
  all.drop(which, all.keep, dropped);
  all.loaded.notify_all();
  return made;
}

}  // namespace penstock::inline v0_1::detail
