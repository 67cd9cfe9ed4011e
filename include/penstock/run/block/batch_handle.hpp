// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/fixed_array.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/record.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/block/block.hpp>
#include <penstock/run/block/plan_blocks.hpp>

#include <atomic>
#include <concepts>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// One share of a block: while it exists, the block's memory is not reused and its pool is not destroyed.
class block_share {
 public:
  using give_back = void (*)(block&, std::uint32_t shares) noexcept;

  block_share() noexcept = default;
  /// Adds a share of a block; the caller must already hold one.
  block_share(block& of, give_back how) noexcept : block_(&of), give_back_(how) {
    of.shares.fetch_add(1, std::memory_order_relaxed);
  }
  block_share(const block_share& other) noexcept : block_(other.block_), give_back_(other.give_back_) {
    if (block_ != nullptr) block_->shares.fetch_add(1, std::memory_order_relaxed);
  }
  block_share(block_share&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), give_back_(other.give_back_) {}
  block_share& operator=(block_share other) noexcept {
    std::swap(block_, other.block_);
    std::swap(give_back_, other.give_back_);
    return *this;
  }
  ~block_share() {
    if (block_ != nullptr) give_back_(*block_, 1);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }

 private:
  block* block_ = nullptr;
  give_back give_back_ = nullptr;
};

}  // namespace detail

/// One field of a batch, held: what `hold<"x">(batch)` returns. It keeps the batch's memory alive as the
/// batch itself does, and may outlive batch, run and plan; tensors of other libraries can be built on it.
/// Copies hold the memory too. A moved-from column holds nothing, and its view is empty.
///
/// It counts as a batch that the consumer holds: the run gets the memory back when the last holder releases
/// it, in any thread. Cost: one atomic addition to create and one to destroy; no allocation.
template <class View>
class held_column {
 public:
  held_column() = default;
  held_column(const held_column&) = default;
  held_column(held_column&& other) noexcept
      : share_(std::move(other.share_)),
        view_(std::exchange(other.view_, View{})),
        device_data_(std::exchange(other.device_data_, nullptr)) {}
  held_column& operator=(held_column other) noexcept {
    std::swap(share_, other.share_);
    std::swap(view_, other.view_);
    std::swap(device_data_, other.device_data_);
    return *this;
  }
  ~held_column() = default;
  held_column(detail::block_share share, const View& view, const void* device_data) noexcept
      : share_(std::move(share)), view_(view), device_data_(device_data) {}

  /// Like `get<"x">(batch)`; valid while any copy holds the column.
  [[nodiscard]] const View& view() const& noexcept { return view_; }
  const View& view() const&& = delete;
  /// Like `batch.device_data()`. For a device with streams: call `batch.on(stream)` for each stream that will
  /// use it before you drop the batch.
  [[nodiscard]] const void* device_data() const noexcept { return device_data_; }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(share_); }
  /// Releases the memory.
  void reset() noexcept { *this = held_column(); }

 private:
  detail::block_share share_;
  View view_{};
  const void* device_data_ = nullptr;
};

/// A batch: a move-only handle to memory from the run's pool. Dropping it returns the memory; it keeps the
/// pool alive, so it may outlive its run. `get<"name">(b)` returns a field: a span or tensor view, or a
/// strided, ragged or padded view, depending on the collate policy. The views of a non-const batch are
/// writable: the memory is yours until you drop the batch. Writing does not change a copy already made on a
/// device.
///
/// A batch of records has the tuple protocol: `auto& [image, label] = batch` names the views of all fields,
/// in order.
///
/// A batch that was moved from or reset is empty: its size is 0, and a field of it is an `errc::argument`.
///
/// Views are valid while you hold the handle. Use a batch from one thread at a time; you may drop it in any
/// thread.
template <class Core>
class batch_handle {
  using block_type = typename Core::block_type;
  using parts = plan_parts<typename Core::plan_type>;
  using on_device = device_layout_of<typename Core::plan_type>;

 public:
  using is_batch = void;
  using element = batch_element_of<typename Core::plan_type>;
  using session_type = typename Core::engine_type::session_type;

