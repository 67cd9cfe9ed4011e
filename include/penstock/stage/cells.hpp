// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/part.hpp>

#include <concepts>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace mistakes {

struct cells_need_columns : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: cells() reads rows of parquet, delta, iceberg, arrow_ipc and arrow_stream, straight "
        "from the source; other samples have no columns");
  }
};

}  // namespace mistakes

namespace detail {

template <class T>
concept row_of_columns = open_sample<T> && requires(const std::remove_cvref_t<T>& row, std::size_t i) {
  { row.member(i).cell() } -> std::convertible_to<arrow_cell>;
};

[[noreturn, gnu::cold]] inline void no_such_column(std::string_view name, const std::string& there) {
  throw error(errc::missing, {"the row has no column '", name, "'; it has: ", there});
}

}  // namespace detail

/// A row whose columns are read by names that are known at run time. Like the row that it is of, it is an
/// open sample, and lives during the call that passes it on.
template <class Row>
class row_cells : public Row {
 public:
  explicit row_cells(const Row& row) : Row(row) {}

  /// The value of a column; fields of structs have paths: "image.bytes". Throws errc::missing, with the
  /// columns that are there.
  [[nodiscard]] arrow_cell operator[](std::string_view name) const {
    for (std::size_t i = 0; i < this->size(); ++i)
      if (std::string_view(this->name(i)) == name) return this->member(i).cell();
    std::string there;
    for (std::size_t i = 0; i < this->size(); ++i) there.append(i == 0 ? "" : ", ").append(this->name(i));
    detail::no_such_column(name, there);
  }
  /// The value of the column `name(i)`.
  [[nodiscard]] arrow_cell operator[](std::size_t i) const { return this->member(i).cell(); }
};

/// Reads the columns of a row by names and types that are known at run time. Made by `cells()`.
///
/// `parquet("chats.parquet") | cells() | map([](const auto& row) { return row["id"].template as<int>(); })`;
/// docs/formats.md has a program for lists of structs.
///
/// In: a row of `parquet`, `delta`, `iceberg`, `arrow_ipc` or `arrow_stream`. Out: a `row_cells`, for `map`
/// or `filter`: `row["name"]` and `row[i]` are `arrow_cell`s, which say their `type()`, whether they are
/// null, and, by `list()`, `field(name)` and `as<T>()`, what they are. `row.size()` and `row.name(i)` tell
/// the columns.
/// All columns that the source shows are read: choose some with `columns<...>`, or `column_list{names}`,
/// behind the source.
/// Kind: pointwise, keeps all guarantees. Cost per sample: a look at the names for each value; no allocation.
/// Throws errc::missing for a column that is not there, and what reading a value throws.
struct cells_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "cells";

  template <class V, class Call>
  auto apply(V&& row, const Call&) const {
    return row_cells<std::remove_cvref_t<V>>(row);
  }
  template <class Context>
  static consteval auto diagnose() {
    return mistakes::unless<detail::row_of_columns<typename Context::element>,
                            mistakes::cells_need_columns>{};
  }
};

[[nodiscard]] constexpr cells_stage cells() noexcept { return {}; }

}  // namespace penstock::inline v0_1
