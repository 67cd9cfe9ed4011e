// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/arrow_abi.hpp>
#include <penstock/core/position.hpp>
#include <penstock/source/tables/arrow_batch.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// The columns of batches of another library: their types, and the names of the leaves.
struct imported_schema {
  arrow_type root;
  std::vector<std::string> leaves;

  explicit imported_schema(arrow_type columns)
      : root(static_cast<arrow_type&&>(columns)), leaves(arrow_leaf_names(root)) {}
};
/// Such a batch, and its columns.
struct imported_batch {
  shared<const imported_schema> schema;
  arrow_abi::held<arrow_abi::array> array;
  arrow_column root;
  std::vector<arrow_leaf> leaves;
};

/// The type that a schema of another library describes. Throws errc::argument for one that describes none.
[[nodiscard]] arrow_type import_arrow_schema(const arrow_abi::schema& given);

/// Checks what a batch says of its columns, and takes it. Throws errc::argument if it does not fit the
/// schema.
[[nodiscard]] shared<const imported_batch> import_arrow_batch(arrow_abi::held<arrow_abi::array> given,
                                                              shared<const imported_schema> schema);

/// A row of a stream: an open sample that keeps its batch alive.
class arrow_stream_row {
 public:
  using is_open_sample = void;
  using blob_type = arrow_member_value;

  /// "batch 3, row 17".
  [[nodiscard]] std::string_view key() const;
  [[nodiscard]] std::string_view url() const noexcept { return {}; }
  [[nodiscard]] std::size_t size() const noexcept { return batch_ ? batch_->schema->leaves.size() : 0; }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept { return batch_->schema->leaves[i]; }
  /// The place of a column, or their number. Throws errc::argument if two columns have the name.
  [[nodiscard]] std::size_t place_of(std::string_view name) const {
    return batch_ ? find_arrow_leaf(batch_->schema->leaves, name) : 0;
  }
  [[nodiscard]] blob_type member(std::size_t i) const { return {batch_->leaves[i], at_.sample}; }

 private:
  friend class arrow_stream_reader;
  shared<const imported_batch> batch_;
  source_mark at_;
  mutable std::string key_;
};

/// Makes the streams of a source: one for each epoch, or one in all.
struct arrow_stream_maker {
  shared<void> kept;
  void (*make)(void* kept, arrow_abi::array_stream* into);
};

/// Reads the rows of a stream one after another.
class arrow_stream_reader {
 public:
  explicit arrow_stream_reader(arrow_stream_maker maker) : maker_(static_cast<arrow_stream_maker&&>(maker)) {}

  [[nodiscard]] bool next(arrow_stream_row& e);
  void rewind(std::uint64_t /*epoch*/);
  [[nodiscard]] source_mark mark() const noexcept { return {batches_, row_}; }
  /// Reads past the batches and rows already delivered.
  void seek(std::uint64_t epoch, source_mark place);

 private:
  /// Whether there is another batch.
  bool next_batch();
  void begin();
  [[noreturn]] void fail(int code, std::string_view doing);

  arrow_stream_maker maker_;
  arrow_abi::held<arrow_abi::array_stream> stream_;
  shared<const imported_schema> schema_;
  shared<const imported_batch> batch_;
  std::uint64_t batches_ = 0;  // that have been passed
  std::uint64_t row_ = 0;      // of the current batch that comes next
  bool started_ = false, ended_ = false;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/arrow_import.ipp>
#endif
