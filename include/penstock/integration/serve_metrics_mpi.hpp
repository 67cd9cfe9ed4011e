// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<mpi.h>) || !__has_include(<asio/version.hpp>)
#error "penstock/integration/serve_metrics_mpi.hpp needs MPI and standalone Asio: link penstock::mpi"
#endif

#include <penstock/integration/detail/rank_pages.hpp>
#include <penstock/integration/mpi.hpp>
#include <penstock/integration/serve_metrics.hpp>

namespace penstock::inline v0_1::mpi {

/// Where `mpi::serve_metrics` serves.
struct metrics_server_options {
  std::uint16_t port = 0;             ///< of the page of rank 0; 0: any that is free
  std::string address = "127.0.0.1";  ///< of the page of rank 0; 0.0.0.0: all that its machine has
  std::string token = {};             ///< for the page of rank 0, if given; see `serve_metrics`
  metric_labels labels = {};          ///< of this rank's run, besides `rank`
  /// An address of this rank's machine at which rank 0 can reach it. Without one: loopback, if all ranks are
  /// on one machine, or else all addresses, and rank 0 looks up the name of the machine.
  std::string rank_address = {};
};

/// Serves the counters of all ranks on one page, that of rank 0, with the label `rank`; see `serve_metrics`.
/// It says which rank waited longest for data since the last look, and why: `penstock_slowest_rank`, a
/// comment, and `/slowest`. A rank that does not answer within 2 s has `penstock_rank_up` 0 and nothing else.
///
/// Every process calls it, in the same order; what fails on one throws on all. Rank 0 returns the server of
/// the page. The others return a server each, on any free port, that only rank 0 can read: they share a
/// secret. Afterwards rank 0 asks them over HTTP, in the server's thread, at most once in a second and only
/// when it is asked; MPI is not called any more.
///
///     const auto served = mpi::serve_metrics(MPI_COMM_WORLD, run, {.port = 9431});
template <class Run>
  requires requires(const Run& r) { r.monitor(); }
[[nodiscard]] metrics_server serve_metrics(MPI_Comm comm, const Run& run,
                                           const metrics_server_options& options = {},
                                           std::chrono::milliseconds deadline = default_timeout) {
  namespace here = penstock::detail;
  const detail::peers all(comm);
  const world places = world_of(comm, deadline);
  const bool one_machine = places.local_size == places.size;
  const auto runs = std::make_shared<here::watched_runs>(metric_labels{{"rank", std::to_string(all.rank)}});
  const std::string secret = on_first_rank(comm, here::random_token, deadline);
  std::string reached = options.rank_address;
  // Moved out of, because `together` returns copies of nothing.
  std::optional<metrics_server> served;
  together(
      comm,
      [&] {
        runs->add(run.monitor(), options.labels);
        if (all.rank == 0) return;
        const std::string from = !reached.empty() ? reached : one_machine ? "127.0.0.1" : "0.0.0.0";
        if (reached.empty()) reached = one_machine ? from : here::host_name();
        served.emplace(runs, here::http_server_options{.address = from, .token = secret},
                       [runs](const here::http_request& asked, const here::http_server::reply& answer,
                              ::asio::io_context&) {
                         answer(asked.path == "/look" ? here::rank_pages::answer_look(*runs)
                                                      : here::http_answer{.status = 404});
                       });
      },
      deadline);
  const auto addresses = all.collect(0, served ? here::text({reached, " ", served->port()}) : std::string(),
                                     deadline, "say where they serve");
  together(
      comm,
      [&] {
        if (all.rank != 0) return;
        const auto pages = std::make_shared<here::rank_pages>(runs, here::endpoints_of(addresses),
                                                              here::rank_pages::options{.token = secret});
        served.emplace(runs, here::http_server_options{options.port, options.address, options.token},
                       [pages](const here::http_request& asked, const here::http_server::reply& answer,
                               ::asio::io_context& io) { pages->handle(asked, answer, io); });
      },
      deadline);
  return std::move(*served);
}

}  // namespace penstock::inline v0_1::mpi
