// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A proxy between nginx and us that does harm: bytes are right, or an error says what happened.

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/nginx.hpp"
#include "support/read_outcomes.hpp"
#include "support/sockets.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

namespace {

constexpr std::size_t samples = 400;

/// A shard of samples of 2000 bytes.
std::string shard() {
  std::string made;
  ps::tar_writer out([&made](ps::bytes_view more) { made += ps::text_of(more); });
  for (std::size_t i = 0; i < samples; ++i)
    out.write(std::to_string(i), {{"bin", web_content(2000 + i).substr(i)}});
  out.close();
  return made;
}

/// The payloads of an epoch, in order; `between` is called with the number of each batch.
template <class Storage, class Between>
std::vector<std::string> epoch_of(const Storage& where, unsigned workers, Between&& between) {
  std::vector<std::string> all;
  const auto loader = ps::webdataset(where) | ps::shuffle(ps::seed(5)) | ps::fields<"bin"> | ps::batch(10) |
                      ps::workers(workers);
  std::size_t number = 0;
  for (auto&& b : loader.epoch(1)) {
    between(number++);
    const auto rows = ps::get<"bin">(b);
    for (std::size_t i = 0; i < b.size(); ++i) all.emplace_back(ps::text_of(rows[i]));
  }
  return all;
}
constexpr auto nothing = [](std::size_t) {};

constexpr ps::retrying_options untiring{
    .attempts = 12, .initial_backoff = 5ms, .max_backoff = 200ms, .budget = 0};

}  // namespace

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
    const bool is_late = fault.kind == fault_kind::silent || std::string(sentence) == "stalled";
    const std::chrono::milliseconds timeout = is_late ? 700ms : 60s;
    const auto session =
        ps::http({proxy.url("a").c_str()}, direct({.first_byte_time = timeout, .progress_time = timeout}))
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
      const ps::error e = web_error_of([&] { read(11); });
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
    proxy.sometimes(fault, {.one_in = 16, .seed = 11, .max_for_one_request = 3});
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

TEST_CASE("storage/http: a run over a server that does much harm delivers what the undisturbed one does") {
  if (!have_nginx()) return;
  const deadline limit("a run in much harm");
  nginx_server server;
  server.put("a.tar", shard());
  const auto expected = epoch_of(ps::http({server.url("a.tar").c_str()}, direct()), 2, nothing);
  REQUIRE(expected.size() == samples);
  fault_proxy proxy(server.port());
  // Not `longer`: what HEAD says of a length cannot be checked, and another length is another object.
  for (const network_fault& fault :
       {network_fault::cut(300), network_fault::reset(300), network_fault::slow_down(),
        network_fault::too_many(0), network_fault::wrong_range(), network_fault::server_error(),
        network_fault::delay(5ms), network_fault::stall(300, 300ms)})
    proxy.sometimes(fault, {.one_in = 24, .seed = 3, .max_for_one_request = 2});
  const ps::http far({proxy.url("a.tar").c_str()},
                     direct({.connections = 8, .first_byte_time = 2s, .progress_time = 2s}));
  const ps::http steady({proxy.url("a.tar").c_str()}, without_proxies({.connections = 8,
                                                                       .first_byte_time = 2s,
                                                                       .progress_time = 2s,
                                                                       .retries = untiring,
                                                                       .hedges = {.max_extra_requests = 0}}));
  const auto around = ps::retrying(ps::throttled(ps::hedged(far), {.max_in_flight = 8}), untiring);
  for (const unsigned workers : {0u, 1u, 2u}) CHECK((epoch_of(steady, workers, nothing) == expected));
  CHECK((epoch_of(around, 2, nothing) == expected));
}

TEST_CASE(
    "storage/http: without an option, what may pass is tried again, and slow servers get fewer requests") {
  if (!have_nginx()) return;
  const deadline limit("defaults");
  nginx_server server;
  server.put("a", web_content(1000));
  fault_proxy proxy(server.port());
  const auto session = ps::http({proxy.url("a").c_str()}, without_proxies()).connect();
  std::string into(10, 'x');
  const auto read = [&] { session.read(0, 7, std::as_writable_bytes(std::span(into))); };
  proxy.script({network_fault::server_error(), network_fault::slow_down(), network_fault::cut(3)});
  CHECK_NOTHROW(read());
  CHECK(into == web_content(1000).substr(7, 10));
  const ps::storage_counters all = session.report().counters;
  CHECK(all.retries == 3);
  CHECK(all.slow_downs == 1);
  CHECK(all.throttled == 1);
  CHECK(all.requests == 4);
  CHECK(session.report().max_in_flight == 32);  // half of the connections
  const auto object = ps::http({server.url("missing").c_str()}, without_proxies()).connect();
  CHECK(says(web_error_of([&] { (void)object.size(0); }), "(404)"));
  CHECK(object.report().counters.requests == 1);
}

