// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/message.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE arrow_cell arrow_cell::field(std::string_view name) const {
  check_struct();
  const std::vector<arrow_type>& fields = column_->type->children;
  std::size_t at = 0;
  while (at < fields.size() && fields[at].name != name) ++at;
  if (at < fields.size()) return field(at);
  std::string there;
  for (const arrow_type& one : fields) detail::append(there, {there.empty() ? "" : ", ", one.name});
  throw error(errc::missing,
              {"the struct '", column_->type->name, "' has no field '", name, "', only ", there});
}

PENSTOCK_INLINE arrow_cell arrow_cell::field(std::size_t i) const {
  check_struct();
  if (i >= column_->children.size())
    throw error(errc::missing, {"the struct '", column_->type->name, "' has ", column_->children.size(),
                                " fields, and none at place ", i});
  const arrow_column& child = column_->children[i];
  if (null_) return null_of(child);
  if (row_ >= child.length) bad_offsets(row_, row_ + 1, child.length);
  return {child, row_};
}

PENSTOCK_INLINE void arrow_cell::follow_dictionary() {
  // A dictionary's values may have a dictionary of their own.
  while (!null_ && !column_->type->dictionary.empty()) {
    const auto which = detail::with_whole_number(
        column_->type->number, [&]<class T>(T) { return static_cast<std::uint64_t>(number<T>()); },
        [&] { return number<std::uint64_t>(); });
    const arrow_column* found = nullptr;
    std::uint64_t in_part = which, all = 0;
    for (const arrow_column* const part : column_->dictionary) {
      all += part->length;
      if (in_part < part->length) {
        found = part;
        break;
      }
      in_part -= part->length;
    }
    if (found == nullptr)
      throw error(errc::format, {"the column '", column_->type->name, "' has dictionary value ", which,
                                 ", and the dictionary has ", all, ": the data are damaged"});
    null_ = found->null_at(in_part);
    column_ = found;
    row_ = found->offset + in_part;
  }
}

PENSTOCK_INLINE void arrow_cell::check_struct() const {
  if (column_->type->layout != arrow_layout::record)
    throw error(errc::format, {"the column '", column_->type->name, "' is of type ", column_->type->text(),
                               ", which is no struct"});
}

PENSTOCK_INLINE bytes_view arrow_cell::viewed() const {
  if (column_->type->layout != arrow_layout::views)
    throw error(errc::format, {"the column '", column_->type->name, "' is of type ", column_->type->text(),
                               ", which has no bytes of its own"});
  const std::byte* const view = column_->values + detail::to_size(row_) * 16;
  const auto part = [&](std::size_t at) {
    std::uint32_t value;
    std::memcpy(&value, view + at, sizeof(value));
    return value;
  };
  const std::uint32_t size = part(0), inside = 12;
  if (size <= inside) return {view + 4, size};
  const std::uint32_t buffer = part(8), begin = part(12);
  if (buffer >= column_->buffers.size()) bad_offsets(buffer, buffer, column_->buffers.size());
  const bytes_view all = column_->buffers[buffer];
  if (begin > all.size() || size > all.size() - begin)
    bad_offsets(begin, std::uint64_t{begin} + size, all.size());
  return all.subspan(begin, size);
}

PENSTOCK_INLINE arrow_slice arrow_cell::varying_list() const {
  std::uint64_t first = 0, end = 0;
  switch (column_->type->layout) {
    case arrow_layout::list32:
      first = offset<std::uint32_t>(0);
      end = offset<std::uint32_t>(1);
      break;
    case arrow_layout::list64:
      first = offset<std::uint64_t>(0);
      end = offset<std::uint64_t>(1);
      break;
    case arrow_layout::list_view32:
      first = offset<std::uint32_t>(0);
      end = first + number_at<std::uint32_t>(column_->sizes);
      break;
    case arrow_layout::list_view64:
      first = offset<std::uint64_t>(0);
      if (__builtin_add_overflow(first, number_at<std::uint64_t>(column_->sizes), &end)) end = 0;
      break;
    default:
      throw error(errc::format, {"the column '", column_->type->name, "' is of type ", column_->type->text(),
                                 ", which is no list"});
  }
  if (end < first) bad_offsets(first, end, column_->children.front().length);
  return within_child(first, end - first);
}

PENSTOCK_INLINE void arrow_cell::bad_offsets(std::uint64_t begin, std::uint64_t end,
                                             std::uint64_t size) const {
  throw error(errc::format, {"the value of the column '", column_->type->name, "' goes from ", begin, " to ",
                             end, " of the ", size, " there are: the data are damaged"});
}

