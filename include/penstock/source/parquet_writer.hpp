// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/writer.h>)
#error "penstock/source/parquet_writer.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/source/tables/arrow_cpp.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <charconv>
#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `parquet_writer`.
struct parquet_writer_options {
  std::uint64_t group_rows = std::uint64_t{1} << 20;  ///< the most rows of a row group
  std::uint64_t group_bytes = 64_MiB;  ///< about the most bytes of a row group, before compression
  /// "none", "snappy", "gzip", "zstd", "brotli" or "lz4_raw", as far as Arrow was built with it.
  std::string compression = "zstd";
  bool page_index = true;               ///< the smallest and largest values of each page
  bool page_checksum = false;           ///< a CRC-32 of each page, which readers compare
  std::vector<std::string> bloom = {};  ///< columns that get Bloom filters; needs Arrow 24
};

/// A value for `parquet_writer`: a number, a truth value, a text, bytes, a list of numbers, or nothing, which
/// is null. Texts, bytes and lists are not copied: they live until the call ends.
class parquet_value {
 public:
  using list =
      std::variant<std::span<const std::int8_t>, std::span<const std::int16_t>, std::span<const std::int32_t>,
                   std::span<const std::int64_t>, std::span<const std::uint8_t>,
                   std::span<const std::uint16_t>, std::span<const std::uint32_t>,
                   std::span<const std::uint64_t>, std::span<const float>, std::span<const double>>;
  using any = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string_view, list>;

  parquet_value() = default;
  parquet_value(std::nullopt_t) noexcept {}  // NOLINT: as for an optional
  template <class T>
    requires std::is_arithmetic_v<T>
  parquet_value(T number) noexcept {  // NOLINT: {"label", 7}
    if constexpr (std::same_as<T, bool>)
      value_ = number;
    else if constexpr (std::floating_point<T>)
      value_ = static_cast<double>(number);
    else if constexpr (std::is_signed_v<T>)
      value_ = static_cast<std::int64_t>(number);
    else
      value_ = static_cast<std::uint64_t>(number);
  }
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  parquet_value(const T& text) noexcept : value_(static_cast<std::string_view>(text)) {}  // NOLINT
  parquet_value(bytes_view bytes) noexcept : value_(text_of(bytes)) {}                    // NOLINT
  template <class T>
    requires std::constructible_from<list, std::span<const T>>
  parquet_value(std::span<const T> values) noexcept : value_(list(values)) {}  // NOLINT
  template <class T>
    requires std::constructible_from<list, std::span<const T>>
  parquet_value(const std::vector<T>& values) noexcept  // NOLINT
      : value_(list(std::span<const T>(values.data(), values.size()))) {}

  [[nodiscard]] const any& get() const noexcept { return value_; }

 private:
  any value_;
};

