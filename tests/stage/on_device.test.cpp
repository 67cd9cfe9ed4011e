// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/on_device.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/integration/to_dlpack.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace stage_on_device_test {

namespace ps = penstock;
using penstock_test::contains;

namespace {

template <class T>
T load(const std::byte* from, std::size_t i) {
  T value;
  std::memcpy(&value, from + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void store(std::byte* to, std::size_t i, T value) {
  std::memcpy(to + i * sizeof(T), &value, sizeof(T));
}

/// An operation of a user's own: numbers times a factor, as float.
struct times {
  float factor = 2;
  template <class View>
  using output = float;
  template <class View>
  ps::extents shape(const View& view, const ps::device_batch&) const {
    return ps::extents(view.size());
  }
  template <class View>
  void launch(ps::host_stream, const View& view, const ps::device_batch& batch,
              const ps::device_places& places) const {
    using in = typename View::value_type;
    const std::size_t per_slot = batch.slots() == 0 ? 0 : view.size() / batch.slots();
    for (std::size_t i = 0; i < view.size(); ++i)
      store(places.output, i,
            batch.holds(i / per_slot) ? factor * static_cast<float>(load<in>(places.input, i)) : 0.0f);
  }
};

/// A random number is added to each sample: its table has one for each slot.
struct add_random {
  static constexpr std::uint64_t streams = 1;
  template <class View>
  using output = double;
  template <class View>
  ps::extents shape(const View& view, const ps::device_batch&) const {
    return ps::extents(view.size());
  }
  template <class View>
  std::size_t table_bytes(const View&, const ps::device_batch& batch) const {
    return batch.slots() * sizeof(double);
  }
  template <class View>
  void fill_table(const View&, const ps::device_batch& batch, std::span<std::byte> table) const {
    for (std::size_t i = 0; i < batch.slots(); ++i)
      store(table.data(), i, batch.holds(i) ? batch.random(i).uniform() : 0.0);
  }
  template <class View>
  std::size_t scratch_bytes(const View&, const ps::device_batch&) const {
    return 8;
  }
  template <class View>
  void launch(ps::host_stream, const View& view, const ps::device_batch& batch,
              const ps::device_places& places) const {
    store(places.scratch, 0, 1.0);  // kernels may use it
    for (std::size_t i = 0; i < view.size(); ++i)
      store(places.output, i,
            batch.holds(i) ? static_cast<double>(load<typename View::value_type>(places.input, i)) +
                                 load<double>(places.table, i) * load<double>(places.scratch, 0)
                           : 0.0);
  }
};

const auto add_on_host = [](auto x, ps::rng& random) { return static_cast<double>(x) + random.uniform(); };

template <class Plan>
std::vector<double> all_on_device(const Plan& plan, std::uint64_t epochs = 1) {
  std::vector<double> all;
  auto run = plan.open();
  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) {
      const auto view = b.device_view();
      for (std::size_t i = 0; i < view.size(); ++i) all.push_back(static_cast<double>(view.data()[i]));
    }
  return all;
}

ps::pin_and_copy_stage<ps::simulated> to_device() { return ps::pin_and_copy(ps::simulated()); }

using sample = ps::record<ps::field<"a", std::uint8_t>, ps::field<"b", int>>;
sample made_up(std::uint64_t i) { return sample(static_cast<std::uint8_t>(i), static_cast<int>(i) * 10); }

}  // namespace

TEST_CASE("stage/on_device: an operation of one's own makes the column that the device shows") {
  const auto plan = ps::generated(10, made_up) | ps::batch(4) | to_device() | ps::on_device<"b">(times{3});
  static_assert(ps::indexed<decltype(plan)> && ps::elastic<decltype(plan)>);
  std::size_t seen = 0;
  for (auto&& b : plan) {
    const auto made = ps::device_view<"b">(b);
    static_assert(std::is_same_v<decltype(made), const ps::device_array<const float>>);
    REQUIRE(made.shape() == ps::extents(b.size()));
    CHECK(made.data() == b.template device_data<1>());
    CHECK(made.data() == ps::device_data<"b">(b));
    CHECK(static_cast<const void*>(made.data()) != b.template slots_data<1>());
    CHECK(reinterpret_cast<std::uintptr_t>(made.data()) % 64 == 0);
    const auto other = ps::device_view<"a">(b);  // a column that nothing works on is as it was
    static_assert(std::is_same_v<decltype(other), const ps::device_array<const std::uint8_t>>);
    for (std::size_t i = 0; i < b.size(); ++i, ++seen) {
      CHECK(made.data()[i] == static_cast<float>(seen * 30));
      CHECK(other.data()[i] == seen);
      CHECK(ps::get<"b">(b)[i] == static_cast<int>(seen) * 10);  // the host's side stays
    }
  }
  CHECK(seen == 10);
}

TEST_CASE("stage/on_device: each operation gets what the one before it made") {
  const auto plan = ps::from(std::vector<std::int16_t>{1, 2, 3, 4, 5, 6, 7}) | ps::batch(3) | to_device() |
                    ps::on_device(times{2}, times{10}, times{0.5f});
  CHECK(all_on_device(plan) == std::vector<double>{10, 20, 30, 40, 50, 60, 70});
}

TEST_CASE("stage/on_device: stages of several fields, and arrays") {
  using arrays = ps::record<ps::field<"x", std::array<std::uint8_t, 3>>, ps::field<"y", float>>;
  const auto made = [](std::uint64_t i) {
    const auto value = static_cast<std::uint8_t>(i);
    return arrays(std::array<std::uint8_t, 3>{value, value, 1}, static_cast<float>(i));
  };
  const auto plan = ps::generated(6, made) | ps::batch(2) | to_device() | ps::on_device<"y">(times{-1}) |
                    ps::on_device<"x">(times{2}, times{2});
  std::uint64_t i = 0;
  for (auto&& b : plan)
    for (std::size_t k = 0; k < b.size(); ++k, ++i) {
      CHECK(ps::device_view<"x">(b).data()[k * 3 + 1] == static_cast<float>(4 * i));
      CHECK(ps::device_view<"x">(b).data()[k * 3 + 2] == 4.0f);
      CHECK(ps::device_view<"y">(b).data()[k] == -static_cast<float>(i));
    }
  CHECK(i == 6);
}

TEST_CASE("stage/on_device: random numbers are those of a map at the same place") {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  const auto noise = ps::map([](int x, ps::rng& random) { return x + static_cast<int>(random.below(3)); });
  for (const unsigned threads : {0u, 2u}) {
    const auto source = ps::from(values) | ps::shuffle(ps::seed(5)) | ps::workers(threads);
    const auto both = [&](const auto& before, const auto& on_host, const auto& there) {
      const auto batches = ps::batch(7) | to_device();
      const auto expected = all_on_device(before | on_host | batches, 2);
      CHECK(all_on_device(before | batches | there, 2) == expected);
      return expected;
    };
    const auto first = both(source, ps::map(add_on_host), ps::on_device(add_random{}));
    const auto second = both(source | noise, ps::map(add_on_host), ps::on_device(add_random{}));
    CHECK(first != second);
    (void)both(source | noise, ps::map(add_on_host, ps::key("a")), ps::on_device(add_random{}, ps::key("a")));
    // the second operation draws other numbers than the first
    (void)both(source, ps::map(add_on_host, add_on_host), ps::on_device(add_random{}, add_random{}));
    (void)both(source | ps::filter([](int x) { return x % 3 != 0; }), ps::map(add_on_host),
               ps::on_device(add_random{}));
    (void)both(source | ps::shard(ps::world{.rank = 1, .size = 3}), ps::map(add_on_host),
               ps::on_device(add_random{}));
    (void)both(source | ps::seed(9), ps::map(add_on_host), ps::on_device(add_random{}));
  }
}

TEST_CASE("stage/on_device: two stages draw different numbers") {
  const auto made = [](std::uint64_t) { return ps::record<ps::field<"x", int>, ps::field<"y", int>>(0, 0); };
  const auto batches = ps::batch(5) | to_device();
  const auto plan =
      ps::generated(5, made) | batches | ps::on_device<"x">(add_random{}) | ps::on_device<"y">(add_random{});
  const auto host = ps::generated(5, made) | ps::map<"x">(add_on_host) | ps::map<"y">(add_on_host) | batches;
  auto there = plan.open();
  auto here = host.open();
  auto b = there.next();
  auto expected = here.next();
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(ps::device_view<"x">(*b).data()[i] == ps::get<"x">(*expected)[i]);
    CHECK(ps::device_view<"y">(*b).data()[i] == ps::get<"y">(*expected)[i]);
    CHECK(ps::device_view<"x">(*b).data()[i] != ps::device_view<"y">(*b).data()[i]);
  }
}

