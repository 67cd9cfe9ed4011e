// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/records/shard_sample.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ps = penstock;

namespace shard_sample_test {

/// Shows its only object in place, and has no `read` that is told how to copy.
struct showing {
  static constexpr ps::session_traits traits = {.mapped = ps::mapped_objects::some};
  std::vector<std::byte> bytes = std::vector<std::byte>(5000, std::byte{7});
  mutable int reads = 0;

  [[nodiscard]] std::uint64_t size(ps::object_id) const { return bytes.size(); }
  [[nodiscard]] static ps::object_version version(ps::object_id) { return {}; }
  void read(ps::object_id, std::uint64_t, ps::mutable_bytes) const { ++reads; }
  static void will_need(ps::object_id, std::uint64_t, std::uint64_t) {}
  [[nodiscard]] static bool mapped(ps::object_id) { return true; }
  [[nodiscard]] ps::bytes_view view(ps::object_id, std::uint64_t offset, std::uint64_t n) const {
    return ps::bytes_view(bytes).subspan(offset, n);
  }
  static void confirm(ps::object_id) {}
};
static_assert(ps::mapped_session<showing>);

TEST_CASE("source/shard_sample: what is copied from a view in order is confirmed, like what is shown") {
  showing session;
  ps::detail::copying_worker<showing> worker;
  std::vector<std::byte> into(4000);
  worker.begin(session, true);
  worker.read(0, 1000, {});
  CHECK_FALSE(worker.needs_confirm());
  worker.read(0, 1000, into);
  CHECK(into == std::vector<std::byte>(4000, std::byte{7}));
  CHECK(worker.needs_confirm());
  CHECK(session.reads == 0);
  worker.begin(session, false);
  CHECK_FALSE(worker.needs_confirm());
  worker.read(0, 1000, into);
  CHECK_FALSE(worker.needs_confirm());  // the session's `read` checks its own bytes
  CHECK(session.reads == 1);
}

}  // namespace shard_sample_test
