// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/packed_windows.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::size_t packed_table::window_of(std::uint64_t row) const noexcept {
  const auto after = std::upper_bound(marks.begin(), marks.end(), row,
                                      [](std::uint64_t r, const mark& one) { return r < one.rows; });
  return static_cast<std::size_t>(after - marks.begin()) - 1;
}

/// Packs one window after another, and keeps its memory.
class packed_windows::builder {
 public:
  explicit builder(const packed_windows& of) : of_(of), packer_(of.facts_.options) {}

  /// Packs a window. Without a result if a sample is too long, which `too_long` then is.
  [[nodiscard]] bool pack(std::uint64_t epoch, std::uint64_t number, std::uint64_t capacity) {
    read(epoch, number);
    return fits(packer_.pack(read_.lengths, capacity), {epoch, of_.first_of(number)});
  }
  /// The same for the numbers of rows and pieces alone.
  [[nodiscard]] bool count(std::uint64_t epoch, std::uint64_t number, std::uint64_t capacity) {
    read(epoch, number);
    return fits(packer_.count(read_.lengths, capacity), {epoch, of_.first_of(number)});
  }
  [[nodiscard]] std::size_t rows() const noexcept { return packer_.rows(); }
  [[nodiscard]] std::size_t pieces() const noexcept { return packer_.pieces(); }
  /// The window that was packed last, its rows in the order of the epoch.
  void write(packed_window& made, std::uint64_t key) const { packer_.write(made, read_.lengths, key); }

  costly_sample too_long;

 private:
  void read(std::uint64_t epoch, std::uint64_t number) {
    const std::uint64_t first = of_.first_of(number);
    of_.from_.read(of_.from_.self.get(), epoch, first,
                   std::min(of_.from_.positions, first + of_.facts_.options.window), read_);
  }
  [[nodiscard]] bool fits(std::size_t packed, position first) {
    if (packed == read_.lengths.size()) return true;
    too_long =
        costly_sample{{first.epoch, first.index + packed}, read_.samples[packed], read_.lengths[packed]};
    return false;
  }

  const packed_windows& of_;
  packed_lengths read_;
  window_packer packer_;
};

PENSTOCK_INLINE packed_windows::packed_windows(packed_source from, packed_facts facts, std::uint64_t seed)
    : from_(std::move(from)), facts_(std::move(facts)), seed_(seed), cache_(new cache()) {
  check_pack(facts_);
  if (from_.positions >> 40 != 0)
    throw error(errc::argument, {"pack goes through an epoch before its first batch, and this one has ",
                                 from_.positions, " positions; write repeat(n) or take(n) before it"})
        .in_stage("pack");
}

PENSTOCK_INLINE packed_windows::~packed_windows() = default;

PENSTOCK_INLINE std::uint64_t packed_windows::capacity_at(position step) const {
  const std::uint64_t capacity = facts_.capacity(step);
  if (facts_.capacity.changes()) check_capacity(facts_, capacity);
  return capacity;
}

PENSTOCK_INLINE std::shared_ptr<const packed_table> packed_windows::table(
    std::uint64_t epoch, std::uint64_t of_all, const std::atomic<bool>* stop) const {
  const std::uint64_t key = facts_.capacity.changes() ? of_all : 0;  // otherwise rows do not depend on steps
  epoch_tables<packed_table> tables;
  {
    const std::lock_guard lock(cache_->guard);
    auto& all = cache_->tables;
    auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == key; });
    if (found == all.end()) found = all.insert(all.end(), {key, epoch_tables<packed_table>()});
    tables = found->second;
  }
  return tables.get(epoch, [&] { return passed(epoch, of_all, stop); });
}

PENSTOCK_INLINE packed_table packed_windows::passed(std::uint64_t epoch, std::uint64_t of_all,
                                                    const std::atomic<bool>* stop) const {
  const std::uint64_t windows = (from_.positions + facts_.options.window - 1) / facts_.options.window;
  packed_table made;
  made.marks.reserve(to_size(windows) + 1);
  packed_table::mark before;
  builder one(*this);
  for (std::uint64_t w = 0; w < windows; ++w) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw pass_stopped{};
    before.capacity = capacity_at({epoch, before.rows / std::max<std::uint64_t>(1, of_all)});
    made.marks.push_back(before);
    try {
      if (!one.count(epoch, w, before.capacity)) {
        made.too_long = one.too_long;
        return made;
      }
    } catch (...) {  // the run reports it in its step
      made.failure = std::current_exception();
      return made;
    }
    before.rows += one.rows();
    before.pieces += one.pieces();
  }
  made.marks.push_back(before);
  return made;
}

