// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/mapping/device_works.hpp>

#include "support/catch.hpp"

#include <penstock/device/simulated.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/on_device.hpp>
#include <penstock/stage/pin_and_copy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace run_engine_device_works_test {

namespace ps = penstock;

namespace {

/// Notes what it is told of a batch, and writes what its table says.
struct noting {
  std::vector<std::string>* notes;
  int number = 0;
  template <class View>
  using output = int;
  template <class View>
  ps::extents shape(const View&, const ps::device_batch& batch) const {
    std::string text = std::to_string(number) + ":";
    for (std::size_t i = 0; i < batch.slots(); ++i) text += batch.holds(i) ? '1' : '0';
    notes->push_back(text + (batch.has_holes() ? "h" : "") + std::to_string(batch.valid()));
    return ps::extents(batch.slots());
  }
  template <class View>
  std::size_t table_bytes(const View&, const ps::device_batch& batch) const {
    return number == 2 ? 0 : batch.slots() * sizeof(int);
  }
  template <class View>
  void fill_table(const View&, const ps::device_batch& batch, std::span<std::byte> table) const {
    CHECK(table.size() == batch.slots() * sizeof(int));
    for (std::size_t i = 0; i < batch.slots(); ++i)
      std::memcpy(table.data() + i * sizeof(int), &number, sizeof(int));
  }
  template <class View>
  void launch(ps::host_stream, const View&, const ps::device_batch& batch,
              const ps::device_places& places) const {
    if (number == 2)
      for (std::size_t i = 0; i < batch.slots(); ++i)
        std::memcpy(places.output + i * sizeof(int), &number, sizeof(int));
    else
      std::memcpy(places.output, places.table, batch.slots() * sizeof(int));
  }
};

}  // namespace

TEST_CASE("run/engine/workers/device_works: operations are told of padding and holes") {
  std::vector<std::string> notes;
  const auto fails = [](int x) {
    if (x == 1) throw ps::error(ps::errc::format, "of no use");
    return x;
  };
  auto run = (ps::from({0, 1, 2, 3, 4}) | ps::map(fails) | ps::bad_samples::skip(1) |
              ps::batch(3, ps::tail::pad) | ps::pin_and_copy(ps::simulated()) | ps::on_device(noting{&notes}))
                 .open();
  for (auto&& b : run) (void)b;
  CHECK(notes == std::vector<std::string>{"0:101h3", "0:1102"});
}

TEST_CASE("run/engine/workers/device_works: each operation has its own part of the table, and of memory") {
  std::vector<std::string> notes;
  using sample = ps::record<ps::field<"a", int>, ps::field<"b", int>>;
  auto run =
      (ps::from(std::vector<sample>(3)) | ps::batch(3) | ps::pin_and_copy(ps::simulated()) |
       ps::on_device<"b">(noting{&notes, 1}, noting{&notes, 2}) | ps::on_device<"a">(noting{&notes, 3}))
          .open();
  auto b = run.next();
  CHECK(ps::device_view<"a">(*b).data()[2] == 3);
  CHECK(ps::device_view<"b">(*b).data()[2] == 2);
  CHECK(notes == std::vector<std::string>{"1:1113", "2:1113", "3:1113"});
}

}  // namespace run_engine_device_works_test
