// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Documents that share a row must not see each other: what a transformer makes of one, given the places that
// a batch tells, does not change with another's tokens.

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace packed_attention {

namespace ps = penstock;

inline constexpr std::size_t width = 8, capacity = 32;

struct output {
  std::vector<ps::packed_document> documents;
  std::vector<float> values;
};

/// The outputs for three rows of documents, of which number `changed` has other tokens.
template <class Model>
output outputs_with(std::uint64_t changed, bool tells_documents) {
  const auto length = [](std::uint64_t i) { return 3 + i % 7; };
  const auto texts = ps::generated(14, [=](std::uint64_t i) {
    std::vector<std::uint32_t> tokens;
    for (std::uint64_t k = 0; k < length(i); ++k)
      tokens.push_back(static_cast<std::uint32_t>((i == changed ? 17 : 1) + (i + k) % 10));
    return tokens;
  });
  Model model(32, width, capacity);
  output made;
  for (auto&& b : (texts | ps::pack(length, capacity) | ps::batch(3)).epoch(0)) {
    const auto view = b.values();
    const auto labels = view.labels();
    const auto positions = view.position_ids();
    const std::vector<std::int32_t> starts =
        tells_documents ? view.cu_seqlens_padded()
                        : std::vector<std::int32_t>{0, capacity, 2 * capacity, 3 * capacity};
    made.documents.assign(view.documents().begin(), view.documents().end());
    made.values = model.outputs({view.flat(), labels, starts, positions});
    break;
  }
  return made;
}

/// How many documents have other outputs if `changed` has other tokens.
template <class Model>
std::size_t changed_by(std::uint64_t changed, bool tells_documents) {
  const output before = outputs_with<Model>(99, tells_documents),
               after = outputs_with<Model>(changed, tells_documents);
  REQUIRE(std::ranges::equal(before.documents, after.documents));
  std::size_t different = 0;
  for (const ps::packed_document& d : before.documents) {
    const std::size_t first = (d.row * capacity + d.begin) * width, end = first + d.length * width;
    bool same = true;
    for (std::size_t i = first; i < end; ++i) same = same && before.values[i] == after.values[i];
    different += same ? 0 : 1;
  }
  return different;
}

/// Changing one document changes no output of another.
template <class Model>
void check_attention() {
  std::size_t without = 0;
  for (std::uint64_t i = 0; i < 14; ++i) {
    CHECK(changed_by<Model>(i, true) == 1);
    without += changed_by<Model>(i, false);
  }
  CHECK(without > 14);  // attention over whole rows mixes documents
}

}  // namespace packed_attention