PENSTOCK_INLINE std::shared_ptr<const packed_window> packed_windows::window(std::uint64_t epoch,
                                                                            std::uint64_t number,
                                                                            std::uint64_t capacity) const {
  std::unique_ptr<packed_window> made;
  std::unique_ptr<builder> with;
  {
    const std::lock_guard lock(cache_->guard);
    for (const kept& one : cache_->windows)
      if (one.made && one.epoch == epoch && one.number == number && one.capacity == capacity) return one.made;
    with = std::move(cache_->idle);
    if (!cache_->unused.empty()) {
      made = std::move(cache_->unused.back());
      cache_->unused.pop_back();
    }
  }
  if (!made) made.reset(new packed_window());
  if (!with) with.reset(new builder(*this));
  if (!with->pack(epoch, number, capacity)) refuse_changed();
  with->write(*made, row_order_key(seed_, epoch, number));
  const std::shared_ptr<const packed_window> shared(made.release(),
                                                    [to = std::weak_ptr<cache>(cache_)](packed_window* w) {
                                                      std::unique_ptr<packed_window> left(w);
                                                      const std::shared_ptr<cache> there = to.lock();
                                                      if (!there) return;
                                                      const std::lock_guard lock(there->guard);
                                                      if (there->unused.size() < 2)
                                                        there->unused.push_back(std::move(left));
                                                    });
  kept replaced{epoch, number, capacity, shared};  // destroyed without the lock
  const std::lock_guard lock(cache_->guard);
  std::swap(cache_->windows[cache_->next++ % cache_->windows.size()], replaced);
  cache_->idle = std::move(with);
  return shared;
}

PENSTOCK_INLINE void packed_windows::refuse_changed() const {
  throw error(errc::state, {"samples have other lengths in ", facts_.lengths,
                            " than before in the same run; pack needs the same one whenever it asks"})
      .in_stage("pack");
}

PENSTOCK_INLINE std::uint64_t packed_windows::usual_samples(std::uint64_t rows) const {
  const std::uint64_t n = from_.positions, capacity = facts_.capacity(position{});
  if (n == 0) return 1;
  packed_lengths some;
  try {
    from_.read(from_.self.get(), 0, 0, std::min<std::uint64_t>(n, 64), some);
  } catch (...) {  // the pass over the epoch reports it
    some.lengths.clear();
  }
  double sum = 0;
  for (const std::uint64_t length : some.lengths) sum += static_cast<double>(std::min(length, capacity));
  const double average = some.lengths.empty() ? 1 : sum / static_cast<double>(some.lengths.size());
  const double samples = static_cast<double>(rows) * static_cast<double>(capacity) / std::max(average, 1.0);
  const std::uint64_t maximum = std::min<std::uint64_t>(n, 65'536);
  return samples >= static_cast<double>(maximum)
             ? maximum
             : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(samples));
}

PENSTOCK_INLINE packed_epoch::packed_epoch(std::shared_ptr<const packed_windows> windows,
                                           std::shared_ptr<const packed_table> table, std::uint64_t epoch,
                                           const row_batches& batches, std::uint64_t world,
                                           std::uint64_t rank)
    : windows_(std::move(windows)),
      table_(std::move(table)),
      epoch_(epoch),
      rows_{.size = table_->rows(),
            .global = batches.of_all(world),
            .world = world,
            .rank = rank,
            .policy = batches.at_end},
      dealt_by_(batches.dealt_by) {}

PENSTOCK_INLINE std::uint64_t packed_epoch::steps() const noexcept {
  const bool part = table_->fails() || (rows_.policy != tail::drop && rows_.size % rows_.global != 0);
  return rows_.size / rows_.global + (part ? 1 : 0);
}

PENSTOCK_INLINE std::uint64_t packed_epoch::first_row(std::uint64_t step) const noexcept {
  return std::min(std::min(step, steps()) * rows_.global,
                  rows_.policy == tail::drop ? rows_.size / rows_.global * rows_.global : rows_.size);
}

PENSTOCK_INLINE std::shared_ptr<const packed_window> packed_epoch::window(std::size_t number) const {
  const packed_table::mark &here = table_->marks[number], &next = table_->marks[number + 1];
  auto made = windows_->window(epoch_, number, here.capacity);
  if (made->ends.size() - 1 != next.rows - here.rows || made->pieces.size() != next.pieces - here.pieces)
    windows_->refuse_changed();
  return made;
}

class packed_epoch::row_reader {
 public:
  explicit row_reader(const packed_epoch& of) : of_(of) {}

  void go_to(std::uint64_t row) {
    const packed_table& table = *of_.table_;
    if (!window_ || row < table.marks[number_].rows || row >= table.marks[number_ + 1].rows) {
      number_ = table.window_of(row);
      window_ = of_.window(number_);
    }
    row_ = to_size(row - table.marks[number_].rows);
  }
  /// Calls `f(position, document)` for each piece of the row, which becomes row `number` of a batch.
  void each_document(std::uint32_t number, std::uint64_t row_length, const auto& f) const {
    const std::uint64_t first = of_.windows_->first_of(number_);
    window_->each_document(
        row_, number, of_.windows_->facts(), row_length,
        [&](const packed_piece& one, const packed_document& document) { f(first + one.place, document); });
  }
  [[nodiscard]] std::uint64_t work() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = window_->ends[row_]; i < window_->ends[row_ + 1]; ++i)
      sum = work_weights::plus(sum, of_.dealt_by_->of(window_->pieces[i].length));
    return sum;
  }

 private:
  const packed_epoch& of_;
  std::size_t number_ = 0, row_ = 0;
  std::shared_ptr<const packed_window> window_;
};

