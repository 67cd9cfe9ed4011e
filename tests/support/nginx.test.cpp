// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/nginx.hpp"

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

using penstock_test::certificate;
using penstock_test::deadline;
using penstock_test::nginx_server;
using penstock_test::plain_client;
using penstock_test::run_program;

namespace {

const std::string& ten_thousand() {
  static const std::string text = [] {
    std::string made(10'000, '\0');
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>(i * 31 + (i >> 8));
    return made;
  }();
  return text;
}

/// How curl ends, with what it prints.
penstock_test::program_result curl(const nginx_server& server, const std::string& arguments) {
  return run_program(
      "env -u http_proxy -u https_proxy -u HTTPS_PROXY -u ALL_PROXY -u all_proxy curl -sS --max-time 60 "
      "--cacert '" +
      server.authority().string() + "' " + arguments);
}
int code_of(const penstock_test::program_result& result) { return WEXITSTATUS(result.status); }

}  // namespace

TEST_CASE("support/nginx: serves files, ranges of them, and says so in its log") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("nginx serves ranges");
  nginx_server server;
  server.put("folder/a.tar", ten_thousand());
  plain_client client(server.port());
  const auto all = client.get("/folder/a.tar");
  CHECK(all.status() == 200);
  CHECK((all.body == ten_thousand()));
  CHECK(all.head.find("ETag: ") != std::string::npos);
  const auto part = client.get("/folder/a.tar", "Range: bytes=100-199\r\n");
  CHECK(part.status() == 206);
  CHECK((part.body == ten_thousand().substr(100, 100)));
  CHECK(client.get("/folder/a.tar", "Range: bytes=20000-\r\n").status() == 416);
  CHECK(client.get("/folder/a.tar", "If-Match: \"another\"\r\n").status() == 412);
  CHECK(plain_client(server.port()).get("/missing").status() == 404);  // nginx closes after 412

