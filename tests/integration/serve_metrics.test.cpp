// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/serve_metrics.hpp>

#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/server_process.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace serve_metrics_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

auto loader(std::uint64_t samples) {
  return ps::generated(samples, [](std::uint64_t i) { return static_cast<float>(i); }) | ps::batch(4) |
         ps::workers(2);
}
/// The page of a server, or what it says instead.
std::string page(const ps::metrics_server& of, const std::string& path = "/metrics") {
  return plain_client(of.port()).get(path).body;
}
bool shows(const std::string& page, const std::string& line) {
  return page.find(line + "\n") != std::string::npos;
}
const std::string get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Clients that hold connections and do nothing, or too little, and one that asks and never reads.
std::vector<plain_client> stuck_clients(std::uint16_t port, std::size_t count) {
  std::vector<plain_client> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.emplace_back(port);
    made.back().send(i % 2 == 0 ? "" : i % 3 == 0 ? "GET /metr" : get);
  }
  return made;
}

}  // namespace

TEST_CASE("a run's metrics are served, with those of other runs of the process") {
  const deadline guard("serving");
  auto run = std::make_optional(loader(64).open());
  auto served = ps::serve_metrics(*run, {.labels = {{"run", "a \"b\" \\ \n"}}});
  CHECK(served.url() == "http://127.0.0.1:" + std::to_string(served.port()) + "/metrics");
  const std::string mine = "penstock_batches_delivered_total{run=\"a \\\"b\\\" \\\\ \\n\"} ";
  CHECK(shows(page(served), mine + "0"));
  for (auto&& b : run->epoch(0)) static_cast<void>(b);
  CHECK(shows(page(served), mine + "16"));

  plain_client client(served.port());  // one connection
  const auto answer = client.get("/metrics");
  CHECK(answer.status() == 200);
  CHECK(answer.head.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n") != std::string::npos);
  CHECK(client.get("/").body.find("/metrics") != std::string::npos);
  CHECK(client.get("/healthz").body == "ok\n");
  CHECK(client.get("/other?x=/metrics").status() == 404);
  CHECK(client.send("HEAD /metrics HTTP/1.1\r\n\r\n" + get + "GET / HTTP/1.0\r\n\r\n"));
  const auto head = client.receive_answer(false);
  CHECK(head.status() == 200);
  CHECK(head.head.find("Content-Length: 0") == std::string::npos);
  CHECK(shows(client.receive_answer().body, mine + "16"));
  CHECK(client.receive_answer().status() == 200);
  std::string rest;
  CHECK(client.receive(rest, 1) == plain_client::ending::closed);  // HTTP/1.0

  CHECK_THROWS_WITH(served.add(*run, {{"run", "a \"b\" \\ \n"}}), contains("give each its own"));
  CHECK_THROWS_AS(served.add(*run, {{"not a name", ""}}), ps::error);
  // These differ, and their series would not.
  CHECK_THROWS_WITH(served.add(*run, {{"run", "a \"b\" \\ \n"}, {"rank", ""}}),
                    contains("give each its own"));
  for (std::uint64_t i = 1; i <= 2; ++i) {  // an evaluation takes the labels of the one before
    auto another = loader(8 * i).open();
    served.add(another, {{"run", "eval"}});
    auto moved = std::move(another);
    for (auto&& b : moved.epoch(0)) static_cast<void>(b);
    const std::string both = page(served);
    CHECK(shows(both, mine + "16"));
    CHECK(shows(both, "penstock_batches_delivered_total{run=\"eval\"} " + std::to_string(2 * i)));
  }

  // A run that is destroyed while clients read keeps its last values, until it is removed.
  std::atomic<bool> end{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    do
      if (!shows(page(served), mine + "16")) ++wrong;
    while (!end);
  });
  run.reset();
  end = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(shows(page(served), mine + "16"));
  served.remove({{"run", "a \"b\" \\ \n"}});
  CHECK(page(served).find(mine) == std::string::npos);

  // A child has the memory of a server and not its thread.
  CHECK(in_child([&] {
          const ps::metrics_server taken = std::move(served);
          return 0;
        }) == 0);
  CHECK(page(served).find("run=\"eval\"") != std::string::npos);
}

TEST_CASE("what the documentation shows") {
  std::size_t trained = 0;
  const auto train = [&](const auto& batch) { trained += batch.size(); };
  const std::uint16_t port = free_port();
  auto run = loader(16).open(), another = loader(16).open();
  {
    const auto served = ps::serve_metrics(run, {.port = port});
    for (const auto& batch : run.epoch(0)) train(batch);
    CHECK(shows(plain_client(port).get("/metrics").body, "penstock_samples_delivered_total 16"));
  }
  CHECK_FALSE(plain_client(port).open());
  auto served = ps::serve_metrics(run, {.labels = {{"run", "train"}}});
  served.add(another, {{"run", "eval"}});
  CHECK(shows(page(served), "penstock_samples_delivered_total{run=\"eval\"} 0"));
  CHECK(trained == 16);
}

