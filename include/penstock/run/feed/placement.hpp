// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/step_cut.hpp>

#include <algorithm>
#include <vector>

namespace penstock::inline v0_1 {

/// One batch in a block: its rows, and the positions they hold. A block of numbers holds many small batches.
struct batch_rows {
  step_view view;
  std::uint64_t first = 0;   // row of the block
  std::uint64_t slots = 0;   // rows
  std::uint64_t valid = 0;   // rows with a sample; they come first
  std::uint64_t global = 0;  // samples of the global step
  position delivered;        // epoch and step as the consumer counts them

  batch_rows() noexcept {}  // `= default` would fill the unused tables of the view with zeros
  /// A whole step without lanes: positions from `base` on, with nothing to compute.
  batch_rows(std::uint64_t base, std::uint64_t row, std::uint64_t count, std::uint64_t of_all,
             position place) noexcept
      : view(base, count), first(row), slots(count), valid(count), global(of_all), delivered(place) {}

  /// Whether the rows and positions of `next` follow those of this batch.
  [[nodiscard]] bool continues_in(const batch_rows& next) const noexcept {
    return view.contiguous() && next.view.contiguous() && valid == slots && next.valid != 0 &&
           next.first == first + slots && next.view.base() == view.base() + slots;
  }
};

/// The positions in the rows of a block, chosen by a feed. The consumer prepares it before workers may look.
struct placement {
  std::vector<batch_rows> batches;     // a chunk has one entry
  std::vector<std::uint64_t> indices;  // individual positions, where a cursor chose them
  bool listed = false;
  bool last = false;                // chunks: the last one of its pass
  std::uint64_t epoch = 0;          // of the positions
  std::uint64_t slots = 0;          // rows of all batches together
  std::uint64_t run_row = 0;        // rows placed before: the number of the first row
  std::uint64_t low = 0, high = 0;  // the orders are to be bound for [low, high); empty if low >= high
  // The positions of the last batch's global step, of all ranks: consecutive ones, or a list.
  std::uint64_t step_first = 0, step_count = 0;
  std::vector<std::uint64_t> step_indices;
  packed_step packed;        // where samples are in rows, if they share them
  bool shares_step = false;  // ranks divide a step into batches, rather than deal whole batches

  [[nodiscard]] std::uint64_t index(std::uint64_t row) const {
    if (listed) return indices[detail::to_size(row)];
    std::size_t i = 0;
    while (i + 1 < batches.size() && row >= batches[i + 1].first) ++i;
    return batches[i].view[row - batches[i].first];
  }
  /// Extends [low, high) to the positions [first, end).
  void cover(std::uint64_t first, std::uint64_t end) noexcept {
    low = std::min(low, first);
    high = std::max(high, end);
  }
  /// Extends it to the positions of the rows [first, first + count), which are listed.
  void cover_listed(std::uint64_t first, std::uint64_t count) noexcept {
    for (std::uint64_t row = first; row < first + count; ++row)
      cover(indices[detail::to_size(row)], indices[detail::to_size(row)] + 1);
  }
  /// The first position of the last batch's global step.
  [[nodiscard]] std::uint64_t step_index() const noexcept {
    return step_indices.empty() ? step_first : step_indices.front();
  }
  /// The row of a batch that holds a position; `batch.valid` if none does.
  [[nodiscard]] std::uint64_t row_of(const batch_rows& batch, std::uint64_t which) const {
    std::uint64_t i = 0;
    while (i != batch.valid && index(batch.first + i) != which) ++i;
    return i;
  }
  template <class Orders>
  void bind(const Orders& orders, typename Orders::binding& binding) const {
    if (low < high) orders.rebind(binding, epoch, low, high);
  }
};

/// The positions of an epoch of `size` positions in the order in which they are asked what shape a batch has:
/// those of its global step, then those before it, then those behind it. The same on every rank.
class lead_candidates {
 public:
  lead_candidates(const placement& p, std::uint64_t size) noexcept
      : listed_(&p.step_indices),
        first_(p.step_first < size ? p.step_first : 0),
        count_(p.step_count < size - first_ ? p.step_count : size - first_),
        size_(size) {}

  /// False if there are no more, or if none of the last 1024 outside the step would do.
  [[nodiscard]] bool next(std::uint64_t& index) noexcept {
    const std::uint64_t k = asked_++;
    const std::uint64_t in_step = listed_->empty() ? count_ : listed_->size();
    if (k < in_step) {
      index = listed_->empty() ? first_ + k : (*listed_)[detail::to_size(k)];
      return true;
    }
    const std::uint64_t beyond = k - in_step;
    if (beyond >= 1024) return false;
    if (!listed_->empty()) {  // a cursor chose from all of the epoch
      index = beyond;
      return beyond < size_;
    }
    index = beyond < first_ ? first_ - 1 - beyond : count_ + beyond;
    return index < size_;
  }

 private:
  const std::vector<std::uint64_t>* listed_;
  std::uint64_t first_, count_, size_, asked_ = 0;
};

}  // namespace penstock::inline v0_1
