// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/episodes.hpp>
#include <penstock/source/joined/window_form.hpp>
#include <penstock/source/joined/window_reader.hpp>
#include <penstock/source/window_options.hpp>

namespace penstock::inline v0_1 {

/// The source that `windows` makes of a plan of rows.
template <class Plan, class Form>
class window_source : public opens_as_plan<window_source<Plan, Form>> {
 public:
  using penstock_part = source_tag;
  using reader = detail::window_reader<Plan, Form>;
  using element = typename Form::template element<reader>;
  static constexpr std::string_view source_name = "windows";
  static constexpr bool one_at_a_time = Plan::one_at_a_time;
  static constexpr bool varies_by_epoch = !Plan::same_every_epoch;
  static consteval guarantee_set loses(place) { return Plan::context::facts.lost; }

  window_source(Plan rows, detail::window_places places)
      : rows_(std::move(rows)), places_(new const detail::window_places(std::move(places))) {
    if (const std::uint64_t count = rows_.source().size(); places_->known().rows() != count)
      throw error(errc::argument, {"windows: the episodes have ", places_->known().rows(),
                                   " rows, and there are ", count, ", of ", rows_.source().describe()});
    if (const auto shards = rows_.source().starts())
      starts_.reset(new const std::vector<std::uint64_t>(places_->starts_among(*shards)));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return places_->size(); }
  /// Where windows begin whose rows are in another shard of the source.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const {
    std::string line = detail::text({"windows(", rows_.source().describe()});
    rows_.stages().apply([&line](const auto&... stages) {
      (detail::append(line, {" | ", text_of_stage(stages)}), ...);
    });
    detail::append(line, {"): ", places_->describe()});
    return line;
  }
  /// Covers the rows, the episodes and the offsets.
  [[nodiscard]] std::uint64_t fingerprint() const {
    class fingerprint h;
    h.add(source_name, rows_.source().fingerprint(), places_->fingerprint());
    return h.value();
  }
  /// Covers the seed of stages of rows.
  [[nodiscard]] std::uint64_t sequence_fingerprint() const { return penstock::sequence_fingerprint(rows_); }
  [[nodiscard]] std::uint64_t random_fingerprint() const { return penstock::random_fingerprint(rows_); }
  /// Where the episodes are.
  [[nodiscard]] const episodes& known_episodes() const noexcept { return places_->known(); }
  [[nodiscard]] reader connect(const projection& used = {}) const {
    return reader(rows_, used, places_);  // names that are no columns match none
  }

 private:
  Plan rows_;
  shared<const detail::window_places> places_;
  shared<const std::vector<std::uint64_t>> starts_;
};

namespace detail {

template <class Names, class Plan, class... Columns>
[[nodiscard]] auto make_windows(const Plan& rows, episodes known, const window_options& options,
                                const Columns&... columns) {
  std::vector<column_offsets> lists;
  (lists.push_back({Columns::name_type::value, columns}), ...);
  using form = window_form_of<Plan, Names, typename Columns::name_type...>;
  return window_source<Plan, form>(rows, window_places(std::move(known), options, lists));
}

/// The episodes of a plan's rows, by the columns of these names: episodes, or episodes and times.
template <class Plan>
[[nodiscard]] episodes episodes_in(const Plan& rows, light_tuple<>) {
  const std::uint64_t all = rows.source().size();
  return episodes(std::span(&all, 1));
}
template <class Plan, class Name, class... Time>
[[nodiscard]] episodes episodes_in(const Plan& rows, light_tuple<Name, Time...>) {
  const auto each = [&]<class N>(N, auto&& f) {
    each_value(narrowed_to<N>(rows), projection::of_these(listed_names<N>), [&](const auto& row) {
      constexpr std::size_t i = std::remove_cvref_t<decltype(row)>::template index_of<N>;
      f(lone_value(get<i>(row)));
    });
  };
  std::vector<double> times;
  (each(Time(), [&](const auto& value) { times.push_back(static_cast<double>(value)); }), ...);
  episode_runs<episode_value<row_value<typename Plan::element, Name>>> runs;
  each(Name(), [&](const auto& value) { runs.add(as_episode(value)); });
  return runs.found(std::move(times), teller_of(rows));
}

}  // namespace detail

