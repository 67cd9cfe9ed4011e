// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/projection.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/run/feed/front.hpp>
#include <penstock/source/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// The first bytes of a value, as text if they are text and otherwise in hexadecimal.
std::string first_bytes(bytes_view bytes);

template <class V>
std::string value_text(const V& value) {
  using type = std::remove_cvref_t<V>;
  if constexpr (blob<type>) {
    return detail::text({value.size(), " bytes: ", first_bytes(value.finish())});
  } else if constexpr (array_expression<type>) {
    const auto view = penstock::finish(value);
    return detail::text(
        {"array of shape ", to_string(value.shape()), ": ", first_bytes(std::as_bytes(view.values()))});
  } else if constexpr (requires {
                         value.shape();
                         value.values();
                       }) {
    return detail::text(
        {"array of shape ", to_string(value.shape()), ": ", first_bytes(std::as_bytes(value.values()))});
  } else if constexpr (requires { value.strides(); }) {
    return detail::text({"array of shape ", to_string(value.shape()), " with strides"});
  } else if constexpr (std::is_arithmetic_v<type>) {
    return std::to_string(value);
  } else if constexpr (std::convertible_to<const type&, std::string_view>) {
    const std::string_view text = value;
    return detail::text({text.size(), " characters: ", first_bytes(bytes_of(text))});
  } else if constexpr (requires {
                         value.size();
                         std::as_bytes(std::span(value.data(), value.size()));
                       }) {
    return detail::text(
        {value.size(), " values: ", first_bytes(std::as_bytes(std::span(value.data(), value.size())))});
  } else {
    return detail::text({"a value of ", sizeof(type), " bytes"});
  }
}

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

/// Shows one sample as it is before `batch`: its key, and the shape and the first bytes of each field.
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
    detail::innermost(worker).item = &item;
    chain.evaluate({0, 0}, worker, sink, untimed{});
    return detail::text({"sample 0\n", (text.empty() ? "  dropped by a filter\n" : text)});
  } else {
    const auto orders = make_sample_orders(p);
    if (index >= orders.size())
      return detail::text(
          {"position 0:", index, " is beyond the end: there are ", orders.size(), " samples\n"});
    const auto reader = connect_source_of(p);
    const auto binding = orders.bind(0, index, index + 1);
    auto chain = make_chain(
        p,
        source_node<std::remove_cvref_t<decltype(reader)>, std::remove_cvref_t<decltype(binding)>>{&reader},
        seed);
    typename decltype(chain)::worker worker;
    detail::innermost(worker).binding = &binding;
    try {
      chain.evaluate({0, index}, worker, sink, untimed{});
    } catch (error& e) {
      e.at_position({0, index});
      throw;
    }
    return detail::text({"sample at position 0:", index, ", key ", key_of(reader, binding(index)), "\n",
                         (text.empty() ? "  dropped by a filter\n" : text)});
  }
}
/// Shows a sample of a source alone.
template <source Source>
[[nodiscard]] std::string peek(const Source& source, std::uint64_t index = 0) {
  return peek(plan<Source>(source), index);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/peek.ipp>
#endif
