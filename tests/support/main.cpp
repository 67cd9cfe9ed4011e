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

#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PENSTOCK_TEST_THREAD_SANITIZER 1
#endif
#endif
#if defined(PENSTOCK_TEST_THREAD_SANITIZER)
// Suppressed are reads of discarded nodes by Boost's queue (see run/lockfree.hpp), and the release of an
// exception that several threads have thrown: the sanitizer does not see the counting of its owners, which
// libstdc++ does in code of its own. So are pages that the guard of mappings puts in the place of lost ones
// while other threads read them, which ask afterwards whether anything was lost. Everything else is reported.
extern "C" const char* __tsan_default_suppressions();  // NOLINT: the sanitizer's name
extern "C" const char* __tsan_default_suppressions() {
  return "race:boost::lockfree::queue\nrace:boost::lockfree::detail::freelist_stack\n"
         "race:std::__exception_ptr::exception_ptr::_M_release\n"
         "race:penstock::v0_1::detail::guarded_ranges::replace\n";
}
#endif

int main(int argc, char* argv[]) {
  // Sources keep indexes in the user's cache folder, where no test should leave or find any.
  const penstock_test::temp_dir caches;
  ::setenv("XDG_CACHE_HOME", caches.path().c_str(), 1);
  return Catch::Session().run(argc, argv);
}
