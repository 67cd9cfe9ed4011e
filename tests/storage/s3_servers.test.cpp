// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/s3.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/s3/credential_cache.hpp>
#include <penstock/storage/s3/requests/stored_objects.hpp>
#include <penstock/storage/s3_writer.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/juicefs.hpp"
#include "support/read_outcomes.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/swift.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

/// What every server must do; `proxy` is in front of it.
void reads_objects(const s3_server& server, const std::string& content) {
  fault_proxy proxy(server.port());
  ps::s3_options options = s3_at(server);
  options.place.endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
  std::vector<s3_server::object> all;
  for (int i = 0; i < 12; ++i)
    all.push_back({"many/o" + std::to_string(i), content.substr(0, static_cast<std::size_t>(1000 + i))});
  all.push_back({"folder/a b+c%41~*\xc3\xa4.tar", content});
  all.push_back({"empty", ""});
  server.put("bucket", all);

  const auto session = ps::s3({"bucket/folder/a b+c%41~*\xc3\xa4.tar", "bucket/empty"}, options).connect();
  CHECK(session.size(0) == content.size());
  CHECK(session.version(0).stamp != 0);
  CHECK((s3_read(session, 0, 0, content.size()) == content));
  CHECK((s3_read(session, 0, 1234, 70'000) == content.substr(1234, 70'000)));
  CHECK(session.size(1) == 0);
  std::vector<std::string> parts(50, std::string(1000, 'x'));
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < parts.size(); ++i)
    requests.push_back({0, i * 1500, std::as_writable_bytes(std::span(parts[i])), i});
  read_outcomes outcomes(parts.size());
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK_FALSE(outcomes.failed(i));
    CHECK((parts[i] == content.substr(i * 1500, 1000)));
  }

  // One list for many objects, in pages, and no other request.
  const std::uint64_t before = proxy.requests();
  const auto many = ps::s3("bucket/many/o{0..11}", options).connect();
  for (unsigned i = 0; i < 12; ++i) CHECK(many.size(i) == 1000 + i);
  CHECK(proxy.requests() == before + 1);
  for (unsigned i = 0; i < 12; ++i) CHECK((s3_read(many, i, 10, 100) == content.substr(10, 100)));
  CHECK(ps::s3::list("bucket/many/o1", options) ==
        std::vector<std::string>{"s3://bucket/many/o1", "s3://bucket/many/o10", "s3://bucket/many/o11"});
  std::vector<std::string> names;
  for (const s3_server::object& one : all) names.push_back("s3://bucket/" + one.key);
  std::sort(names.begin(), names.end());
  CHECK(ps::s3::list("s3://bucket", options) == names);

  // An object that is replaced; the list's ETag protects it too.
  server.put("bucket", {{"many/o3", std::string(1003, 'y')}, {"empty", "no more"}});
  const ps::error replaced = s3_error_of([&] { (void)s3_read(many, 3, 0, 10); });
  INFO(replaced.what());
  CHECK(replaced.code() == ps::errc::io);
  CHECK(replaced.recurs());
  CHECK(says(replaced, "replaced"));
  CHECK(says(replaced, "s3://bucket/many/o3"));

  const auto fails = [&](const std::string& name, const ps::s3_options& with, std::string_view part) {
    const auto there = ps::s3({name.c_str()}, with).connect();
    const ps::error by_read = s3_error_of([&] { (void)s3_read(there, 0, 0, 10); });
    const ps::error by_size = s3_error_of([&] { (void)there.size(0); });
    for (const ps::error* const e : {&by_read, &by_size}) {
      INFO(e->what());
      CHECK(e->code() == ps::errc::io);
      CHECK(e->recurs());
      CHECK(says(*e, part));
      CHECK(says(*e, name));
    }
  };
  fails("s3://bucket/missing", options, "NoSuchKey");
  fails("s3://nobucket/many/o1", options, "NoSuchBucket");
  ps::s3_options other = options;
  other.identity.credentials = ps::s3_credentials(server.key(), "SeCrEt");
  fails("s3://bucket/many/o1", other, "SignatureDoesNotMatch");
  other.identity.credentials = ps::s3_credentials("nobody", "SeCrEt");
  fails("s3://bucket/many/o1", other, "403");
  const ps::error beyond =
      s3_error_of([&] { (void)s3_read(ps::s3({"bucket/many/o1"}, options).connect(), 0, 5000, 10); });
  CHECK(beyond.code() == ps::errc::format);

  // A clock that is an hour wrong is set by the first answer.
  const ps::detail::s3::wall_clock clock{
      nullptr,
      [](void*) { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() - 1h); }};
  auto list = std::make_unique<ps::detail::s3::object_names>();
  list->names = {"s3://bucket/many/o1"};
  ps::detail::s3::stored_objects late(ps::shared<const ps::detail::s3::object_names>(list.release()), options,
                                      clock);
  CHECK((s3_read(late, 0, 0, 100) == content.substr(0, 100)));
  const std::uint64_t at_first = late.report().counters.requests;
  CHECK((s3_read(late, 0, 0, 100) == content.substr(0, 100)));
  CHECK(late.report().counters.requests == at_first + 1);
}

}  // namespace

TEST_CASE("storage/s3: SeaweedFS") {
  if (!have_seaweed()) return;
  const deadline limit("SeaweedFS", 120s);
  const seaweed_server server;
  reads_objects(server, web_content(200'000));

  // Lists of several pages.
  constexpr std::size_t many = 2100;
  fault_proxy proxy(server.port());
  ps::s3_options options = s3_at(server);
  ps::s3_writer out(options);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < many; ++i) {
    names.push_back("s3://bucket/pages/n " + std::to_string(i));
    out.open(names.back());
    out.write(ps::bytes_of(std::to_string(i)));
    (void)out.finish();
  }
  options.place.endpoint = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto session = ps::s3(names, options).connect();
  for (std::size_t i = 0; i < many; ++i)
    CHECK(session.size(static_cast<ps::object_id>(i)) == std::to_string(i).size());
  CHECK(proxy.requests() == 3);
  std::sort(names.begin(), names.end());
  CHECK((ps::s3::list("bucket/pages/", options) == names));
  CHECK(proxy.requests() == 6);
}

TEST_CASE("storage/s3: JuiceFS") {
  if (!have_juicefs() || !have_boto3()) return;
  const deadline limit("JuiceFS", 120s);
  const juicefs_volume volume;
  const juicefs_gateway server(volume);
  reads_objects(server, web_content(200'000));
}

TEST_CASE("storage/s3: Swift") {
  if (!have_swift()) return;
  const deadline limit("Swift", 120s);
  const swift_server server;
  reads_objects(server, web_content(200'000));

  // The region of the credentials' scope is checked, and the right one named.
  ps::s3_options options = s3_at(server);
  options.place.region = "eu-west-1";
  const auto session = ps::s3({"bucket/many/o1", "bucket/many/o2"}, options).connect();
  CHECK(s3_read(session, 0, 0, 100) == web_content(100));
  const std::uint64_t at_first = session.report().counters.requests;
  CHECK(at_first == 2);
  CHECK(s3_read(session, 1, 0, 100) == web_content(100));
  CHECK(session.report().counters.requests == at_first + 1);
}
