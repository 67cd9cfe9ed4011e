// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/disk_cache.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace ps = penstock;
using namespace ps::literals;

namespace disk_cache_test {

std::string refusal(const std::string& folder, std::uint64_t limit, ps::disk_cache_options options = {}) {
  try {
    const ps::disk_cache made(folder, limit, options);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return std::string(e.message());
  }
  return "none";
}
bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

TEST_CASE("storage/disk_cache: what makes no sense is refused when it is written") {
  CHECK(refusal("x", 1_GiB) == "none");
  CHECK(refusal("x", 1_GiB, {.block = 128_KiB}) == "none");
  CHECK(refusal("x", 1_GiB, {.block = 16_MiB}) == "none");
  CHECK(contains(refusal("", 1_GiB), "needs the path of a folder"));
  CHECK(contains(refusal("x", 8_MiB), "has no room for a block of 8388608 bytes"));
  CHECK(contains(refusal("x", 1_GiB, {.block = 64_KiB}), "a power of two of bytes from 128 KiB to 16 MiB"));
  CHECK(contains(refusal("x", 1_GiB, {.block = 100'000}), "not 100000 bytes"));
  CHECK(contains(refusal("x", 1_GiB, {.block = 32_MiB}), "not 33554432 bytes"));
  CHECK(contains(refusal("x", 1_GiB, {.max_wait = std::chrono::milliseconds(-1)}), "less than 0 ms"));
}

TEST_CASE("storage/disk_cache: it says what it is, and makes nothing before a run begins") {
  const ps::disk_cache near("no_such_folder_is_made", 64_MiB, {.evict = ps::eviction::fifo});
  CHECK(near.describe() == "disk_cache(no_such_folder_is_made, 67108864 bytes)");
  CHECK(near.folder() == "no_such_folder_is_made");
  CHECK(near.limit() == 64_MiB);
  CHECK(near.options().evict == ps::eviction::fifo);
  CHECK(near.options().block == 8_MiB);
}

}  // namespace disk_cache_test
