// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The shapes of batches do not depend on how many are made ahead, not even for batches without elements or
// without samples. Arrays of eight dimensions cannot be batched.

#include <penstock/core/collate.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace batch_shapes_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using shapes = std::vector<std::string>;

struct ones {
  using unfinished = void;
  using value_type = std::int16_t;
  ps::extents size;
  [[nodiscard]] const ps::extents& shape() const { return size; }
  void write_to(const ps::destination<std::int16_t>& into) const {
    if (size.elements() != 0) into.fill_from([] { return std::int16_t{1}; });
  }
  [[nodiscard]] ps::tensor_view<const std::int16_t> finish() const {
    static const std::vector<std::int16_t> values(100, 1);
    return {values.data(), size};
  }
};
/// Samples with the shape `of(number)`.
template <class F>
auto samples(std::uint64_t count, F of) {
  return ps::generated(count, [of](std::uint64_t i) { return ones{of(i)}; });
}

template <class Plan>
shapes shapes_in(const Plan& plan) {
  shapes all;
  for (auto&& b : plan) all.push_back(to_string(b.values().shape()));
  return all;
}
/// Checks the shapes of the batches of a plan at several depths, with and without a device that copies.
template <class Plan>
void shows(const Plan& plan, const shapes& expected) {
  for (const unsigned workers : {0u, 1u, 2u})
    for (const std::size_t depth : {1u, 2u, 5u}) {
      INFO("workers " << workers << ", depth " << depth);
      CHECK(shapes_in(plan | ps::prefetch(depth) | ps::workers(workers)) == expected);
      CHECK(shapes_in(plan | ps::pin_and_copy(ps::simulated{}) | ps::prefetch(depth) |
                      ps::workers(workers)) == expected);
    }
}

const auto all_pass = ps::filter([](const auto&) { return true; });

}  // namespace

TEST_CASE("run/batch_shapes: values without elements show their shape at every depth") {
  const auto shrinking =
      samples(10, [](std::uint64_t i) { return i < 4 ? ps::extents(2, 4, 3) : ps::extents(0, 4, 3); });
  const shapes planes{"(2, 3, 2, 4)", "(2, 3, 2, 4)", "(2, 3, 0, 4)", "(2, 3, 0, 4)", "(2, 3, 0, 4)"};
  const shapes plain{"(2, 2, 4, 3)", "(2, 2, 4, 3)", "(2, 0, 4, 3)", "(2, 0, 4, 3)", "(2, 0, 4, 3)"};
  shows(shrinking | ps::batch(2, ps::channels_first), planes);
  shows(shrinking | ps::batch(2), plain);
  shows(shrinking | ps::batch(2, ps::pitched<32>), plain);
  shows(shrinking | all_pass | ps::batch(2, ps::channels_first), planes);
  const auto none = samples(4, [](std::uint64_t) { return ps::extents(0, 4, 3); });
  shows(none | ps::batch(2, ps::channels_first), {"(2, 3, 0, 4)", "(2, 3, 0, 4)"});
  shows(none | ps::batch(2, ps::pitched<32>), {"(2, 0, 4, 3)", "(2, 0, 4, 3)"});
  shows(none | ps::batch(2), {"(2, 0, 4, 3)", "(2, 0, 4, 3)"});
  shows(none | ps::batch(2, ps::pad_to_longest), {"(2, 0, 4, 3)", "(2, 0, 4, 3)"});
  const auto scalars = samples(4, [](std::uint64_t) { return ps::extents(); });
  shows(scalars | ps::batch(2), {"(2,)", "(2,)"});
}

TEST_CASE("run/batch_shapes: batches without samples show the shape of earlier ones at every depth") {
  const auto pictures = samples(8, [](std::uint64_t) { return ps::extents(2, 4, 3); });
  const auto share = pictures | ps::shard(0, 3);
  shows(share | ps::batch(2, ps::channels_first), {"(2, 3, 2, 4)", "(0, 3, 2, 4)"});
  shows(share | ps::batch(2, ps::pitched<32>), {"(2, 2, 4, 3)", "(0, 2, 4, 3)"});
  shows(share | ps::batch(2), {"(2, 2, 4, 3)", "(0, 2, 4, 3)"});
  shows(share | ps::batch(2, ps::pad_to_longest), {"(2, 2, 4, 3)", "(0, 0, 4, 3)"});
  shows(share | ps::batch(2, ps::tail::pad), {"(2, 2, 4, 3)", "(2, 2, 4, 3)"});
  shows(share | ps::batch(2, ps::tail::pad, ps::pitched<32>), {"(2, 2, 4, 3)", "(2, 2, 4, 3)"});
  const auto scalars = samples(8, [](std::uint64_t) { return ps::extents(); });
  shows(scalars | ps::shard(0, 3) | ps::batch(2), {"(2,)", "(0,)"});
  // no batch of this run has a shape
  shows(samples(1, [](std::uint64_t) { return ps::extents(3); }) | ps::shard(0, 3) | ps::batch(2),
        {"(0, 0)"});
}

