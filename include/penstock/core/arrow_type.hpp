// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/half.hpp>

#include <bit>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// How the values of an Arrow column lie in memory. Columns of layout `other` (unions, runs, and formats that
/// this library does not know) are passed over.
enum class arrow_layout : std::uint8_t {
  nothing,      ///< every value is null
  bits,         ///< booleans, eight to a byte
  fixed,        ///< `width` bytes a value
  bytes32,      ///< offsets of 32 bits into bytes
  bytes64,      ///< offsets of 64 bits into bytes
  views,        ///< 16 bytes a value, which hold it or say where it is
  list32,       ///< offsets of 32 bits into the values of the child
  list64,       ///< offsets of 64 bits into the values of the child
  list_view32,  ///< offsets and sizes of 32 bits, in any order
  list_view64,  ///< offsets and sizes of 64 bits, in any order
  fixed_list,   ///< `width` values of the child
  record,       ///< a value of each child: a struct
  other
};

/// The number that a value of fixed width is. Dates, times, timestamps and durations are the whole numbers
/// that they count.
enum class arrow_number : std::uint8_t {
  none,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64
};

/// The unit that a timestamp counts, as in Arrow.
enum class timestamp_unit : std::uint8_t { second, milli, micro, nano };

/// The number that Arrow has for `T`: `none` for other types, `bool` and characters.
template <class T>
inline constexpr arrow_number arrow_number_of = [] {
  if constexpr (std::same_as<T, half>)
    return arrow_number::float16;
  else if constexpr (std::same_as<T, float>)
    return arrow_number::float32;
  else if constexpr (std::same_as<T, double>)
    return arrow_number::float64;
  else if constexpr (!std::integral<T> || std::same_as<T, bool> || std::same_as<T, char> ||
                     std::same_as<T, wchar_t> || std::same_as<T, char8_t> || std::same_as<T, char16_t> ||
                     std::same_as<T, char32_t> || sizeof(T) > 8)
    return arrow_number::none;
  else  // numbers of a sign stand one behind the other, each twice as large as the one before
    return static_cast<arrow_number>(
        static_cast<int>(std::signed_integral<T> ? arrow_number::int8 : arrow_number::uint8) +
        std::countr_zero(sizeof(T)));
}();

namespace detail {

[[nodiscard]] constexpr bool is_real(arrow_number number) noexcept { return number >= arrow_number::float16; }

/// `work(T{})` with the type of a whole number, otherwise `otherwise()`.
auto with_whole_number(arrow_number number, const auto& work, const auto& otherwise) {
  switch (number) {
    case arrow_number::int8:
      return work(std::int8_t{});
    case arrow_number::int16:
      return work(std::int16_t{});
    case arrow_number::int32:
      return work(std::int32_t{});
    case arrow_number::int64:
      return work(std::int64_t{});
    case arrow_number::uint8:
      return work(std::uint8_t{});
    case arrow_number::uint16:
      return work(std::uint16_t{});
    case arrow_number::uint32:
      return work(std::uint32_t{});
    case arrow_number::uint64:
      return work(std::uint64_t{});
    default:
      return otherwise();
  }
}

}  // namespace detail

/// The type of an Arrow column: what its format string says, and its children.
///
/// Source: Arrow, "The Arrow C data interface", "Data type description - format strings".
struct arrow_type {
  std::string name;    ///< of the column
  std::string format;  ///< as in the C data interface: "l", "+w:4", "tsu:UTC"
  arrow_layout layout = arrow_layout::other;
  arrow_number number = arrow_number::none;
  std::uint64_t width = 0;             ///< bytes of a value of fixed width, or values of a list
  std::vector<arrow_type> children;    ///< of a list one, of a struct its fields
  std::vector<arrow_type> dictionary;  ///< one if the values are numbers of others: their type
  std::int64_t dictionary_id = 0;      ///< in an IPC file
  std::uint64_t unread_buffers = 0;    ///< of layout `other`: how many an IPC file has for it

  /// What a format string says; layout `other` if it is none that is read. Children are the caller's.
  [[nodiscard]] static arrow_type of_format(std::string_view format);

  /// Whether a value is a list, of any layout; so is one of a map.
  [[nodiscard]] bool is_list() const noexcept {
    return layout == arrow_layout::list32 || layout == arrow_layout::list64 ||
           layout == arrow_layout::list_view32 || layout == arrow_layout::list_view64 ||
           layout == arrow_layout::fixed_list;
  }
  /// Whether a value is bytes, or a text, of any length.
  [[nodiscard]] bool is_bytes() const noexcept {
    return layout == arrow_layout::bytes32 || layout == arrow_layout::bytes64 ||
           layout == arrow_layout::views;
  }
  /// Whether the values of both are read alike. Names of lists' values make no difference.
  [[nodiscard]] bool reads_like(const arrow_type& other) const noexcept;
  /// As pyarrow prints it: "int64", "list<float>", "timestamp[us, tz=UTC]".
  [[nodiscard]] std::string text() const;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/arrow_type.ipp>
#endif
