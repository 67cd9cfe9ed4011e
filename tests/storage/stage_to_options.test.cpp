// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/stage_to.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/held_storage.hpp"
#include "support/temp_dir.hpp"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace stage_to_options_test {

struct watcher {
  void operator()(const ps::stage_progress&);
};
struct other {
  void operator()(int);
};
template <class Watcher>
constexpr bool watches =
    requires(Watcher watch) { ps::stage_to(ps::memory_files(), "folder", ps::stage_options{}, watch); };
static_assert(watches<watcher> && watches<int (*)(ps::stage_progress)>);
static_assert(!watches<other> && !watches<void (*)(ps::stage_progress&)>);

TEST_CASE("storage/stage_options: so many requests are in flight, of one object or of several") {
  const penstock_test::deadline guard("stage_to, requests in flight");
  const penstock_test::temp_dir dir;
  ps::memory_files files;
  SECTION("of one") { files.add("a", std::string(4500, 'x')); }
  SECTION("of several") {
    for (const char* const name : {"a", "b", "c", "d", "e"}) files.add(name, std::string(900, 'x'));
  }
  const penstock_test::held_storage far(files);
  std::thread other([&] {
    penstock_test::eventually([&] { return far.reads->count() == 3; });
    for (std::size_t begun = 3; begun < 5; ++begun) {
      CHECK(far.reads->begun() == begun);  // none begins before another one has ended
      far.reads->end(0);
      penstock_test::eventually([&] { return far.reads->begun() == begun + 1; });
      CHECK(far.reads->count() == 3);
    }
    far.reads->end_all();
  });
  ps::stage_progress last;
  (void)ps::stage_to(far, dir.path().string(), {.max_in_flight = 3, .part_size = 1000},
                     [&](const ps::stage_progress& now) { last = now; });
  other.join();
  CHECK(far.reads->begun() == 5);
  CHECK(last.fetched == 4500);
}

TEST_CASE("storage/stage_options: without options 8 requests of 8 MiB") {
  const ps::stage_options usual;
  CHECK(usual.max_in_flight == 8);
  CHECK(usual.part_size == 8 * 1024 * 1024);
  CHECK_FALSE(usual.stop.stop_possible());
}

}  // namespace stage_to_options_test
