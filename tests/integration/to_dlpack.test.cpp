// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/to_dlpack.hpp>

#include <penstock/core/half.hpp>
#include <penstock/core/record.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/integration/from_dlpack.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pack.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace dl = penstock::dlpack;

namespace {

using sample = ps::record<ps::field<"x", std::array<float, 3>>, ps::field<"y", std::int64_t>>;

sample numbered(std::uint64_t i) {
  const auto f = static_cast<float>(i);
  return sample(std::array<float, 3>{f, 2 * f, 3 * f}, static_cast<std::int64_t>(i));
}

/// An image of height 2 + i % 2 and width 3, whose elements are its number.
struct picture {
  using unfinished = void;
  using value_type = std::uint8_t;
  std::uint64_t number, height;
  [[nodiscard]] ps::extents shape() const { return ps::extents(height, 3, 2); }
  void write_to(const ps::destination<std::uint8_t>& into) const {
    into.fill_from([this] { return static_cast<std::uint8_t>(number); });
  }
};

template <class T>
std::vector<T> values_in(const ps::dlpack_tensor& t) {
  const auto* const from = static_cast<const T*>(t->data);
  return {from, from + t.shape().elements()};
}

}  // namespace

TEST_CASE("integration/to_dlpack: a field as a tensor, in the batch's own memory") {
  const auto plan = ps::generated(40, numbered) | ps::batch(10) | ps::workers(2);
  auto run = plan.open();
  auto batch = run.next();
  REQUIRE(batch);
  const auto x = ps::to_dlpack<"x">(*batch);
  CHECK(x->data == ps::get<"x">(*batch).data());
  CHECK(x.shape() == ps::extents(10, 3));
  CHECK(x->strides[0] == 3);
  CHECK(x->strides[1] == 1);
  CHECK(x->dtype == dl::data_type_of<float>);
  CHECK(x->device == dl::device{});
  CHECK(x->byte_offset == 0);
  CHECK(x.get()->version.major == 1);
  CHECK(x.get()->flags == 0);
  CHECK(ps::to_dlpack_host<"x">(*batch)->data == x->data);
  static_cast<float*>(x->data)[4] = 99;  // the memory is writable
  CHECK(ps::get<"x">(*batch)(1, 1) == 99);
}

TEST_CASE("integration/to_dlpack: a batch of records is a record of tensors, in which it lives on") {
  std::vector<decltype(ps::to_dlpack(*(ps::generated(1, numbered) | ps::batch(1)).open().next()))> kept;
  {
    auto run = (ps::generated(30, numbered) | ps::batch(10) | ps::prefetch(4) | ps::workers(1)).open();
    for (auto&& b : run.epoch(0)) kept.push_back(ps::to_dlpack(b));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    auto& [x, y] = kept[i];
    CHECK(values_in<std::int64_t>(y)[3] == static_cast<std::int64_t>(10 * i + 3));
    CHECK(values_in<float>(ps::get<"x">(kept[i]))[3 * 9 + 2] == 3 * static_cast<float>(10 * i + 9));
    CHECK(x->ndim == 2);
  }
  std::jthread([&] { kept.clear(); }).join();  // deleted in another thread
}

TEST_CASE("integration/to_dlpack: a consumer that keeps every tensor is told to") {
  auto run = (ps::generated(4000, numbered) | ps::batch(10) | ps::prefetch(2) | ps::workers(1)).open();
  std::vector<ps::dlpack_tensor> kept;
  std::optional<std::string> refused;
  for (int i = 0; i < 50 && !refused; ++i) {
    auto batch = run.next();
    if (batch)
      kept.push_back(ps::to_dlpack<"y">(*batch));
    else
      try {
        std::rethrow_exception(batch.failure);
      } catch (const ps::error& e) {
        refused = e.what();
      }
  }
  REQUIRE(refused);
  CHECK(refused->find("you hold") != std::string::npos);
}

TEST_CASE("integration/to_dlpack: in a batch without records, values of each kind") {
  auto run =
      (ps::generated(8, [](std::uint64_t i) { return ps::half(static_cast<float>(i)); }) | ps::batch(4))
          .open();
  auto halves = run.next();
  const auto t = ps::to_dlpack(*halves);
  CHECK(t->dtype == dl::data_type{dl::type_code::floating, 16});
  CHECK(t.shape() == ps::extents(4));
  CHECK(values_in<ps::half>(t)[3] == 3.0f);
}

