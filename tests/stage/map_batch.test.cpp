// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/map_batch.hpp>

#include <penstock/codec/text.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::error_of;
using penstock_test::first_ints;

namespace {

/// All numbers of a column, whether a span or an array.
const auto numbers_of = [](const auto& view) {
  if constexpr (requires { view.flat(); })
    return view.flat();
  else if constexpr (requires { view.values(); })
    return view.values();
  else
    return view;
};
const auto itself = [](std::uint64_t i) { return i; };
const auto twice_each = [](auto& columns) {
  for (auto& x : numbers_of(columns.values())) x *= 2;
};
/// Writes the batch and place of each value into it, and adds a random number.
const auto noisy_batch = [](auto& columns, ps::rng& random) {
  std::uint64_t place = 0;
  for (auto& x : columns.values()) x = x * 1000 + 100 * (place++ % 10) + random.below(100);
};

using image = std::array<float, 3>;
using labelled = ps::record<ps::field<"image", image>, ps::field<"label", int>>;

std::vector<labelled> images(int n) {
  std::vector<labelled> all;
  for (int i = 0; i < n; ++i) {
    const auto x = static_cast<float>(i);
    all.emplace_back(image{x, x + 1, x + 2}, i % 3);
  }
  return all;
}

/// Subtracts the batch's mean in place.
const auto centred = [](auto& columns) {
  const auto values = ps::get<"image">(columns);
  float sum = 0;
  for (std::size_t i = 0; i < columns.valid_size() * 3; ++i) sum += values.data()[i];
  const float mean = columns.valid_size() == 0 ? 0 : sum / static_cast<float>(columns.valid_size() * 3);
  for (std::size_t i = 0; i < columns.valid_size() * 3; ++i) values.data()[i] -= mean;
};

/// A user's collate function: new columns of other types, one as long as the batch, one of a single
/// value.
const auto collated = [](auto& columns) {
  const auto labels = ps::get<"label">(columns);
  std::vector<std::uint8_t> one_hot(labels.size() * 3, 0);
  for (std::size_t i = 0; i < columns.valid_size(); ++i)
    one_hot[i * 3 + static_cast<std::size_t>(labels[i])] = 1;
  return ps::record<ps::field<"image", ps::tensor_view<float>>,
                    ps::field<"target", std::vector<std::uint8_t>>,
                    ps::field<"count", std::array<std::uint64_t, 1>>>(
      ps::get<"image">(columns), std::move(one_hot), std::array<std::uint64_t, 1>{columns.valid_size()});
};

/// An array expression of shape (rows, 2) with the numbers from `first` on.
struct counted_up {
  using unfinished = void;
  using value_type = int;
  std::size_t rows;
  int first;
  [[nodiscard]] ps::extents shape() const { return ps::extents(rows, std::size_t{2}); }
  void write_to(int* into) const {
    for (std::size_t i = 0; i < rows * 2; ++i) into[i] = first + static_cast<int>(i);
  }
  [[nodiscard]] ps::tensor_view<const int> finish() const { return {nullptr, ps::extents(0)}; }
};

}  // namespace

TEST_CASE("stage/map_batch: values are changed in place, with any number of workers") {
  const auto plan = ps::from(first_ints(100)) | ps::batch(8) | ps::map_batch(twice_each);
  for (const unsigned workers : {0u, 1u, 4u}) {
    const auto values = penstock_test::values_of(plan, workers);
    REQUIRE(values.size() == 100);
    for (int i = 0; i < 100; ++i) REQUIRE(values[static_cast<std::size_t>(i)] == 2 * i);
  }
  // equal to that work done in the consumer's loop
  std::size_t rows = 0;
  for (auto&& b : (ps::from(images(50)) | ps::batch(16) | ps::map_batch(centred)).epoch(0)) {
    const auto values = ps::get<"image">(b);
    STATIC_REQUIRE(std::is_same_v<decltype(values), const ps::tensor_view<float>>);
    REQUIRE(values.shape() == ps::extents(b.size(), std::size_t{3}));
    float sum = 0;
    for (const float x : values.flat()) sum += x;
    CHECK(std::abs(sum) < 1e-3f);
    REQUIRE(ps::get<"label">(b)[1] == static_cast<int>((rows + 1) % 3));
    rows += b.size();
  }
  CHECK(rows == 50);
}

