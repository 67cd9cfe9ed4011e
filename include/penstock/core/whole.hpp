// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/destination.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/to_size.hpp>

#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Makes elements *whole*: turns something that lives only during one call into something that owns what it
/// needs. This happens where samples are held: in a loop without batches, and after a forward-only source.
/// The memory of a whole value is reused.
namespace penstock::inline v0_1 {

/// Owned bytes that can be read as a view.
class whole_bytes {
 public:
  whole_bytes() = default;
  [[nodiscard]] bytes_view view() const noexcept { return bytes_.view(); }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }
  operator bytes_view() const noexcept { return bytes_.view(); }  // NOLINT: it owns the view's bytes
  [[nodiscard]] buffer& storage() noexcept { return bytes_; }

 private:
  buffer bytes_;
};

/// An owned array with its shape.
template <class T>
class whole_tensor {
 public:
  [[nodiscard]] const extents& shape() const noexcept { return shape_; }
  [[nodiscard]] std::span<const T> values() const noexcept { return {data(), values_.size()}; }
  [[nodiscard]] tensor_view<const T> view() const noexcept { return {data(), shape_}; }
  operator tensor_view<const T>() const noexcept { return view(); }  // NOLINT: it owns the view's values
  T* resize(const extents& shape) {
    shape_ = shape;
    values_.resize(detail::to_size(shape.elements()));
    return reinterpret_cast<T*>(values_.data());
  }

 private:
  // std::vector<bool> stores bits where a view needs bools
  using stored_type = std::conditional_t<std::same_as<T, bool>, std::byte, T>;
  static_assert(sizeof(stored_type) == sizeof(T), "penstock: a bool takes one byte");

  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(values_.data()); }

  std::vector<stored_type> values_;
  extents shape_;
};

/// An owned sample whose members are known only at run time.
class whole_sample {
 public:
  using is_owned_sample = void;
  struct item {
    std::string name;
    whole_bytes bytes;
  };
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string_view name(std::size_t i) const { return items_[i].name; }
  [[nodiscard]] bytes_view member(std::size_t i) const { return items_[i].bytes.view(); }
  /// The bytes of the member with that name; throws errc::missing if there is none.
  [[nodiscard]] bytes_view operator[](std::string_view name) const {
    for (std::size_t i = 0; i < size_; ++i)
      if (items_[i].name == name) return items_[i].bytes.view();
    throw error(errc::missing, {"the sample has no member '", name, "'"}).for_key(key_);
  }
  void assign(const open_sample auto& sample) {
    key_ = sample.key();
    size_ = sample.size();
    if (items_.size() < size_) items_.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      items_[i].name = sample.name(i);
      const auto member = sample.member(i);
      auto& into = items_[i].bytes.storage();
      into.resize_for_overwrite(static_cast<std::size_t>(member.size()));
      member.read_into(into.span());
    }
  }

 private:
  std::string key_;
  std::vector<item> items_;
  std::size_t size_ = 0;
};

namespace detail {

template <>
struct stored<whole_bytes> : stored_flexible<std::byte, shape_class::announced> {};
template <class T>
struct stored<whole_tensor<T>> : stored_flexible<T, shape_class::announced> {};

template <class T>
struct kept_whole : std::type_identity<T> {};
template <>
struct kept_whole<std::string_view> : std::type_identity<std::string> {};
template <class T>
struct kept_whole<std::span<T>> : std::type_identity<std::vector<std::remove_cv_t<T>>> {};
template <>
struct kept_whole<std::span<const std::byte>> : std::type_identity<whole_bytes> {};
template <class T>
struct kept_whole<tensor_view<T>> : std::type_identity<whole_tensor<std::remove_cv_t<T>>> {};
template <class T>
struct kept_whole<tensor_part<T>> : std::type_identity<whole_tensor<std::remove_cv_t<T>>> {};
template <class T>
struct kept_whole<strided_view<T>> : std::type_identity<whole_tensor<std::remove_cv_t<T>>> {};
template <blob T>
struct kept_whole<T> : std::type_identity<whole_bytes> {};
/// A blob whose finished view lives as long as the run (mapped files, memory) needs no copy.
template <blob T>
  requires requires { requires T::lasting; }
struct kept_whole<T> : std::type_identity<bytes_view> {};
template <array_expression T>
struct kept_whole<T> : std::type_identity<whole_tensor<typename T::value_type>> {};
template <open_sample T>
struct kept_whole<T> : std::type_identity<whole_sample> {};
template <class... Fields>
struct kept_whole<record<Fields...>>
    : std::type_identity<
          record<basic_field<typename Fields::name_type,
                             typename kept_whole<std::remove_cvref_t<typename Fields::type>>::type>...>> {};

}  // namespace detail

/// The owning form of an element type.
template <class T>
using whole = typename detail::kept_whole<std::remove_cvref_t<T>>::type;

/// Copies `value` into its owning form `into`, reusing its memory.
template <class V, class W>
void make_whole(V&& value, W& into) {
  using value_type = std::remove_cvref_t<V>;
  if constexpr (any_record<value_type>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      (make_whole(get<Is>(std::forward<V>(value)), get<Is>(into)), ...);
    }(std::make_index_sequence<value_type::size>{});
  } else if constexpr (open_sample<value_type>) {
    into.assign(value);
  } else if constexpr (std::same_as<W, whole_bytes>) {
    if constexpr (blob<value_type>) {
      into.storage().resize_for_overwrite(static_cast<std::size_t>(value.size()));
      value.read_into(into.storage().span());
    } else if constexpr (std::same_as<value_type, whole_bytes>) {
      into = std::forward<V>(value);
    } else {
      const bytes_view view = value;
      into.storage().resize_for_overwrite(view.size());
      if (!view.empty()) std::memcpy(into.storage().data(), view.data(), view.size());
    }
  } else if constexpr (blob<value_type>) {
    into = value.finish();
  } else if constexpr (array_expression<value_type>) {
    const extents shape = value.shape();
    auto* const to = into.resize(shape);
    write_array(value, destination(to, shape));
  } else if constexpr (detail::tells_strides<value_type>) {
    const extents shape = value.shape();
    auto* const to = into.resize(shape);
    destination(to, shape).copy_from(value);
  } else if constexpr (requires {
                         value.shape();
                         value.values();
                       }) {
    const auto values = value.values();
    auto* to = into.resize(value.shape());
    for (const auto& one : values) *to++ = one;
  } else if constexpr (requires { into.assign(value.begin(), value.end()); } &&
                       !std::same_as<value_type, W>) {
    into.assign(value.begin(), value.end());
  } else {
    into = std::forward<V>(value);
  }
}

namespace detail {

template <class W>
std::uint64_t whole_size(const W& value) {
  if constexpr (any_record<W>) {
    return std::apply([](const auto&... fields) { return (whole_size(fields) + ... + std::uint64_t{0}); },
                      value.values());
  } else if constexpr (requires { value.member(0); }) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < value.size(); ++i) bytes += value.member(i).size();
    return bytes;
  } else if constexpr (requires {
                         value.size();
                         *value.data();
                       }) {
    return value.size() * sizeof(*value.data());
  } else {
    return sizeof(value);
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1
