// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The shapes of batches depend neither on how many are made ahead nor on where a run was opened, not even
// for batches without elements or without samples; which samples are bad because of their shape does not
// depend on the number of ranks. Arrays of eight dimensions cannot be batched.

#include <penstock/core/collate.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
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

/// Where a run stands after its first batch.
template <class Plan>
ps::state middle_of(const Plan& plan) {
  auto run = plan.open();
  (void)run.next();
  return run.state();
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
  // no batch of this run has a sample, but another rank's has
  const auto one = samples(1, [](std::uint64_t) { return ps::extents(3); });
  shows(one | ps::shard(0, 3) | ps::batch(2), {"(0, 3)"});
  shows(one | ps::shard(2, 3) | ps::batch(2, ps::tail::pad), {"(2, 3)"});
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
  // a rank without any sample asks another rank's
  const auto few = samples(2, [](std::uint64_t) { return ps::extents(3, 2); });
  shows(few | ps::shard(1, 3) | ps::batch_by(one, 2), {"(0, 3, 2)"});
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

namespace {

/// Batches of even positions and batches of odd ones, dealt to the ranks in turn.
struct even_and_odd {
  struct epoch {
    std::vector<std::vector<std::uint64_t>> batches;
    std::uint64_t world, rank;
    [[nodiscard]] std::uint64_t steps() const { return (batches.size() + world - 1) / world; }
    [[nodiscard]] std::uint64_t before(std::uint64_t step) const {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < batches.size() && i < step * world; ++i) sum += batches[i].size();
      return sum;
    }
    [[nodiscard]] std::uint64_t count(std::uint64_t step) const { return before(step + 1) - before(step); }
    [[nodiscard]] std::vector<std::uint64_t> ours(std::uint64_t step) const {
      const std::uint64_t which = step * world + rank;
      return which < batches.size() ? batches[static_cast<std::size_t>(which)] : std::vector<std::uint64_t>();
    }
    [[nodiscard]] ps::step_view at(std::uint64_t step) const { return {0, ours(step).size()}; }
    void list(std::uint64_t step, std::vector<std::uint64_t>& into) const {
      for (const std::uint64_t one : ours(step)) into.push_back(one);
    }
  };
  struct cut {
    std::uint64_t world, rank;
    [[nodiscard]] epoch bind(std::uint64_t) const {
      return {{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10}, {9, 11}}, world, rank};
    }
    [[nodiscard]] cut on(std::uint64_t ranks, std::uint64_t which) const { return {ranks, which}; }
    [[nodiscard]] std::uint64_t usual() const { return 4; }
  };
  template <class Orders>
  [[nodiscard]] cut make(const Orders&, const ps::cut_input& in) const {
    return {in.world, in.rank};
  }
  [[nodiscard]] std::string describe() const { return "even_and_odd"; }
  template <class Hash>
  void fingerprint(Hash& h) const {
    h.add("even_and_odd");
  }
};

}  // namespace

TEST_CASE("run/batch_shapes: an empty batch of a cut that lists positions has the shape of its step's") {
  const auto source = samples(12, [](std::uint64_t i) { return ps::extents(i % 2 == 0 ? 3 : 5, 2); });
  const auto on = [&](std::uint64_t rank) {
    return source | ps::shard(rank, 3) | ps::batch_by(even_and_odd{});
  };
  shows(on(0), {"(4, 3, 2)", "(2, 5, 2)"});
  shows(on(1), {"(4, 5, 2)", "(0, 5, 2)"});  // position 10, with which the step begins by number, is even
  shows(on(2), {"(2, 3, 2)", "(0, 5, 2)"});
}

namespace {

/// The shapes that a function of whole batches sees, with the shapes of the batches delivered.
template <class Plan>
shapes shapes_seen(const Plan& plan, const ps::state* where = nullptr) {
  std::mutex lock;
  shapes all;
  const auto look = [&](auto& columns) {
    const std::lock_guard guard(lock);
    all.push_back(to_string(columns.values().shape()));
  };
  const auto watched = plan | ps::map_batch(look);
  auto run = where == nullptr ? watched.open() : watched.open(*where);
  shapes delivered;
  for (auto&& b : run) delivered.push_back(to_string(b.values().shape()));
  std::sort(all.begin(), all.end());
  delivered.insert(delivered.end(), all.begin(), all.end());
  return delivered;
}

}  // namespace

