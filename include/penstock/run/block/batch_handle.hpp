// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/core/record.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/block/block.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A batch: a move-only handle on memory of the run's pool. Dropping it gives the memory back; it keeps the
/// pool alive, so it may outlive its run. `get<"name">(b)` gives a field: a span or tensor view, or a ragged
/// or padded view by collate policy.
///
/// Views are valid as long as the handle is held. One thread at a time may use a batch; it may be dropped in
/// any thread.
template <class Core>
class batch_handle {
  using block_type = typename Core::block_type;
  using parts = plan_parts<typename Core::plan_type>;

 public:
  using is_batch = void;
  using element = typename parts::element;

  batch_handle() = default;
  /// Takes one share of the block, which keeps its pool alive.
  batch_handle(block_type* p, const batch_rows& batch) noexcept
      : block_(p),
        first_(static_cast<std::size_t>(batch.first)),
        slots_(static_cast<std::size_t>(batch.slots)),
        valid_(static_cast<std::size_t>(batch.valid)),
        global_(static_cast<std::size_t>(batch.global)),
        place_(batch.delivered) {}
  batch_handle(batch_handle&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        first_(other.first_),
        slots_(other.slots_),
        valid_(other.valid_),
        global_(other.global_),
        place_(other.place_),
        mask_(std::move(other.mask_)) {}
  batch_handle& operator=(batch_handle&& other) noexcept {
    if (this != &other) {
      reset();
      block_ = std::exchange(other.block_, nullptr);
      first_ = other.first_;
      slots_ = other.slots_;
      valid_ = other.valid_;
      global_ = other.global_;
      place_ = other.place_;
      mask_ = std::move(other.mask_);
    }
    return *this;
  }
  ~batch_handle() { reset(); }

  /// Gives the memory back to the pool.
  void reset() noexcept {
    if (block_ != nullptr) Core::give_up(*std::exchange(block_, nullptr), 1);
  }
  /// Leaves the handle empty and its share with the caller.
  [[nodiscard]] block_type* forget() noexcept {
    mask_.reset();
    return std::exchange(block_, nullptr);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }

  /// Slots of this rank's batch, padding included.
  [[nodiscard]] std::size_t size() const { return slots_; }
  /// Slots that hold a sample. They come first; `bad_samples::skip` leaves holes among them, see `valid()`.
  [[nodiscard]] std::size_t valid_size() const {
    if constexpr (parts::tolerant) return block_ == nullptr ? 0 : valid_ - block_->bad.holes(first_, slots_);
    return valid_;
  }
  /// Samples of the whole global step, all ranks together; behind filter and unbatch this rank's. Holes
  /// count: a rank does not know those of others.
  [[nodiscard]] std::size_t global_size() const { return global_; }
  /// 1 for each slot that holds a sample, 0 for padding and for holes. Allocates when first asked.
  [[nodiscard]] std::span<const std::uint8_t> valid() const {
    if (mask_ == nullptr) {
      mask_ = std::make_unique<std::uint8_t[]>(slots_);
      std::fill_n(mask_.get(), valid_, std::uint8_t{1});
      if constexpr (parts::tolerant)
        for (const auto& one : block_->bad.all())
          if (one.hole && one.row >= first_ && one.row < first_ + slots_) mask_[one.row - first_] = 0;
    }
    return {mask_.get(), slots_};
  }
  [[nodiscard]] std::uint64_t epoch() const { return place_.epoch; }
  /// The number of this batch in its epoch.
  [[nodiscard]] std::uint64_t step() const { return place_.index; }

  /// The global position of each slot that is not padding; of a hole, and of a sample that was replaced, that
  /// of the bad sample. Allocates.
  [[nodiscard]] std::vector<position> positions() const { return Core::positions(*block_, first_, valid_); }
  /// The key of the sample at each of the positions, from the source; for indexed sources that have keys.
  /// Allocates, and may read the index.
  [[nodiscard]] std::vector<std::string> keys() const
    requires(!parts::forward)
  {
    std::vector<std::string> all;
    for (const position at : positions()) all.push_back(core().key(at));
    return all;
  }

  /// The view of field `I`, in the order of the element's type; 0 for an element that is no record.
  template <std::size_t I>
  [[nodiscard]] auto field() const& {
    return block_->columns.template column<I>().view(first_, slots_);
  }
  template <std::size_t I>
  auto field() const&& {
    static_assert(I == static_cast<std::size_t>(-1),
                  "penstock: a view into a batch that is about to go; give the batch a name and keep it as "
                  "long as the view");
  }
  /// The one field of a batch whose elements are no records.
  [[nodiscard]] auto values() const&
    requires(!any_record<element>)
  {
    return field<0>();
  }
  [[nodiscard]] auto begin() const&
    requires(!any_record<element> && requires(const batch_handle& b) { b.template field<0>().begin(); })
  {
    return field<0>().begin();
  }
  [[nodiscard]] auto end() const&
    requires(!any_record<element> && requires(const batch_handle& b) { b.template field<0>().end(); })
  {
    return field<0>().end();
  }

  /// Where field `I` is on the device, for a device that copies; else where it is on the host.
  template <std::size_t I = 0>
  [[nodiscard]] const void* device_data() const {
    if constexpr (Core::engine_type::session_type::copies)
      return core().engine.device_session().data(block_->transfer, I);
    else
      return block_->columns.bytes(first_, slots_)[I].data();
  }

  /// For a device with streams (`cuda`): work that is put on `stream` from here on comes after the copy of
  /// this batch, and the batch's device memory is not written before `stream` has passed what was put on it
  /// until the batch was dropped. The device's own stream needs no call.
  template <class Stream>
    requires requires(typename Core::engine_type::session_type& s,
                      typename Core::engine_type::session_type::transfer& t,
                      Stream given) { s.wait_on(t, given); }
  void on(Stream stream) const {
    core().engine.device_session().wait_on(block_->transfer, stream);
  }

 private:
  [[nodiscard]] Core& core() const { return Core::of(*block_); }

  block_type* block_ = nullptr;
  std::size_t first_ = 0, slots_ = 0, valid_ = 0, global_ = 0;
  position place_;
  mutable std::unique_ptr<std::uint8_t[]> mask_;
};

/// Any batch, also by reference.
template <class T>
concept any_batch = requires { typename std::remove_cvref_t<T>::is_batch; };

/// The view of a field of a batch: `get<"jpg">(b)`.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto get(B&& b) {
  using element = typename std::remove_cvref_t<B>::element;
  constexpr bool found = has_field<element, name_of<Name>>;
  static_assert(found, "get: the batch has no field of that name; see its element's type");
  static_assert(
      std::is_lvalue_reference_v<B>,
      "penstock: a view into a batch that is about to go; give the batch a name and keep it as long "
      "as the view");
  if constexpr (found)
    return b.template field<element::template index_of<name_of<Name>>>();
  else
    return std::span<const int>();  // so that one error is all
}
template <std::size_t I, any_batch B>
[[nodiscard]] auto get(B&& b) {
  static_assert(std::is_lvalue_reference_v<B>,
                "penstock: a view into a batch that is about to go; give the batch a name and keep it as "
                "long as the view");
  return b.template field<I>();
}

}  // namespace penstock::inline v0_1
