// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/flexible_values.hpp>

#include <penstock/run/block/slot_layout.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace penstock::inline v0_1 {

namespace detail {

[[nodiscard]] PENSTOCK_INLINE extents zeros_like(const extents& shape) noexcept {
  extents zeros;
  for (std::size_t i = 0; i < shape.rank(); ++i) zeros.push_back(0);
  return zeros;
}
/// The larger length of two shapes along each dimension.
[[nodiscard]] PENSTOCK_INLINE extents larger_of(const extents& a, const extents& b) noexcept {
  extents larger;
  for (std::size_t i = 0; i < a.rank(); ++i) larger.push_back(std::max(a[i], b[i]));
  return larger;
}
/// What to do about values of unequal shapes, of which one has this one.
[[nodiscard]] PENSTOCK_INLINE std::string_view how_to_stack(const extents& shape, bool encoded) noexcept {
  if (encoded)
    return "; these are bytes as they are stored: write decode before batch, or use ragged to keep them so";
  if (shape.rank() == 3)
    return "; if they are images, write resize or random_resized_crop before batch, or use pad_to_largest";
  return "; make them equal before batch, or use ragged, pad_to_longest or pad_to_largest";
}
/// Whether a shape has more elements than `maximum`, whatever its lengths.
[[nodiscard]] PENSTOCK_INLINE bool has_more_than(std::uint64_t maximum, const extents& shape) noexcept {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return false;
  for (const std::uint64_t length : shape) {
    if (length > maximum) return true;
    maximum /= length;
  }
  return false;
}

}  // namespace detail

PENSTOCK_INLINE flexible_values::flexible_values(flexible_values&&) noexcept = default;
PENSTOCK_INLINE flexible_values& flexible_values::operator=(flexible_values&&) noexcept = default;
PENSTOCK_INLINE flexible_values::~flexible_values() = default;

PENSTOCK_INLINE void flexible_values::begin(std::size_t slots) {
  const bool stacks = how_ == collation::stacked;
  make_entries(slots);
  if (stacks && !aside_) drop_pieces();  // no longer needed: the shape is known
  for (piece& p : pieces_) p.used = 0;
  piece_ = 0;
  ++round_;
  lead_ = 0;
  lead_shape_.reset();
  stride_ = stacks && has_shape_ ? slot_bytes(shape_) : 0;
  if (stacks) memory_.reserve(slots * stride_);
  aside_ = false;
}

PENSTOCK_INLINE void flexible_values::make_entries(std::size_t slots) {
  if (entries_.size() >= slots) return;
  try {
    entries_.resize(slots);
  } catch (const std::exception&) {  // too many bytes, or too many for a vector
    throw out_of_memory(slots * sizeof(entry), "the list of a batch's values", "make batches smaller");
  }
}

PENSTOCK_INLINE void flexible_values::grow(std::size_t slots, std::size_t written) {
  make_entries(slots);
  if (how_ == collation::stacked) memory_.reserve(slots * stride_, written * stride_);
}

PENSTOCK_INLINE void flexible_values::choose_lead(std::size_t valid) noexcept {
  std::array<std::size_t, 64> tried{};
  std::size_t shapes = 0, maximum = 0;
  for (std::size_t i = 0; i < valid && maximum < valid - i && shapes < tried.size(); ++i) {
    const auto fits = [&](std::size_t j) { return !is_blank(j) && fit_together(shape_at(i), shape_at(j)); };
    bool known = is_blank(i);
    for (std::size_t k = 0; k < shapes && !known; ++k) known = fits(tried[k]);
    if (known) continue;
    tried[shapes++] = i;
    std::size_t same = 0;
    for (std::size_t j = i; j < valid; ++j) same += fits(j);
    if (same > maximum) {
      maximum = same;
      lead_ = i;
    }
  }
}

/// A round without values shows the shape of the lead; what was expected when it began depends on when that
/// was.
PENSTOCK_INLINE void flexible_values::show_no_values(std::size_t slots) {
  expect(lead_shape_);
  if (has_shape_ && how_ == collation::padded) shape_ = shape_.drop_front().prepend(0);
  if (how_ == collation::padded) offsets_.assign(slots, 0), mask_.clear();
  if (how_ == collation::enlarged) shapes_.assign(slots, detail::zeros_like(shape_));
  stride_ = has_shape_ && how_ != collation::padded ? slot_bytes(shape_) : 0;
  if (slots * stride_ == 0) return;
  memory_.reserve(slots * stride_);
  std::memset(memory_.data(), 0, slots * stride_);
}

