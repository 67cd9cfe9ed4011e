// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/detail/values_file.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
inline constexpr value_kind kind_of = value_kind::none;
template <>
inline constexpr value_kind kind_of<std::int64_t> = value_kind::whole;
template <>
inline constexpr value_kind kind_of<std::uint64_t> = value_kind::natural;
template <>
inline constexpr value_kind kind_of<double> = value_kind::floating;
template <>
inline constexpr value_kind kind_of<std::string> = value_kind::text;

[[nodiscard]] std::string_view spelled(value_kind kind) noexcept;

/// Throws `errc::format` where a file has values of another kind.
void check_kind(const values_file& file, value_kind wanted);

/// Throws what is wrong with a file that could not be opened.
[[nodiscard]] shared<const values_file> opened_values(const std::string& path);

}  // namespace detail

/// What a derived index has a value of for each sample.
template <class T>
concept derived_value = detail::kind_of<T> != detail::value_kind::none;

/// How `derive` came by an index.
enum class derived_from {
  file,   ///< there was one of this dataset and name
  none,   ///< there was none, and it was made
  stale,  ///< there was one of another state of the dataset, and it was made again
  damage  ///< there was a damaged one, and it was made again
};

/// A value for each sample of a dataset, in a file that is mapped: what `subset`, `split_by_key`,
/// `class_balanced` and `weighted` choose by. `derive` (inspection/derive.hpp) makes it from the samples,
/// `open_derived` opens one.
///
/// `T` is `std::int64_t`, `std::uint64_t`, `double` or `std::string`; values of texts are views into the file
/// and live as long as any copy of the index. A value; copies share the mapping, which takes 8 bytes a
/// sample, and for texts each different one once. A look-up is one load. Free for all threads. While it is
/// open another program must not write to the file in place; replacing it is safe.
/// Source of the format: docs/shard_indexes.md.
template <derived_value T>
class derived_index {
 public:
  using value_type = std::conditional_t<std::same_as<T, std::string>, std::string_view, T>;

  /// Takes a file that holds values of this type.
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
  /// What `derive` was told that the values are.
  [[nodiscard]] std::string_view name() const noexcept { return file_->name(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  /// Fingerprint of the dataset that it was made of.
  [[nodiscard]] std::uint64_t dataset() const noexcept { return file_->header().dataset; }
  /// Of dataset, name and values.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    class fingerprint h;
    h.add("derived_index", file_->header().kind, dataset(), size(), file_->header().content);
    return h.value();
  }
  [[nodiscard]] std::string describe() const { return detail::text({"index '", name(), "'"}); }
  /// Whether it was there or had to be made.
  [[nodiscard]] derived_from origin() const noexcept { return origin_; }

 private:
  shared<const detail::values_file> file_;
  derived_from origin_;
};

/// Opens an index that `derive` made, without its dataset at hand. Reads and checks all of it.
///
/// Throws `errc::io` where the file cannot be opened; `errc::format`, with file and offset, where it is none,
/// is cut or damaged, is of a newer version, or has values of another type. That it is one of the dataset is
/// checked where it is used.
///
///     const auto label = open_derived<std::int64_t>("derived/label.penstock-values");
template <derived_value T>
[[nodiscard]] derived_index<T> open_derived(const std::string& path) {
  return derived_index<T>(detail::opened_values(path));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/derived_index.ipp>
#endif
