// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/storage/storage_counters.hpp>
#include <penstock/storage/web/web_exchange.hpp>

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>

namespace penstock::inline v0_1::detail::web {

/// Performs calls: one thread, started by the first of them, and a bounded number of connections that are
/// kept open. Calls begin in the order in which they were given.
///
/// Threads: any number may call `submit`, `perform` and `cancel`. Destruction cancels and joins; it waits for
/// a look-up of a name that is in progress.
class client : unmovable {
  static constexpr std::size_t max_redirects = 5;
  /// The calls with a tag, up to a number.
  struct named_calls {
    std::uint64_t tag, up_to;
  };

 public:
  explicit client(const http_options& options)
      : all_(options),
        proxies_(options.proxies ? http_proxies::of_environment() : http_proxies()),
        work_(all_.io.get_executor()),
        tick_(all_.io) {
    if (options.stop.stop_possible()) stops_.emplace(options.stop, refusing{this});
  }
  ~client() {
    stops_.reset();
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    cancel();
    {
      std::unique_lock lock(mutex_);
      all_told_.wait(lock, [&] { return open_calls_ == 0; });
    }
    all_.io.stop();
    thread_.join();
  }

  /// Takes all calls, or none and throws; after `refuse`, none.
  void submit(std::span<call* const> calls) {
    const std::scoped_lock lock(mutex_);
    if (refuses_) throw error(errc::stopped, "the read was cancelled");
    inbox_.reserve(inbox_.size() + calls.size());
    if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { all_.io.run(); });
    if (!posted_) net::post(all_.io, [this] { take_new(); });
    posted_ = true;
    for (call* const one : calls) {
      one->number = ++numbered_;
      inbox_.push_back(one);
    }
    open_calls_ += calls.size();
  }

  /// Performs one call and waits for its end; throws if there is no answer. Not from the client's thread.
  void perform(call& what) {
    awaited_end end;
    what.self = &end;
    what.done = awaited_end::tell<call>;
    call* const only = &what;
    submit({&only, 1});
    end.get();
  }

