// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/tables/arrow_rows.hpp>
#include <penstock/source/where.hpp>

namespace penstock::inline v0_1::detail {

/// The base of sources of rows in Arrow's form: `Files` knows the files, and `Batches` has those batches of a
/// run that are in memory.
template <class Source, class Storage, class Files, class Batches>
class table_source : public opens_as_plan<Source> {
 public:
  using penstock_part = source_tag;
  using element = arrow_row<Files>;
  using reader = arrow_rows<Storage, Files, stored_in<Files, Storage>, Batches>;

  /// The rows of all files, or those that filters left.
  [[nodiscard]] std::uint64_t size() const noexcept { return table_->shards.samples(); }
  /// Where the batches begin that are read at once.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return table_->shards.starts();
  }
  /// These batches, as shards.
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return table_->shards; }
  /// Covers what decides which rows there are and what they hold.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return table_->mark; }
  [[nodiscard]] std::string describe() const { return table_->describe(); }
  [[nodiscard]] std::vector<source_field> fields() const { return table_->fields(); }
  /// The columns' types, as the children of a struct.
  [[nodiscard]] const arrow_type& schema() const noexcept {
    if constexpr (requires { *table_->schema; })
      return *table_->schema;
    else
      return table_->schema;
  }

  /// Only these columns; see `columns`.
  [[nodiscard]] friend Source operator|(Source source, column_list names)
    requires requires(Files& shown) { shown.show(names.names); }
  {
    return std::move(source).changed([&](Files& shown) { shown.show(names.names); });
  }

 protected:
  using files = stored_in<Files, Storage>;

  /// `args`: what `Files` takes besides a storage's facts and a session.
  template <class... Args>
  explicit table_source(Storage where, Args&&... args) {
    auto session = where.connect();
    Files found(facts_of(where), session, std::forward<Args>(args)...);
    table_.reset(new const files(std::move(where), std::move(found)));
  }

  /// The source with other files.
  template <class Change>
  [[nodiscard]] Source changed(Change&& change) const {
    Source made(static_cast<const Source&>(*this));
    files other(*table_);
    change(other);
    made.table_.reset(new const files(std::move(other)));
    return made;
  }
  [[nodiscard]] const shared<const files>& table() const noexcept { return table_; }

 private:
  shared<const files> table_;
};

}  // namespace penstock::inline v0_1::detail
