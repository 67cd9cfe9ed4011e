// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/cold_copy.hpp>

#include "support/catch.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace ps = penstock;

namespace cold_copy_test {

std::vector<std::byte> some_bytes(std::size_t n) {
  std::vector<std::byte> made(n);
  for (std::size_t i = 0; i < n; ++i) made[i] = static_cast<std::byte>(i * 37 + i / 251);
  return made;
}

TEST_CASE("base/cold_copy: copies ranges of every size, and nothing beside them") {
  const std::vector<std::byte> from = some_bytes(100'000);
  const std::size_t sizes[] = {0, 1, 63, 64, 65, 1000, 1023, 1024, 1025, 2048, 3000, 10'240, 32'767};
  ps::detail::cold_copy copy;
  for (const std::size_t size : sizes) {
    // one after another with a gap, then backwards, then one that overlaps the one before
    for (const std::size_t at : {std::size_t{0}, size + 512, size / 2, std::size_t{7}, 100'000 - size}) {
      std::vector<std::byte> into(size + 2, std::byte{0xee});
      copy({into.data() + 1, size}, from.data() + at);
      INFO(size << " bytes from " << at);
      CHECK(std::equal(into.begin() + 1, into.end() - 1, from.begin() + static_cast<std::ptrdiff_t>(at)));
      CHECK(into.front() == std::byte{0xee});
      CHECK(into.back() == std::byte{0xee});
    }
  }
}

TEST_CASE("base/cold_copy: needs no memory behind the range") {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const two = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(two != MAP_FAILED);
  auto* const first = static_cast<std::byte*>(two);
  const std::vector<std::byte> content = some_bytes(page);
  std::memcpy(first, content.data(), page);
  REQUIRE(::munmap(first + page, page) == 0);
  ps::detail::cold_copy copy;
  std::vector<std::byte> into(page);
  copy(ps::mutable_bytes(into).first(page - 100), first);
  copy(ps::mutable_bytes(into).last(100), first + page - 100);
  CHECK(into == content);
  ::munmap(first, page);
}

}  // namespace cold_copy_test
