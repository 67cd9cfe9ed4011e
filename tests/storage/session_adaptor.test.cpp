// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/session_adaptor.hpp>

#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace session_adaptor_test {

namespace ps = penstock;

/// Changes nothing.
template <class Inner>
struct around : ps::session_adaptor<around<Inner>, Inner> {
  Inner& inner;
  explicit around(Inner& session) : inner(session) {}
  Inner& inside() const { return inner; }
};

/// Has every optional member, and notes which was called.
struct everything {
  static constexpr ps::session_traits traits = {
      .latency = true, .mapped = ps::mapped_objects::some, .prefetches = true};
  std::vector<std::string> called;
  std::array<std::byte, 4> bytes{};

  std::uint64_t size(ps::object_id) { return called.emplace_back("size"), 4; }
  ps::object_version version(ps::object_id) {
    return called.emplace_back("version"), ps::object_version{4, 1};
  }
  void read(ps::object_id, std::uint64_t, ps::mutable_bytes) { called.emplace_back("read"); }
  void read_many(std::span<const ps::read_request>, ps::read_listener) noexcept {
    called.emplace_back("read_many");
  }
  void cancel() noexcept { called.emplace_back("cancel"); }
  void abandon(std::uint64_t) noexcept { called.emplace_back("abandon"); }
  void end_reads() noexcept { called.emplace_back("end_reads"); }
  void will_need(ps::object_id, std::uint64_t, std::uint64_t) { called.emplace_back("will_need"); }
  void prefetch(ps::object_id, std::uint64_t, std::uint64_t) const noexcept {
    const_cast<everything*>(this)->called.emplace_back("prefetch");
  }
  bool mapped(ps::object_id) const {
    return const_cast<everything*>(this)->called.emplace_back("mapped"), true;
  }
  ps::bytes_view view(ps::object_id, std::uint64_t, std::uint64_t) const {
    return const_cast<everything*>(this)->called.emplace_back("view"), ps::bytes_view(bytes);
  }
  void confirm(ps::object_id) const { const_cast<everything*>(this)->called.emplace_back("confirm"); }
  bool resident(ps::object_id) { return called.emplace_back("resident"), true; }
  bool tagged(ps::object_id) const {
    return const_cast<everything*>(this)->called.emplace_back("tagged"), true;
  }
  bool expect(ps::object_id, ps::object_version) { return called.emplace_back("expect"), true; }
  ps::access_plan_sink access_plan() { return called.emplace_back("access_plan"), ps::access_plan_sink{}; }
  void plan_read(ps::object_id, std::uint64_t, std::uint64_t, std::uint64_t) {
    called.emplace_back("plan_read");
  }
  ps::session_report report() const {
    const_cast<everything*>(this)->called.emplace_back("report");
    return {.max_in_flight = 3};
  }
};

static_assert(ps::abandons<around<everything>>() && ps::mapped_session<around<everything>>);
static_assert(ps::session_traits_of<around<everything>>().prefetches);
static_assert(ps::planning_session<around<everything>>);
static_assert(ps::session_traits_of<around<everything>>().latency);

using in_memory = ps::memory_files::session;
static_assert(ps::all_mapped<around<in_memory>>() && !ps::background_session<around<in_memory>>);
static_assert(!ps::planning_session<around<in_memory>>);
using files = ps::file::session;
static_assert(ps::mapped_session<around<files>>);
using far_away = ps::simulated_storage<ps::memory_files>::session;
static_assert(ps::abandons<around<far_away>>() && !ps::mapped_session<around<far_away>>);

TEST_CASE("storage/session_adaptor: passes on every member that the session inside has") {
  everything inner;
  const around<everything> outer(inner);
  (void)outer.size(0);
  (void)outer.version(0);
  outer.read(0, 0, {});
  outer.read_many({}, {});
  outer.cancel();
  outer.abandon(1);
  outer.end_reads();
  outer.will_need(0, 0, 1);
  outer.prefetch(0, 0, 1);
  CHECK(outer.mapped(0));
  CHECK(outer.view(0, 0, 4).size() == 4);
  outer.confirm(0);
  CHECK(outer.resident(0));
  CHECK(outer.tagged(0));
  CHECK(outer.expect(0, {}));
  (void)outer.access_plan();
  outer.plan_read(0, 0, 1, 2);
  CHECK(outer.report().max_in_flight == 3);
  CHECK(inner.called == std::vector<std::string>{"size", "version", "read", "read_many", "cancel", "abandon",
                                                 "end_reads", "will_need", "prefetch", "mapped", "view",
                                                 "confirm", "resident", "tagged", "expect", "access_plan",
                                                 "plan_read", "report"});
}

/// Changes what is read, so it shows nothing in place.
struct inverted : ps::session_adaptor<inverted, in_memory> {
  static constexpr ps::session_traits traits = {};
  void view(ps::object_id, std::uint64_t, std::uint64_t) const = delete;
  in_memory& inner;
  explicit inverted(in_memory& session) : inner(session) {}
  in_memory& inside() const { return inner; }
  void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
    inner.read(id, offset, into);
    for (std::byte& b : into) b = ~b;
  }
};
static_assert(ps::storage_session<inverted> && !ps::all_mapped<inverted>());

TEST_CASE("storage/session_adaptor: what is declared anew, or deleted, is not passed on") {
  auto inner = ps::memory_files().add("a", std::string("\x01\x02", 2)).connect();
  inverted outer(inner);
  std::array<std::byte, 2> bytes{};
  outer.read(0, 0, bytes);
  CHECK(bytes == std::array{std::byte{0xfe}, std::byte{0xfd}});
  CHECK(outer.size(0) == 2);
  // What is shown in place is in memory; what is made of it is not.
  CHECK(around(inner).resident(0));
  CHECK_FALSE(outer.resident(0));
  CHECK_FALSE(around(outer).resident(0));
}

}  // namespace session_adaptor_test
