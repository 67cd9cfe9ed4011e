// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<asio/version.hpp>)
#error "penstock/integration/asio.hpp needs standalone Asio: link penstock::asio"
#endif

#include <penstock/core/error.hpp>
#include <penstock/run/engine/workers/thread.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/error.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/query.hpp>
#include <asio/system_error.hpp>
#include <asio/use_awaitable.hpp>

#include <atomic>
#include <concepts>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#if !defined(ASIO_HAS_CO_AWAIT)
#error "penstock: this Asio does not detect coroutines; define ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1"
#endif

namespace penstock::inline v0_1 {

namespace detail {

inline std::exception_ptr asio_aborted() {
  return std::make_exception_ptr(::asio::system_error(::asio::error::operation_aborted));
}

/// The threads that wait for an execution context's runs and complete into it; the context ends them before
/// it is destroyed.
class asio_waiters : public ::asio::execution_context::service {
 public:
  using key_type = asio_waiters;
  inline static ::asio::execution_context::id id;

  explicit asio_waiters(::asio::execution_context& context) : ::asio::execution_context::service(context) {}

  template <class Waiter>
  void add(const std::shared_ptr<Waiter>& waiter) {
    const std::lock_guard guard(lock_);
    std::erase_if(all_, [](const entry& e) { return e.waiter.expired(); });
    all_.push_back({waiter, [](void* it) noexcept { static_cast<Waiter*>(it)->close(); }});
  }

 private:
  struct entry {
    std::weak_ptr<void> waiter;
    void (*close)(void*) noexcept;
  };

  void shutdown() override {
    std::vector<entry> last;
    {
      const std::lock_guard guard(lock_);
      last.swap(all_);
    }
    for (const entry& e : last)
      if (const std::shared_ptr<void> waiter = e.waiter.lock()) e.close(waiter.get());
  }

  std::mutex lock_;
  std::vector<entry> all_;
};

/// A thread that waits for the batches of one run, so that no thread of the execution context has to, and the
/// calls that wait for it, in order.
template <class Plan>
class asio_waiter {
 public:
  using value_type = typename run<Plan>::value_type;

  /// One call of `next`. Whoever sets `answered` first, the batch or a cancellation, completes it.
  struct operation {
    std::atomic<bool> answered{false};
    bool cancellable = false;
    next_result<value_type> result;
    void (*post)(std::shared_ptr<operation>) = nullptr;
  };

  explicit asio_waiter(run<Plan>&& r) : run_(std::move(r)) { thread_.start<&asio_waiter::serve>(*this); }
  asio_waiter(const asio_waiter&) = delete;
  asio_waiter& operator=(const asio_waiter&) = delete;
  ~asio_waiter() { close(); }

  template <class Handler>
  void start(Handler handler, const ::asio::any_io_executor& executor) {
    home_.check();
    using kind = operation_of<Handler>;
    const auto op = std::make_shared<kind>(std::move(handler), executor);
    op->post = &kind::post_to_executor;
    if (op->slot.is_connected()) {
      op->cancellable = true;
      op->slot.assign([waiting = std::weak_ptr<operation>(op)](::asio::cancellation_type_t type) {
        const std::shared_ptr<operation> it = waiting.lock();
        if (type != ::asio::cancellation_type_t::none && it) abort(it);
      });
    }
    {
      const std::lock_guard guard(lock_);
      if (!closed_) {
        queue_.push_back(op);
        changed_.notify_one();
        return;
      }
    }
    abort(op);
  }

  [[nodiscard]] state where() {
    const std::lock_guard guard(lock_);
    if (before_) return *before_;
    if (busy_)
      throw error(errc::argument,
                  "state() while a batch is awaited; call it once the batch is there, or await it with a "
                  "cancellation slot");
    return run_.state();
  }

