// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/sequence/token_sequence.hpp>

#include <penstock/core/whole.hpp>

#include "support/catch.hpp"
#include "support/token_documents.hpp"

#include <array>
#include <string>

namespace token_sequence_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// An array that is computed when it is written.
struct ramp {
  using unfinished = void;
  using value_type = std::int16_t;
  [[nodiscard]] ps::extents shape() const { return ps::extents(3); }
  void write_to(std::int16_t* into) const { std::copy_n(values, 3, into); }
  [[nodiscard]] ps::tensor_view<const std::int16_t> finish() const { return {values, shape()}; }
  static constexpr std::int16_t values[3] = {4, 5, 6};
};

}  // namespace

TEST_CASE("sequence/token_sequence: spans, vectors, tensors and arrays that are not computed yet") {
  STATIC_REQUIRE(ps::token_sequence<std::span<const std::uint16_t>>);
  STATIC_REQUIRE(ps::token_sequence<std::vector<std::int64_t>>);
  STATIC_REQUIRE(ps::token_sequence<const std::vector<std::int64_t>&>);
  STATIC_REQUIRE(ps::token_sequence<std::array<std::int32_t, 4>>);
  STATIC_REQUIRE(ps::token_sequence<ps::tensor_view<const std::uint32_t>>);
  STATIC_REQUIRE(ps::token_sequence<ps::whole_tensor<std::int32_t>>);
  STATIC_REQUIRE(ps::token_sequence<ramp>);
  STATIC_REQUIRE(!ps::token_sequence<std::string>);
  STATIC_REQUIRE(!ps::token_sequence<std::vector<float>>);
  STATIC_REQUIRE(!ps::token_sequence<std::vector<bool>>);
  STATIC_REQUIRE(!ps::token_sequence<int>);
  STATIC_REQUIRE(!ps::token_sequence<ps::record<ps::field<"tokens", std::vector<int>>>>);
  CHECK(tokens_of(ramp{}) == token_list{4, 5, 6});
  CHECK(tokens_of(std::array<std::int32_t, 2>{7, 8}) == token_list{7, 8});
}

TEST_CASE("sequence/token_sequence: an array of two dimensions is no sequence") {
  const std::vector<std::int32_t> numbers(6);
  const ps::tensor_view<const std::int32_t> rows(numbers.data(), ps::extents(2, 3));
  CHECK_THROWS_WITH(ps::detail::sequence_numbers("mask_tokens", rows),
                    Catch::Contains("mask_tokens works on sequences") && Catch::Contains("(2, 3)"));
}

TEST_CASE("sequence/token_sequence: numbered words are those of SplitMix64") {
  ps::rng random(1, 2, 3);
  ps::rng copy = random;
  const std::uint64_t first = copy();
  const ps::detail::numbered_words words(random);
  CHECK(words[0] == ps::mix64(first));
  CHECK(words[1] == ps::mix64(first + 0x9e3779b97f4a7c15u));
  CHECK(words[1] != words[2]);
}

TEST_CASE("sequence/token_sequence: memory grows by halves") {
  ps::buffer memory;
  CHECK(ps::detail::token_room<std::int32_t>(memory, 0).empty());
  CHECK(ps::detail::token_room<std::int32_t>(memory, 100).size() == 100);
  const void* const at = memory.data();
  CHECK(ps::detail::token_room<std::int64_t>(memory, 75).size() == 75);
  CHECK(memory.data() == at);
}

}  // namespace token_sequence_test
