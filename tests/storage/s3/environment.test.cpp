// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3/environment.hpp>

#include "support/catch.hpp"

#include <cstdlib>
#include <string>

namespace ps = penstock;

TEST_CASE("storage/s3/environment: values that were given; an empty one counts as none") {
  const ps::s3_environment some({{"AWS_REGION", "r"}, {"AWS_PROFILE", ""}, {"AWS_REGION", "later"}});
  CHECK(some.value("AWS_REGION") == "r");
  CHECK_FALSE(some.value("AWS_PROFILE").has_value());
  CHECK_FALSE(some.value("AWS_REGIO").has_value());
  CHECK_FALSE(ps::s3_environment().value("HOME").has_value());
}

TEST_CASE("storage/s3/environment: that of the process, of which only some variables are kept") {
  const ps::s3_environment here = ps::s3_environment::of_process();
  const char* const home = std::getenv("HOME");
  CHECK(here.value("HOME").value_or("") == std::string(home == nullptr ? "" : home));
  CHECK_FALSE(here.value("PATH").has_value());
}
