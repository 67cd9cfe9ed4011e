// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/projection.hpp>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A column that is in two files in types without a common one.
struct column_conflict {
  std::string column;  ///< its path; also for the fields of a struct
  std::string first, second;
  std::string first_type, second_type;  ///< the second one is empty if the second file has the column twice
};

/// The type in which all values of two types have a place without loss; none if there is none. Of whole and
/// floating-point numbers the smallest one that holds both exactly, of times the one of the finer unit, of
/// texts a text, of texts and bytes bytes, of a dictionary that of its values, of lists a list, of structs
/// one with the fields of both; null is of any type.
[[nodiscard]] std::optional<arrow_type> common_arrow_type(const arrow_type& a, const arrow_type& b);

/// The columns of the files of a dataset together, in the order in which files bring them. A column that a
/// file lacks, or has with the type null, is null there.
class column_union {
 public:
  /// A file's columns, as the children of a struct, and its name, which must outlive this.
  void add(const arrow_type& columns, std::string_view name);

  [[nodiscard]] const arrow_type& schema() const noexcept { return all_; }
  [[nodiscard]] const std::vector<column_conflict>& conflicts() const noexcept { return conflicts_; }

 private:
  // Names are looked up in maps, since a schema may have a million of them.
  void join(arrow_type& known, const arrow_type& given, const std::string& path, std::string_view name);
  void refuse(const std::string& path, std::string_view name, const arrow_type* known,
              const arrow_type* given);

  arrow_type all_;
  std::string_view first_;
  // by path: the file of its type, unless the first
  std::map<std::string, std::string_view, std::less<>> from_;
  std::vector<column_conflict> conflicts_;
};

/// Throws errc::format, with both files and types, if a conflict is about the column that this leaf is in.
void check_conflicts(std::span<const column_conflict> conflicts, std::string_view leaf);

/// Throws errc::format, with both files and types, if a conflict is about a column that is used, among
/// `leaves`.
void check_conflicts(std::span<const column_conflict> conflicts, std::span<const std::string> leaves,
                     const projection& used);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/arrow_union.ipp>
#endif
