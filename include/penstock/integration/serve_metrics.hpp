// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<asio/version.hpp>)
#error "penstock/integration/serve_metrics.hpp needs standalone Asio: link penstock::asio"
#endif

#include <penstock/integration/detail/http_server.hpp>
#include <penstock/integration/detail/watched_runs.hpp>
#include <penstock/observe/metrics.hpp>
#include <penstock/observe/run_monitor.hpp>

#include <memory>
#include <utility>

namespace penstock::inline v0_1 {

/// Where `serve_metrics` serves, and to whom.
struct metrics_server_options {
  std::uint16_t port = 0;             ///< 0: any that is free, see `metrics_server::url`
  std::string address = "127.0.0.1";  ///< of this machine; 0.0.0.0: all of them
  /// If given, only requests that have it are answered: as `?token=`, or as `Authorization: Bearer`.
  std::string token = {};
  metric_labels labels = {};  ///< of the run's series
  /// The time for a request to arrive, and for its answer to be taken; slower clients are cut off.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
};

/// What `serve_metrics` returns: serves until it is destroyed, which waits for no client.
///
/// Threads: any may call, but not during a move.
///
///     auto served = serve_metrics(run, {.labels = {{"run", "train"}}});
///     served.add(another, {{"run", "eval"}});
class metrics_server {
 public:
  /// Shows another run of this process, too. Its labels must differ from those of the others; a run that has
  /// been destroyed gives its labels to the next one, as that of each epoch's evaluation does.
  template <class Run>
    requires requires(const Run& r) { r.monitor(); }
  void add(const Run& run, metric_labels labels = {}) {
    runs_->add(run.monitor(), std::move(labels));
  }
  /// Removes the run with these labels, which is served with its last values after it was destroyed. Nothing
  /// happens if there is none.
  void remove(const metric_labels& labels) { runs_->remove(labels); }

  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  /// The address of the page, with the token if there is one: http://127.0.0.1:9431/metrics.
  [[nodiscard]] std::string url() const { return server_.url("/metrics"); }

  /// For `serve_metrics`.
  metrics_server(std::shared_ptr<detail::watched_runs> runs, const detail::http_server_options& options,
                 detail::http_connection::handler handle)
      : runs_(std::move(runs)), server_(options, std::move(handle)) {}

 private:
  std::shared_ptr<detail::watched_runs> runs_;
  detail::http_server server_;
};

namespace detail {

/// What all servers of metrics answer: the page, and what leads there.
template <class Page>
http_answer metrics_answer(const http_request& asked, Page page) {
  if (asked.path == "/metrics")
    return {.type = std::string(media_type_of(metrics_format::prometheus)), .body = page()};
  if (asked.path == "/") return {.body = "metrics of a run of penstock, for Prometheus: /metrics\n"};
  if (asked.path == "/healthz") return {.body = "ok\n"};
  return {.status = 404, .body = "there is nothing here; the metrics are in /metrics\n"};
}

}  // namespace detail

/// Serves the counters of a run over HTTP, as Prometheus reads them: `/metrics`; and `/healthz`, which
/// answers as long as the process does.
///
/// One thread answers, from copies of the counters: the run never waits for it, whatever its clients do. It
/// takes heads of at most 8 KiB and no bodies; 64 connections, of which the oldest goes for one more; and
/// ends each that is slower than `.deadline`. Only processes of this machine can ask, unless `.address` says
/// otherwise: then give a `.token`, too. A run that is destroyed keeps its last values on the page.
/// Errors: `errc::io` if the port cannot be had, naming it, and what to do; `errc::argument` for an address
/// that is none. After `fork`, only the parent serves.
///
///     const auto served = serve_metrics(run, {.port = port});
///     for (const auto& batch : run.epoch(0)) train(batch);
template <class Run>
  requires requires(const Run& r) { r.monitor(); }
[[nodiscard]] metrics_server serve_metrics(const Run& run, const metrics_server_options& options = {}) {
  const auto runs = std::make_shared<detail::watched_runs>();
  runs->add(run.monitor(), options.labels);
  return {
      runs,
      {options.port, options.address, options.token, options.deadline},
      [runs](const detail::http_request& asked, const detail::http_server::reply& answer,
             ::asio::io_context&) { answer(detail::metrics_answer(asked, [&] { return runs->page(); })); }};
}

}  // namespace penstock::inline v0_1
