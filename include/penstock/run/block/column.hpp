// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/collate.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/run/block/batch_view.hpp>
#include <penstock/run/block/slot_memory.hpp>
#include <penstock/run/block/whole.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// One field of a block: where its values are written, and how they become one piece.
///
/// The life of a column in one round of its block: `begin(slots)` by the consumer; `write(slot, value)` by
/// workers, each slot once;
/// `finish(first, slots, valid)` for each batch by whoever ends the last grain; `view(first, slots)` for the
/// consumer. A slot that stays without a value is `blank`, and one that was begun in vain is `unwrite`n
/// before it is written again; `finish` is told that there are such `holes`. `copy(...)` moves rows between
/// blocks. A block of several batches has fixed columns only: for the others `first` is 0.
namespace penstock::inline v0_1 {

/// A failure that belongs to one slot.
struct slot_error {
  std::uint64_t slot;
  error what;
};

namespace detail {

template <class V>
constexpr bool is_view_of_values = requires(const V& v) {
  v.data();
  v.size();
};

/// How many values a flexible element has.
template <class V>
std::size_t value_count(const V& v) {
  if constexpr (array_expression<V>)
    return static_cast<std::size_t>(v.shape().elements());
  else if constexpr (requires { v.shape(); })
    return static_cast<std::size_t>(v.shape().elements());
  else
    return static_cast<std::size_t>(v.size());
}

/// Whether a value has this shape; asks without making one where it can.
template <class V>
bool has_shape(const V& v, const extents& shape) {
  if constexpr (requires { v.shape(); })
    return v.shape() == shape;
  else
    return shape.rank() == 1 && shape[0] == static_cast<std::uint64_t>(v.size());
}

template <class V>
extents value_shape(const V& v) {
  if constexpr (requires { v.shape(); })
    return v.shape();
  else
    return extents(static_cast<std::uint64_t>(v.size()));
}

/// Writes a flexible element to its destination.
template <class T, class V>
void write_values(const V& v, T* into) {
  if constexpr (blob<V>) {
    v.read_into({reinterpret_cast<std::byte*>(into), static_cast<std::size_t>(v.size())});
  } else if constexpr (array_expression<V>) {
    v.write_to(into);
  } else if constexpr (requires { v.values(); }) {
    const auto values = v.values();
    if (!values.empty()) std::memcpy(into, values.data(), values.size() * sizeof(T));
  } else {
    if (v.size() != 0) std::memcpy(into, v.data(), v.size() * sizeof(T));
  }
}

}  // namespace detail

/// Values whose shape the type knows: written in place, nothing else to do.
template <class V, class Session>
class fixed_column {
  using stored = detail::stored<V>;

 public:
  using value_type = typename stored::type;

  fixed_column(Session& session, memory_account& account) : memory_(session, account) {}

  void begin(std::size_t slots) { memory_.reserve(slots * row_bytes); }
  /// Room for more rows of a block that is being filled by one thread.
  void grow(std::size_t slots, std::size_t written) {
    memory_.reserve(slots * row_bytes, written * row_bytes);
  }

  template <class U>
  void write(std::size_t slot, U&& value) {
    value_type* into = row(slot);
    if constexpr (static_array_expression<U>)
      value.write_to(into);
    else if constexpr (stored::scalar)
      *into = static_cast<value_type>(std::forward<U>(value));
    else
      copy_row(into, value.data());
  }
  void blank(std::size_t slot) { std::memset(static_cast<void*>(row(slot)), 0, row_bytes); }
  void unwrite(std::size_t) noexcept {}
  void choose_lead(std::size_t) noexcept {}
  /// Ends rows [first, first + slots), of which `valid` were written.
  void finish(std::size_t first, std::size_t slots, std::size_t valid, bool /*holes*/ = false) {
    if (valid < slots) std::memset(static_cast<void*>(row(first + valid)), 0, (slots - valid) * row_bytes);
  }
  /// Rows [first, first + count) of `other` become rows [to, ...) of this block.
  void copy(std::size_t to, const fixed_column& other, std::size_t first, std::size_t count) {
    if (count != 0)
      std::memcpy(memory_.data() + to * row_bytes, other.memory_.data() + first * row_bytes,
                  count * row_bytes);
  }
  void expect(const extents&) {}
  [[nodiscard]] extents shape() const { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return memory_.capacity(); }
  void release() noexcept { memory_.release(); }

  [[nodiscard]] auto view(std::size_t first, std::size_t slots) const {
    if constexpr (stored::scalar) {
      return std::span<const value_type>(row(first), slots);
    } else if constexpr (static_array_expression<V>) {
      return tensor_view<const value_type>(row(first), V::static_shape.prepend(slots));
    } else {
      return tensor_view<const value_type>(row(first), extents(slots, stored::elements));
    }
  }
  [[nodiscard]] bytes_view bytes(std::size_t first, std::size_t slots) const {
    return {memory_.data() + first * row_bytes, slots * row_bytes};
  }

