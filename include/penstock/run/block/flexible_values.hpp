// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/run/block/slot_memory.hpp>

#include <mutex>
#include <optional>
#include <vector>

namespace penstock::inline v0_1 {

/// A failure that belongs to one slot.
struct slot_error {
  std::uint64_t slot;
  error what;
};

/// How values whose shape is known only at run time are collated.
/// `padded`: to the longest, along the first dimension; `enlarged`: to the largest, along all.
enum class collation : std::uint8_t { stacked, appended, padded, enlarged };

/// The values of one field of a block whose shapes are known only at run time, as bytes: where each is
/// written, and how they are collated. `flexible_column` gives them their type.
///
/// Under `stacked`, a value that has the shape of the batch before is written in place; others go to a side
/// arena and are put in order at the end. So only the first batches of a run are copied, and values written
/// in place need no bookkeeping. `appended`, `padded` and `enlarged` always use the arena: a value's place is
/// known only when all values are there.
class flexible_values {
 public:
  /// `row_alignment`: the alignment of rows of stacked values in bytes, or 0 if they have no gaps. `fill`: an
  /// element that outlives this, with which `enlarged` pads; null for zeros. `encoded`: the values are bytes.
  /// `multiple`: the length of `padded` values is a multiple of it.
  flexible_values(auto& session, memory_account& account, collation how, std::size_t element_bytes,
                  std::size_t row_alignment = 0, const std::byte* fill = nullptr, bool encoded = false,
                  std::size_t multiple = 1)
      : memory_(session, account),
        account_(&account),
        lock_(new std::mutex),
        how_(how),
        element_bytes_(element_bytes),
        row_alignment_(row_alignment),
        fill_(fill),
        encoded_(encoded),
        multiple_(multiple) {}
  flexible_values(flexible_values&&) noexcept;
  flexible_values& operator=(flexible_values&&) noexcept;
  ~flexible_values();

  void begin(std::size_t slots);
  void grow(std::size_t slots, std::size_t written);
  void blank(std::size_t slot) { entries_[slot] = {round_, nullptr, extents(std::uint64_t{0})}; }
  void unwrite(std::size_t slot) noexcept { entries_[slot].round = 0; }
  /// After a failure of `finish`: from now on compares shapes with the most frequent one; among equally
  /// frequent ones, with the first. If there are more than 64 shapes, considers only the first 64. Cost:
  /// slots times shapes.
  void choose_lead(std::size_t valid) noexcept;
  /// Rows [first, first + count) of `other` become rows [to, ...) of this block.
  void copy(std::size_t to, const flexible_values& other, std::size_t first, std::size_t count);

  [[nodiscard]] std::uint64_t held() const noexcept;
  void release() noexcept;
  /// After all writes: whether the value of a slot can be collated with others, because it has a dimension
  /// along which to pad it. Its shape can then be the lead.
  [[nodiscard]] bool can_lead(std::size_t slot) const noexcept {
    return how_ == collation::stacked || how_ == collation::appended || shape_at(slot).rank() != 0;
  }
  [[nodiscard]] const extents& shape_at(std::size_t slot) const {
    return is_aside(slot) ? entries_[slot].shape : shape_;
  }
  /// Before `finish`: the shape that the values must match, in the place of that of the first one; a round
  /// without values takes it, and all its rows are zeros.
  void lead(const extents& shape) { lead_shape_ = shape; }
  /// The shape of the values of the last round, which the next block may expect; for padded values, that of
  /// the longest, with its length; for enlarged ones, that of their slots. Empty if no value has shown a
  /// shape yet.
  [[nodiscard]] std::optional<extents> known_shape() const noexcept {
    return has_shape_ ? std::optional(shape_) : std::nullopt;
  }
  void expect(const std::optional<extents>& shape) {
    has_shape_ = shape.has_value();
    shape_ = shape.value_or(extents());
  }
  [[nodiscard]] const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] bytes_view bytes(std::size_t slots) const noexcept;

