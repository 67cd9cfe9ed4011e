// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/fingerprint.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <set>
#include <string>

namespace ps = penstock;

namespace fingerprint_test {

template <class... Ts>
constexpr std::uint64_t of(const Ts&... values) {
  return ps::fingerprint().add(values...).value();
}

static_assert(of("shuffle", 7) == of("shuffle", 7),
              "the same values give the same sum, at compile time as well");

}  // namespace fingerprint_test

TEST_CASE("core/fingerprint: accidental differences are noticed") {
  using fingerprint_test::of;
  enum class tail { keep, drop };
  const std::string zero(1, '\0');
  const std::set<std::uint64_t> sums{of(),
                                     of(0),
                                     of(1),
                                     of(0, 0),
                                     of(1, 2),
                                     of(2, 1),
                                     of("a"),
                                     of("b"),
                                     of("ab"),
                                     of("a", "b"),
                                     of("b", "a"),
                                     of(zero),
                                     of("12345678"),
                                     of("12345678", 9),
                                     of("123456789"),
                                     of("shuffle", 7),
                                     of("shuffle", 8),
                                     of("repeat", 7)};
  CHECK(sums.size() == 18);
  CHECK(of(tail::keep) != of(tail::drop));
}

TEST_CASE("core/fingerprint: the type of a number or a text does not matter") {
  using fingerprint_test::of;
  CHECK(of(std::uint8_t{5}) == of(std::int64_t{5}));
  CHECK(of(std::string("abc")) == of("abc"));
}

TEST_CASE("core/fingerprint: sums are equal on every machine") {
  // They are kept in states: if a value changes, old states are refused.
  CHECK(ps::fingerprint().value() == 0x70656e73746f636bu);
  CHECK(fingerprint_test::of("shuffle", 7) == 0x180775df1d090eb7u);
}