PENSTOCK_INLINE void flexible_values::copy(std::size_t to, const flexible_values& other, std::size_t first,
                                           std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const extents& shape = other.shape_at(first + i);
    const std::size_t size = slot_bytes(shape);
    const std::byte* const where =
        other.is_aside(first + i) ? other.entries_[first + i].where : other.in_place(first + i);
    const bool fits = how_ == collation::stacked && stride_ != 0 && shape == shape_;
    std::byte* const into = fits ? in_place(to + i) : put_aside(to + i, shape);
    if (size != 0) std::memcpy(into, where, size);
  }
}

PENSTOCK_INLINE std::uint64_t flexible_values::held() const noexcept {
  std::uint64_t bytes = memory_.capacity();
  for (const piece& p : pieces_) bytes += p.bytes.capacity();
  return bytes;
}

PENSTOCK_INLINE void flexible_values::release() noexcept {
  drop_pieces();
  memory_.release();
}

PENSTOCK_INLINE bytes_view flexible_values::bytes(std::size_t slots) const noexcept {
  if (memory_.data() == nullptr || (how_ != collation::appended && !has_shape_)) return {};
  if (how_ != collation::appended) return {memory_.data(), slots * slot_bytes(shape_)};
  return {memory_.data(), slots == 0 ? 0 : static_cast<std::size_t>(offsets_[slots]) * element_bytes_};
}

PENSTOCK_INLINE std::size_t flexible_values::slot_bytes_with_gaps(const extents& shape) const noexcept {
  return detail::to_size(detail::pitched_elements(shape, element_bytes_, row_alignment_)) * element_bytes_;
}

PENSTOCK_INLINE std::byte* flexible_values::put_aside(std::size_t slot, const extents& shape) {
  std::byte* const where = allocate((slot_bytes(shape) + 63) / 64 * 64);
  entries_[slot] = {round_, where, shape};
  return where;
}