 protected:
  // Put rows in order: one for each collation, so that a program compiles only those that its columns use.
  /// Throws a `slot_error` for the first slot whose shape differs from the lead's.
  void finish_stack(std::size_t slots, std::size_t valid, bool holes);
  void finish_ragged(std::size_t slots, std::size_t valid);
  void finish_padded(std::size_t slots, std::size_t valid, bool holes);
  void finish_enlarged(std::size_t slots, std::size_t valid, bool holes);

  /// Whether a value of the expected shape is written straight to its place.
  [[nodiscard]] bool knows_shape() const noexcept { return stride_ != 0; }
  [[nodiscard]] std::byte* in_place(std::size_t slot) const noexcept {
    return memory_.data() + slot * stride_;
  }
  [[nodiscard]] bool shows_shape() const noexcept { return has_shape_; }
  /// Allocates from the side arena for the value of a slot, laid out as it will be in the slot. Workers share
  /// the arena, which keeps its memory for the next round.
  [[nodiscard]] std::byte* put_aside(std::size_t slot, const extents& shape);
  [[nodiscard]] const std::byte* where_aside(std::size_t slot) const noexcept { return entries_[slot].where; }
  [[nodiscard]] memory_space space() const noexcept { return memory_.space(); }
  [[nodiscard]] const std::uint64_t* offsets() const noexcept { return offsets_.data(); }
  [[nodiscard]] const extents* shapes() const noexcept { return shapes_.data(); }
  [[nodiscard]] const std::uint8_t* mask() const noexcept { return mask_.data(); }

 private:
  struct entry {
    std::uint64_t round = 0;  // not `round_`: the value is in place, in the expected shape
    const std::byte* where = nullptr;
    extents shape;
  };
  struct piece {
    buffer bytes;
    std::size_t used = 0;
  };

  /// Bytes of a slot for values of this shape.
  [[nodiscard]] std::size_t slot_bytes(const extents& shape) const noexcept {
    return row_alignment_ == 0 ? detail::to_size(shape.elements()) * element_bytes_
                               : slot_bytes_with_gaps(shape);
  }
  [[nodiscard, gnu::cold]] std::size_t slot_bytes_with_gaps(const extents& shape) const noexcept;
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  void drop_pieces() noexcept;
  [[nodiscard]] bool is_aside(std::size_t slot) const { return entries_[slot].round == round_; }
  [[nodiscard]] bool is_blank(std::size_t slot) const noexcept {
    return is_aside(slot) && entries_[slot].where == nullptr;
  }
  [[nodiscard]] bool fit_together(const extents& a, const extents& b) const noexcept;
  [[nodiscard]] std::size_t lead_of(std::size_t valid) const noexcept;
  [[nodiscard]] extents shape_to_match(std::size_t slot) const {
    return lead_shape_ ? *lead_shape_ : shape_at(slot);
  }
  void make_entries(std::size_t slots);
  void show_no_values(std::size_t slots);
  void put_in_place(std::size_t slots, std::size_t valid, bool holes);
  void fill_holes(std::size_t valid);
  [[nodiscard]] extents largest_shape(std::size_t slots, std::size_t valid, bool holes) const;
  void enlarge(std::byte* into, const std::byte* value, const extents& shape) const noexcept;
  void fill_with(std::byte* into, std::size_t bytes) const noexcept;

  slot_memory memory_;
  memory_account* account_;
  detail::owned<std::mutex> lock_;
  collation how_;
  bool aside_ = false;
  bool has_shape_ = false;  // `shape_` comes from values, of this round or an earlier one
  std::size_t element_bytes_;
  std::size_t row_alignment_;
  const std::byte* fill_;
  bool encoded_;
  std::size_t multiple_;
  std::vector<entry> entries_;
  std::vector<piece> pieces_;
  std::size_t piece_ = 0;
  std::size_t stride_ = 0;  // bytes of a row, once the shape is known
  std::uint64_t round_ = 0;
  std::size_t lead_ = 0;  // the slot whose shape the others must match, unless it is given:
  std::optional<extents> lead_shape_;
  extents shape_;                       // stack: the shape of the values in place
  std::vector<std::uint64_t> offsets_;  // ragged: offsets; padded: lengths
  std::vector<extents> shapes_;         // ragged, enlarged
  std::vector<std::uint8_t> mask_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/block/flexible_values.ipp>
#endif
