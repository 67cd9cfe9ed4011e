// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/storage/s3/credential_cache.hpp>
#include <penstock/storage/s3/credential_chain.hpp>
#include <penstock/storage/s3/credentials.hpp>
#include <penstock/storage/s3/endpoint.hpp>
#include <penstock/storage/s3/error_result.hpp>
#include <penstock/storage/s3/requests/web_http_call.hpp>
#include <penstock/storage/s3_options.hpp>

#include <random>

namespace penstock::inline v0_1::detail::s3 {

/// A request to a store, and where its answer goes. The caller fills the first part and keeps it until
/// `ended`.
struct store_call : web::call {
  /// Where it goes; no key: to the bucket. They outlive the call, as does `name`.
  std::string_view bucket, key;
  std::vector<name_value> query;  // not encoded
  std::vector<name_value> more;   // headers that are signed, in lower case
  /// What is to happen, for errors.
  std::string_view doing = "read an object";
  /// Called once, from any thread, under the rules of `web::call::done`.
  void* owner = nullptr;
  void (*ended)(void* owner, store_call& what, std::exception_ptr failed) noexcept = nullptr;

  // The store's.
  std::shared_ptr<const s3_credentials> as;
  std::shared_ptr<const endpoint> at;
  std::string payload;  // the hash of the body
  std::uint64_t round = 0;
  bool renewed = false, resynced = false, moved = false;  // what was done about an answer already

  [[nodiscard]] bool succeeded() const noexcept { return reply.status / 100 == 2; }
  [[nodiscard]] refusal refused() const {
    return read_refusal(answer_of(reply), at ? std::string_view(at->region()) : std::string_view());
  }
  /// The error of an answer that is no success.
  [[nodiscard]] error failure_of_answer() const { return with_facts(error_of(refused(), doing)); }
};

/// An ETag in quotes, without W/: some stores leave quotes out of lists. Empty for one with nothing in its
/// quotes, which SeaweedFS gives an object of another store until it has its bytes.
[[nodiscard]] inline std::string tag_of(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  if (tag == "\"\"") return {};
  const bool quoted = tag.size() > 1 && tag.starts_with('"') && tag.ends_with('"');
  return quoted || tag.empty() ? std::string(tag) : text({"\"", tag, "\""});
}

/// Performs requests to a store, signed. What an answer that is an error asks for is done, and the request is
/// sent once more: other credentials, the right time, another region. Where credentials must be found first,
/// a thread does that; callers of `begin` wait for nothing.
///
/// Threads: any number. Destruction ends all requests and waits for both threads.
class store : unmovable {
 public:
  explicit store(const s3_options& options, wall_clock clock = {})
      : environment_(options.environment ? *options.environment : s3_environment::of_process()),
        clock_(clock),
        credentials_(options.connection),
        credential_cache_(
            credential_chain(options.identity, environment_, credentials_.call(), {this, set_clock}),
            corrected(), std::random_device{}()),
        client_(std::in_place, options.connection) {
    const profile_files files(environment_);
    place_ = resolved(options.place, environment_, files,
                      profile_name(environment_, files, options.identity.profile));
    first_ = std::make_shared<const endpoint>(place_);
    if (options.requester_pays) always_.push_back({"x-amz-request-payer", "requester"});
  }
  ~store() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    refuse();
    wake_.notify_one();
    if (finder_.joinable()) finder_.join();
    client_.reset();
  }

  /// Begins calls, in their order; each ends by its `ended`.
  void begin(std::span<store_call* const> calls) noexcept {
    {
      const std::scoped_lock lock(mutex_);
      for (store_call* const one : calls) one->round = round_;
    }
    go(calls);
  }
  /// Performs one call and waits for its end; throws if there is no answer. Not from the client's thread.
  void perform(store_call& what) {
    awaited_end end;
    what.owner = &end;
    what.ended = awaited_end::tell<store_call>;
    store_call* const only = &what;
    begin({&only, 1});
    end.get();
  }

  /// Ends all calls that have begun, with errc::stopped.
  void cancel() noexcept {
    std::vector<store_call*> waited;
    {
      const std::scoped_lock lock(mutex_);  // so that nothing of the next round is cancelled, too
      ++round_;
      waited.swap(waiting_);
      client_->cancel();
      credentials_.cancel();
    }
    for (store_call* const one : waited) stop(*one);
  }
  /// Ends the calls with that tag. One whose credentials have just been found may run to its end.
  void abandon(std::uint64_t tag) noexcept {
    std::vector<store_call*> waited;
    try {
      const std::scoped_lock lock(mutex_);
      waited.reserve(waiting_.size());
      std::erase_if(waiting_, [&](store_call* one) {
        if (one->tag != tag) return false;
        waited.push_back(one);
        return true;
      });
    } catch (...) {  // no memory: they run to their ends
    }
    client_->abandon(tag);
    for (store_call* const one : waited) stop(*one);
  }
  /// As `cancel`, and takes no more.
  void refuse() noexcept {
    client_->refuse();
    credentials_.refuse();
    cancel();
  }

