// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/arrow_forms.hpp>

#include <cstring>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE bytes_view arrow_bytes(const arrow_cell& cell) {
  const arrow_layout layout = cell.type().layout;
  if (layout == arrow_layout::fixed && cell.type().number != arrow_number::none)
    other_arrow_type(cell.type(), "bytes or a text");
  return cell.bytes();
}

// Whether each value of a column stands for bytes of a file.
PENSTOCK_INLINE bool takes_arrow_space(const arrow_type& type) noexcept {
  switch (type.layout) {
    case arrow_layout::nothing:
    case arrow_layout::other:
      return false;
    case arrow_layout::fixed:
      return type.width != 0;
    case arrow_layout::fixed_list:
      return type.width != 0 && takes_arrow_space(type.children.front());
    case arrow_layout::record:
      for (const arrow_type& child : type.children)
        if (takes_arrow_space(child)) return true;
      return false;
    default:
      return true;
  }
}

PENSTOCK_INLINE void check_arrow_count(const arrow_slice& list) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 20;
  const arrow_type& type = *list.column->type;
  if (list.count > maximum && !takes_arrow_space(type))
    throw error(errc::limit, {"a list of the column '", type.name, "' has ", list.count,
                              " values that take no space; the limit is ", maximum});
}

[[noreturn, gnu::cold]] PENSTOCK_INLINE void null_in_arrow_list(const arrow_type& of) {
  throw error(errc::missing, {"a value in a list of the column '", of.name,
                              "' is null: read it with arrow_value<std::vector<std::optional<T>>>, or leave "
                              "such samples out with bad_samples"});
}

PENSTOCK_INLINE void check_arrow_nulls(const arrow_slice& list, const arrow_type& of) {
  if (list.column->validity == nullptr) return;
  for (std::uint64_t i = 0; i < list.count; ++i)
    if (list.column->null_at(list.first + i)) null_in_arrow_list(of);
}

PENSTOCK_INLINE bytes_view arrow_list_bytes(const arrow_slice& list, const arrow_type& of,
                                            arrow_number wanted, std::size_t width) {
  const arrow_column& values = *list.column;
  if (values.type->layout == arrow_layout::nothing) {
    if (list.count != 0) null_in_arrow_list(of);
    return {};
  }
  if (values.type->number != wanted || !values.type->dictionary.empty())
    other_arrow_type(of, "a list of another type");
  check_arrow_nulls(list, of);
  if (list.count == 0) return {};
  return {values.values + to_size(values.offset + list.first) * width, to_size(list.count) * width};
}

PENSTOCK_INLINE std::span<const bool> arrow_list_bools(const arrow_slice& list, const arrow_type& of,
                                                       buffer& room) {
  const arrow_column& values = *list.column;
  if (values.type->layout == arrow_layout::nothing) {
    if (list.count != 0) null_in_arrow_list(of);
    return {};
  }
  if (values.type->layout != arrow_layout::bits) other_arrow_type(of, "a list of bool");
  check_arrow_nulls(list, of);
  room.resize_for_overwrite(to_size(list.count));
  for (std::uint64_t i = 0; i < list.count; ++i) {
    const bool value = arrow_column::bit(values.values, values.offset + list.first + i);
    std::memcpy(room.data() + i, &value, 1);
  }
  return {reinterpret_cast<const bool*>(room.data()), to_size(list.count)};
}

PENSTOCK_INLINE std::size_t find_arrow_field(const arrow_cell& cell, std::string_view name) {
  if (cell.type().layout != arrow_layout::record) other_arrow_type(cell.type(), "a struct");
  const std::vector<arrow_type>& fields = cell.type().children;
  std::size_t at = 0;
  while (at < fields.size() && fields[at].name != name) ++at;
  return at;
}

PENSTOCK_INLINE void name_arrow_value(error& e, const arrow_type& list, std::uint64_t i) {
  e.in_part(text({"value ", i, " of '", list.name, "'"}));
}

