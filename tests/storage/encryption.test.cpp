// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/encryption.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <string_view>

namespace ps = penstock;

namespace encryption_test {
template <class T>
concept printable = requires(std::ostream& out, const T& value) { out << value; };

static_assert(!printable<ps::encryption_key> && !std::equality_comparable<ps::encryption_key>);
static_assert(!std::convertible_to<ps::bytes_view, ps::encryption_key>, "keys are made on purpose");
static_assert(ps::key_provider<ps::one_key> && !ps::key_provider<ps::encryption_key>);

TEST_CASE("storage/encryption: a key has 32 bytes, which no error shows") {
  const std::string text = "take the bytes from your vault!!";
  const ps::encryption_key key(ps::bytes_of(text));
  CHECK(ps::text_of(key.bytes()) == text);
  const ps::one_key all(key);
  CHECK(ps::text_of(all("a.tar").bytes()) == text);
  for (const std::size_t size : {0u, 16u, 31u}) {
    try {
      (void)ps::encryption_key(ps::bytes_of(text).first(size));
      CHECK(false);
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::argument);
      CHECK(std::string_view(e.what()).find("take") == std::string_view::npos);
    }
  }
  CHECK_THROWS_AS(ps::encryption_key(ps::bytes_of(text + "?")), ps::error);
}

TEST_CASE("storage/encryption: what is destroyed leaves nothing in its memory") {
  alignas(ps::one_key) std::array<std::byte, sizeof(ps::one_key)> room{};
  ps::one_key* const made =
      ::new (room.data()) ps::one_key(ps::encryption_key(ps::bytes_of("take the bytes from your vault!!")));
  CHECK(std::ranges::any_of(room, [](std::byte b) { return b != std::byte{}; }));
  std::destroy_at(made);
  std::array<std::byte, sizeof(ps::one_key)> left;
  std::memcpy(left.data(), room.data(), left.size());
  CHECK(std::ranges::all_of(left, [](std::byte b) { return b == std::byte{}; }));
}

}  // namespace encryption_test
