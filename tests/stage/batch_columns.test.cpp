// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/batch_columns.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;

TEST_CASE("stage/batch_columns: fields by name and by index, and facts about the batch") {
  std::vector<int> labels{1, 2, 3};
  std::vector<float> pixels(6, 0.5f);
  using views = ps::record<ps::field<"label", std::span<int>>, ps::field<"image", ps::tensor_view<float>>>;
  const ps::detail::batch_facts facts{3, 2, 0, 5, {4, 7}, {}};
  const ps::batch_columns<views> columns(
      views(std::span<int>(labels), ps::tensor_view<float>(pixels.data(), ps::extents(3, 2))), facts);
  ps::get<"label">(columns)[1] = 20;
  ps::get<1>(columns)[2].data()[0] = 9;
  CHECK(labels[1] == 20);
  CHECK(pixels[4] == 9);
  CHECK(columns.size() == 3);
  CHECK(columns.valid_size() == 2);
  CHECK(columns.global_size() == 5);
  CHECK(columns.epoch() == 4);
  CHECK(columns.step() == 7);
  CHECK(std::vector<int>(columns.valid().begin(), columns.valid().end()) == std::vector<int>{1, 1, 0});
}

TEST_CASE("stage/batch_columns: values without names are a range") {
  std::vector<int> all{1, 2, 3};
  const ps::detail::batch_facts facts{3, 3, 1, 3, {}, {1, 0, 1}};
  const ps::batch_columns<std::span<int>> columns(all, facts);
  for (int& x : columns) x += 1;
  CHECK(columns.values()[2] == 4);
  CHECK(ps::get<0>(columns)[0] == 2);
  CHECK(columns.valid_size() == 2);
  CHECK(columns.valid()[1] == 0);
}

TEST_CASE("stage/batch_columns: the types that can be new columns") {
  using ps::detail::returned_columns;
  const auto is = []<class R>(std::type_identity<R>) { return returned_columns<R>::are_columns; };
  CHECK(is(std::type_identity<std::vector<float>>{}));
  CHECK(is(std::type_identity<std::array<int, 4>>{}));
  CHECK(is(std::type_identity<ps::record<ps::field<"a", ps::tensor_view<int>>>>{}));
  CHECK(!is(std::type_identity<int>{}));
  CHECK(!is(std::type_identity<std::string>{}));
  CHECK(!is(std::type_identity<std::vector<bool>>{}));
  CHECK(!is(std::type_identity<ps::record<>>{}));
  CHECK(!is(std::type_identity<ps::record<ps::field<"a", int>>>{}));
  CHECK(!is(std::type_identity<ps::batch_columns<std::span<int>>>{}));
  STATIC_REQUIRE(std::is_same_v<returned_columns<std::vector<float>>::type, std::span<float>>);
  STATIC_REQUIRE(
      std::is_same_v<returned_columns<ps::tensor_view<const float>>::type, ps::tensor_view<float>>);
}
