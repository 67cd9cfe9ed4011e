// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3_options.hpp>

#include "support/catch.hpp"

#include <chrono>

namespace ps = penstock;

TEST_CASE("storage/s3_options: what is the default, and what is set by name") {
  const ps::s3_options options;
  CHECK(options.verify_checksums);
  CHECK_FALSE(options.requester_pays);
  CHECK_FALSE(options.identity.credentials);
  CHECK_FALSE(options.environment);
  CHECK(options.connection.connections == 64);
  const ps::s3_options set{.place = {.region = "auto", .endpoint = "https://storage.googleapis.com"},
                           .identity = {.credentials = ps::s3_credentials()},
                           .connection = {.connections = 64}};
  CHECK(set.place.addressing == ps::s3_addressing::automatic);
  CHECK(set.identity.credentials->anonymous());
}