namespace detail {

/// The type that Arrow prints like this.
[[nodiscard]] inline std::shared_ptr<arrow::DataType> parquet_type(std::string_view text) {
  using arrow::TimeUnit;
  std::string all;
  for (auto type :
       {arrow::boolean(), arrow::int8(), arrow::int16(), arrow::int32(), arrow::int64(), arrow::uint8(),
        arrow::uint16(), arrow::uint32(), arrow::uint64(), arrow::float32(), arrow::float64(), arrow::utf8(),
        arrow::binary(), arrow::large_binary(), arrow::date32(), arrow::timestamp(TimeUnit::MILLI),
        arrow::timestamp(TimeUnit::MICRO), arrow::timestamp(TimeUnit::NANO)}) {
    const std::string called = type->ToString();
    if (called == text) return type;
    append(all, {called, ", "});
  }
  const std::size_t open = text.find('<'), close = text.rfind('>');
  if (open != text.npos && close != text.npos && close > open) {
    const auto inner = parquet_type(text.substr(open + 1, close - open - 1));
    const std::string_view front = text.substr(0, open), behind = text.substr(close + 1);
    if (front == "list" && behind.empty() && inner->num_fields() == 0) return arrow::list(inner);
    std::int32_t size = 0;
    if (front == "fixed_size_list" && behind.size() > 2 && behind.front() == '[' && behind.back() == ']' &&
        inner->num_fields() == 0) {
      const auto end = std::from_chars(behind.data() + 1, behind.data() + behind.size(), size).ptr;
      if (end == behind.data() + behind.size() - 1 && size > 0) return arrow::fixed_size_list(inner, size);
    }
  }
  throw error(errc::argument, {"'", text, "' is no type that parquet_writer knows; there are ", all,
                               "and lists of these as \"list<float>\" or \"fixed_size_list<float>[3]\""});
}

/// The columns of a row group that is being made.
class parquet_columns {
 public:
  explicit parquet_columns(const std::vector<std::pair<std::string, std::string>>& columns) {
    if (columns.empty()) throw error(errc::argument, "a file needs at least one column");
    std::vector<std::shared_ptr<arrow::Field>> fields;
    for (const auto& [name, type] : columns) {
      if (find(name) != builders_.size())
        throw error(errc::argument, {"two columns are called '", name, "'"});
      fields.push_back(arrow::field(name, parquet_type(type)));
      names_.push_back(name);
      builders_.emplace_back();
      check_arrow(arrow::MakeBuilder(arrow::default_memory_pool(), fields.back()->type(), &builders_.back()));
    }
    schema_ = arrow::schema(std::move(fields));
  }

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const noexcept { return schema_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  /// Of the values, about.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Adds a row: all of it, or nothing.
  void append(std::span<const std::pair<std::string_view, parquet_value>> row) {
    std::vector<const parquet_value*> values(builders_.size());
    for (const auto& [name, value] : row) {
      const std::size_t at = find(name);
      if (at == builders_.size()) throw error(errc::argument, {"there is no column '", name, "'"});
      if (values[at] != nullptr) throw error(errc::argument, {"the column '", name, "' is given twice"});
      values[at] = &value;
      check(value, *schema_->field(static_cast<int>(at))->type(), name);
    }
    for (std::size_t i = 0; i < builders_.size(); ++i) {
      if (values[i] == nullptr)
        check_arrow(builders_[i]->AppendNull());
      else
        append_value(*builders_[i], *values[i]);
    }
    ++rows_;
  }

  /// The rows so far, and begins anew.
  [[nodiscard]] std::shared_ptr<arrow::Table> finish() {
    std::vector<std::shared_ptr<arrow::Array>> arrays(builders_.size());
    for (std::size_t i = 0; i < builders_.size(); ++i) check_arrow(builders_[i]->Finish(&arrays[i]));
    const auto count = static_cast<std::int64_t>(std::exchange(rows_, 0));
    bytes_ = 0;
    return arrow::Table::Make(schema_, arrays, count);
  }

 private:
  [[nodiscard]] std::size_t find(std::string_view name) const noexcept {
    std::size_t at = 0;
    while (at < names_.size() && names_[at] != name) ++at;
    return at;
  }

  // Calls `work.operator()<Type>()` for a type whose values are numbers; returns false for others.
  template <class Work>
  static bool with_number(const arrow::DataType& type, const Work& work) {
    return with_one_of<arrow::Int8Type, arrow::Int16Type, arrow::Int32Type, arrow::Int64Type,
                       arrow::UInt8Type, arrow::UInt16Type, arrow::UInt32Type, arrow::UInt64Type,
                       arrow::FloatType, arrow::DoubleType, arrow::Date32Type, arrow::TimestampType>(
        [&]<class Type>() { return type.id() == Type::type_id; }, work);
  }

  // Whether a number is one of the type `To`, exactly; a number of floating point may be rounded.
  template <class To, class From>
  [[nodiscard]] static bool fits(From value) noexcept {
    if constexpr (std::floating_point<To>)
      return true;
    else if constexpr (std::floating_point<From>)
      return false;
    else
      return std::in_range<To>(value);
  }

  static void check(const parquet_value& value, const arrow::DataType& type, std::string_view name) {
    const bool good = std::visit(
        [&]<class T>(const T& given) {
          if constexpr (std::same_as<T, std::monostate>) {
            return true;
          } else if constexpr (std::same_as<T, bool>) {
            return type.id() == arrow::Type::BOOL;
          } else if constexpr (std::same_as<T, std::string_view>) {
            return type.id() == arrow::Type::STRING || type.id() == arrow::Type::BINARY ||
                   type.id() == arrow::Type::LARGE_BINARY;
          } else if constexpr (std::same_as<T, parquet_value::list>) {
            return std::visit(
                [&]<class N>(std::span<const N> numbers) {
                  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
                    const auto size = static_cast<const arrow::FixedSizeListType&>(type).list_size();
                    if (numbers.size() != static_cast<std::size_t>(size)) return false;
                  } else if (type.id() != arrow::Type::LIST) {
                    return false;
                  }
                  return with_number(*type.field(0)->type(), [&]<class To>() {
                    for (const N one : numbers)
                      if (!fits<typename To::c_type>(one)) return false;
                    return true;
                  });
                },
                given);
          } else {
            return with_number(type, [&]<class To>() { return fits<typename To::c_type>(given); });
          }
        },
        value.get());
    if (!good)
      throw error(errc::argument,
                  {"the value for the column '", name, "' is none of its type, ", type.ToString()});
  }