TEST_CASE("stage/on_device: padding is 0, and the last batch may be short") {
  const std::vector<std::uint8_t> values{1, 2, 3, 4, 5};
  const auto padded =
      ps::from(values) | ps::batch(4, ps::tail::pad) | to_device() | ps::on_device(add_random{});
  const auto all = all_on_device(padded);
  REQUIRE(all.size() == 8);
  CHECK(all[4] >= 5.0);
  CHECK(std::vector<double>(all.begin() + 5, all.end()) == std::vector<double>(3, 0.0));
  const auto short_one = ps::from(values) | ps::batch(4) | to_device() | ps::on_device(add_random{});
  CHECK(all_on_device(short_one) == std::vector<double>(all.begin(), all.begin() + 5));
}

TEST_CASE("stage/on_device: a state goes on with the same numbers, and counts the stage") {
  std::vector<int> values(40);
  std::iota(values.begin(), values.end(), 0);
  const auto before = ps::from(values) | ps::shuffle(ps::seed(3));
  const auto batches = ps::batch(4) | to_device();
  const auto plan = before | batches | ps::on_device(add_random{});
  const auto all = all_on_device(plan);
  auto run = plan.open();
  for (int i = 0; i < 3; ++i) (void)run.next();
  const ps::state state = run.state();
  auto rest = plan.open(state);
  std::size_t at = 12;
  while (auto b = rest.next())
    for (std::size_t i = 0; i < b->size(); ++i) CHECK(b->device_view().data()[i] == all[at++]);
  CHECK(at == 40);
  // the map in its place has the same state, and a plan that draws nothing has another one
  CHECK_NOTHROW((before | ps::map(add_on_host) | batches).open(state));
  CHECK_THROWS_AS((before | batches).open(state), ps::error);
}