TEST_CASE("stage/map_batch: several in a row, each gets the previous one's result") {
  const auto plan = ps::from(images(20)) | ps::batch(8) | ps::map_batch([](auto& columns) {
                      for (int& x : ps::get<"label">(columns)) x += 10;
                    }) |
                    ps::map_batch([](auto& columns) {
                      const auto labels = ps::get<1>(columns);
                      return std::vector<double>(labels.begin(), labels.end());
                    }) |
                    ps::map_batch([](auto& columns) {
                      static_assert(std::is_same_v<decltype(columns.values()), std::span<double>>);
                      for (double& x : columns) x /= 2;
                    }) |
                    ps::map_batch([](auto& columns) {  // new columns of this type
                      std::vector<double> all(columns.begin(), columns.end());
                      all.push_back(-1);
                      return all;
                    });
  for (const unsigned workers : {0u, 1u, 4u}) {
    int row = 0;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0)) {
      const std::span<const double> values = b.values();
      REQUIRE(values.size() == b.size() + 1);
      for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(values[i] == (row++ % 3 + 10) / 2.0);
      REQUIRE(values[b.size()] == -1);
    }
    CHECK(row == 20);
  }
}

TEST_CASE("stage/map_batch: a collate function makes columns of other names, types and shapes") {
  const auto plan = ps::from(images(20)) | ps::batch(8) | ps::map_batch(collated);
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::size_t row = 0;
    std::uint64_t counted = 0;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0)) {
      const auto target = ps::get<"target">(b);
      STATIC_REQUIRE(std::is_same_v<decltype(target), const std::span<std::uint8_t>>);
      REQUIRE(target.size() == b.size() * 3);
      STATIC_REQUIRE(std::is_same_v<decltype(ps::get<0>(b)), ps::tensor_view<float>>);
      REQUIRE(ps::get<"image">(b).shape() == ps::extents(b.size(), std::size_t{3}));
      for (std::size_t i = 0; i < b.size(); ++i, ++row) {
        REQUIRE(target[3 * i + row % 3] == 1);
        REQUIRE(ps::get<"image">(b)[i].data()[2] == static_cast<float>(row + 2));
      }
      REQUIRE(ps::get<"count">(b)[0] == b.size());
      counted += ps::get<2>(b)[0];
    }
    CHECK(row == 20);
    CHECK(counted == 20);
  }
  // bytes delivered count the new columns
  auto run = plan.open();
  while (auto b = run.next()) {
  }
  CHECK(run.counters().bytes == 20 * (3 * 4 + 3) + 3 * 8);
}

TEST_CASE("stage/map_batch: an array expression writes itself to the batch; whole_tensor has a shape") {
  const auto plan = ps::from(first_ints(10)) | ps::batch(4);
  int first = 0;
  for (auto&& b : (plan | ps::map_batch([](auto& c) {
                     return counted_up{c.size(), c.values()[0]};
                   })).epoch(0)) {
    REQUIRE(b.values().shape() == ps::extents(b.size(), std::size_t{2}));
    for (std::size_t i = 0; i < b.size() * 2; ++i)
      REQUIRE(b.values().data()[i] == first + static_cast<int>(i));
    first += 4;
  }
  for (auto&& b : (plan | ps::map_batch([](auto& c) {
                     ps::whole_tensor<short> made;
                     short* to = made.resize(ps::extents(std::size_t{2}, c.size()));
                     for (std::size_t i = 0; i < 2 * c.size(); ++i) *to++ = static_cast<short>(i);
                     return made;
                   })).epoch(0)) {
    REQUIRE(b.values().shape() == ps::extents(std::size_t{2}, b.size()));
    REQUIRE(b.values()[1].data()[0] == static_cast<short>(b.size()));
  }
}

