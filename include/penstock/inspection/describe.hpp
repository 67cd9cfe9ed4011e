// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/projection.hpp>
#include <penstock/inspection/detail/function_names.hpp>
#include <penstock/run/block/column_set.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>
#include <penstock/source/concepts.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class Stage>
constexpr std::string_view kind_text() {
  if constexpr (part_of_kind<Stage, pointwise_tag> || part_of_kind<Stage, sample_cache_tag>)
    return "pointwise";
  if constexpr (part_of_kind<Stage, order_tag> || part_of_kind<Stage, cursor_tag> ||
                part_of_kind<Stage, shard_tag>)
    return "sequencer";
  if constexpr (part_of_kind<Stage, filter_tag>) return "filter";
  if constexpr (part_of_kind<Stage, flat_map_tag>) return "flat map";
  if constexpr (part_of_kind<Stage, batch_tag>) return "batch";
  if constexpr (part_of_kind<Stage, batch_map_tag>) return "batchwise";
  if constexpr (part_of_kind<Stage, device_tag> || part_of_kind<Stage, device_map_tag>) return "device";
  return "annotation";
}

/// The guarantees lost between one place in the chain and the next.
inline std::string lost_text(const chain_facts& before, const chain_facts& after) {
  std::string text;
  for (const guarantee g : all_guarantees) {
    const bool was = before.keeps(g), is = after.keeps(g);
    if (was && !is) text += std::string(text.empty() ? "" : ", ") + "loses " + std::string(to_string(g));
    if (!was && is) text += std::string(text.empty() ? "" : ", ") + "regains " + std::string(to_string(g));
  }
  return text;
}

/// One line of a description: a stage, its kind, and a note.
[[nodiscard]] inline std::string description_line(std::string name, std::string_view kind,
                                                  const std::string& note) {
  const auto fill = [](std::string& line, std::size_t width) {
    if (line.size() < width) line.resize(width, ' ');
  };
  fill(name, 46);
  std::string line = "  " + name + " " + std::string(kind);
  fill(line, 2 + name.size() + 1 + 11);
  line += note;
  while (line.back() == ' ') line.pop_back();
  return line + "\n";
}

/// The fields that a plan tells its source it uses; empty if it uses all of them.
[[nodiscard]] inline std::string used_fields_line(const projection& used) {
  if (used.everything()) return {};
  std::string line = "uses of a sample:";
  for (std::size_t i = 0; i < used.names().size(); ++i)
    line.append(i == 0 ? " " : ", ").append(used.names()[i]);
  return line + "\n";
}

/// How a value of type V gets into a batch: how often its bytes are written or copied.
template <class V, class Policy>
constexpr std::string_view way_to_batch() {
  // an expression that can only write to a pointer is first written elsewhere if the slot is not dense
  constexpr bool turned = arranges<order_of<Policy>> && array_expression<V> && !placed_expression<V>;

  if constexpr (shape_class_of<V> == shape_class::none)
    return "not in a batch";
  else if constexpr (shape_class_of<V> == shape_class::fixed)
    return turned ? "computed in the worker's memory, then copied into the batch"
                  : "written straight into the batch";
  else if constexpr (turned && pads_all<Policy>)
    return "computed in the worker's memory, kept beside the batch until the largest shape is known, then "
           "copied into it";
  else if constexpr (turned)
    return "computed in the worker's memory, then copied into the batch (copied once more in the first "
           "batches, until the shape is known)";
  else if constexpr (stacks<Policy>)
    return unfinished<V> ? "written straight into the batch (copied once in the first batches, until the "
                           "shape is known)"
                         : "copied into the batch (twice in the first batches, until the shape is known)";
  else
    return "kept beside the batch until all lengths are known, then copied into it";
}

/// The layout of a field's rows in a batch, unless they are dense and in the order of the value.
template <class Policy>
[[nodiscard]] std::string layout_text() {
  if constexpr (has_gaps<Policy>)
    return ", rows at multiples of " + std::to_string(pitch_of<Policy>) + " bytes";
  else
    return arranges<order_of<Policy>> ? ", channels first" : "";
}