 private:
  static constexpr std::size_t row_bytes = sizeof(value_type) * stored::elements;
  [[nodiscard]] value_type* row(std::size_t slot) const {
    return reinterpret_cast<value_type*>(memory_.data()) + slot * stored::elements;
  }
  /// A short row with a size that the compiler knows, so that no call is needed; of a long one the library
  /// knows better than the compiler, which makes a string instruction of it.
  static void copy_row(void* into, const void* values) noexcept {
    std::size_t size = row_bytes;
    if constexpr (row_bytes > 256) asm("" : "+r"(size));
    std::memcpy(into, values, size);
  }

  slot_memory<Session> memory_;
};

/// Values whose shape is known at run time.
///
/// Under `stack` a value is written in place where it has the shape of those of the batch before; others go
/// to a side arena and are put in order at the end, so that only the first batches of a run are copied, and
/// in place nothing is noted per value. `ragged` and `pad_to_longest` always go through the arena:
/// where a value stands is known when all are there.
template <class T, class Policy, class Session>
class flexible_column {
  static constexpr bool stacks = std::is_same_v<Policy, stack_policy>;
  static constexpr bool pads = std::is_same_v<Policy, pad_policy>;

  struct entry {
    std::uint64_t round = 0;  // another one: the value is in place and has the expected shape
    const T* where = nullptr;
    extents shape;
  };
  struct piece {
    buffer bytes;
    std::size_t used = 0;
  };

 public:
  using value_type = T;

  flexible_column(Session& session, memory_account& account)
      : memory_(session, account), account_(&account), lock_(std::make_unique<std::mutex>()) {}
  flexible_column(flexible_column&&) noexcept = default;
  flexible_column& operator=(flexible_column&&) noexcept = default;

  void begin(std::size_t slots) {
    if (entries_.size() < slots) entries_.resize(slots);
    if (stacks && !aside_) drop_pieces();  // the shape is known now
    for (auto& p : pieces_) p.used = 0;
    piece_ = 0;
    ++round_;
    lead_ = 0;
    stride_ = stacks && shape_.rank() != 0 ? static_cast<std::size_t>(shape_.elements()) : 0;
    if (stacks) memory_.reserve(slots * stride_ * sizeof(T));
    aside_ = false;
  }
  void grow(std::size_t slots, std::size_t written) {
    if (entries_.size() < slots) entries_.resize(slots);
    if (stacks) memory_.reserve(slots * stride_ * sizeof(T), written * stride_ * sizeof(T));
  }

  template <class U>
  void write(std::size_t slot, U&& value) {
    if (stacks && stride_ != 0 && detail::has_shape(value, shape_)) {
      detail::write_values(value, in_place(slot));
    } else {
      T* into = allocate(detail::value_count(value));
      entries_[slot] = {round_, into, detail::value_shape(value)};
      detail::write_values(value, into);
    }
  }

  void blank(std::size_t slot) { entries_[slot] = {round_, nullptr, extents(std::uint64_t{0})}; }
  void unwrite(std::size_t slot) noexcept { entries_[slot].round = 0; }
  /// After a failure of `finish`: shapes are from now on measured against the one that most slots have, of
  /// several the first; of more than 64 shapes, against one of the first 64. Cost: slots times shapes.
  void choose_lead(std::size_t valid) noexcept {
    std::array<std::size_t, 64> tried{};
    std::size_t shapes = 0, most = 0;
    for (std::size_t i = 0; i < valid && most < valid - i && shapes < tried.size(); ++i) {
      const auto fits = [&](std::size_t j) { return !is_blank(j) && fit_together(shape_at(i), shape_at(j)); };
      if (is_blank(i) || std::any_of(tried.begin(), tried.begin() + shapes, fits)) continue;
      tried[shapes++] = i;
      std::size_t same = 0;
      for (std::size_t j = i; j < valid; ++j) same += fits(j);
      if (same > most) {
        most = same;
        lead_ = i;
      }
    }
  }

  /// Puts rows in order. Under `stack` throws a `slot_error` for the first slot whose shape is another than
  /// the first one's.
  void finish(std::size_t /*first*/, std::size_t slots, std::size_t valid, bool holes = false) {
    if constexpr (stacks)
      finish_stack(slots, valid, holes);
    else if constexpr (pads)
      finish_padded(slots, valid, holes);
    else
      finish_ragged(slots, valid);
  }

  void copy(std::size_t to, const flexible_column& other, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool aside = other.is_aside(first + i);
      write(to + i, tensor_view<const T>(aside ? other.entries_[first + i].where : other.in_place(first + i),
                                         other.shape_at(first + i)));
    }
  }

