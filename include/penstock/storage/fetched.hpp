// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/range_store.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace penstock::inline v0_1 {

/// A worker's part of a `range_store`: the ranges that were fetched for the sample it is evaluating.
///
/// The engine sets the row, `fetched_sample::scope` holds it while the sample is evaluated, and readers look
/// for their bytes with `find` before they ask their session.
/// Threads: one worker's.
class fetched_sample {
 public:
  /// Sets the store that workers take from, null if nothing is fetched; returns the one before.
  range_store* use(range_store* store) noexcept { return std::exchange(store_, store); }
  /// Sets the row of the sample evaluated next.
  void stand_at(std::uint64_t row) noexcept { row_ = row; }

  /// Bytes of an object of that session, if they were fetched for this sample; waits until they arrive. Empty
  /// if they were not fetched or could not be read: the caller then reads them and gets the error there.
  /// Throws errc::stopped if the run is stopped meanwhile. In: the session itself, and a range in one of its
  /// objects. The bytes live until the sample is evaluated.
  [[nodiscard]] bytes_view find(const void* session, object_id object, std::uint64_t offset,
                                std::uint64_t size) const {
    return parts_.empty() ? bytes_view{} : look(session, object, offset, size);
  }

  /// Holds what was fetched for a sample while it lives.
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
  void take() noexcept { parts_ = store_->take(row_); }
  void release() noexcept {
    for (const fetched_part& part : parts_) store_->release(*part.from);
    parts_ = {};
  }
  [[nodiscard]] bytes_view look(const void* session, object_id object, std::uint64_t offset,
                                std::uint64_t size) const {
    for (const fetched_part& part : parts_) {
      if (part.session != session || part.object != object || offset < part.offset) continue;
      const std::uint64_t before = offset - part.offset;
      if (before > part.size || size > part.size - before) continue;
      if (!store_->wait(part)) return {};
      return {part.bytes + before, detail::to_size(size)};
    }
    return {};
  }

  range_store* store_ = nullptr;
  std::uint64_t row_ = 0;
  std::span<const fetched_part> parts_;
};

/// How a worker finds fetched bytes, if its session's bytes are fetched at all: those that are shown in place
/// are not.
template <class Session>
struct fetch_link {
  const fetched_sample* fetched = nullptr;
  [[nodiscard]] bytes_view find(const Session& session, object_id object, std::uint64_t offset,
                                std::uint64_t size) const {
    return fetched == nullptr ? bytes_view{} : fetched->find(&session, object, offset, size);
  }
};
template <class Session>
  requires(all_mapped<Session>())
struct fetch_link<Session> {
  [[nodiscard]] static bytes_view find(const Session&, object_id, std::uint64_t, std::uint64_t) noexcept {
    return {};
  }
};

}  // namespace penstock::inline v0_1
