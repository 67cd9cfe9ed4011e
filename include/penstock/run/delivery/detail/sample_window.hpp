// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/light_tuple.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/order/window_packer.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The samples that `pack` puts into rows together where it has no lengths: their values, kept one by one in
/// the order in which they came, and the rows that they make. Keeps its memory from window to window.
template <class Columns>
class sample_window {
 public:
  sample_window(Columns made, packed_facts facts, std::uint64_t seed)
      : columns(std::move(made)), facts_(std::move(facts)), seed_(seed), packer_(facts_.options) {
    check_pack(facts_);
  }

  /// Samples of a window, at most.
  [[nodiscard]] std::uint64_t maximum() const noexcept { return facts_.options.window; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return facts_.capacity.fixed(); }
  void begin() {
    gathered.clear();
    room = std::min(maximum(), tuning::gathered_rows);
    columns.begin(to_size(room));
  }
  /// Packs the samples. Returns the number of the first one that is too long and refused, or of all samples.
  [[nodiscard]] std::size_t pack(std::uint64_t epoch, std::uint64_t number) {
    lengths_.clear();
    for (std::size_t i = 0; i < gathered.rows(); ++i) lengths_.push_back(columns.sequence_length(i));
    const std::size_t packed = packer_.pack(lengths_, capacity());
    if (packed == lengths_.size()) packer_.write(rows_, lengths_, row_order_key(seed_, epoch, number));
    return packed;
  }
  [[nodiscard]] std::uint64_t length(std::size_t sample) const { return lengths_[sample]; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_.rows(); }

  /// Begins the columns of a batch that has no rows yet, and will have `rows` at most.
  template <class Block>
  void begin(Block& out, std::uint64_t slots, std::uint64_t rows) {
    rows_there_ = 0;
    rows_wanted_ = rows;
    out.packed.documents.clear();
    out.packed.rows = 0;
    out.packed.capacity = capacity();
    out.packed.slices = facts_.slices;
    out.packed.slice = facts_.slice;
    out.packed.pad = facts_.options.pad;
    out.columns.place(out.packed);
    out.columns.begin(to_size(slots));
  }
  /// Makes room for at least so many rows.
  template <class Block>
  void reserve_rows(Block& out, std::uint64_t rows) {
    if (rows <= rows_there_) return;
    out.columns.reserve_rows(to_size(rows), to_size(out.packed.rows));
    rows_there_ = rows;
  }
  /// Adds a row of this window to a batch; `room_there`: slots that it has memory for.
  template <class Block>
  void lay(std::size_t row, Block& out, std::uint64_t& room_there) {
    if (out.packed.rows == rows_there_)
      reserve_rows(out, std::min(rows_wanted_, std::max<std::uint64_t>(16, 2 * rows_there_)));
    const auto number = static_cast<std::uint32_t>(out.packed.rows++);
    rows_.each_document(row, number, facts_, capacity(),
                        [&](const packed_piece& piece, const packed_document& document) {
                          const std::size_t slot = out.packed.documents.size();
                          if (slot == room_there) {
                            room_there *= 2;
                            out.columns.grow(to_size(room_there), slot);
                          }
                          out.packed.documents.push_back(document);
                          out.columns.lay(slot, columns, piece.place);
                          add_origins(out.gathered, piece.place);
                        });
  }

  Columns columns;
  row_origins gathered;
  std::uint64_t room = 0;  // samples that there is memory for

 private:
  void add_origins(row_origins& all, std::size_t sample) const {
    const auto origins = gathered.of(sample);
    *all.add_rows(1) = origins.front();
    for (std::size_t i = 1; i < origins.size(); ++i) all.add_to_last(origins[i]);
  }

  packed_facts facts_;
  std::uint64_t seed_;
  window_packer packer_;
  std::vector<std::uint64_t> lengths_;
  packed_window rows_;
  // Of the batch that is being filled: rows that it has memory for, and that it will have at most.
  std::uint64_t rows_there_ = 0, rows_wanted_ = 0;
};

/// In a plan whose rows are not packed from a window.
struct no_sample_window {
  template <class Engine>
  explicit no_sample_window(const Engine&) noexcept {}
};
template <class Plan, class Columns>
struct window_of_samples : sample_window<Columns> {
  template <class Engine>
  explicit window_of_samples(Engine& engine)
      : sample_window<Columns>(
            engine.make_columns(),
            at<plan_parts<Plan>::in::packs>(engine.plan().stages()).facts_of(engine.plan().stages()),
            *engine.options().seed) {}
};
template <class Plan, class Columns>
using sample_window_of =
    std::conditional_t<plan_parts<Plan>::packs_online, window_of_samples<Plan, Columns>, no_sample_window>;

}  // namespace penstock::inline v0_1::detail
