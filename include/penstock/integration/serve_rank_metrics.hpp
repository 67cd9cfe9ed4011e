// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<asio/version.hpp>)
#error "penstock/integration/serve_rank_metrics.hpp needs standalone Asio: link penstock::asio"
#endif

#include <penstock/integration/detail/rank_pages.hpp>
#include <penstock/integration/serve_metrics.hpp>

#include <concepts>
#include <optional>

namespace penstock::inline v0_1 {

/// Where the metrics of several ranks are served.
struct rank_metrics_options {
  std::uint16_t port = 0;             ///< of the page, which rank 0 has; 0: any that is free
  std::string address = "127.0.0.1";  ///< of the page; 0.0.0.0: all that the machine of rank 0 has
  std::string token = {};             ///< for the page, as that of `metrics_server_options`
  metric_labels labels = {};          ///< of this rank's run, besides `rank`
  /// An address of this rank's machine at which rank 0 can reach it. Without one: loopback, where all ranks
  /// have the same network, or else all addresses, and rank 0 looks up the name of the machine.
  std::string rank_address = {};
};

/// Something that gives a text of each rank to all of them, in the order of the ranks; collective, such as
/// `mpi::exchange`.
template <class T>
concept rank_exchange = requires(const T& all, std::string mine) {
  { all.rank() } -> std::convertible_to<std::uint64_t>;
  { all(mine) } -> std::same_as<std::vector<std::string>>;
};

namespace detail {

/// Throws on all ranks what has failed on one: `failure` is this rank's sentence. Returns what the ranks say.
inline std::vector<std::string> all_or_none(const auto& all, const std::string& mine,
                                            const std::optional<error>& failure) {
  std::vector<std::string> said = all(failure ? text({"-", failure->message()}) : "+" + mine);
  if (failure) throw *failure;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i].starts_with('-'))
      throw error(errc::io, {"rank ", i, " failed: ", std::string_view(said[i]).substr(1)});
    said[i].erase(0, 1);
  }
  return said;
}

}  // namespace detail

/// Serves the counters of all ranks on one page, that of rank 0, with the label `rank`; see `serve_metrics`.
/// It says which rank waited longest for its data since the last look, and why: `penstock_slowest_rank`, a
/// comment, and `/slowest`. A rank that does not answer within 2 s has `penstock_rank_up` 0 and nothing else.
///
/// Collective: every rank calls it, and if one fails, all throw. Rank 0 returns the server of the page. The
/// others return servers on free ports, which only rank 0 can read: all share a secret. Afterwards rank 0
/// asks them over HTTP, in the server's thread, when it is asked itself and at most once in a second;
/// `all` is not used any more.
///
///     const auto served = serve_metrics(run, mpi::exchange(MPI_COMM_WORLD), {.port = port});
template <class Run, rank_exchange Exchange>
  requires requires(const Run& r) { r.monitor(); }
[[nodiscard]] metrics_server serve_metrics(const Run& run, const Exchange& all,
                                           const rank_metrics_options& options = {}) {
  const auto rank = static_cast<std::uint64_t>(all.rank());
  const auto runs = std::make_shared<detail::watched_runs>(metric_labels{{"rank", std::to_string(rank)}});
  const std::string network = detail::network_name();
  const std::vector<std::string> first = all(detail::random_token() + network);
  const std::string secret = first[0].substr(0, detail::token_digits);
  const bool near = std::all_of(first.begin(), first.end(), [&](const std::string& one) {
    return one.substr(detail::token_digits) == network;
  });

  std::optional<metrics_server> served;
  std::optional<error> failure;
  std::string where;
  const auto attempt = [&](auto&& serve) {
    try {
      serve();
    } catch (const error& e) {
      failure = e;
    } catch (const std::exception& e) {
      failure.emplace(errc::io, e.what());
    }
  };
  attempt([&] {
    runs->add(run.monitor(), options.labels);
    if (rank == 0) return;
    where = !options.rank_address.empty() ? options.rank_address : near ? "127.0.0.1" : "0.0.0.0";
    served.emplace(runs, detail::http_server_options{.address = where, .token = secret},
                   detail::look_handler(runs));
    if (where == "0.0.0.0") where = detail::host_name();
    detail::append(where, {" ", served->port()});
  });
  const std::vector<std::string> said = detail::all_or_none(all, where, failure);
  if (rank == 0)
    attempt([&] {
      const auto pages = std::make_shared<detail::rank_pages>(runs, detail::endpoints_of(said),
                                                              detail::rank_pages::options{.token = secret});
      served.emplace(runs, detail::http_server_options{options.port, options.address, options.token},
                     [pages](const detail::http_request& asked, const detail::http_server::reply& answer,
                             ::asio::io_context& io) { pages->handle(asked, answer, io); });
    });
  (void)detail::all_or_none(all, {}, failure);
  return std::move(*served);
}

}  // namespace penstock::inline v0_1
