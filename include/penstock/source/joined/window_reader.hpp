// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/contiguous_values.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/source/joined/window_columns.hpp>
#include <penstock/source/joined/window_places.hpp>
#include <penstock/source/joined/window_values.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A reader that shows rows of field I one behind the other as one array.
template <class Reader, std::size_t I>
concept shows_rows_of = requires(const Reader& r, position at, typename Reader::worker& w) {
  { r.template evaluate_rows_of<I>(at, std::uint64_t{}, w, any_sink{}) } -> std::same_as<std::uint64_t>;
};

/// Reads the windows of a plan's rows. `Form` says what is made of them:
///   names                         of the fields, empty where rows are no records
///   narrows                       whether each has a chain of its own
///   count, row_value<I>           how many values a row has, and the type of each
///   windowed<I>                   whether it has windows, or else the value of the window's own row
///   element<Reader>               the samples
///   make(reader, worker, place, epoch, parts...)   one, of the shape or the value of each
template <class Plan, class Form>
class window_reader {
  using source_reader = typename Plan::source_type::reader;
  using chains = column_chains<Form::narrows, Plan, typename Form::names>;

  struct opened {
    source_reader reader;
    chains columns;
    shared<const window_places> places;
    opened(const Plan& p, const projection& used, shared<const window_places> where)
        : reader(connect_source_of(p, used)), columns(p, &reader), places(std::move(where)) {}
  };
  template <std::size_t I>
  static constexpr bool known =
      Form::template windowed<I> && row_shape_known<typename Form::template row_value<I>>;
  using numbers = std::make_index_sequence<Form::count>;

 public:
  static constexpr reader_traits traits = {.latency = reader_traits_of<source_reader>.latency,
                                           .takes_fetched = reader_traits_of<source_reader>.takes_fetched};
  struct worker {
    typename chains::worker columns;
    std::array<buffer, 2 * Form::count + 1> finished;  // what is asked for without a destination
    const fetched_sample* fetched = nullptr;
    worker() noexcept {}  // see joined_plans.hpp
  };
  struct scout {
    scout() noexcept {}  // see joined_plans.hpp
    [[no_unique_address]] scout_of<source_reader> inner;
    std::vector<std::uint64_t> rows;
  };

  window_reader(const Plan& p, const projection& used, shared<const window_places> places)
      : opened_(new const opened(p, used, std::move(places))) {}

  [[nodiscard]] const window_places& places() const noexcept { return *opened_->places; }

