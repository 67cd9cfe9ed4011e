// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A proxy between nginx and us that does harm: bytes are right, or an error says what happened.

#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/nginx.hpp"
#include "support/read_outcomes.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

TEST_CASE("storage/http: each kind of harm, and the read after it") {
  if (!have_nginx()) return;
  const deadline limit("harm");
  nginx_server server;
  const std::string bytes = web_content(100'000);
  server.put("a", bytes);
  const std::vector<std::pair<network_fault, const char*>> cases{
      {network_fault::none(), ""},
      {network_fault::delay(20ms), ""},
      {network_fault::throttle(1'000'000), ""},
      {network_fault::stall(5, 20ms), ""},
      {network_fault::close_idle(), ""},
      {network_fault::cut_before_answer(), ""},  // as if it had been closed before the request
      {network_fault::reset_before_answer(), ""},
      {network_fault::stall(5), "stalled"},
      {network_fault::silent(), "no answer within"},
      {network_fault::cut(5000), "ended after"},
      {network_fault::reset(5000), "ended after"},
      {network_fault::server_error(), "(500)"},
      {network_fault::unavailable(), "(503)"},
      {network_fault::slow_down(), "(503)"},
      {network_fault::too_many(2), "it asks to wait 2 s"},
      {network_fault::longer(), "contradicts itself"},
      {network_fault::shorter(), "contradicts itself"},
      {network_fault::wrong_range(), "another range"},
      {network_fault::whole(), "ignores ranges"},
  };
  fault_proxy proxy(server.port());
  for (const auto& [fault, sentence] : cases) {
    const auto session =
        ps::http({proxy.url("a").c_str()}, direct({.first_byte_time = 700ms, .progress_time = 700ms}))
            .connect();
    const auto read = [&](std::size_t offset) {
      std::string into(20'000, 'x');
      session.read(0, offset, std::as_writable_bytes(std::span(into)));
      CHECK((into == bytes.substr(offset, into.size())));
    };
    INFO(sentence);
    proxy.script({network_fault::none(), fault});
    read(7);
    if (*sentence == '\0') {
      CHECK_NOTHROW(read(11));
    } else {
      const ps::error e = error_of([&] { read(11); });
      INFO(e.what());
      CHECK(says(e, sentence));
      CHECK(e.code() == ps::errc::io);
      CHECK(e.offset() == 11u);
      CHECK(e.recurs() == (fault.kind == fault_kind::whole));
    }
    CHECK_NOTHROW(read(13));
    CHECK_NOTHROW(read(17));
  }
}

TEST_CASE("storage/http: many reads in much harm, tried again, give the bytes") {
  if (!have_nginx()) return;
  const deadline limit("much harm");
  nginx_server server;
  const std::string bytes = web_content(400'000);
  server.put("a", bytes);
  fault_proxy proxy(server.port());
  auto session = ps::http({proxy.url("a").c_str()},
                          direct({.connections = 8, .first_byte_time = 2s, .progress_time = 2s}))
                     .connect();
  CHECK(session.size(0) == bytes.size());
  for (const network_fault& fault :
       {network_fault::cut(300), network_fault::reset(300), network_fault::close_idle(),
        network_fault::slow_down(), network_fault::longer(), network_fault::wrong_range(),
        network_fault::cut_before_answer(), network_fault::delay(5ms)})
    proxy.sometimes(fault, {.one_in = 16, .seed = 11, .most_for_one_request = 3});
  std::vector<std::byte> into(400 * 1000);
  std::vector<ps::read_request> left;
  for (std::size_t i = 0; i < 400; ++i)
    left.push_back({0, i * 1000, std::span(into).subspan(i * 1000, 1000), i});
  std::size_t failures = 0;
  for (int round = 0; !left.empty() && round < 100; ++round) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i].tag = i;
    read_outcomes outcomes(left.size());
    session.read_many(left, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.each_once());
    std::vector<ps::read_request> again;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto failed = outcomes.error_of(i);
      if (!failed) continue;
      CHECK(failed->code() == ps::errc::io);
      CHECK_FALSE(failed->recurs());
      again.push_back(left[i]);
      ++failures;
    }
    left = std::move(again);
  }
  CHECK(left.empty());
  CHECK(failures > 0);
  CHECK((ps::text_of(into) == bytes));
}
