// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Connections that break, stall or lead elsewhere.

#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/http_session.hpp"
#include "support/nowhere.hpp"
#include "support/read_outcomes.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

namespace {

/// A variable of the environment for as long as this lives.
class variable {
 public:
  variable(const char* name, const std::string& value) : name_(name) {
    for (const char* const one :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"})
      if (!ours_) ::unsetenv(one);  // the machine's own proxies are not for tests
    ours_ = true;
    ::setenv(name, value.c_str(), 1);
  }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  ~variable() { ::unsetenv(name_); }

 private:
  static inline bool ours_ = false;
  const char* name_;
};

}  // namespace

TEST_CASE("storage/http: a kept connection that was closed is replaced by a new one, once") {
  const deadline limit("connections closed between requests");
  const std::string bytes = web_content(1000);
  for (const bool with_reset : {false, true}) {
    web_server server([&](web_peer& peer) {  // one answer on each connection, which promises to stay open
      web_request request;
      if (!peer.next(request) || !peer.send(web_object(request, bytes))) return;
      if (!with_reset) return;
      peer.next(request);
      peer.reset();
    });
    const auto session = session_of(server.at("/a"));
    for (int i = 0; i < 5; ++i) CHECK(first_of(session) == bytes.substr(0, 10));
    CHECK(session.connections() == 5);
  }
  std::atomic<int> count{0};
  web_server server([&](web_peer& peer) {  // the new connection is closed as well
    web_request request;
    if (!peer.next(request) || ++count != 1) return;
    peer.send(web_object(request, bytes));
    peer.next(request);
  });
  const auto session = session_of(server.at("/a"));
  CHECK(first_of(session) == bytes.substr(0, 10));
  const ps::error e = web_error_of([&] { first_of(session); });
  INFO(e.what());
  CHECK(says(e, "ended the connection without an answer"));
  CHECK_FALSE(e.recurs());
  CHECK(server.connections() == 2);
}

TEST_CASE("storage/http: connections that break") {
  const deadline limit("broken connections");
  const std::string head = "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9/1000\r\nContent-Length: 10\r\n\r\n";
  struct broken {
    std::string sent;
    bool with_reset;
    const char* sentence;
  };
  for (const broken& one :
       {broken{"", false, "without an answer"}, broken{"", true, "without an answer"},
        broken{"HTTP/1.1 206 O", false, "within its answer"},
        broken{head, false, "ended after 0 of 10 bytes"},
        broken{head + "0123", false, "ended after 4 of 10 bytes"},
        broken{
            "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9/1000\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n01",
            false, "ended after 2 of 10"}}) {
    web_server server([&](web_peer& peer) {
      web_request request;
      if (!peer.next(request)) return;
      peer.send(one.sent);
      if (one.with_reset) peer.reset();
    });
    const ps::error e = web_error_of([&] { first_of(session_of(server.at("/a?secret"))); });
    INFO(e.what());
    CHECK(says(e, one.sentence));
    CHECK(e.code() == ps::errc::io);
    CHECK_FALSE(e.recurs());
    CHECK(e.file() == server.at("/a?..."));
    CHECK(server.connections() == 1);
  }
  const ps::error refused = web_error_of([&] { first_of(session_of(nowhere().url())); });
  INFO(refused.what());
  CHECK(says(refused, "cannot connect to 127.0.0.1:"));
  CHECK_FALSE(refused.recurs());
  // A label of more than 63 characters is no name for any resolver, so that
  // none asks the network.
  const std::string name(64, 'x');
  const ps::error unknown = web_error_of([&] { first_of(session_of("http://" + name + "/a")); });
  INFO(unknown.what());
  CHECK(says(unknown, "there is no host " + name + "; check the URL"));
  CHECK(unknown.recurs());
}

TEST_CASE("storage/http: what lasts too long") {
  const deadline limit("stalls");
  web_server silent([](web_peer& peer) { peer.stall(); });
  const ps::error first =
      web_error_of([&] { first_of(session_of(silent.at("/a"), {.first_byte_time = 40ms})); });
  CHECK(says(first, "no answer within 40 ms"));
  CHECK_FALSE(first.recurs());

  std::string secure = silent.at("/a");
  secure.insert(4, "s");
  const ps::error handshake = web_error_of([&] { first_of(session_of(secure, {.connect_time = 40ms})); });
  CHECK(says(handshake, "no connection within 40 ms"));
  CHECK_FALSE(handshake.recurs());

  for (const char* sent :
       {"HTTP/1.1 206 O", "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9/1000\r\nContent-Length: 10\r\n\r\n012",
        "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9/1000\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n"}) {
    web_server stalls([&](web_peer& peer) {
      web_request request;
      if (!peer.next(request)) return;
      peer.send(sent);
      peer.stall();
    });
    const ps::error e = web_error_of([&] { first_of(session_of(stalls.at("/a"), {.progress_time = 40ms})); });
    INFO(e.what());
    CHECK(says(e, "stalled: no byte within 40 ms"));
    CHECK_FALSE(e.recurs());
  }
}

TEST_CASE("storage/http: slow is not stalled") {
  const deadline limit("a slow server");
  const std::string bytes = web_content(40);
  web_server slow([&](web_peer& peer) {
    web_request request;
    if (!peer.next(request)) return;
    for (const char c : web_object(request, bytes)) {
      if (!peer.send(std::string_view(&c, 1))) return;
      std::this_thread::sleep_for(1ms);
    }
  });
  CHECK(first_of(session_of(slow.at("/a"), {.first_byte_time = 5s, .progress_time = 5s}), 40) == bytes);
}

TEST_CASE("storage/http: a connection that was idle for long is not used again") {
  const deadline limit("an idle connection");
  const std::string bytes = web_content(1000);
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }));
  const auto session = session_of(server.at("/a"), {.idle_time = 1ms});
  CHECK(first_of(session) == bytes.substr(0, 10));
  std::this_thread::sleep_for(10ms);
  CHECK(first_of(session) == bytes.substr(0, 10));
  CHECK(session.connections() == 2);
}

