// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Here threads are the ranks; over MPI: mpi_metrics.test.cpp

#include <penstock/integration/serve_rank_metrics.hpp>

#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace serve_rank_metrics_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

/// Threads that are ranks.
class threads_exchange {
 public:
  threads_exchange(std::uint64_t rank, std::barrier<>& all, std::vector<std::string>& said)
      : rank_(rank), all_(all), said_(said) {}
  [[nodiscard]] std::uint64_t rank() const { return rank_; }
  [[nodiscard]] std::vector<std::string> operator()(std::string mine) const {
    said_[rank_] = std::move(mine);
    all_.arrive_and_wait();
    auto copy = said_;
    all_.arrive_and_wait();
    return copy;
  }

 private:
  std::uint64_t rank_;
  std::barrier<>& all_;
  std::vector<std::string>& said_;
};
static_assert(ps::rank_exchange<threads_exchange>);

/// Calls f(rank, exchange) for each rank at once, and returns what they return.
template <class F>
auto on_ranks(std::size_t count, F f) {
  std::barrier<> all(static_cast<std::ptrdiff_t>(count));
  std::vector<std::string> said(count);
  std::vector<std::future<decltype(f(std::uint64_t{}, std::declval<threads_exchange&>()))>> running;
  for (std::uint64_t i = 0; i < count; ++i)
    running.push_back(
        std::async(std::launch::async, [&, i] { return f(i, threads_exchange(i, all, said)); }));
  std::vector<decltype(running[0].get())> made;
  for (auto& one : running) made.push_back(one.get());
  return made;
}

