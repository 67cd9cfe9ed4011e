// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs over HTTP while a proxy does harm of one kind: the bytes of the undisturbed run, or one clear error.
// And what nobody notices: a byte that is changed on its way without TLS.

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
#include <penstock/storage/http.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/certificates.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/nginx.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock_test;

namespace http_harmed_runs_test {

constexpr std::size_t samples = 200;

/// A shard of samples of 2000 bytes.
std::string shard() {
  std::string made;
  ps::tar_writer out([&made](ps::bytes_view more) { made += ps::text_of(more); });
  for (std::size_t i = 0; i < samples; ++i)
    out.write(std::to_string(i), {{"bin", web_content(2000 + i).substr(i)}});
  out.close();
  return made;
}
constexpr auto batches = [](const auto& source, unsigned workers) {
  return source | ps::fields<"bin"> | ps::batch(10) | ps::workers(workers);
};
/// The payloads of an epoch, and what the storage counted.
struct epoch {
  std::vector<std::string> payloads;
  ps::storage_counters counted;

  template <class Plan>
  explicit epoch(const Plan& plan) {
    auto run = plan.open();
    // the epoch that `open` begins with: for another one, the same would be asked for twice
    for (auto&& b : run.epoch(0))
      for (std::size_t i = 0; i < b.size(); ++i) payloads.emplace_back(ps::text_of(ps::get<"bin">(b)[i]));
    counted = run.counters().storage;
  }
};
ps::http_options untiring() {
  return without_proxies(
      {.connections = 8,
       .first_byte_time = 10s,
       .progress_time = 10s,
       .retries = {.attempts = 12, .initial_backoff = 2ms, .max_backoff = 50ms, .budget = 0},
       .hedges = {.max_extra_requests = 0}});
}

TEST_CASE("storage/http: a run in harm of each kind delivers the bytes of the undisturbed one") {
  if (!have_nginx()) return;
  const deadline limit("runs in harm");
  nginx_server server;
  server.put("a.tar", shard());
  const ps::http near({server.url("a.tar").c_str()}, direct());
  const auto ordered = [](const auto& source) {
    return source | ps::prefetch(64, {.coalesce_gap = 0}) | ps::shuffle(ps::seed(5));
  };
  const epoch shuffled(batches(ordered(ps::webdataset(near)), 2));
  const epoch streamed(batches(ps::webdataset_stream(near), 2));
  REQUIRE(shuffled.payloads.size() == samples);
  REQUIRE(streamed.payloads.size() == samples);
  struct harm {
    network_fault fault;
    bool fails;  // a request of a run, so that it must be sent again
  };
  for (const harm& one :
       {harm{network_fault::throttle(2'000'000), false}, harm{network_fault::longer(), true},
        harm{network_fault::shorter(), true}, harm{network_fault::close_idle(), false},
        harm{network_fault::cut_before_answer(), false}, harm{network_fault::reset_before_answer(), false},
        harm{network_fault::wrong_range(), true}, harm{network_fault::cut(1000), true}}) {
    INFO("fault " << static_cast<int>(one.fault.kind));
    // What a server says of a length in its answer to HEAD cannot be checked.
    const fault_proxy::chance often{.one_in = 5, .seed = 3, .max_for_one_request = 2, .method = "GET"};
    for (const unsigned workers : {0u, 2u}) {
      fault_proxy proxy(server.port());
      const ps::http far({proxy.url("a.tar").c_str()}, untiring());
      const auto loader = batches(ordered(ps::webdataset(far)), workers);
      proxy.sometimes(one.fault, often);
      const epoch seen(loader);
      CHECK((seen.payloads == shuffled.payloads));
      CHECK(proxy.count(one.fault.kind) > 0);
      if (one.fails) CHECK(seen.counted.retries > 0);
      CHECK(seen.counted.given_up == 0);
    }
    fault_proxy proxy(server.port());
    const ps::http far({proxy.url("a.tar").c_str()}, untiring());
    proxy.sometimes(one.fault, {.one_in = 1, .seed = 3, .max_for_one_request = 1, .method = "GET"});
    const epoch seen(batches(ps::webdataset_stream(far), 2));
    CHECK((seen.payloads == streamed.payloads));
    if (one.fails) CHECK(seen.counted.retries > 0);
  }
}

TEST_CASE("storage/http: a server that begins to ignore ranges is one clear error of the run") {
  if (!have_nginx()) return;
  const deadline limit("whole objects");
  nginx_server server;
  server.put("a.tar", shard());
  for (const unsigned workers : {0u, 2u}) {
    fault_proxy proxy(server.port());
    const ps::http far({proxy.url("a.tar").c_str()}, untiring());
    const auto loader = batches(ps::webdataset(far) | ps::prefetch(64, {.coalesce_gap = 0}), workers);
    auto run = loader.open();
    std::size_t delivered = 0;
    const ps::error e = web_error_of([&] {
      for (auto&& b : run.epoch(1)) {
        if (delivered == 0)  // from now on
          proxy.sometimes(network_fault::whole(), {.one_in = 1, .method = "GET"});
        delivered += b.size();
      }
    });
    INFO(e.what());
    CHECK(says(e, "the server ignores ranges"));
    CHECK(e.file() == proxy.url("a.tar"));
    CHECK(e.offset().has_value());
    CHECK(e.recurs());
    CHECK(run.counters().storage.retries == 0);
    CHECK(delivered < samples);
  }
}

TEST_CASE("storage/http: over TLS, a byte that is changed on its way breaks its connection, and no sample") {
  if (!have_nginx() || !have_openssl()) return;
  const deadline limit("flipped bytes over TLS");
  // Before 1.3 a certificate is sent in the open: a changed one is refused for good.
  nginx_server server({.certificates = {certificate::good}, .lines = "ssl_protocols TLSv1.3;"});
  server.put("a.tar", shard());
  const std::string authority = server.authority().string();
  const epoch expected(batches(ps::webdataset(ps::http({server.url("a.tar").c_str()}, direct())), 2));
  fault_proxy proxy(server.port(certificate::good), proxy_of::connections);
  ps::http_options options = untiring();
  options.ca_file = authority;
  const ps::http far({("https://localhost:" + std::to_string(proxy.port()) + "/a.tar").c_str()}, options);
  const auto loader = batches(ps::webdataset(far) | ps::prefetch(64, {.coalesce_gap = 0}), 2);
  // in the handshake, and in bytes of samples
  proxy.script({network_fault::flip(30), network_fault::flip(400), network_fault::flip(5000),
                network_fault::flip(7001), network_fault::flip(9002), network_fault::flip(12'003)});
  const epoch seen(loader);
  CHECK((seen.payloads == expected.payloads));
  CHECK(proxy.count(fault_kind::flip) >= 3);
  CHECK(seen.counted.retries >= 1);
  CHECK(seen.counted.given_up == 0);
}

TEST_CASE("storage/http: without TLS, a byte that is changed on its way is noticed in headers of tar alone") {
  if (!have_nginx()) return;
  const deadline limit("flipped bytes");
  nginx_server server;
  server.put("a.tar", shard());
  const auto stream = [&](std::uint64_t at) {
    fault_proxy proxy(server.port());
    const ps::http far({proxy.url("a.tar").c_str()}, untiring());
    proxy.sometimes(network_fault::flip(at), {.one_in = 1, .max_for_one_request = 1, .method = "GET"});
    const epoch seen(batches(ps::webdataset_stream(far), 2));
    CHECK(proxy.count(fault_kind::flip) == 1);  // all of the shard is one request
    return seen;
  };
  const epoch right(batches(ps::webdataset_stream(ps::http({server.url("a.tar").c_str()}, direct())), 2));
  // the name, the size, the checksum and the end of the fourth header
  const std::uint64_t header = 3 * (512 + 2048);
  for (const std::uint64_t at : {0u, 124u, 150u, 265u}) {
    const ps::error e = web_error_of([&] { (void)stream(header + at); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::format);
    CHECK(e.offset() == header);
  }
  // a payload, which has no checksum: this is what TLS, or a checksum of the store, is for
  const epoch changed = stream(header + 512 + 7);
  REQUIRE(changed.payloads.size() == samples);
  CHECK(changed.payloads[3] != right.payloads[3]);
  CHECK((changed.payloads[3][7] ^ right.payloads[3][7]) == 1);
  std::size_t different = 0;
  for (std::size_t i = 0; i < samples; ++i) different += changed.payloads[i] != right.payloads[i] ? 1 : 0;
  CHECK(different == 1);
}

}  // namespace http_harmed_runs_test
