// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/document_rows.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace ps = penstock;
using codec_test::caught;
using penstock_test::contains;

namespace document_rows_test {

using ids = std::vector<std::int32_t>;
using labels = std::vector<std::int64_t>;

// Three windows of 5 + 1 tokens, in which 9 ends a document.
inline const std::vector<std::uint16_t> tokens{1, 2, 9, 3,      4, 5, /**/ 6, 9, 9,
                                               7, 9, 8, /**/ 1, 2, 3, 4,      5, 9};
inline const ps::tensor_view<const std::uint16_t> windows(tokens.data(), ps::extents(3, 6));
// The same documents, by numbers; the third window's last token is the first one of another document.
inline const ids numbers{0, 0, 0, 1, 1, 1, /**/ 0, 0, 1, 2, 2, 3, /**/ 0, 0, 0, 0, 0, 1};
inline const ps::tensor_view<const std::int32_t> numbered(numbers.data(), ps::extents(3, 6));

}  // namespace document_rows_test

TEST_CASE("core/document_rows: an end-of-text token ends its document") {
  using namespace document_rows_test;
  const ps::window_documents found = ps::document_rows(windows, 9);
  CHECK(found.row_count() == 3);
  CHECK(found.capacity() == 5);
  CHECK(found.cu_seqlens() == ids{0, 3, 5, 7, 8, 10, 15});
  CHECK(found.cu_seqlens_padded() == found.cu_seqlens());
  CHECK(found.max_seqlen() == 5);
  CHECK(found.position_ids() == ids{0, 1, 2, 0, 1, 0, 1, 0, 0, 1, 0, 1, 2, 3, 4});
  CHECK(found.document_ids() == ids{0, 0, 0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5, 5, 5});
  CHECK(found.fill() == 1);
  CHECK(found.labels(windows) == labels{2, 9, -100, 4, 5, 9, -100, -100, 9, -100, 2, 3, 4, 5, 9});
  CHECK(found.labels(windows, 0) == labels{2, 9, 0, 4, 5, 9, 0, 0, 9, 0, 2, 3, 4, 5, 9});
}

TEST_CASE("core/document_rows: the example") {
  using namespace document_rows_test;
  const std::vector<std::uint16_t> text{1, 2, 9, 3, 4, 5};
  const ps::tensor_view<const std::uint16_t> window(text.data(), ps::extents(1, 6));
  const auto documents = ps::document_rows(window, 9);
  const std::vector<std::int32_t> starts = documents.cu_seqlens();
  CHECK(starts == ids{0, 3, 5});
}

TEST_CASE("core/document_rows: no document ends where the token does not occur") {
  using namespace document_rows_test;
  const ps::window_documents found = ps::document_rows(windows, 500);
  CHECK(found.cu_seqlens() == ids{0, 5, 10, 15});
  CHECK(found.labels(windows) == labels{2, 9, 3, 4, 5, 9, 9, 7, 9, 8, 2, 3, 4, 5, 9});
}

TEST_CASE("core/document_rows: windows without targets, and with two") {
  using namespace document_rows_test;
  const ps::window_documents none = ps::document_rows(windows, 9, 0);
  CHECK(none.capacity() == 6);
  CHECK(none.cu_seqlens() == ids{0, 3, 6, 8, 9, 11, 12, 18});
  CHECK(none.labels(windows) ==
        labels{2, 9, -100, 4, 5, -100, 9, -100, -100, 9, -100, -100, 2, 3, 4, 5, 9, -100});
  const ps::window_documents two = ps::document_rows(windows, 9, 2);
  CHECK(two.cu_seqlens() == ids{0, 3, 4, 6, 7, 8, 12});
  CHECK(two.labels(windows) == labels{2, 9, -100, 4, 9, -100, -100, 9, 2, 3, 4, 5});
}

TEST_CASE("core/document_rows: numbers of documents say the same, and where the last one ends") {
  using namespace document_rows_test;
  const ps::window_documents found = ps::document_rows_of(numbered);
  const ps::window_documents by_token = ps::document_rows(windows, 9);
  CHECK(found.cu_seqlens() == by_token.cu_seqlens());
  CHECK(found.position_ids() == by_token.position_ids());
  CHECK(found.labels(windows) == labels{2, 9, -100, 4, 5, 9, -100, -100, 9, -100, 2, 3, 4, 5, -100});
  CHECK(ps::document_rows_of(numbered, 0).cu_seqlens() == ids{0, 3, 6, 8, 9, 11, 12, 17, 18});
}

TEST_CASE("core/document_rows: what was moved to has the list") {
  using namespace document_rows_test;
  ps::window_documents first = ps::document_rows(windows, 9);
  const ids want = first.cu_seqlens();
  const ps::window_documents second = std::move(first);
  CHECK(second.cu_seqlens() == want);
  ps::window_documents third;
  CHECK(third.cu_seqlens() == ids{0});
  CHECK(third.documents().empty());
  third = ps::document_rows(windows, 9);
  CHECK(third.cu_seqlens() == want);
  CHECK(third.documents().size() == 6);
}

TEST_CASE("core/document_rows: labels of other tokens are refused") {
  using namespace document_rows_test;
  const ps::window_documents found = ps::document_rows(windows, 9);
  const ps::tensor_view<const std::uint16_t> inputs(tokens.data(), ps::extents(3, 5));
  const auto error = caught([&] { static_cast<void>(found.labels(inputs)); });
  CHECK(error.code == ps::errc::argument);
  CHECK_THAT(error.line, contains("windows of shape (3, 6), and these tokens have shape (3, 5)"));
}

TEST_CASE("core/document_rows: what are no windows is refused") {
  using namespace document_rows_test;
  const auto refusal = [](ps::extents shape, std::int64_t eot, std::uint64_t targets) {
    const auto thrown = caught([&] {
      static_cast<void>(
          ps::document_rows(ps::tensor_view<const std::uint16_t>(tokens.data(), shape), eot, targets));
    });
    CHECK(thrown.code == ps::errc::argument);
    return thrown.line;
  };
  CHECK_THAT(refusal(ps::extents(18), 9, 1), contains("is not one of windows with 1 targets"));
  CHECK_THAT(refusal(ps::extents(3, 6), 9, 6), contains("with 6 targets"));
  CHECK_THAT(refusal(ps::extents(3, 6), 65536, 1), contains("no token 65536 in 16 bits"));
  CHECK_THAT(refusal(ps::extents(3, 6), -1, 1), contains("no token -1"));
  CHECK_THAT(refusal(ps::extents(1, std::uint64_t{1} << 31), 9, 1), contains("2^31 - 1"));
  const auto found =
      ps::document_rows(ps::tensor_view<const std::uint16_t>(tokens.data(), ps::extents(3, 6)), 9);
  CHECK(caught([] {
          static_cast<void>(ps::document_rows_of({numbers.data(), ps::extents(18)}));
        }).code == ps::errc::argument);
}
