// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/threaded_reads.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/read_outcomes.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

/// A session whose reads wait for a gate.
struct gated_session : ps::memory_files::session {
  static constexpr ps::session_traits traits = {};  // shows nothing in place
  std::atomic<bool>* open;
  gated_session(ps::memory_files::session files, std::atomic<bool>& gate)
      : ps::memory_files::session(std::move(files)), open(&gate) {}
  void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
    while (!open->load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    ps::memory_files::session::read(id, offset, into);
  }
};

}  // namespace

TEST_CASE("storage/threaded_reads: reads for a session, and reports each read once, also failures") {
  auto session = ps::memory_files().add("a", "0123456789").connect();
  std::array<std::byte, 10> into{}, beyond{};
  const std::vector<ps::read_request> requests{{0, 0, ps::mutable_bytes(into).first(4), 0},
                                               {0, 4, ps::mutable_bytes(into).last(6), 1},
                                               {0, 8, beyond, 2},
                                               {0, 0, ps::mutable_bytes(into).first(4), 3}};
  penstock_test::read_outcomes seen(4);
  ps::threaded_reads reads(session, {}, 2);
  reads.read_many({requests.data(), 3}, seen.listener());
  seen.wait(3);
  reads.read_many({&requests[3], 1}, seen.listener());
  seen.wait();
  CHECK(seen.each_once());
  CHECK(seen.failures() == 1);
  CHECK(seen.failed(2));
  CHECK(seen.failures(ps::errc::stopped) == 0);
  CHECK(ps::text_of(into) == "0123456789");
}

TEST_CASE("storage/threaded_reads: reads that have not started can be cancelled, as the destructor does") {
  std::atomic<bool> open{false};
  gated_session session(ps::memory_files().add("a", "0123456789").connect(), open);
  std::vector<std::byte> into(1000);
  std::vector<ps::read_request> requests;
  for (std::byte& one : into) requests.push_back({0, 0, {&one, 1}, requests.size()});
  penstock_test::read_outcomes first(1000), second(1000);
  {
    ps::threaded_reads reads(session, {}, 2);
    reads.read_many(requests, first.listener());
    reads.cancel();
    open = true;
    first.wait();
    CHECK(first.failures(ps::errc::stopped) >= 998);
    reads.read_many(requests, second.listener());
  }
  CHECK(first.each_once());
  CHECK(second.each_once());
  CHECK(second.failures() == second.failures(ps::errc::stopped));
}