/// Windows in time of the rows of a table: `windows<"episode">(rows, {.length = 64})`, or for policies of
/// robots, which see the past and the future, `windows<"episode">(rows, {.at = {-1, 0, 1}})`.
///
///     auto robot = zip<"episode", "state", "action">(npy_rows<std::int64_t>("episode.npy"),
///                                                    npy_rows<float>("state.npy"),
///                                                    npy_rows<float>("action.npy"));
///     auto samples = windows<"episode">(robot, {.rate = 30}, column_at<"state">{-0.1, 0.0},
///                                       column_at<"action">(row_offsets::from_to(0, 15))) |
///                    shuffle(seed(7)) | batch(64);
///     auto plain = windows(npy_rows<float>("series.npy"), {.length = 64, .stride = 16}) | batch(256);
///
/// In: a source of rows, alone or with stages that work on single rows (`decode`, `fields`, `map`). Of
/// records, the names of the column that says to which episode a row belongs, whole numbers or texts, and of
/// that of times, in seconds; without names all rows are one episode. Or `episodes`, which `episodes_of`
/// finds or keeps in a file: `windows(rows, known, ...)`. The rows of an episode lie one behind the other.
/// Windows, by `window_options`: with `length`, of that many rows, one every `stride` rows of an episode,
/// each entirely within it. With `at`, one for every row, or every `stride`-th: those of an episode at these
/// distances from it, in rows or in seconds; before its first row stands the first, behind its last the last,
/// and the mask says so, as LeRobot's `delta_timestamps` does it. With `column_at<...>` instead of either,
/// these columns have offsets of their own, and others the row's own value. An offset in seconds is a number
/// of rows where `rate` is given; otherwise the row at that time is taken, by the column of times. Either
/// must agree within `tolerance`.
/// Out: of records, the record with, for each column, an array expression of shape (rows of the window, shape
/// of a row...), which is written straight to its slot; the column of episodes is the row's own value.
/// "is_pad" is the mask, or "action_is_pad" for each column that `column_at` names; "step" is the number of
/// the window's own row in its episode, unless rows have a field of that name. Of rows that are no records,
/// the array alone.
/// Kind: an indexed source; it keeps every guarantee that the rows keep, so that orders, `mix` and `shard`
/// work on windows. Windows are in the order of rows; `starts` are those of the source's shards. The key is
/// that of the window's own row.
/// Making it reads the columns of episodes and times once, in the thread that calls (behind other stages than
/// one `decode` it evaluates whole rows for that: keep the column by `derive` then), and takes 16 bytes for
/// each episode and 8 for each time; nothing is read to find a window: a binary search among episodes.
/// Cost per sample: that of evaluating each row of a column, and one copy of it. Rows of `npy_rows`, and
/// numbers of `arrow_ipc` and its like behind one `decode`, are copied in one piece where they lie one behind
/// the other.
/// Behind `decode` alone, each column evaluates its own codec only; other stages are evaluated for each row
/// of each column. No allocation.
/// Errors: errc::format for rows of an episode that do not lie one behind the other, with file, key and row;
/// errc::argument for options that say no rows, stride 0, an offset in seconds that is between rows, with the
/// nearest, or a window longer than all episodes; errc::missing, when it is evaluated, for a time at which
/// there is no row, with the nearest; errc::shape for rows of different shapes.
/// Threads: any number at once.
/// Source: LeRobot, `LeRobotDataset._get_query_indices`, `get_delta_indices`; numpy, `sliding_window_view`.
template <fixed_string... Names, class Rows, class... Columns>
[[nodiscard]] auto windows(const Rows& rows, const window_options& options, const Columns&... columns) {
  using names = light_tuple<name_of<Names>...>;
  return detail::windows_unless_wrong<names, Columns...>(rows, [&](const auto& given) {
    const auto p = detail::as_plan(given);
    return detail::make_windows<names>(p, detail::episodes_in(p, names()), options, columns...);
  });
}
/// With episodes that are known. A name, if there is one, says which column is that of episodes.
template <fixed_string... Names, class Rows, class... Columns>
[[nodiscard]] auto windows(const Rows& rows, const episodes& known, const window_options& options,
                           const Columns&... columns) {
  static_assert(sizeof...(Names) < 2,
                "penstock: windows<...> of known episodes takes one name, that of their column: give the "
                "times to episodes_of");
  using names = light_tuple<name_of<Names>...>;
  return detail::windows_unless_wrong<names, Columns...>(rows, [&](const auto& given) {
    return detail::make_windows<names>(detail::as_plan(given), known, options, columns...);
  });
}

}  // namespace penstock::inline v0_1