  void append_value(arrow::ArrayBuilder& builder, const parquet_value& value) {
    std::visit(
        [&]<class T>(const T& given) {
          if constexpr (std::same_as<T, std::monostate>) {
            check_arrow(builder.AppendNull());
          } else if constexpr (std::same_as<T, bool>) {
            check_arrow(static_cast<arrow::BooleanBuilder&>(builder).Append(given));
            ++bytes_;
          } else if constexpr (std::same_as<T, std::string_view>) {
            if (builder.type()->id() == arrow::Type::LARGE_BINARY)
              check_arrow(static_cast<arrow::LargeBinaryBuilder&>(builder).Append(given));
            else
              check_arrow(static_cast<arrow::BinaryBuilder&>(builder).Append(given));
            bytes_ += given.size() + 4;
          } else if constexpr (std::same_as<T, parquet_value::list>) {
            append_list(builder, given);
          } else {
            append_number(builder, given);
          }
        },
        value.get());
  }
  template <class N>
  void append_number(arrow::ArrayBuilder& builder, N number) {
    with_number(*builder.type(), [&]<class To>() {
      using c_type = typename To::c_type;
      check_arrow(static_cast<typename arrow::TypeTraits<To>::BuilderType&>(builder).Append(
          static_cast<c_type>(number)));
      bytes_ += sizeof(c_type);
      return true;
    });
  }
  void append_list(arrow::ArrayBuilder& builder, const parquet_value::list& given) {
    arrow::ArrayBuilder* values = nullptr;
    if (builder.type()->id() == arrow::Type::LIST) {
      auto& lists = static_cast<arrow::ListBuilder&>(builder);
      check_arrow(lists.Append());
      values = lists.value_builder();
    } else {
      auto& lists = static_cast<arrow::FixedSizeListBuilder&>(builder);
      check_arrow(lists.Append());
      values = lists.value_builder();
    }
    std::visit(
        [&](auto numbers) {
          for (const auto one : numbers) append_number(*values, one);
        },
        given);
  }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders_;
  std::shared_ptr<arrow::Schema> schema_;
  std::uint64_t rows_ = 0, bytes_ = 0;
};

/// A Parquet file that appears when it is complete.
class parquet_output {
 public:
  parquet_output(std::string path, const std::shared_ptr<arrow::Schema>& schema,
                 const parquet_writer_options& options)
      : path_(path), sink_(std::make_shared<sink>(std::move(path))) {
    in_file(path_, [&] {
      parquet::WriterProperties::Builder how;
      if (options.page_index) how.enable_write_page_index();
      if (options.page_checksum) how.enable_page_checksum();
      const auto codec = arrow::util::Codec::GetCompressionType(
          options.compression == "none" ? "uncompressed" : options.compression);
      if (!codec.ok() || !arrow::util::Codec::IsAvailable(*codec))
        throw error(errc::argument, {"Arrow was built without the compression '", options.compression,
                                     "'; \"snappy\" and \"none\" are most often there"});
      how.compression(*codec);
      for (const std::string& one : options.bloom) {
        if (schema->GetFieldIndex(one) < 0)
          throw error(errc::argument, {"there is no column '", one, "' for a Bloom filter"});
        enable_bloom(how, one);
      }
      auto opened =
          parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), sink_, how.build(),
                                           parquet::ArrowWriterProperties::Builder().store_schema()->build());
      check_arrow(opened.status());
      writer_ = std::move(*opened);
    });
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// A row group.
  void write(const std::shared_ptr<arrow::Table>& table) {
    in_file(path_, [&] { check(writer_->WriteTable(*table, table->num_rows())); });
  }
  void close() {
    in_file(path_, [&] {
      check(writer_->Close());
      (void)sink_->file.commit();
    });
  }

