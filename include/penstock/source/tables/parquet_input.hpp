// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/source/tables/arrow_cpp.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Memory for what is read of one row group: counted, and no more than a limit.
class parquet_memory : public arrow::MemoryPool {
 public:
  explicit parquet_memory(std::uint64_t limit) noexcept : limit_(limit) {}

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(take(size));
    const arrow::Status done = below_->Allocate(size, alignment, out);
    if (!done.ok()) bytes_ -= size;
    return done;
  }
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** at) override {
    ARROW_RETURN_NOT_OK(take(new_size - old_size));
    const arrow::Status done = below_->Reallocate(old_size, new_size, alignment, at);
    if (!done.ok()) bytes_ -= new_size - old_size;
    return done;
  }
  void Free(std::uint8_t* at, std::int64_t size, std::int64_t alignment) override {
    below_->Free(at, size, alignment);
    bytes_ -= size;
  }
  [[nodiscard]] std::int64_t bytes_allocated() const override { return bytes_; }
  [[nodiscard]] std::int64_t total_bytes_allocated() const override { return all_bytes_; }
  [[nodiscard]] std::int64_t num_allocations() const override { return count_; }
  [[nodiscard]] std::string backend_name() const override { return below_->backend_name(); }

  /// Whether something was refused because of the limit.
  [[nodiscard]] bool refused() const noexcept { return refused_; }

 private:
  [[nodiscard]] arrow::Status take(std::int64_t size) {
    const std::int64_t all = bytes_ += size;
    if (all > 0 && static_cast<std::uint64_t>(all) > limit_) {
      bytes_ -= size;
      refused_ = true;
      return arrow::Status::OutOfMemory("more than the limit");
    }
    if (size > 0) all_bytes_ += size;
    ++count_;
    return arrow::Status::OK();
  }

  arrow::MemoryPool* below_ = arrow::default_memory_pool();
  std::uint64_t limit_;
  std::atomic<std::int64_t> bytes_{0}, all_bytes_{0}, count_{0};
  std::atomic<bool> refused_{false};
};

/// An object of a storage as a file of Arrow. Bytes that a session shows in place are not copied.
class parquet_input : public arrow::io::RandomAccessFile {
 public:
  parquet_input(session_view session, object_id object)
      : session_(session), object_(object), size_(session.size(object)) {}
  ~parquet_input() override = default;

  /// Lets no read begin, and waits for those that Arrow has begun in threads of its own. Then rethrows what
  /// the storage threw first, if it did.
  void finish(bool failed) {
    std::unique_lock lock(mutex_);
    ended_ = true;
    idle_.wait(lock, [&] { return reads_ == 0; });
    std::exception_ptr first = std::exchange(failure_, nullptr);
    lock.unlock();
    if (failed && first) std::rethrow_exception(std::move(first));
  }

  /// Whether the storage failed to give something.
  [[nodiscard]] bool failed() {
    const std::scoped_lock lock(mutex_);
    return failure_ != nullptr;
  }

