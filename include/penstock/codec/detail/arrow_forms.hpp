// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/tf_example.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// Memory for values that cannot be shown where they lie.
class arrow_room {
 public:
  /// Starts over: `next` gives the buffers of before again.
  void begin() noexcept { used_ = 0; }
  [[nodiscard]] buffer& next() {
    if (used_ == rooms_.size()) rooms_.emplace_back();
    return rooms_[used_++];
  }

 private:
  std::vector<buffer> rooms_;
  std::size_t used_ = 0;
};

/// Throws errc::format unless the value is binary or a text.
[[nodiscard]] bytes_view arrow_bytes(const arrow_cell& cell);

/// Throws errc::limit for a list of more than a million values that take no space, which would cost memory
/// that nothing in the file stands for.
void check_arrow_count(const arrow_slice& list);

/// The bytes of a list's numbers; `of` is the list's type. Throws errc::format if they are not of this type,
/// errc::missing if one of them is null.
[[nodiscard]] bytes_view arrow_list_bytes(const arrow_slice& list, const arrow_type& of, arrow_number wanted,
                                          std::size_t width);

/// A list's truth values, a byte each, in `room`. Throws as `arrow_list_bytes`.
[[nodiscard]] std::span<const bool> arrow_list_bools(const arrow_slice& list, const arrow_type& of,
                                                     buffer& room);

/// The place of a field; the number of fields if the struct lacks it. Throws errc::format if it is no struct.
[[nodiscard]] std::size_t find_arrow_field(const arrow_cell& cell, std::string_view name);

/// Adds to an error which value of a list, or which field of a struct, it is about.
[[gnu::cold]] void name_arrow_value(error& e, const arrow_type& list, std::uint64_t i);

[[noreturn, gnu::cold]] void no_arrow_field(const arrow_type& type, std::string_view name);

/// The values, or a copy of them in `scratch` if they are not aligned.
[[nodiscard]] const std::byte* aligned_arrow_values(bytes_view values, std::size_t alignment,
                                                    buffer& scratch);

struct arrow_array_place {
  bytes_view values;
  extents shape;
};

[[noreturn, gnu::cold]] void null_arrow_value(const arrow_type& type);

/// Throws errc::missing for a null, errc::shape for lists that make no array, and what `arrow_list_bytes`
/// throws.
[[nodiscard]] arrow_array_place find_arrow_array(const arrow_cell& cell, arrow_number wanted,
                                                 std::size_t width);

/// The numbers of a list of fixed length, unless it or one of them could be null or it is empty; no bytes for
/// any other.
[[nodiscard]] inline bytes_view flat_arrow_list(const arrow_cell& cell, arrow_number wanted,
                                                std::size_t width) {
  if (cell.type().layout != arrow_layout::fixed_list || cell.is_null()) return {};
  const arrow_slice list = cell.list();
  const arrow_column& values = *list.column;
  if (values.type->number != wanted || values.validity != nullptr || !values.type->dictionary.empty())
    return {};
  return {values.values + to_size(values.offset + list.first) * width, to_size(list.count) * width};
}

[[noreturn, gnu::cold]] void arrow_out_of_range(const arrow_type& type);

[[noreturn, gnu::cold]] void other_arrow_length(const arrow_type& type, std::uint64_t count,
                                                std::uint64_t wanted);

[[noreturn, gnu::cold]] void no_arrow_column(std::string_view codec);

}  // namespace detail

template <class... Fields>
struct arrow_struct;
template <class T>
struct arrow_list;

