// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/packed_rows.hpp>
#include <penstock/order/step_cut.hpp>
#include <penstock/run/block/column.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// A batch of so many rows is larger than any memory.
[[noreturn, gnu::cold]] void refuse_rows_of_batch(std::size_t rows, std::size_t row_bytes);
/// A value that is to be in a row is no sequence.
[[noreturn, gnu::cold]] void refuse_sequence(const extents& found);
/// A sample has another length than it was packed with.
[[noreturn, gnu::cold]] void refuse_length(const extents& found, const packed_document& expected,
                                           const packed_step& rows);

/// The tokens cannot have the value that padding is to have.
[[noreturn, gnu::cold]] void refuse_pad(std::int64_t pad, std::size_t bits);

/// Whether the values of a sequence lie in memory; otherwise it is asked to write them.
template <class V>
inline constexpr bool lies_in_memory = !blob<V> && !array_expression<V> && !tells_strides<V>;
[[nodiscard]] auto values_in_memory(const auto& v) {
  if constexpr (requires { v.values(); })
    return v.values().data();
  else
    return v.data();
}

}  // namespace detail

/// Sequences in the rows that `pack` made: each is written to its place in its row. Padding is 0 unless this
/// is the `First` field of `pack`.
template <class T, bool First = true>
class packed_column : public shapeless_column {
 public:
  using value_type = T;

  template <class Session>
  packed_column(Session& session, memory_account& account) : memory_(session, account) {}

  /// The places of the slots in this round; called before `begin`.
  void place(packed_step& rows) { rows_ = &rows; }
  void begin(std::size_t /*slots*/) {
    if constexpr (First && std::is_integral_v<T>)
      if (static_cast<std::int64_t>(static_cast<T>(rows_->pad)) != rows_->pad)
        detail::refuse_pad(rows_->pad, 8 * sizeof(T));
    reserve_rows(detail::to_size(rows_->rows), 0);
    make_room_for_next(rows_->documents.size(), 0);
  }
  template <class U>
  void write(std::size_t slot, const U& value) {
    const packed_document& d = rows_->documents[slot];
    if (!has_length(value, d.whole)) [[unlikely]]
      detail::refuse_length(detail::value_shape(value), d, *rows_);
    if constexpr (detail::lies_in_memory<U>) return copy(slot, d, detail::values_in_memory(value));
    if constexpr (requires { value.in_place(); })
      if (const T* const there = value.in_place()) return copy(slot, d, there);
    if (d.length == d.whole && rows_->slices == 1)
      detail::write_values(value, values() + place_of(d), detail::value_shape(value), memory_.space());
    else
      copy(slot, d, all_of(value, detail::value_shape(value)));
  }
  void blank(std::size_t slot) { rows_->documents[slot].length = 0; }
  /// Fills the padding.
  void finish(std::size_t /*first*/, std::size_t /*slots*/, std::size_t /*valid*/, bool /*holes*/ = false) {
    const packed_rows view = rows_->view();
    std::size_t done = 0;
    const auto pad_to = [&](std::size_t place, std::uint32_t tokens) {
      pad(done, place);
      done = place + tokens;
    };
    for (const packed_document& d : view.documents())
      if (rows_->slices == 1)
        pad_to(place_of(d), d.length);
      else
        view.for_each_run(d, [&](std::size_t place, std::uint32_t first, std::uint32_t count) {
          pad_to(place, std::min(count, d.length - std::min(first, d.length)));
        });
    pad(done, view.row_count() * view.capacity());
  }
  /// Makes room for so many rows, and keeps what is in the first `keep`.
  void reserve_rows(std::size_t rows, std::size_t keep) {
    const std::size_t row = rows_->view().capacity() * sizeof(T);
    if (row != 0 && rows > (std::size_t{1} << 56) / row) [[unlikely]]
      detail::refuse_rows_of_batch(rows, row);
    memory_.reserve(rows * row, keep * row);
  }
  /// Makes room for more documents of a block that one thread is filling.
  void grow(std::size_t slots, std::size_t written) { make_room_for_next(slots, written); }
  [[nodiscard]] extents shape_at(std::size_t) const noexcept { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return memory_.capacity(); }
  void release() noexcept { memory_.release(); }

