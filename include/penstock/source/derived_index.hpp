// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/files/values_file.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
inline constexpr value_kind kind_of = std::same_as<T, std::int64_t>    ? value_kind::whole
                                      : std::same_as<T, std::uint64_t> ? value_kind::natural
                                      : std::same_as<T, double>        ? value_kind::floating
                                      : std::same_as<T, std::string>   ? value_kind::text
                                                                       : value_kind::none;

[[nodiscard]] inline std::string_view spelled(value_kind kind) noexcept {
  return enum_name({"nothing", "std::int64_t", "std::uint64_t", "double", "std::string"}, kind);
}

/// Throws `errc::format` if the file's values are of another kind.
inline void check_kind(const values_file& file, value_kind wanted) {
  const value_kind kind = file.header().kind;
  if (kind == wanted) return;
  throw error(errc::format, {"the derived index has values of ", spelled(kind), " and not of ",
                             spelled(wanted), "; write derived_index<", spelled(kind), ">"})
      .in_file(file.path())
      .at_offset(16);
}

/// Opens the file, or throws the reason why it could not be opened.
[[nodiscard]] inline shared<const values_file> opened_values(const std::string& path) {
  auto opened = values_file::open(path);
  if (!opened.file) throw opened.why;
  return std::move(opened.file);
}

}  // namespace detail

/// The types of value that a derived index can hold, one per sample.
template <class T>
concept derived_value = detail::kind_of<T> != detail::value_kind::none;

/// How `derive` obtained an index.
enum class derived_from {
  file,   ///< found: an index of this dataset and name existed
  none,   ///< made: no index existed
  stale,  ///< rebuilt: the existing index was of another state of the dataset
  damage  ///< rebuilt: the existing index was damaged
};

/// A value for each sample of a dataset, in a mapped file; `subset`, `split_by_key`, `class_balanced` and
/// `weighted` choose samples by it. `derive` (inspection/derive.hpp) computes an index from the samples, and
/// `open_derived` opens one.
///
/// `T` is `std::int64_t`, `std::uint64_t`, `double` or `std::string`; text values are views into the file and
/// live as long as any copy of the index. Copies share the mapping, which takes 8 bytes per sample, plus each
/// distinct text once. A look-up is one load. Threads: any number at once. While the index is open no other
/// program may write to the file in place; replacing the file is safe.
/// Source of the format: docs/shard_indexes.md.
template <derived_value T>
class derived_index {
 public:
  using value_type = std::conditional_t<std::same_as<T, std::string>, std::string_view, T>;

  /// From a file that holds values of this type.
  explicit derived_index(shared<const detail::values_file> file, derived_from origin = derived_from::file)
      : file_(std::move(file)), origin_(origin) {
    detail::check_kind(*file_, detail::kind_of<T>);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return file_->header().samples; }
  /// The value of sample i, which must be below `size()`.
  [[nodiscard]] value_type operator[](std::uint64_t i) const noexcept {
    const std::uint64_t word = file_->word(i);
    if constexpr (std::same_as<T, std::string>)
      return file_->text(word);
    else
      return std::bit_cast<T>(word);
  }
  /// The name of the values that was given to `derive`.
  [[nodiscard]] std::string_view name() const noexcept { return file_->name(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  /// The fingerprint of the dataset it was made from.
  [[nodiscard]] std::uint64_t dataset() const noexcept { return file_->header().dataset; }
  /// Covers the dataset, the name and the values.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    class fingerprint h;
    h.add("derived_index", file_->header().kind, dataset(), size(), file_->header().content);
    return h.value();
  }
  [[nodiscard]] std::string describe() const { return detail::text({"index '", name(), "'"}); }
  /// Whether the file was found or had to be made.
  [[nodiscard]] derived_from origin() const noexcept { return origin_; }

 private:
  shared<const detail::values_file> file_;
  derived_from origin_;
};

/// Opens an index that `derive` made, without needing its dataset. Reads and checks the whole file.
///
/// Throws `errc::io` if the file cannot be opened; `errc::format`, with file and offset, if it is not a
/// derived index, is cut or damaged, is of a newer version, or has values of another type. Whether it belongs
/// to a dataset is checked when it is used with one.
///
///     const auto label = open_derived<std::int64_t>("derived/label.penstock-values");
template <derived_value T>
[[nodiscard]] derived_index<T> open_derived(const std::string& path) {
  return derived_index<T>(detail::opened_values(path));
}

}  // namespace penstock::inline v0_1
