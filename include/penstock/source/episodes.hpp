// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/derived_index.hpp>
#include <penstock/source/joined/plan_values.hpp>

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Where the episodes of a table are: each is some rows one behind the other. `windows` needs it.
///
/// A value; copies share their tables, of 8 bytes per episode, and 8 per row if times are known. Threads: any
/// number at once.
class episodes {
 public:
  /// Of these lengths, in rows, one behind the other. With `times`, one for each row, in seconds: ascending
  /// within each episode. Throws `errc::argument` if they are not, with the row, or if their number differs.
  explicit episodes(std::span<const std::uint64_t> lengths, std::vector<double> times = {});

  /// How many there are.
  [[nodiscard]] std::uint64_t count() const noexcept { return tables_->starts.size() - 1; }
  /// Of all episodes.
  [[nodiscard]] std::uint64_t rows() const noexcept { return tables_->starts.back(); }
  /// Where each episode begins, and last the number of rows.
  [[nodiscard]] std::span<const std::uint64_t> starts() const noexcept { return tables_->starts; }
  /// The rows of the longest.
  [[nodiscard]] std::uint64_t longest() const noexcept { return tables_->longest; }
  /// The time of each row; empty if times are not known.
  [[nodiscard]] std::span<const double> times() const noexcept { return tables_->times; }
  /// Covers where they are, and the times.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return tables_->fingerprint; }

 private:
  struct tables {
    std::vector<std::uint64_t> starts;
    std::vector<double> times;
    std::uint64_t longest = 0;
    std::uint64_t fingerprint = 0;
  };
  shared<const tables> tables_;
};

namespace detail {

/// Says of an error in which row of a table it is.
struct row_teller {
  const void* table = nullptr;
  void (*tell)(const void* table, std::uint64_t row, error& e) = nullptr;
};

/// Runs of rows of one episode.
template <class Value>
class episode_runs {
 public:
  template <class V>
  void add(const V& value) {
    if (starts_.empty() || !(values_.back() == value)) {
      values_.emplace_back(value);
      starts_.push_back(rows_);
    }
    ++rows_;
  }
  /// Throws `errc::format` if an episode has several runs.
  [[nodiscard]] episodes found(std::vector<double> times, row_teller where) {
    std::vector<std::size_t> order(values_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [this](std::size_t a, std::size_t b) {
      return values_[a] < values_[b] || (values_[a] == values_[b] && a < b);
    });
    std::size_t again = 0, before = 0;  // the first run of rows whose episode had ended
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (!(values_[order[i - 1]] == values_[order[i]]) || (again != 0 && again < order[i])) continue;
      before = order[i - 1];
      again = order[i];
    }
    if (again != 0) {
      error e(errc::format,
              {"the rows of episode ", values_[again], " do not lie one behind the other: it has row ",
               starts_[again], " after it ended with row ", starts_[before + 1] - 1,
               "; sort the table by its episodes"});
      if (where.tell != nullptr) where.tell(where.table, starts_[again], e);
      throw std::move(e).in_stage("windows");
    }
    std::vector<std::uint64_t> lengths;
    for (std::size_t i = 0; i < starts_.size(); ++i)
      lengths.push_back((i + 1 < starts_.size() ? starts_[i + 1] : rows_) - starts_[i]);
    return episodes(lengths, std::move(times));
  }

 private:
  std::vector<Value> values_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t rows_ = 0;
};

/// In what the values of a column of episodes are kept; `void` if they are neither whole numbers nor texts.
template <class V>
using episode_value = std::conditional_t<
    std::convertible_to<const V&, std::string_view>, std::string,
    std::conditional_t<!std::integral<V> || std::same_as<V, bool>, void,
                       std::conditional_t<std::unsigned_integral<V>, std::uint64_t, std::int64_t>>>;

/// A value of such a column: a number of 64 bits, or a view of a text.
template <class V>
[[nodiscard]] constexpr auto as_episode(const V& value) noexcept {
  if constexpr (std::convertible_to<const V&, std::string_view>)
    return std::string_view(value);
  else
    return static_cast<episode_value<V>>(value);
}

template <class T>
inline constexpr bool is_derived_index = false;
template <class T>
inline constexpr bool is_derived_index<derived_index<T>> = true;

/// Calls f(value) for each row of a column: a derived index, or a source or a plan of values.
template <class Column, class F>
void each_row(const Column& column, F&& f) {
  if constexpr (is_derived_index<Column>) {
    for (std::uint64_t i = 0; i < column.size(); ++i) f(column[i]);
  } else {
    static_assert(keeps_rows<plan_for<Column>>,
                  "penstock: episodes_of takes rows as the source has them, with decode, fields and map at "
                  "most; write orders, filters and the like behind windows");
    each_value(as_plan(column), {}, [&](const auto& value) { f(lone_value(value)); });
  }
}
template <class Column>
[[nodiscard]] row_teller teller_of(const Column& column) {
  if constexpr (is_derived_index<Column>)
    return {};
  else
    return {&column, [](const void* one, std::uint64_t row, error& e) {
              tell_row(as_plan(*static_cast<const Column*>(one)), row, e);
            }};
}
template <class Column>
struct column_value
    : std::type_identity<lone_value_of<std::remove_cvref_t<typename plan_for<Column>::element>>> {};
template <class T>
struct column_value<derived_index<T>> : std::type_identity<T> {};

}  // namespace detail

/// The episodes of a table, from the column that says to which episode each row belongs.
///
///     const auto known = episodes_of(npy_rows<std::int64_t>("episode.npy"));
///     auto samples = windows(npy_rows<float>("state.npy"), known, {.at = {-1, 0, 1}}) | shuffle | batch(64);
///
/// In: a source, or a plan of one that decodes and maps, whose samples are whole numbers or texts, or an
/// index that `derive` made of such: it is kept in a file, so that nothing is read again. Rows of one episode
/// lie one behind the other. As a second argument the rows' times in seconds, likewise, or a
/// `std::vector<double>`.
/// Cost: one pass over the column, in the thread that calls; 8 bytes for each episode, and for each time.
/// Throws `errc::format` if rows of an episode do not lie one behind the other, with file, key and row where
/// the column is that of a source; `errc::argument` for times that descend within an episode, with the row,
/// or whose number differs; and what reading throws.
template <class Column>
[[nodiscard]] episodes episodes_of(const Column& column, std::vector<double> times = {}) {
  using value = detail::episode_value<typename detail::column_value<Column>::type>;
  constexpr bool are_episodes = !std::is_void_v<value>;
  static_assert(are_episodes,
                "penstock: episodes_of needs a column of whole numbers or of texts, one for each row");
  if constexpr (are_episodes) {
    detail::episode_runs<value> runs;
    detail::each_row(column, [&](const auto& one) { runs.add(detail::as_episode(one)); });
    return runs.found(std::move(times), detail::teller_of(column));
  } else {
    return episodes(std::span<const std::uint64_t>());
  }
}
template <class Column, class Times>
[[nodiscard]] episodes episodes_of(const Column& column, const Times& times) {
  constexpr bool are_numbers = std::convertible_to<typename detail::column_value<Times>::type, double>;
  static_assert(are_numbers,
                "penstock: episodes_of needs times that are numbers, in seconds, one for each row");
  std::vector<double> all;
  if constexpr (are_numbers)
    detail::each_row(times, [&](const auto& one) { all.push_back(static_cast<double>(one)); });
  return episodes_of(column, std::move(all));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/episodes.ipp>
#endif