TEST_CASE("storage/http: IPv6, and hosts with several addresses") {
  const deadline limit("addresses");
  const std::string bytes = web_content(1000);
  const auto good = answering([&](const web_request& request) { return web_object(request, bytes); });
  web_server four(good);
  CHECK(first_of(session_of("http://localhost:" + std::to_string(four.port()) + "/a")) ==
        bytes.substr(0, 10));
  const int probe = ::socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has_six =
      probe >= 0 && ::bind(probe, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  ::close(probe);
  if (!has_six) {
    WARN("this machine has no IPv6");
    return;
  }
  web_server six(good, true);
  const auto session = session_of(six.at("/a"));
  CHECK(first_of(session) == bytes.substr(0, 10));
  CHECK(session.size(0) == 1000);
}

TEST_CASE("storage/http: two servers share the connections") {
  const deadline limit("two servers");
  const std::string bytes = web_content(1000);
  const auto good = answering([&](const web_request& request) { return web_object(request, bytes); });
  web_server one(good), two(good);
  auto session = ps::http({one.at("/a").c_str(), two.at("/a").c_str()}, direct({.connections = 3})).connect();
  std::vector<std::byte> into(200 * 10);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 200; ++i)
    requests.push_back({i / 10 % 2 == 0 ? 0u : 1u, i, {into.data() + i * 10, 10}, i});
  read_outcomes outcomes(200);
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures() == 0);
  for (std::size_t i = 0; i < 200; ++i) CHECK(ps::text_of(requests[i].into) == bytes.substr(i, 10));
}

TEST_CASE("storage/http: redirects are followed, within the server and to another") {
  const deadline limit("redirects");
  const std::string bytes = web_content(1000);
  web_server other(answering([&](const web_request& request) {
    return request.target() == "/there?sig=1" ? web_object(request, bytes)
                                              : web_answer("404 Not Found", "", "");
  }));
  web_server server(answering([&](const web_request& request) {
    const std::string at = request.target();
    if (at == "/end") return web_object(request, bytes);
    if (at == "/far")
      return web_answer("307 Temporary Redirect", "Location: " + other.at("/there?sig=1") + "\r\n", "<html>");
    const char number = at.back();  // /5 needs five redirects
    const char* const kind = number % 2 == 0 ? "301 Moved Permanently"
                             : number == '1' ? "308 Permanent Redirect"
                             : number == '3' ? "302 Found"
                                             : "303 See Other";
    const std::string to = number == '1' ? "end" : "/" + std::string(1, static_cast<char>(number - 1));
    return web_answer(kind, "Location: " + to + "\r\n", "moved");
  }));
  for (const char* path : {"/1", "/2", "/3", "/5", "/far"}) {
    const auto session = session_of(server.at(path));
    INFO(path);
    CHECK(first_of(session) == bytes.substr(0, 10));
    CHECK(session.size(0) == 1000);
  }
  const ps::error many = web_error_of([&] { first_of(session_of(server.at("/6"))); });
  CHECK(says(many, "more than 5 times"));
  CHECK(many.recurs());
  CHECK(many.file() == server.at("/6"));
}

