// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How `copy` reads: the parts of an object in order, some of them on their way ahead.

#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// An object to copy.
struct copied_object {
  std::size_t number = 0;  ///< among those that are copied
  std::string name;        ///< what it is called where it goes to
  penstock::object_version version;
  std::uint64_t part_size = 0;

  [[nodiscard]] std::uint64_t parts() const { return (version.size + part_size - 1) / part_size; }
  [[nodiscard]] std::uint64_t size_of(std::uint64_t part) const {
    return std::min(part_size, version.size - part * part_size);
  }
};

/// The parts of one object that are on their way, in order. `asking` is held while the session is asked: one
/// thread at a time may do that.
template <penstock::background_session Session>
class parts_ahead {
 public:
  parts_ahead(Session& session, std::mutex& asking, penstock::object_id id, const copied_object& what,
              std::uint64_t first, std::size_t ahead)
      : session_(session), asking_(asking), id_(id), what_(what), next_(first), places_(ahead) {
    for (std::uint64_t part = first; part < first + ahead && part < what.parts(); ++part) ask(part);
  }
  ~parts_ahead() {  // they write to the memory here
    std::unique_lock held(lock_);
    changed_.wait(held, [this] { return in_flight_ == 0; });
  }
  parts_ahead(const parts_ahead&) = delete;
  parts_ahead& operator=(const parts_ahead&) = delete;

  /// The bytes of the next part, until the next call.
  [[nodiscard]] penstock::bytes_view take() {
    if (taken_) ask(next_++ + places_.size());
    taken_ = true;
    place& mine = at(next_);
    std::unique_lock held(lock_);
    changed_.wait(held, [&] { return mine.over; });
    if (mine.failed) std::rethrow_exception(mine.failed);
    return mine.bytes.view();
  }

 private:
  struct place {
    penstock::buffer bytes;
    std::exception_ptr failed;
    bool over = false;
  };
  [[nodiscard]] place& at(std::uint64_t part) { return places_[part % places_.size()]; }

  void ask(std::uint64_t part) {
    if (part >= what_.parts()) return;
    place& mine = at(part);
    mine.bytes.resize_for_overwrite(what_.size_of(part));
    {
      const std::scoped_lock held(lock_);
      mine.over = false;
      mine.failed = nullptr;
      ++in_flight_;
    }
    const penstock::read_request request{id_, part * what_.part_size, mine.bytes.span(), part};
    const std::scoped_lock held(asking_);
    session_.read_many({&request, 1},
                       {this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
                          static_cast<parts_ahead*>(self)->arrived(tag, std::move(failed));
                        }});
  }
  void arrived(std::uint64_t part, std::exception_ptr failed) noexcept {
    const std::scoped_lock held(lock_);
    at(part).failed = std::move(failed);
    at(part).over = true;
    --in_flight_;
    changed_.notify_all();  // under the lock: the waiter may end the object
  }

  Session& session_;
  std::mutex& asking_;
  penstock::object_id id_;
  const copied_object& what_;
  std::uint64_t next_;
  bool taken_ = false;
  std::mutex lock_;
  std::condition_variable changed_;
  std::size_t in_flight_ = 0;
  std::vector<place> places_;
};