TEST_CASE("stage/on_device: DLPack gives what the device has, and the host's side on request") {
  auto run = (ps::generated(6, made_up) | ps::batch(3) | to_device() | ps::on_device<"a">(times{2})).open();
  auto b = run.next();
  const auto there = ps::to_dlpack<"a">(*b), here = ps::to_dlpack_host<"a">(*b);
  CHECK(there->data == ps::device_data<"a">(*b));
  CHECK(there->dtype == ps::dlpack::data_type_of<float>);
  CHECK(there->shape[0] == 3);
  CHECK(here->dtype == ps::dlpack::data_type_of<std::uint8_t>);
  const auto all = ps::to_dlpack(*b);
  CHECK(ps::get<"a">(all)->dtype == ps::dlpack::data_type_of<float>);
  CHECK(ps::get<"b">(all)->dtype == ps::dlpack::data_type_of<int>);
}

TEST_CASE("stage/on_device: columns of map_batch are worked on, too") {
  const auto plan = ps::from({1, 2, 3, 4}) | ps::batch(2) | ps::map_batch([](auto& columns) {
                      return std::vector<float>(columns.size(), static_cast<float>(columns.step()) + 1);
                    }) |
                    to_device() | ps::on_device(times{5});
  CHECK(all_on_device(plan) == std::vector<double>{5, 5, 10, 10});
}

