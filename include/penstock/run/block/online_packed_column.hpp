// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/error.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/block/column.hpp>
#include <penstock/run/block/packed_column.hpp>

#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// Fields of a sample that are to stand in the same places differ in length.
[[noreturn, gnu::cold]] void refuse_lengths(std::uint64_t one, std::uint64_t other);

}  // namespace detail

/// Sequences that `pack` puts into rows once a window of samples is there. In a chunk and in a window each
/// value is kept by itself; in a batch, which was told the places by `place`, they are in rows.
template <class T, bool First = true>
class online_packed_column : public shapeless_column {
  using kept_values = flexible_column<T, ragged_policy>;

 public:
  using value_type = T;

  template <class Session>
  online_packed_column(Session& session, memory_account& account)
      : kept_(session, account), rows_(session, account) {}

  void place(packed_step& rows) {
    rows_.place(rows);
    in_rows_ = true;
  }
  void begin(std::size_t slots) {
    if (!in_rows_) return kept_.begin(slots);
    rows_.begin(slots);
    rows_.grow(slots, 0);  // its documents are not known yet
  }
  void grow(std::size_t slots, std::size_t written) {
    if (in_rows_) return rows_.grow(slots, written);
    kept_.grow(slots, written);
  }
  void reserve_rows(std::size_t rows, std::size_t keep) { rows_.reserve_rows(rows, keep); }
  /// Of a chunk.
  template <class U>
  void write(std::size_t slot, U&& value) {
    const extents found = detail::value_shape(value);
    if (found.rank() != 1) [[unlikely]]
      detail::refuse_sequence(found);
    kept_.write(slot, std::forward<U>(value));
  }
  void unwrite(std::size_t slot) noexcept { kept_.unwrite(slot); }
  void blank(std::size_t slot) {
    if (in_rows_) return rows_.blank(slot);
    kept_.blank(slot);
  }
  /// Rows of a chunk become rows of a window.
  void copy(std::size_t to, const online_packed_column& other, std::size_t first, std::size_t count) {
    kept_.copy(to, other.kept_, first, count);
  }
  /// A value of a window is put into the place in a row that a slot of this batch has.
  void lay(std::size_t slot, const online_packed_column& window, std::size_t from) {
    rows_.write(slot, window.kept_.value_aside(from));
  }
  /// The tokens of a value that was written or copied.
  [[nodiscard]] std::uint64_t sequence_length(std::size_t slot) const { return kept_.shape_at(slot)[0]; }
  void finish(std::size_t first, std::size_t slots, std::size_t valid, bool holes = false) {
    rows_.finish(first, slots, valid, holes);
  }
  [[nodiscard]] extents shape_at(std::size_t) const noexcept { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return kept_.held() + rows_.held(); }
  void release() noexcept {
    kept_.release();
    rows_.release();
  }

  [[nodiscard]] packed_view<const T> view(std::size_t first, std::size_t slots) const {
    return rows_.view(first, slots);
  }
  [[nodiscard]] packed_view<T> edit(std::size_t first, std::size_t slots) { return rows_.edit(first, slots); }
  [[nodiscard]] bytes_view bytes(std::size_t first, std::size_t slots) const {
    return in_rows_ ? rows_.bytes(first, slots) : bytes_view();
  }

 private:
  kept_values kept_;
  packed_column<T, First> rows_;
  bool in_rows_ = false;
};

namespace detail {

inline void refuse_lengths(std::uint64_t one, std::uint64_t other) {
  throw error(errc::shape,
              {"pack puts the fields of a sample into the same places of a row, and this one has ", one,
               " values in one field and ", other, " in another; give them equal lengths"})
      .in_stage("pack");
}

}  // namespace detail

}  // namespace penstock::inline v0_1
