// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_report.hpp>

#include <cstdint>
#include <span>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {

/// The facts of a session around one of several.
template <class... Inner>
[[nodiscard]] constexpr session_traits traits_of_one_of() noexcept {
  using enum mapped_objects;
  const auto each_shows = [](mapped_objects which) {
    return ((session_traits_of<Inner>().mapped == which) && ...);
  };
  return {.latency = (session_traits_of<Inner>().latency || ...),
          .mapped = each_shows(none)  ? none
                    : each_shows(all) ? all
                                      : some,
          .prefetches = (session_traits_of<Inner>().prefetches && ...)};
}

}  // namespace detail

/// A session around another one, or around one of several, which passes everything to it: derive from it,
/// and declare what changes.
///
///     struct traced_session : session_adaptor<traced_session, memory_files::session> {
///       memory_files::session& inner;
///       explicit traced_session(memory_files::session& around) : inner(around) {}
///       memory_files::session& inside() const { return inner; }
///       object_version version(object_id id) const {
///         std::clog << "asks for the version of object " << id << '\n';
///         return inner.version(id);
///       }
///     };
///
/// In: `Derived` has `inside()`, which returns the session that is around; around one of several,
/// `inside(f)`, which calls `f` with that one. What it cannot do, this one cannot, either; around one of
/// several it can what any of them can, and does nothing where the chosen one cannot. What must not be passed
/// on, `Derived` deletes: `abandon` where reads get other tags. Bytes are read in several ways: a session
/// that changes them declares `read` and, over a `background_session`, `read_many`, and `traits` that show
/// nothing in place and prefetch nothing; where it changes sizes or offsets, `size`, `version`, `expect`,
/// `will_need` and `plan_read` as well.
/// Not passed on: `read` with a function that copies, so that all bytes go through `read` or `view`.
/// Cost: none; each call is the call of the session inside. Threads and errors: those of that session.
template <class Derived, storage_session... Inner>
class session_adaptor {
  static constexpr bool in_background = (background_session<Inner> || ...);
  static constexpr bool can_abandon = (penstock::abandons<Inner>() && ...);
  static constexpr bool plans = (planning_session<Inner> || ...);

 public:
  static constexpr session_traits traits = detail::traits_of_one_of<Inner...>();

  [[nodiscard]] std::uint64_t size(object_id id) const {
    return pass([&](auto& s) { return s.size(id); });
  }
  [[nodiscard]] object_version version(object_id id) const {
    return pass([&](auto& s) { return s.version(id); });
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    pass([&](auto& s) { s.read(id, offset, into); });
  }
  void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
    requires in_background
  {
    pass([&]([[maybe_unused]] auto& s) {
      if constexpr (background_session<inner<decltype(s)>>) s.read_many(requests, listener);
    });
  }
  void abandon(std::uint64_t tag) const noexcept
    requires can_abandon
  {
    pass([&](auto& s) { s.abandon(tag); });
  }
  void cancel() const noexcept {
    pass([](auto& s) { cancel_reads(s); });
  }
  void end_reads() const noexcept {
    pass([](auto& s) { penstock::end_reads(s); });
  }

  void will_need(object_id id, std::uint64_t offset, std::uint64_t size) const {
    pass([&](auto& s) { penstock::will_need(s, id, offset, size); });
  }
  [[gnu::always_inline]] void prefetch(object_id id, std::uint64_t offset,
                                       std::uint64_t size) const noexcept {
    pass([&](auto& s) { s.prefetch(id, offset, size); });
  }
  [[nodiscard]] bool mapped(object_id id) const {
    return pass([&](auto& s) { return is_mapped(s, id); });
  }
  [[nodiscard]] bytes_view view(object_id id, std::uint64_t offset, std::uint64_t size) const {
    return pass([&]([[maybe_unused]] auto& s) -> bytes_view {
      if constexpr (mapped_session<inner<decltype(s)>>)
        return s.view(id, offset, size);
      else
        throw error(errc::argument, {"object ", id, " is not shown in place; read it"});
    });
  }
  void confirm(object_id id) const {
    pass([&](auto& s) { penstock::confirm(s, id); });
  }
  [[nodiscard]] bool resident(object_id id) const {
    return pass([&](auto& s) {
      // What is shown in place is in memory; what this session makes of that is not.
      constexpr bool hides = session_traits_of<Derived>().mapped == mapped_objects::none;
      if constexpr (hides && all_mapped<inner<decltype(s)>>())
        return false;
      else
        return is_resident(s, id);
    });
  }
  [[nodiscard]] bool tagged(object_id id) const {
    return pass([&](auto& s) { return is_tagged(s, id); });
  }
  [[nodiscard]] bool expect(object_id id, object_version what) const {
    return pass([&](auto& s) { return expect_version(s, id, what); });
  }
  [[nodiscard]] access_plan_sink access_plan() const
    requires plans
  {
    return pass([]([[maybe_unused]] auto& s) -> access_plan_sink {
      if constexpr (planning_session<inner<decltype(s)>>) return s.access_plan();
      return {};
    });
  }
  void plan_read(object_id id, std::uint64_t offset, std::uint64_t size, std::uint64_t row) const {
    pass([&]([[maybe_unused]] auto& s) {
      if constexpr (planning_session<inner<decltype(s)>>) s.plan_read(id, offset, size, row);
    });
  }
  [[nodiscard]] session_report report() const {
    return pass([](auto& s) { return report_of(s); });
  }

 private:
  template <class Reference>
  using inner = std::remove_reference_t<Reference>;

  template <class F>
  [[gnu::always_inline]] decltype(auto) pass(F&& f) const {
    const Derived& self = static_cast<const Derived&>(*this);
    if constexpr (requires { self.inside(); })
      return f(self.inside());
    else
      return self.inside(f);
  }
};

}  // namespace penstock::inline v0_1
