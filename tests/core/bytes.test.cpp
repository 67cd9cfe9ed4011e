// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/bytes.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace ps = penstock;

static_assert(!std::is_copy_constructible_v<ps::buffer>, "a buffer is never copied by accident");
static_assert(std::is_nothrow_move_constructible_v<ps::buffer> &&
                  std::is_nothrow_move_assignable_v<ps::buffer>,
              "a buffer moves without throwing");

TEST_CASE("core/bytes: a text and its bytes share memory") {
  const std::string text = "water";
  CHECK(ps::text_of(ps::bytes_of(text)) == text);
  CHECK(ps::bytes_of(text).data() == static_cast<const void*>(text.data()));
  CHECK(ps::bytes_of("").empty());
}

TEST_CASE("core/bytes: size literals are powers of two") {
  using namespace ps::literals;
  CHECK(3_KiB == 3072);
  CHECK(1_MiB == 1024_KiB);
  CHECK(1_GiB == 1024_MiB);
}

TEST_CASE("core/bytes: a buffer is aligned and allocates only to grow") {
  CHECK(penstock_test::allocations_of([] { const ps::buffer none; }) == 0);
  ps::buffer b;
  CHECK(b.data() == nullptr);
  b.resize_for_overwrite(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % ps::buffer::alignment == 0);
  CHECK(b.size() == 1000);
  CHECK(b.capacity() >= 1000);
  const auto* const before = b.data();
  CHECK(penstock_test::allocations_of([&] {
          b.resize_for_overwrite(0);
          b.resize_for_overwrite(10);
          b.clear();
          b.resize_for_overwrite(1000);
        }) == 0);
  CHECK(b.data() == before);
  CHECK(b.view().size() == 1000);
  CHECK(b.span().data() == b.data());
}

TEST_CASE("core/bytes: append keeps the contents and seldom allocates") {
  ps::buffer b;
  std::string expected;
  const auto allocations = penstock_test::allocations_of([&] {
    for (int i = 0; i < 1000; ++i) {
      const char letter = static_cast<char>('a' + i % 26);
      b.append(ps::bytes_of({&letter, 1}));
    }
  });
  for (int i = 0; i < 1000; ++i) expected += static_cast<char>('a' + i % 26);
  CHECK(ps::text_of(b.view()) == expected);
  CHECK(allocations < 15);
  b.append({});
  CHECK(b.size() == 1000);
}

TEST_CASE("core/bytes: a part of a buffer can be appended to it") {
  ps::buffer b;
  b.append(ps::bytes_of("water"));
  while (b.size() < 1000) b.append(b.view());
  CHECK(b.size() % 5 == 0);
  CHECK(ps::text_of(b.view()).substr(b.size() - 10) == "waterwater");
}

TEST_CASE("core/bytes: a moved-from buffer has no memory") {
  ps::buffer first(10);
  const auto* const memory = first.data();
  ps::buffer second(std::move(first));
  CHECK(second.data() == memory);
  CHECK(first.data() == nullptr);
  CHECK(first.size() == 0);
  ps::buffer third(20);
  third = std::move(second);
  CHECK(third.data() == memory);
  CHECK(third.size() == 10);
  CHECK(second.capacity() == 0);
  second.resize_for_overwrite(5);
  CHECK(second.size() == 5);
}

TEST_CASE("core/bytes: an impossible size is refused, whatever its bits") {
  ps::buffer b(8);
  const std::size_t maximum = std::numeric_limits<std::size_t>::max();
  for (const std::size_t size :
       {maximum, maximum - 63, maximum / 5 * 4 + 1, maximum / 5 * 4 + 4, maximum / 2, maximum / 4 + 1}) {
    CHECK_THROWS_AS(b.resize_for_overwrite(size), std::bad_alloc);
    CHECK(b.size() == 8);
  }
}