TEST_CASE("a server says why it cannot serve") {
  auto run = loader(8).open();
  const auto served = ps::serve_metrics(run);
  CHECK_THROWS_WITH(ps::serve_metrics(run, {.port = served.port()}),
                    contains("port " + std::to_string(served.port()) + " of 127.0.0.1: another program"));
  CHECK_THROWS_WITH(ps::serve_metrics(run, {.address = "localhost"}),
                    contains("\"localhost\" is no address"));
  for (const auto deadline : {std::chrono::milliseconds(0), std::chrono::milliseconds::max()})
    CHECK_THROWS_WITH(ps::serve_metrics(run, {.deadline = deadline}), contains("1 ms to a day"));
  CHECK_THROWS_WITH(ps::serve_metrics(run, {.address = "192.0.2.1"}),
                    contains("does not have that .address"));
  if (have_ipv6())
    CHECK(ps::serve_metrics(run, {.address = "::1"}).url().starts_with("http://[::1]:"));
  else
    CHECK_THROWS_WITH(ps::serve_metrics(run, {.address = "::1"}), contains("does not have that .address"));
  // Some containers let anybody have low ports.
  const int refused = in_child([&] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 2;
    try {
      const ps::detail::http_server low({.port = 1}, [](const auto&) { return ps::detail::http_answer(); });
      return 2;
    } catch (const ps::error& e) {
      return e.message().find("port 1 of 127.0.0.1: this process may not") != std::string_view::npos ? 0 : 1;
    }
  });
  CHECK((refused == 0 || refused == 2));
}