  /// Of the window's own row only those values are evaluated that stay, or say the shape of others.
  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    const window_place at = places().at(p.index);
    if constexpr (Form::narrows)
      from_column<0>(at, p.epoch, w, sink);
    else
      from_row(at, p.epoch, w, sink, numbers());
  }
  /// Writes a column of the window at that place.
  template <std::size_t I, class T>
  void write(const window_place& at, std::uint64_t epoch, std::size_t list, const extents& row, worker& w,
             const destination<T>& into) const {
    const window_places& where = places();
    const std::size_t length = where.length(list);
    window_row next = where.row(at, list, 0);
    for (std::size_t k = 0; k < length;) {
      const std::uint64_t first = next.row;
      std::size_t count = 1;
      while (k + count < length && (next = where.row(at, list, k + count)).row == first + count) ++count;
      write_rows<I>({epoch, first}, count, k, row, w, into);
      k += count;
    }
  }

  [[nodiscard]] std::string key(position p) const { return key_of(opened_->reader, row_of(p)); }
  [[nodiscard]] std::string url(position p) const { return url_of(opened_->reader, row_of(p)); }
  /// The ranges of the rows of all columns.
  template <class Sink>
    requires takes_hints<source_reader>
  void ranges(position p, scout& s, Sink&& sink) const {
    const window_place at = places().at(p.index);
    s.rows.assign(1, at.row);
    for (std::size_t list = 0; list < places().lists(); ++list)
      for (std::size_t k = 0; k < places().length(list); ++k) {
        try {
          s.rows.push_back(places().row(at, list, k).row);
        } catch (const error&) {  // the read itself will report it
        }
      }
    std::ranges::sort(s.rows);
    s.rows.erase(std::ranges::unique(s.rows).begin(), s.rows.end());
    range_merger<std::remove_reference_t<Sink>> merged(sink);
    for (const std::uint64_t row : s.rows) {
      if constexpr (traits.takes_fetched)
        ranges_of(opened_->reader, {p.epoch, row}, s.inner, merged);
      else
        hint(opened_->reader, {p.epoch, row}, s.inner);
    }
    merged.flush();
  }
  void cancel_reads() const noexcept { cancel_reads_of(opened_->reader); }
  [[nodiscard]] kept_counters kept() const {
    kept_counters all = opened_->columns.kept();
    return all += kept_of(opened_->reader);
  }
  [[nodiscard]] session_report report() const { return report_of(opened_->reader); }
  [[nodiscard]] std::uint64_t bytes_per_sample() const {
    std::uint64_t rows = 0;
    for (std::size_t list = 0; list < places().lists(); ++list)
      rows = std::max<std::uint64_t>(rows, places().length(list));
    return rows * bytes_per_sample_of(opened_->reader);
  }

 private:
  template <class Sink, std::size_t... Is>
  void from_row(const window_place& at, std::uint64_t epoch, worker& w, Sink& sink,
                std::index_sequence<Is...>) const {
    if constexpr ((known<Is> && ...)) {
      sink(Form::make(*this, w, at, epoch, known_row_shape<typename Form::template row_value<Is>>()...));
    } else {
      const position own{epoch, at.row};
      if constexpr (traits.takes_fetched) innermost(w.columns.own).own.fetched = w.fetched;
      opened_->columns.whole.evaluate(
          {own, own}, w.columns.own,
          [&](const auto& row) { sink(Form::make(*this, w, at, epoch, part<Is>(row)...)); }, untimed{});
    }
  }
  template <std::size_t I, class V>
  [[nodiscard]] static decltype(auto) part(const V& row) {
    if constexpr (Form::template windowed<I>)
      return shape_of_row(chains::template field<I>(row));
    else
      return chains::template field<I>(row);
  }
  /// The enclosing calls hold the values of the columns before this one.
  template <std::size_t I, class Sink, class... Parts>
  void from_column(const window_place& at, std::uint64_t epoch, worker& w, Sink& sink,
                   const Parts&... parts) const {
    if constexpr (I == Form::count) {
      sink(Form::make(*this, w, at, epoch, parts...));
    } else if constexpr (known<I>) {
      from_column<I + 1>(at, epoch, w, sink, parts...,
                         known_row_shape<typename Form::template row_value<I>>());
    } else {
      const position own{epoch, at.row};
      auto& state = w.columns.template of<I>();
      if constexpr (traits.takes_fetched) innermost(state).own.fetched = w.fetched;
      const auto& chain = opened_->columns.template of<I>();
      if constexpr (Form::template windowed<I>) {
        extents shape;
        chain.evaluate(
            {own, own}, state, [&](const auto& row) { shape = shape_of_row(get<0>(row)); }, untimed{});
        from_column<I + 1>(at, epoch, w, sink, parts..., shape);
      } else {
        chain.evaluate(
            {own, own}, state,
            [&](const auto& row) { from_column<I + 1>(at, epoch, w, sink, parts..., get<0>(row)); },
            untimed{});
      }
    }
  }
  [[nodiscard]] position row_of(position p) const noexcept { return {p.epoch, places().at(p.index).row}; }

  /// Writes `count` rows one behind the other, from row k of the window on.
  template <std::size_t I, class T>
  void write_rows(position first, std::size_t count, std::size_t k, const extents& row, worker& w,
                  const destination<T>& into) const {
    const auto& chain = opened_->columns.template of<I>();
    auto& own = w.columns.template of<I>();
    using chain_type = std::remove_cvref_t<decltype(chain)>;
    if constexpr (traits.takes_fetched) innermost(own).own.fetched = w.fetched;
    const std::size_t step = to_size(row.elements());
    for (std::size_t i = 0; i < count;) {
      const position at{first.epoch, first.index + i};
      std::uint64_t taken = 0;
      if constexpr (chain_type::has_runs) {
        if (into.dense() && count - i > 1)
          taken = chain.evaluate_run(
              at, count - i, own,
              [&](const auto& values, std::uint64_t n) {
                std::memcpy(into.data() + k + i, chains::template field<I>(values).first,
                            to_size(n) * sizeof(T));
                return true;
              },
              untimed{});
      } else if constexpr (chain_type::depth == 0 &&
                           (shows_rows<source_reader> || shows_rows_of<source_reader, I>)) {
        const auto copy = [&](const auto& rows) {
          write_array(rows, destination<T>(into.data() + (k + i) * step, rows.shape(), into.space()));
        };
        if (into.dense() && count - i > 1) {
          if constexpr (shows_rows<source_reader>)
            taken = opened_->reader.evaluate_rows(at, count - i, innermost(own).own, copy);
          else
            taken = opened_->reader.template evaluate_rows_of<I>(at, count - i, innermost(own).own, copy);
        }
      }
      if (taken == 0) {
        taken = 1;
        chain.evaluate(
            {at, at}, own,
            [&](const auto& value) {
              const auto& field = chains::template field<I>(value);
              if (const extents found = shape_of_row(field); !(found == row)) [[unlikely]]
                throw error(errc::shape, {"windows: row ", at.index, " has shape ", to_string(found),
                                          ", and the window's own row ", to_string(row)});
              if (into.dense())
                write_row(field, destination<T>(into.data() + (k + i) * step, row, into.space()));
              else
                write_row(field, into[k + i]);
            },
            untimed{});
      }
      i += to_size(taken);
    }
  }

  shared<const opened> opened_;
};

}  // namespace penstock::inline v0_1::detail
