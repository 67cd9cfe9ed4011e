// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/storage/components.hpp>

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/uring_file.hpp>

#include "support/catch.hpp"

namespace ps = penstock;

TEST_CASE("storage/components: what is declared is what the headers define") {
  STATIC_REQUIRE(ps::storage<ps::http>);
  STATIC_REQUIRE(ps::storage<ps::s3>);
  STATIC_REQUIRE(ps::storage<ps::uring_file>);
}
