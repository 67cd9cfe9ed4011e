// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3_writer.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/s3.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/swift.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

constexpr ps::s3_writer_options s3_small_parts{
    .part_size = std::size_t{5} << 20, .max_in_flight = 2, .attempts = 4, .initial_backoff = 10ms};

/// In pieces of unequal sizes.
void s3_write(ps::s3_writer& out, std::string_view bytes) {
  for (std::size_t piece = 1; !bytes.empty(); piece = piece * 7 % 700'001) {
    const std::size_t now = std::min(piece, bytes.size());
    out.write(ps::bytes_of(bytes.substr(0, now)));
    bytes.remove_prefix(now);
  }
}

void writes_objects(const s3_server& server) {
  server.put("bucket", "old", "an older object");
  fault_proxy proxy(server.port());
  ps::s3_options options = s3_at(server);
  options.place.endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
  const std::string large = web_content(11'000'000), small = web_content(10'000);
  const std::string part = large.substr(0, 5'500'000);
  const auto read = [&](const std::string& name, std::size_t size) {
    return s3_read(ps::s3({name.c_str()}, options).connect(), 0, 0, size);
  };

  ps::s3_writer out(options, s3_small_parts);
  out.open("bucket/old");
  s3_write(out, small);
  const ps::object_version replaced = out.finish();
  CHECK(replaced.size == small.size());
  CHECK(proxy.requests() == 1);
  const auto session = ps::s3({"bucket/old", "bucket/a b/large", "bucket/empty"}, options).connect();
  CHECK(session.version(0) == replaced);
  CHECK((s3_read(session, 0, 0, small.size()) == small));
  out.open("s3://bucket/empty");
  CHECK(out.finish().size == 0);
  CHECK(session.size(2) == 0);

  // Parts fail in several ways, and the object is whole.
  proxy.script({network_fault::none(), network_fault::server_error(), network_fault::cut_before_answer(),
                network_fault::slow_down(), network_fault::reset_before_answer()});
  out.open("bucket/a b/large");
  s3_write(out, large);
  const ps::object_version written = out.finish();
  CHECK(written.size == large.size());
  CHECK(session.version(1) == written);
  CHECK((s3_read(session, 1, 0, large.size()) == large));
  CHECK((server.get("bucket", "a b/large") == large));
  CHECK(out.counters().retries >= 2);  // the client itself sends again what a kept connection lost
  CHECK(out.counters().slow_downs == 1);

  // What is given up, by whichever way, leaves nothing.
  proxy.behave();
  out.open("bucket/given-up-1");
  s3_write(out, part);
  out.open("bucket/given-up-2");
  s3_write(out, part);
  out.abort();
  {
    std::optional<ps::s3_writer> ends(std::in_place, options, s3_small_parts);
    ends->open("bucket/given-up-3");
    s3_write(*ends, part);
  }
  ps::s3_writer_options one_by_one = s3_small_parts;
  one_by_one.max_in_flight = 1;
  const std::string denied = "<Error><Code>AccessDenied</Code><Message>SeCrEt</Message></Error>";
  for (const bool recurs : {true, false}) {
    const network_fault fault =
        recurs ? network_fault::answer(403, "Forbidden", "", denied) : network_fault::server_error();
    std::vector<network_fault> script(recurs ? 2 : 5, fault);
    script[0] = network_fault::none();
    proxy.script(script);
    out = ps::s3_writer(options, one_by_one);
    out.open("bucket/given-up-4");
    const ps::error e = s3_error_of([&] {
      s3_write(out, part);
      (void)out.finish();
    });
    proxy.behave();
    INFO(e.what());
    CHECK(e.code() == ps::errc::io);
    CHECK(e.recurs() == recurs);
    CHECK(says(e, "put a part of an object"));
    CHECK(says(e, "s3://bucket/given-up-4"));
    CHECK(says(e, "after 4 attempts") == !recurs);
    CHECK(s3_error_of([&] { out.write(ps::bytes_of("more")); }).code() == ps::errc::state);
    CHECK(s3_error_of([&] { (void)out.finish(); }).code() == ps::errc::state);
  }
  CHECK(server.list("bucket").find("given-up") == std::string::npos);

  // An answer to the last request that does not arrive: the object is there.
  out.open("bucket/late");
  s3_write(out, part);
  proxy.script({network_fault::none(), network_fault::cut_before_answer()});
  CHECK(out.finish().size == part.size());
  CHECK((read("bucket/late", part.size()) == part));
  CHECK(server.uploads("bucket").empty());
}

}  // namespace

TEST_CASE("storage/s3_writer: names, options and calls that make no sense") {
  const auto refused = [](ps::s3_writer_options how) {
    CHECK(s3_error_of([&] { (void)ps::s3_writer(s3_at("http://h"), how); }).code() == ps::errc::argument);
  };
  refused({.part_size = 1000});
  refused({.part_size = std::size_t{6} << 30});
  refused({.max_in_flight = 0});
  refused({.attempts = 0});
  refused({.initial_backoff = -1ms});
  ps::s3_options none = s3_at("http://h");
  none.connection.connections = 0;
  CHECK(s3_error_of([&] { (void)ps::s3_writer(none); }).code() == ps::errc::argument);
  ps::s3_writer out(s3_at("http://h"));
  CHECK(s3_error_of([&] { out.write(ps::bytes_of("a")); }).code() == ps::errc::state);
  CHECK(s3_error_of([&] { (void)out.finish(); }).code() == ps::errc::state);
  CHECK(s3_error_of([&] { out.open("bucket"); }).code() == ps::errc::argument);
  CHECK(s3_error_of([&] { out.open("id:SeCrEt@bucket/key"); }).code() == ps::errc::argument);
  out.abort();
  ps::s3_writer other = std::move(out);
  other.open("bucket/key");
  other = ps::s3_writer(s3_at("http://h"));
}

TEST_CASE("storage/s3_writer: 10,000 parts are enough for the largest object") {
  const ps::detail::s3::upload_plan plan{std::size_t{8} << 20, 4, {1, 0ms}};
  std::uint64_t sum = 0;
  for (std::size_t i = 1; i <= 10'000; ++i) {
    CHECK((i == 1 || plan.size_of(i) >= plan.size_of(i - 1)));
    sum += plan.size_of(i);
  }
  CHECK(plan.size_of(1) == plan.part_size);
  CHECK(plan.size_of(1000) == plan.part_size);
  CHECK(plan.size_of(1001) == 2 * plan.part_size);
  CHECK(sum > std::uint64_t{5} << 40);
  const ps::detail::s3::upload_plan largest{std::size_t{5} << 30, 4, {1, 0ms}};
  CHECK(largest.size_of(10'000) == std::size_t{5} << 30);
}

TEST_CASE("storage/s3_writer: SeaweedFS") {
  if (!have_seaweed()) return;
  const deadline limit("SeaweedFS", 120s);
  const seaweed_server server;
  writes_objects(server);
}

TEST_CASE("storage/s3_writer: Swift") {
  if (!have_swift()) return;
  const deadline limit("Swift", 120s);
  const swift_server server;
  writes_objects(server);

  ps::s3_writer out(s3_at(server));
  out.open("nobucket/a");
  out.write(ps::bytes_of("a"));
  const ps::error missing = s3_error_of([&] { (void)out.finish(); });
  CHECK(says(missing, "NoSuchBucket"));
  CHECK(says(missing, "s3://nobucket/a"));
}