namespace detail {

/// A value of an Arrow column, as `arrow_ipc` and `arrow_stream` pass it on.
template <class T>
concept arrow_member = requires(const std::remove_cvref_t<T>& value) {
  requires std::same_as<std::remove_cvref_t<decltype(value.cell())>, arrow_cell>;
};

template <class T>
concept arrow_numeric = arrow_number_of<T> != arrow_number::none;

/// How `T` is read: `type` is what comes out, and `read(cell, room)` reads it from a value that is not null;
/// `in_room`: whether it may lie in `room`.
template <class T, bool InRoom = false, bool Possible = true>
struct arrow_form_of {
  static constexpr bool possible = Possible, in_room = InRoom;
  using type = T;
};
template <class T>
struct arrow_form : arrow_form_of<T, false, false> {};

template <arrow_numeric T>
struct arrow_form<T> : arrow_form_of<T> {
  static T read(const arrow_cell& cell, arrow_room&) {
    if (cell.type().number == arrow_number_of<T>) [[likely]]
      return cell.template number<T>();
    if constexpr (std::integral<T>) {
      const arrow_whole whole = whole_arrow_number(cell);
      if (whole.negative ? !std::in_range<T>(static_cast<std::int64_t>(whole.bits))
                         : !std::in_range<T>(whole.bits))
        arrow_out_of_range(cell.type());
      return static_cast<T>(whole.bits);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(real_arrow_number(cell, sizeof(T)));
    } else {
      return T(static_cast<float>(real_arrow_number(cell, sizeof(T))));
    }
  }
};
template <>
struct arrow_form<bool> : arrow_form_of<bool> {
  static bool read(const arrow_cell& cell, arrow_room&) {
    if (cell.type().layout != arrow_layout::bits) other_arrow_type(cell.type(), "bool");
    return cell.bit();
  }
};
template <>
struct arrow_form<bytes> : arrow_form_of<bytes_view> {
  static bytes_view read(const arrow_cell& cell, arrow_room&) { return arrow_bytes(cell); }
};
template <>
struct arrow_form<std::string_view> : arrow_form_of<std::string_view> {
  static std::string_view read(const arrow_cell& cell, arrow_room&) { return text_of(arrow_bytes(cell)); }
};
template <>
struct arrow_form<std::string> : arrow_form_of<std::string> {
  static std::string read(const arrow_cell& cell, arrow_room&) {
    return std::string(text_of(arrow_bytes(cell)));
  }
};
template <std::size_t N>
struct arrow_form<std::array<std::byte, N>> : arrow_form_of<std::array<std::byte, N>, false, N != 0> {
  using type = std::array<std::byte, N>;
  static type read(const arrow_cell& cell, arrow_room&) {
    if (cell.type().layout != arrow_layout::fixed || cell.type().width != N)
      other_arrow_type(cell.type(), "a value of as many bytes as the array has");
    const bytes_view found = cell.bytes();
    type copy;
    std::copy(found.begin(), found.end(), copy.begin());
    return copy;
  }
};
template <class T>
struct arrow_form<std::optional<T>> {
  static constexpr bool possible = arrow_form<T>::possible, in_room = arrow_form<T>::in_room;
  using type = std::optional<typename arrow_form<T>::type>;
  static type read(const arrow_cell& cell, arrow_room& room) {
    if (cell.is_null()) return std::nullopt;
    return arrow_form<T>::read(cell, room);
  }
};
template <class T>
inline constexpr bool arrow_takes_null = false;
template <class T>
inline constexpr bool arrow_takes_null<std::optional<T>> = true;

/// The value, or an error if it is null and `T` has nothing for that.
template <class T>
[[nodiscard]] typename arrow_form<T>::type read_arrow(const arrow_cell& cell, arrow_room& room) {
  if constexpr (!arrow_takes_null<T>)
    if (cell.is_null()) [[unlikely]]
      null_arrow_value(cell.type());
  return arrow_form<T>::read(cell, room);
}
template <arrow_numeric T>
struct arrow_form<std::span<const T>> : arrow_form_of<std::span<const T>, true> {
  static std::span<const T> read(const arrow_cell& cell, arrow_room& room) {
    const bytes_view values = arrow_list_bytes(cell.list(), cell.type(), arrow_number_of<T>, sizeof(T));
    if (reinterpret_cast<std::uintptr_t>(values.data()) % alignof(T) == 0) [[likely]]
      return {reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T)};
    return {reinterpret_cast<const T*>(aligned_arrow_values(values, alignof(T), room.next())),
            values.size() / sizeof(T)};
  }
};
template <>
struct arrow_form<std::span<const bool>> : arrow_form_of<std::span<const bool>, true> {
  static type read(const arrow_cell& cell, arrow_room& room) {
    return arrow_list_bools(cell.list(), cell.type(), room.next());
  }
};

