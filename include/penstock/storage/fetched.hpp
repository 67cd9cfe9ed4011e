// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/fetched_part.hpp>

#include <cstdint>
#include <span>

namespace penstock::inline v0_1 {

class range_store;

/// What a worker holds of a `range_store`: the ranges that were fetched for the sample that it evaluates.
///
/// The engine names the turn, `fetched_sample::scope` holds it while the sample is evaluated, and readers ask
/// for their bytes with `find` before they ask their session.
/// Threads: one worker's.
class fetched_sample {
 public:
  /// The store that workers take from; null: nothing is fetched.
  void use(range_store* store) noexcept { store_ = store; }
  /// The turn of the sample that is evaluated next.
  void stand_at(std::uint64_t turn) noexcept { turn_ = turn; }

  /// Bytes of an object of that session, if they were fetched for this sample; waits until they are there.
  /// Empty where they were not, or could not be read: who reads them now gets the error at its place.
  /// Throws errc::stopped when the run is stopped meanwhile.
  /// In: the session itself, and a range in one of its objects. They live until the sample is evaluated.
  [[nodiscard]] bytes_view find(const void* session, object_id object, std::uint64_t offset,
                                std::uint64_t size) const {
    return parts_.empty() ? bytes_view{} : look(session, object, offset, size);
  }

  /// Holds what was fetched for a sample as long as it lives.
  class scope {
   public:
    explicit scope(fetched_sample& of) noexcept : of_(of) {
      if (of.store_ != nullptr) of.take();
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() {
      if (!of_.parts_.empty()) of_.release();
    }

   private:
    fetched_sample& of_;
  };

 private:
  void take() noexcept;
  void release() noexcept;
  [[nodiscard]] bytes_view look(const void* session, object_id object, std::uint64_t offset,
                                std::uint64_t size) const;

  range_store* store_ = nullptr;
  std::uint64_t turn_ = 0;
  std::span<const fetched_part> parts_;
};

/// Where a worker finds what was fetched, if its session's bytes are fetched at all: those that are shown in
/// place are not.
template <class Session>
struct fetch_link {
  const fetched_sample* fetched = nullptr;
  [[nodiscard]] bytes_view find(const Session& session, object_id object, std::uint64_t offset,
                                std::uint64_t size) const {
    return fetched == nullptr ? bytes_view{} : fetched->find(&session, object, offset, size);
  }
};
template <viewing_session Session>
struct fetch_link<Session> {
  [[nodiscard]] static bytes_view find(const Session&, object_id, std::uint64_t, std::uint64_t) noexcept {
    return {};
  }
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/fetched.ipp>
#endif
