// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/http.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/read_outcomes.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

static_assert(ps::storage<ps::http> && ps::background_session<ps::http::session>);
static_assert(ps::session_traits_of<ps::http::session>().latency && !ps::is_local<ps::http>());
static_assert(!std::is_copy_constructible_v<ps::http::session>, "only one session may end its reads");

TEST_CASE("storage/http: names and descriptions") {
  const ps::http shards("http://h:81/train-{000..002}.tar?sig=secret");
  REQUIRE(shards.names().size() == 3);
  CHECK(shards.names()[2] == "http://h:81/train-002.tar?...");
  CHECK(shards.describe() == "http(http://h:81/train-{000..002}.tar?..., 64 connections)");
  const ps::http two({"http://a/%7Bx%7D"}, {.connections = 3, .verify = false});
  CHECK(two.describe() == "http(1 URLs, 3 connections, certificates not verified)");
}

TEST_CASE("storage/http: chosen by the scheme of a URL at run time") {
  const deadline limit("two reads");
  const std::string bytes = web_content(5000);
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }));
  using either = ps::any_of<ps::file, ps::http>;
  static_assert(ps::background_session<either::session> && ps::session_traits_of<either::session>().latency);
  const either far(ps::http({server.at("/a.tar").c_str()}, direct()));
  const auto session = far.connect();
  CHECK(session.size(0) == 5000);
  std::string got(100, 'x');
  session.read(0, 50, std::as_writable_bytes(std::span(got)));
  CHECK(got == bytes.substr(50, 100));
  CHECK(either("HTTPS://h/train-{0..1}.tar?sig=secret").names()[1] == "https://h/train-1.tar?...");
  CHECK(either("/data/train-{0..1}.tar").names()[1] == "/data/train-1.tar");
  const ps::error other = web_error_of([] { (void)either("s3://bucket/a.tar"); });
  CHECK(says(other, "only for file, http, https"));
}