  const auto requests = server.requests();
  REQUIRE(requests.size() == 5);
  CHECK(requests[0].target == "/folder/a.tar");
  CHECK(requests[0].method == "GET");
  CHECK(requests[0].range.empty());
  CHECK(requests[0].body_bytes == 10'000);
  CHECK(requests[1].range == "bytes=100-199");
  CHECK(requests[1].body_bytes == 100);
  CHECK(requests[1].status == 206);
  CHECK(requests[1].connection == requests[0].connection);
  CHECK(requests[1].ordinal == 2);
  CHECK(requests[3].if_match.find("another") != std::string::npos);
  CHECK_FALSE(requests[4].tls);
  server.clear_requests();
  CHECK(server.requests().empty());
}

TEST_CASE("support/nginx: serves them without ranges, with a password, slowly, elsewhere and not at all") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("nginx serves in its ways");
  nginx_server server({.lines = "location = /mine { return 200 own; }"});
  server.put("a.tar", ten_thousand());
  plain_client client(server.port());
  const auto whole = client.get("/no-ranges/a.tar", "Range: bytes=100-199\r\n");
  CHECK(whole.status() == 200);
  CHECK(whole.body.size() == 10'000);
  CHECK(client.get("/private/a.tar").status() == 401);
  CHECK(client.get("/private/a.tar", "Authorization: Basic dXNlcjpwYXNzd29yZC1vZi11c2Vy\r\n").status() ==
        200);
  CHECK(client.get("/private/a.tar", "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n").status() == 401);
  CHECK((client.get("/slow/a.tar").body == ten_thousand()));
  CHECK(client.get("/mine").body == "own");
  const std::string here = "http://localhost:" + std::to_string(server.port());
  for (const int status : {301, 302, 303, 307, 308}) {
    const auto moved = client.get("/redirect/" + std::to_string(status) + "/a.tar?x=1");
    CHECK(moved.status() == status);
    CHECK(moved.head.find("Location: http://localhost/a.tar?x=1\r\n") != std::string::npos);
  }
  CHECK(client.get("/relative/a.tar").head.find("Location: /a.tar\r\n") != std::string::npos);
  CHECK(client.get("/far/a.tar").head.find("Location: " + here + "/a.tar\r\n") != std::string::npos);
  CHECK(client.get("/loop").head.find("/loop\r\n") != std::string::npos);
  CHECK(client.get("/ping").head.find("/pong\r\n") != std::string::npos);
  CHECK(client.get("/status/429").head.find("Retry-After: 1\r\n") != std::string::npos);
  CHECK(client.get("/status/503").head.find("Retry-After: 1\r\n") != std::string::npos);
  for (const int status : {400, 401, 403, 404, 429, 500, 502, 503, 504}) {
    plain_client other(server.port());  // some of them end the connection
    CHECK(other.get("/status/" + std::to_string(status)).status() == status);
  }
  CHECK(plain_client(server.port()).get("/drop").how == plain_client::ending::closed);
  CHECK(plain_client(server.port()).get(here + "/a.tar").status() == 200);
  for (const auto& one : server.requests())
    if (one.user == "user" && one.status == 200) CHECK(one.target == "/private/a.tar");
}

TEST_CASE("support/nginx: certificates are what they claim to be") {
  if (!penstock_test::have_nginx() || !penstock_test::have_openssl()) return;
  if (!penstock_test::have_program("curl", "curl --version")) return;
  const deadline limit("curl over TLS");
  nginx_server server({.certificates = {certificate::good, certificate::self_signed, certificate::expired,
                                        certificate::other_host}});
  server.put("a.txt", "over TLS");
  for (const std::string host : {"localhost", "127.0.0.1"})
    CHECK(curl(server, server.url(certificate::good, "a.txt", host)).output == "over TLS");
  if (penstock_test::have_ipv6())
    CHECK(curl(server, "-g '" + server.url(certificate::good, "a.txt", "[::1]") + "'").output == "over TLS");
  const int refused = 60;  // CURLE_PEER_FAILED_VERIFICATION
  const auto unknown = curl(server, server.url(certificate::self_signed, "a.txt"));
  CHECK(code_of(unknown) == refused);
  CHECK_THAT(unknown.output, penstock_test::contains("self"));
  const auto old = curl(server, server.url(certificate::expired, "a.txt"));
  CHECK(code_of(old) == refused);
  CHECK_THAT(old.output, penstock_test::contains("expired"));
  const auto foreign = curl(server, server.url(certificate::other_host, "a.txt"));
  CHECK(code_of(foreign) == refused);
  CHECK_THAT(foreign.output, penstock_test::contains("localhost"));
  CHECK(curl(server, "-k " + server.url(certificate::expired, "a.txt")).output == "over TLS");
  CHECK(curl(server, "-L " + server.url(certificate::good, "plain/a.txt")).output == "over TLS");
  CHECK(curl(server, "-L " + server.url("secure/a.txt")).output == "over TLS");
  const auto requests = server.requests();
  REQUIRE_FALSE(requests.empty());
  CHECK(requests.back().tls);
}

TEST_CASE("support/nginx: can be killed and started again, and leaves nothing") {
  if (!penstock_test::have_nginx()) return;
  const deadline limit("killing nginx");
  std::filesystem::path root;
  std::uint16_t port = 0;
  {
    nginx_server server;
    server.put("a.txt", "again");
    root = server.root(), port = server.port();
    plain_client before(port);
    CHECK(before.get("/a.txt").body == "again");
    CHECK(server.requests().size() == 1);  // waits for the log, which a kill may cut off
    server.kill();
    CHECK(before.get("/a.txt").status() == 0);
    CHECK_FALSE(plain_client(port).open());
    // It outlives the thread that starts it.
    std::thread([&] { server.start(); }).join();
    CHECK(plain_client(port).get("/a.txt").body == "again");
    CHECK(server.requests().size() == 2);
    server.pause();
    plain_client waiting(port);
    CHECK(waiting.send("GET /a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    server.resume();
    CHECK(waiting.receive_answer().body == "again");
    server.pause();  // one that hangs is killed
  }
  CHECK_FALSE(plain_client(port).open());
  CHECK_FALSE(std::filesystem::exists(root));
}

TEST_CASE("support/nginx: says why it does not start") {
  if (!penstock_test::have_nginx()) return;
  CHECK_THROWS_WITH(nginx_server({.lines = "no_such_directive;"}),
                    penstock_test::contains("no_such_directive"));
}