  /// Ends the waiting and the thread, and aborts the remaining calls. Must not be called from the thread
  /// itself.
  void close() noexcept {
    if (!home_.here()) return;  // the thread does not exist in a child after fork
    std::deque<std::shared_ptr<operation>> left;
    {
      const std::lock_guard guard(lock_);
      closed_ = true;
      left.swap(queue_);
    }
    run_.request_stop();
    changed_.notify_one();
    thread_.join();
    for (const auto& op : left) abort(op);
  }
  /// Called when the owner is destroyed. In a child after fork, the waiter lives as long as the process: its
  /// condition variable would wait for the parent's thread.
  static void let_go(std::shared_ptr<asio_waiter> it) noexcept {
    it->close();
    if (!it->home_.here()) it->self_ = it;
  }
  void request_stop() noexcept { run_.request_stop(); }
  [[nodiscard]] bool stopped() const noexcept { return run_.stopped(); }

 private:
  template <class Handler>
  struct operation_of : operation {
    using executor_type = ::asio::associated_executor_t<Handler, ::asio::any_io_executor>;

    operation_of(Handler&& h, const ::asio::any_io_executor& otherwise)
        : handler(std::move(h)),
          slot(::asio::get_associated_cancellation_slot(handler)),
          work(::asio::get_associated_executor(handler, otherwise)) {}

    static void post_to_executor(std::shared_ptr<operation> it) {
      auto self = std::static_pointer_cast<operation_of>(std::move(it));
      const executor_type executor = self->work.get_executor();
      ::asio::post(executor, [op = std::move(self)]() mutable { complete(std::move(op)); });
    }
    static void complete(std::shared_ptr<operation_of> self) {
      if (self->cancellable) self->slot.clear();
      Handler handler = std::move(self->handler);
      next_result<value_type> result = std::move(self->result);
      const ::asio::executor_work_guard<executor_type> busy = std::move(self->work);
      self.reset();
      std::move(handler)(std::move(result.failure), std::move(result.value));
    }

    Handler handler;
    ::asio::associated_cancellation_slot_t<Handler> slot;
    ::asio::executor_work_guard<executor_type> work;
  };

  static void abort(const std::shared_ptr<operation>& op) {
    if (op->answered.exchange(true)) return;
    op->result.failure = asio_aborted();
    op->post(op);
  }

  void serve() noexcept {
    std::unique_lock held(lock_);
    while (true) {
      changed_.wait(held, [this] { return closed_ || !queue_.empty(); });
      if (closed_) return;
      const std::shared_ptr<operation> op = std::move(queue_.front());
      queue_.pop_front();
      if (op->answered.load()) continue;  // cancelled before its turn
      if (!kept_) kept_ = fetch(*op, held);
      if (op->answered.exchange(true)) continue;  // cancelled meanwhile: keep the batch for the next call
      op->result = std::move(*kept_);
      if (closed_ && !op->result.value && op->result.failure == nullptr) op->result.failure = asio_aborted();
      kept_.reset();
      before_.reset();
      op->post(op);
    }
  }
  /// Waits for the next batch without holding the lock. Until it has the batch, the caller's position is
  /// `before_`.
  next_result<value_type> fetch(const operation& op, std::unique_lock<std::mutex>& held) noexcept {
    next_result<value_type> result;
    try {
      if (op.cancellable) before_ = run_.state();
    } catch (...) {
      result.failure = std::current_exception();
      return result;
    }
    busy_ = true;
    held.unlock();
    result = run_.next();
    held.lock();
    busy_ = false;
    return result;
  }