template <class Context, class... Stages>
struct facts_list;
template <class Context>
struct facts_list<Context> {
  template <class F>
  static void each(const F&) {}
  template <class F, class Tuple, std::size_t I = 0>
  static void walk(const F&, const Tuple&) {}
};
template <class Context, class Stage, class... Rest>
struct facts_list<Context, Stage, Rest...> {
  using next = typename fold_context<Context, Stage>::type;
  template <class F, class Tuple, std::size_t I = 0>
  static void walk(const F& f, const Tuple& stages) {
    f(at<I>(stages), Context::facts, next::facts);
    facts_list<next, Rest...>::template walk<F, Tuple, I + 1>(f, stages);
  }
};

}  // namespace detail

/// Describes a plan in words: its stages with their kinds and the functions of each `map`, where guarantees
/// are lost, which fields it tells its source it uses (unless all), how each field gets into a batch, the
/// device, and the measured numbers by which a run divides its work. A function is shown by what its
/// `describe()` returns, if it has one, or otherwise by the name of its class.
///
/// Opens nothing. Meant for people: the text may change between versions.
template <class Source, class... Stages>
[[nodiscard]] std::string describe(const plan<Source, Stages...>& p) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  std::string text;
  constexpr auto at_source = detail::source_facts<Source>();
  text += detail::description_line(p.source().describe(), parts::forward ? "forward" : "indexed",
                                   detail::lost_text({}, at_source));
  detail::facts_list<detail::context<typename Source::element, at_source>, Stages...>::walk(
      [&]<class Stage>(const Stage& stage, const auto& before, const auto& after) {
        std::string name = text_of_stage(stage);
        if (const std::string functions = detail::functions_text(stage); !functions.empty())
          name.append(": ").append(functions);
        const bool counts_batches = part_of_kind<Stage, order_tag> && before.batched;
        text += detail::description_line(std::move(name),
                                         counts_batches ? "sequencer of batches" : detail::kind_text<Stage>(),
                                         detail::lost_text(before, after));
      },
      p.stages());
  if constexpr (projecting_source<Source>) text += detail::used_fields_line(projection_of<plan_type>());
  text += "keeps:";
  for (const guarantee g : all_guarantees)
    if (parts::facts.keeps(g)) text += " " + std::string(to_string(g));
  text += "\n";
  if constexpr (parts::batched) {
    using batch = detail::type_at<parts::in::batch, typename parts::stages>;
    using element = typename parts::element;
    if constexpr (any_record<element>) {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        ((text +=
          "field " + std::string(element::template field_at<Is>::name) + ": " +
          std::string(
              detail::way_to_batch<
                  std::tuple_element_t<Is, element>,
                  typename batch::template policy<typename element::template field_at<Is>::name_type>>()) +
          detail::layout_text<
              typename batch::template policy<typename element::template field_at<Is>::name_type>>() +
          "\n"),
         ...);
      }(std::make_index_sequence<element::size>{});
    } else {
      text.append("value: ")
          .append(detail::way_to_batch<element, typename batch::template policy<void>>())
          .append(detail::layout_text<typename batch::template policy<void>>())
          .append("\n");
    }
    if constexpr (!std::is_same_v<block_columns_of<plan_type>, columns_of<plan_type>>)
      text += "new columns of map_batch: written or copied into the batch\n";
    if constexpr (!parts::direct)
      text +=
          "after filter, unbatch or a forward source: copied once more, from a chunk of samples into the "
          "batch\n";
  }
  text += "device: ";
  if constexpr (parts::in::template has<device_tag>)
    text += detail::at<parts::in::template place<device_tag>>(p.stages()).device_value.describe();
  else
    text += "host";
  return text + "\n" + tuning_text();
}
/// Describes a source alone.
template <source Source>
[[nodiscard]] std::string describe(const Source& source) {
  return describe(plan<Source>(source));
}

}  // namespace penstock::inline v0_1
