// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Forward reading from each kind of server, also from one that does harm or dies.

#include <penstock/source/webdataset_stream.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/retrying.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/fault_proxy.hpp"
#include "support/forward_listing.hpp"
#include "support/raw_tar.hpp"
#include "support/resume_test.hpp"
#include "support/stored.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace served_stream_test {

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::fault_proxy;
using penstock_test::forward_listing;
using penstock_test::network_fault;
using penstock_test::raw_tar;
using penstock_test::store_server;
using penstock_test::temp_dir;
using lines_type = std::vector<std::string>;

/// A server that has died may take half a minute to come back, on a busy machine more.
constexpr ps::retrying_options untiring{.attempts = 1000,
                                        .initial_backoff = 5ms,
                                        .max_backoff = 500ms,
                                        .max_unreachable_time = 150s,
                                        .budget = 0};

/// Two shards of several pieces.
struct two_shards {
  two_shards() {
    for (int s = 0; s < 2; ++s) {
      raw_tar tar;
      for (int i = 0; i < 30; ++i)
        tar.member(std::to_string(100 * s + i) + ".bin",
                   penstock_test::web_content(90'000 + static_cast<std::size_t>(i))
                       .substr(static_cast<std::size_t>(i)));
      names.push_back("s-" + std::to_string(s) + ".tar");
      paths.push_back((folder / names.back()).string());
      tar.end().save(paths.back());
    }
    lines = forward_listing(ps::webdataset_stream(paths));
    REQUIRE(lines.size() == 60);
  }
  temp_dir folder;
  std::vector<std::string> names, paths;
  lines_type lines;
};

}  // namespace served_stream_test

using namespace served_stream_test;

TEST_CASE("source/webdataset_stream_served: packed shards") {
  if (!penstock_test::have_program("gzip", "gzip --version")) return;
  const deadline guard("packed streams");
  two_shards here;
  std::vector<std::string> packed;
  for (const std::string& path : here.paths) {
    REQUIRE(penstock_test::run_program("gzip -1 -k '" + path + "'").status == 0);
    packed.push_back(path + ".gz");
  }
  penstock_test::in_each_kind([&](const std::string& kind, auto open) {
    INFO(kind);
    CHECK(forward_listing(ps::webdataset_stream(open(here.paths))) == here.lines);
    CHECK(forward_listing(ps::webdataset_stream<ps::unpack_gzip>(open(packed))) == here.lines);
    CHECK_THROWS_WITH(forward_listing(ps::webdataset_stream(open(packed))),
                      contains("webdataset_stream<unpack_gzip>(...)") && contains("s-0.tar.gz"));
  });
}

