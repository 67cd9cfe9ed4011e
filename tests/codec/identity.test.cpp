// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/identity.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;
static_assert(ps::codec<ps::identity>);
static_assert(std::is_same_v<ps::decoded<ps::identity, codec_test::counted_blob>, codec_test::counted_blob>);
static_assert(std::is_same_v<ps::decoded<ps::identity, ps::bytes_view>, ps::bytes_view>);
static_assert(std::is_same_v<ps::decoded<ps::identity, std::string>, ps::bytes_view>);

TEST_CASE("codec/identity: a blob comes through unread") {
  ps::no_scratch none;
  int reads = 0;
  const auto bytes = codec_test::to_vector("payload");
  const auto out = ps::identity{}.decode(codec_test::counted_blob{bytes, &reads}, none);
  CHECK(reads == 0);
  CHECK(out.size() == 7);
  CHECK(ps::text_of(out.finish()) == "payload");
  CHECK(reads == 1);
}

TEST_CASE("codec/identity: bytes in memory are not copied") {
  ps::no_scratch none;
  const std::string text = "a text of some length, longer than what a string holds in itself";
  const std::vector<std::byte> bytes = codec_test::to_vector(text);
  CHECK(static_cast<const void*>(ps::identity{}.decode(text, none).data()) == text.data());
  CHECK(ps::identity{}.decode(bytes, none).data() == bytes.data());
  CHECK(ps::identity{}.decode(ps::bytes_view{}, none).empty());
  std::size_t sum = 0;
  CHECK(penstock_test::allocations_of([&] { sum = ps::identity{}.decode(bytes, none).size(); }) == 0);
  CHECK(sum == text.size());
}
