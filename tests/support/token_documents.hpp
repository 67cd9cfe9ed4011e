// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/sequence/token_sequence.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Documents of tokens, and operations on them that are called without a plan.
namespace penstock_test {

using token_list = std::vector<std::int64_t>;

/// A sequence, finished or not, as numbers that can be compared.
template <class V>
[[nodiscard]] token_list tokens_of(const V& sequence) {
  const auto& finished = penstock::finish(sequence);
  const auto numbers = penstock::detail::token_span(finished);
  return token_list(numbers.begin(), numbers.end());
}

/// The tokens 0, 1, 2, ... from `first` on.
template <class T = std::int32_t>
[[nodiscard]] std::vector<T> counted_tokens(std::size_t n, std::int64_t first = 0) {
  std::vector<T> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<T>(first + static_cast<std::int64_t>(i));
  return tokens;
}

/// An operation with the memory of one worker. The index of the sample is that of the call.
template <class F>
class called_operation {
 public:
  explicit called_operation(F function, std::uint64_t seed = 1)
      : function_(std::move(function)), seed_(seed) {}
  template <class V>
  auto operator()(V&& value, std::uint64_t index = 0) {
    return function_(std::forward<V>(value),
                     penstock::call<typename F::scratch>{{0, index}, 0, seed_, 0, memory_});
  }

 private:
  F function_;
  std::uint64_t seed_;
  typename F::scratch memory_;
};

/// A plan's documents, of 0 to 40 tokens from 100 on.
[[nodiscard]] inline auto some_documents(std::uint64_t n) {
  return penstock::generated(n, [](std::uint64_t i) {
    return penstock::record<penstock::field<"id", std::uint64_t>,
                            penstock::field<"tokens", std::vector<std::int32_t>>>(
        i, counted_tokens(penstock::mix64(i) % 41, 100));
  });
}

/// Checks that a plan has the same batches with any number of workers, and from each of its states on.
/// `read(batch)` makes a text of all that is compared.
template <class Plan, class Read>
void check_same_on_any_workers(const Plan& plan, Read read) {
  const auto follow = [&](unsigned workers, const auto&... state) {
    std::vector<std::pair<std::string, std::string>> all;
    auto run = (plan | penstock::workers(workers)).open(state...);
    for (auto epoch : run.epochs(2))
      for (auto&& batch : epoch) {
        std::string text = read(batch);
        all.emplace_back(std::move(text), to_string(run.state()));
      }
    return all;
  };
  const auto whole = follow(0);
  REQUIRE(whole.size() > 4);
  CHECK(whole.front().first != whole[whole.size() / 2].first);  // another epoch draws other numbers
  for (const unsigned workers : {1u, 3u}) CHECK(follow(workers) == whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    INFO("after batch " << i);
    const auto rest = follow(2, penstock::state_from_string(whole[i].second));
    CHECK(rest == decltype(whole)(whole.begin() + static_cast<std::ptrdiff_t>(i) + 1, whole.end()));
  }
}

/// The values of ragged fields of a batch, as a text.
template <class... Columns>
[[nodiscard]] std::string text_of(const Columns&... columns) {
  std::string text;
  const auto add = [&text](const auto& column) {
    for (const auto& row : column) {
      for (const auto value : row) text += std::to_string(value) + ' ';
      text += '\n';
    }
  };
  (add(columns), ...);
  return text;
}

}  // namespace penstock_test
