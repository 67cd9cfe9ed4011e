// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/stage/decode.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// One member of each sample, as a plan that decodes no other reads it. The reader is asked, so that no run is
// compiled for each codec.
namespace penstock_test {

/// Calls `f(value)` with what a codec makes of one member of each sample, in order.
template <class Codec, class Source, class F>
void for_each_value(const Source& source, std::string_view name, F&& f) {
  const std::array names{name};
  const auto reader = source.connect(penstock::projection::of_these(names));
  typename decltype(source.connect())::worker worker;
  penstock::scratch_of<Codec> scratch;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& sample) {
      std::size_t member = 0;
      while (member < sample.size() && sample.name(member) != name) ++member;
      if (member == sample.size()) throw std::invalid_argument("no member " + std::string(name));
      f(penstock::detail::run_codec(Codec{}, sample.member(member), scratch));
    });
}

/// The values, each followed by a semicolon; `show` gets them finished.
template <penstock::fixed_string Name, class Codec, class Source, class Show>
[[nodiscard]] std::string members_text(const Source& source, const Show& show) {
  std::string all;
  for_each_value<Codec>(source, penstock::name_of<Name>::value, [&](const auto& value) {
    if constexpr (requires { value.finish(); })
      all.append(show(value.finish())) += ";";
    else
      all.append(show(value)) += ";";
  });
  return all;
}

/// The values of a codec that returns a `T`.
template <class T, class Codec, class Source>
[[nodiscard]] std::vector<T> member_values(const Source& source, std::string_view name) {
  std::vector<T> all;
  for_each_value<Codec>(source, name, [&](const auto& value) { all.push_back(value); });
  return all;
}

}  // namespace penstock_test