TEST_CASE("storage/http: URLs and options that make no sense") {
  for (const char* pattern :
       {"train-{0..3}.tar", "s3://bucket/a", "http://me:secret@h/a{0..1}", "http://h/a b?secret",
        "http://h/{0..?secret", "http://me:secret@h/{0..", "http://h/a#secret"}) {
    const ps::error e = web_error_of([&] { (void)ps::http(pattern); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::argument);
    CHECK_FALSE(says(e, "secret"));
  }
  CHECK(web_error_of([] { (void)ps::http("http://h/", {.connections = 0}); }).code() == ps::errc::argument);
  const ps::error ca =
      web_error_of([] { (void)ps::http("https://h/", {.ca_file = "/no such file"}).connect(); });
  CHECK(ca.code() == ps::errc::argument);
  CHECK(ca.file() == "/no such file");
}

TEST_CASE("storage/http: bytes, size and version") {
  const deadline limit("a few reads");
  const std::string bytes = web_content(200'000);
  web_log asked;
  web_server server(answering([&](const web_request& request) {
    asked.add(request.method() + " " + request.header("Range") + " " + request.header("If-Match"));
    return web_object(request, bytes);
  }));
  const ps::http where({server.at("/a?x=1").c_str()}, direct());
  const auto session = where.connect();
  CHECK(session.report().counters.requests == 0);
  CHECK(session.size(0) == 200'000);
  CHECK(session.version(0).size == 200'000);
  CHECK(session.version(0).stamp != 0);
  std::string got(1000, 'x');
  session.read(0, 12'345, std::as_writable_bytes(std::span(got)));
  CHECK(got == bytes.substr(12'345, 1000));
  got.resize(200'000);
  session.read(0, 0, std::as_writable_bytes(std::span(got)));
  CHECK((got == bytes));
  CHECK(asked.all() ==
        std::vector<std::string>{"HEAD  ", "GET bytes=12345-13344 \"one\"", "GET bytes=0-199999 \"one\""});
  CHECK(session.report().counters.requests == 3);
  CHECK(session.report().counters.bytes == 201'000);
  CHECK(session.connections() == 1);
  CHECK(server.connections() == 1);
}

TEST_CASE("storage/http: ranges beyond the end, and empty ones") {
  const deadline limit("ranges");
  const std::string bytes = web_content(1000);
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }));
  const ps::http where({server.at("/a").c_str()}, direct());
  std::string some(10, 'x');
  for (const bool known : {false, true}) {
    const auto session = where.connect();
    if (known) CHECK(session.size(0) == 1000);
    for (const std::uint64_t offset :
         {std::uint64_t{991}, std::uint64_t{1000}, std::uint64_t{5000}, ~std::uint64_t{0} - 3}) {
      const ps::error e =
          web_error_of([&] { session.read(0, offset, std::as_writable_bytes(std::span(some))); });
      INFO(e.what());
      CHECK(e.code() == ps::errc::format);
      CHECK(e.offset() == offset);
      CHECK(e.file() == server.at("/a"));
    }
    session.read(0, 990, std::as_writable_bytes(std::span(some)));
    CHECK(some == bytes.substr(990));
  }
  for (const bool known : {false, true}) {
    const auto session = where.connect();
    if (known) CHECK(session.size(0) == 1000);
    CHECK_NOTHROW(session.read(0, 0, {}));
    CHECK_NOTHROW(session.read(0, 1000, {}));
  }
  const auto session = where.connect();
  CHECK(web_error_of([&] { session.read(0, 1001, {}); }).code() == ps::errc::format);
}

TEST_CASE("storage/http: an empty object") {
  const deadline limit("an empty object");
  for (const bool head : {true, false}) {
    web_server server(answering([&](const web_request& request) {
      return !head && request.method() == "HEAD" ? web_answer("405 Not Allowed", "", "")
                                                 : web_object(request, "");
    }));
    const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
    CHECK(session.size(0) == 0);
    CHECK_NOTHROW(session.read(0, 0, {}));
    std::byte one{};
    CHECK(web_error_of([&] { session.read(0, 0, {&one, 1}); }).code() == ps::errc::format);
  }
}

TEST_CASE("storage/http: many ranges in flight, in order, on connections that stay open") {
  const deadline limit("two thousand reads at once");
  const std::string bytes = web_content(300'000);
  std::mutex lock;
  std::vector<std::size_t> order;
  web_server server(answering([&](const web_request& request) {
    const std::string range = request.header("Range");
    if (!range.empty()) {
      const std::scoped_lock held(lock);
      order.push_back(std::stoul(range.substr(6)));
    }
    return web_object(request, bytes);
  }));
  for (const std::size_t connections : {1u, 8u}) {
    {
      const std::scoped_lock held(lock);
      order.clear();
    }
    const int before = server.connections();
    auto session = ps::http({server.at("/a").c_str()}, direct({.connections = connections})).connect();
    std::vector<std::byte> into(2000 * 140);
    std::vector<ps::read_request> requests;
    for (std::size_t i = 0; i < 2000; ++i) requests.push_back({0, i * 140, {into.data() + i * 140, 140}, i});
    read_outcomes outcomes(2000);
    session.read_many(std::span(requests).first(1000), outcomes.listener());
    session.read_many(std::span(requests).subspan(1000), outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == 0);
    CHECK((ps::text_of(into) == std::string_view(bytes).substr(0, into.size())));
    CHECK(server.connections() - before <= static_cast<int>(connections));
    CHECK(session.connections() <= connections);
    CHECK(session.report().counters.bytes == into.size());
    const std::scoped_lock held(lock);
    REQUIRE(order.size() == 2000);
    if (connections == 1) CHECK(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_CASE("storage/http: reads by many threads at once") {
  const deadline limit("reads by many threads");
  const std::string bytes = web_content(100'000);
  web_server server(answering([&](const web_request& request) { return web_object(request, bytes); }));
  const ps::http where({server.at("/a").c_str(), server.at("/b").c_str()}, direct({.connections = 4}));
  const auto session = where.connect();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      std::string some(500, 'x');
      for (std::size_t i = 0; i < 40; ++i) {
        const std::size_t offset = (i * 7919 + t * 104'729) % 99'500;
        session.read(t % 2, offset, std::as_writable_bytes(std::span(some)));
        if (some != bytes.substr(offset, 500) || session.size(t % 2) != 100'000) ++wrong;
      }
    });
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
}

TEST_CASE("storage/http: cancel ends a thousand requests at once, and the session goes on") {
  const deadline limit("a cancel", 60s);
  const std::string bytes = web_content(1000);
  std::atomic<bool> silent{true};
  web_server server([&](web_peer& peer) {
    for (web_request request; peer.next(request);) {
      if (silent) return peer.stall();
      if (!peer.send(web_object(request, bytes))) return;
    }
  });
  auto session = ps::http({server.at("/a").c_str()}, direct({.connections = 32})).connect();
  std::vector<std::byte> into(10'000);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 1000; ++i) requests.push_back({0, i % 900, {into.data() + i * 10, 10}, i});
  {
    read_outcomes outcomes(1000);
    session.read_many(requests, outcomes.listener());
    while (server.connections() < 32) std::this_thread::sleep_for(1ms);
    session.cancel();
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures(ps::errc::stopped) == 1000);
  }
  silent = false;
  read_outcomes again(1000);
  session.read_many(requests, again.listener());
  again.wait();
  CHECK(again.failures() == 0);
  session.cancel();
  CHECK(session.size(0) == 1000);

  silent = true;
  read_outcomes last(1000);
  {
    auto short_lived = ps::http({server.at("/a").c_str()}, direct()).connect();
    short_lived.read_many(requests, last.listener());
  }
  CHECK(last.ended() == 1000);
  CHECK(last.failures(ps::errc::stopped) == 1000);
}

TEST_CASE("storage/http: cancel ends a blocking read too") {
  const deadline limit("a cancelled read", 60s);
  std::atomic<bool> asked{false};
  web_server server([&](web_peer& peer) {
    web_request request;
    if (!peer.next(request)) return;
    asked = true;
    peer.stall();
  });
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  std::thread canceller([&] {
    while (!asked) std::this_thread::sleep_for(1ms);
    session.cancel();
  });
  std::byte one{};
  const ps::error e = web_error_of([&] { session.read(0, 7, {&one, 1}); });
  canceller.join();
  CHECK(e.code() == ps::errc::stopped);
  CHECK(e.file() == server.at("/a"));
  CHECK(e.offset() == 7u);
}

TEST_CASE("storage/http: one of many reads is ended, whether it waits or is in flight") {
  const deadline limit("abandoned reads", 60s);
  const std::string bytes = web_content(1000);
  std::atomic<bool> silent{true};
  web_server server([&](web_peer& peer) {
    for (web_request request; peer.next(request);) {
      if (silent && request.header("Range") == "bytes=0-9") return peer.stall();
      if (!peer.send(web_object(request, bytes))) return;
    }
  });
  auto session = ps::http({server.at("/a").c_str()}, direct({.connections = 1})).connect();
  std::vector<std::byte> into(30);
  const std::vector<ps::read_request> requests{{0, 0, std::span(into).subspan(0, 10), 0},
                                               {0, 10, std::span(into).subspan(10, 10), 1},
                                               {0, 20, std::span(into).subspan(20, 10), 2}};
  read_outcomes outcomes(3);
  session.inside().read_many(requests, outcomes.listener());
  while (server.connections() < 1) std::this_thread::sleep_for(1ms);
  session.inside().abandon(7);  // nothing has this tag
  session.inside().abandon(1);
  while (outcomes.ended() == 0) std::this_thread::sleep_for(1ms);
  CHECK(outcomes.error_of(1)->code() == ps::errc::stopped);
  session.inside().abandon(0);
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.error_of(0)->code() == ps::errc::stopped);
  CHECK_FALSE(outcomes.error_of(2));
  CHECK((ps::text_of(std::span(into).subspan(20)) == bytes.substr(20, 10)));
  silent = false;
  read_outcomes again(3);
  session.inside().read_many(requests, again.listener());  // earlier requests to end a tag are over
  again.wait();
  CHECK(again.failures() == 0);
}

TEST_CASE("storage/http: threads that ask for a version at once share one request") {
  const deadline limit("versions", 60s);
  std::atomic<int> heads{0};
  web_server server(answering([&](const web_request& request) {
    if (request.method() == "HEAD") {
      ++heads;
      std::this_thread::sleep_for(20ms);
    }
    return web_object(request, web_content(1000));
  }));
  const auto session = ps::http({server.at("/a").c_str()}, direct()).connect();
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { right += session.size(0) == 1000 ? 1 : 0; });
  threads.clear();
  CHECK(right == 8);
  CHECK(heads == 1);
}

TEST_CASE("storage/http: webdataset gives what it gives over files") {
  const deadline limit("epochs over http");
  const temp_dir folder;
  std::map<std::string, std::string> shards;
  for (std::size_t n = 0; n < 4; ++n) {
    const std::string name = "a-" + std::to_string(n) + ".tar";
    ps::tar_writer out((folder / name).string());
    for (std::size_t i = 0; i < 25; ++i) {
      const std::string key = std::to_string(n) + "-" + std::to_string(i);
      const std::string bytes = web_content((i * 97 + n) * 400 % 70'000), words = "text of " + key;
      out.write(key, {{"bin", ps::bytes_of(bytes)}, {"txt", ps::bytes_of(words)}});
    }
    out.close();
    std::ifstream in(folder / name, std::ios::binary);
    shards["/" + name] = {std::istreambuf_iterator<char>(in), {}};
  }
  web_server server(answering([&](const web_request& request) {
    const auto found = shards.find(request.target());
    return found == shards.end() ? web_answer("404 Not Found", "", "") : web_object(request, found->second);
  }));
  const auto collect = [](const auto& source, std::size_t threads) {
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
  };
  const auto expected = collect(ps::webdataset((folder / "a-{0..3}.tar").string()), 0);
  REQUIRE(expected.size() == 100);
  const ps::webdataset far(ps::http(server.at("/a-{0..3}.tar"), direct()));
  for (const std::size_t threads : {0u, 1u, 2u}) CHECK((collect(far, threads) == expected));
}
