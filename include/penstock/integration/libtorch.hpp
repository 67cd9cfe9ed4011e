// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<torch/types.h>)
#error "penstock/integration/libtorch.hpp needs libtorch: link penstock::libtorch"
#endif

#include <penstock/integration/to_dlpack.hpp>

#include <torch/data/example.h>
#include <torch/types.h>

#include <iterator>

namespace penstock::inline v0_1 {

/// A field of samples of different lengths; see `dlpack_ragged`. The offsets are int64.
struct torch_ragged {
  torch::Tensor values, offsets;
};
/// A field padded to its longest sample; see `dlpack_padded`. The lengths are int64, the mask is bool.
struct torch_padded {
  torch::Tensor values, lengths, mask;
};
/// A field of arrays of unequal shapes; see `dlpack_padded_arrays`. The sizes are int64.
struct torch_padded_arrays {
  torch::Tensor values, sizes;
};

namespace detail {

/// What libtorch calls a type. Unsigned integers of more than 8 bits have the bits of signed ones: libtorch
/// has no type of its own for them, or knows little to do with it.
template <class T>
inline constexpr bool known_to_torch = dlpack::exchanged_value<T> && sizeof(T) <= 16;

inline torch::ScalarType torch_type_of(dlpack::data_type type) {
  using code = dlpack::type_code;
  switch (type.code) {
    case code::boolean:
      return torch::kBool;
    case code::bfloat:
      return torch::kBFloat16;
    case code::floating:
      return type.bits == 16 ? torch::kHalf : type.bits == 32 ? torch::kFloat : torch::kDouble;
    case code::complex:
      return type.bits == 64 ? torch::kComplexFloat : torch::kComplexDouble;
    case code::unsigned_integer:
      if (type.bits == 8) return torch::kUInt8;
      break;
    default:
      break;
  }
  return type.bits == 8    ? torch::kChar
         : type.bits == 16 ? torch::kShort
         : type.bits == 32 ? torch::kInt
                           : torch::kLong;
}

/// A tensor of libtorch in the memory of one of ours, which it owns.
inline torch::Tensor torch_tensor(dlpack_tensor given) {
  const dlpack::tensor& t = *given;
  const torch::IntArrayRef shape(t.shape, static_cast<std::size_t>(t.ndim)),
      strides(t.strides, static_cast<std::size_t>(t.ndim));
  const bool there = t.device.type == dlpack::device_type::cuda || t.device.type == dlpack::device_type::rocm;
  auto options = torch::TensorOptions().dtype(torch_type_of(t.dtype));
  if (there)
    options = options.device(torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(t.device.id)));
  if (t.data == nullptr) return torch::empty(shape, options);
  const auto owned = std::make_shared<dlpack_tensor>(std::move(given));
  return torch::from_blob(
      t.data, shape, strides, [owned](void*) {}, options);
}
inline torch::Tensor torch_field(dlpack_tensor given) { return torch_tensor(std::move(given)); }
inline torch_ragged torch_field(dlpack_ragged given) {
  return {torch_tensor(std::move(given.values)), torch_tensor(std::move(given.offsets))};
}
inline torch_padded torch_field(dlpack_padded given) {
  return {torch_tensor(std::move(given.values)), torch_tensor(std::move(given.lengths)),
          torch_tensor(std::move(given.mask)).view(torch::kBool)};
}
inline torch_padded_arrays torch_field(dlpack_padded_arrays given) {
  return {torch_tensor(std::move(given.values)), torch_tensor(std::move(given.sizes))};
}
template <class... Fields>
auto torch_fields(record<Fields...> given) {
  return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    return record<basic_field<typename Fields::name_type,
                              decltype(torch_field(std::declval<typename Fields::type>()))>...>(
        torch_field(get<Is>(std::move(given)))...);
  }(std::index_sequence_for<Fields...>{});
}
auto torch_fields(auto given) { return torch_field(std::move(given)); }

template <class T>
torch::Tensor torch_view(T* data, const extents& shape, const element_strides& strides) {
  static_assert(known_to_torch<std::remove_const_t<T>>,
                "penstock: as_tensor: libtorch has types for numbers, and the values of this view are none");
  if constexpr (known_to_torch<std::remove_const_t<T>>) {
    std::array<std::int64_t, extents::max_rank> lengths{};
    for (std::size_t i = 0; i < shape.rank(); ++i) lengths[i] = static_cast<std::int64_t>(shape[i]);
    return torch::from_blob(
        const_cast<void*>(static_cast<const void*>(data)), torch::IntArrayRef(lengths.data(), shape.rank()),
        torch::IntArrayRef(strides.data(), shape.rank()),
        torch::TensorOptions().dtype(torch_type_of(dlpack::data_type_of<std::remove_const_t<T>>)));
  } else {
    return {};
  }
}

}  // namespace detail