TEST_CASE("run/batch_shapes: an empty batch of batch_by shows the shape of earlier ones at every depth") {
  // 5 batches of 2 samples on 3 ranks: the last rank has none in the second step
  const auto one = [](std::uint64_t) -> std::uint64_t { return 1; };
  const auto source = samples(10, [](std::uint64_t) { return ps::extents(3, 2); });
  const auto on = [&](std::uint64_t rank, auto... options) {
    return source | ps::shard(rank, 3) | ps::batch_by(one, 2, options...);
  };
  shows(on(1), {"(2, 3, 2)", "(2, 3, 2)"});
  shows(on(2), {"(2, 3, 2)", "(0, 3, 2)"});
  shows(on(2, ps::tail::drop), {"(2, 3, 2)"});
  shows(on(2, ps::pad_to_longest), {"(2, 3, 2)", "(0, 0, 2)"});
  // a rank without any sample has seen no shape
  const auto few = samples(2, [](std::uint64_t) { return ps::extents(3, 2); });
  shows(few | ps::shard(1, 3) | ps::batch_by(one, 2), {"(0, 0)"});
}

TEST_CASE("run/batch_shapes: batches of holes are zeros with the shape of earlier batches") {
  const auto pictures = samples(12, [](std::uint64_t i) {
    if (i >= 8) throw ps::error(ps::errc::format, {"not a picture"});
    return ps::extents(i < 4 ? 3 : 5, 2);
  });
  const auto plan = pictures | ps::bad_samples::skip(4) | ps::batch(4);
  const shapes expected{"(4, 3, 2)", "(4, 5, 2)", "(4, 5, 2)"};
  shows(plan, expected);
  for (const std::size_t depth : {1u, 4u}) {
    std::size_t step = 0;
    for (auto&& b : (plan | ps::prefetch(depth) | ps::workers(1)).epoch(0)) {
      const std::int16_t value = ++step < 3 ? 1 : 0;
      bool same = true;
      for (const std::int16_t x : b.values().values()) same = same && x == value;
      CHECK(same);
    }
  }
}

TEST_CASE("run/batch_shapes: an array of eight dimensions is an error at its position") {
  const auto arrays = samples(6, [](std::uint64_t i) {
    return i == 3 ? ps::extents(1, 1, 1, 1, 1, 1, 2, 3) : ps::extents(1, 1, 1, 1, 1, 2, 3);
  });
  const auto refused = [](const auto& plan) {
    auto run = plan.open();
    CHECK(run.next());
    try {
      const auto next = run.next();
      REQUIRE(next.failure != nullptr);
      std::rethrow_exception(next.failure);
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::shape);
      CHECK_THAT(std::string(e.what()), contains("(1, 1, 1, 1, 1, 1, 2, 3)") && contains("at most eight"));
      REQUIRE(e.at().has_value());
      CHECK(e.at()->index == 3);
    }
  };
  for (const unsigned workers : {0u, 2u}) {
    refused(arrays | ps::batch(2) | ps::workers(workers));
    refused(arrays | ps::batch(2, ps::pitched<64>) | ps::workers(workers));
    refused(arrays | ps::batch(2, ps::pad_to_longest) | ps::workers(workers));
    refused(arrays | all_pass | ps::batch(2) | ps::workers(workers));
  }
  std::size_t seen = 0;
  for (auto&& b : (arrays | ps::batch(2, ps::ragged)).epoch(0)) {
    const auto list = b.values();
    for (std::size_t i = 0; i < list.size(); ++i, ++seen) CHECK(list.shape(i).rank() == (seen == 3 ? 8 : 7));
  }
  CHECK(seen == 6);
}

}  // namespace batch_shapes_test
