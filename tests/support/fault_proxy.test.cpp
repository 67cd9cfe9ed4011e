// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/fault_proxy.hpp"

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/nginx.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using penstock_test::deadline;
using penstock_test::fault_kind;
using penstock_test::fault_proxy;
using penstock_test::network_fault;
using penstock_test::nginx_server;
using penstock_test::plain_client;
using ending = penstock_test::plain_client::ending;

namespace {

const std::string& body_of_faults() {
  static const std::string text = [] {
    std::string made(300'000, '\0');
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>(i * 31 + (i >> 8));
    return made;
  }();
  return text;
}

/// nginx with one file, and a proxy before it.
struct stage_of_faults {
  nginx_server server;
  fault_proxy proxy{server.port()};
  stage_of_faults() { server.put("a.tar", body_of_faults()); }

  plain_client::answer get(const network_fault& fault, const std::string& lines = {}) {
    proxy.script({fault});
    return plain_client(proxy.port()).get("/a.tar", lines);
  }
};

}  // namespace

TEST_CASE("support/fault_proxy: without faults it changes nothing") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("a proxy without faults");
  stage_of_faults here;
  plain_client client(here.proxy.port());
  for (int i = 0; i < 3; ++i) {
    const auto all = client.get("/a.tar");
    CHECK(all.status() == 200);
    CHECK((all.body == body_of_faults()));
    const auto part = client.get("/a.tar", "Range: bytes=100-199\r\n");
    CHECK(part.status() == 206);
    CHECK((part.body == body_of_faults().substr(100, 100)));
    CHECK(client.get("/a.tar", "If-None-Match: *\r\nConnection: keep-alive\r\n").status() == 304);
  }
  CHECK(client.send("HEAD /a.tar HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  CHECK(client.receive_answer(false).status() == 200);
  CHECK(client.get("/missing").status() == 404);
  CHECK(here.proxy.connections() == 1);
  CHECK(here.proxy.requests() == 11);
  CHECK(here.proxy.faults() == 0);
  const auto requests = here.server.requests();
  REQUIRE(requests.size() == 11);
  CHECK(requests[10].connection == requests[0].connection);
  CHECK(here.proxy.seen()[1].range == "bytes=100-199");
}

TEST_CASE("support/fault_proxy: cuts, resets and stalls where it is told to") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("cut connections");
  stage_of_faults here;
  const auto cut = here.get(network_fault::cut(1000));
  CHECK(cut.how == ending::closed);
  CHECK((cut.body == body_of_faults().substr(0, 1000)));
  const auto middle = here.get(network_fault::cut(1'000'000));
  CHECK(middle.body.size() == 150'000);
  const auto reset = here.get(network_fault::reset(0));
  CHECK(reset.how == ending::reset);
  CHECK(reset.body.empty());
  const auto early = here.get(network_fault::reset_before_answer());
  CHECK(early.how == ending::reset);
  CHECK(early.head.empty());
  const auto lost = here.get(network_fault::cut_before_answer());
  CHECK(lost.how == ending::closed);
  CHECK(lost.head.empty());
  CHECK(here.server.requests().size() == 5);
  CHECK(here.proxy.count(fault_kind::cut) == 3);
  CHECK(here.proxy.count(fault_kind::reset) == 2);

  const auto begin = std::chrono::steady_clock::now();
  CHECK((here.get(network_fault::stall(1000, 30ms)).body == body_of_faults()));
  CHECK((here.get(network_fault::delay(30ms)).body == body_of_faults()));
  CHECK(std::chrono::steady_clock::now() - begin >= 60ms);
  here.proxy.script({network_fault::stall(1000)});
  plain_client waits(here.proxy.port());
  CHECK(waits.send("GET /a.tar HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  CHECK(waits.receive_answer(false).status() == 200);
  std::string part;
  CHECK(waits.receive(part, 1000) == ending::enough);
  CHECK((part == body_of_faults().substr(0, 1000)));
  waits.wait_at_most(50ms);
  CHECK(waits.receive(part, 1001) == ending::late);
  CHECK(here.proxy.count(fault_kind::stall) == 3);
}

TEST_CASE("support/fault_proxy: changes bytes, lengths, ranges and speed") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("changed answers");
  stage_of_faults here;
  auto flipped = here.get(network_fault::flip(1234)).body;
  REQUIRE(flipped.size() == body_of_faults().size());
  CHECK(flipped[1234] == static_cast<char>(body_of_faults()[1234] ^ 1));
  flipped[1234] = body_of_faults()[1234];
  CHECK((flipped == body_of_faults()));

  const auto longer = here.get(network_fault::longer(10));
  CHECK(longer.how == ending::closed);
  CHECK((longer.body == body_of_faults()));
  CHECK(longer.head.find("Content-Length: 300010\r\n") != std::string::npos);
  const auto shorter = here.get(network_fault::shorter(10));
  CHECK(shorter.how == ending::enough);
  CHECK((shorter.body == body_of_faults().substr(0, 299'990)));

  const std::string range = "Range: bytes=100-199\r\n";
  const auto moved = here.get(network_fault::wrong_range(7), range);
  CHECK(moved.status() == 206);
  CHECK(moved.head.find("Content-Range: bytes 107-206/300000\r\n") != std::string::npos);
  CHECK((moved.body == body_of_faults().substr(100, 100)));
  CHECK(here.get(network_fault::wrong_range(7)).status() == 200);
  CHECK(here.proxy.count(fault_kind::wrong_range) == 1);
  const auto whole = here.get(network_fault::whole(), range);
  CHECK(whole.status() == 200);
  CHECK((whole.body == body_of_faults()));

  const auto begin = std::chrono::steady_clock::now();
  CHECK(here.get(network_fault::throttle(100'000), "Range: bytes=0-9999\r\n").body.size() == 10'000);
  CHECK(std::chrono::steady_clock::now() - begin >= 80ms);
}

TEST_CASE("support/fault_proxy: answers itself, and the connection lasts") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("answers of the proxy");
  stage_of_faults here;
  here.proxy.script({network_fault::server_error(), network_fault::slow_down(), network_fault::too_many(3),
                     network_fault::unavailable()});
  plain_client client(here.proxy.port());
  CHECK(client.get("/a.tar").status() == 500);
  const auto slow = client.get("/a.tar");
  CHECK(slow.status() == 503);
  CHECK(slow.body.find("<Code>SlowDown</Code>") != std::string::npos);
  const auto many = client.get("/a.tar");
  CHECK(many.status() == 429);
  CHECK(many.head.find("Retry-After: 3\r\n") != std::string::npos);
  CHECK(client.get("/a.tar").status() == 503);
  CHECK((client.get("/a.tar").body == body_of_faults()));
  CHECK(here.proxy.count(fault_kind::answer) == 4);
  CHECK(here.proxy.connections() == 1);
  CHECK(here.server.requests().size() == 1);
}

TEST_CASE("support/fault_proxy: closes idle connections at the worst moment, and keeps silent") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("idle connections");
  stage_of_faults here;
  here.proxy.script({network_fault::close_idle(), network_fault::none(), network_fault::none(),
                     network_fault::close_idle()});
  plain_client client(here.proxy.port());
  CHECK(client.get("/a.tar").status() == 200);
  CHECK(client.get("/a.tar").how == ending::closed);
  plain_client other(here.proxy.port());
  CHECK(other.get("/a.tar").status() == 200);
  CHECK(other.get("/a.tar").how == ending::closed);
  CHECK(here.proxy.count(fault_kind::close_idle) == 2);

  here.proxy.script({network_fault::silent()});
  plain_client waits(here.proxy.port(), std::chrono::seconds(1));
  CHECK(waits.get("/a.tar").how == ending::late);
  CHECK(here.proxy.count(fault_kind::silent) == 1);
}

TEST_CASE("support/fault_proxy: faults drawn by seed and request do not depend on the order") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("faults by chance");
  nginx_server server;
  server.put("a.tar", body_of_faults());
  const auto statuses = [&](std::uint64_t seed, bool backwards, unsigned repeats) {
    fault_proxy proxy(server.port());
    proxy.sometimes(network_fault::server_error(), {.one_in = 4, .seed = seed, .max_for_one_request = 1});
    std::vector<int> seen(100 * repeats);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        plain_client client(proxy.port());
        for (std::size_t i = t; i < 100; i += 4)
          for (std::size_t r = 0; r < repeats; ++r) {
            const std::size_t which = backwards ? 99 - i : i;
            seen[which * repeats + r] =
                client.get("/a.tar", "Range: bytes=" + std::to_string(which) + "-99\r\n").status();
          }
      });
    for (std::thread& one : threads) one.join();
    CHECK(proxy.requests() == 100 * repeats);
    CHECK(proxy.count(fault_kind::answer) ==
          static_cast<std::uint64_t>(std::count(seen.begin(), seen.end(), 500)));
    return seen;
  };
  const auto first = statuses(1, false, 1);
  const auto failures = std::count(first.begin(), first.end(), 500);
  CHECK(failures > 5);
  CHECK(failures < 60);
  CHECK(first == statuses(1, true, 1));
  CHECK(first != statuses(2, false, 1));
  const auto often = statuses(1, false, 8);
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(std::count(often.begin() + static_cast<std::ptrdiff_t>(i * 8),
                     often.begin() + static_cast<std::ptrdiff_t>(i * 8 + 8), 500) <= 1);
}

TEST_CASE(
    "support/fault_proxy: carries bodies of requests, chunks, tunnels and connections it does not look "
    "into") {
  if (!penstock_test::have_nginx() || !penstock_test::have_openssl()) return;
  if (!penstock_test::have_program("curl", "curl --version")) return;
  const deadline limit("curl through the proxy");
  nginx_server server(
      {.certificates = {penstock_test::certificate::good},
       .lines = "location /upload/ { dav_methods PUT; create_full_put_path on; alias " +
                std::string("files/up/; client_max_body_size 10m; }\n") +
                "location /packed/ { alias files/; gzip on; gzip_types *; gzip_min_length 1; }"});
  server.put("a.tar", body_of_faults());
  fault_proxy proxy(server.port());
  const std::string file = (server.root() / "a.tar").string();
  const std::string plain =
      "env -u http_proxy -u https_proxy -u HTTPS_PROXY -u ALL_PROXY -u all_proxy curl -sS --max-time 60 ";
  const auto sha = [](const std::string& command) {
    return penstock_test::run_program(command + " | sha256sum | cut -c 1-64").output;
  };
  const std::string wanted = sha("cat " + file);
  CHECK(penstock_test::run_program(plain + "-H 'Expect: 100-continue' -T " + file + " " +
                                   proxy.url("upload/b.tar"))
            .status == 0);
  CHECK(sha("cat " + (server.root() / "up/b.tar").string()) == wanted);
  CHECK(penstock_test::run_program("cat " + file + " | " + plain + "-H 'Transfer-Encoding: chunked' -T - " +
                                   proxy.url("upload/c.tar"))
            .status == 0);
  CHECK(sha("cat " + (server.root() / "up/c.tar").string()) == wanted);
  CHECK(sha(plain + "--compressed " + proxy.url("packed/a.tar")) == wanted);

  const std::string authority = "--cacert '" + server.authority().string() + "' ";
  fault_proxy to_tls(server.port(penstock_test::certificate::good));
  CHECK(sha(plain + authority + "--noproxy '' -x http://127.0.0.1:" + std::to_string(to_tls.port()) + " " +
            server.url(penstock_test::certificate::good, "a.tar")) == wanted);
  CHECK(to_tls.seen().at(0).method == "CONNECT");

  fault_proxy blind(server.port(penstock_test::certificate::good), penstock_test::proxy_of::connections);
  const std::string through =
      plain + authority + "https://localhost:" + std::to_string(blind.port()) + "/a.tar";
  CHECK(sha(through) == wanted);
  blind.script(
      {network_fault::cut(100'000), network_fault::flip(100'000), network_fault::reset_before_answer()});
  for (int i = 0; i < 3; ++i) CHECK(penstock_test::run_program(through + " -o /dev/null").status != 0);
  CHECK(blind.faults() == 3);
  CHECK(sha(through) == wanted);
}

TEST_CASE("support/fault_proxy: ends with stalled and silent connections open, and outlives its server") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("ending a proxy");
  nginx_server server;
  server.put("a.tar", body_of_faults());
  std::vector<std::unique_ptr<plain_client>> clients;
  {
    fault_proxy proxy(server.port());
    proxy.script({network_fault::silent(), network_fault::stall(0), network_fault::stall(1000),
                  network_fault::delay(1h), network_fault::throttle(10)});
    for (int i = 0; i < 6; ++i) {
      clients.push_back(std::make_unique<plain_client>(proxy.port()));
      if (i < 5) CHECK(clients.back()->send("GET /a.tar HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    }
    while (proxy.requests() < 5) std::this_thread::sleep_for(1ms);
    server.pause();
    plain_client unanswered(proxy.port());
    CHECK(unanswered.send("GET /a.tar HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    while (proxy.requests() < 6) std::this_thread::sleep_for(1ms);
  }
  server.resume();
  fault_proxy proxy(server.port());
  plain_client client(proxy.port());
  CHECK(client.get("/a.tar").status() == 200);
  server.kill();
  CHECK(client.get("/a.tar").status() == 0);
  server.start();
  CHECK(plain_client(proxy.port()).get("/a.tar").status() == 200);
}