template <class T, class Take>
void read_arrow_list(const arrow_cell& cell, const arrow_slice& values, arrow_room& room, const Take& take) {
  std::uint64_t i = 0;
  try {
    for (; i < values.count; ++i) take(read_arrow<T>(values[i], room));
  } catch (error& e) {
    name_arrow_value(e, cell.type(), i);
    throw;
  }
}
template <class T, class A>
struct arrow_form<std::vector<T, A>> {
  static constexpr bool possible = arrow_form<T>::possible, in_room = arrow_form<T>::in_room;
  using value = typename arrow_form<T>::type;
  using type = std::conditional_t<std::same_as<value, T>, std::vector<T, A>, std::vector<value>>;
  static type read(const arrow_cell& cell, arrow_room& room) {
    const arrow_slice values = cell.list();
    check_arrow_count(values);
    type all;
    all.reserve(to_size(values.count));
    read_arrow_list<T>(cell, values, room, [&](value&& one) { all.push_back(std::move(one)); });
    return all;
  }
};
template <class T>
struct arrow_form<arrow_list<T>> : arrow_form<std::vector<T>> {};
template <arrow_numeric T, std::size_t N>
struct arrow_form<std::array<T, N>> : arrow_form_of<std::array<T, N>> {
  static std::array<T, N> read(const arrow_cell& cell, arrow_room& room) {
    const arrow_slice values = cell.list();
    if (values.count != N) other_arrow_length(cell.type(), values.count, N);
    std::array<T, N> all{};
    std::size_t at = 0;
    read_arrow_list<T>(cell, values, room, [&](T one) { all[at++] = one; });
    return all;
  }
};

/// The fields of a struct: by name, which it may lack if they may be null.
template <class Name, class T>
[[nodiscard]] typename arrow_form<T>::type read_arrow_field(const arrow_cell& cell, arrow_room& room) {
  const std::size_t at = find_arrow_field(cell, Name::value);
  if (at < cell.type().children.size()) [[likely]]
    return read_arrow<T>(cell.field(at), room);
  if constexpr (arrow_takes_null<T>)
    return std::nullopt;
  else
    no_arrow_field(cell.type(), Name::value);
}
template <class... Fields>
struct arrow_form<record<Fields...>> {
  static constexpr bool possible = (arrow_form<typename Fields::type>::possible && ...),
                        in_room = (arrow_form<typename Fields::type>::in_room || ...);
  using type =
      record<basic_field<typename Fields::name_type, typename arrow_form<typename Fields::type>::type>...>;
  static type read(const arrow_cell& cell, arrow_room& room) {
    return type(made_by{}, [&] {
      return read_arrow_field<typename Fields::name_type, typename Fields::type>(cell, room);
    }...);
  }
};
template <class... Fields>
struct arrow_form<arrow_struct<Fields...>> : arrow_form<record<Fields...>> {};

/// A struct of two fields with any names, as an entry of a map is.
template <class A, class B>
struct arrow_form<std::pair<A, B>> {
  static constexpr bool possible = arrow_form<A>::possible && arrow_form<B>::possible,
                        in_room = arrow_form<A>::in_room || arrow_form<B>::in_room;
  using type = std::pair<typename arrow_form<A>::type, typename arrow_form<B>::type>;
  static type read(const arrow_cell& cell, arrow_room& room) {
    if (cell.type().layout != arrow_layout::record || cell.type().children.size() != 2)
      other_arrow_type(cell.type(), "a pair");
    auto first = read_arrow<A>(cell.field(0), room);
    return type(std::move(first), read_arrow<B>(cell.field(1), room));
  }
};
template <class T>
concept arrow_map_like = requires(T& map, typename T::key_type key, typename T::mapped_type value) {
  map.insert_or_assign(std::move(key), std::move(value));
};
/// Of a key that is there twice the last value.
template <arrow_map_like M>
struct arrow_form<M> {
  using entry = std::pair<typename M::key_type, typename M::mapped_type>;
  // A key must own what it is.
  static constexpr bool possible = arrow_form<entry>::possible &&
                                   std::same_as<typename arrow_form<entry>::type, entry>,
                        in_room = arrow_form<entry>::in_room;
  using type = M;
  static M read(const arrow_cell& cell, arrow_room& room) {
    const arrow_slice values = cell.list();
    check_arrow_count(values);
    M all;
    read_arrow_list<entry>(cell, values, room, [&](entry&& one) {
      all.insert_or_assign(std::move(one.first), std::move(one.second));
    });
    return all;
  }
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/arrow_forms.ipp>
#endif