  [[nodiscard]] packed_view<const T> view(std::size_t /*first*/, std::size_t /*slots*/) const {
    return {values(), rows_->view(), next_.get()};
  }
  [[nodiscard]] packed_view<T> edit(std::size_t /*first*/, std::size_t /*slots*/) {
    return {values(), rows_->view(), next_.get()};
  }
  [[nodiscard]] bytes_view bytes(std::size_t /*first*/, std::size_t /*slots*/) const {
    const packed_rows view = rows_->view();
    return {memory_.data(), view.row_count() * view.capacity() * sizeof(T)};
  }

 private:
  [[nodiscard]] static bool has_length(const auto& value, std::uint64_t length) {
    if constexpr (requires { value.shape(); }) {
      const auto& shape = value.shape();
      return shape.rank() == 1 && shape[0] == length;
    } else {
      return static_cast<std::uint64_t>(value.size()) == length;
    }
  }
  void make_room_for_next(std::size_t documents, std::size_t keep) {
    const std::size_t runs = rows_->slices == 1 ? 0 : 2 * documents;
    if (runs <= room_for_next_) return;
    detail::fixed_array<T> larger(runs);
    std::copy_n(next_.get(), 2 * keep, larger.get());
    next_ = std::move(larger);
    room_for_next_ = runs;
  }
  [[nodiscard]] T* values() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  /// Unless rows are sliced.
  [[nodiscard]] std::size_t place_of(const packed_document& d) const noexcept {
    return d.row * detail::to_size(rows_->capacity) + d.begin;
  }
  /// Copies the tokens that are here; `tokens` are those of the sample.
  void copy(std::size_t slot, const packed_document& d, const T* tokens) {
    tokens += d.first;
    if (rows_->slices != 1) [[unlikely]]
      return copy_slice(slot, d, tokens);
    if (d.length != 0) std::memcpy(values() + place_of(d), tokens, d.length * sizeof(T));
  }
  void copy_slice(std::size_t slot, const packed_document& d, const T* tokens) {
    std::size_t run = 2 * slot;
    rows_->view().for_each_run(d, [&](std::size_t place, std::uint32_t token, std::uint32_t count) {
      const std::uint32_t used = std::min(count, d.length - std::min(token, d.length));
      if (used != 0) std::memcpy(values() + place, tokens + token, used * sizeof(T));
      next_[run++] = token + count < d.length ? tokens[token + count] : T{};
    });
  }
  /// The whole value, in memory of this thread.
  template <class U>
  static const T* all_of(const U& value, const extents& shape) {
    thread_local detail::fixed_array<T> kept;
    thread_local std::size_t room = 0;
    const std::size_t size = detail::to_size(shape.elements());
    if (size > room) {
      kept = detail::fixed_array<T>(size);
      room = size;
    }
    detail::write_values(value, kept.get(), shape);
    return kept.get();
  }
  void pad(std::size_t first, std::size_t end) {
    if (first >= end) return;
    if (!First || rows_->pad == 0)
      std::memset(values() + first, 0, (end - first) * sizeof(T));
    else
      std::fill(values() + first, values() + end, static_cast<T>(rows_->pad));
  }

  slot_memory memory_;
  packed_step* rows_ = nullptr;
  detail::fixed_array<T> next_;  // if rows are sliced: behind each run, the token that is not here
  std::size_t room_for_next_ = 0;
};

namespace detail {

inline void refuse_rows_of_batch(std::size_t rows, std::size_t row_bytes) {
  throw error(errc::argument, {"a batch of ", rows, " rows of ", row_bytes,
                               " bytes is larger than any memory; make batches smaller"})
      .in_stage("batch");
}

inline void refuse_sequence(const extents& found) {
  throw error(errc::shape, {"pack puts sequences of one dimension into rows, and this value has the shape ",
                            to_string(found)})
      .in_stage("pack");
}

inline void refuse_length(const extents& found, const packed_document& expected, const packed_step& rows) {
  if (found.rank() != 1) refuse_sequence(found);
  throw error(errc::state, {"the sample has ", found[0], " tokens, and its length is ", expected.whole,
                            " in ", *rows.lengths, "; make the lengths again from these samples"})
      .in_stage("pack");
}

inline void refuse_pad(std::int64_t pad, std::size_t bits) {
  throw error(errc::argument,
              {".pad = ", pad, " is no value of tokens of ", bits, " bits; give pack one that they can have"})
      .in_stage("pack");
}

}  // namespace detail

}  // namespace penstock::inline v0_1
