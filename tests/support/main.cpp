// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one main function of all test programs, and with Catch2 2.13 the one place that compiles Catch2 itself.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "support/temp_dir.hpp"

#include <cstdlib>

int main(int argc, char* argv[]) {
  // Sources keep indexes in the user's cache folder, where no test should leave or find any.
  const penstock_test::temp_dir caches;
  ::setenv("XDG_CACHE_HOME", caches.path().c_str(), 1);
  return Catch::Session().run(argc, argv);
}