TEST_CASE("storage/http: a request that stalls gets a second one, and its bytes are the right ones") {
  if (!have_nginx()) return;
  const deadline limit("a second request");
  nginx_server server;
  const std::string bytes = web_content(100'000);
  server.put("a", bytes);
  fault_proxy proxy(server.port());
  auto session = ps::http({proxy.url("a").c_str()},
                          without_proxies({.first_byte_time = 1h,
                                           .progress_time = 1h,
                                           .hedges = {.max_extra_requests = 1,
                                                      .observations = 1,
                                                      .min_delay = std::chrono::microseconds(0)}}))
                     .connect();
  std::string into(20'000, 'x');
  const auto read = [&](std::size_t offset) {
    read_outcomes outcomes(1);
    const ps::read_request one{0, offset, std::as_writable_bytes(std::span(into)), 0};
    session.read_many({&one, 1}, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.failures() == 0);
    CHECK((into == bytes.substr(offset, into.size())));
  };
  const auto stalled = [&](std::size_t offset) {
    const std::string range = "bytes=" + std::to_string(offset) + "-";
    const auto seen = proxy.seen();
    return std::any_of(seen.begin(), seen.end(), [&](const proxied_request& one) {
      return one.fault == fault_kind::stall && one.range.starts_with(range);
    });
  };
  read(7);
  for (std::size_t i = 0, met = 0; met < 5; ++i) {
    const auto before = session.report().counters;
    proxy.script({network_fault::stall(500)});
    read(1000 + i);  // would last an hour, though half of its bytes are in their place
    const auto after = session.report().counters;
    read(11);
    // A request of the read before that came second, and was not waited for, may have met the fault instead.
    if (!stalled(1000 + i)) continue;
    ++met;
    CHECK(after.hedges > before.hedges);
  }
  CHECK(session.report().counters.hedges_won > 0);
}

TEST_CASE("storage/http: a server that dies in the middle of an epoch and comes back ends no run") {
  if (!have_nginx()) return;
  const deadline limit("a server that dies");
  nginx_server server;
  server.put("a.tar", shard());
  const ps::http steady({server.url("a.tar").c_str()}, without_proxies({.connections = 2}));
  const auto expected = epoch_of(steady, 2, nothing);
  for (const unsigned workers : {0u, 2u}) {
    const auto loader = ps::webdataset(steady) | ps::prefetch(20, {.coalesce_gap = 0}) |
                        ps::shuffle(ps::seed(5)) | ps::fields<"bin"> | ps::batch(10) | ps::workers(workers);
    auto run = loader.open();
    std::vector<std::string> got;
    std::jthread comes_back;
    std::size_t batch = 0;
    for (auto&& b : run.epoch(1)) {
      if (batch++ == 3) {  // most samples have not been asked for
        server.kill();
        comes_back = std::jthread([&] {
          {  // what is in its place ends one connection without a word, then none is taken for a moment
            const owned_socket instead = penstock_test::detail::bound(false, server.port());
            if (::listen(instead.get(), 16) != 0) throw std::runtime_error("cannot listen");
            ::close(::accept(instead.get(), nullptr, nullptr));
          }
          server.start();
        });
      }
      for (std::size_t i = 0; i < b.size(); ++i) got.emplace_back(ps::text_of(ps::get<"bin">(b)[i]));
    }
    CHECK((got == expected));
    CHECK(run.counters().storage.retries > 0);
    CHECK(run.counters().storage.given_up == 0);
  }
}

TEST_CASE("storage/http: a run that ends waits for no answer") {
  const deadline limit("a silent server", 60s);
  const std::string bytes = shard();
  std::atomic<bool> silent{false}, over{false};
  std::atomic<int> held{0};
  web_server server([&](web_peer& peer) {
    for (web_request request; peer.next(request);) {
      if (silent) {
        ++held;
        while (!over) std::this_thread::sleep_for(1ms);  // the client may be gone, or not
        return;
      }
      if (!peer.send(web_object(request, bytes))) return;
    }
  });
  const struct gives_up {
    std::atomic<bool>& over;
    ~gives_up() { over = true; }
  } at_last{over};
  const ps::http far({server.at("/a.tar").c_str()},
                     without_proxies({.first_byte_time = 1h, .progress_time = 1h}));
  const auto end = [&](const auto& loader, const auto& how) {
    auto run = std::make_optional(loader.open());
    const int before = held;
    silent = true;  // an epoch that is not the next one needs what has not been asked for
    how(run, [&] {
      while (held == before) std::this_thread::sleep_for(1ms);
    });
    run.reset();
    silent = false;
    CHECK(held > before);  // and they still are: nobody has answered them
    CHECK_FALSE(over.load());
  };
  const auto all_ways = [&](const auto& loader) {
    end(loader, [](auto& run, const auto& wait) {  // destroyed
      (void)run->epoch(7);
      wait();
    });
    end(loader, [](auto& run, const auto& wait) {  // stopped while the consumer waits
      const std::jthread stops([&] {
        wait();
        run->request_stop();
      });
      try {
        for (auto&& b : run->epoch(7)) (void)b;
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::stopped);
      }
      CHECK(run->stopped());
    });
  };
  const auto batches = [](const auto& source) {
    return source | ps::fields<"bin"> | ps::batch(10) | ps::workers(2);
  };
  all_ways(batches(ps::webdataset(far)));
  all_ways(batches(ps::webdataset(far) | ps::prefetch(0)));
  all_ways(batches(ps::webdataset_stream(far)));
}
