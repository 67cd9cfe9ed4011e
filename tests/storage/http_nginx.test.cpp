// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A real server, with TLS and without.

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/certificates.hpp"
#include "support/deadline.hpp"
#include "support/http_session.hpp"
#include "support/nginx.hpp"
#include "support/read_outcomes.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

namespace {

/// The samples of an epoch, in order.
template <class Source>
std::vector<std::string> samples_of(const Source& source, std::size_t threads) {
  const auto plan = source | ps::shuffle(ps::seed(5)) | ps::workers(threads) | ps::fields<"bin", "txt"> |
                    ps::batch(8, ps::ragged);
  std::vector<std::string> all;
  for (auto&& b : plan.epoch(0))
    for (std::size_t i = 0; i < b.size(); ++i) {
      std::string& one = all.emplace_back();
      for (const std::byte x : ps::get<"txt">(b)[i]) one += static_cast<char>(x);
      for (const std::byte x : ps::get<"bin">(b)[i]) one += static_cast<char>(x);
    }
  return all;
}
void write_shards(const std::filesystem::path& folder) {
  for (std::size_t n = 0; n < 4; ++n) {
    ps::tar_writer out((folder / ("a-" + std::to_string(n) + ".tar")).string());
    for (std::size_t i = 0; i < 25; ++i) {
      const std::string key = std::to_string(n) + "-" + std::to_string(i);
      const std::string bytes = web_content((i * 97 + n) * 400 % 70'000), words = "text of " + key;
      out.write(key, {{"bin", ps::bytes_of(bytes)}, {"txt", ps::bytes_of(words)}});
    }
    out.close();
  }
}

}  // namespace

TEST_CASE("storage/http: webdataset from nginx, plain and over TLS") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("epochs from nginx");
  nginx_server server({.certificates = {certificate::good}});
  write_shards(server.root());
  const auto expected = samples_of(
      ps::webdataset((server.root() / "a-{0..3}.tar").string(), {.index = ps::index_policy::keep}), 0);
  REQUIRE(expected.size() == 100);
  const ps::webdataset plain(ps::http(server.url("a-{0..3}.tar"), direct()));
  for (const std::size_t threads : {0u, 1u, 2u}) CHECK((samples_of(plain, threads) == expected));
  const ps::webdataset secure(ps::http(server.url(certificate::good, "a-{0..3}.tar"),
                                       direct({.connections = 4, .ca_file = server.authority().string()})));
  for (const std::size_t threads : {0u, 2u}) CHECK((samples_of(secure, threads) == expected));
  bool tls = false, matches = false;
  for (const logged_request& one : server.requests()) {
    tls = tls || one.tls;
    matches = matches || (one.status == 206 && !one.if_match.empty());
    CHECK((one.status == 200 || one.status == 206));
  }
  CHECK(tls);
  CHECK(matches);
}

TEST_CASE("storage/http: large ranges over TLS and without, in parts") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("large ranges");
  nginx_server server({.certificates = {certificate::good}});
  const std::string bytes = web_content(9'000'000);
  server.put("a", bytes);
  for (const std::string& where : {server.url("a"), server.url(certificate::good, "a")}) {
    auto session = session_of(where, {.connections = 3, .ca_file = server.authority().string()});
    std::vector<std::byte> into(bytes.size());
    std::vector<ps::read_request> requests;
    for (std::size_t i = 0; i < 9; ++i)
      requests.push_back({0, i * 1'000'000, std::span(into).subspan(i * 1'000'000, 1'000'000), i});
    read_outcomes outcomes(9);
    session.read_many(requests, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.failures() == 0);
    CHECK((ps::text_of(into) == bytes));
    CHECK(session.connections() <= 3);
  }
}

TEST_CASE("storage/http: certificates that prove nothing are refused, with what to do") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("certificates");
  nginx_server server({.certificates = {certificate::good, certificate::self_signed, certificate::expired,
                                        certificate::other_host}});
  server.put("a", web_content(1000));
  const ps::http_options trusting{.ca_file = server.authority().string()};
  struct bad {
    std::string where;
    ps::http_options options;
    const char* sentence;
  };
  for (const bad& one :
       {bad{server.url(certificate::good, "a"), {}, "http_options::ca_file"},
        bad{server.url(certificate::self_signed, "a"), trusting, "http_options::ca_file"},
        bad{server.url(certificate::expired, "a"), trusting, "it has expired"},
        bad{server.url(certificate::other_host, "a"), trusting, "it is of another host than localhost"},
        bad{server.url(certificate::other_host, "a", "127.0.0.1"), trusting,
            "it is of another host than 127.0.0.1"}}) {
    const ps::error e = web_error_of([&] { first_of(session_of(one.where, one.options)); });
    INFO(e.what());
    CHECK(says(e, "certificate is refused"));
    CHECK(says(e, one.sentence));
    CHECK(e.recurs());
    CHECK(e.code() == ps::errc::io);
  }
  for (const char* host : {"localhost", "127.0.0.1"})
    CHECK(first_of(session_of(server.url(certificate::good, "a", host), trusting)) == web_content(10));
  for (const certificate kind : {certificate::self_signed, certificate::expired, certificate::other_host})
    CHECK(first_of(session_of(server.url(kind, "a"), {.verify = false})) == web_content(10));
  const ps::error plain = web_error_of([&] {
    std::string where = server.url("a");
    first_of(session_of(where.insert(4, "s"), trusting));
  });
  INFO(plain.what());
  CHECK(says(plain, "does not speak TLS at this port"));
}