  batch_handle() = default;
  /// Takes over one share of the block, which keeps the block's pool alive.
  batch_handle(block_type* p, const batch_rows& batch) noexcept
      : block_(p),
        rows_{static_cast<std::size_t>(batch.first), static_cast<std::size_t>(batch.slots),
              static_cast<std::size_t>(batch.valid), static_cast<std::size_t>(batch.global)},
        place_(batch.delivered) {}
  batch_handle(batch_handle&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        rows_(std::exchange(other.rows_, {})),
        place_(other.place_),
        mask_(std::move(other.mask_)) {}
  // Compilers show this line. A constructor with a `static_assert` would give traits a wrong answer.
  batch_handle(const batch_handle&) = delete;  // penstock: a batch is moved, never copied; write auto&& b
  batch_handle& operator=(batch_handle&& other) noexcept {
    if (this != &other) {
      reset();
      block_ = std::exchange(other.block_, nullptr);
      rows_ = std::exchange(other.rows_, {});
      place_ = other.place_;
      mask_ = std::move(other.mask_);
    }
    return *this;
  }
  ~batch_handle() { reset(); }

  /// Returns the memory to the pool.
  void reset() noexcept {
    if (block_ != nullptr) Core::give_up(*forget(), 1);
  }
  /// Empties the handle and transfers its share to the caller.
  [[nodiscard]] block_type* forget() noexcept {
    mask_.reset();
    rows_ = {};
    return std::exchange(block_, nullptr);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }

  /// Slots of this rank's batch, padding included. After `pack`, its rows.
  [[nodiscard]] std::size_t size() const {
    if constexpr (parts::packed) return packing().row_count();
    return rows_.slots;
  }
  /// After `pack`: which samples are where in the rows.
  [[nodiscard]] packed_rows packing() const
    requires(parts::packed)
  {
    return block_ == nullptr ? packed_rows() : block_->packed.view();
  }
  /// Slots that hold a sample. They come first; `bad_samples::skip` leaves holes among them, see `valid()`.
  /// After `pack`, the samples and pieces of samples in all rows.
  [[nodiscard]] std::size_t valid_size() const {
    if constexpr (parts::tolerant)
      return block_ == nullptr ? 0 : rows_.valid - block_->bad.holes(rows_.first, rows_.slots);
    return rows_.valid;
  }
  /// Samples of the whole global step, over all ranks; after filter and unbatch, of this rank only. Holes
  /// count: a rank does not know the holes of other ranks.
  [[nodiscard]] std::size_t global_size() const { return rows_.global; }
  /// 1 for each slot that holds a sample, 0 for padding and for holes; after `pack`, for each sample in the
  /// rows. The first call allocates.
  [[nodiscard]] std::span<const std::uint8_t> valid() const {
    if (!mask_ && block_ != nullptr) {
      mask_ = detail::fixed_array<std::uint8_t>(rows_.slots);
      block_->bad.mark(mask_.get(), rows_.first, rows_.slots, rows_.valid);
    }
    return {mask_.get(), rows_.slots};
  }
  [[nodiscard]] std::uint64_t epoch() const { return place_.epoch; }
  /// The number of this batch in its epoch.
  [[nodiscard]] std::uint64_t step() const { return place_.index; }

  /// The global position of each slot that is not padding; where several samples were combined in one slot,
  /// the positions of all of them; for a hole or a replaced sample, the position of the bad sample.
  /// Allocates.
  [[nodiscard]] std::vector<position> positions() const {
    return Core::positions(held_block(), rows_.first, rows_.valid);
  }
  /// The key of the sample at each of the positions, from the source; for indexed sources with keys.
  /// Allocates, and may read the index.
  [[nodiscard]] std::vector<std::string> keys() const
    requires(!parts::forward)
  {
    std::vector<std::string> all;
    for (const position at : positions()) all.push_back(core().key(at));
    return all;
  }

  /// The view of field `I`, in the order of the element's type; use 0 for an element that is not a record.
  template <std::size_t I>
  [[nodiscard]] auto field() const& {
    return held_block().columns.template view<I>(rows_.first, rows_.slots);
  }
  /// A writable view.
  template <std::size_t I>
  [[nodiscard]] auto field() & {
    return held_block().columns.template edit_one<I>(rows_.first, rows_.slots);
  }
  template <std::size_t I>
  auto field() const&& {
    static_assert(I == static_cast<std::size_t>(-1),
                  "penstock: a view into a temporary batch; give the batch a name and keep it as "
                  "long as the view");
  }
  /// Field `I` together with the memory it is in; see `held_column`. The batch must not be empty.
  template <std::size_t I = 0>
  [[nodiscard]] auto hold() const {
    return held_column<decltype(this->template field<I>())>(detail::block_share(held_block(), &Core::give_up),
                                                            this->template field<I>(), device_data<I>());
  }
  /// The only field of a batch whose elements are not records. Writable, as `field` is, unless the batch is
  /// const.
  [[nodiscard]] auto values() const&
    requires(!any_record<element>)
  {
    return field<0>();
  }
  template <class E = element>
    requires(!any_record<E>)
  [[nodiscard]] auto values() & {
    return field<0>();
  }
  /// A batch whose elements are not records is itself the range that its view is.
  [[nodiscard]] auto begin() const&
    requires(!any_record<element> && requires(const batch_handle& b) { b.template field<0>().begin(); })
  {
    return field<0>().begin();
  }
  template <class E = element>
    requires(!any_record<E> && requires(batch_handle& b) { b.template field<0>().begin(); })
  [[nodiscard]] auto begin() & {
    return field<0>().begin();
  }
  [[nodiscard]] auto end() const&
    requires(!any_record<element> && requires(const batch_handle& b) { b.template field<0>().end(); })
  {
    return field<0>().end();
  }
  template <class E = element>
    requires(!any_record<E> && requires(batch_handle& b) { b.template field<0>().end(); })
  [[nodiscard]] auto end() & {
    return field<0>().end();
  }

  /// Whether an `on_device` stage makes something of field `I`, so that the device has another array than
  /// the host.
  template <std::size_t I>
  static constexpr bool changed_on_device = on_device::template changes<I>;
  /// Where field `I`, or what `on_device` made of it, is on the device, for a device that copies; otherwise,
  /// where it is on the host.
  template <std::size_t I = 0>
  [[nodiscard]] const void* device_data() const {
    if constexpr (session_type::copies)
      return core().engine.device_session().data(held_block().transfer, on_device::template place<I>);
    else
      return slots_data<I>();
  }
  /// The same with its type and shape: a `device_array`. Of a field that is not one array, its values.
  template <std::size_t I = 0>
  [[nodiscard]] auto device_view() const {
    if constexpr (changed_on_device<I>) {
      using made = typename on_device::template made<I>;
      return device_array<const made>(static_cast<const made*>(device_data<I>()),
                                      held_block().work.shapes[on_device::template last<I>]);
    } else {
      return detail::copied_array(device_data<I>(), this->template field<I>());
    }
  }
  /// A mistake: fields are found by name.
  template <class Index>
  [[nodiscard]] ill_formed::view operator[](const Index&) const {
    static_assert(
        never<Index>,
        "penstock: a batch has no []; write get<\"name\">(b) for a field, get<\"name\">(b)[i] for its "
        "value i, or b.values()[i] where samples are no records");
    return {};
  }

  /// Where field `I` is on the host.
  template <std::size_t I = 0>
  [[nodiscard]] const void* slots_data() const {
    return held_block().columns.bytes(rows_.first, rows_.slots)[I].data();
  }
  /// The number of the device that `device_data` belongs to; 0 if there is only one, as the host.
  [[nodiscard]] int device_number() const {
    if constexpr (requires(const session_type& s) { s.device(); })
      return core().engine.device_session().device();
    else
      return 0;
  }

  /// For a device with streams (`cuda`): work put on `stream` after this call waits for the copy of this
  /// batch, and the batch's device memory is not overwritten until `stream` has completed everything that was
  /// put on it before you dropped the batch. The device's own stream needs no call.
  template <class Stream>
    requires requires(session_type& s, typename session_type::transfer& t, Stream given) {
      s.wait_on(t, given);
    }
  void on(Stream stream) const {
    core().engine.device_session().wait_on(held_block().transfer, stream);
  }

 private:
  [[nodiscard]] Core& core() const { return Core::of(held_block()); }

  [[nodiscard]] block_type& held_block() const {
    if (block_ == nullptr) [[unlikely]]
      detail::refuse_empty_batch();
    return *block_;
  }

  struct row_counts {
    std::size_t first = 0, slots = 0, valid = 0, global = 0;
  };

  block_type* block_ = nullptr;
  row_counts rows_;
  position place_;
  mutable detail::fixed_array<std::uint8_t> mask_;
};

/// Any batch, also by reference.
template <class T>
concept any_batch = requires { typename std::remove_cvref_t<T>::is_batch; };

/// The view of a field of a batch: `get<"jpg">(b)`.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto get(B&& b) {
  using element = typename std::remove_cvref_t<B>::element;
  constexpr bool found = has_field<element, name_of<Name>>;
  if constexpr (any_record<element> && !found)
    mistakes::no_such_field_in_batch::explain(
        std::type_identity<typename detail::names_of_record<element>::type>{});
  else
    static_assert(found,
                  "penstock: get<name> is for a field, and the samples of this batch are no records and have "
                  "none; write b.values(), or make records of them with map");
  static_assert(std::is_lvalue_reference_v<B>,
                "penstock: a view into a temporary batch; give the batch a name and keep it as long "
                "as the view");
  if constexpr (found)
    return b.template field<element::template index_of<name_of<Name>>>();
  else
    return std::span<const int>();  // one error is enough
}
/// A field of a batch together with the memory it is in, which may outlive batch and run: `hold<"x">(b)`. See
/// `held_column`.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto hold(const B& b) {
  using element = typename B::element;
  constexpr bool found = has_field<element, name_of<Name>>;
  if constexpr (any_record<element> && !found)
    mistakes::no_such_field_in_batch::explain(
        std::type_identity<typename detail::names_of_record<element>::type>{});
  else
    static_assert(
        found,
        "penstock: hold<name> is for a field, and the samples of this batch are no records and have "
        "none; write b.hold()");
  if constexpr (found)
    return b.template hold<element::template index_of<name_of<Name>>>();
  else
    return held_column<std::span<const int>>();  // one error is enough
}
/// A field of a batch as the device has it, a `device_array`: `device_view<"jpg">(b)`. `on_device` decides
/// its type and shape; the host's side is `get<"jpg">(b)`.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto device_view(const B& b) {
  using element = typename B::element;
  constexpr bool found = has_field<element, name_of<Name>>;
  if constexpr (any_record<element> && !found)
    mistakes::no_such_field_in_batch::explain(
        std::type_identity<typename detail::names_of_record<element>::type>{});
  else
    static_assert(found,
                  "penstock: device_view<name> is for a field, and the samples of this batch are no records "
                  "and have none; write b.device_view()");
  if constexpr (found)
    return b.template device_view<element::template index_of<name_of<Name>>>();
  else
    return device_array<const int>();  // one error is enough
}
/// Its address alone: `device_data<"jpg">(b)`.
template <fixed_string Name, any_batch B>
[[nodiscard]] const void* device_data(const B& b) {
  return device_view<Name>(b).data();
}
/// What a model is to predict for the tokens of a batch that `pack` made: (rows, capacity) values, the next
/// token of the same sample, and -100, which PyTorch's cross_entropy ignores, at its last one and in padding.
/// With a second field, also where that one's value for the next token is 0: `labels<"tokens", "loss">(b)`
/// asks only for answers. Allocates what it returns.
template <fixed_string Tokens, fixed_string... Loss, any_batch B>
[[nodiscard]] std::vector<std::int64_t> labels(const B& b) {
  static_assert(sizeof...(Loss) <= 1,
                "penstock: labels takes the tokens and one field that says where loss counts");
  constexpr bool packed = requires { get<Tokens>(b).labels(get<Loss>(b)...); };
  static_assert(packed,
                "penstock: labels are for rows of tokens; write pack<\"tokens\">(length, 4096) before batch, "
                "or pack<\"tokens\", \"loss\">(length, 4096) if a field says where loss counts");
  if constexpr (packed)
    return get<Tokens>(b).labels(get<Loss>(b)...);
  else
    return {};  // one error is enough
}
/// The view of a field by its place, as structured bindings ask for it; also of a batch that was moved into
/// them:
/// `auto [image, label] = std::move(b)` holds the batch as long as its views.
template <std::size_t I, any_batch B>
[[nodiscard]] auto get(B&& b) {
  return b.template field<I>();
}

}  // namespace penstock::inline v0_1

/// The tuple protocol of a batch of a record: the views that `get<I>(batch)` gives.
template <class Core>
  requires penstock::any_record<typename penstock::batch_handle<Core>::element>
struct std::tuple_size<penstock::batch_handle<Core>>
    : std::integral_constant<std::size_t, penstock::batch_handle<Core>::element::size> {};

template <std::size_t I, class Core>
  requires penstock::any_record<typename penstock::batch_handle<Core>::element>
struct std::tuple_element<I, penstock::batch_handle<Core>> {
  using type = decltype(std::declval<penstock::batch_handle<Core>&>().template field<I>());
};
template <std::size_t I, class Core>
  requires penstock::any_record<typename penstock::batch_handle<Core>::element>
struct std::tuple_element<I, const penstock::batch_handle<Core>> {
  using type = decltype(std::declval<const penstock::batch_handle<Core>&>().template field<I>());
};
