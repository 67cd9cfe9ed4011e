// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace penstock_test {

/// Waits until `holds()` is true, without a limit: a `deadline` ends a test that waits in vain.
template <class F>
void eventually(F&& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

/// The reads of the sessions of a `held_storage` that have begun and not ended, oldest first.
class held_reads {
 public:
  [[nodiscard]] std::size_t count() {
    const std::scoped_lock held(lock_);
    return reads_.size();
  }
  /// All that ever began.
  [[nodiscard]] std::size_t begun() {
    const std::scoped_lock held(lock_);
    return begun_;
  }
  [[nodiscard]] std::size_t cancels() {
    const std::scoped_lock held(lock_);
    return cancels_;
  }
  /// The offsets of the reads.
  [[nodiscard]] std::vector<std::uint64_t> offsets() {
    const std::scoped_lock held(lock_);
    std::vector<std::uint64_t> all;
    for (const auto& one : reads_) all.push_back(one.request.offset);
    return all;
  }
  /// Ends a read: with this failure, or with the bytes of the file.
  void end(std::size_t number, std::exception_ptr failed = nullptr) {
    std::unique_lock held(lock_);
    const auto one = reads_[number];
    reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(number));
    held.unlock();
    if (!failed) files_.connect().read(one.request.object, one.request.offset, one.request.into);
    one.tell(std::move(failed));
  }
  void end_all(const std::exception_ptr& failed = nullptr) {
    while (count() != 0) end(0, failed);
  }

  explicit held_reads(penstock::memory_files files) : files_(std::move(files)) {}
  void reserve(std::size_t reads) {
    const std::scoped_lock held(lock_);
    reads_.reserve(reads);
  }
  void begin(std::span<const penstock::read_request> requests, penstock::read_listener listener) {
    const std::scoped_lock held(lock_);
    for (const auto& request : requests) reads_.push_back({request, listener});
    begun_ += requests.size();
  }
  void abandon(std::uint64_t tag) {
    std::unique_lock held(lock_);
    ++abandons_;
    const auto found =
        std::find_if(reads_.begin(), reads_.end(), [tag](const auto& one) { return one.request.tag == tag; });
    if (found == reads_.end()) return;
    const auto one = *found;
    reads_.erase(found);
    held.unlock();
    one.tell(penstock::detail::read_cancelled(one.request, files_.names()));
  }
  void note_blocking() {
    const std::scoped_lock held(lock_);
    begun_before_blocking_ = begun_;
  }
  /// How many of them had begun when the last blocking read began.
  [[nodiscard]] std::size_t begun_before_blocking() {
    const std::scoped_lock held(lock_);
    return begun_before_blocking_;
  }
  [[nodiscard]] std::size_t abandons() {
    const std::scoped_lock held(lock_);
    return abandons_;
  }
  void cancel() {
    std::vector<penstock::detail::waiting_read> all;
    {
      const std::scoped_lock held(lock_);
      all.swap(reads_);
      ++cancels_;
    }
    for (const auto& one : all) one.tell(penstock::detail::read_cancelled(one.request, files_.names()));
  }

 private:
  penstock::memory_files files_;
  std::mutex lock_;
  std::vector<penstock::detail::waiting_read> reads_;
  std::size_t begun_ = 0, cancels_ = 0, abandons_ = 0, begun_before_blocking_ = 0;
};

/// Files in memory whose background reads end when the test ends them, or abandons them if it can.
template <bool Abandons>
struct basic_held_storage {
  explicit basic_held_storage(const penstock::memory_files& given)
      : files(given), reads(std::make_shared<held_reads>(given)) {}

  class session {
   public:
    explicit session(const basic_held_storage& of) : files_(of.files.connect()), reads_(of.reads) {}
    session(session&&) = default;
    ~session() {
      if (reads_) reads_->cancel();
    }
    [[nodiscard]] std::uint64_t size(penstock::object_id id) const { return files_.size(id); }
    [[nodiscard]] penstock::object_version version(penstock::object_id id) const {
      return files_.version(id);
    }
    void read(penstock::object_id id, std::uint64_t offset, penstock::mutable_bytes into) const {
      reads_->note_blocking();
      files_.read(id, offset, into);
    }
    void read_many(std::span<const penstock::read_request> requests, penstock::read_listener listener) const {
      reads_->begin(requests, listener);
    }
    void cancel() const noexcept { reads_->cancel(); }
    void abandon(std::uint64_t tag) const noexcept
      requires Abandons
    {
      reads_->abandon(tag);
    }
    void will_need(penstock::object_id, std::uint64_t, std::uint64_t) const noexcept {}

   private:
    penstock::memory_files::session files_;
    std::shared_ptr<held_reads> reads_;
  };

  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return session(*this); }

  penstock::memory_files files;
  std::shared_ptr<held_reads> reads;
};
using held_storage = basic_held_storage<false>;
using abandoning_storage = basic_held_storage<true>;

}  // namespace penstock_test
