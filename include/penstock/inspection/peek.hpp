// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/projection.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/inspection/detail/value_text.hpp>
#include <penstock/run/feed/front.hpp>
#include <penstock/source/concepts.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class V>
std::string sample_text(const V& sample) {
  using type = std::remove_cvref_t<V>;
  std::string text;
  if constexpr (any_record<type>) {
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      ((text +=
        "  " + std::string(type::template field_at<Is>::name) + ": " + value_text(get<Is>(sample)) + "\n"),
       ...);
    }(std::make_index_sequence<type::size>{});
  } else if constexpr (open_sample<type>) {
    for (std::size_t i = 0; i < sample.size(); ++i)
      text += "  " + std::string(sample.name(i)) + ": " + value_text(sample.member(i)) + "\n";
  } else {
    text = "  " + value_text(sample) + "\n";
  }
  return text;
}

}  // namespace detail

/// Shows one sample as it is before `batch`: its key, and of each field the type, the shape and the first
/// values. Bytes are shown as text if they are text, and otherwise with what they look like ("a JPEG image").
///
/// Evaluates the chain for position (0, index) in the calling thread; for a forward-only source, reads the
/// first sample. Meant for people: the text may change between versions. Throws what the chain throws.
///
///     std::cout << peek(webdataset("train-{0000..0127}.tar") | fields<"txt", "cls">);
template <class Source, class... Stages>
[[nodiscard]] std::string peek(const plan<Source, Stages...>& p, std::uint64_t index = 0) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  const std::uint64_t seed = *options_of(p).seed;
  std::string text;
  const auto sink = [&text](const auto& sample) { text += detail::sample_text(sample); };
  if constexpr (parts::forward) {
    auto front = make_front(p);
    front.rewind(0);
    typename Source::element item;
    if (!front.next(item)) return "the source is empty\n";
    auto chain = make_chain(p, item_node<typename Source::element>{}, seed);
    typename decltype(chain)::worker worker;
    detail::innermost(worker).items = &item;
    chain.evaluate({}, worker, sink, untimed{});
    return detail::text({"sample 0\n", (text.empty() ? "  dropped by a filter\n" : text)});
  } else {
    const auto orders = make_sample_orders(p);
    if (index >= orders.size())
      return detail::text(
          {"position 0:", index, " is beyond the end: there are ", orders.size(), " samples\n"});
    const auto reader = connect_source_of(p);
    const sample_position at{{0, index}, orders.sample_at({0, index})};
    auto chain = make_chain(p, source_node<std::remove_cvref_t<decltype(reader)>>{&reader}, seed);
    typename decltype(chain)::worker worker;
    try {
      chain.evaluate(at, worker, sink, untimed{});
    } catch (error& e) {
      e.add_context(at.at);
      throw;
    }
    return detail::text({"sample at position 0:", index, ", key ", key_of(reader, at.source), "\n",
                         (text.empty() ? "  dropped by a filter\n" : text)});
  }
}
/// Shows a sample of a source alone.
template <source Source>
[[nodiscard]] std::string peek(const Source& source, std::uint64_t index = 0) {
  return peek(plan<Source>(source), index);
}

}  // namespace penstock::inline v0_1
