// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/mistake.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/uneven_views.hpp>
#include <penstock/integration/dlpack_tensor.hpp>
#include <penstock/run/block/batch_handle.hpp>

#include <array>
#include <type_traits>

namespace penstock::inline v0_1 {

/// A field of samples of different lengths as tensors: `values` has all of them, and those of sample i are
/// [offsets[i], offsets[i + 1]). The offsets (uint64) are on the host.
struct dlpack_ragged {
  dlpack_tensor values, offsets;
};
/// A field padded to its longest sample as tensors. `lengths` (uint64) and `mask` (uint8, 1 for a value) are
/// on the host.
struct dlpack_padded {
  dlpack_tensor values, lengths, mask;
};
/// A field of arrays of unequal shapes as tensors. `sizes` (uint64, on the host) has the shape of each
/// without its padding.
struct dlpack_padded_arrays {
  dlpack_tensor values, sizes;
};

namespace detail {

/// A tensor in the memory of a batch, which it holds.
template <class View>
struct exported_column {
  dlpack::managed_tensor_versioned tensor;
  held_column<View> kept;
  std::array<std::int64_t, extents::max_rank + 1> shape{}, strides{};
};

/// Where an export finds the values of a column.
struct exported_place {
  const void* data = nullptr;
  dlpack::device device;
};

template <class T, class View>
dlpack_tensor export_values(const held_column<View>& held, const exported_place& place, const extents& shape,
                            const element_strides& strides) {
  constexpr bool is_number = dlpack::exchanged_value<T>;  // compilers explain a concept at length
  static_assert(is_number,
                "penstock: to_dlpack: DLPack has types for numbers, and the values of this column are none; "
                "write map(f) before batch, which makes numbers or arrays of them");
  if constexpr (is_number) {
    auto made = std::make_unique<exported_column<View>>(exported_column<View>{{}, held});
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      made->shape[i] = static_cast<std::int64_t>(shape[i]);
      made->strides[i] = strides[i];
    }
    made->tensor.manager_ctx = made.get();
    made->tensor.deleter = [](dlpack::managed_tensor_versioned* self) {
      delete static_cast<exported_column<View>*>(self->manager_ctx);
    };
    dlpack::tensor& tensor = made->tensor.dl_tensor;
    tensor.data = shape.elements() == 0 ? nullptr : const_cast<void*>(place.data);
    tensor.device = place.device;
    tensor.ndim = static_cast<std::int32_t>(shape.rank());
    tensor.dtype = dlpack::data_type_of<T>;
    tensor.shape = made->shape.data();
    tensor.strides = made->strides.data();
    return dlpack_tensor(&made.release()->tensor);
  } else {
    return {};
  }
}
template <class T, class View>
dlpack_tensor export_values(const held_column<View>& held, const exported_place& place,
                            const extents& shape) {
  return export_values<T>(held, place, shape, dense_strides(shape));
}

// One for each view that a batch has; `place` is that of its values.
template <class T, class View>
dlpack_tensor export_view(const held_column<View>& held, std::span<const T> view,
                          const exported_place& place) {
  return export_values<T>(held, place, extents(view.size()));
}
template <template <class> class Array, class T, class View>
dlpack_tensor export_view(const held_column<View>& held, const Array<const T>& view,
                          const exported_place& place) {
  return export_values<T>(held, place, view.shape(), view.strides());
}
template <class T, class View>
dlpack_ragged export_view(const held_column<View>& held, const ragged_view<T>& view,
                          const exported_place& place) {
  return {export_values<T>(held, place, extents(view.values().size())),
          export_values<std::uint64_t>(held, {view.offsets().data(), {}}, extents(view.offsets().size()))};
}
template <class T, class View>
dlpack_padded export_view(const held_column<View>& held, const padded_view<T>& view,
                          const exported_place& place) {
  return {export_values<T>(held, place, view.shape()),
          export_values<std::uint64_t>(held, {view.lengths().data(), {}}, extents(view.size())),
          export_values<std::uint8_t>(held, {view.mask().data(), {}}, view.mask().shape())};
}
template <class T, class View>
dlpack_padded_arrays export_view(const held_column<View>& held, const padded_arrays_view<T>& view,
                                 const exported_place& place) {
  // The lengths of an `extents` come first in it, so that those of all samples are one array with gaps.
  static_assert(sizeof(extents) % sizeof(std::uint64_t) == 0 && std::is_standard_layout_v<extents>,
                "the distance between two shapes is a whole number of lengths");
  constexpr auto apart = static_cast<std::int64_t>(sizeof(extents) / sizeof(std::uint64_t));
  const std::size_t rank = view.shape().rank() - 1;
  return {
      export_values<T>(held, place, view.shape()),
      export_values<std::uint64_t>(held, {view.sizes().empty() ? nullptr : view.sizes().data()->begin(), {}},
                                   extents(view.size(), rank), {apart, 1})};
}

template <class Session>
concept names_its_platform = requires(const Session& s) {
  { Session::platform } -> std::convertible_to<std::string_view>;
  { s.device() } -> std::convertible_to<int>;
};

/// The device of a session's batches, of this number, or of its pinned memory on the host.
template <class Session>
constexpr dlpack::device exported_device([[maybe_unused]] bool pinned, [[maybe_unused]] int number) noexcept {
  if constexpr (names_its_platform<Session>) {
    using enum dlpack::device_type;
    constexpr bool is_cuda = Session::platform == "cuda";
    static_assert(is_cuda || Session::platform == "rocm",
                  "penstock: to_dlpack knows the platforms cuda and rocm");
    if (pinned) return {is_cuda ? cuda_host : rocm_host, 0};
    return {is_cuda ? cuda : rocm, number};
  } else {
    return {};
  }
}

template <std::size_t I, any_batch B>
auto export_field(const B& b) {
  const auto held = b.template hold<I>();
  const exported_place place{held.device_data(),
                             exported_device<typename B::session_type>(false, b.device_number())};
  if constexpr (B::template changed_on_device<I>) {
    const auto there = b.template device_view<I>();
    return export_values<typename decltype(there)::value_type>(held, place, there.shape(), there.strides());
  } else {
    return export_view(held, held.view(), place);
  }
}
template <std::size_t I, any_batch B>
auto export_field_of_host(const B& b) {
  const auto held = b.template hold<I>();
  return export_view(held, held.view(),
                     {b.template slots_data<I>(), exported_device<typename B::session_type>(true, 0)});
}

/// All fields: a record of what `f` gives for each, or its result for a batch whose elements are no records.
template <any_batch B, class F>
auto export_all(F f) {
  using element = typename B::element;
  if constexpr (any_record<element>) {
    return [&]<class... Fields, std::size_t... Is>(const record<Fields...>*, std::index_sequence<Is...>) {
      return record<
          basic_field<typename Fields::name_type, decltype(f(std::integral_constant<std::size_t, Is>()))>...>(
          f(std::integral_constant<std::size_t, Is>())...);
    }(static_cast<const element*>(nullptr), std::make_index_sequence<element::size>{});
  } else {
    return f(std::integral_constant<std::size_t, 0>());
  }
}

template <fixed_string Name, any_batch B>
constexpr std::size_t exported_index() {
  using element = typename B::element;
  constexpr bool found = has_field<element, name_of<Name>>;
  static_assert(found,
                "penstock: to_dlpack: the batch has no field of that name; see its element's type, and write "
                "to_dlpack(batch) for all fields, or for the values of a batch that has none");
  if constexpr (found)
    return element::template index_of<name_of<Name>>;
  else
    return 0;  // one error is enough
}

}  // namespace detail

