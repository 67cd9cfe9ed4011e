// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `checked` around `cached`: what was compared is in the cache.

#include <penstock/core/error.hpp>
#include <penstock/storage/cached.hpp>
#include <penstock/storage/checked.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/stamped_files.hpp"
#include "support/temp_dir.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

namespace checked_cached_test {

std::string noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string made(size, '\0');
  for (char& one : made) one = static_cast<char>(random());
  return made;
}

TEST_CASE("storage/checked_cached: each block is fetched once, by the comparison") {
  penstock_test::deadline guard("checked around cached");
  constexpr std::uint64_t block = std::uint64_t{512} << 10;
  const std::string contents[] = {noise(5'000'000, 1), noise(12 * block, 2), noise(100, 3)};
  penstock_test::stamped_files files;
  std::uint64_t blocks = 0, total = 0;
  for (const std::string& one : contents) {
    files.files = files.files.add("o" + std::to_string(one[0]) + std::to_string(one.size()), one);
    blocks += (one.size() + block - 1) / block;
    total += one.size();
  }
  const ps::simulated_storage far(files, {.latency = std::chrono::microseconds(20)});
  const ps::sha256_list list = ps::sha256_of(files.files);
  const penstock_test::temp_dir folder;
  const ps::checked where(ps::cached(far, ps::disk_cache(folder.path().string(), 64_MiB, {.block = block})),
                          list);
  {
    const auto session = where.connect();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 100; ++i) {
          const auto id = static_cast<ps::object_id>(random() % 3);
          const std::size_t offset = random() % contents[id].size();
          std::string got(random() % (contents[id].size() - offset + 1) % 100'000, ' ');
          session.read(id, offset, {reinterpret_cast<std::byte*>(got.data()), got.size()});
          if (got != contents[id].substr(offset, got.size())) ++wrong;
        }
      });
    for (std::thread& one : threads) one.join();
    CHECK(wrong == 0);
    CHECK(session.report().counters.fetched == blocks);
    CHECK(session.report().counters.uncached == 0);
    CHECK(far.reads() == blocks);
    CHECK(far.bytes() == total);
  }
  // the next session compares again, out of the cache
  const auto session = where.connect();
  std::byte one{};
  for (ps::object_id id = 0; id < 3; ++id) session.read(id, 0, {&one, 1});
  CHECK(far.reads() == blocks);

  // what the run will read is of use to the cache
  CHECK(session.access_plan().self != nullptr);
  session.plan_read(0, 0, 100, 3);

  // what does not match is no byte of the list, wherever it lies
  const ps::checked other(ps::cached(far, ps::disk_cache(folder.path().string(), 64_MiB, {.block = block})),
                          ps::sha256_list({{far.names()[0], {}}}));
  CHECK_THROWS_AS(other.connect().read(0, 0, {&one, 1}), ps::error);
  CHECK(far.reads() == blocks);
}

}  // namespace checked_cached_test
