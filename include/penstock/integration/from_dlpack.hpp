// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/integration/dlpack_tensor.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// The shape, the strides and the first element of a tensor whose values are of a type.
struct imported_tensor {
  extents shape;
  element_strides strides{};
  const void* data = nullptr;
};
/// Checks all of a tensor that this library relies on, and throws errc::argument for what it does not take.
[[nodiscard]] imported_tensor import_tensor(const dlpack::managed_tensor_versioned* given,
                                            dlpack::data_type wanted, std::size_t alignment);
/// The form of before version 1.0 as the present one.
[[nodiscard]] dlpack_tensor adopt_legacy(dlpack::managed_tensor* owned);

/// The structs of another copy of dlpack.h.
template <class P>
concept versioned_tensor = sizeof(P) == sizeof(dlpack::managed_tensor_versioned) && requires(P& p) {
  p.version;
  p.flags;
  p.dl_tensor.byte_offset;
};
template <class P>
concept legacy_tensor =
    sizeof(P) == sizeof(dlpack::managed_tensor) && !versioned_tensor<P> && requires(P& p) {
      p.dl_tensor.byte_offset;
      p.manager_ctx;
    };

}  // namespace detail

/// An array of another library, as a range of its rows along the first dimension: what `from_dlpack` returns,
/// and what `from` takes as a dataset in memory.
///
/// Shares the tensor with its copies and with plans and runs that read it; the last of them calls its
/// deleter. `array[i]` is a `strided_view` of one row, or of one value if the array has one dimension.
/// Threads: any number may read.
template <class T>
class dlpack_array {
 public:
  using value_type = strided_view<const T>;

  dlpack_array() = default;
  /// Takes ownership, also if it throws.
  explicit dlpack_array(dlpack_tensor owned) {
    const detail::imported_tensor found =
        detail::import_tensor(owned.get(), dlpack::data_type_of<T>, alignof(T));
    view_ = {static_cast<const T*>(found.data), found.shape, found.strides};
    owned_ = shared<const dlpack_tensor>(new dlpack_tensor(std::move(owned)));
  }

  /// All of it.
  [[nodiscard]] const strided_view<const T>& view() const noexcept { return view_; }
  [[nodiscard]] const extents& shape() const noexcept { return view_.shape(); }
  /// The number of rows.
  [[nodiscard]] std::size_t size() const noexcept {
    return shape().rank() == 0 ? 0 : detail::to_size(shape()[0]);
  }
  [[nodiscard]] strided_view<const T> operator[](std::size_t i) const noexcept { return view_[i]; }
  [[nodiscard]] auto begin() const noexcept { return iterator(view_, 0); }
  [[nodiscard]] auto end() const noexcept { return iterator(view_, size()); }

 private:
  using iterator = detail::index_iterator<strided_view<const T>>;

  strided_view<const T> view_;
  shared<const dlpack_tensor> owned_;
};

namespace detail {

template <class T>
dlpack_array<T> array_of(dlpack_tensor owned) {
  constexpr bool is_number = dlpack::exchanged_value<T>;  // compilers explain a concept at length
  static_assert(
      is_number,
      "penstock: from_dlpack<T>: DLPack has types for numbers, and T is none; write the type of the "
      "tensor's values, as in from_dlpack<float>(tensor)");
  if constexpr (is_number)
    return dlpack_array<T>(std::move(owned));
  else
    return {};
}

}  // namespace detail

/// An array of another library, through DLPack, without a copy.
///
///     auto data = from(from_dlpack<float>(tensor)) | shuffle(seed(7)) | batch(256);
///
/// In: a `dlpack_tensor`, or a pointer to a `DLManagedTensorVersioned` or a `DLManagedTensor` (of this
/// library's `dlpack` or of any copy of dlpack.h), of which it takes ownership, also if it throws: do not
/// call the deleter. Host memory: the CPU's, pinned or managed. At most eight dimensions; any strides.
/// Out: a `dlpack_array<T>`: a range of rows, which is a source for `from`, indexed; equal rows become
/// batches of shape (n, ...), each copied once.
/// Throws errc::argument, with what to do, for null or a tensor that was used already, another major version
/// of DLPack, memory of a device, another type than T, vectors as elements, more than eight dimensions, and
/// memory that is not aligned for T.
/// The bytes must not change while plans and runs read them. A state does not notice if they do: its
/// fingerprint knows how many rows there are.
/// Source: DLPack 1.1.
template <class T>
[[nodiscard]] dlpack_array<T> from_dlpack(dlpack_tensor&& tensor) {
  return detail::array_of<T>(std::move(tensor));
}
template <class T, detail::versioned_tensor Managed>
[[nodiscard]] dlpack_array<T> from_dlpack(Managed* owned) {
  return detail::array_of<T>(dlpack_tensor(reinterpret_cast<dlpack::managed_tensor_versioned*>(owned)));
}
template <class T, detail::legacy_tensor Managed>
[[nodiscard]] dlpack_array<T> from_dlpack(Managed* owned) {
  return detail::array_of<T>(detail::adopt_legacy(reinterpret_cast<dlpack::managed_tensor*>(owned)));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/integration/from_dlpack.ipp>
#endif