PENSTOCK_INLINE void no_arrow_field(const arrow_type& type, std::string_view name) {
  std::string there;
  for (const arrow_type& one : type.children) append(there, {there.empty() ? "" : ", ", one.name});
  throw error(errc::missing, {"the struct '", type.name, "' has no field '", name, "', only ", there,
                              ": read it as std::optional<T> if some files lack it"});
}

PENSTOCK_INLINE const std::byte* aligned_arrow_values(bytes_view values, std::size_t alignment,
                                                      buffer& scratch) {
  if (reinterpret_cast<std::uintptr_t>(values.data()) % alignment == 0) return values.data();
  scratch.resize_for_overwrite(values.size());
  std::memcpy(scratch.data(), values.data(), values.size());
  return scratch.data();
}

PENSTOCK_INLINE void null_arrow_value(const arrow_type& type) {
  throw error(
      errc::missing,
      {"the value of the column '", type.name,
       "' is null: read it as std::optional<T>, or with arrow_value<T, value>, a number to take instead, or "
       "leave such samples out with bad_samples"});
}

PENSTOCK_INLINE arrow_array_place find_arrow_array(const arrow_cell& cell, arrow_number wanted,
                                                   std::size_t width) {
  arrow_array_place found;
  if (cell.is_null()) null_arrow_value(cell.type());
  const std::string& name = cell.type().name;
  const auto uneven = [&] {
    throw error(errc::shape, {"the lists of the column '", name,
                              "' have different lengths, so that they make no array: read them with "
                              "arrow_value<std::vector<std::vector<T>>>"});
  };
  const auto add = [&](std::uint64_t length) {
    if (!found.shape.push_back(length))
      throw error(errc::shape, {"the lists of the column '", name, "' are nested deeper than the ",
                                extents::max_rank, " dimensions that an array may have"});
  };
  arrow_slice values = cell.list();
  check_arrow_count(values);
  add(values.count);
  while (values.column->type->number == arrow_number::none &&
         values.column->type->layout != arrow_layout::bits) {
    if (values.count == 0) {
      if (values.column->type->layout == arrow_layout::nothing) break;  // no value of the file says of what
      // An empty outer list says nothing about the lengths of the inner ones.
      const arrow_type& inner = *values.column->type;
      if (!inner.is_list()) other_arrow_type(inner, "a list of numbers");
      values = {&values.column->children.front(), 0, 0};
      add(inner.layout == arrow_layout::fixed_list ? inner.width : 0);
      continue;
    }
    arrow_slice all;
    std::uint64_t each = 0;
    for (std::uint64_t i = 0; i < values.count; ++i) {
      const arrow_cell inner(*values.column, values.first + i);
      if (inner.is_null()) null_arrow_value(inner.type());
      const arrow_slice one = inner.list();
      if (i == 0) {
        all = one;
        each = one.count;
      } else {
        if (one.count != each) uneven();
        if (one.first != all.first + all.count)  // list views may lie in any order
          throw error(errc::format, {"the lists of the column '", name,
                                     "' do not lie one behind the other: read them with "
                                     "arrow_value<std::vector<std::vector<T>>>"});
        all.count += one.count;
      }
    }
    add(each);
    values = all;
    check_arrow_count(values);
  }
  found.values = arrow_list_bytes(values, cell.type(), wanted, width);
  return found;
}

PENSTOCK_INLINE void arrow_out_of_range(const arrow_type& type) {
  throw error(errc::format, {"a number of the column '", type.name, "', which is of type ", type.text(),
                             ", does not fit the type that was asked for"});
}

PENSTOCK_INLINE void other_arrow_length(const arrow_type& type, std::uint64_t count, std::uint64_t wanted) {
  throw error(errc::shape, {"a list of the column '", type.name, "' has ", count, " values, and ", wanted,
                            " were asked for: read it with arrow_value<std::vector<T>>"});
}

PENSTOCK_INLINE void no_arrow_column(std::string_view codec) {
  throw error(errc::argument,
              {codec, " reads values of arrow_ipc and arrow_stream, and gets bytes of something else"});
}

}  // namespace detail

namespace detail {}  // namespace detail

}  // namespace penstock::inline v0_1
