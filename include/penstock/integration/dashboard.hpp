// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<asio/version.hpp>)
#error "penstock/integration/dashboard.hpp needs standalone Asio: link penstock::asio"
#endif

#include <penstock/inspection/describe.hpp>
#include <penstock/integration/detail/batch_thumbnails.hpp>
#include <penstock/integration/detail/dashboard_page.hpp>
#include <penstock/integration/detail/http_server.hpp>
#include <penstock/integration/detail/run_history.hpp>
#include <penstock/observe/run_monitor.hpp>
#include <penstock/run/run.hpp>

#include <asio/ip/address.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Where `dashboard` serves, and to whom.
struct dashboard_options {
  std::uint16_t port = 0;             ///< 0: any that is free
  std::string address = "127.0.0.1";  ///< of this machine, in digits; "0.0.0.0": all of them
  /// What a visitor must give in the address, of letters and digits. If it is empty: beyond loopback a random
  /// one, and on loopback none is needed.
  std::string token = {};
};

namespace detail {

/// The stages of a plan, source first, as they are written.
template <class Source, class... Stages>
[[nodiscard]] std::vector<std::string> stage_texts(const plan<Source, Stages...>& p) {
  std::vector<std::string> all{p.source().describe()};
  const auto add = [&](const auto& stage) {
    all.push_back(text_of_stage(stage));
    if (const std::string functions = functions_text(stage); !functions.empty())
      all.back().append(": ").append(functions);
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (add(at<Is>(p.stages())), ...);
  }(std::make_index_sequence<sizeof...(Stages)>{});
  return all;
}

/// What a dashboard's server knows. Once it is made, all of it happens in the server's thread.
class dashboard_state : public std::enable_shared_from_this<dashboard_state> {
 public:
  dashboard_state(run_monitor seen, const std::vector<std::string>& stages, std::string_view description,
                  decltype(batch_viewer::look) looks)
      : seen_(std::move(seen)), history_(stages, description), viewer_{&pictures_, looks} {
    note();
  }
  dashboard_state(const dashboard_state&) = delete;
  ~dashboard_state() {
    if (asked_for_) seen_.shared_with_run().show_none();
  }

  /// Notes the run's counters once a second from now on.
  void begin(::asio::io_context& io) {
    timer_.emplace(io);
    wait();
  }

  [[nodiscard]] http_answer answer(const http_request& asked) {
    if (asked.path == "/") return page();
    if (asked.path != "/data") return {.status = 404, .body = "the page is at /\n"};
    if (seen_.ended()) note();
    look();
    const bool fresh = number_in(asked, "sheet") != sheet_number_;
    return {.type = "application/json",
            .body = history_.json(number_in(asked, "after"), fresh ? sheet_ : "null", sheet_number_)};
  }

 private:
  using clock = std::chrono::steady_clock;

  void wait() {
    timer_->expires_after(std::chrono::seconds(1));
    timer_->async_wait([kept = weak_from_this()](const std::error_code& failed) {
      const auto it = kept.lock();
      if (failed || !it) return;
      it->note();
      if (it->looked_ && clock::now() - *it->looked_ > std::chrono::seconds(5)) it->look_away();
      if (!it->seen_.ended()) it->wait();
    });
  }
  void note() {
    const bool ended = seen_.ended();  // before its last counters are read
    history_.add(seen_.counters(), ended);
  }

  /// A page is open: takes the pictures that are there, and asks for the next ones every other second.
  void look() {
    if (viewer_.look == nullptr) return;
    if (auto made = pictures_.take()) {
      sheet_ = std::move(*made);
      ++sheet_number_;
    }
    looked_ = clock::now();
    if (asked_for_ && *looked_ - *asked_for_ < std::chrono::seconds(2)) return;
    asked_for_ = looked_;
    pictures_.begin();
    seen_.shared_with_run().show_next(viewer_);
  }
  /// The last page was closed: the next one does not begin with old pictures.
  void look_away() {
    seen_.shared_with_run().show_none();
    pictures_.drop();
    sheet_ = "null";
    looked_.reset();
    asked_for_.reset();
  }