  arrow::Status Close() override { return arrow::Status::OK(); }
  [[nodiscard]] bool closed() const override { return false; }
  [[nodiscard]] arrow::Result<std::int64_t> Tell() const override { return at_; }
  arrow::Status Seek(std::int64_t position) override {
    at_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> GetSize() override { return static_cast<std::int64_t>(size_); }
  arrow::Result<std::int64_t> Read(std::int64_t count, void* into) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t done, ReadAt(at_, count, into));
    at_ += done;
    return done;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> done, ReadAt(at_, count));
    at_ += done->size();
    return done;
  }
  using arrow::io::RandomAccessFile::ReadAt;
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, void* into) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t size, within(position, count));
    ARROW_RETURN_NOT_OK(guarded([&] {
      session_.read(object_, static_cast<std::uint64_t>(position),
                    mutable_bytes(static_cast<std::byte*>(into), static_cast<std::size_t>(size)));
    }));
    return size;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t size, within(position, count));
    std::shared_ptr<arrow::Buffer> made;
    if (session_.views()) {
      ARROW_RETURN_NOT_OK(guarded([&] {
        const bytes_view shown =
            session_.view(object_, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(size));
        made = std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(shown.data()),
                                               static_cast<std::int64_t>(shown.size()));
      }));
      return made;
    }
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> room, arrow::AllocateBuffer(size));
    ARROW_RETURN_NOT_OK(ReadAt(position, size, room->mutable_data()).status());
    return room;
  }

 private:
  [[nodiscard]] arrow::Result<std::int64_t> within(std::int64_t position, std::int64_t count) const {
    if (position < 0 || count < 0 || static_cast<std::uint64_t>(position) > size_)
      return arrow::Status::IOError("a range outside of the file");
    return std::min(count, static_cast<std::int64_t>(size_) - position);
  }
  // The exception is reported outside of the handler, so that the last of two threads does not free it.
  template <class Call>
  [[nodiscard]] arrow::Status guarded(Call&& call) {
    {
      const std::scoped_lock lock(mutex_);
      if (ended_) return arrow::Status::Cancelled("the read is not needed any more");
      ++reads_;
    }
    std::exception_ptr thrown;
    try {
      call();
    } catch (...) {
      thrown = std::current_exception();
    }
    const bool failed = thrown != nullptr;
    const std::scoped_lock lock(mutex_);
    if (failed && !failure_) failure_ = std::move(thrown);
    if (--reads_ == 0) idle_.notify_all();
    return failed ? arrow::Status::IOError("the storage failed") : arrow::Status::OK();
  }

  session_view session_;
  object_id object_;
  std::uint64_t size_;
  std::int64_t at_ = 0;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t reads_ = 0;  // in progress
  bool ended_ = false;
  std::exception_ptr failure_;
};

/// How pages are read: with their checksums compared, if the file has some.
[[nodiscard]] inline parquet::ReaderProperties parquet_pages(arrow::MemoryPool* pool, bool checksums) {
  parquet::ReaderProperties how(pool);
  how.set_page_checksum_verification(checksums);
  return how;
}

/// Calls `work(input)`, in which Arrow reads an object. What the storage throws is thrown, and what Arrow
/// throws or returns becomes an error: errc::limit if `memory` refused something, otherwise errc::format.
template <class Work>
void read_parquet(session_view session, object_id object, const parquet_memory& memory, std::uint64_t limit,
                  Work&& work) {
  const auto input = std::make_shared<parquet_input>(session, object);
  std::string said;
  bool failed = false;
  try {
    const arrow::Status done = work(input);
    failed = !done.ok();
    if (failed) said = done.message();
  } catch (const error&) {
    input->finish(false);
    throw;
  } catch (const std::bad_alloc&) {
    input->finish(false);
    throw;
  } catch (const std::exception& e) {
    failed = true;
    said = e.what();
  }
  input->finish(failed);
  if (!failed) return;
  if (memory.refused())
    throw error(errc::limit,
                {"the row group needs more than ", limit,
                 " bytes of memory; raise it with parquet_options{.limit = ...}, or write smaller "
                 "row groups"});
  const object_bytes head = session.range(object, 0, std::min<std::uint64_t>(session.size(object), 512));
  if (!text_of(head).starts_with("PAR") && !known_format(head).empty())
    throw not_a("a Parquet file", head, {});
  throw error(errc::format, {"Arrow cannot read it: ", arrow_message(said)});
}

/// Calls `work()`, which asks for metadata; what Arrow throws becomes an error.
template <class Work>
decltype(auto) ask_parquet(Work&& work) {
  try {
    return work();
  } catch (const parquet::ParquetException& e) {
    throw error(errc::format, {"Arrow cannot read it: ", arrow_message(e.what())});
  }
}

}  // namespace penstock::inline v0_1::detail