TEST_CASE("run/batch_shapes: a batch of nothing but padding has one shape, wherever the run was opened") {
  // each step has a shape of its own; in the last one the second rank has no sample
  const auto pictures =
      samples(90, [](std::uint64_t i) { return i < 60 ? ps::extents(5, 4, 3) : ps::extents(2, 4, 3); });
  for (const unsigned workers : {0u, 1u, 2u}) {
    INFO(workers << " workers");
    const auto share = pictures | ps::shard(1, 2) | ps::global_batch(60, ps::tail::pad, ps::channels_first) |
                       ps::workers(workers);
    const shapes whole{"(30, 3, 5, 4)", "(30, 3, 2, 4)"};
    CHECK(shapes_in(share) == whole);
    CHECK(shapes_seen(share) == shapes{whole[0], whole[1], whole[1], whole[0]});
    const ps::state middle = middle_of(share);
    CHECK(shapes_seen(share, &middle) == shapes{whole[1], whole[1]});
    auto resumed = share.open(middle);
    for (auto&& b : resumed) {
      CHECK(b.valid_size() == 0);
      for (const std::int16_t x : b.values().values()) CHECK(x == 0);
    }
    const auto padded = pictures | ps::shard(1, 2) | ps::global_batch(60, ps::tail::pad, ps::pad_to_largest) |
                        ps::workers(workers);
    auto end = padded.open(middle_of(padded));
    for (auto&& b : end) {
      CHECK(to_string(b.values().shape()) == "(30, 2, 4, 3)");
      CHECK(to_string(b.values().sizes()[7]) == "(0, 0, 0)");
    }
  }
}

namespace {

/// The shape, the mask and the sum of what a batch has.
template <class Batch>
std::string content_of(const Batch& b) {
  std::string all = to_string(b.values().shape()) + " ";
  for (const auto is_there : b.valid()) all += is_there != 0 ? '1' : '0';
  int sum = 0;
  for (const std::int16_t x : b.values().values()) sum += x;
  return all + " " + std::to_string(sum);
}
/// The batches of two epochs from where a run stands, with the states before them.
template <class Run>
std::vector<std::pair<ps::state, std::string>> contents_of(Run run) {
  std::vector<std::pair<ps::state, std::string>> all;
  ps::state before = run.state();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) {
      all.emplace_back(before, content_of(b));
      before = run.state();
    }
  return all;
}
/// Opens a plan for each rank of several worlds, from the start and before each batch: with any workers it
/// has the same batches. Returns how many of them are nothing but padding.
template <class Make>
std::size_t has_one_content(const Make& make) {
  const std::string only_padding = "(20, 2, 3) " + std::string(20, '0') + " 0";
  std::size_t found = 0;
  for (const std::uint64_t world : {2u, 3u, 4u, 6u})
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      INFO("rank " << rank << " of " << world);
      const auto expected = contents_of((make(rank, world) | ps::workers(0)).open());
      REQUIRE(!expected.empty());
      for (const unsigned workers : {0u, 1u, 2u, 4u}) {
        const auto plan = make(rank, world) | ps::workers(workers);
        for (std::size_t first = 0; first < expected.size(); ++first) {
          const auto rest = contents_of(plan.open(expected[first].first));
          INFO(workers << " workers, opened before batch " << first);
          REQUIRE(rest.size() >= expected.size() - first);  // two epochs, the first of which was begun
          for (std::size_t i = first; i < expected.size(); ++i)
            CHECK(rest[i - first].second == expected[i].second);
        }
      }
      for (const auto& [before, content] : expected) found += content == only_padding ? 1 : 0;
    }
  return found;
}

}  // namespace

TEST_CASE("run/batch_shapes: a rank without samples has one batch on any workers, resumed or not") {
  const auto pictures = samples(50, [](std::uint64_t) { return ps::extents(2, 3); });
  const auto faulty = samples(50, [](std::uint64_t i) {
    if (i == 0 || (i >= 11 && i < 15) || i == 47) throw ps::error(ps::errc::format, {"not a picture"});
    return ps::extents(2, 3);
  });
  const auto on = [](const auto& data, std::uint64_t rank, std::uint64_t world) {
    return data | ps::shard(rank, world) | ps::batch(20, ps::tail::pad);
  };
  CHECK(has_one_content([&](auto rank, auto world) { return on(pictures, rank, world); }) ==
        2 * (1 + 0 + 1 + 3));
  CHECK(has_one_content([&](auto rank, auto world) {
          return on(pictures | ps::shuffle(ps::seed(7)), rank, world);
        }) == 2 * (1 + 0 + 1 + 3));
  CHECK(has_one_content([&](auto rank, auto world) {
          return on(faulty | ps::bad_samples::skip(1000), rank, world);
        }) == 2 * (1 + 0 + 1 + 3));
  CHECK(has_one_content([&](auto rank, auto world) {
          return on(faulty | ps::bad_samples::replace(1000), rank, world);
        }) == 2 * (1 + 0 + 1 + 3));
}

