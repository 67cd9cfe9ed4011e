// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/name.hpp>
#include <penstock/stage/decode.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace penstock_test {

/// What a codec makes of one member of each sample, as text. The reader is asked, and no run is compiled.
template <penstock::fixed_string Name, class Codec, class Source, class Show>
[[nodiscard]] std::string members_text(const Source& source, const Show& show) {
  constexpr std::string_view name = penstock::name_of<Name>::value;
  const auto reader = source.connect();
  typename decltype(source.connect())::worker worker;
  penstock::scratch_of<Codec> scratch;
  std::string all;
  for (std::uint64_t i = 0; i < source.size(); ++i)
    reader.evaluate({0, i}, worker, [&](const auto& sample) {
      std::size_t member = 0;
      while (member < sample.size() && sample.name(member) != name) ++member;
      if (member == sample.size()) throw std::invalid_argument("no member " + std::string(name));
      auto&& value = penstock::detail::run_codec(Codec{}, sample.member(member), scratch);
      if constexpr (requires { value.finish(); })
        all.append(show(value.finish())) += ";";
      else
        all.append(show(value)) += ";";
    });
  return all;
}

}  // namespace penstock_test
