// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/kept_places.hpp>

#include <penstock/codec/text.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kept_places_test {

namespace ps = penstock;
using namespace penstock_test;
using names = std::vector<std::string>;

namespace {

/// What the places are behind, and the stage behind which there are none.
template <class Plan>
names places_of(const Plan& plan) {
  const auto reader = ps::connect_source_of(plan);
  const auto chain = ps::make_chain(plan, ps::source_node<std::remove_cvref_t<decltype(reader)>>{&reader}, 0);
  const ps::kept_choice choice = ps::kept_in(chain).choices.at(0);
  names all;
  for (const ps::kept_place& one : choice.places) all.push_back(one.behind);
  all.push_back(choice.random_behind);
  return all;
}

}  // namespace

TEST_CASE("evaluation/kept_places: behind the source and each stage that makes something") {
  const auto keep = ps::keep_in_memory(1 << 20, ps::keep_at::automatic);
  const auto words = ps::generated(10, [](std::uint64_t i) { return std::to_string(i); });
  const auto size = ps::map([](std::string_view text) { return text.size(); });
  const auto even = ps::filter([](std::size_t n) { return n % 2 == 0; });
  const auto noisy = ps::map([](std::size_t n, ps::rng& random) { return n + random() % 2; });
  CHECK(places_of(words | size | even | keep | ps::batch(2)) == names{"generated", "map", "filter", ""});
  CHECK(places_of(words | size | ps::shuffle(ps::seed(1)) | even | noisy | even | keep) ==
        names{"generated", "map", "filter", "map"});
  CHECK(places_of(words | keep | size | noisy) == names{"generated", ""});
  CHECK(places_of(words | size | ps::enumerate | keep) == names{"generated", "map", ""});

  // a function that takes only what the source gives
  const auto own = ps::map([](const std::string& text) { return text.size(); });
  CHECK(places_of(words | own | keep | ps::batch(2)) == names{"map", ""});

  raw_tar tar;
  tar.member("1.txt", "one").member("1.cls", "1");
  const auto samples = ps::webdataset(ps::memory_files().add("a.tar", tar.end().bytes));
  const auto decode = ps::decode<ps::field<"txt", ps::text>>;
  CHECK(places_of(samples | decode | keep) == names{"decode<txt: text>", ""});
  CHECK(places_of(samples | ps::fields<"txt", "cls"> | decode | keep) ==
        names{"webdataset", "decode<txt: text>", ""});
}

}  // namespace kept_places_test