/// A field of a batch as a tensor of DLPack, without a copy: `to_dlpack<"image">(batch)`.
///
///     for (auto&& b : run.epoch(0)) consume(to_dlpack(b).release());
///
/// The tensor holds the batch's memory, as `hold` does: it may outlive batch, run and plan, and gives the
/// memory back when its deleter is called, in any thread. It counts as a batch that you hold: if a consumer
/// keeps every tensor, the run has no memory for the next batch, and `next()` says so ("raise depth"). The
/// memory is writable, and yours.
/// Out: a `dlpack_tensor`, whose first dimension is the batch's slots; for a column that is not one array, a
/// `dlpack_ragged`, `dlpack_padded` or `dlpack_padded_arrays` of several. Of a device that copies, the tensor
/// in its memory (kDLCUDA): the stream of the device waits for the copy; for another stream, give it:
/// `to_dlpack<"image">(batch, stream)`. Behind `on_device` it is what that made.
/// `to_dlpack_host<"image">(batch)` is the slots in pinned memory.
/// Types: numbers, `bool`, `half`, `bfloat16`, complex numbers; bytes and characters are uint8.
/// Cost: one allocation for each tensor, and one atomic addition; nothing is copied.
/// Throws what the allocation throws.
/// Source: DLPack 1.1.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto to_dlpack(const B& b) {
  return detail::export_field<detail::exported_index<Name, B>()>(b);
}
/// All fields of a batch: a record of tensors, or the tensor of a batch whose elements are no records.
template <any_batch B>
[[nodiscard]] auto to_dlpack(const B& b) {
  return detail::export_all<B>([&](auto i) { return detail::export_field<decltype(i)::value>(b); });
}
/// As above, for a consumer that uses `stream`; see `batch.on(stream)`.
template <fixed_string Name, any_batch B, class Stream>
  requires requires(const B& b, Stream stream) { b.on(stream); }
[[nodiscard]] auto to_dlpack(const B& b, Stream stream) {
  b.on(stream);
  return to_dlpack<Name>(b);
}
template <any_batch B, class Stream>
  requires requires(const B& b, Stream stream) { b.on(stream); }
[[nodiscard]] auto to_dlpack(const B& b, Stream stream) {
  b.on(stream);
  return to_dlpack(b);
}
/// The host's side of a batch that is copied to a device, in pinned memory; of other batches, what
/// `to_dlpack`
/// gives.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto to_dlpack_host(const B& b) {
  return detail::export_field_of_host<detail::exported_index<Name, B>()>(b);
}
template <any_batch B>
[[nodiscard]] auto to_dlpack_host(const B& b) {
  return detail::export_all<B>([&](auto i) { return detail::export_field_of_host<decltype(i)::value>(b); });
}

}  // namespace penstock::inline v0_1