  home_process home_;
  std::shared_ptr<asio_waiter> self_;
  run<Plan> run_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<operation>> queue_;
  std::optional<next_result<value_type>> kept_;  // arrived after its call was cancelled
  std::optional<state> before_;
  bool busy_ = false, closed_ = false;
  joined_thread thread_;
};

}  // namespace detail

/// A run whose batches you await: in Asio coroutines, callbacks or futures, with any completion token.
///
///     asio::awaitable<std::uint64_t> sum_of_three_epochs(asio::io_context& io) {
///       async_run batches(io, loader(100).open(), 3);
///       std::uint64_t sum = 0;
///       while (auto batch = co_await batches.next())              // an optional: empty at the end
///         for (const std::uint64_t x : *batch) sum += x;
///       co_return sum;
///     }
///
/// In: an executor or an execution context, a run of a plan with `batch`, and the number of epochs (0: the
/// number given to the run, or one if it has none). Out: `next(token)` completes with `(std::exception_ptr,
/// std::optional<batch>)` on the handler's executor, by default the context's own: `co_await` returns the
/// optional or throws. Batches come in the run's order; concurrent calls are answered in the order of the
/// calls.
///
/// Each async_run has one thread that waits (and, with `workers(0)`, evaluates): no thread of the context is
/// ever blocked, and any number of runs can share a context. Cost per batch: two thread switches and a few
/// small allocations; nothing per sample.
///
/// Cancellation: a call with a connected slot completes immediately with `asio::error::operation_aborted`,
/// whatever the type. Nothing is lost: the batch that it waited for answers the next call, and `state()` is
/// the one before that batch. Such a call first takes a copy of the state, which with `shuffle_buffer` is
/// eight bytes per place. Destroying the async_run stops the run and aborts waiting calls; destroying the
/// context stops it too, but drops the calls.
///
/// Throws, from `co_await`: what the run throws, at its place in the sequence. `state()` throws
/// `errc::argument` while a call without a slot is waiting.
/// Threads: `next`, `state` and the destructor from one thread at a time, as for a socket; `request_stop`
/// from any. Handlers may run on a different context than the async_run's if that one lives longer. After
/// fork, the async_run belongs to the parent: in the child, `next` throws, and the destructor neither waits
/// nor frees.
template <class Plan>
class async_run {
  static_assert(plan_parts<Plan>::batched,
                "penstock: async_run awaits batches; write batch(n) at the end of the plan");
  using waiter_type = detail::asio_waiter<Plan>;

 public:
  using value_type = typename run<Plan>::value_type;
  using executor_type = ::asio::any_io_executor;

  async_run(executor_type executor, run<Plan> r, std::uint64_t epochs = 0) : executor_(std::move(executor)) {
    if (epochs != 0) static_cast<void>(r.epochs(epochs));
    waiter_ = std::make_shared<waiter_type>(std::move(r));
    ::asio::use_service<detail::asio_waiters>(::asio::query(executor_, ::asio::execution::context))
        .add(waiter_);
  }
  template <std::derived_from<::asio::execution_context> Context>
  async_run(Context& context, run<Plan> r, std::uint64_t epochs = 0)
      : async_run(executor_type(context.get_executor()), std::move(r), epochs) {}
  async_run(async_run&&) noexcept = default;
  async_run& operator=(async_run&& other) noexcept {
    if (this == &other) return *this;
    close();
    executor_ = std::move(other.executor_);
    waiter_ = std::move(other.waiter_);
    return *this;
  }
  ~async_run() { close(); }

  /// The next batch of the run's epochs; empty after the last one, and when the run was stopped.
  template <class Token>
  auto next(Token&& token) {
    return ::asio::async_initiate<Token, void(std::exception_ptr, std::optional<value_type>)>(
        [waiter = waiter_, executor = executor_](auto handler) {
          waiter->start(std::move(handler), executor);
        },
        token);
  }
  [[nodiscard]] auto next() { return next(::asio::use_awaitable); }

  /// The loop's position: after the last batch that `next` delivered.
  [[nodiscard]] penstock::state state() const { return waiter_->where(); }
  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }
  /// Stops the work: waiting calls complete with an empty optional. Any thread may call it.
  void request_stop() noexcept { waiter_->request_stop(); }
  [[nodiscard]] bool stopped() const noexcept { return waiter_->stopped(); }

 private:
  void close() noexcept {
    if (waiter_) waiter_type::let_go(std::exchange(waiter_, nullptr));
  }

  executor_type executor_;
  std::shared_ptr<waiter_type> waiter_;
};

template <class Context, class Plan>
async_run(Context&, run<Plan>) -> async_run<Plan>;
template <class Context, class Plan>
async_run(Context&, run<Plan>, std::uint64_t) -> async_run<Plan>;

}  // namespace penstock::inline v0_1
