// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/core/record.hpp>
#include <penstock/run/parts.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A batch: a move-only handle on memory of the run's pool. Dropping it gives the memory back; it keeps the pool alive, so it may outlive
/// its run. `get<"name">(b)` gives a field: a span or tensor view, or a ragged or padded view by collate policy.
///
/// Views are valid as long as the handle is held. One thread at a time may use a batch; it may be dropped in any thread.
template <class Core>
class batch_handle {
  using payload = typename Core::payload_type;
  using parts = plan_parts<typename Core::plan_type>;

 public:
  using is_batch = void;
  using element = typename parts::element;

  batch_handle() = default;
  batch_handle(std::shared_ptr<Core> core, payload* p) noexcept : core_(std::move(core)), payload_(p) {}
  batch_handle(batch_handle&& other) noexcept : core_(std::move(other.core_)), payload_(std::exchange(other.payload_, nullptr)) {}
  batch_handle& operator=(batch_handle&& other) noexcept {
    if (this != &other) {
      reset();
      core_ = std::move(other.core_);
      payload_ = std::exchange(other.payload_, nullptr);
    }
    return *this;
  }
  ~batch_handle() { reset(); }

  /// Gives the memory back to the pool.
  void reset() noexcept {
    if (payload_ == nullptr) return;
    core_->give_back(std::exchange(payload_, nullptr));
    core_.reset();
  }
  [[nodiscard]] explicit operator bool() const noexcept { return payload_ != nullptr; }

  /// Slots of this rank's batch, padding included.
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(payload_->slots); }
  /// Slots that hold a sample; they come first.
  [[nodiscard]] std::size_t valid_size() const { return static_cast<std::size_t>(payload_->valid); }
  /// Samples of the whole global step, all ranks together; behind filter and unbatch this rank's.
  [[nodiscard]] std::size_t global_size() const { return static_cast<std::size_t>(payload_->global); }
  /// 1 for each slot that holds a sample, 0 for padding.
  [[nodiscard]] std::span<const std::uint8_t> valid() const {
    payload_->mask.assign(size(), 0);
    for (std::size_t i = 0; i < valid_size(); ++i) payload_->mask[i] = 1;
    return payload_->mask;
  }
  [[nodiscard]] std::uint64_t epoch() const { return payload_->delivered.epoch; }
  /// The number of this batch in its epoch.
  [[nodiscard]] std::uint64_t step() const { return payload_->delivered.index; }

  /// The global position of each sample. Allocates.
  [[nodiscard]] std::vector<position> positions() const {
    if constexpr (parts::direct) {
      std::vector<position> all;
      for (std::uint64_t slot = 0; slot < payload_->valid; ++slot) all.push_back({payload_->epoch, payload_->index(slot)});
      return all;
    } else {
      return payload_->gathered;
    }
  }
  /// The key of each sample, from the source; for indexed sources that have keys. Allocates, and may read the index.
  [[nodiscard]] std::vector<std::string> keys() const
    requires(!parts::forward)
  {
    std::vector<std::string> all;
    for (const position at : positions()) all.push_back(core_->key(at));
    return all;
  }

  /// The view of field `I`, in the order of the element's type; 0 for an element that is no record.
  template <std::size_t I>
  [[nodiscard]] auto field() const& {
    return payload_->columns.template column<I>().view(size());
  }
  template <std::size_t I>
  auto field() const&& {
    static_assert(I == static_cast<std::size_t>(-1),
                  "penstock: a view into a batch that is about to go; give the batch a name and keep it as long as the view");
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
      return core_->engine.device().data(payload_->transfer, I);
    else
      return payload_->columns.bytes(size())[I].data();
  }

 private:
  std::shared_ptr<Core> core_;
  payload* payload_ = nullptr;
};

template <class T>
concept any_batch = requires { typename std::remove_cvref_t<T>::is_batch; };

/// The view of a field of a batch: `get<"jpg">(b)`.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto get(B&& b) {
  using element = typename std::remove_cvref_t<B>::element;
  static_assert(has_field<element, name_of<Name>>, "get: the batch has no field of that name; see its element's type");
  static_assert(std::is_lvalue_reference_v<B>,
                "penstock: a view into a batch that is about to go; give the batch a name and keep it as long as the view");
  if constexpr (has_field<element, name_of<Name>>) return b.template field<element::template index_of<name_of<Name>>>();
}
template <std::size_t I, any_batch B>
[[nodiscard]] auto get(B&& b) {
  static_assert(std::is_lvalue_reference_v<B>,
                "penstock: a view into a batch that is about to go; give the batch a name and keep it as long as the view");
  return b.template field<I>();
}

}  // namespace penstock::inline v0_1