TEST_CASE("run/batch_shapes: an error of the sample that tells the shape belongs to the batch without any") {
  const auto pictures = samples(6, [](std::uint64_t i) {
    if (i == 4) throw ps::error(ps::errc::format, {"not a picture"});
    return ps::extents(2);
  });
  for (const unsigned workers : {0u, 2u})
    for (const ps::tail end : {ps::tail::pad, ps::tail::keep}) {
      auto run = (pictures | ps::shard(end == ps::tail::pad ? 1 : 0, end == ps::tail::pad ? 2 : 4) |
                  ps::global_batch(4, end) | ps::workers(workers))
                     .open();
      CHECK(run.next());
      const auto next = run.next();
      REQUIRE(next.failure != nullptr);
      try {
        std::rethrow_exception(next.failure);
      } catch (const ps::error& e) {
        REQUIRE(e.at().has_value());
        CHECK(e.at()->index == 4);
      }
    }
}

namespace {

/// The positions of the samples that are good on all ranks of a world together, in order, step by step.
template <class Make>
std::vector<std::vector<std::uint64_t>> good_on(std::uint64_t world, const Make& make) {
  std::vector<std::vector<std::uint64_t>> steps;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto run = make(rank, world).open();
    std::size_t step = 0;
    for (auto&& b : run) {
      if (steps.size() == step) steps.emplace_back();
      const auto at = b.positions();
      for (std::size_t i = 0; i < at.size(); ++i)
        if (b.valid()[i] != 0) steps[step].push_back(at[i].index);
      ++step;
    }
  }
  for (auto& one : steps) std::sort(one.begin(), one.end());
  return steps;
}

}  // namespace

TEST_CASE("run/batch_shapes: which shapes are bad does not depend on the number of ranks") {
  const deadline guard("shapes on ranks");
  // of the first 12, five have another shape than the first good one; 24 has another one than the rest
  const auto of = [](std::uint64_t i) {
    if (i == 0 || i == 13) throw ps::error(ps::errc::format, {"not an array"});
    const bool odd = i == 24 || (i > 6 && i < 12);
    return odd ? ps::extents(2, 3) : ps::extents(i == 1 ? 3 : i < 12 ? 3 : 4, 2);
  };
  const auto data = samples(36, of);
  const auto same = [](const auto& make) {
    const auto one = good_on(1, make);
    for (const std::uint64_t world : {2u, 3u, 4u, 6u}) {
      INFO(world << " ranks");
      CHECK(good_on(world, make) == one);
    }
    return one;
  };
  for (const unsigned workers : {0u, 2u}) {
    INFO(workers << " workers");
    const auto skipped = same([&](std::uint64_t rank, std::uint64_t world) {
      return data | ps::bad_samples::skip(100) | ps::shard(rank, world) | ps::global_batch(12) |
             ps::workers(workers);
    });
    REQUIRE(skipped.size() == 3);
    CHECK(skipped[0] == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
    CHECK(skipped[1].size() == 11);
    CHECK(skipped[2] == std::vector<std::uint64_t>{24});
    (void)same([&](std::uint64_t rank, std::uint64_t world) {
      return data | ps::shuffle(ps::seed(5)) | ps::bad_samples::skip(100) | ps::shard(rank, world) |
             ps::global_batch(12, ps::pad_to_longest) | ps::workers(workers);
    });
    (void)same([&](std::uint64_t rank, std::uint64_t world) {
      return data | ps::shuffle_buffer(9, ps::seed(3)) | ps::bad_samples::skip(100) | ps::shard(rank, world) |
             ps::global_batch(12) | ps::workers(workers);
    });
    (void)same([&](std::uint64_t rank, std::uint64_t world) {
      return data | ps::filter([](const auto& one) { return one.shape()[0] != 9; }) |
             ps::bad_samples::skip(100) | ps::shard(rank, world) | ps::global_batch(12) | ps::steps(2) |
             ps::workers(workers);
    });
  }
}

TEST_CASE("run/batch_shapes: substitutes for odd shapes do not depend on the number of ranks") {
  const deadline guard("substitutes on ranks");
  const auto data = ps::generated(48, [](std::uint64_t i) {
    if (i % 12 == 0) throw ps::error(ps::errc::format, {"not an array"});
    return std::vector<std::uint64_t>(i % 2 == 1 ? 2 : 3, i);
  });
  const auto values_on = [&](std::uint64_t world, unsigned workers) {
    std::vector<std::uint64_t> all(48);
    for (std::uint64_t rank = 0; rank < world; ++rank)
      for (auto&& b : (data | ps::bad_samples::replace(48) | ps::shard(rank, world) | ps::global_batch(12) |
                       ps::workers(workers))
                          .epoch(0)) {
        const auto at = b.positions();
        for (std::size_t i = 0; i < at.size(); ++i)
          all[at[i].index] = b.values()[i].data()[0] * 10 + b.values().shape()[1];
      }
    return all;
  };
  const auto one = values_on(1, 0);
  for (const std::uint64_t world : {1u, 2u, 3u, 4u, 6u}) CHECK(values_on(world, 2) == one);
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