TEST_CASE("source/webdataset_stream_served: a server that does harm, with retries and hedges around it") {
  const deadline guard("harm to a stream", 180s);
  const two_shards here;
  penstock_test::with_each_server(here.paths, [&](const std::string& kind, const store_server& server) {
    INFO(kind);
    fault_proxy proxy(server.port());
    const auto shards = server.open(here.names, proxy.port());
    proxy.sometimes(network_fault::cut(100'000), {.one_in = 3, .seed = 5, .max_for_one_request = 3});
    proxy.sometimes(network_fault::reset_before_answer(), {.one_in = 4, .seed = 6, .max_for_one_request = 3});
    proxy.sometimes(network_fault::unavailable(), {.one_in = 4, .seed = 7, .max_for_one_request = 3});
    CHECK(forward_listing(ps::webdataset_stream(ps::retrying(shards, untiring))) == here.lines);
    CHECK(forward_listing(ps::webdataset_stream(ps::retrying(ps::hedged(shards), untiring))) == here.lines);
    CHECK(proxy.faults() != 0);

    proxy.behave();  // without retries, one clear error
    const auto data = ps::webdataset_stream(shards, {.read_ahead = 0});
    auto reader = data.connect();
    decltype(data)::element sample;
    REQUIRE(reader.next(sample));
    proxy.sometimes(network_fault::cut(1000), {.one_in = 1});
    const auto e = penstock_test::web_error_of([&] {
      while (reader.next(sample)) {
      }
    });
    CHECK(e.code() == ps::errc::io);
    CHECK_FALSE(e.recurs());
    CHECK_THAT(e.what(), contains("the connection ended after 1000 of") && contains("s-0.tar"));
  });
}

TEST_CASE("source/webdataset_stream_served: after every batch the rest matches an uninterrupted run") {
  const deadline guard("resume", 180s);
  const temp_dir folder;
  std::vector<std::string> paths;
  int value = 0;
  for (const int count : {0, 11, 1, 17, 0}) {
    raw_tar tar;
    for (int i = 0; i < count; ++i, ++value)
      tar.member(std::to_string(value) + ".cls", std::to_string(value));
    paths.push_back((folder / ("n-" + std::to_string(paths.size()) + ".tar")).string());
    tar.end().save(paths.back());
  }
  const auto plan = [](auto data) {
    return data | ps::decode<ps::field<"cls", ps::integer>> |
           ps::map([](const auto& s) { return static_cast<std::uint64_t>(ps::get<"cls">(s)); });
  };
  const auto in_files = plan(ps::webdataset_stream(paths)) | ps::batch(4);
  penstock_test::in_each_kind([&](const std::string& kind, auto open) {
    INFO(kind);
    const auto far = plan(ps::webdataset_stream(open(paths))) | ps::batch(4);
    engine_test::check_all_stops(far | ps::workers(2), far | ps::workers(0), 2);
    // a state of a run over files serves here, and the other way round
    const auto serves = [](const auto& from, const auto& to) {
      const auto whole = engine_test::follow(from | ps::workers(0), 2, true);
      for (std::size_t i = 0; i < whole.states.size(); ++i) {
        const auto rest =
            engine_test::follow(to | ps::workers(2), 2, false, ps::state_from_string(whole.states[i]));
        const auto after = whole.elements.begin() + static_cast<std::ptrdiff_t>(i) + 1;
        CHECK(rest.elements == std::vector<engine_test::numbers>(after, whole.elements.end()));
      }
    };
    serves(in_files, far);
    serves(far, in_files);
  });
}

TEST_CASE("source/webdataset_stream_served: a server that dies and comes back, and a run that does") {
  const deadline guard("a server that dies", 180s);
  const two_shards here;
  const auto payloads = [](auto&& batch, lines_type& into) {
    const auto rows = ps::get<"bin">(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) into.emplace_back(ps::text_of(rows[i]));
  };
  const auto payload_of_next = [&](auto& run, lines_type& into) {
    auto next = run.next();
    if (next.failure) std::rethrow_exception(next.failure);
    if (next) payloads(*next, into);
    return static_cast<bool>(next);
  };
  const auto plan_over = [](auto data) {
    return data | ps::fields<"bin"> | ps::batch(5, ps::ragged) | ps::workers(2);
  };
  lines_type expected;
  for (auto&& batch : plan_over(ps::webdataset_stream(here.paths))) payloads(batch, expected);
  REQUIRE(expected.size() == 60);

  penstock_test::with_each_server(here.paths, [&](const std::string& kind, store_server& server) {
    INFO(kind);
    const auto data = ps::webdataset_stream(ps::retrying(server.open(here.names, server.port()), untiring),
                                            {.read_ahead = 0});
    auto run = plan_over(data).open();
    lines_type found;
    for (int i = 0; i < 2; ++i) REQUIRE(payload_of_next(run, found));
    server.kill();
    const std::jthread later([&] {
      std::this_thread::sleep_for(50ms);
      server.start();
    });
    const ps::state middle = run.state();
    while (payload_of_next(run, found)) continue;
    CHECK((found == expected));
    CHECK(run.counters().storage.retries > 0);

    lines_type rest;
    auto again = plan_over(data).open(ps::state_from_string(to_string(middle)));
    while (payload_of_next(again, rest)) continue;
    CHECK((rest == lines_type(expected.begin() + 10, expected.end())));
  });
}