  /// Bytes of memory, used or not.
  [[nodiscard]] std::uint64_t held() const noexcept {
    std::uint64_t bytes = memory_.capacity();
    for (const piece& p : pieces_) bytes += p.bytes.capacity();
    return bytes;
  }
  /// Gives all memory back.
  void release() noexcept {
    drop_pieces();
    memory_.release();
  }

  /// The shape of the values of the last round, and what a block that begins may expect.
  [[nodiscard]] const extents& shape() const { return shape_; }
  void expect(const extents& shape) { shape_ = shape; }

  [[nodiscard]] auto view(std::size_t /*first*/, std::size_t slots) const {
    if constexpr (stacks)
      return memory_.data() == nullptr  // padding alone, and no sample has shown its shape yet
                 ? tensor_view<const T>(nullptr, extents(slots, 0))
                 : tensor_view<const T>(in_place(0), shape_.prepend(slots));
    else if constexpr (pads)
      return padded_view<T>({in_place(0), shape_.prepend(slots)}, offsets_.data(), mask_.data());
    else
      return ragged_view<T>(in_place(0), offsets_.data(), shapes_.data(), slots);
  }
  [[nodiscard]] bytes_view bytes(std::size_t /*first*/, std::size_t slots) const {
    if (memory_.data() == nullptr) return {};
    if constexpr (stacks || pads)
      return {memory_.data(), slots * static_cast<std::size_t>(shape_.elements()) * sizeof(T)};
    else
      return {memory_.data(), slots == 0 ? 0 : static_cast<std::size_t>(offsets_[slots]) * sizeof(T)};
  }

 private:
  [[nodiscard]] T* in_place(std::size_t slot) const {
    return reinterpret_cast<T*>(memory_.data()) + slot * stride_;
  }