TEST_CASE("a server with a token tells nobody else") {
  auto run = loader(8).open();
  const auto open = ps::serve_metrics(run), closed = ps::serve_metrics(run, {.token = "s+cret"});
  const auto status = [](const ps::metrics_server& of, const std::string& path, const std::string& lines) {
    return plain_client(of.port()).get(path, lines).status();
  };
  CHECK(closed.url().ends_with("/metrics?token=s%2Bcret"));
  CHECK(status(closed, "/metrics", "") == 401);
  CHECK(status(closed, "/metrics?token=s+cre", "") == 401);
  CHECK(status(closed, "/metrics?token=s+cretx", "") == 401);
  CHECK(status(closed, "/metrics?atoken=s+cret&token", "") == 401);
  CHECK(status(closed, "/metrics?a=b&token=s%2Bcret", "Host: other.example\r\n") == 200);
  CHECK(status(closed, "/metrics", "authorization:bearer s+cret \r\n") == 200);
  CHECK(status(closed, "/metrics", "Authorization: Basic s+cret\r\n") == 401);
  // A page of the web that lets its own name point to this machine.
  const auto as = [&](const std::string& host) {
    plain_client client(open.port());
    client.send("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    return client.receive_answer().status();
  };
  CHECK(as("other.example:80") == 403);
  CHECK(as("LocalHost:80") == 200);
  CHECK(as("127.0.0.1") == 200);
}

TEST_CASE("hostile clients are cut off, and keep nobody out") {
  const deadline guard("hostile clients");
  auto run = loader(4096).open();
  const auto served = ps::serve_metrics(run, {.deadline = 300ms});
  const auto refused = [&](const std::string& request) {
    plain_client client(served.port());
    client.send(request);
    const int status = client.receive_answer().status();
    std::string rest;
    return client.receive(rest, 1) == plain_client::ending::late ? 0 : status;
  };
  CHECK(refused("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n") == 405);
  CHECK(refused("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n") == 413);
  CHECK(refused("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n") == 413);
  CHECK(refused("GET / HTTP/2.0\r\n\r\n") == 505);
  CHECK(refused("GET / HTTP/1.1\r\n folded\r\n\r\n") == 400);
  CHECK(refused("\x16\x03\x01\r\n\r\n") == 400);
  CHECK(refused("GET metrics HTTP/1.1\r\n\r\n") == 400);
  CHECK(refused("GET http://localhost HTTP/1.1\r\n\r\n") == 400);
  CHECK(refused("GET / HTTP/1.1\r\nX: " + std::string(8192 - 19, 'a')) == 431);

  SECTION("a gigabyte") {
    plain_client client(served.port());
    client.send("GET / HTTP/1.1\r\nX: ");
    const std::string part(1 << 20, 'a');
    int sent = 0;
    while (sent < 1024 && client.send(part)) ++sent;
    CHECK(sent < 1024);
  }
  SECTION("a byte after a long time, again and again") {
    plain_client client(served.port());
    client.send("GET /");
    int sent = 0;
    for (; sent < 5000 && client.send("a"); ++sent) std::this_thread::sleep_for(10ms);
    CHECK(sent < 5000);
  }
  SECTION("requests without end from one that reads nothing") {
    plain_client client(served.port());
    int sent = 0;
    while (sent < 1'000'000 && client.send(get)) ++sent;
    CHECK(sent < 1'000'000);
  }
  SECTION("without descriptors") {
    ::rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    plain_client client(served.port()), another(served.port());
    another.close();
    std::vector<listening_socket> taken;
    taken.push_back(listen_on_loopback());
    const ::rlimit none{static_cast<::rlim_t>(taken.back().socket.get()), usual.rlim_max};
    owned_socket late(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::setrlimit(RLIMIT_NOFILE, &none);
    const int connected = penstock_test::detail::with_loopback(
        false, served.port(), [&](auto* address, auto size) { return ::connect(late.get(), address, size); });
    CHECK(connected == 0);
    CHECK(::send(late.get(), get.data(), get.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(get.size()));
    std::this_thread::sleep_for(50ms);
    ::setrlimit(RLIMIT_NOFILE, &usual);
    char first = 0;
    CHECK(::recv(late.get(), &first, 1, 0) == 1);
    CHECK(first == 'H');
  }
  SECTION("1000 at once") {
    ::rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::max(files.rlim_cur, std::min<::rlim_t>(files.rlim_max, 2000));
    ::setrlimit(RLIMIT_NOFILE, &files);
    const std::size_t count = std::min<std::size_t>(1000, files.rlim_cur - 200);
    std::vector<plain_client> clients;
    for (std::size_t i = 0; i < count; ++i) clients.emplace_back(served.port());
    for (plain_client& one : clients) one.send(get);
    std::size_t answered = 0, ended = 0;
    for (plain_client& one : clients) {
      const auto answer = one.receive_answer();
      answered += answer.status() == 200;
      ended += answer.status() != 200 && answer.how != plain_client::ending::late;
    }
    CHECK(answered + ended == count);
    CHECK(answered > 0);
  }
  SECTION("a loop over batches, while connections do nothing") {
    auto stuck = stuck_clients(served.port(), 200);
    std::size_t batches = 0;
    for (auto&& b : run.epoch(0)) {
      batches += b.size() == 4;
      if (batches % 100 == 0) stuck.emplace_back(served.port()).send(get);
    }
    CHECK(batches == 1024);
    CHECK(shows(page(served), "penstock_batches_delivered_total 1024"));
  }
  CHECK(page(served).starts_with("# HELP"));
  stuck_clients(served.port(), 20);
  auto stuck = stuck_clients(served.port(), 70);  // a server ends at once, whoever is connected
}

TEST_CASE("of too many connections the oldest goes, which waits for a request") {
  auto run = loader(8).open();
  const auto served = ps::serve_metrics(run, {.deadline = 10min});
  auto stuck = stuck_clients(served.port(), 70);
  std::string rest;
  CHECK(stuck[0].receive(rest, 1) == plain_client::ending::closed);
  CHECK(page(served).starts_with("# HELP"));
}

TEST_CASE("Prometheus scrapes a run") {
  if (!have_program("Prometheus", "prometheus --version")) return;
  const temp_dir folder;
  auto run = loader(64).open();
  const auto served = ps::serve_metrics(run, {.token = "s3cret", .labels = {{"run", "a \"b\""}}});
  for (auto&& b : run.epoch(0)) static_cast<void>(b);
  std::ofstream(folder / "prometheus.yml")
      << "global: { scrape_interval: 1s }\nscrape_configs:\n- job_name: penstock\n"
         "  authorization: { credentials: s3cret }\n  static_configs:\n  - targets: [ '127.0.0.1:"
      << served.port() << "' ]\n";
  const std::uint16_t port = free_port();
  server_process prometheus({"prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                             "--web.listen-address=127.0.0.1:" + std::to_string(port)},
                            folder.path(), folder / "output");
  const auto ask = [&](const std::string& what) {
    return plain_client(port).get("/api/v1/" + what, "Connection: close\r\n").body;
  };
  const std::string series = "query?query=penstock_samples_delivered_total";
  INFO(ask("targets") << prometheus.output());
  REQUIRE(wait_until_ready(prometheus, [&] { return ask(series).find("\"64\"]") != std::string::npos; }));
  CHECK(ask(series).find("\"run\":\"a \\\"b\\\"\"") != std::string::npos);
  CHECK(ask("query?query=penstock_consumer_stall_seconds_total").find("\"reason\":") != std::string::npos);
  CHECK(ask("targets").find("\"health\":\"up\"") != std::string::npos);
  prometheus.kill();
}

}  // namespace serve_metrics_test
