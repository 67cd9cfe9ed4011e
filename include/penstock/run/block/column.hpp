// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/contiguous_values.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/uneven_views.hpp>
#include <penstock/core/whole.hpp>
#include <penstock/run/block/flexible_values.hpp>
#include <penstock/run/block/slot_layout.hpp>

#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

/// One field of a block: where its values are written, and how they are collated.
///
/// The life of a column in one round of its block: the consumer calls `begin(slots)`; workers call
/// `write(slot, value)`, once per slot; whichever thread ends the last grain calls `finish(first, slots,
/// valid)` for each batch; the consumer calls `view(first, slots)`. `lead(shape)` before `finish` gives the
/// shape that values must match, and that a column without any value shows. A slot that stays without a
/// value is `blank`; a slot whose write failed is `unwrite`n before it is written again; `finish` is told
/// that there are such `holes`. `copy(...)` moves rows between blocks. A block of several batches has fixed
/// columns only: for other columns `first` is 0.
namespace penstock::inline v0_1 {

namespace detail {

/// Whether a value has this shape; where possible, without evaluating it.
bool has_shape(const auto& v, const extents& shape) {
  if constexpr (requires { v.shape(); })
    return v.shape() == shape;
  else
    return shape.rank() == 1 && shape[0] == static_cast<std::uint64_t>(v.size());
}

extents value_shape(const auto& v) {
  if constexpr (requires { v.shape(); })
    return v.shape();
  else
    return extents(static_cast<std::uint64_t>(v.size()));
}

/// Writes a flexible element of this shape to dense memory.
template <class T, class V>
void write_values(const V& v, T* into, const extents& shape, memory_space space = memory_space::host) {
  if constexpr (blob<V>) {
    v.read_into({reinterpret_cast<std::byte*>(into), static_cast<std::size_t>(v.size())});
  } else if constexpr (array_expression<V>) {
    write_array(v, destination<T>(into, shape, space));
  } else if constexpr (tells_strides<V>) {
    destination<T>(into, shape, space).copy_from(v);
  } else if constexpr (requires { v.values(); }) {
    const auto values = v.values();
    if (!values.empty()) std::memcpy(into, values.data(), values.size() * sizeof(T));
  } else {
    if (v.size() != 0) std::memcpy(into, v.data(), v.size() * sizeof(T));
  }
}

/// Writes an element of this shape to a slot, arranged by a policy.
template <class Policy, class T, class V>
void write_arranged(const V& v, T* slot, const extents& shape, memory_space space = memory_space::host) {
  using layout = slot_layout<Policy>;
  const destination<T> into(slot, shape, layout::strides(shape, sizeof(T)), space);
  if constexpr (blob<V>)
    write_values(v, slot, shape);  // one row
  else if constexpr (array_expression<V>)
    write_array(v, into);
  else if constexpr (tells_strides<V>)
    into.copy_from(v);
  else if constexpr (requires { v.values(); })
    into.copy_from(v.values());
  else
    into.copy_from(std::span<const T>(v.data(), v.size()));
  if constexpr (has_gaps<Policy>) layout::clear_gaps(reinterpret_cast<std::byte*>(slot), shape, sizeof(T));
}

}  // namespace detail

/// A column whose values need no shape to be found: what only flexible columns do is nothing here.
struct shapeless_column {
  /// Whether values must be compared with each other when a batch is complete.
  static constexpr bool compares = false;

  static void unwrite(std::size_t) noexcept {}
  static void choose_lead(std::size_t) noexcept {}
  static void expect(const std::optional<extents>&) noexcept {}
  static void lead(const extents&) noexcept {}
  [[nodiscard]] static bool can_lead(std::size_t) noexcept { return true; }
  [[nodiscard]] static std::optional<extents> known_shape() noexcept { return {}; }
};

/// Values whose shape is part of their type: written in place, with nothing left to do.
template <class V, class Policy = stack_policy>
class fixed_column : public shapeless_column {
  using stored = detail::stored<V>;
  using layout = detail::slot_layout<Policy>;
  using number = typename stored::type;
  static constexpr extents row_shape = [] {
    if constexpr (static_array_expression<V>)
      return extents(V::static_shape);
    else
      return stored::scalar ? extents() : extents(stored::elements);
  }();
  static constexpr std::size_t row_elements =
      detail::arranges<Policy> ? static_cast<std::size_t>(layout::elements(row_shape, sizeof(number)))
                               : stored::elements;
  static_assert(row_shape.rank() < extents::max_rank, "a batch adds one dimension in front");

 public:
  using value_type = number;
  /// Bytes of a slot, including its gaps.
  static constexpr std::size_t row_bytes = sizeof(number) * row_elements;

