// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/block_files.hpp>
#include <penstock/storage/cache/block_index.hpp>
#include <penstock/storage/cache/block_plan.hpp>
#include <penstock/storage/cache/work_ahead.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/reads/wait_stops.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace penstock::inline v0_1::detail::blocks {

/// The blocks of a `disk_cache` as one session sees them. All processes that use the folder see the same.
///
/// Whoever fills a slot holds a lock of one byte of the index file, which the system takes away when the
/// process ends, however it ends. The same holds for the lock of the folder. So nothing is left behind by a
/// process that dies: its slot is filled by the next one that wants the block.
/// Threads: any number.
class block_folder {
 public:
  /// What is planned is not told to the other storage, too: it would fetch ahead what the folder has.
  static constexpr bool tells_far = false;

  /// Opens the folder, or makes it; see `disk_cache` for what it throws.
  block_folder(const disk_cache& where, checksum_call checksum);
  ~block_folder();

  [[nodiscard]] std::uint64_t block_size() const noexcept { return files_.table.of().block; }
  [[nodiscard]] std::uint64_t slots() const noexcept { return files_.table.of().slots; }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }
  /// Bytes of memory for blocks that are fetched.
  [[nodiscard]] std::uint64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }

  /// The block, if it is there; `hint` is where it was seen last, and is kept up to date.
  [[nodiscard]] std::optional<place> find(const key& what, std::atomic<std::uint32_t>& hint) noexcept;
  /// Of four places of a block of `size` bytes, how many are not in memory, so that a read would wait for the
  /// disk; nothing if the block is not there. `salt` says which places.
  [[nodiscard]] std::optional<unsigned> places_missing(const key& what, std::atomic<std::uint32_t>& hint,
                                                       std::uint64_t size, std::uint64_t salt) noexcept;
  /// Copies bytes of a block of `size` bytes, from `offset` on. `moved`: something else came to the slot
  /// meanwhile. `damaged`: the block is gone now. `resident`: the block is in memory, and a mapping is the
  /// faster way to it.
  [[nodiscard]] copied copy(const key& what, std::atomic<std::uint32_t>& hint, std::uint64_t size,
                            std::uint64_t offset, mutable_bytes into, bool resident,
                            wait_stops::moment begun);

  /// Ends the waits of this session. Members that may wait for the lock of the folder are told when their
  /// caller began; if that wait is ended they do what they do if the lock cannot be had in time.
  [[nodiscard]] wait_stops& stops() noexcept { return files_.stops; }
  void stop_waiting() noexcept { stops().stop(); }
  /// Also fetches nothing more ahead.
  void end() noexcept;
  /// Waits for what is being fetched ahead.
  void leave(const block_plan&) noexcept { ahead_.join(); }

  /// What somebody has who asked for a block that was not there.
  struct answer {
    enum kind { here, mine, other, nothing } is = nothing;
    place where{};
  };
  /// `here`: it is there now. `mine`: this caller fills it, and must call `fill` or `give_up`. `other`:
  /// somebody fills it. `nothing`: no slot can be had. `when`: when this session's run needs it next.
  /// With `ahead` it is not needed yet, so no block goes for it that is needed sooner.
  [[nodiscard]] answer ask(const key& what, wait_stops::moment begun, next_use when = {}, bool ahead = false);
  struct gives_back {
    block_folder* to = nullptr;
    void operator()(std::byte* room) const noexcept;
  };
  /// Memory for a block that this thread fetches, which is used again.
  [[nodiscard]] std::unique_ptr<std::byte[], gives_back> room(place);
  /// Writes a block into its slot. False: there was no room on the disk, and the slot is free.
  bool fill(place mine, const key& what, bytes_view bytes, wait_stops::moment begun);
  void give_up(place mine, wait_stops::moment begun) noexcept;
  /// Waits until somebody else has filled a slot or given it up, or `stops` ends the wait. False if it is
  /// late; then nobody waits for this any more, and `ask` says `nothing`.
  [[nodiscard]] bool wait(place other, std::chrono::steady_clock::time_point late,
                          wait_stops::moment begun) noexcept;

  /// Says where the run of this session stands, and how long a row of the run takes, so that blocks go by
  /// when they are needed. `next(who, block)` tells when that is. Called by one thread at a time.
  void stand_at(std::uint64_t run_row, std::uint64_t ns_per_row,
                next_use (*next)(const void* who, const key& block), const void* who);
  /// The same, by a plan that is at this row; measures how long a row takes.
  void stand_at(std::uint64_t run_row, bool ends, const block_plan& plan);
  /// What was said is void. For the thread that calls `stand_at`.
  void forget() noexcept;
  /// Nothing to do: whoever needs a slot sees what `stand_at` says.
  void follow(const block_plan&) const noexcept {}
  /// Wakes a thread that calls `task(self)`, and goes on as long as it returns true. The first call starts
  /// these threads, as many as the options say.
  void fetch_ahead(bool (*task)(void* self), void* self) noexcept {
    if (options_.ahead != 0) ahead_.start(options_.ahead, task, self);
  }
  void wake_ahead() noexcept { ahead_.wake(); }

 private:
  static constexpr std::uint32_t no_row = next_uses::maximum;

  [[nodiscard]] static std::int64_t now_ns() noexcept;
  [[nodiscard]] copied copy_from(place from, const key& what, std::uint64_t size, std::uint64_t offset,
                                 mutable_bytes into, bool resident);

  /// The next uses of all sessions that live. The caller may change the folder.
  [[nodiscard]] outlook future() noexcept;
  /// Takes a row, if there is one. The caller may change the folder.
  void take_row() noexcept;
  void clear_row() noexcept;

  /// Gives up blocks so that the disk has room for one.
  [[nodiscard]] bool make_room(wait_stops::moment begun);

  const disk_cache_options options_;
  block_files files_;
  inline static std::atomic<std::uint64_t> sessions{0};
  const std::uint64_t number_ = ++sessions;
  checksum_call checksum_;
  bool once_;
  std::atomic<bool> trusts_{true};          // with `once`
  std::atomic<std::uint32_t> row_{no_row};  // in `next_uses`
  bool wants_row_ = true;
  std::vector<std::atomic<std::uint32_t>> waited_;  // the states that somebody waited for in vain
  std::atomic<std::int64_t> rests_until_{0};        // after a block found no room; and for how long it was
  std::atomic<std::int64_t> last_rest_{0};
  std::atomic<std::uint64_t> evicted_{0}, held_{0};
  std::vector<std::atomic<std::uint32_t>> seen_;  // with `once`: the state in which a piece was compared
  std::mutex rooms_mutex_;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;
  // Of the thread that plans: where the run stood first, and whether the plan had its end.
  struct beginning {
    std::uint64_t row;
    std::int64_t ns;
  };
  std::optional<beginning> first_;
  bool ended_ = false;
  work_ahead ahead_;
};

}  // namespace penstock::inline v0_1::detail::blocks

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/block_folder.ipp>
#endif