PENSTOCK_INLINE std::byte* flexible_values::allocate(std::size_t bytes) {
  const std::lock_guard guard(*lock_);
  aside_ = true;
  while (piece_ < pieces_.size() && pieces_[piece_].used + bytes > pieces_[piece_].bytes.capacity()) ++piece_;
  if (piece_ == pieces_.size()) {
    pieces_.emplace_back();
    pieces_.back().bytes.resize_for_overwrite(
        std::max<std::size_t>(bytes, std::size_t{65'536} << std::min<std::size_t>(piece_, 8)));
    account_->bytes.fetch_add(pieces_.back().bytes.capacity(), std::memory_order_relaxed);
  }
  piece& p = pieces_[piece_];
  std::byte* const where = p.bytes.data() + p.used;
  p.used += bytes;
  return where;
}

PENSTOCK_INLINE void flexible_values::drop_pieces() noexcept {
  for (const piece& p : pieces_) account_->bytes.fetch_sub(p.bytes.capacity(), std::memory_order_relaxed);
  pieces_.clear();
}

/// Whether values of these shapes can be in one batch.
PENSTOCK_INLINE bool flexible_values::fit_together(const extents& a, const extents& b) const noexcept {
  if (how_ == collation::padded) return a.rank() != 0 && b.rank() != 0 && a.drop_front() == b.drop_front();
  if (how_ == collation::enlarged) return a.rank() != 0 && a.rank() == b.rank();
  return a == b;
}

/// The slot whose shape the others must match; `valid` where all are blank.
PENSTOCK_INLINE std::size_t flexible_values::lead_of(std::size_t valid) const noexcept {
  if (lead_ < valid && !is_blank(lead_)) return lead_;
  std::size_t lead = 0;
  while (lead < valid && is_blank(lead)) ++lead;
  return lead;
}

PENSTOCK_INLINE void flexible_values::finish_stack(std::size_t slots, std::size_t valid, bool holes) {
  if (holes ? lead_of(valid) == valid : valid == 0) return show_no_values(slots);
  if (aside_ || (lead_shape_ && !(shape_ == *lead_shape_))) put_in_place(slots, valid, holes);
  if (holes) fill_holes(valid);
  if (valid < slots && stride_ != 0) std::memset(in_place(valid), 0, (slots - valid) * stride_);
}

/// Some values did not have the expected shape: either all share another one, or it is an error.
PENSTOCK_INLINE void flexible_values::put_in_place(std::size_t slots, std::size_t valid, bool holes) {
  const extents first = shape_to_match(holes ? lead_of(valid) : 0);
  for (std::size_t i = 0; i < valid; ++i)
    if (!(shape_at(i) == first) && !(holes && is_blank(i)))
      throw slot_error{i, error(errc::shape, {"batch cannot stack a value of shape ", to_string(shape_at(i)),
                                              " with one of shape ", to_string(first),
                                              detail::how_to_stack(first, encoded_)})
                              .in_stage("batch")};
  stride_ = slot_bytes(first);
  memory_.reserve(slots * stride_);
  for (std::size_t i = 0; i < valid; ++i)  // with holes, some may be in place already
    if (stride_ != 0 && (!holes || (is_aside(i) && !is_blank(i))))
      std::memcpy(in_place(i), entries_[i].where, stride_);
  shape_ = first;
  has_shape_ = true;
}

PENSTOCK_INLINE void flexible_values::fill_holes(std::size_t valid) {
  for (std::size_t i = 0; i < valid && stride_ != 0; ++i)
    if (is_blank(i)) std::memset(in_place(i), 0, stride_);
}

PENSTOCK_INLINE void flexible_values::finish_ragged(std::size_t slots, std::size_t valid) {
  offsets_.resize(slots + 1);
  shapes_.resize(slots);
  offsets_[0] = 0;
  for (std::size_t i = 0; i < slots; ++i) {
    shapes_[i] = i < valid ? entries_[i].shape : extents(std::uint64_t{0});
    offsets_[i + 1] = offsets_[i] + shapes_[i].elements();
  }
  memory_.reserve(detail::to_size(offsets_[slots]) * element_bytes_);
  for (std::size_t i = 0; i < valid; ++i)
    if (const auto count = detail::to_size(offsets_[i + 1] - offsets_[i]); count != 0)
      std::memcpy(memory_.data() + detail::to_size(offsets_[i]) * element_bytes_, entries_[i].where,
                  count * element_bytes_);
}

PENSTOCK_INLINE void flexible_values::finish_padded(std::size_t slots, std::size_t valid, bool holes) {
  const std::size_t lead = holes ? lead_of(valid) : 0;
  if (lead >= valid) return show_no_values(slots);
  std::uint64_t longest = 0;
  const extents matched = shape_to_match(lead), inner = matched.drop_front();
  for (std::size_t i = 0; i < valid; ++i) {
    if (holes && is_blank(i)) continue;
    const extents& shape = entries_[i].shape;
    if (shape.rank() == 0 || !(shape.drop_front() == inner))
      throw slot_error{i, error(errc::shape, {"batch cannot pad a value of shape ", to_string(shape),
                                              " with one of shape ", to_string(matched),
                                              ": only the first dimension may differ"})
                              .in_stage("batch")};
    try {
      longest = std::max(longest, detail::rows_of(shape));
    } catch (const error& e) {
      throw slot_error{i, error(e).in_stage("batch")};
    }
  }
  if (const std::uint64_t over = multiple_ == 1 ? 0 : longest % multiple_; over != 0)
    longest += multiple_ - over;
  shape_ = inner.prepend(longest);
  has_shape_ = true;
  const std::size_t row = detail::to_size(shape_.elements()) * element_bytes_;
  memory_.reserve(slots * row);
  offsets_.assign(slots, 0);
  mask_.assign(slots * detail::to_size(longest), 0);
  std::byte* into = memory_.data();
  for (std::size_t i = 0; i < slots; ++i, into += row) {
    std::size_t filled = 0;
    if (i < valid && !(holes && is_blank(i))) {
      offsets_[i] = entries_[i].shape[0];
      filled = detail::to_size(entries_[i].shape.elements()) * element_bytes_;
      if (filled != 0) std::memcpy(into, entries_[i].where, filled);
      std::fill_n(mask_.begin() + static_cast<std::ptrdiff_t>(i * longest), offsets_[i], std::uint8_t{1});
    }
    if (filled != row) std::memset(into + filled, 0, row - filled);
  }
}

/// The shape of the slots. Throws if ranks differ, or if small values claim a much larger block: values that
/// are long in different directions need slots that are larger than all of them, and those without elements
/// take no bytes at all.
PENSTOCK_INLINE extents flexible_values::largest_shape(std::size_t slots, std::size_t valid,
                                                       bool holes) const {
  const std::size_t lead = holes ? lead_of(valid) : 0;
  const extents matched = shape_to_match(lead);
  extents largest = entries_[lead].shape;
  std::uint64_t maximum = 1;  // elements of a value
  for (std::size_t i = 0; i < valid; ++i) {
    if (holes && is_blank(i)) continue;
    const extents& shape = entries_[i].shape;
    if (!fit_together(matched, shape))
      throw slot_error{i, error(errc::shape, {"batch cannot pad a value of shape ", to_string(shape),
                                              " to the largest beside one of shape ", to_string(matched),
                                              ": they need equal numbers of dimensions, at least one"})
                              .in_stage("batch")};
    largest = detail::larger_of(largest, shape);
    maximum = std::max(maximum, shape.elements());
    const std::uint64_t fits = (std::uint64_t{1} << 62) / element_bytes_ / slots;
    if (detail::has_more_than(std::min(fits, maximum > fits >> 6 ? fits : maximum << 6), largest))
      throw slot_error{
          i, error(errc::limit,
                   {"batch would pad a value of shape ", to_string(shape), " to ", to_string(largest),
                    ", which is more than 64 times the elements of any value; crop or resize before batch, "
                    "or use ragged"})
                 .in_stage("batch")};
  }
  return largest;
}

PENSTOCK_INLINE void flexible_values::finish_enlarged(std::size_t slots, std::size_t valid, bool holes) {
  if (holes ? lead_of(valid) == valid : valid == 0) return show_no_values(slots);
  has_shape_ = true;
  shape_ = largest_shape(slots, valid, holes);
  shapes_.assign(slots, detail::zeros_like(shape_));
  const std::size_t row = detail::to_size(shape_.elements()) * element_bytes_;
  memory_.reserve(slots * row);
  std::byte* into = memory_.data();
  for (std::size_t i = 0; row != 0 && i < slots; ++i, into += row) {
    if (i < valid && !(holes && is_blank(i)))
      enlarge(into, entries_[i].where, entries_[i].shape);
    else
      std::memset(into, 0, row);
  }
  for (std::size_t i = 0; i < valid; ++i)
    if (!(holes && is_blank(i))) shapes_[i] = entries_[i].shape;
}

/// Copies a value to the front corner of a slot, and fills the rest.
PENSTOCK_INLINE void flexible_values::enlarge(std::byte* into, const std::byte* value,
                                              const extents& shape) const noexcept {
  std::size_t inner = element_bytes_, axis = shape_.rank() - 1;
  for (; axis > 0 && shape[axis] == shape_[axis]; --axis) inner *= detail::to_size(shape_[axis]);
  const std::size_t run = detail::to_size(shape[axis]) * inner;     // dense in both
  const std::size_t pitch = detail::to_size(shape_[axis]) * inner;  // from one run to the next, in the slot
  std::array<std::uint64_t, extents::max_rank> at{};                // indexes of a run
  std::size_t runs = 1;
  for (std::size_t i = 0; i < axis; ++i) runs *= detail::to_size(shape_[i]);
  for (std::size_t k = 0; k < runs; ++k, into += pitch) {
    bool within = run != 0;
    for (std::size_t i = 0; i < axis; ++i) within = within && at[i] < shape[i];
    const std::size_t copied = within ? run : 0;
    if (within) {
      std::memcpy(into, value, run);
      value += run;
    }
    fill_with(into + copied, pitch - copied);
    for (std::size_t i = axis; i-- > 0 && ++at[i] == shape_[i];) at[i] = 0;
  }
}

PENSTOCK_INLINE void flexible_values::fill_with(std::byte* into, std::size_t bytes) const noexcept {
  if (bytes == 0) return;
  if (fill_ == nullptr || element_bytes_ == 1) {
    std::memset(into, fill_ == nullptr ? 0 : std::to_integer<int>(*fill_), bytes);
    return;
  }
  std::memcpy(into, fill_, element_bytes_);
  for (std::size_t done = element_bytes_; done < bytes;) {
    const std::size_t more = std::min(done, bytes - done);
    std::memcpy(into + done, into, more);
    done += more;
  }
}

}  // namespace penstock::inline v0_1
