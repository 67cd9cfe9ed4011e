// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/concepts.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace storage_concepts_test {

namespace ps = penstock;

/// The least that a session has.
struct least {
  [[nodiscard]] static std::uint64_t size(ps::object_id) { return 8; }
  [[nodiscard]] static ps::object_version version(ps::object_id) { return {8, 3}; }
  static void read(ps::object_id, std::uint64_t, ps::mutable_bytes into) {
    std::fill(into.begin(), into.end(), std::byte{5});
  }
};
static_assert(ps::storage_session<least> && !ps::mapped_session<least>);
static_assert(!ps::background_session<least> && !ps::planning_session<least> && !ps::abandons<least>());

/// Declares nothing of what it inherits.
struct not_shown : ps::memory_files::session {
  static constexpr ps::session_traits traits = {};
};
static_assert(ps::mapped_session<ps::memory_files::session> && !ps::mapped_session<not_shown>);

TEST_CASE("storage/concepts: a session of three members is one, and every function does without the rest") {
  least session;
  CHECK_FALSE(ps::session_traits_of<least>().latency);
  CHECK_FALSE(ps::session_traits_of<least>().prefetches);
  CHECK_FALSE(ps::is_mapped(session, 0));
  CHECK_FALSE(ps::is_resident(session, 0));
  CHECK_FALSE(ps::is_tagged(session, 0));
  CHECK_FALSE(ps::expect_version(session, 0, {8, 3}));
  CHECK(ps::has_version(session, 0, {8, 3}));
  ps::confirm(session, 0);
  ps::will_need(session, 0, 0, 8);
  ps::cancel_reads(session);
  ps::end_reads(session);
  CHECK(ps::report_of(session).max_in_flight == 0);
  CHECK(ps::limits_of(session).max_in_flight == 0);

  const ps::session_view seen(session);
  CHECK_FALSE(seen.in_background());
  CHECK_FALSE(seen.abandons());
  CHECK_FALSE(seen.views());
  seen.cancel();
  seen.end_reads();
  const ps::object_bytes four = seen.range(0, 0, 4);
  CHECK(four.view()[3] == std::byte{5});
}

TEST_CASE("storage/concepts: what is always shown in place is mapped and resident") {
  auto session = ps::memory_files().add("a", "text").connect();
  CHECK(ps::all_mapped<ps::memory_files::session>());
  CHECK(ps::is_mapped(session, 0));
  CHECK(ps::is_resident(session, 0));
}

TEST_CASE("storage/concepts: one of several can abandon, prefetch and show all if each of them can") {
  using far = ps::simulated_storage<ps::memory_files>::session;
  constexpr ps::session_traits mixed = ps::detail::traits_of_one_of<ps::file::session, far>();
  CHECK(mixed.latency);
  CHECK(mixed.mapped == ps::mapped_objects::some);
  CHECK_FALSE(mixed.prefetches);
  constexpr ps::session_traits local =
      ps::detail::traits_of_one_of<ps::file::session, ps::mapped_file::session>();
  CHECK(local.mapped == ps::mapped_objects::some);
  CHECK(local.prefetches);
  CHECK(ps::detail::traits_of_one_of<ps::mapped_file::session, ps::memory_files::session>().mapped ==
        ps::mapped_objects::all);
  CHECK(ps::detail::traits_of_one_of<far, least>().mapped == ps::mapped_objects::none);
}

}  // namespace storage_concepts_test
