// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

/// Where an evaluator writes what samples become.
namespace penstock::inline v0_1 {

/// Rows for samples whose rows are known: each goes to the row of its slot.
template <class Block, class Worker>
struct rows_in_place {
  static constexpr bool makes_holes = true;
  Block& p;
  Worker& w;
  std::uint64_t slot;

  template <class V>
  void operator()(V&& value) const {
    p.columns.write(detail::to_size(slot), std::forward<V>(value));
  }
  [[nodiscard]] std::uint64_t row() const noexcept { return slot; }
  void take_back() const noexcept { p.columns.unwrite(detail::to_size(slot)); }
  void leave_empty() const { p.columns.blank(detail::to_size(slot)); }
  void go_on_from(const rows_in_place& other) noexcept { slot = other.slot; }
};
/// Rows appended one after another, as many as each sample makes; grows where it made several.
template <class Block, class Worker, bool Several>
struct rows_appended {
  static constexpr bool makes_holes = false;
  Block& p;
  Worker& w;
  std::uint64_t slot = 0, count = 0, room;

  template <class V>
  void operator()(V&& value) {
    if (Several && count == room) grow();
    p.columns.write(detail::to_size(count), std::forward<V>(value));
    p.sources[detail::to_size(count)] = static_cast<std::uint32_t>(slot);
    ++count;
  }
  void grow() {
    room = std::max<std::uint64_t>(16, room * 2);
    p.columns.grow(detail::to_size(room), detail::to_size(count));
    p.sources.resize(detail::to_size(room));
  }
  [[nodiscard]] std::uint64_t row() const noexcept { return count; }
  void take_back() noexcept {
    for (; count != 0 && p.sources[detail::to_size(count - 1)] == slot; --count)
      p.columns.unwrite(detail::to_size(count - 1));
  }
  void go_on_from(const rows_appended& other) noexcept {
    slot = other.slot, count = other.count, room = other.room;
  }
};
/// The only row of columns that are no part of a block.
template <class Columns, class Worker>
struct row_beside_blocks {
  Columns& columns;
  Worker& w;

  template <class V>
  void operator()(V&& value) const {
    columns.write(0, std::forward<V>(value));
  }
  void take_back() const noexcept { columns.unwrite(0); }
};

namespace detail {

/// A loop's own copy of rows, whose state the compiler keeps in registers; they follow it, also if it throws.
template <class Rows>
struct in_registers {
  Rows& rows;
  Rows own = rows;
  ~in_registers() { rows.go_on_from(own); }
};

}  // namespace detail
}  // namespace penstock::inline v0_1