PENSTOCK_INLINE std::uint64_t packed_epoch::before(std::uint64_t step) const {
  const std::uint64_t row = first_row(step);
  const std::size_t w = table_->window_of(row);
  const packed_table::mark& mark = table_->marks[w];
  if (row == mark.rows) return mark.pieces;
  return mark.pieces + window(w)->ends[to_size(row - mark.rows)];
}

void packed_epoch::with_mine(std::uint64_t step, const auto& f) const {
  const std::lock_guard lock(cache_->guard);
  for (const rank_step& one : cache_->steps)
    if (one.there && one.number == step) return f(one);
  rank_step& one = cache_->steps[cache_->next++ % cache_->steps.size()];
  one.there = false;
  make(step, one);
  one.number = step;
  one.there = true;
  f(one);
}

PENSTOCK_INLINE step_view packed_epoch::at(std::uint64_t step) const {
  if (table_->fails() && step == rows_.size / rows_.global) refuse();
  std::uint64_t slots = 0;
  with_mine(step, [&](const rank_step& mine) { slots = mine.positions.size(); });
  return {0, slots};
}

PENSTOCK_INLINE void packed_epoch::list(std::uint64_t step, std::vector<std::uint64_t>& into) const {
  with_mine(step, [&](const rank_step& mine) {
    into.insert(into.end(), mine.positions.begin(), mine.positions.end());
  });
}

PENSTOCK_INLINE void packed_epoch::pack(std::uint64_t step, packed_step& into) const {
  with_mine(step, [&](const rank_step& mine) { into = mine.packed; });
}

/// This rank's rows of a step, dealt by work.
PENSTOCK_INLINE void packed_epoch::deal(std::uint64_t first, std::uint64_t count,
                                        std::vector<std::uint64_t>& mine) const {
  std::vector<std::uint64_t> work;
  row_reader row(*this);
  for (std::uint64_t i = 0; i < count; ++i) {
    row.go_to(first + i);
    work.push_back(row.work());
  }
  equal_work dealer;
  dealer.deal({work.data(), work.size()}, to_size(rows_.world));
  for (const std::uint32_t i : dealer.rows(to_size(rows_.rank))) mine.push_back(first + i);
}

PENSTOCK_INLINE void packed_epoch::make(std::uint64_t step, rank_step& made) const {
  const std::uint64_t first = first_row(step), count = first_row(step + 1) - first;
  const step_view view = rows_.at(step);
  const packed_facts& facts = windows_->facts();
  packed_step& into = made.packed;
  into.slices = facts.slices;
  into.slice = facts.slice;
  into.pad = facts.options.pad;
  into.lengths = &facts.lengths;
  into.rows = view.slots();
  made.rows.clear();
  if (dealt_by_) {
    deal(first, count, made.rows);
    if (rows_.policy != tail::pad) into.rows = (count + rows_.world - 1) / rows_.world;
  } else {
    for (std::uint64_t i = 0; i < view.valid(); ++i) made.rows.push_back(view[i]);
  }
  // The same on all ranks, also where it changes within the step.
  into.capacity = 0;
  for (std::size_t w = table_->window_of(first); count != 0 && w <= table_->window_of(first + count - 1); ++w)
    into.capacity = std::max(into.capacity, table_->marks[w].capacity);
  made.positions.clear();
  into.documents.clear();
  row_reader row(*this);
  for (std::size_t r = 0; r < made.rows.size(); ++r) {
    row.go_to(made.rows[r]);
    row.each_document(static_cast<std::uint32_t>(r), into.capacity,
                      [&](std::uint64_t at, const packed_document& document) {
                        made.positions.push_back(at);
                        into.documents.push_back(document);
                      });
  }
}

PENSTOCK_INLINE void packed_epoch::refuse() const {
  if (table_->failure) std::rethrow_exception(table_->failure);
  const costly_sample& found = *table_->too_long;
  if (windows_->facts().options.overlong == overlong::split)
    throw error(errc::argument,
                {"sample ", found.sample, " has ", found.cost, " tokens, too many to split into rows of ",
                 table_->marks.back().capacity,
                 ": a window has at most 2^28 pieces; correct its length, or raise the capacity"})
        .in_stage("pack")
        .add_context(found.at);
  throw error(errc::argument, {"sample ", found.sample, " has ", found.cost, " tokens, but a row holds ",
                               table_->marks.back().capacity, how_to_pack_long_samples})
      .in_stage("pack")
      .add_context(found.at);
}

}  // namespace penstock::inline v0_1::detail
