// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/block/column_set.hpp>
#include <penstock/run/block/plan_blocks.hpp>
#include <penstock/run/engine/tuning/tuning.hpp>
#include <penstock/source/concepts.hpp>

#include <concepts>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {

/// How the compiler spells a function's signature that has the type in it.
template <class T>
[[nodiscard]] constexpr std::string_view signature_with() {
  return std::source_location::current().function_name();
}
/// The name of a class, without its namespaces, template arguments and "_operation"; empty for a lambda,
/// which has none. `signature`: what `signature_with` says of it.
[[nodiscard]] inline std::string short_type_name(std::string_view signature) {
  // GCC: "... [with T = a::b<c>; ...]"; Clang: "... [T = a::b<c>]"
  const std::size_t begin = signature.find("T = ");
  if (begin == signature.npos || signature.find("lambda") != signature.npos) return {};
  std::string_view name = signature.substr(begin + 4);
  name = name.substr(0, name.find_first_of("<;]"));
  if (const std::size_t space = name.rfind("::"); space != name.npos) name.remove_prefix(space + 2);
  if (constexpr std::string_view end = "_operation"; name.ends_with(end)) name.remove_suffix(end.size());
  return std::string(name);
}

/// What a function says of itself, as in "resize(224)"; otherwise the name of its class; empty if it has
/// none.
template <class F>
[[nodiscard]] std::string function_name(const F& f) {
  if constexpr (requires {
                  { f.describe() } -> std::convertible_to<std::string>;
                })
    return f.describe();
  else if constexpr (std::is_class_v<F>)
    return short_type_name(signature_with<F>());
  else
    return {};
}

/// Calls use(f) for each function of a stage, or of a chain of them.
void each_function(const auto& part, const auto& use) {
  if constexpr (requires { part.functions; })
    std::apply([&](const auto&... each) { (use(each), ...); }, part.functions);
  else if constexpr (requires { part.function; })
    each_function(part.function, use);
  else if constexpr (requires { part.each(use); })
    part.each(use);
  else
    use(part);
}

/// The functions of a stage: "resize(224), a function"; empty if none of them has a name.
[[nodiscard]] std::string functions_text(const auto& stage) {
  std::string made;
  if constexpr (
      requires { stage.function; } || requires { stage.functions; }) {
    bool named = false;
    each_function(stage, [&](const auto& f) {
      const std::string name = function_name(f);
      named = named || !name.empty();
      made.append(made.empty() ? "" : ", ").append(name.empty() ? "a function" : name);
    });
    if (!named) made.clear();
  }
  return made;
}

template <class Stage>
constexpr std::string_view kind_text() {
  if constexpr (part_of_kind<Stage, pointwise_tag> || part_of_kind<Stage, sample_cache_tag>)
    return "pointwise";
  if constexpr (part_of_kind<Stage, order_tag> || part_of_kind<Stage, cursor_tag> ||
                part_of_kind<Stage, shard_tag>)
    return "sequencer";
  if constexpr (part_of_kind<Stage, filter_tag>) return "filter";
  if constexpr (part_of_kind<Stage, flat_map_tag>) return "flat map";
  if constexpr (part_of_kind<Stage, pack_tag> || part_of_kind<Stage, row_tag>) return "rows";
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
  else if constexpr (lays_into_rows<Policy>)
    return "written into its row";
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

/// Calls `f(stage, before, after)` for each stage, with the facts in front of it and behind it.
template <class Context, std::size_t Count, std::size_t I = 0, class Stages, class F>
void each_with_facts(const Stages& stages, const F& f) {
  if constexpr (I != Count) {
    using next = typename fold_context<Context, std::remove_cvref_t<decltype(at<I>(stages))>>::type;
    f(at<I>(stages), Context::facts, next::facts);
    each_with_facts<next, Count, I + 1>(stages, f);
  }
}

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
  using first = detail::context<typename Source::element, at_source>;
  detail::each_with_facts<first, sizeof...(Stages)>(
      p.stages(), [&]<class Stage>(const Stage& stage, const auto& before, const auto& after) {
        std::string name = text_of_stage(stage);
        if (const std::string functions = detail::functions_text(stage); !functions.empty())
          name.append(": ").append(functions);
        const bool counts_batches = part_of_kind<Stage, order_tag> && before.batched;
        text += detail::description_line(std::move(name),
                                         counts_batches ? "sequencer of batches" : detail::kind_text<Stage>(),
                                         detail::lost_text(before, after));
      });
  if constexpr (projecting_source<Source>) text += detail::used_fields_line(projection_of<plan_type>());
  text += "keeps:";
  for (const guarantee g : all_guarantees)
    if (parts::facts.keeps(g)) text += " " + std::string(to_string(g));
  text += "\n";
  if constexpr (parts::batched) {
    using batch = typename detail::columns_of_plan<plan_type>::batch;
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
