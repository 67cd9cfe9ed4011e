// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/context_parallel.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pack.hpp>

#include "support/catch.hpp"
#include "support/packed_texts.hpp"

namespace context_parallel_test {

namespace ps = penstock;
using namespace packed_texts;

TEST_CASE("the ranks of context_parallel have the chunks of every sample") {
  constexpr std::uint32_t size = 3;
  const auto base =
      texts(200) | ps::shuffle(ps::seed(2)) | ps::pack<"tokens", "loss">(&length_of, 96, {.align = 2 * size});
  const std::vector<seen> whole = see_epoch(base | ps::batch(4));
  std::vector<std::vector<std::int64_t>> labels;
  std::vector<std::vector<std::int64_t>> answers;
  for (auto&& b : (base | ps::batch(4)).epoch(0)) {
    labels.push_back(ps::labels<"tokens">(b));
    answers.push_back(ps::labels<"tokens", "loss">(b));
  }
  std::vector<std::vector<std::int32_t>> got(whole.size());
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    std::size_t step = 0;
    for (auto&& b : (base | ps::context_parallel(size, rank) | ps::batch(4)).epoch(0)) {
      const auto view = ps::get<"tokens">(b);
      REQUIRE(view.shape() == ps::extents(b.size(), 96 / size));
      const auto positions = view.position_ids(), documents = view.document_ids();
      const auto next = ps::labels<"tokens">(b), asked = ps::labels<"tokens", "loss">(b);
      got[step].resize(b.size() * 96, 0);
      for (std::size_t i = 0; i < documents.size(); ++i) {
        if (documents[i] < 0) {
          CHECK(view.flat()[i] == 0);
          CHECK(next[i] == -100);
          continue;
        }
        const ps::packed_document& d = view.documents()[static_cast<std::size_t>(documents[i])];
        const std::size_t at = d.row * 96 + d.begin + static_cast<std::size_t>(positions[i]);
        got[step][at] = view.flat()[i];
        CHECK(next[i] == labels[step][at]);
        CHECK(asked[i] == answers[step][at]);
      }
      CHECK(view.whole().cu_seqlens_padded().back() == static_cast<std::int32_t>(b.size() * 96));
      ++step;
    }
    CHECK(step == whole.size());
  }
  for (std::size_t step = 0; step < whole.size(); ++step) CHECK(got[step] == whole[step].tokens);
}

TEST_CASE("slices are what a kernel cuts from the offsets of whole rows") {
  constexpr std::uint32_t size = 3;
  const auto base = texts(50) | ps::pack<"tokens">(&length_of, 192, {.align = 2 * size});
  const std::vector<seen> whole = see_epoch(base | ps::batch(4));
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    std::size_t step = 0;
    for (auto&& b : (base | ps::context_parallel(size, rank) | ps::batch(4)).epoch(0)) {
      const auto view = ps::get<"tokens">(b);
      const std::vector<std::int32_t> starts = view.whole().cu_seqlens_padded();
      tokens expected;
      for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
        const std::uint32_t chunk = static_cast<std::uint32_t>(starts[i + 1] - starts[i]) / (2 * size);
        for (const std::uint32_t which : {rank, 2 * size - 1 - rank})
          for (std::uint32_t k = 0; k < chunk; ++k)
            expected.push_back(whole[step].tokens[static_cast<std::uint32_t>(starts[i]) + which * chunk + k]);
      }
      CHECK(tokens(view.flat().begin(), view.flat().end()) == expected);
      ++step;
    }
    CHECK(step == whole.size());
  }
}

}  // namespace context_parallel_test