  /// Requests, and answers that asked for fewer, also those with another status than 429 and 503.
  [[nodiscard]] storage_counters counters() const noexcept {
    storage_counters all = client_->counters();
    all.slow_downs += slow_downs_.load();
    return all;
  }
  [[nodiscard]] store_requests ended_requests() const noexcept { return client_->ended_requests(); }
  [[nodiscard]] std::uint64_t connections() const noexcept { return client_->connections(); }

 private:
  // ---- Sending

  void go(std::span<store_call* const> calls) noexcept {
    std::exception_ptr failed;
    try {
      if (const auto as = credential_cache_.ready()) return send(calls, as);
      const std::scoped_lock lock(mutex_);
      waiting_.reserve(waiting_.size() + calls.size());
      if (!finder_.joinable() && !ends_) finder_ = std::thread([this]() noexcept { find_credentials(); });
      if (!ends_) {
        waiting_.insert(waiting_.end(), calls.begin(), calls.end());
        wake_.notify_one();
        return;
      }
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) return end_all(calls, std::move(failed));
    for (store_call* const one : calls) stop(*one);
  }
  /// Ends calls with a failure, outside of its handler: the last one takes it along, and frees it.
  template <class Call>
  static void end_all(std::span<Call* const> calls, std::exception_ptr failed) noexcept {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      auto& one = static_cast<store_call&>(*calls[i]);
      one.ended(one.owner, one, i + 1 == calls.size() ? std::move(failed) : failed);
    }
  }
  void find_credentials() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (ends_) return;  // `cancel` has ended, or will end, those that wait
      const std::uint64_t round = round_;
      std::vector<store_call*> calls;
      lock.unlock();
      std::shared_ptr<const s3_credentials> as;
      std::optional<error> failure;
      try {
        as = credential_cache_.current();
      } catch (const error& e) {
        failure = e;
      } catch (const std::exception& e) {
        failure.emplace(errc::io, e.what());
      }
      lock.lock();
      // What was cancelled meanwhile is gone; what came then gets its own try.
      if (failure && round != round_) continue;
      calls.swap(waiting_);
      lock.unlock();
      if (as)
        send(calls, as);
      else
        for (store_call* const one : calls) fail(*one, *failure);
      lock.lock();
    }
  }
  /// Never keeps the lock while a listener is called.
  void send(std::span<store_call* const> calls, const std::shared_ptr<const s3_credentials>& as) noexcept {
    std::vector<web::call*> ready;
    std::vector<store_call*> stopped;
    std::exception_ptr failed = thrown_by([&] {
      ready.reserve(calls.size());
      stopped.reserve(calls.size());
    });
    if (failed) return end_all(calls, std::move(failed));
    for (store_call* const one : calls) {
      std::exception_ptr refused;
      try {
        prepare(*one, as);
        ready.push_back(one);
      } catch (const error& e) {
        fail(*one, e);
      } catch (...) {
        refused = std::current_exception();
      }
      if (refused) one->ended(one->owner, *one, std::move(refused));
    }
    try {
      const std::scoped_lock lock(mutex_);
      std::erase_if(ready, [&](web::call* one) {
        auto& what = static_cast<store_call&>(*one);
        if (what.round == round_ && !ends_) return false;
        stopped.push_back(&what);
        return true;
      });
      if (!ready.empty()) client_->submit(ready);
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) end_all(std::span<web::call* const>(ready), std::move(failed));
    for (store_call* const one : stopped) stop(*one);
  }
  void prepare(store_call& what, const std::shared_ptr<const s3_credentials>& as) {
    what.as = as;
    what.at = place_of(what.bucket);
    what.where = what.at->of(what.bucket, what.key);
    what.where.query = query_of(what.query);
    what.been.clear();
    what.replaced = false;
    what.stored_encoded = true;  // a property of the object: ranges are of the bytes that were put
    if (what.body.empty())
      what.payload = empty_payload;
    else if (what.at->is_encrypted())
      what.payload = unsigned_payload;
    else if (what.payload.empty() || what.payload == unsigned_payload)
      what.payload = payload_hash(what.body);
    if (!what.body.empty() && what.at->is_encrypted() && !header_of(what.more, "content-md5"))
      if (std::string sum = md5_of(what.body); !sum.empty())
        what.more.push_back({"content-md5", std::move(sum)});
    what.signer = this;
    what.sign = sign;
    what.self = this;
    what.done = answered;
  }

  // ---- From the client's thread

  static void sign(void* self, const web::call& base, std::string& lines) {
    auto& me = *static_cast<store*>(self);
    const auto& what = static_cast<const store_call&>(base);
    std::string region = what.at->region();
    if (!what.been.empty() && !me.may_sign_again(what, region)) return;
    me.headers_.assign(me.always_.begin(), me.always_.end());
    me.headers_.insert(me.headers_.end(), what.more.begin(), what.more.end());
    const std::string host = what.where.authority();
    const auto method = boost::beast::http::to_string(what.method);
    aws_signer& signer = me.signers_.try_emplace(region, region).first->second;
    signer.sign(
        {{method.data(), method.size()}, host, what.where.path, what.query, me.headers_, what.payload},
        *what.as, me.corrected()(), me.signed_);
    for (const auto* const list : {&me.headers_, &me.signed_.headers})
      for (const name_value& one : *list)
        lines.append(one.name).append(": ").append(one.value).append("\r\n");
  }
  /// After a redirect: whether to sign for the new URL. AIStore's are signed already, and a host that is not
  /// of the same store must not learn what it could use. AWS redirects to the region of a new bucket.
  [[nodiscard]] bool may_sign_again(const store_call& what, std::string& region) const {
    const url& from = what.been.front();
    if (what.where.query != from.query) return false;
    if (what.where.same_origin(from)) return true;
    const auto is_aws = [](const url& one) {
      return one.scheme == "https" &&
             (one.host.ends_with(".amazonaws.com") || one.host.ends_with(".amazonaws.com.cn"));
    };
    if (!is_aws(from) || !is_aws(what.where)) return false;
    region = region_of_host(what.where.host, region);
    return true;
  }
  /// `eu-west-1` of `bucket.s3.eu-west-1.amazonaws.com` and of `s3-eu-west-1.amazonaws.com`.
  [[nodiscard]] static std::string region_of_host(std::string_view host, std::string_view otherwise) {
    host = host.substr(0, host.rfind(".amazonaws.com"));
    const std::size_t dot = host.rfind('.');
    const std::string_view last = host.substr(dot == std::string_view::npos ? 0 : dot + 1);
    if (last.starts_with("s3-")) return std::string(last.substr(3));
    return std::string(last == "s3" ? otherwise : last);
  }

  static void answered(void* self, web::call& base, std::exception_ptr failed) noexcept {
    auto& me = *static_cast<store*>(self);
    auto& what = static_cast<store_call&>(base);
    bool again = false;
    if (!failed && !what.succeeded()) failed = thrown_by([&] { again = me.remedied(what); });
    store_call* const only = &what;
    if (again) return me.go({&only, 1});
    what.ended(what.owner, what, std::move(failed));
  }
  /// Whether something was done about a refusal, so that it should be sent again.
  bool remedied(store_call& what) {
    const refusal found = what.refused();
    switch (found.remedy) {
      case s3_remedy::refresh_credentials:
        if (std::exchange(what.renewed, true) || what.as->anonymous()) return false;
        credential_cache_.expired(what.as);
        return true;
      case s3_remedy::resync_clock:
        if (std::exchange(what.resynced, true)) return false;
        set_clock(this, *found.server_time);
        return true;
      case s3_remedy::other_region:
        if (std::exchange(what.moved, true)) return false;
        move(std::string(what.bucket), found.region);
        return true;
      case s3_remedy::slow_down:
        if (found.status != 429 && found.status != 503) slow_downs_.fetch_add(1);
        return false;
      case s3_remedy::retry:
      case s3_remedy::none:
        break;
    }
    return false;
  }

  // ---- What was learnt

  [[nodiscard]] std::shared_ptr<const endpoint> place_of(std::string_view bucket) {
    const std::scoped_lock lock(mutex_);
    const auto found = moved_.find(bucket);
    return found == moved_.end() ? first_ : found->second;
  }
  void move(std::string bucket, const std::string& region) {
    s3_place there = place_;
    there.region = region;
    auto made = std::make_shared<const endpoint>(there);
    const std::scoped_lock lock(mutex_);
    moved_.insert_or_assign(std::move(bucket), std::move(made));
  }
  /// The clock of the store, as far as it has told.
  [[nodiscard]] wall_clock corrected() noexcept {
    return {this, [](void* self) {
              auto& me = *static_cast<store*>(self);
              return me.clock_() + std::chrono::seconds(me.ahead_.load());
            }};
  }

  static void set_clock(void* self, wall_time server) {
    auto& me = *static_cast<store*>(self);
    me.ahead_.store((server - me.clock_()).count());
  }

  // ---- Ends

  static void fail(store_call& what, const error& why) noexcept {
    what.ended(what.owner, what, thrown_by([&] { throw what.with_facts(own_copy(why)); }));
  }
  static void stop(store_call& what) noexcept { what.ended(what.owner, what, web::cancelled(what)); }

  s3_environment environment_;
  wall_clock clock_;
  std::atomic<std::int64_t> ahead_{0};  // seconds that the store's clock is ahead of ours
  std::atomic<std::uint64_t> slow_downs_{0};
  s3_place place_;
  std::shared_ptr<const endpoint> first_;
  std::vector<name_value> always_;
  web_http_call credentials_;
  credential_cache<credential_chain> credential_cache_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, std::shared_ptr<const endpoint>, std::less<>> moved_;  // buckets
  std::vector<store_call*> waiting_;                                           // for credentials
  std::uint64_t round_ = 0;                                                    // how often it was cancelled
  bool ends_ = false;
  std::thread finder_;

  // The client's thread's.
  std::map<std::string, aws_signer, std::less<>> signers_;  // by region
  std::vector<name_value> headers_;
  signed_request signed_;

  std::optional<web::client> client_;
};

}  // namespace penstock::inline v0_1::detail::s3
