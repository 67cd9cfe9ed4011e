// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/session_view.hpp>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace penstock::inline v0_1 {
namespace detail {

/// Asks for the sizes of objects before their turn, one after another, in a thread of its own, so that
/// whoever reads them one after another waits for no answer.
///
/// Threads: one calls `ask_from`, `answer` and `forget`; any may call `stop`.
class size_requests {
 public:
  enum class state : std::uint8_t { open, known, failed };
  struct answer_type {
    state is = state::open;
    std::uint64_t size = 0;
  };

  size_requests(session_view session, std::size_t objects) noexcept : session_(session), objects_(objects) {}
  size_requests(const size_requests&) = delete;
  size_requests& operator=(const size_requests&) = delete;
  /// Waits for the question in progress; `stop`, and then end the session's reads, to make that short.
  ~size_requests();

  /// Asks for this object and some of those after it. What is known already is not asked for again.
  void ask_from(std::size_t object);
  /// What is known of an object that was asked for.
  [[nodiscard]] answer_type answer(std::size_t object);
  /// Forgets all answers, that of the question in progress included.
  void forget() noexcept;
  /// Asks no more.
  void stop() noexcept;

 private:
  static constexpr std::size_t ahead = 4;
  struct place {
    std::optional<std::size_t> object;
    answer_type answer;
  };

  void work() noexcept;

  session_view session_;
  std::size_t objects_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::array<place, ahead> places_;
  std::size_t from_ = 0, next_ = 0, end_ = 0;
  std::uint64_t times_forgotten_ = 0;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/size_requests.ipp>
#endif
