// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/packed_rows.hpp>

#include <penstock/core/error.hpp>

#include <catch2/catch.hpp>

#include <numeric>

namespace packed_rows_test {

using namespace penstock;

namespace {

using ids = std::vector<std::int32_t>;

// Two rows of 8 places: documents of 3 and 4 tokens with padding to a multiple of 4, and one of 5.
const std::vector<packed_document> documents{{0, 0, 3, 4, 0, 3}, {0, 4, 4, 4, 0, 4}, {1, 0, 5, 8, 0, 5}};

}  // namespace

TEST_CASE("the rows of a batch say where documents are") {
  const packed_rows rows(documents.data(), documents.size(), 2, 8);
  CHECK(rows.row_count() == 2);
  CHECK(rows.capacity() == 8);
  CHECK(rows.documents().size() == 3);
  CHECK(rows.cu_seqlens() == ids{0, 3, 7, 12});
  CHECK(rows.cu_seqlens_padded() == ids{0, 4, 8, 16});
  CHECK(rows.max_seqlen() == 5);
  CHECK(rows.max_seqlen_padded() == 8);
  CHECK(rows.position_ids() == ids{0, 1, 2, 0, 0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 0, 0});
  CHECK(rows.document_ids() == ids{0, 0, 0, -1, 1, 1, 1, 1, 2, 2, 2, 2, 2, -1, -1, -1});
  CHECK(rows.mask() == std::vector<std::uint8_t>{1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0});
  CHECK(rows.fill() == 0.75);
}

TEST_CASE("a row without documents counts as one of length 0") {
  const packed_rows rows(documents.data(), 2, 3, 8);
  CHECK(rows.cu_seqlens() == ids{0, 3, 7, 7, 7});
  CHECK(rows.cu_seqlens_padded() == ids{0, 4, 8, 16, 24});
  CHECK(rows.max_seqlen() == 4);
  const packed_rows none;
  CHECK(none.cu_seqlens() == ids{0});
  CHECK(none.cu_seqlens_padded() == ids{0});
  CHECK(none.max_seqlen() == 0);
  CHECK(none.fill() == 0);
}

TEST_CASE("labels are the next token of the same document") {
  std::vector<std::uint16_t> tokens(16);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{100});
  const packed_view<std::uint16_t> view(tokens.data(), packed_rows(documents.data(), 3, 2, 8));
  using labels = std::vector<std::int64_t>;
  CHECK(view.labels() ==
        labels{101, 102, -100, -100, 105, 106, 107, -100, 109, 110, 111, 112, -100, -100, -100, -100});
  std::vector<std::uint8_t> loss{0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1};
  const packed_view<const std::uint8_t> answers(loss.data(), packed_rows(documents.data(), 3, 2, 8));
  CHECK(view.labels(answers, -1) ==
        labels{-1, 102, -1, -1, 105, -1, 107, -1, -1, -1, -1, 112, -1, -1, -1, -1});
  CHECK(view(1, 2) == 110);
  CHECK(view[documents[1]].size() == 4);
  CHECK(view[documents[1]][0] == 104);
  const packed_view<const std::uint16_t> read_only = view;
  CHECK(read_only.data() == view.data());
  CHECK(read_only.labels() == view.labels());
}

TEST_CASE("slices are the zigzag chunks of each document") {
  std::vector<std::int32_t> seen(16, -1);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const packed_rows rows(documents.data(), 3, 2, 8, 2, rank);
    CHECK(rows.capacity() == 4);
    CHECK(rows.cu_seqlens_padded() == ids{0, 2, 4, 8});
    const ids positions = rows.position_ids(), numbers = rows.document_ids();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0) continue;
      const packed_document& d = documents[static_cast<std::size_t>(numbers[i])];
      seen[d.row * 8 + d.begin + static_cast<std::uint32_t>(positions[i])] = static_cast<std::int32_t>(rank);
    }
  }
  // Of 4 places rank 0 has the first and the last, and of 8 the first two and the last two.
  CHECK(seen == ids{0, 1, 1, -1, 0, 1, 1, 0, 0, 0, 1, 1, 1, -1, -1, -1});
  const packed_rows first(documents.data(), 3, 2, 8, 2, 0);
  CHECK(first.cu_seqlens() == ids{0, 1, 3, 5});
  CHECK(first.whole().cu_seqlens() == ids{0, 3, 7, 12});
  CHECK(first.max_seqlen() == 2);
}

TEST_CASE("offsets that 32 bits cannot count are refused") {
  const packed_rows rows(documents.data(), documents.size(), 4, std::size_t{1} << 29);
  CHECK_THROWS_WITH(rows.cu_seqlens(), Catch::Contains("more places than 2^31 - 1"));
  CHECK_THROWS_WITH(rows.cu_seqlens_padded(), Catch::Contains("more places than 2^31 - 1"));
  CHECK_THROWS_AS(rows.max_seqlen_padded(), error);
  CHECK(packed_rows(documents.data(), documents.size(), 3, std::size_t{1} << 29).cu_seqlens_padded().back() ==
        3 * (1 << 29));
}

}  // namespace packed_rows_test