namespace detail {

PENSTOCK_INLINE void other_arrow_type(const arrow_type& type, std::string_view wanted) {
  throw error(errc::format, {"the column '", type.name, "' is of type ", type.text(), ", and ", wanted,
                             " was asked for: give arrow_value the column's type"});
}

PENSTOCK_INLINE arrow_whole whole_arrow_number(const arrow_cell& cell) {
  return with_whole_number(
      cell.type().number,
      [&]<class T>(T zero) {
        const T value = cell.number<T>();
        return arrow_whole{static_cast<std::uint64_t>(value), value < zero};
      },
      [&]() -> arrow_whole { other_arrow_type(cell.type(), "a whole number"); });
}

PENSTOCK_INLINE double real_arrow_number(const arrow_cell& cell, std::size_t maximum) {
  const arrow_number stored = cell.type().number;
  if (stored == arrow_number::float16) return static_cast<double>(static_cast<float>(cell.number<half>()));
  if (stored == arrow_number::float32 && maximum >= sizeof(float))
    return static_cast<double>(cell.number<float>());
  if (stored == arrow_number::float64 && maximum >= sizeof(double)) return cell.number<double>();
  other_arrow_type(cell.type(), "a floating-point number of fewer bytes");
}

PENSTOCK_INLINE std::string arrow_path_part(std::string_view name) {
  if (name.find_first_of(".`") == name.npos) return std::string(name);
  std::string made = "`";
  for (const char c : name) made.append(c == '`' ? 2 : 1, c);
  return made + '`';
}

PENSTOCK_INLINE void add_arrow_leaf_paths(const arrow_type& type, const std::string& path, bool exact,
                                          std::vector<std::string>& paths, std::size_t& left) {
  for (const arrow_type& child : type.children) {
    const std::string part = exact ? arrow_path_part(child.name) : child.name;
    const std::string name = path.empty() ? part : text({path, ".", part});
    if (name.size() > left)
      throw error(errc::limit,
                  "the names of the columns, with the structs that they are in, have more than 64 MiB");
    left -= name.size();
    if (child.layout == arrow_layout::record && child.dictionary.empty())
      add_arrow_leaf_paths(child, name, exact, paths, left);
    else
      paths.push_back(name);
  }
}

PENSTOCK_INLINE std::vector<std::string> arrow_leaf_paths(const arrow_type& root, bool exact) {
  std::vector<std::string> paths;
  std::size_t left = 64 << 20;
  add_arrow_leaf_paths(root, "", exact, paths, left);
  return paths;
}

PENSTOCK_INLINE std::vector<std::string> arrow_leaf_names(const arrow_type& root) {
  std::vector<std::string> names = arrow_leaf_paths(root, false);
  std::vector<std::string_view> in_order(names.begin(), names.end());
  std::ranges::sort(in_order);
  std::vector<std::string> twice;
  for (auto at = in_order.begin(); (at = std::adjacent_find(at, in_order.end())) != in_order.end();)
    at = std::upper_bound(at, in_order.end(), twice.emplace_back(*at));
  if (twice.empty()) return names;
  const std::vector<std::string> paths = arrow_leaf_paths(root);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (std::ranges::binary_search(twice, names[i])) names[i] = paths[i];
  return names;
}

PENSTOCK_INLINE std::size_t find_arrow_leaf(std::span<const std::string> leaves, std::string_view name) {
  const auto found = std::ranges::find(leaves, name);
  if (found != leaves.end() && std::find(found + 1, leaves.end(), name) != leaves.end())
    throw error(errc::argument, {"two columns are called '", name,
                                 "', and it is not said which one is meant: give one of them another name"});
  return static_cast<std::size_t>(found - leaves.begin());
}

PENSTOCK_INLINE void add_arrow_leaf_types(const arrow_type& type, std::vector<const arrow_type*>& types) {
  for (const arrow_type& child : type.children)
    if (child.layout == arrow_layout::record && child.dictionary.empty())
      add_arrow_leaf_types(child, types);
    else
      types.push_back(&child);
}

PENSTOCK_INLINE std::vector<const arrow_type*> arrow_leaf_types(const arrow_type& root) {
  std::vector<const arrow_type*> types;
  add_arrow_leaf_types(root, types);
  return types;
}

PENSTOCK_INLINE void find_arrow_rows(arrow_leaf& leaf) noexcept {
  const arrow_column* column = leaf.column;
  if (leaf.add >= column->length) return;
  const std::uint64_t rows = column->length - leaf.add;
  std::uint64_t first = leaf.add + column->offset, each = 1;  // in values of `column`
  while (column->type->layout == arrow_layout::fixed_list) {
    const std::uint64_t width = column->type->width;
    std::uint64_t all = 0;
    column = &column->children.front();
    if (__builtin_mul_overflow(first, width, &first) || __builtin_mul_overflow(each, width, &each) ||
        __builtin_mul_overflow(rows, each, &all) || first > column->length || all > column->length - first)
      return;
    first += column->offset;
  }
  if (column->type->layout != arrow_layout::fixed || column->values == nullptr) return;
  const std::uint64_t width = column->type->width;
  if (each == 0 || width == 0) return;
  leaf.first = column->values + to_size(first * width);
  leaf.width = each * width;
  leaf.rows = rows;
  if (column->validity != nullptr || leaf.column->validity != nullptr || !leaf.structs.empty() ||
      !column->type->dictionary.empty() || !leaf.column->type->dictionary.empty())
    return;
  if (column == leaf.column)
    leaf.plain = column->type->number;
  else if (column == &leaf.column->children.front())
    leaf.listed = column->type->number;
}

PENSTOCK_INLINE void add_arrow_leaves(const arrow_column& column, arrow_leaf above,
                                      std::vector<arrow_leaf>& leaves) {
  if (column.validity != nullptr) above.structs.push_back({&column, above.add});
  above.add += column.offset;
  for (const arrow_column& child : column.children) {
    if (child.type->layout == arrow_layout::record && child.type->dictionary.empty()) {
      add_arrow_leaves(child, above, leaves);
    } else {
      leaves.push_back(above);
      leaves.back().column = &child;
      find_arrow_rows(leaves.back());
    }
  }
}

PENSTOCK_INLINE std::vector<arrow_leaf> arrow_leaves(const arrow_column& root) {
  std::vector<arrow_leaf> leaves;
  add_arrow_leaves(root, {}, leaves);
  return leaves;
}

PENSTOCK_INLINE arrow_leaf arrow_leaf_of(const arrow_column& column, const arrow_leaf& like) {
  arrow_leaf made;
  made.column = &column;
  made.add = like.add;
  made.structs = like.structs;
  find_arrow_rows(made);
  return made;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