  template <class Session>
  fixed_column(Session& session, memory_account& account) : memory_(session, account) {}

  void begin(std::size_t slots) { memory_.reserve(slots * row_bytes); }
  /// Makes room for more rows of a block that one thread is filling.
  void grow(std::size_t slots, std::size_t written) {
    memory_.reserve(slots * row_bytes, written * row_bytes);
  }

  template <class U>
  void write(std::size_t slot, U&& value) {
    value_type* into = row(slot);
    if constexpr (detail::arranges<Policy>)
      detail::write_arranged<Policy>(value, into, row_shape, memory_.space());
    else if constexpr (static_array_expression<U>)
      write_array(value, destination<value_type>(into, row_shape, memory_.space()));
    else if constexpr (stored::scalar)
      *into = static_cast<value_type>(std::forward<U>(value));
    else
      copy_row(into, value.data());
  }
  /// Writes `count` slots at once.
  void write_contiguous(std::size_t slot, std::size_t count, detail::contiguous_values<value_type> values)
    requires(stored::scalar && !detail::arranges<Policy>)
  {
    std::memcpy(row(slot), values.first, count * row_bytes);
  }
  void blank(std::size_t slot) { std::memset(static_cast<void*>(row(slot)), 0, row_bytes); }
  /// Completes rows [first, first + slots), of which `valid` were written.
  void finish(std::size_t first, std::size_t slots, std::size_t valid, bool /*holes*/ = false) {
    if (valid < slots) std::memset(static_cast<void*>(row(first + valid)), 0, (slots - valid) * row_bytes);
  }
  /// Rows [first, first + count) of `other` become rows [to, ...) of this block.
  void copy(std::size_t to, const fixed_column& other, std::size_t first, std::size_t count) {
    if (count != 0)
      std::memcpy(memory_.data() + to * row_bytes, other.memory_.data() + first * row_bytes,
                  count * row_bytes);
  }
  [[nodiscard]] extents shape_at(std::size_t) const noexcept { return row_shape; }
  [[nodiscard]] std::uint64_t held() const noexcept { return memory_.capacity(); }
  void release() noexcept { memory_.release(); }

  [[nodiscard]] auto view(std::size_t first, std::size_t slots) const {
    return shown<const value_type>(first, slots);
  }
  [[nodiscard]] auto edit(std::size_t first, std::size_t slots) { return shown<value_type>(first, slots); }
  [[nodiscard]] bytes_view bytes(std::size_t first, std::size_t slots) const {
    return {memory_.data() + first * row_bytes, slots * row_bytes};
  }

 private:
  template <class T>
  [[nodiscard]] auto shown(std::size_t first, std::size_t slots) const {
    if constexpr (stored::scalar)
      return std::span<T>(row(first), slots);
    else if constexpr (detail::has_gaps<Policy>)
      return strided_view<T>(row(first), row_shape.prepend(slots),
                             detail::column_strides<Policy>(row_shape, sizeof(T)));
    else
      return tensor_view<T>(row(first), layout::shown(row_shape).prepend(slots));
  }
  [[nodiscard]] value_type* row(std::size_t slot) const {
    return reinterpret_cast<value_type*>(memory_.data()) + slot * row_elements;
  }
  /// A short row is copied with a size known to the compiler, so no call is needed; a long one is left to the
  /// library's memcpy, which is faster than the string instruction that the compiler would emit.
  static void copy_row(void* into, const void* values) noexcept {
    std::size_t size = row_bytes;
    if constexpr (row_bytes > 256) asm("" : "+r"(size));
    std::memcpy(into, values, size);
  }

  slot_memory memory_;
};

/// Values of one type whose shapes are known at run time.
template <class T, class Policy>
class flexible_column : public flexible_values {
  static constexpr bool stacks = detail::stacks<Policy>;
  static constexpr bool pads = detail::padding_multiple<Policy> != 0;
  static constexpr bool pads_all = detail::pads_all<Policy>;
  static constexpr collation how = stacks     ? collation::stacked
                                   : pads     ? collation::padded
                                   : pads_all ? collation::enlarged
                                              : collation::appended;
  using order = detail::order_of<Policy>;
  using layout = detail::slot_layout<order>;

 public:
  using value_type = T;
  static constexpr bool compares = how != collation::appended;

  template <class Session>
  flexible_column(Session& session, memory_account& account)
      : flexible_values(session, account, how, sizeof(T), detail::pitch_of<Policy>, fill(),
                        std::is_same_v<T, std::byte>, detail::padding_multiple<Policy>) {}

