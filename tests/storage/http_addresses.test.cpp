// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hosts that have several addresses, or none: what the name server says is decided here.

#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/http_session.hpp"
#include "support/sockets.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

namespace {

/// What is said of names that end with ".test".
struct name_server {
  std::mutex lock;
  std::map<std::string, std::vector<std::string>> addresses;
  int failure = EAI_NONAME;  // of all others
  int questions = 0;
};
name_server& names() {
  static name_server only;
  return only;
}

int look_up(const char* host, const char* port, const ::addrinfo* hints, ::addrinfo** found) {
  static const auto real = reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host == nullptr || !std::string_view(host).ends_with(".test")) return real(host, port, hints, found);
  name_server& all = names();
  const std::scoped_lock held(all.lock);
  ++all.questions;
  const auto known = all.addresses.find(host);
  if (known == all.addresses.end()) return all.failure;
  ::addrinfo** end = found;
  *end = nullptr;
  for (const std::string& one : known->second) {
    if (const int failed = real(one.c_str(), port, hints, end); failed != 0) return failed;
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return 0;
}

/// A socket at a port of 127.0.0.2, which does not listen.
owned_socket beside(std::uint16_t port) {
  owned_socket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  REQUIRE(::bind(made.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0);
  return made;
}
/// Connections that fill a socket's queue, so that whoever asks next hears nothing.
std::vector<owned_socket> make_deaf(const owned_socket& socket, std::uint16_t port) {
  REQUIRE(::listen(socket.get(), 0) == 0);
  std::vector<owned_socket> waiting;
  for (int i = 0; i < 4; ++i) {
    owned_socket& one =
        waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    (void)::connect(one.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address);
  }
  return waiting;
}
std::string url_of(const web_server& server) {
  return "http://data.test:" + std::to_string(server.port()) + "/a";
}
void say(std::vector<std::string> addresses) {
  const std::scoped_lock held(names().lock);
  names().addresses["data.test"] = std::move(addresses);
}

}  // namespace

// Boost.Asio asks this one; names that end otherwise go to the system.
extern "C" int getaddrinfo(const char* host, const char* port, const ::addrinfo* hints, ::addrinfo** found) {
  return look_up(host, port, hints, found);
}

TEST_CASE("storage/http: an address that says nothing is not waited for") {
  const deadline limit("a silent address");
  const std::string bytes = web_content(1000);
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }));
  const owned_socket silent = beside(server.port());
  const auto waiting = make_deaf(silent, server.port());
  say({"127.0.0.2", "127.0.0.1"});
  const auto session = session_of(url_of(server), {.connect_time = 1h});  // not half of it, either
  CHECK(first_of(session) == bytes.substr(0, 10));
  CHECK(session.connections() == 1);
  say({"127.0.0.2", "127.0.0.2"});
  const ps::error late = web_error_of([&] { first_of(session_of(url_of(server), {.connect_time = 300ms})); });
  INFO(late.what());
  CHECK(says(late, "no connection within 300 ms"));
  CHECK(late.timed_out());
}

TEST_CASE("storage/http: a read that is cancelled while addresses are tried ends once") {
  const deadline limit("addresses, cancelled");
  web_server server(answering([](const web_request&) { return std::string(); }));
  const owned_socket silent = beside(server.port());
  const auto waiting = make_deaf(silent, server.port());
  say({"127.0.0.2", "127.0.0.2", "127.0.0.2"});
  for (const auto after : {0ms, 50ms, 600ms}) {
    const auto session = session_of(url_of(server), {.connect_time = 1h});
    std::thread reads([&] {
      const ps::error e = web_error_of([&] { first_of(session); });
      CHECK(e.code() == ps::errc::stopped);
    });
    std::this_thread::sleep_for(after);
    session.end_reads();
    reads.join();
  }
}

TEST_CASE("storage/http: the address that was reached comes first the next time") {
  const deadline limit("the good address");
  const std::string bytes = web_content(1000);
  web_server server([&](web_peer& peer) {  // a connection for each request
    web_request request;
    if (peer.next(request)) peer.send(web_object(request, bytes));
  });
  const owned_socket other = beside(server.port());
  say({"127.0.0.2", "127.0.0.1"});
  const auto session = session_of(url_of(server));
  CHECK(first_of(session) == bytes.substr(0, 10));  // nothing listens at the first address
  REQUIRE(::listen(other.get(), 16) == 0);          // now it would take connections, and say nothing
  for (int i = 0; i < 5; ++i) CHECK(first_of(session) == bytes.substr(0, 10));
  CHECK(::accept(other.get(), nullptr, nullptr) < 0);
}

TEST_CASE("storage/http: a host that does not exist is said once, a name server that fails is asked again") {
  const deadline limit("no such host");
  const ps::http where(
      {"http://nobody.test/a"},
      without_proxies({.retries = {.attempts = 3, .initial_backoff = 1ms, .max_backoff = 2ms}}));
  const auto ask = [&](int failure) {
    {
      const std::scoped_lock held(names().lock);
      names().failure = failure;
      names().questions = 0;
    }
    ps::error said = web_error_of([&] { first_of(where.connect()); });
    INFO(said.what());
    return said;
  };
  const ps::error nobody = ask(EAI_NONAME);
  CHECK(says(nobody, "there is no host nobody.test; check the URL"));
  CHECK(nobody.recurs());
  CHECK(names().questions == 1);
  const ps::error later = ask(EAI_AGAIN);
  CHECK(says(later, "cannot connect to nobody.test"));
  CHECK(says(later, "after 3 attempts"));
  CHECK(names().questions == 3);
}
