// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Texts of known tokens, and what batches of their packed rows hold.

#include <penstock/core/packed_rows.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace packed_texts {

namespace ps = penstock;

using tokens = std::vector<std::int32_t>;
using mask = std::vector<std::uint8_t>;
using text =
    ps::record<ps::field<"tokens", tokens>, ps::field<"label", std::uint64_t>, ps::field<"loss", mask>>;

/// Token k of sample i is 1000 i + k + 1, so that 0 is padding.
inline tokens sequence(std::uint64_t i, std::uint64_t length) {
  tokens made;
  for (std::uint64_t k = 0; k < length; ++k) made.push_back(static_cast<std::int32_t>(1000 * i + k + 1));
  return made;
}
inline std::uint64_t length_of(std::uint64_t i) { return ps::mix64(i) % 60; }
inline text text_of(std::uint64_t i) {
  return text(sequence(i, length_of(i)), i, mask(length_of(i), static_cast<std::uint8_t>(i % 2)));
}
inline constexpr auto identity = [](std::uint64_t i) { return i; };

inline auto texts(std::uint64_t count) { return ps::generated(count, identity) | ps::map(text_of); }

/// What was in a batch, for comparisons.
struct seen {
  std::vector<std::int32_t> tokens;
  std::vector<ps::packed_document> documents;
  std::vector<std::uint64_t> labels;
  std::vector<ps::position> positions;
  std::size_t rows = 0;

  friend bool operator==(const seen&, const seen&) = default;
};
template <class B>
seen see(const B& b) {
  const auto view = ps::get<"tokens">(b);
  const auto labels = ps::get<"label">(b);
  return {{view.flat().begin(), view.flat().end()},
          {view.documents().begin(), view.documents().end()},
          {labels.begin(), labels.end()},
          b.positions(),
          b.size()};
}
template <class Plan>
std::vector<seen> see_epoch(const Plan& plan, std::uint64_t epoch = 0) {
  std::vector<seen> all;
  for (auto&& b : plan.epoch(epoch)) all.push_back(see(b));
  return all;
}

/// The tokens of each row, with those of its samples where they are.
inline std::vector<tokens> rows_of(const seen& one, std::size_t capacity) {
  std::vector<tokens> rows;
  for (std::size_t r = 0; r < one.rows; ++r) {
    const auto first = one.tokens.begin() + static_cast<std::ptrdiff_t>(r * capacity);
    rows.emplace_back(first, first + static_cast<std::ptrdiff_t>(capacity));
  }
  return rows;
}

/// Checks that each batch has the tokens that its documents say, and nothing else, and returns how often each
/// sample's tokens came.
inline std::map<std::uint64_t, std::uint64_t> check_tokens(const std::vector<seen>& all,
                                                           std::size_t capacity) {
  std::map<std::uint64_t, std::uint64_t> found;
  for (const seen& one : all) {
    REQUIRE(one.labels.size() == one.documents.size());
    REQUIRE(one.positions.size() == one.documents.size());
    tokens expected(one.rows * capacity, 0);
    for (std::size_t i = 0; i < one.documents.size(); ++i) {
      const ps::packed_document& d = one.documents[i];
      CHECK(d.whole == length_of(one.labels[i]));
      REQUIRE(d.row < one.rows);
      REQUIRE(d.begin + d.padded <= capacity);
      const tokens sample = sequence(one.labels[i], d.whole);
      for (std::size_t k = 0; k < d.length; ++k)
        expected[d.row * capacity + d.begin + k] = sample[static_cast<std::size_t>(d.first) + k];
      found[one.labels[i]] += d.length;
    }
    CHECK(one.tokens == expected);
  }
  return found;
}

}  // namespace packed_texts
