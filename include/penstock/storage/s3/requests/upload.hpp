// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/storage/s3/multipart.hpp>
#include <penstock/storage/s3/requests/store.hpp>

namespace penstock::inline v0_1::detail::s3 {

/// How uploads are cut and tried again.
struct upload_plan {
  std::size_t part_size = 0;
  std::size_t max_in_flight = 0;
  retry_policy retries{};

  /// The size of part `number`, from 1 on: doubled after each 1000, so that 10,000 parts are enough.
  [[nodiscard]] std::size_t size_of(std::size_t number) const noexcept {
    constexpr std::size_t largest = std::size_t{5} << 30;
    const std::size_t doubled = std::min<std::size_t>((number - 1) / 1000, 9);
    return std::min(part_size << doubled, largest);
  }
};

/// One object on its way to a store. Bytes gather in a part, which goes on its way when it is full; of those
/// that are on their way the memory is kept, so that they can be sent again. An object that fits into one
/// part is put by one request.
///
/// Threads: one at a time, and the store's, which tell how parts have ended.
class upload : unmovable {
  using clock = std::chrono::steady_clock;
  struct part : store_call {
    upload* of = nullptr;
    std::size_t number = 0;
    unsigned attempt = 1;
    bool waits = false;  // until `again`
    clock::time_point first_failed{}, again{};
    std::optional<error> failed;
  };

 public:
  upload(store& with, const upload_plan& how, std::string name)
      : with_(with),
        how_(how),
        retries_(how.retries),
        name_(std::move(name)),
        object_(parse_object_name(name_)) {}
  ~upload() { abort(); }