namespace {

/// Fails for one batch, while it is measured or while it is launched.
struct failing {
  bool early = false;
  template <class View>
  using output = int;
  template <class View>
  ps::extents shape(const View& view, const ps::device_batch&) const {
    if (early && view.data()[0] >= 4) throw ps::error(ps::errc::shape, "of no use");
    return ps::extents(view.size());
  }
  template <class View>
  void launch(ps::host_stream, const View& view, const ps::device_batch&, const ps::device_places&) const {
    if (view.data()[0] >= 4) throw ps::error(ps::errc::io, "did not start");
  }
};

}  // namespace

TEST_CASE("stage/on_device: the batches before one that an operation refuses are delivered") {
  for (const bool early : {true, false}) {
    std::atomic<int> made{0};
    auto run = (ps::generated(8,
                              [&made](std::uint64_t i) {
                                ++made;
                                return static_cast<int>(i);
                              }) |
                ps::workers(2) | ps::batch(2) | ps::prefetch(4) | to_device() | ps::on_device(failing{early}))
                   .open();
    REQUIRE(run.next());
    // until the third one is ready, so that its copy begins before the second one is delivered
    for (int i = 0; i < 1000 && made < 6; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    auto second = run.next();
    REQUIRE(second);
    CHECK(second->begin()[1] == 3);
    CHECK(run.next().failure != nullptr);
    CHECK_FALSE(run.next());
  }
}

TEST_CASE("stage/on_device: an operation that throws ends the run with its error") {
  for (const bool early : {true, false}) {
    for (const unsigned threads : {0u, 2u}) {
      auto run = (ps::from({0, 1, 2, 3, 4, 5, 6, 7}) | ps::workers(threads) | ps::batch(2) | ps::prefetch(2) |
                  to_device() | ps::on_device(failing{early}))
                     .open();
      std::size_t seen = 0;
      std::string what;
      try {
        for (auto&& b : run) seen += b.size();
      } catch (const ps::error& e) {
        what = e.what();
        CHECK(e.stage() == "on_device");
      }
      CHECK(seen == 4);
      CHECK_THAT(what, contains(early ? "of no use" : "did not start"));
      CHECK_FALSE(run.next());
    }
  }
}

namespace {

/// Counts how often it is connected, and works through what that made.
struct connecting {
  int* connected = nullptr;
  struct work {
    int calls = 0;
    template <class View>
    using output = int;
    template <class View>
    ps::extents shape(const View& view, const ps::device_batch&) const {
      return ps::extents(view.size());
    }
    template <class View>
    void launch(ps::host_stream, const View& view, const ps::device_batch&, const ps::device_places& places) {
      ++calls;
      for (std::size_t i = 0; i < view.size(); ++i) store(places.output, i, calls);
    }
  };
  [[nodiscard]] work connect(int device) const {
    ++*connected;
    CHECK(device == 0);
    return {};
  }
};

}  // namespace

TEST_CASE("stage/on_device: an operation may have something of its own in each run") {
  int connected = 0;
  const auto plan =
      ps::from({1, 2, 3, 4}) | ps::batch(2) | to_device() | ps::on_device(connecting{&connected});
  CHECK(connected == 0);
  CHECK(all_on_device(plan) == std::vector<double>{1, 1, 2, 2});
  CHECK(all_on_device(plan) == std::vector<double>{1, 1, 2, 2});
  CHECK(connected == 2);
}

TEST_CASE("stage/on_device: describe names it") {
  const auto plan = ps::generated(4, made_up) | ps::batch(2) | to_device() | ps::on_device<"a">(times{});
  CHECK_THAT(ps::describe(plan), contains("on_device<\"a\">"));
}

}  // namespace stage_on_device_test
