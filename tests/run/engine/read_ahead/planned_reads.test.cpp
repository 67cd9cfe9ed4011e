// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/read_ahead/range_list.hpp>

#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <vector>

namespace ps = penstock;

namespace planned_reads_test {

/// A session that keeps what it is told, or does not want to know.
struct planning : ps::memory_files::session {
  struct heard {
    std::vector<std::uint64_t> numbers;
    bool has_room = true;
    int forgotten = 0;
  };
  heard* into;

  explicit planning(heard* given)
      : ps::memory_files::session(ps::memory_files().add("a", "bytes").connect()), into(given) {}
  [[nodiscard]] ps::access_plan_sink access_plan() const {
    return {into, [](void* self) { return static_cast<heard*>(self)->has_room; },
            [](void* self, std::uint64_t row, std::uint64_t seen, bool ends) noexcept {
              for (const std::uint64_t one : {row, seen, std::uint64_t{ends}})
                static_cast<heard*>(self)->numbers.push_back(one);
            },
            [](void* self) noexcept { ++static_cast<heard*>(self)->forgotten; }};
  }
  void plan_read(ps::object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const {
    for (const std::uint64_t one : {std::uint64_t{id}, offset, size, row}) into->numbers.push_back(one);
  }
};

TEST_CASE("run/planned_reads: each session hears of its own ranges, and all of them where the run stands") {
  planning::heard first, second;
  planning one(&first), other(&second), silent(nullptr);
  auto plain = ps::memory_files().add("a", "bytes").connect();
  ps::planned_reads all;
  CHECK(all.has_room());
  all.stand_at(7);
  all(one, 0, 1, 2);
  all(silent, 0, 1, 2);
  all(plain, 0, 1, 2);
  all.stand_at(8);
  all(other, 0, 3, 1);
  all(one, 0, 4, 1);
  all.tell(5, 9, true);
  CHECK(first.numbers == std::vector<std::uint64_t>{0, 1, 2, 7, 0, 4, 1, 8, 5, 9, 1});
  CHECK(second.numbers == std::vector<std::uint64_t>{0, 3, 1, 8, 5, 9, 1});
  CHECK(all.has_room());
  second.has_room = false;
  CHECK_FALSE(all.has_room());
  all.forget();
  CHECK(first.forgotten + second.forgotten == 2);
}

TEST_CASE("run/planned_reads: behind a sample that is not known yet nothing is told, and nothing twice") {
  planning::heard first;
  planning one(&first);
  ps::planned_reads all;
  all.begin();
  for (const std::uint64_t row : {3u, 4u, 5u, 6u}) {
    all.stand_at(row);
    if (row == 5)
      all.unknown();
    else
      all(one, 0, row, 1);
  }
  CHECK_FALSE(all.all_known());
  CHECK(first.numbers == std::vector<std::uint64_t>{0, 3, 1, 3, 0, 4, 1, 4});
  first.numbers.clear();
  all.begin();
  for (const std::uint64_t row : {3u, 4u, 5u, 6u}) {
    all.stand_at(row);
    all(one, 0, row, 1);
  }
  CHECK(all.all_known());
  CHECK(first.numbers == std::vector<std::uint64_t>{0, 5, 1, 5, 0, 6, 1, 6});
  all.forget();
  all.begin();
  all.stand_at(0);
  all(one, 0, 0, 1);
  CHECK(first.numbers.size() == 12);
}

}  // namespace planned_reads_test