TEST_CASE("storage/http: TLS older than 1.2 is refused") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("old TLS");
  nginx_server server({.certificates = {certificate::good},
                       .lines = "ssl_protocols TLSv1 TLSv1.1; ssl_ciphers ALL:@SECLEVEL=0;"});
  server.put("a", web_content(1000));
  const ps::error e = web_error_of([&] {
    first_of(session_of(server.url(certificate::good, "a"), {.ca_file = server.authority().string()}));
  });
  INFO(e.what());
  CHECK(says(e, "no connection by TLS"));
}

TEST_CASE("storage/http: what nginx says") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("nginx's answers");
  nginx_server server({.certificates = {certificate::good}});
  server.put("a", web_content(1000));
  const ps::http_options trusting{.ca_file = server.authority().string()};
  for (const char* path : {"redirect/301/a", "redirect/302/a", "redirect/303/a", "redirect/307/a",
                           "redirect/308/a", "relative/a", "far/a", "secure/a", "slow/a"}) {
    const auto session = session_of(server.url(path), trusting);
    INFO(path);
    CHECK(first_of(session) == web_content(10));
    CHECK(session.size(0) == 1000);
  }
  CHECK(first_of(session_of(server.url("no-ranges/a")), 1000) == web_content(1000));
  struct bad {
    const char* path;
    const char* sentence;
    bool recurs;
  };
  for (const bad& one :
       {bad{"no-ranges/a", "ignores ranges", true}, bad{"private/a", "(401)", true},
        bad{"missing", "(404)", true}, bad{"loop", "in a circle", true}, bad{"ping", "in a circle", true},
        bad{"drop", "without an answer", false}, bad{"status/429", "(429); use fewer", false},
        bad{"status/503", "it asks to wait 1 s", false}, bad{"status/403", "(403)", true},
        bad{"status/500", "(500)", false}, bad{"status/502", "(502)", false}}) {
    const ps::error e = web_error_of([&] { first_of(session_of(server.url(one.path))); });
    INFO(e.what());
    CHECK(says(e, one.sentence));
    CHECK(e.recurs() == one.recurs);
    CHECK(e.file() == server.url(one.path));
  }
  const ps::error down =
      web_error_of([&] { first_of(session_of(server.url(certificate::good, "plain/a"), trusting)); });
  INFO(down.what());
  CHECK(says(down, "from https to http"));
  CHECK(down.recurs());
}

TEST_CASE("storage/http: an object that nginx serves is replaced") {
  if (!have_nginx()) return;
  const deadline limit("a replaced object");
  nginx_server server;
  server.put("a", web_content(1000));
  const auto session = session_of(server.url("a"));
  CHECK(first_of(session) == web_content(10));
  server.put("a", web_content(1001));
  const ps::error e = web_error_of([&] { first_of(session); });
  CHECK(says(e, "the object was replaced"));
  CHECK(e.recurs());
  CHECK(first_of(session_of(server.url("a"))) == web_content(10));
}

TEST_CASE("storage/http: a server that is started again goes on being read") {
  if (!have_nginx()) return;
  const deadline limit("a restart");
  nginx_server server;
  server.put("a", web_content(1000));
  const auto session = session_of(server.url("a"));
  CHECK(first_of(session) == web_content(10));
  server.kill();
  const ps::error e = web_error_of([&] { first_of(session); });
  INFO(e.what());
  CHECK(e.code() == ps::errc::io);
  CHECK_FALSE(e.recurs());
  server.start();
  CHECK(first_of(session) == web_content(10));
}

TEST_CASE("storage/http: connections that ended with their server are replaced, with TLS and without") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("a restart between reads");
  nginx_server server({.certificates = {certificate::good}});
  server.put("a", web_content(1000));
  for (const std::string& where : {server.url("a"), server.url(certificate::good, "a")}) {
    const auto session = session_of(where, {.ca_file = server.authority().string()});
    CHECK(first_of(session) == web_content(10));
    server.kill();
    server.start();
    CHECK(first_of(session) == web_content(10));
    CHECK(session.connections() == 2);
  }
}

TEST_CASE("storage/http: https goes through a proxy by a tunnel") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("a tunnel");
  nginx_server server({.certificates = {certificate::good}});
  server.put("a", web_content(1000));
  web_log asked;
  web_server proxy([&](web_peer& peer) {
    web_request request;
    if (!peer.next(request)) return;
    asked.add(request.head.substr(0, request.head.find("\r\n")));
    const int other = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server.port(certificate::good));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(other, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
        peer.send("HTTP/1.1 200 Connection established\r\n\r\n"))
      peer.join(other);
    ::close(other);
  });
  ::setenv("https_proxy", proxy.at("/").c_str(), 1);
  const auto session =
      ps::http({server.url(certificate::good, "a").c_str()}, once({.ca_file = server.authority().string()}))
          .connect();
  // The dot that ends an absolute name is in no certificate.
  const auto absolute = ps::http({server.url(certificate::good, "a", "localhost.").c_str()},
                                 once({.ca_file = server.authority().string()}))
                            .connect();
  ::unsetenv("https_proxy");
  CHECK(first_of(absolute) == web_content(10));
  for (int i = 0; i < 3; ++i) CHECK(first_of(session) == web_content(10));
  CHECK(asked.last() == "CONNECT localhost:" + std::to_string(server.port(certificate::good)) + " HTTP/1.1");
  CHECK(proxy.connections() == 2);
  const ps::http wrong({server.url(certificate::good, "a").c_str()}, direct());
  CHECK(says(web_error_of([&] { first_of(wrong.connect()); }), "certificate is refused"));
}
