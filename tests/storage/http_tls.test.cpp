// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TLS that breaks, or says more than was asked.

#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/http_session.hpp"
#include "support/self_signed.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <cstdint>
#include <string>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("storage/http: a handshake that is cut off is no refused certificate if none is verified") {
  if (!have_openssl()) return;
  const deadline limit("handshakes that are cut off");
  const std::string bytes = web_content(1000);
  const self_signed shown;
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }), false,
                    shown.get());
  fault_proxy proxy(server.port(), proxy_of::connections);
  const std::string url = "https://127.0.0.1:" + std::to_string(proxy.port()) + "/a";
  bool in_handshake = false, succeeds = false;
  for (std::uint64_t at = 50; at < 4000; at += 150) {
    proxy.script({at % 100 == 0 ? network_fault::reset(at) : network_fault::cut(at)});
    try {
      const std::string got = first_of(session_of(url, {.verify = false}));
      CHECK(got == bytes.substr(0, 10));
      succeeds = true;
    } catch (const ps::error& e) {
      INFO(at << ": " << e.what());
      CHECK_FALSE(says(e, "certificate"));
      CHECK_FALSE(e.recurs());
      in_handshake = in_handshake || says(e, "no connection by TLS");
    }
  }
  CHECK(in_handshake);
  CHECK(succeeds);
  proxy.behave();
  CHECK(says(web_error_of([&] { first_of(session_of(url)); }), "certificate is refused"));
}

TEST_CASE("storage/http: what a server says unasked within a record of TLS is nobody's answer") {
  if (!have_openssl()) return;
  const deadline limit("unasked answers over TLS");
  const std::string bytes = web_content(100'000);
  const self_signed shown;
  for (const std::size_t size : {std::size_t{10}, std::size_t{60'000}}) {
    web_server server(
        [&](web_peer& peer) {
          for (web_request request; peer.next(request);)
            peer.send(web_object(request, bytes) +
                      "HTTP/1.1 206 OK\r\nETag: \"one\"\r\nContent-Range: bytes 0-9/100000\r\n"
                      "Content-Length: 10\r\n\r\nSTALE DATA");
        },
        false, shown.get());
    const auto session = session_of(server.at("/a"), {.verify = false});
    CHECK(first_of(session, size) == bytes.substr(0, size));
    for (int i = 0; i < 3; ++i) CHECK(first_of(session) == bytes.substr(0, 10));
  }
}