  /// A place in the side arena. Workers share it; what it has allocated it keeps for the next round.
  T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    const std::lock_guard guard(*lock_);
    aside_ = true;
    while (piece_ < pieces_.size() && pieces_[piece_].used + bytes > pieces_[piece_].bytes.capacity())
      ++piece_;
    if (piece_ == pieces_.size()) {
      pieces_.emplace_back();
      pieces_.back().bytes.resize_for_overwrite(
          std::max<std::size_t>(bytes, std::size_t{65'536} << std::min<std::size_t>(piece_, 8)));
      account_->bytes.fetch_add(pieces_.back().bytes.capacity(), std::memory_order_relaxed);
    }
    piece& p = pieces_[piece_];
    auto* where = reinterpret_cast<T*>(p.bytes.data() + p.used);
    p.used += bytes;
    return where;
  }

  void drop_pieces() noexcept {
    for (const piece& p : pieces_) account_->bytes.fetch_sub(p.bytes.capacity(), std::memory_order_relaxed);
    pieces_.clear();
  }
  [[nodiscard]] bool is_aside(std::size_t slot) const { return entries_[slot].round == round_; }
  [[nodiscard]] const extents& shape_at(std::size_t slot) const {
    return is_aside(slot) ? entries_[slot].shape : shape_;
  }

  [[nodiscard]] bool is_blank(std::size_t slot) const noexcept {
    return is_aside(slot) && entries_[slot].where == nullptr;
  }
  /// Whether values of these shapes can be in one batch.
  [[nodiscard]] static bool fit_together(const extents& a, const extents& b) noexcept {
    if constexpr (pads) return a.rank() != 0 && b.rank() != 0 && a.drop_front() == b.drop_front();
    return a == b;
  }
  /// The slot whose shape counts; `valid` where all are blank.
  [[nodiscard]] std::size_t lead_of(std::size_t valid) const noexcept {
    std::size_t lead = lead_ < valid ? lead_ : 0;
    if (lead < valid && is_blank(lead))
      for (lead = 0; lead < valid && is_blank(lead); ++lead) {
      }
    return lead;
  }

  void finish_stack(std::size_t slots, std::size_t valid, bool holes) {
    if (aside_ && valid != 0) put_in_place(slots, valid, holes);
    if (holes) fill_holes(valid);
    if (valid < slots && stride_ != 0)
      std::memset(static_cast<void*>(in_place(valid)), 0, (slots - valid) * stride_ * sizeof(T));
  }
  /// Some values were not of the expected shape: either all have another one, or there is an error.
  void put_in_place(std::size_t slots, std::size_t valid, bool holes) {
    const std::size_t lead = holes ? lead_of(valid) : 0;
    if (lead == valid) return;
    const extents first = shape_at(lead);
    for (std::size_t i = 0; i < valid; ++i)
      if (!(shape_at(i) == first) && !(holes && is_blank(i)))
        throw slot_error{
            i, error(errc::shape,
                     {"batch cannot stack a value of shape ", to_string(shape_at(i)), " with one of shape ",
                      to_string(first), "; make them equal before batch, or use ragged or pad_to_longest"})
                   .in_stage("batch")};
    stride_ = static_cast<std::size_t>(first.elements());
    memory_.reserve(slots * stride_ * sizeof(T));
    for (std::size_t i = 0; i < valid; ++i)  // with holes some may be in place already
      if (stride_ != 0 && (!holes || (is_aside(i) && !is_blank(i))))
        std::memcpy(in_place(i), entries_[i].where, stride_ * sizeof(T));
    shape_ = first;
  }
  void fill_holes(std::size_t valid) {
    if (stride_ == 0 && lead_of(valid) == valid) shape_ = extents(std::uint64_t{0});  // none was seen yet
    for (std::size_t i = 0; i < valid && stride_ != 0; ++i)
      if (is_blank(i)) std::memset(static_cast<void*>(in_place(i)), 0, stride_ * sizeof(T));
  }

  void finish_ragged(std::size_t slots, std::size_t valid) {
    offsets_.resize(slots + 1);
    shapes_.resize(slots);
    offsets_[0] = 0;
    for (std::size_t i = 0; i < slots; ++i) {
      shapes_[i] = i < valid ? entries_[i].shape : extents(std::uint64_t{0});
      offsets_[i + 1] = offsets_[i] + shapes_[i].elements();
    }
    memory_.reserve(static_cast<std::size_t>(offsets_[slots]) * sizeof(T));
    for (std::size_t i = 0; i < valid; ++i)
      if (const auto count = static_cast<std::size_t>(offsets_[i + 1] - offsets_[i]); count != 0)
        std::memcpy(in_place(0) + offsets_[i], entries_[i].where, count * sizeof(T));
  }

  void finish_padded(std::size_t slots, std::size_t valid, bool holes) {
    std::uint64_t longest = 0;
    const std::size_t lead = holes ? lead_of(valid) : 0;
    const extents inner = lead >= valid ? extents() : entries_[lead].shape.drop_front();
    for (std::size_t i = 0; i < valid; ++i) {
      if (holes && is_blank(i)) continue;
      const extents& shape = entries_[i].shape;
      if (shape.rank() == 0 || !(shape.drop_front() == inner))
        throw slot_error{i, error(errc::shape, {"batch cannot pad a value of shape ", to_string(shape),
                                                " beside one of shape ", to_string(entries_[lead].shape),
                                                ": only the first length may differ"})
                                .in_stage("batch")};
      try {
        longest = std::max(longest, detail::rows_of(shape));
      } catch (const error& e) {
        throw slot_error{i, error(e).in_stage("batch")};
      }
    }
    shape_ = inner.prepend(longest);
    const auto stride = static_cast<std::size_t>(shape_.elements());
    memory_.reserve(slots * stride * sizeof(T));
    offsets_.assign(slots, 0);
    mask_.assign(slots * static_cast<std::size_t>(longest), 0);
    T* into = in_place(0);
    for (std::size_t i = 0; i < slots; ++i, into += stride) {
      std::size_t count = 0;
      if (i < valid && !(holes && is_blank(i))) {
        offsets_[i] = entries_[i].shape[0];
        count = static_cast<std::size_t>(entries_[i].shape.elements());
        if (count != 0) std::memcpy(into, entries_[i].where, count * sizeof(T));
        std::fill_n(mask_.begin() + static_cast<std::ptrdiff_t>(i * longest), offsets_[i], std::uint8_t{1});
      }
      if (count != stride) std::memset(static_cast<void*>(into + count), 0, (stride - count) * sizeof(T));
    }
  }

  slot_memory<Session> memory_;
  memory_account* account_;
  std::unique_ptr<std::mutex> lock_;
  std::vector<entry> entries_;
  std::vector<piece> pieces_;
  std::size_t piece_ = 0;
  std::size_t stride_ = 0;
  std::uint64_t round_ = 0;
  std::size_t lead_ = 0;  // the slot with whose shape others must agree
  bool aside_ = false;
  extents shape_;                       // stack: of the values in place
  std::vector<std::uint64_t> offsets_;  // ragged: offsets; padded: lengths
  std::vector<extents> shapes_;
  std::vector<std::uint8_t> mask_;
};

/// Whole values, for a loop without batches: owned, their memory re-used.
template <class W>
class whole_column {
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
  void unwrite(std::size_t) noexcept {}
  void choose_lead(std::size_t) noexcept {}
  void expect(const extents&) {}
  [[nodiscard]] extents shape() const { return {}; }
  [[nodiscard]] std::uint64_t held() const noexcept { return 0; }
  void release() noexcept {}
  [[nodiscard]] W& operator[](std::size_t slot) { return cells_[slot].value; }

 private:
  struct cell {  // a vector of bool has no references to its values
    W value{};
  };
  std::vector<cell> cells_;
};

}  // namespace penstock::inline v0_1