  /// Ends all calls that were submitted before: they end with errc::stopped, unless they just have.
  void cancel() noexcept {
    note_end([&] { cancel_up_to_ = numbered_; });
  }
  /// Ends the calls with that tag that were submitted before, as `cancel` ends all of them.
  void abandon(std::uint64_t tag) noexcept {
    note_end([&] { abandoned_.push_back({tag, numbered_}); });
  }
  /// Ends all calls, and takes no more.
  void refuse() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      refuses_ = true;
    }
    cancel();
  }

  /// Throws errc::argument if the environment names a proxy for that URL that cannot be used.
  void check_proxy(const url& where) const { (void)proxies_.of(where); }
  /// Requests, and answers that asked for fewer.
  [[nodiscard]] storage_counters counters() const noexcept {
    return {.requests = all_.counted.requests.load(), .slow_downs = all_.counted.slow_downs.load()};
  }
  [[nodiscard]] store_requests ended_requests() const noexcept { return all_.counted.ended.read(); }
  /// Opened so far.
  [[nodiscard]] std::uint64_t connections() const noexcept { return all_.counted.connections.load(); }

 private:
  template <class Note>
  void note_end(Note note) noexcept {
    try {
      const std::scoped_lock lock(mutex_);
      if (open_calls_ == 0) return;
      note();
      net::post(all_.io, [this] { take_new(); });
    } catch (...) {  // no memory: the next tick does it, or what was not noted runs to its end
    }
  }

  // ---- All of this belongs to the thread.

  void take_new() {
    std::uint64_t cancelled = 0;
    std::vector<named_calls> abandoned;
    {
      const std::scoped_lock lock(mutex_);
      queue_.insert(queue_.end(), inbox_.begin(), inbox_.end());
      inbox_.clear();
      posted_ = false;
      cancelled = std::exchange(cancel_up_to_, 0);
      abandoned.swap(abandoned_);
    }
    if (cancelled != 0) {
      cancelled_ = std::max(cancelled_, cancelled);
      stop([&](const call& one) { return one.number <= cancelled; });
    }
    if (!abandoned.empty())
      stop([&](const call& one) {
        return std::any_of(abandoned.begin(), abandoned.end(), [&](const named_calls& each) {
          return one.tag == each.tag && one.number <= each.up_to;
        });
      });
    begin_calls();
  }

  template <class Which>
  void stop(Which which) {
    const auto kept =
        std::stable_partition(queue_.begin(), queue_.end(), [&](const call* one) { return !which(*one); });
    const std::vector<call*> waiting(kept, queue_.end());
    queue_.erase(kept, queue_.end());
    for (const auto& one : connections_)
      if (const call* const doing = one->doing(); doing != nullptr && which(*doing))
        one->abandon(exchange::reason::stopped);
    for (call* const one : waiting) tell(*one, cancelled(*one));
  }

  void begin_calls() {
    while (!queue_.empty() && active_ < all_.options.connections) {
      call& next = *queue_.front();
      queue_.pop_front();
      begin(next, true);
    }
    if ((active_ == 0 && !fails()) || ticking_) return;
    try {
      tick();
    } catch (...) {  // no memory: the next call begins it
      ticking_ = false;
    }
  }
  /// Begins a call on a connection that is idle, if it may, or on a new one.
  void begin(call& next, bool reuse) {
    std::exception_ptr failed = thrown_by([&] {
      const auto by = reuse ? idle_for(next.where) : nullptr;
      const auto connection = by ? by : connect(next.where);
      ++active_;
      last_begun_ = clock::now();
      connection->start(next);
    });
    if (failed) tell(next, std::move(failed));
  }
  /// The connection that was used last, so that the others grow old.
  std::shared_ptr<exchange> idle_for(const url& where) {
    const auto now = clock::now();
    const http_proxy* const proxy = proxies_.of(where);
    std::erase_if(connections_, [&](const auto& one) {
      return one->is_idle() && one->serves(where, proxy) && one->has_spoken();
    });
    std::shared_ptr<exchange> best;
    for (const auto& one : connections_)
      if (one->is_idle() && one->serves(where, proxy) && now - one->idle_since() < all_.options.idle_time &&
          (!best || one->idle_since() > best->idle_since()))
        best = one;
    return best;
  }
  std::shared_ptr<exchange> connect(const url& where) {
    if (connections_.size() >= all_.options.connections) {
      const auto oldest =
          std::min_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
            if (a->is_idle() != b->is_idle()) return a->is_idle();
            return a->idle_since() < b->idle_since();
          });
      if ((*oldest)->is_idle()) {
        (*oldest)->close();
        connections_.erase(oldest);
      }
    }
    connections_.push_back(std::make_shared<exchange>(
        all_, where, proxies_.of(where),
        exchange::listener{
            this, [](void* self, const std::shared_ptr<exchange>& by, call& what, std::exception_ptr failed,
                     ending how) { static_cast<client*>(self)->ended(by, what, std::move(failed), how); }}));
    return connections_.back();
  }

  void ended(const std::shared_ptr<exchange>& by, call& what, std::exception_ptr failed,
             ending how) noexcept {
    --active_;
    if (how != ending::reusable) std::erase(connections_, by);
    if (how != ending::stale) note_outcome(what, failed);
    try {
      if (how == ending::stale && what.number > cancelled_) {
        begin(what, false);
        return begin_calls();
      }
      const bool again = how == ending::stale || (!failed && redirects(what));
      if (again && what.number > cancelled_) {
        queue_.push_front(&what);
        return begin_calls();
      }
      if (again) failed = cancelled(what);
      if (what.number > cancelled_ || !queue_.empty()) begin_calls();
    } catch (...) {
      failed = std::current_exception();
    }
    tell(what, std::move(failed));
  }

  /// Whether an answer leads to another URL, which is the call's now. Throws if it may not.
  bool redirects(call& what) {
    const unsigned status = what.reply.status;
    if (!what.follow_redirects || status / 100 != 3 || status == 300 || (status > 303 && status < 307) ||
        status > 308)
      return false;
    const std::string location(what.reply.header("Location"));
    if (location.empty()) return false;
    const auto refuse = [&](std::initializer_list<piece> why) { return what.failure(why).recurring(); };
    url to;
    try {
      to = resolve(what.where, location);
    } catch (const error& e) {
      throw refuse({"the server redirects to what cannot be followed: ", e.message()}).recurring();
    }
    if (to.scheme != "http" && to.scheme != "https")
      throw refuse({"the server redirects to the scheme ", to.scheme, ", which is not followed"});
    if (what.where.scheme == "https" && to.scheme == "http")
      throw refuse({"the server redirects from https to http, to ", to.without_secrets(),
                    "; that would give up the protection of TLS, so it is refused"});
    what.been.push_back(what.where);
    if (std::find(what.been.begin(), what.been.end(), to) != what.been.end())
      throw refuse({"the server redirects in a circle, back to ", to.without_secrets()});
    if (what.been.size() > max_redirects)
      throw refuse(
          {"the server redirects more than ", max_redirects, " times; use the URL that it leads to"});
    if (!to.same_origin(what.where))
      std::erase_if(what.headers,
                    [&](const call::header& one) { return what.headers_stay || is_secret(one.first); });
    if (status == 303 && what.method != verb::head) {
      what.method = verb::get;
      what.body.clear();
    }
    what.where = std::move(to);
    what.replaced = false;  // another request
    return true;
  }
  /// Whether a header is for the host that was asked first alone.
  static bool is_secret(std::string_view name) {
    const std::string lower = lowered(name);
    return lower == "authorization" || lower == "cookie" || lower.starts_with("x-amz-") ||
           lower.starts_with("x-goog-");
  }

  // ---- What a person is told

  /// Whether no good answer has come since a failure that may pass, which nobody was told of yet.
  [[nodiscard]] bool fails() const noexcept { return failing_since_ && may_warn(clock::now()); }
  /// Whether somebody may still wait: a read that is given up is not told of here.
  [[nodiscard]] bool may_warn(clock::time_point now) const noexcept {
    const auto& retries = all_.options.retries;
    if (all_.options.warn_after.count() == 0 || now < quiet_until_) return false;
    return active_ != 0 ||
           (retries.attempts > 1 && now - last_begun_ <= retries.max_backoff + retries.max_retry_after);
  }
  void note_outcome(const call& what, const std::exception_ptr& failed) noexcept {
    try {
      std::string why;
      if (failed) {
        try {
          std::rethrow_exception(failed);
        } catch (const error& e) {
          if (e.recurs()) return;  // stopped, or what no wait would mend
          why = e.message();
        }
      } else if (may_pass(what.reply.status)) {
        why = answer_error(what.reply.status, what.reply.retry_after()).message();
      } else {
        failing_since_.reset();
        return;
      }
      if (!failing_since_) failing_since_ = clock::now();
      failure_ = detail::text({what.shown(), ": ", why});
    } catch (...) {  // no memory: nobody is told
    }
  }
  void warn(clock::time_point now) {
    if (!may_warn(now)) return;
    std::string line;
    if (failing_since_ && now - *failing_since_ >= all_.options.warn_after)
      line = detail::text({"no good answer for ",
                           std::chrono::duration_cast<std::chrono::seconds>(now - *failing_since_).count(),
                           " s from ", failure_});
    for (std::size_t i = 0; line.empty() && i < connections_.size(); ++i)
      if (const call* const doing = connections_[i]->doing(); doing != nullptr) {
        const std::string why = connections_[i]->trouble(now);
        if (!why.empty()) line = detail::text({"waiting for ", doing->shown(), ": ", why});
      }
    if (line.empty()) return;
    quiet_until_ = now + std::chrono::minutes(1);
    std::fprintf(stderr, "penstock: %s\n", line.c_str());
  }

  void tell(call& what, std::exception_ptr failed) noexcept {
    what.done(what.self, what, std::move(failed));  // the call may be gone now
    const std::scoped_lock lock(mutex_);
    if (--open_calls_ == 0 && ends_) all_told_.notify_one();
  }

  /// Looks for what has lasted too long; the thread sleeps while nothing is in progress.
  void tick() {
    ticking_ = true;
    const auto least =
        std::min({all_.options.connect_time, all_.options.first_byte_time, all_.options.progress_time,
                  all_.options.throughput_window, all_.options.max_time});
    tick_.expires_after(std::clamp<std::chrono::milliseconds>(least / 8, std::chrono::milliseconds(1),
                                                              std::chrono::milliseconds(250)));
    tick_.async_wait([this](const error_code& code) {
      ticking_ = false;
      if (code) return;
      const auto now = clock::now();
      for (std::size_t i = 0; i < connections_.size(); ++i) {
        const auto one = connections_[i];  // what is late may leave the list
        if (!one->is_idle()) one->check_time(now);
      }
      warn(now);
      take_new();
    });
  }

  struct refusing {
    client* all;
    void operator()() const noexcept { all->refuse(); }
  };

  common all_;
  http_proxies proxies_;
  net::executor_work_guard<net::io_context::executor_type> work_;
  net::steady_timer tick_;
  std::deque<call*> queue_;
  std::vector<std::shared_ptr<exchange>> connections_;
  std::size_t active_ = 0;
  std::uint64_t cancelled_ = 0;
  bool ticking_ = false;
  clock::time_point last_begun_{}, quiet_until_{};
  std::optional<clock::time_point> failing_since_;
  std::string failure_;

  std::mutex mutex_;
  std::condition_variable all_told_;
  std::vector<call*> inbox_;
  std::vector<named_calls> abandoned_;
  std::uint64_t numbered_ = 0, cancel_up_to_ = 0;
  std::size_t open_calls_ = 0;
  bool posted_ = false, ends_ = false, refuses_ = false;
  std::thread thread_;
  std::optional<std::stop_callback<refusing>> stops_;
};

}  // namespace penstock::inline v0_1::detail::web