  template <class U>
  void write(std::size_t slot, U&& value) {
    if (stacks && knows_shape() && detail::has_shape(value, shape())) {
      write_at(place(slot), value, shape(), space());
    } else {
      const extents found = detail::value_shape(value);
      if constexpr (how != collation::appended) detail::check_rank(found);
      if constexpr (detail::arranges<order>) layout::check(found, sizeof(T));
      std::byte* const aside = put_aside(slot, pads_all ? layout::shown(found) : found);
      write_at(reinterpret_cast<T*>(aside), value, found, memory_space::host);
    }
  }
  /// Before `finish`: a value of one dimension that was put aside.
  [[nodiscard]] std::span<const T> value_aside(std::size_t slot) const {
    return {reinterpret_cast<const T*>(where_aside(slot)), detail::to_size(shape_at(slot).elements())};
  }
  void finish(std::size_t /*first*/, std::size_t slots, std::size_t valid,
              [[maybe_unused]] bool holes = false) {
    if constexpr (how == collation::stacked)
      finish_stack(slots, valid, holes);
    else if constexpr (how == collation::padded)
      finish_padded(slots, valid, holes);
    else if constexpr (how == collation::enlarged)
      finish_enlarged(slots, valid, holes);
    else
      finish_ragged(slots, valid);
  }

  [[nodiscard]] auto view(std::size_t /*first*/, std::size_t slots) const {
    return shown<const T, padded_view<T>, padded_arrays_view<T>, ragged_view<T>>(slots);
  }
  [[nodiscard]] auto edit(std::size_t /*first*/, std::size_t slots) {
    return shown<T, basic_padded_view<T>, basic_padded_arrays_view<T>, basic_ragged_view<T>>(slots);
  }
  [[nodiscard]] bytes_view bytes(std::size_t /*first*/, std::size_t slots) const {
    return flexible_values::bytes(slots);
  }

 private:
  static void write_at(T* into, const auto& value, const extents& shape, memory_space space) {
    if constexpr (detail::arranges<order>)
      detail::write_arranged<order>(value, into, shape, space);
    else
      detail::write_values(value, into, shape, space);
  }
  /// The element that fills padding; null for zeros.
  [[nodiscard]] static const std::byte* fill() noexcept {
    if constexpr (pads_all) {
      if constexpr (Policy::fill != 0) {
        static constexpr T value = static_cast<T>(Policy::fill);
        return reinterpret_cast<const std::byte*>(&value);
      }
    }
    return nullptr;
  }
  template <class U, class Padded, class PaddedArrays, class Ragged>
  [[nodiscard]] auto shown(std::size_t slots) const {
    if constexpr (detail::has_gaps<Policy>)
      return !shows_shape() ? strided_view<U>(tensor_view<U>(nullptr, extents(slots, 0)))
                            : strided_view<U>(place(0), shape().prepend(slots),
                                              detail::column_strides<Policy>(shape(), sizeof(T)));
    else if constexpr (stacks)
      return !shows_shape()  // only padding: no sample has shown its shape yet
                 ? tensor_view<U>(nullptr, extents(slots, 0))
                 : tensor_view<U>(place(0), layout::shown(shape()).prepend(slots));
    else if constexpr (pads)
      return Padded({place(0), shape().prepend(slots)}, offsets(), mask());
    else if constexpr (pads_all)
      return PaddedArrays({place(0), shape().prepend(slots)}, shapes());
    else
      return Ragged(place(0), offsets(), shapes(), slots);
  }
  [[nodiscard]] T* place(std::size_t slot) const noexcept { return reinterpret_cast<T*>(in_place(slot)); }
};

/// Whole values, for a loop without batches: owned, their memory reused.
template <class W>
class whole_column : public shapeless_column {
 public:
  template <class Session>
  whole_column(Session&, memory_account&) {}

  void begin(std::size_t slots) {
    if (cells_.size() < slots) cells_.resize(slots);
  }
  void grow(std::size_t slots, std::size_t) { begin(slots); }
  template <class U>
  void write(std::size_t slot, U&& value) {
    make_whole(std::forward<U>(value), cells_[slot].value);
  }
  void finish(std::size_t, std::size_t, std::size_t, bool = false) {}
  void blank(std::size_t) noexcept {}
  [[nodiscard]] extents shape_at(std::size_t) const noexcept { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return 0; }
  void release() noexcept {}
  [[nodiscard]] W& operator[](std::size_t slot) { return cells_[slot].value; }

 private:
  struct cell {  // a vector of bool has no references to its elements
    W value{};
  };
  std::vector<cell> cells_;
};

}  // namespace penstock::inline v0_1