TEST_CASE("stage/map_batch: ragged and padded columns look as in the batch") {
  std::vector<std::string> texts;
  for (int i = 0; i < 21; ++i)
    texts.emplace_back(static_cast<std::size_t>(i % 5), static_cast<char>('a' + i));
  const auto decoded = ps::from(texts) | ps::decode<ps::text>;
  const auto upper = [](auto& columns) {
    for (std::size_t i = 0; i < columns.values().size(); ++i)
      for (char& c : columns.values()[i]) c = static_cast<char>(c - 'a' + 'A');
  };
  const auto lengths = [](auto& columns) {
    std::vector<int> all(columns.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(columns.values()[i].size());
    return all;
  };
  const auto check = [&](const auto& plan) {
    for (const unsigned workers : {0u, 2u}) {
      std::size_t row = 0;
      for (auto&& b : (plan | ps::map_batch(upper) | ps::workers(workers)).epoch(0))
        for (std::size_t i = 0; i < b.size(); ++i, ++row) {
          const auto text = b.values()[i];
          REQUIRE(std::string(text.begin(), text.end()) ==
                  std::string(row % 5, static_cast<char>('A' + static_cast<int>(row))));
        }
      CHECK(row == 21);
      row = 0;
      for (auto&& b : (plan | ps::map_batch(upper) | ps::map_batch(lengths) | ps::workers(workers)).epoch(0))
        for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(b.values()[i] == static_cast<int>(row++ % 5));
      CHECK(row == 21);
    }
  };
  const auto all = ps::filter([](const auto&) { return true; });
  check(decoded | ps::batch(4, ps::ragged));
  check(decoded | ps::batch(4, ps::pad_to_longest));
  check(decoded | all | ps::batch(4, ps::ragged));
  check(decoded | all | ps::batch(4, ps::pad_to_longest));

  // arrays whose shape is known at run time, stacked
  const std::vector<std::vector<float>> rows(10, std::vector<float>(7, 3.0f));
  for (auto&& b : (ps::from(rows) | ps::batch(4) | ps::map_batch(twice_each)).epoch(0)) {
    REQUIRE(b.values().shape() == ps::extents(b.size(), std::size_t{7}));
    for (const float x : b.values().flat()) REQUIRE(x == 6.0f);
  }
}

TEST_CASE("stage/map_batch: random numbers depend on the step: any workers, any stop") {
  const auto plan =
      ps::generated(60, itself) | ps::shuffle(ps::seed(3)) | ps::batch(8) | ps::map_batch(noisy_batch);
  const auto alone = penstock_test::values_of(plan, 0);
  for (const unsigned workers : {1u, 4u}) CHECK(penstock_test::values_of(plan, workers) == alone);
  engine_test::check_all_stops(plan);
  engine_test::check_all_stops(ps::generated(60, itself) | ps::shuffle_buffer(9) |
                               ps::filter(engine_test::odd_thirds) | ps::batch(4) |
                               ps::map_batch(noisy_batch));
  engine_test::check_all_stops(ps::generated(60, itself) | ps::batch(8) |
                               ps::map_batch([](auto& c, ps::rng& r) {
                                 std::vector<std::uint64_t> all{c.step(), c.epoch(), c.values()[0], r()};
                                 all.resize(8);
                                 return all;
                               }));
}

TEST_CASE("stage/map_batch: each random function has its own stream; the others take none") {
  const auto draw = [](auto& columns, ps::rng& random) {
    for (auto& x : columns.values()) x = random();
  };
  const auto batches = ps::generated(64, itself) | ps::batch(8);
  const auto other_seed = ps::generated(64, itself) | ps::shuffle(ps::seed(5)) | ps::batch(8);
  const auto values = [](const auto& plan) { return penstock_test::values_of(plan, 2); };
  const auto one = values(batches | ps::map_batch(draw));
  CHECK(values(batches | ps::map_batch(twice_each) | ps::map_batch(draw)) == one);
  CHECK(values(batches | ps::map_batch(draw) | ps::map_batch(draw)) != one);
  CHECK(values(other_seed | ps::map_batch(draw)) != one);
  const auto keyed = values(batches | ps::map_batch(draw, ps::key("noise")));
  CHECK(keyed != one);
  CHECK(values(batches | ps::map_batch(draw) | ps::map_batch(draw, ps::key("noise"))) == keyed);
  // every step and every rank draws different numbers
  auto sorted = one;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  const auto rank = [&](std::uint64_t r) {
    return values(ps::generated(64, itself) | ps::shard(r, 2) | ps::batch(4) | ps::map_batch(draw));
  };
  CHECK(rank(0) != rank(1));
}

TEST_CASE("stage/map_batch: padding is visible and recognisable") {
  const auto add = [](auto& columns) {
    std::size_t told = 0;
    for (const std::uint8_t one : columns.valid()) told += one;
    return std::vector<std::uint64_t>{columns.size(), columns.valid_size(), told, columns.values().back(),
                                      columns.global_size()};
  };
  const auto told = [&](const auto& plan) {
    std::vector<std::vector<std::uint64_t>> all;
    for (auto&& b : (plan | ps::map_batch(add)).epoch(0))
      all.emplace_back(b.values().begin(), b.values().end());
    return all;
  };
  using lists = std::vector<std::vector<std::uint64_t>>;
  const auto source = ps::generated(10, itself);
  CHECK(told(source | ps::batch(8)) == lists{{8, 8, 8, 7, 8}, {2, 2, 2, 9, 2}});
  CHECK(told(source | ps::batch(8, ps::tail::drop)) == lists{{8, 8, 8, 7, 8}});
  CHECK(told(source | ps::batch(8, ps::tail::pad)) == lists{{8, 8, 8, 7, 8}, {8, 2, 2, 0, 2}});
  const auto all = ps::filter([](std::uint64_t) { return true; });
  CHECK(told(source | all | ps::batch(8)) == lists{{8, 8, 8, 7, 8}, {2, 2, 2, 9, 2}});
  CHECK(told(source | all | ps::batch(8, ps::tail::drop)) == lists{{8, 8, 8, 7, 8}});
  CHECK(told(source | all | ps::batch(8, ps::tail::pad)) == lists{{8, 8, 8, 7, 8}, {8, 2, 2, 0, 2}});

  // ranks without samples in the last step
  std::size_t called = 0, rows = 0, batches = 0, empty = 0;
  for (const std::uint64_t rank : {0u, 1u, 2u})
    for (auto&& b : (ps::generated(13, itself) | ps::shard(rank, 3) | ps::batch(4) | ps::workers(0) |
                     ps::map_batch([&called](auto& c) {
                       ++called;
                       return std::vector<int>(c.size(), 5);
                     })).epoch(0)) {
      CHECK(b.values().size() == b.size());
      rows += b.size();
      ++batches;
      if (b.size() == 0) ++empty;
    }
  CHECK(rows == 13);
  CHECK(batches == 6);
  CHECK(empty == 2);
  CHECK(called == 4);
}

TEST_CASE("stage/map_batch: the holes of bad samples are marked") {
  const auto risky = ps::map([](std::uint64_t i) {
    if (i % 5 == 3) throw ps::error(ps::errc::format, "bad");
    return i + 1;
  });
  for (const unsigned workers : {0u, 1u, 4u}) {
    std::size_t good = 0;
    for (auto&& b : (ps::generated(20, itself) | risky | ps::bad_samples::skip(100) | ps::batch(8) |
                     ps::workers(workers) | ps::map_batch([](auto& c) {
                       for (std::size_t i = 0; i < c.size(); ++i)
                         c.values()[i] += c.valid()[i] * 1000 + c.valid_size() * 10'000;
                     })).epoch(0)) {
      for (std::size_t i = 0; i < b.size(); ++i) {
        const std::uint64_t number = b.step() * 8 + i;
        REQUIRE(b.values()[i] == (number % 5 == 3 ? 0 : 1000 + number + 1) + b.valid_size() * 10'000);
      }
      good += b.valid_size();
    }
    CHECK(good == 16);
  }
}

TEST_CASE("stage/map_batch: after a filter and over a forward source it runs in the consumer") {
  const auto odd = ps::filter([](std::uint64_t x) { return x % 2 == 1; });
  for (const unsigned workers : {0u, 1u, 3u}) {
    const auto values = penstock_test::values_of(
        ps::generated(100, itself) | odd | ps::batch(8) | ps::map_batch(twice_each), workers);
    REQUIRE(values.size() == 50);
    for (std::size_t i = 0; i < 50; ++i) REQUIRE(values[i] == 2 * (2 * i + 1));
    // chunks that are exactly one batch, and batches within a chunk, are changed once
    const auto forward = ps::plan(engine_test::counting_source(100));
    for (const std::uint64_t size : {1u, 7u, 100u, 300u}) {
      const auto all =
          penstock_test::values_of(forward | ps::batch(size) | ps::map_batch(twice_each), workers);
      REQUIRE(all.size() == 100);
      for (std::size_t i = 0; i < 100; ++i) REQUIRE(all[i] == 2 * i);
      const auto within = penstock_test::values_of(
          ps::generated(5000, itself) | odd | ps::batch(size) | ps::map_batch(twice_each), workers);
      REQUIRE(within.size() == 2500);
      for (std::size_t i = 0; i < 2500; ++i) REQUIRE(within[i] == 2 * (2 * i + 1));
    }
    std::size_t steps = 0;
    for (auto&& b :
         (ps::from(images(30)) | ps::filter([](const labelled& s) { return ps::get<"label">(s) != 1; }) |
          ps::batch(8) | ps::map_batch(collated) | ps::workers(workers))
             .epoch(0)) {
      for (std::size_t i = 0; i < b.size(); ++i) {
        CHECK(ps::get<"target">(b)[3 * i + 1] == 0);
        CHECK(ps::get<"target">(b)[3 * i] + ps::get<"target">(b)[3 * i + 2] == 1);
      }
      CHECK(ps::get<"count">(b)[0] == b.size());
      steps += 1;
    }
    CHECK(steps == 3);
  }
  // a batch left out by skip is not processed
  std::vector<std::uint64_t> seen;
  for (auto&& b : (ps::generated(40, itself) | odd | ps::batch(4) | ps::skip(2) | ps::take(2) |
                   ps::map_batch([&seen](auto& c) {
                     seen.push_back(c.values()[0]);
                   })).epoch(0))
    CHECK(b.size() == 4);
  CHECK(seen == std::vector<std::uint64_t>{17, 25});
}

TEST_CASE("stage/map_batch: a device gets the functions' results") {
  const ps::simulated accelerator(ps::simulated::options{std::chrono::microseconds(1), 1e9});
  const auto check = [&](const auto& batches) {
    for (const unsigned workers : {0u, 1u, 3u}) {
      std::size_t rows = 0;
      for (auto&& b :
           batches | ps::map_batch(centred) | ps::pin_and_copy(accelerator) | ps::workers(workers)) {
        REQUIRE(b.template device_data<0>() != static_cast<const void*>(ps::get<0>(b).data()));
        REQUIRE(std::memcmp(b.template device_data<0>(), ps::get<0>(b).data(), b.size() * sizeof(image)) ==
                0);
        REQUIRE(std::memcmp(b.template device_data<1>(), ps::get<1>(b).data(), b.size() * sizeof(int)) == 0);
        float sum = 0;
        for (const float x : ps::get<"image">(b).flat()) sum += x;
        REQUIRE(std::abs(sum) < 1e-2f);
        rows += b.size();
      }
      CHECK(rows == 50);
      rows = 0;
      for (auto&& b :
           batches | ps::map_batch(collated) | ps::pin_and_copy(accelerator) | ps::workers(workers)) {
        REQUIRE(std::memcmp(b.template device_data<1>(), ps::get<"target">(b).data(), b.size() * 3) == 0);
        std::uint64_t count = 0;
        std::memcpy(&count, b.template device_data<2>(), sizeof(count));
        REQUIRE(count == b.size());
        rows += b.size();
      }
      CHECK(rows == 50);
    }
  };
  const auto source = ps::from(images(50));
  check(source | ps::batch(8));
  check(source | ps::filter([](const labelled&) { return true; }) | ps::batch(8));
}

TEST_CASE("stage/map_batch: a failure comes at its batch, after all before it, and ends the run") {
  const auto check = [&](const auto& batches, const auto& function, const std::string& sentence) {
    for (const unsigned workers : {0u, 1u, 4u}) {
      auto run = (batches | ps::map_batch(function) | ps::workers(workers)).open();
      std::size_t before = 0;
      std::string said;
      try {
        for (auto&& b : run.epoch(0)) before += b.step() == before ? 1 : 100;
      } catch (const ps::error& e) {
        said = e.what();
        CHECK(e.stage() == "map_batch");
        REQUIRE(e.at().has_value());
        CHECK(*e.at() == ps::position{0, 40});
      } catch (const std::runtime_error& e) {
        said = e.what();
      }
      CHECK(before == 5);
      CHECK(said.find(sentence) != std::string::npos);
      CHECK(run.stopped());
      CHECK(run.state().step == 5);
    }
  };
  const auto ours = [](auto& c) {
    if (c.step() == 5) throw ps::error(ps::errc::argument, "no such thing");
  };
  const auto theirs = [](auto& c) -> std::vector<int> {
    if (c.step() >= 5) throw std::runtime_error("out of luck");
    return std::vector<int>(c.size());
  };
  const auto all = ps::filter([](std::uint64_t) { return true; });
  const auto source = ps::generated(100, itself);
  check(source | ps::batch(8), ours, "no such thing");
  check(source | ps::batch(8), theirs, "out of luck");
  check(source | all | ps::batch(8), ours, "no such thing");
  check(source | all | ps::batch(8), theirs, "out of luck");

  // a batch with a failed sample is not processed
  std::atomic<std::size_t> calls{0};
  const auto risky = ps::map([](std::uint64_t i) {
    if (i == 20) throw ps::error(ps::errc::format, "bad");
    return i;
  });
  const auto plan =
      source | risky | ps::batch(8) | ps::workers(0) | ps::map_batch([&calls](auto&) { ++calls; });
  CHECK(error_of([&] {
          for (auto&& b : plan) CHECK(b.size() == 8);
        }).find("bad") != std::string::npos);
  CHECK(calls == 2);
}

TEST_CASE("stage/map_batch: batches may be held, and outlive the run") {
  using handle =
      typename decltype((ps::from(images(20)) | ps::batch(4) | ps::prefetch(8) | ps::map_batch(collated))
                            .open())::value_type;
  std::vector<handle> held;
  {
    auto run = (ps::from(images(20)) | ps::batch(4) | ps::prefetch(8) | ps::map_batch(collated)).open();
    while (auto b = run.next()) held.push_back(std::move(*b));
  }
  REQUIRE(held.size() == 5);
  for (std::size_t i = 0; i < held.size(); ++i)
    CHECK(ps::get<"image">(held[i]).data()[0] == static_cast<float>(4 * i));
}

TEST_CASE("stage/map_batch: it does not change guarantees, the sequence and other facts") {
  const auto batches = ps::generated(64, itself) | ps::shuffle(ps::seed(1)) | ps::batch(8);
  const auto plan = batches | ps::map_batch(noisy_batch);
  using plan_type = decltype(plan);
  STATIC_REQUIRE(ps::indexed<plan_type>);
  STATIC_REQUIRE(ps::deterministic<plan_type>);
  STATIC_REQUIRE(ps::resumable<plan_type>);
  STATIC_REQUIRE(ps::elastic<plan_type>);
  STATIC_REQUIRE(ps::lockstep<plan_type>);
  CHECK(ps::sequence_fingerprint(plan) == ps::sequence_fingerprint(batches));
  CHECK(ps::random_fingerprint(plan) != 0);
  CHECK(ps::describe(plan).find("map_batch") != std::string::npos);
  CHECK(ps::describe(plan).find("new columns") == std::string::npos);
  CHECK(ps::describe(plan | ps::map_batch([](auto& c) { return std::vector<int>(c.size()); }))
            .find("new columns of map_batch: written or copied into the batch") != std::string::npos);
  // in a segment, and after annotations
  const auto tail = ps::batch(8) | ps::workers(1) | ps::map_batch(twice_each);
  CHECK(penstock_test::values_of(ps::generated(64, itself) | tail)[63] == 126);
  STATIC_REQUIRE(!ps::can_connect<decltype(ps::generated(64, itself)), decltype(ps::map_batch(twice_each))>);
  STATIC_REQUIRE(!ps::can_connect<plan_type, decltype(ps::map_batch([](int) {}))>);

  // its cost is reported
  auto run = (batches | ps::map_batch(twice_each) | ps::workers(1)).open();
  while (auto b = run.next()) {
  }
  const auto counters = run.counters();
  REQUIRE(counters.stages.size() == 2);
  CHECK(counters.stages[1].name == "map_batch");
  CHECK(counters.stages[1].busy_seconds > 0);
}

TEST_CASE("stage/map_batch: a stopped run ends, whatever its functions are doing") {
  const penstock_test::deadline guard("map_batch stops");
  for (int i = 0; i < 20; ++i) {
    auto run =
        (ps::generated(1'000'000, itself) | ps::batch(16) | ps::map_batch(noisy_batch) | ps::workers(3))
            .open();
    int seen = 0;
    for (auto&& b : run.epoch(0)) {
      if (++seen == i + 1) run.request_stop();
      (void)b;
    }
  }
  SUCCEED();
}
