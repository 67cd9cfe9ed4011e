// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/integration/dlpack_tensor.hpp>

#include <limits>

namespace penstock::inline v0_1 {

namespace detail {

/// The shape, the strides and the first element of a tensor whose values are of a type.
struct imported_tensor {
  extents shape;
  element_strides strides{};
  const void* data = nullptr;
};

[[nodiscard]] inline std::string name_of_type(dlpack::data_type type) {
  using code = dlpack::type_code;
  const std::string_view known = type.code == code::signed_integer     ? "int"
                                 : type.code == code::unsigned_integer ? "uint"
                                 : type.code == code::floating         ? "float"
                                 : type.code == code::bfloat           ? "bfloat"
                                 : type.code == code::complex          ? "complex"
                                 : type.code == code::boolean          ? "bool"
                                                                       : "";
  std::string name = known.empty() ? text({"type code ", static_cast<unsigned>(type.code), " of ",
                                           static_cast<unsigned>(type.bits), " bits"})
                                   : text({known, static_cast<unsigned>(type.bits)});
  if (type.lanes != 1) append(name, {" in vectors of ", static_cast<unsigned>(type.lanes)});
  return name;
}

[[noreturn]] inline void refuse_tensor(std::initializer_list<piece> why) {
  throw error(errc::argument, text({"from_dlpack: ", text(why)}));
}

// Host memory that this process can read at once.
[[nodiscard]] inline bool host_reads(dlpack::device_type type) noexcept {
  return type == dlpack::device_type::cpu || type == dlpack::device_type::cuda_host ||
         type == dlpack::device_type::rocm_host || type == dlpack::device_type::cuda_managed;
}

/// Checks all of a tensor that this library relies on, and throws errc::argument for what it does not take.
[[nodiscard]] inline imported_tensor import_tensor(const dlpack::managed_tensor_versioned* given,
                                                   dlpack::data_type wanted, std::size_t alignment) {
  if (given == nullptr)
    refuse_tensor(
        {"there is no tensor; one that was given away, or a capsule that was used, cannot be used again"});
  if (given->version.major != dlpack::version().major)
    refuse_tensor({"the tensor is of version ", given->version.major,
                   " of DLPack, and this library knows version ", dlpack::version().major,
                   "; ask its producer for that (max_version)"});
  const dlpack::tensor& t = given->dl_tensor;
  if (!host_reads(t.device.type))
    refuse_tensor({"the tensor is in memory of a device (type ", static_cast<std::int32_t>(t.device.type),
                   ", number ", t.device.id, "), which a source cannot read; copy it to the host first"});
  if (t.dtype != wanted)
    refuse_tensor({"the tensor has values of type ", name_of_type(t.dtype), ", and ", name_of_type(wanted),
                   " was asked for; write from_dlpack with its type, or convert it"});
  if (t.ndim < 0 || static_cast<std::size_t>(t.ndim) > extents::max_rank ||
      (t.ndim > 0 && t.shape == nullptr))
    refuse_tensor(
        {"the tensor has ", t.ndim, " dimensions; up to ", extents::max_rank, " are possible, reshape it"});
  imported_tensor found;
  std::uint64_t elements = 1, bytes = wanted.bits / 8u;
  bool any = true;
  for (std::int32_t i = 0; i < t.ndim; ++i) any = any && t.shape[i] != 0;
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) refuse_tensor({"the tensor's dimension ", i, " has a length of ", t.shape[i]});
    const auto length = static_cast<std::uint64_t>(t.shape[i]);
    found.shape.push_back(length);
    if (!any) continue;
    if (elements > std::numeric_limits<std::uint64_t>::max() / 2 / bytes / length)
      refuse_tensor({"the tensor's shape is that of more values than memory can hold"});
    elements *= length;
  }
  found.strides = dense_strides(found.shape);
  if (t.strides != nullptr)
    for (std::int32_t i = 0; i < t.ndim; ++i) found.strides[static_cast<std::size_t>(i)] = t.strides[i];
  if (!any) return found;
  if (t.data == nullptr) refuse_tensor({"the tensor has values and no memory"});
  found.data = static_cast<const std::byte*>(t.data) + t.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(found.data) % alignment != 0)
    refuse_tensor({"the tensor's memory is not aligned to the ", alignment, " bytes of its values; copy it"});
  return found;
}

/// The form of before version 1.0 as the present one.
[[nodiscard]] inline dlpack_tensor adopt_legacy(dlpack::managed_tensor* owned) {
  if (owned == nullptr) return {};
  struct give_back {
    void operator()(dlpack::managed_tensor* t) const noexcept {
      if (t->deleter != nullptr) t->deleter(t);
    }
  };
  std::unique_ptr<dlpack::managed_tensor, give_back> kept(owned);
  auto made = std::make_unique<dlpack::managed_tensor_versioned>();
  made->dl_tensor = owned->dl_tensor;
  made->manager_ctx = kept.release();
  made->deleter = [](dlpack::managed_tensor_versioned* self) {
    give_back()(static_cast<dlpack::managed_tensor*>(self->manager_ctx));
    delete self;
  };
  return dlpack_tensor(made.release());
}

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