TEST_CASE("storage/http: redirects that are refused") {
  const deadline limit("bad redirects");
  struct bad {
    const char* location;
    const char* sentence;
  };
  for (const bad& one :
       {bad{"/a", "in a circle"}, bad{"ftp://h/x", "cannot be followed"}, bad{"s3://b/x", "the scheme s3"},
        bad{"/a b", "cannot be followed"}, bad{"http://me:secret@h/", "cannot be followed"},
        bad{"", "redirects (302) without saying where"}}) {
    web_server server(answering([&](const web_request&) {
      return web_answer("302 Found",
                        *one.location == '\0' ? "" : "Location: " + std::string(one.location) + "\r\n", "");
    }));
    const ps::error e = web_error_of([&] { first_of(session_of(server.at("/a"))); });
    INFO(e.what());
    CHECK(says(e, one.sentence));
    CHECK_FALSE(says(e, "secret"));
    CHECK(e.recurs());
  }
  web_server pair(answering([&](const web_request& request) {
    return web_answer("301 Moved", request.target() == "/a" ? "Location: /b\r\n" : "Location: /a\r\n", "");
  }));
  CHECK(says(web_error_of([&] { first_of(session_of(pair.at("/a"))); }), "in a circle"));
}

TEST_CASE("storage/http: a proxy of the environment is asked for the whole URL") {
  const deadline limit("a proxy");
  const std::string bytes = web_content(1000);
  web_log asked, authorization;
  web_server proxy(answering([&](const web_request& request) {
    asked.add(request.target());
    authorization.add(request.header("Proxy-Authorization"));
    return web_object(request, bytes);
  }));
  const variable set("http_proxy", "http://me:secret@127.0.0.1:" + std::to_string(proxy.port()));
  {
    const auto session = ps::http({"http://data.invalid:81/a?b", "http://more.invalid/c"}, once()).connect();
    CHECK(first_of(session) == bytes.substr(0, 10));
    CHECK(asked.last() == "http://data.invalid:81/a?b");
    CHECK(authorization.last() == "Basic bWU6c2VjcmV0");
    CHECK(session.size(1) == 1000);
    CHECK(asked.last() == "http://more.invalid/c");
    CHECK(proxy.connections() == 1);
  }
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }));
  const variable except("no_proxy", "localhost,127.0.0.1");
  asked.clear();
  CHECK(first_of(ps::http({server.at("/a").c_str()}, once()).connect()) == bytes.substr(0, 10));
  CHECK(asked.all().empty());
}

TEST_CASE("storage/http: proxies that do not help") {
  const deadline limit("bad proxies");
  {
    const variable set("https_proxy", "socks5://me:secret@h");
    const ps::error e = web_error_of([] { (void)ps::http({"https://h/"}).connect(); });
    CHECK(e.code() == ps::errc::argument);
    CHECK_FALSE(says(e, "secret"));
  }
  {
    const nowhere taken;
    std::string gone = taken.url();
    gone.insert(7, "me:secret@");
    const variable set("all_proxy", gone);
    for (const char* to : {"http://h.invalid/a", "https://h.invalid/a"}) {
      const ps::error e = web_error_of([&] { first_of(ps::http({to}, once()).connect()); });
      INFO(e.what());
      CHECK(says(e, "cannot connect to the proxy 127.0.0.1:"));
      CHECK_FALSE(says(e, "secret"));
    }
  }
  for (const auto& [answer, sentence] :
       {std::pair<const char*, const char*>{"407 Proxy Authentication Required",
                                            "the proxy wants to know who asks (407)"},
        {"403 Forbidden", "opened no tunnel (403)"},
        {"502 Bad Gateway", "opened no tunnel (502)"}}) {
    web_log asked;
    web_server proxy(answering([&, said = answer](const web_request& request) {
      asked.add(request.head.substr(0, request.head.find("\r\n")));
      return web_answer(said, "", "no");
    }));
    const variable set("HTTPS_PROXY", proxy.at(""));
    const ps::error e = web_error_of([&] { first_of(ps::http({"https://h.invalid/a"}, once()).connect()); });
    INFO(e.what());
    CHECK(says(e, sentence));
    CHECK(asked.last() == "CONNECT h.invalid:443 HTTP/1.1");
    CHECK(e.recurs() == (answer[0] == '4'));
  }
}