TEST_CASE("integration/to_dlpack: ragged, padded, of unequal shapes, channels first and pitched") {
  const auto lists =
      ps::generated(3, [](std::uint64_t i) { return std::vector<std::int32_t>(i + 1, int(i)); });
  {
    auto run = (lists | ps::batch(3, ps::ragged)).open();
    auto batch = run.next();
    const auto t = ps::to_dlpack(*batch);
    CHECK(values_in<std::int32_t>(t.values) == std::vector<std::int32_t>{0, 1, 1, 2, 2, 2});
    CHECK(values_in<std::uint64_t>(t.offsets) == std::vector<std::uint64_t>{0, 1, 3, 6});
  }
  {
    auto run = (lists | ps::batch(3, ps::pad_to_longest)).open();
    auto batch = run.next();
    const auto t = ps::to_dlpack(*batch);
    CHECK(t.values.shape() == ps::extents(3, 3));
    CHECK(values_in<std::int32_t>(t.values) == std::vector<std::int32_t>{0, 0, 0, 1, 1, 0, 2, 2, 2});
    CHECK(values_in<std::uint64_t>(t.lengths) == std::vector<std::uint64_t>{1, 2, 3});
    CHECK(values_in<std::uint8_t>(t.mask) == std::vector<std::uint8_t>{1, 0, 0, 1, 1, 0, 1, 1, 1});
  }
  const auto pictures = ps::generated(2, [](std::uint64_t i) { return picture{i + 1, 2 + i}; });
  {
    auto run = (pictures | ps::batch(2, ps::pad_to_largest)).open();
    auto batch = run.next();
    const auto t = ps::to_dlpack(*batch);
    CHECK(t.values.shape() == ps::extents(2, 3, 3, 2));
    REQUIRE(t.sizes.shape() == ps::extents(2, 3));
    const auto* const sizes = static_cast<const std::uint64_t*>(t.sizes->data);
    CHECK(sizes[0] == 2);
    CHECK(sizes[t.sizes->strides[0]] == 3);
    CHECK(sizes[t.sizes->strides[0] + 1] == 3);
    CHECK(sizes[t.sizes->strides[0] + 2] == 2);
  }
  const auto equal = ps::generated(2, [](std::uint64_t i) { return picture{i + 1, 2}; });
  {
    auto run = (equal | ps::batch(2, ps::channels_first)).open();
    auto batch = run.next();
    CHECK(ps::to_dlpack(*batch).shape() == ps::extents(2, 2, 2, 3));
  }
  {
    auto run = (equal | ps::batch(2, ps::pitched<64>)).open();
    auto batch = run.next();
    const auto t = ps::to_dlpack(*batch);
    CHECK(t.shape() == ps::extents(2, 2, 3, 2));
    CHECK(t->strides[3] == 1);
    CHECK(t->strides[2] == 64);
    CHECK(t->strides[1] == 3 * 64);
    CHECK(static_cast<const std::uint8_t*>(t->data)[t->strides[0]] == 2);
  }
}

TEST_CASE("integration/to_dlpack: packed rows are one tensor, on a device too") {
  const auto lists =
      ps::generated(4, [](std::uint64_t i) { return std::vector<std::int32_t>(i + 1, int(i) + 1); });
  const auto length = [](std::uint64_t i) { return i + 1; };
  const auto rows = lists | ps::pack(length, 6, {.how = ps::packing::in_order}) | ps::batch(2);
  const std::vector<std::int32_t> expected{1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 0, 0};
  {
    auto run = rows.open();
    auto batch = run.next();
    const ps::dlpack_tensor t = ps::to_dlpack(*batch);
    CHECK(t.shape() == ps::extents(2, 6));
    CHECK(values_in<std::int32_t>(t) == expected);
  }
  auto run = (rows | ps::pin_and_copy(ps::simulated{})).open();
  auto batch = run.next();
  CHECK(batch->device_view().shape() == ps::extents(2, 6));
  const auto* const copied = static_cast<const std::int32_t*>(batch->device_data());
  CHECK(std::vector<std::int32_t>(copied, copied + 12) == expected);
}

TEST_CASE("integration/to_dlpack: batches without samples, or of several in one block, or gathered") {
  auto run =
      (ps::generated(64, [](std::uint64_t i) { return static_cast<std::int32_t>(i); }) | ps::batch(4)).open();
  std::int32_t next = 0;
  for (auto&& b : run.epoch(0)) {
    const auto t = ps::to_dlpack(b);
    CHECK(values_in<std::int32_t>(t)[0] == next);
    next += 4;
  }
  auto odd = (ps::generated(64, [](std::uint64_t i) { return static_cast<std::int32_t>(i); }) |
              ps::filter([](std::int32_t x) { return x % 2 == 1; }) | ps::batch(4))
                 .open();
  auto first = odd.next();
  CHECK(values_in<std::int32_t>(ps::to_dlpack(*first)) == std::vector<std::int32_t>{1, 3, 5, 7});
}

TEST_CASE("integration/to_dlpack: of a device that copies, what is there") {
  const ps::simulated accelerator;
  auto run =
      (ps::generated(8, numbered) | ps::batch(4) | ps::pin_and_copy(accelerator) | ps::workers(1)).open();
  auto batch = run.next();
  REQUIRE(batch);
  const auto there = ps::to_dlpack<"y">(*batch), here = ps::to_dlpack_host<"y">(*batch);
  CHECK(there->data == batch->template device_data<1>());
  CHECK(here->data == ps::get<"y">(*batch).data());
  CHECK(there->data != here->data);
  CHECK(values_in<std::int64_t>(there) == values_in<std::int64_t>(here));
}

TEST_CASE("integration/to_dlpack: in a loop") {
  std::int64_t samples = 0;
  const auto consume = [&](dl::managed_tensor_versioned* given) {
    samples += given->dl_tensor.shape[0];
    given->deleter(given);
  };
  auto run = (ps::generated(40, [](std::uint64_t i) { return i; }) | ps::batch(8)).open();
  for (auto&& b : run.epoch(0)) consume(ps::to_dlpack(b).release());
  CHECK(samples == 40);
}

TEST_CASE("integration/to_dlpack: there and back") {
  std::optional<ps::dlpack_array<std::int64_t>> array;
  {
    auto run = (ps::generated(8, numbered) | ps::batch(8)).open();
    array = ps::from_dlpack<std::int64_t>(ps::to_dlpack<"y">(*run.next()));
  }
  CHECK(array->size() == 8);
  CHECK((*array)[5]() == 5);
}