  [[nodiscard]] static http_answer page() {
    const std::string nonce = random_token();
    std::string body(dashboard_page);
    constexpr std::string_view mark = "@NONCE@";
    for (std::size_t at = 0; (at = body.find(mark, at)) != body.npos;) body.replace(at, mark.size(), nonce);
    return {
        .type = "text/html; charset=utf-8",
        .body = std::move(body),
        .headers = text({"Content-Security-Policy: default-src 'none'; connect-src 'self'; img-src data:; "
                         "script-src 'nonce-",
                         nonce, "'; style-src 'nonce-", nonce,
                         "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
                         "Referrer-Policy: no-referrer\r\n"})};
  }
  [[nodiscard]] static std::uint64_t number_in(const http_request& asked, std::string_view name) {
    const std::string digits = asked.parameter(name);
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

  run_monitor seen_;
  run_history history_;
  batch_thumbnails pictures_;
  batch_viewer viewer_;
  std::optional<::asio::steady_timer> timer_;
  std::optional<clock::time_point> looked_, asked_for_;
  std::string sheet_ = "null";
  std::uint64_t sheet_number_ = 0;
};

}  // namespace detail

/// A page in the browser that shows what a run does: throughput and stall over time, the pipeline and what
/// each stage costs, batches that are ready, storage, cache, bad samples, the verdict, and if batches have
/// images, small pictures of the last one.
///
///     const dashboard page(run);
///     std::cerr << "see " << page.url() << '\n';  // http://127.0.0.1:41827/
///     for (auto epoch : run.epochs(90))
///       for (auto&& batch : epoch) step(batch);
///
/// In: a run, and where to serve. The page is one file with its style and its script: it loads nothing from
/// elsewhere, and its server lets it. Several pages may be open at once. Once the run is destroyed, the page
/// says so and shows its last values.
///
/// By default only programs on this machine reach it; another address needs a token, which `url()` contains.
/// It is sent as plain text: where you do not trust the network, use loopback through ssh -L.
///
/// Images: of the first field that has them, bytes or real numbers of shape (batch, height, width, channels)
/// or (batch, channels, height, width) with one or three channels, or gray bytes (batch, height, width).
///
/// Keeps the last ten minutes. Cost: a thread that copies the counters once a second, some microseconds; the
/// consumer copies small pictures of one batch, every two seconds while a page is open, and nothing
/// otherwise.
/// Throws `errc::io` if the port cannot be had, `errc::argument` if the address is none.
/// Threads: has its own; made in the thread of the run, destroyed in any. May outlive the run, and be
/// destroyed before it.
class dashboard {
 public:
  template <class Plan>
  explicit dashboard(const run<Plan>& r, dashboard_options options = {})
      : dashboard(std::make_shared<detail::dashboard_state>(r.monitor(), detail::stage_texts(r.plan()),
                                                            describe(r.plan()), looks_at<run<Plan>>()),
                  std::move(options)) {}

  /// Where the page is, with the token.
  [[nodiscard]] std::string url() const { return server_.url(); }
  [[nodiscard]] std::uint16_t port() const { return server_.port(); }

 private:
  dashboard(const std::shared_ptr<detail::dashboard_state>& state, dashboard_options options)
      : server_({.port = options.port, .address = options.address, .token = token_of(options)},
                [state](const detail::http_request& asked) { return state->answer(asked); }) {
    ::asio::post(server_.context(), [state, &io = server_.context()] { state->begin(io); });
  }

  [[nodiscard]] static std::string token_of(const dashboard_options& options) {
    std::error_code wrong;
    const auto address = ::asio::ip::make_address(options.address, wrong);
    if (!options.token.empty() || wrong || address.is_loopback()) return options.token;
    return detail::random_token();
  }
  /// How batches of this run are looked at; null if it has no batches.
  template <class Run>
  [[nodiscard]] static auto looks_at() -> void (*)(void*, const void*) noexcept {
    if constexpr (any_batch<typename Run::value_type>)
      return [](void* self, const void* batch) noexcept {
        static_cast<detail::batch_thumbnails*>(self)->look(
            *static_cast<const typename Run::value_type*>(batch));
      };
    else
      return nullptr;
  }

  detail::http_server server_;
};

}  // namespace penstock::inline v0_1
