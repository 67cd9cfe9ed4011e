// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/files/size_requests.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The bytes of objects, each from its beginning to its end, in pieces. If the session reads in the
/// background, the pieces after the one that is being used are read ahead, also those of the next object; a
/// piece that fails is an error when its turn comes. If the session has latency, sizes of objects are asked
/// for ahead, too. Memory: `ahead` bytes, or one piece if nothing is read
/// ahead. No allocation in the steady state.
///
/// Threads: one reads; `end` and nothing else may be called by others meanwhile.
class forward_pieces {
 public:
  static constexpr std::size_t piece = 1_MiB;

  /// Of `objects` objects; the session must outlive this.
  forward_pieces(session_view session, std::size_t objects, std::uint64_t ahead);
  forward_pieces(const forward_pieces&) = delete;
  forward_pieces& operator=(const forward_pieces&) = delete;
  /// Ends the reads in progress, and waits until they have been reported.
  ~forward_pieces();

  /// Goes to the beginning of an object. What was read ahead of it is kept.
  void open(std::size_t object);
  /// The next bytes of the object, until the next call of any member; none at its end. Throws what reading
  /// them threw.
  [[nodiscard]] bytes_view next();
  /// Ends all reads, now and later: `next` throws errc::stopped. Any thread.
  void end() noexcept;

 private:
  struct slot {
    buffer bytes;
    std::size_t object = 0;
    std::uint64_t offset = 0;
    bool in_flight = false;
    std::exception_ptr failed;
  };
  [[nodiscard]] slot& at(std::size_t i) noexcept { return slots_[(first_ + i) % slots_.size()]; }
  /// Waits until a piece is there, or the end: then throws.
  void wait_for(const slot& one);
  void wait_for_all();
  void drop_first();
  /// Forgets what was read ahead, and begins anew at an object.
  void restart(std::size_t object);
  void read_ahead();
  /// Moves on to the next object that has bytes; false if there is none, or its size is not to be had yet.
  bool next_object();
  /// The size of an object after the one that is read; nothing if that is not to be had, or not yet.
  [[nodiscard]] std::optional<std::uint64_t> size_ahead(std::size_t object);
  static void done(void* self, std::uint64_t tag, std::exception_ptr failed) noexcept;

  session_view session_;
  std::size_t objects_;
  std::vector<slot> slots_;  // a ring: `count_` pieces from `first_` on were requested
  std::size_t first_ = 0, count_ = 0;
  bool used_ = false;  // whether the caller has the first one
  bool open_ = false;
  std::size_t object_ = 0;  // that is open
  std::uint64_t left_ = 0;  // of its bytes
  // the piece that is requested next
  std::size_t next_object_ = 0;
  std::uint64_t next_offset_ = 0, next_size_ = 0;
  bool stuck_ = false;  // the size of the object after that was not to be had
  std::optional<size_requests> sizes_;
  std::vector<read_request> requests_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/forward_pieces.ipp>
#endif