auto loader(std::uint64_t samples, std::chrono::milliseconds each = 0ms) {
  return ps::generated(samples,
                       [each](std::uint64_t i) {
                         if (each != 0ms) std::this_thread::sleep_for(each);
                         return static_cast<float>(i);
                       }) |
         ps::batch(4) | ps::workers(1);
}
std::string page(std::uint16_t port, const std::string& path = "/metrics") {
  return plain_client(port).get(path).body;
}
bool shows(const std::string& page, const std::string& line) {
  return page.find(line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("rank 0 shows the runs of all ranks, and which of them waits, and why") {
  const deadline guard("ranks");
  struct job {
    decltype(loader(0).open()) run;
    ps::metrics_server served;
  };
  auto ranks = on_ranks(3, [](std::uint64_t rank, const threads_exchange& all) {
    auto run = loader(4 * (rank + 1), rank == 2 ? 5ms : 0ms).open();
    auto served = ps::serve_metrics(run, all, {.labels = {{"run", "train"}}});
    return std::make_unique<job>(job{std::move(run), std::move(served)});
  });
  for (auto&& b : ranks[2]->run.epoch(0)) static_cast<void>(b);
  // By itself, another rank shows its runs to rank 0 alone.
  CHECK(plain_client(ranks[1]->served.port()).get("/look").status() == 401);

  const std::uint16_t port = ranks[0]->served.port();
  const std::string all = page(port);
  for (const std::string& one :
       {std::string("penstock_batches_delivered_total{rank=\"0\",run=\"train\"} 0"),
        std::string("penstock_batches_delivered_total{rank=\"2\",run=\"train\"} 3"),
        std::string("penstock_rank_up{rank=\"1\"} 1"), std::string("penstock_slowest_rank 2")}) {
    INFO(one << "\n" << all);
    CHECK(shows(all, one));
  }
  CHECK(all.find("# TYPE penstock_step gauge") == all.rfind("# TYPE penstock_step gauge"));
  const std::string slowest = page(port, "/slowest");
  CHECK(slowest.starts_with("rank 2 waited longest for its data: "));
  CHECK(slowest.find("-bound: ") != std::string::npos);
  CHECK(all.ends_with("\n# " + slowest));
  if (have_program("promtool", "promtool --version")) {
    const temp_dir folder;
    std::ofstream(folder / "page") << all;
    CHECK(run_program("promtool check metrics < " + (folder / "page").string()).status == 0);
  }

  ranks[1].reset();
  while (!shows(page(port), "penstock_rank_up{rank=\"1\"} 0")) std::this_thread::sleep_for(50ms);
  CHECK(page(port).find("total{rank=\"1\"") == std::string::npos);
  CHECK(shows(page(port), "penstock_batches_delivered_total{rank=\"2\",run=\"train\"} 3"));
  CHECK(page(port, "/slowest") == "no rank waited for its data since the last look\n");
}

TEST_CASE("what one rank cannot do, no rank does") {
  auto taken = loader(4).open();
  const auto first = ps::serve_metrics(taken);
  const auto said = on_ranks(2, [&](std::uint64_t rank, const threads_exchange& all) {
    auto run = loader(4).open();
    std::array<std::string, 2> failures;
    for (const bool other : {false, true}) {
      const ps::rank_metrics_options options{.port = other ? std::uint16_t{0} : first.port(),
                                             .rank_address = other && rank == 1 ? "192.0.2.1" : ""};
      try {
        static_cast<void>(ps::serve_metrics(run, all, options));
      } catch (const ps::error& e) {
        failures[other ? 1 : 0] = e.message();
      }
    }
    return failures;
  });
  CHECK(said[0][0].starts_with("cannot serve on port "));
  CHECK(said[1][0] == "rank 0 failed: " + said[0][0]);
  CHECK(said[1][1].starts_with("cannot serve on port 0 of 192.0.2.1: "));
  CHECK(said[0][1] == "rank 1 failed: " + said[1][1]);
  CHECK_THROWS_WITH(ps::detail::endpoints_of({"", "no.such.host.invalid 80"}),
                    contains("no address of \"no.such.host.invalid\", where rank 1 is"));
}

TEST_CASE("ranks that do not answer, or with something else, are left out in time") {
  const deadline guard("silent ranks");
  namespace d = ps::detail;
  auto run = loader(4).open();
  const auto with_rank = [&](const char* rank) {
    auto made = std::make_shared<d::watched_runs>(ps::metric_labels{{"rank", rank}});
    made->add(run.monitor(), {});
    return made;
  };
  const listening_socket silent = listen_on_loopback();
  const d::http_server strange({}, [](const auto&) { return d::http_answer{.status = 404}; });
  const d::http_server good({.token = "secret"}, d::look_handler(with_rank("4")));
  const auto at = [](std::uint16_t port) {
    return ::asio::ip::tcp::endpoint(::asio::ip::address_v4::loopback(), port);
  };
  std::vector<::asio::ip::tcp::endpoint> others{at(silent.port), at(free_port()), at(strange.port()),
                                                at(good.port())};
  others.insert(others.end(), 300, at(silent.port));  // more than are asked at once
  auto pages = std::make_shared<d::rank_pages>(
      with_rank("0"), others, d::rank_pages::options{.token = "secret", .deadline = 300ms, .fresh = 0ms});
  const std::weak_ptr<d::rank_pages> left = pages;
  std::promise<void> last;
  std::optional<d::http_server> served(
      std::in_place, d::http_server_options{},
      [pages = std::move(pages), &last](const auto& asked, const auto& answer, ::asio::io_context& io) {
        pages->handle(asked, answer, io);
        if (asked.query == "last") last.set_value();
      });
  // Many ask at once; some of them leave.
  std::vector<plain_client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back(served->port());
    clients.back().send("GET /metrics HTTP/1.1\r\n\r\n");
    if (i % 4 == 3) clients.back().close();
  }
  for (plain_client& one : clients) {
    if (!one.open()) continue;
    const std::string all = one.receive_answer().body;
    for (const char* const rank : {"1", "2", "3", "304"})
      CHECK(shows(all, std::string("penstock_rank_up{rank=\"") + rank + "\"} 0"));
    CHECK(shows(all, "penstock_rank_up{rank=\"4\"} 1"));
    CHECK(shows(all, "penstock_batches_delivered_total{rank=\"4\"} 0"));
  }
  // The server ends while it waits for ranks.
  clients.emplace_back(served->port()).send("GET /metrics?last HTTP/1.1\r\n\r\n");
  last.get_future().wait();
  served.reset();
  CHECK(left.expired());
}

}  // namespace serve_rank_metrics_test
