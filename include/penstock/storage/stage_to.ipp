// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/stage_to.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/cache/staged_folder.hpp>
#include <penstock/storage/cache/staging_reads.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <utility>

namespace penstock::inline v0_1::detail::staging {

/// One call of `stage_to`: threads that take one object at a time each, while the calling thread watches.
///
/// An object that another process works at is put aside, until that one has finished it or has died.
class staging_call {
 public:
  staging_call(const far_storage& far, const std::string& folder, const stage_options& options,
               const check_view& check, stage_listener listener)
      : far_(far),
        options_(options),
        check_(check),
        listener_(listener),
        objects_(name_objects(far)),
        folder_(folder),
        reads_(far, options.max_in_flight, options.part_size) {}

  [[nodiscard]] std::vector<std::string> run() {
    if (objects_.empty()) return {};
    const std::stop_callback on_stop(options_.stop, [this] {
      {
        const std::scoped_lock lock(mutex_);
        stop_asked_ = true;
      }
      changed_.notify_all();
    });
    const std::uint64_t room = folder_.available();
    in_threads(&staging_call::look);
    check_room(room);
    in_threads(&staging_call::fetch_all);
    std::vector<std::string> paths;
    for (const object& one : objects_) paths.push_back(folder_.path_of(one));
    return paths;
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds tick{250}, poll{50};

  struct object : staged_object {
    object_id id = 0;
    bool whole = false;
    std::uint64_t there = 0;    // when the call began
    std::uint64_t counted = 0;  // of its bytes in `bytes_done_`
    std::exception_ptr wrong;   // what the check said last
  };

  [[nodiscard]] static std::vector<object> name_objects(const far_storage& far) {
    std::vector<std::string> files = staged_names(far.names, far.paths);
    std::vector<object> all(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      all[i].name = far.names[i];
      all[i].known_as =
          far.paths ? std::filesystem::absolute(all[i].name).lexically_normal().string() : far.names[i];
      all[i].file = std::move(files[i]);
      all[i].id = static_cast<object_id>(i);
    }
    return all;
  }

  /// Runs a function in threads, until all of them have returned; meanwhile this thread tells how far it is,
  /// and looks whether it is to stop. Throws what one of them threw first.
  void in_threads(void (staging_call::*work)()) {
    todo_.clear();
    for (object& one : objects_)
      if (!one.whole) todo_.push_back(&one);
    next_object_ = 0;
    std::vector<std::thread> threads;
    for (std::size_t i = std::min(options_.max_in_flight, todo_.size()); i > 0; --i) {
      try {
        const std::scoped_lock lock(mutex_);
        threads.emplace_back([this, work] { run_in_thread(work); });
        ++running_;
      } catch (...) {  // those that could be started do the work
        if (threads.empty()) throw;
        break;
      }
    }
    watch();
    for (std::thread& one : threads) one.join();
    tell();
    reads_.check_end();
  }
  void run_in_thread(void (staging_call::*work)()) noexcept {
    try {
      (this->*work)();
    } catch (...) {
      reads_.stop(std::current_exception());
    }
    const std::scoped_lock lock(mutex_);
    --running_;
    changed_.notify_all();
  }
  void watch() noexcept {
    std::unique_lock lock(mutex_);
    for (auto next = clock::now() + tick; running_ != 0;) {
      if (!stop_asked_) changed_.wait_until(lock, next);
      const bool stops = std::exchange(stop_asked_, false);
      if (!stops && clock::now() < next) continue;
      next = clock::now() + tick;
      lock.unlock();
      if (stops) reads_.stop();
      tell();
      lock.lock();
    }
  }
  void tell() noexcept {
    if (listener_.call == nullptr) return;
    const stage_progress now{objects_done_, objects_.size(), bytes_done_, bytes_, reads_.fetched()};
    try {
      listener_.call(listener_.self, now);
    } catch (...) {
      reads_.stop(std::current_exception());
      listener_.call = nullptr;
    }
  }

  /// Asks what the objects are, and what there is of them.
  void look() {
    for (;;) {
      const std::size_t number = next_object_.fetch_add(1);
      if (reads_.stopped() || number >= todo_.size()) return;
      object& one = *todo_[number];
      in_file(one.name, [&] {
        one.version = far_.session.version(one.id);
        const found_copy found = folder_.look(one, resumes(one));
        bytes_ += one.version.size;
        one.there = found.part;
        if (found.whole) done(one);
      });
    }
  }
  void check_room(std::uint64_t room) {
    std::uint64_t needed = 0;
    for (const object& one : objects_)
      if (!one.whole) needed += one.version.size - one.there;
    if (needed > room) throw folder_.no_room(needed, {});
  }

  /// Half of an object without a stamp may be of another one than what is there now, and the whole would be
  /// neither; a check would find that out.
  [[nodiscard]] bool resumes(const object& one) const noexcept { return one.version.stamp != 0 || check_; }
  void count(object& one, std::uint64_t bytes) noexcept {
    bytes_done_ += bytes - one.counted;  // modulo 2^64: it may be less
    one.counted = bytes;
  }
  void done(object& one) noexcept {
    one.whole = true;
    count(one, one.version.size);
    ++objects_done_;
  }

  void fetch_all() {
    while (object* const one = next_to_fetch()) {
      const lock_of_object held{folder_, *one};
      in_file(one->name, [&] { fetch(*one); });
    }
  }
  struct lock_of_object {
    const staged_folder& folder;
    const object& what;
    ~lock_of_object() { folder.unlock(what); }
  };
  /// An object that is not there, and whose lock this process has now.
  [[nodiscard]] object* next_to_fetch() {
    std::unique_lock lock(mutex_);
    while (!reads_.stopped()) {
      if (!todo_.empty()) {
        object* const one = todo_.front();
        todo_.pop_front();
        if (folder_.try_lock(*one)) return one;
        elsewhere_.push_back(one);
      } else if (elsewhere_.empty()) {
        return nullptr;
      } else if (clock::now() >= next_poll_) {
        todo_.swap(elsewhere_);
        next_poll_ = clock::now() + poll;
      } else {
        changed_.wait_until(lock, next_poll_);
      }
    }
    return nullptr;
  }

  void fetch(object& one) {
    const found_copy found = folder_.look(one, resumes(one));
    if (found.whole) return done(one);
    if (fetch_from(one, found.part)) return done(one);
    if (fetch_from(one, 0)) return done(one);
    std::rethrow_exception(one.wrong);
  }
  /// Whether the bytes were right.
  [[nodiscard]] bool fetch_from(object& one, std::uint64_t from) {
    const descriptor part = folder_.open_part(one, from);
    check_view::running check(check_, one.name);
    count(one, from);
    const bool right = recheck(one, part, from, check) && transfer(one, part, from, check);
    const object_version now = far_.session.version(one.id);
    if (right && now == one.version && checked(one, [&] { check.finish(); })) {
      folder_.finish(one, part);
      return true;
    }
    folder_.discard_part(one);
    count(one, 0);
    if (now != one.version)
      throw error(errc::io,
                  "the object was replaced while it was staged; call stage_to again when it is "
                  "no longer written");
    return false;
  }
  /// Calls a check; false if it throws.
  template <class F>
  [[nodiscard]] bool checked(object& one, F&& call) {
    try {
      call();
      return true;
    } catch (...) {
      one.wrong = std::current_exception();
      return false;
    }
  }
  /// Shows the check what is on the disk.
  [[nodiscard]] bool recheck(object& one, const descriptor& part, std::uint64_t size,
                             check_view::running& check) {
    if (!check_ || size == 0) return true;
    const staging_reads::memory room = reads_.take(true);
    for (std::uint64_t at = 0; at < size;) {
      reads_.check_stop(one.name);
      const mutable_bytes bytes(room.get(), to_size(std::min<std::uint64_t>(size - at, options_.part_size)));
      folder_.read(one, part.get(), at, bytes);
      if (!checked(one, [&] { check.add(bytes); })) return false;
      at += bytes.size();
    }
    return true;
  }
  [[nodiscard]] bool transfer(object& one, const descriptor& part, std::uint64_t from,
                              check_view::running& check) {
    if (far_.files && !check_) from = copy(one, part, from);
    reads_in_order parts(reads_, one.id, one.name, from, one.version.size);
    try {
      while (const auto bytes = parts.next()) {
        if (check_ && !checked(one, [&] { check.add(*bytes); })) return false;
        folder_.write(one, part.get(), one.counted, *bytes);
        count(one, one.counted + bytes->size());
      }
      return true;
    } catch (error& failed) {
      failed.in_file(one.name);
      reads_.stop(std::current_exception());  // before those on their way are waited for
      throw;
    }
  }
  /// Copies a file inside the system. Returns how far that went; where it cannot be done, nothing is.
  [[nodiscard]] std::uint64_t copy(object& one, const descriptor& part, std::uint64_t from) {
    const descriptor source(files::open_quietly(std::string(one.name)));
    if (source.get() < 0 || files::version_of(source.get(), std::string(one.name)) != one.version)
      return from;  // reading it says why
    while (from < one.version.size) {
      reads_.check_stop(one.name);
      const auto copied = folder_.copy(one, source.get(), part.get(), from,
                                       std::min<std::uint64_t>(options_.part_size, one.version.size - from));
      if (!copied) break;
      from += *copied;
      reads_.count(*copied);
      count(one, from);
    }
    return from;
  }

  const far_storage& far_;
  const stage_options& options_;
  const check_view& check_;
  stage_listener listener_;
  std::vector<object> objects_;
  staged_folder folder_;
  staging_reads reads_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<object*> todo_, elsewhere_;
  clock::time_point next_poll_{};
  std::size_t running_ = 0;
  bool stop_asked_ = false;
  std::atomic<std::size_t> next_object_{0}, objects_done_{0};
  std::atomic<std::uint64_t> bytes_{0}, bytes_done_{0};
};

PENSTOCK_INLINE std::vector<std::string> stage(const far_storage& far, const std::string& folder,
                                               const stage_options& options, const check_view& check,
                                               stage_listener listener) {
  if (folder.empty()) throw error(errc::argument, "stage_to needs the path of a folder");
  if (options.max_in_flight == 0 || options.part_size == 0)
    throw error(errc::argument, "stage_to needs at least one request at once, of at least one byte");
  return staging_call(far, folder, options, check, listener).run();
}

}  // namespace penstock::inline v0_1::detail::staging
