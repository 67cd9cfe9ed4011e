// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/peek.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <string>

namespace peek_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("inspection/peek: one sample, its key, its fields and their first bytes") {
  using sample = ps::record<ps::field<"x", int>, ps::field<"txt", std::string>>;
  const auto source =
      ps::from(std::vector<sample>{sample(5, "hello"), sample(6, std::string("\x01\x02", 2))});
  CHECK(peek(source) == "sample at position 0:0, key 0\n  x: 5\n  txt: 5 characters: \"hello\"\n");
  CHECK_THAT(peek(source, 1), contains("txt: 2 characters: 01 02"));
  CHECK_THAT(peek(source | ps::map<"x">([](int x) { return x * 10; }) | ps::batch(2, ps::ragged)),
             contains("x: 50"));
}

TEST_CASE("inspection/peek: for a strided view its shape, and no gaps") {
  const auto crops = ps::from(first_ints(2)) | ps::map([](int) {
                       static const int memory[8] = {};
                       return ps::strided_view<const int>(memory, ps::extents(2, 3), {4, 1});
                     });
  CHECK_THAT(peek(crops), contains("array of shape (2, 3) with strides"));
}

TEST_CASE("inspection/peek: beyond the end, dropped samples and empty sources are reported, not thrown") {
  CHECK_THAT(peek(ps::from(first_ints(3)) | ps::take(2), 2), contains("beyond the end: there are 2 samples"));
  CHECK_THAT(peek(ps::from(first_ints(3)) | ps::filter([](int) { return false; })),
             contains("dropped by a filter"));
  CHECK_THAT(peek(ps::from(first_ints(0))), contains("beyond the end"));
}

TEST_CASE("inspection/peek: an error of the chain says where it happened") {
  const auto bad = ps::from(std::vector<std::string>{"1", "x"}) | ps::decode<ps::integer>;
  CHECK_THAT(peek(bad), contains("  1\n"));
  CHECK_THAT(error_of([&] { (void)peek(bad, 1); }), contains("[stage decode<integer>, position 0:1]"));
}

}  // namespace peek_test
