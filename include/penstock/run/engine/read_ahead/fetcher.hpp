// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>
#include <penstock/run/engine/read_ahead/range_list.hpp>
#include <penstock/run/engine/read_ahead/request_queue.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/range_store.hpp>

#include <vector>

namespace penstock::inline v0_1 {

/// Reads ranges into a `range_store` before workers ask for them. Nearby ranges of one object become a single
/// request, long ones several; requests begin in the order of first use, as many at once as the store has
/// room for and `request_queue` allows; for a session that reads only in the calling thread, eight, each in
/// its own thread. A range that cannot be read is left to the worker that needs it, which gets the error at
/// its sample.
///
/// Threads: `fetch` belongs to one thread; the other members say who may call them.
class fetcher {
 public:
  /// See `range_store`, `request_options` and `request_queue`.
  fetcher(std::uint64_t bytes, std::uint64_t rows, const request_options& requests = {},
          const live_limits* live = nullptr)
      : options_(requests), store_(bytes, rows), queue_(store_, requests.max_in_flight, live) {}
  fetcher(const fetcher&) = delete;
  fetcher& operator=(const fetcher&) = delete;
  ~fetcher() { end_reads(); }

  [[nodiscard]] range_store& store() noexcept { return store_; }
  /// Any thread may look at it, and stop it.
  [[nodiscard]] request_queue& queue() noexcept { return queue_; }
  /// Starts reading what is listed, and clears the list. Waits for room; returns early if the store is
  /// stopped or halted.
  void fetch(range_list& wanted);
  /// Cancels all reads and waits for them to end. No thread may be in `fetch`.
  void end_reads() noexcept;

 private:
  /// Entries close together, which one read covers.
  struct piece {
    std::size_t first, last;
    std::uint64_t begin, end, row;
  };
  void plan(std::vector<range_list::entry>& wanted);
  [[nodiscard]] bool joins(const piece& before, const range_list::entry& first,
                           const range_list::entry& one) const noexcept;
  [[nodiscard]] std::uint32_t requests_for(const piece& one, const range_list::entry& first) const noexcept;
  [[nodiscard]] bool fetch(const piece& one, const std::vector<range_list::entry>& wanted);
  void request(const piece& one, const range_list::entry& first, range_store::read& room) noexcept;
  void settle(std::uint64_t row, const fetched_part* part);
  void show_rows_of_oldest();

  request_options options_;
  range_store store_;
  request_queue queue_;
  std::vector<piece> pieces_;
  /// A row of the current list: how many entries remain, and whether they are left to its worker.
  struct row_state {
    std::uint32_t left = 0;
    bool claimed = false, dropped = false;
  };
  std::vector<row_state> rows_;
  std::uint64_t first_row_ = 0;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead/fetcher.ipp>
#endif
