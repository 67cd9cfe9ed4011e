// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/named_split.hpp>

#include <penstock/core/pipe.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/split.hpp>
#include <penstock/source/directory.hpp>

#include <concepts>
#include <string>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(std::same_as<decltype(ps::split(0.5, ps::seed(7))), ps::split_stage>);
static_assert(std::same_as<decltype(ps::split("train")), ps::named_split>);

TEST_CASE("core/named_split: one word names a split of the files, or splits at random") {
  CHECK(ps::split("train").name == "train");
  CHECK(ps::split(std::string("my split")).name == "my split");
  CHECK(ps::split(0.5F, ps::seed(7)).describe() == ps::split(0.5, ps::seed(7)).describe());
}

TEST_CASE("core/named_split: the example in the header") {
  using namespace penstock;
  const auto example = [] {
    auto train = directory("imagenet", split("train")) | shuffle(seed(1));
    return train;
  };
  CHECK_THROWS_AS(example(), error);
}