  void write(bytes_view bytes) {
    while (!bytes.empty()) {
      const std::size_t full = how_.size_of(etags_.size() + 1);
      if (gathered_.empty()) gathered_.reserve(std::min(full, how_.part_size));
      const std::size_t now = std::min(bytes.size(), full - gathered_.size());
      gathered_.append(reinterpret_cast<const char*>(bytes.data()), now);
      bytes = bytes.subspan(now);
      size_ += now;
      if (gathered_.size() == full) send_part();
    }
  }
  /// Makes the object appear; returns its ETag.
  [[nodiscard]] std::string finish() {
    if (id_.empty()) return put_whole();
    if (!gathered_.empty()) send_part();
    wait_until([&] { return open_.empty(); });
    std::string tag = complete();
    id_.clear();
    return tag;
  }
  /// Ends what is on its way; the store forgets the parts that it has.
  void abort() noexcept {
    try {
      with_.cancel();
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return flying_ == 0; });
      open_.clear();
      lock.unlock();
      if (id_.empty()) return;
      const std::string id = std::exchange(id_, {});
      // Nobody waits long for what is given up.
      retry_policy few = how_.retries;
      few.attempts = std::min(few.attempts, 3u);
      few.initial_backoff = std::min(few.initial_backoff, std::chrono::milliseconds(100));
      few.max_retry_after = std::chrono::milliseconds(0);
      retrier briefly(few);
      (void)ask(briefly, "abort an upload", [&](store_call& call) {
        call.method = web::verb::delete_;
        call.query = {{"uploadId", id}};
      });
    } catch (...) {  // it stays in the store, as it would if this program was killed
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t retries() const noexcept { return retried_; }

 private:
  // ---- Small requests, one at a time

  void address(store_call& call) const {
    call.bucket = object_.bucket;
    call.key = object_.key;
    call.name = name_;
  }
  /// Sends a request until it succeeds, as often as `retries` lets it. `accept` may throw, too.
  template <class Fill, class Accept>
  auto ask(retrier& retries, std::string_view doing, Fill&& fill, Accept&& accept) {
    const auto once = [&] {
      store_call call;
      address(call);
      call.doing = doing;
      call.max_body = std::size_t{1} << 20;
      fill(call);
      try {
        with_.perform(call);
        if (!call.succeeded()) throw call.failure_of_answer();
        return accept(call);
      } catch (error& e) {
        if (e.file().empty()) e.in_file(name_);
        throw;
      }
    };
    return retries.insist(once, [&](std::chrono::nanoseconds time) {
      retries.pause(time);
      ++retried_;
    });
  }
  template <class Fill>
  std::string ask(retrier& retries, std::string_view doing, Fill&& fill) {
    return ask(retries, doing, fill, [](store_call& call) { return std::string(call.reply.header("ETag")); });
  }

  std::string put_whole() {
    return ask(retries_, "put an object", [&](store_call& call) {
      call.method = web::verb::put;
      call.body = gathered_;
    });
  }
  void start() {
    id_ = ask(
        retries_, "start an upload",
        [](store_call& call) {
          call.method = web::verb::post;
          call.query = {{"uploads", ""}};
        },
        [this](store_call& call) {
          started_ = parse_http_date(call.reply.header("Date"));
          return read_upload_id(call.reply.body);
        });
  }
  std::string complete() {
    const auto accept = [&](store_call& call) { return read_completion(answer_of(call.reply)); };
    const auto fill = [&](store_call& call) {
      call.method = web::verb::post;
      call.query = {{"uploadId", id_}};
      call.body = completion_of(etags_);
    };
    const std::uint64_t before = retried_;
    try {
      return ask(retries_, "complete an upload", fill, accept);
    } catch (const error& e) {
      // An attempt that got no answer may have done it.
      if (retried_ == before || e.message().find("NoSuchUpload") == std::string_view::npos) throw;
    }
    bool ours = false;
    std::string tag = ask(
        retries_, "look for an object", [](store_call& call) { call.method = web::verb::head; },
        [&](store_call& call) {
          ours = call.reply.length == size_ && is_made_now(call.reply);
          return std::string(call.reply.header("ETag"));
        });
    if (!ours)
      throw error(errc::io, "the upload ended without its object; was it aborted by somebody else?")
          .in_file(name_);
    return tag;
  }
  /// Whether an object of the right size is this upload's, and none that was there before: it has the ETag
  /// that S3 makes of the parts', or, since some stores and encryptions make others, it is not older than the
  /// upload. Last-Modified, in whole seconds, is the time when an upload began or ended.
  [[nodiscard]] bool is_made_now(const web::answer& reply) const {
    const std::string expected = tag_of_parts(etags_);
    if (!expected.empty() && tag_of(reply.header("ETag")) == expected) return true;
    const auto modified = parse_http_date(reply.header("Last-Modified"));
    return started_ && modified && *modified + std::chrono::seconds(2) >= *started_;
  }

  // ---- Parts

  void send_part() {
    if (id_.empty()) start();
    if (etags_.size() == 10'000)
      throw error(errc::limit, "an object in S3 has at most 10000 parts; use a larger part_size")
          .in_file(name_);
    wait_until([&] { return open_.size() < how_.max_in_flight; });
    auto made = std::make_unique<part>();
    made->of = this;
    made->number = etags_.size() + 1;
    made->body = std::exchange(gathered_, {});
    part& one = *made;
    {
      const std::scoped_lock lock(mutex_);
      etags_.emplace_back();
      open_.push_back(std::move(made));
    }
    begin(one);
  }
  void begin(part& one) {
    address(one);
    one.method = web::verb::put;
    one.doing = "put a part of an object";
    one.query = {{"partNumber", text({one.number})}, {"uploadId", id_}};
    one.owner = &one;
    one.ended = part_ended;
    one.renewed = one.resynced = one.moved = false;
    one.begun = {};
    one.failed.reset();
    {
      const std::scoped_lock lock(mutex_);
      ++flying_;
    }
    store_call* const only = &one;
    with_.begin({&only, 1});
  }
  static void part_ended(void* self, store_call& call, std::exception_ptr failed) noexcept {
    part& one = *static_cast<part*>(self);
    upload& all = *one.of;
    std::optional<error> failure;
    try {
      if (failed) std::rethrow_exception(failed);
      if (!call.succeeded()) throw call.failure_of_answer();
      if (call.reply.header("ETag").empty())
        throw call.failure({"the store took a part without giving its ETag"});
    } catch (const error& e) {
      failure = own_copy(e);
    } catch (const std::exception& e) {
      failure.emplace(errc::io, e.what());
    }
    const std::scoped_lock lock(all.mutex_);
    --all.flying_;
    if (failure) {
      one.failed = std::move(failure);
      failure.reset();  // under the lock: both share the message
      if (one.attempt == 1) one.first_failed = clock::now();
    } else {
      all.etags_[one.number - 1] = call.reply.header("ETag");
      std::erase_if(all.open_, [&](const auto& each) { return each.get() == &one; });
    }
    all.changed_.notify_one();
  }
  /// Waits, and meanwhile sends parts again that have failed; throws for one that has failed for good.
  template <class Done>
  void wait_until(Done&& done) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (how_.retries.stop.stop_requested())
        throw error(errc::stopped, "the upload was ended by the stop token").in_file(name_);
      constexpr std::chrono::milliseconds looks_again{200};  // a pause is not told of a stop
      auto next = how_.retries.stop.stop_possible() ? clock::now() + looks_again : clock::time_point::max();
      part* due = nullptr;
      for (const auto& one : open_) {
        if (!one->failed) continue;
        if (!one->waits) {
          const retry_decision then = retries_.after({0, one->number, {}}, one->attempt,
                                                     read_failure::of(*one->failed), one->first_failed);
          if (!then.again) then.explain(*one->failed, one->attempt);
          if (!then.again) throw error(*one->failed);
          one->waits = true;
          one->again = then.due;
        }
        if (one->again <= clock::now()) {
          due = one.get();
          break;
        }
        next = std::min(next, one->again);
      }
      if (due != nullptr) {
        ++due->attempt;
        ++retried_;
        due->waits = false;
        lock.unlock();
        begin(*due);
        lock.lock();
      } else if (done()) {
        return;
      } else if (next == clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, next);
      }
    }
  }

  store& with_;
  upload_plan how_;
  retrier retries_;
  std::string name_;
  object_name object_;
  std::string gathered_, id_;
  std::optional<wall_time> started_;  // when the upload began, by the store's clock
  std::uint64_t size_ = 0, retried_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<part>> open_;  // on their way, or to be sent again
  std::vector<std::string> etags_;
  std::size_t flying_ = 0;
};

}  // namespace penstock::inline v0_1::detail::s3
