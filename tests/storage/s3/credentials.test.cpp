// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/credentials.hpp>

#include "support/catch.hpp"

#include <concepts>
#include <ostream>
#include <type_traits>
#include <utility>

namespace ps = penstock;

TEST_CASE("storage/s3/credentials: the default is nobody, and a copy is equal") {
  const ps::s3_credentials nobody;
  CHECK(nobody.anonymous());
  CHECK_FALSE(nobody.expires().has_value());
  ps::s3_credentials one{"id", "secret", "token", std::chrono::sys_seconds(std::chrono::seconds(7))};
  CHECK_FALSE(one.anonymous());
  const ps::s3_credentials copy = one;
  CHECK(copy == one);
  CHECK(copy.expires() == one.expires());
  const ps::s3_credentials moved = std::move(one);
  CHECK(moved == copy);
  one = moved;
  CHECK(one == copy);
  one = {};
  CHECK(one == nobody);
  CHECK(copy != ps::s3_credentials("id", "secret", "other"));
  CHECK(copy != ps::s3_credentials("id", "other", "token"));
  CHECK(copy != ps::s3_credentials("other", "secret", "token"));
}

namespace {
template <class T>
concept s3_streamable = requires(std::ostream& out, const T& value) { out << value; };
template <class T>
concept s3_describable = requires(const T& value) { describe(value); };
}  // namespace

TEST_CASE("storage/s3/credentials: nothing prints them") {
  STATIC_REQUIRE_FALSE(s3_streamable<ps::s3_credentials>);
  STATIC_REQUIRE_FALSE(s3_describable<ps::s3_credentials>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<ps::s3_credentials, std::string>);
}