 private:
  struct sink : arrow::io::OutputStream {
    explicit sink(std::string path) : file(std::move(path)) {}
    using arrow::io::OutputStream::Write;
    arrow::Status Write(const void* data, std::int64_t size) override {
      try {
        file.write({static_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
        return arrow::Status::OK();
      } catch (const error& e) {
        failure.emplace(e);
        return arrow::Status::IOError("the file cannot be written");
      }
    }
    arrow::Status Close() override { return arrow::Status::OK(); }
    [[nodiscard]] bool closed() const override { return false; }
    [[nodiscard]] arrow::Result<std::int64_t> Tell() const override {
      return static_cast<std::int64_t>(file.size());
    }

    output_file file;
    std::optional<error> failure;
  };

  template <class Builder>
  static void enable_bloom(Builder& how, const std::string& column) {
    if constexpr (requires { how.enable_bloom_filter(column, {}); })
      how.enable_bloom_filter(column, {});
    else
      throw error(errc::argument,
                  "this version of Arrow writes no Bloom filters: leave "
                  "parquet_writer_options::bloom empty");
  }
  void check(const arrow::Status& done) const {
    if (!done.ok() && sink_->failure) throw *sink_->failure;
    check_arrow(done);
  }

  std::string path_;
  std::shared_ptr<sink> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

}  // namespace detail

/// Writes a Parquet file that `parquet`, and everything else that reads Parquet, reads.
///
///     parquet_writer out("photos.parquet", {{"image", "binary"}, {"label", "int64"},
///                                           {"embedding", "fixed_size_list<float>[3]"}});
///     const std::vector<float> embedding{0.5f, 1, 2};
///     out.write({{"image", jpeg_bytes}, {"label", 7}, {"embedding", embedding}});
///     out.close();
///
/// In: the path; the columns with their types, as Arrow prints them: "bool", "int8" to "uint64", "float",
/// "double", "string", "binary", "large_binary", "date32[day]", "timestamp[ms]", "timestamp[us]",
/// "timestamp[ns]", and lists of these, `list<float>` or `fixed_size_list<float>[3]`; and a row's values, of
/// which those that are not given are null. Out: the file, which appears under its name when it is complete
/// and flushed, at `close`;
/// without it there is none.
/// Cost: a row group is kept in memory.
/// Errors: errc::argument for a type that is not known, a column that is unknown or given twice, and a value
/// that does not fit its column; errc::io with the path if the file cannot be written; errc::state after
/// `close`, and after a failure.
/// Threads: one at a time. Source: Arrow C++, `parquet::arrow::FileWriter`.
class parquet_writer {
 public:
  /// A value, and its column.
  using field = std::pair<std::string_view, parquet_value>;

  parquet_writer(std::string path, std::vector<std::pair<std::string, std::string>> columns,
                 parquet_writer_options options = {})
      : options_(std::move(options)), columns_(columns), file_(std::move(path), columns_.schema(), options_) {
    if (options_.group_rows == 0 || options_.group_bytes == 0)
      throw error(errc::argument, "a row group has at least one row and one byte").in_file(file_.path());
  }

  void write(std::span<const field> row) {
    if (closed_) throw error(errc::state, "the file is closed, or failed before").in_file(file_.path());
    detail::in_file(file_.path(), [&] {
      columns_.append(row);
      if (columns_.rows() >= options_.group_rows || columns_.bytes() >= options_.group_bytes) flush();
    });
  }
  void write(std::initializer_list<field> row) { write(std::span<const field>(row.begin(), row.size())); }

  /// Begins another row group.
  void flush() {
    if (columns_.rows() == 0) return;
    closed_ = true;  // if it fails
    file_.write(columns_.finish());
    closed_ = false;
  }

  /// Completes the file.
  void close() {
    if (closed_) throw error(errc::state, "the file is closed, or failed before").in_file(file_.path());
    flush();
    closed_ = true;
    file_.close();
  }

 private:
  parquet_writer_options options_;
  detail::parquet_columns columns_;
  detail::parquet_output file_;
  bool closed_ = false;
};

}  // namespace penstock::inline v0_1