/// A view of a batch as a tensor of libtorch, without a copy: `as_tensor(get<"image">(batch))`.
///
///     for (auto&& b : run.epoch(0)) loss += net->forward(as_tensor(get<"x">(b))).sum();
///
/// The tensor does not own the memory: use it, and what views it, only while you hold the batch. `as_tensors`
/// gives tensors that do. It is on the host, and writable unless the view is const; libtorch does not know of
/// const.
/// Types: numbers, `bool`, `half`, `bfloat16`, complex numbers; bytes and characters are uint8. Unsigned
/// integers of 16 bits and more become signed ones of the same bits.
/// Cost: what `torch::from_blob` costs, about a microsecond; nothing is copied.
template <class T>
[[nodiscard]] torch::Tensor as_tensor(std::span<T> view) {
  return detail::torch_view(view.data(), extents(view.size()), {1});
}
template <class T>
[[nodiscard]] torch::Tensor as_tensor(const tensor_view<T>& view) {
  return detail::torch_view(view.data(), view.shape(), view.strides());
}
template <class T>
[[nodiscard]] torch::Tensor as_tensor(const strided_view<T>& view) {
  return detail::torch_view(view.data(), view.shape(), view.strides());
}

/// A batch as tensors of libtorch, without a copy: a record of tensors, or one tensor for a batch whose
/// elements are no records. `auto [image, label] = as_tensors(batch)`.
///
/// The tensors hold the batch's memory and may outlive batch, run and plan; they count as a batch that you
/// hold.
/// Of a device that copies, they are there, and the device's stream waits for the copy: make it libtorch's
/// current one, or call `b.on(stream)`. A ragged or padded field is a `torch_ragged`, `torch_padded` or
/// `torch_padded_arrays`.
/// Cost: two small allocations for each tensor; nothing is copied.
template <any_batch B>
[[nodiscard]] auto as_tensors(const B& batch) {
  return detail::torch_fields(to_dlpack(batch));
}
/// A field of a batch as a tensor that holds the batch's memory.
template <fixed_string Name, any_batch B>
[[nodiscard]] auto as_tensors(const B& batch) {
  return detail::torch_field(to_dlpack<Name>(batch));
}
/// As above, from the host's side of a batch that is copied to a device: in pinned memory.
[[nodiscard]] auto as_host_tensors(const any_batch auto& batch) {
  return detail::torch_fields(to_dlpack_host(batch));
}

namespace detail {

/// Iterates over `f(batch)` of the batches of an epoch.
template <class Epoch, class F>
class torch_epoch {
 public:
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = decltype(std::declval<const F&>()(*std::declval<Epoch&>().begin()));

    explicit iterator(const torch_epoch& of) : of_(&of), at_(of.epoch_.begin()) { look(); }
    [[nodiscard]] value_type& operator*() const { return value_; }
    [[nodiscard]] value_type* operator->() const { return &value_; }
    iterator& operator++() {
      value_ = value_type();
      ++at_;
      look();
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] friend bool operator==(const iterator& it, std::default_sentinel_t end) {
      return it.at_ == end;
    }

   private:
    void look() {
      if (at_ != std::default_sentinel) value_ = of_->make_(*at_);
    }

    const torch_epoch* of_;
    decltype(std::declval<Epoch&>().begin()) at_;
    mutable value_type value_{};
  };

  torch_epoch(Epoch epoch, F make) : epoch_(std::move(epoch)), make_(std::move(make)) {}
  [[nodiscard]] iterator begin() const { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  mutable Epoch epoch_;
  F make_;
};

}  // namespace detail

/// The batches of an epoch as `torch::data::Example<>`, so that a loop written for libtorch's DataLoader
/// stays as it is:
///
///     for (auto& batch : as_examples<"image", "label">(run.epoch(0))) {
///       const torch::Tensor prediction = net->forward(batch.data);
///       loss = torch::nll_loss(prediction, batch.target);
///     }
///
/// In: what `run.epoch(e)`, `run.rest()` or an epoch of `run.epochs(n)` gives, and the names of two fields.
/// Out:
/// a range that is read forward, of tensors as `as_tensors` gives them.
template <fixed_string Data, fixed_string Target, class Epoch>
[[nodiscard]] auto as_examples(Epoch epoch) {
  const auto make = [](auto& batch) {
    return torch::data::Example<>(as_tensors<Data>(batch), as_tensors<Target>(batch));
  };
  return detail::torch_epoch<Epoch, decltype(make)>(std::move(epoch), make);
}

}  // namespace penstock::inline v0_1
