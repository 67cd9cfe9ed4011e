// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The way to AWS: over TLS, where bodies are not signed, and with the bucket in the host's name.
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/certificates.hpp"
#include "support/deadline.hpp"
#include "support/fault_proxy.hpp"
#include "support/nginx.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

/// nginx with TLS before a store. It refuses uploads whose body is signed, or has no MD5, and those of more
/// than 6 MiB.
nginx_options s3_behind_tls(const s3_server& store) {
  return {.certificates = {certificate::good, certificate::other_host},
          .lines =
              "client_max_body_size 6m;\nproxy_http_version 1.1;\nproxy_set_header Host $http_host;\n"
              "set $put \"$request_method $http_content_md5 $http_x_amz_content_sha256\";\n"
              "if ($put ~ \"^PUT  \") { return 400; }\n"
              "if ($put ~ \"^PUT .*[0-9a-f]{64}$\") { return 400; }\n"
              "location ~ ^/ { proxy_pass http://127.0.0.1:" +
              std::to_string(store.port()) + "; }\n"};
}
/// A variable of this process until it is destroyed.
class s3_proxy_variable {
 public:
  s3_proxy_variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  s3_proxy_variable(const s3_proxy_variable&) = delete;
  s3_proxy_variable& operator=(const s3_proxy_variable&) = delete;
  ~s3_proxy_variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

/// Writes in parts, reads and lists.
void s3_writes_and_reads(const ps::s3_options& options, const std::string& bucket) {
  const std::string large = web_content(11'000'000), small = web_content(10'000);
  ps::s3_writer out(options, {.part_size = std::size_t{5} << 20, .max_in_flight = 2, .attempts = 2});
  out.open(bucket + "/a b/large");
  out.write(ps::bytes_of(large));
  const ps::object_version written = out.finish();
  out.open(bucket + "/a b/small");
  out.write(ps::bytes_of(small));
  (void)out.finish();
  out.open(bucket + "/a b/given-up");
  out.write(ps::bytes_of(large));
  out.abort();
  CHECK(out.counters().retries == 0);
  const auto session = ps::s3({(bucket + "/a b/large").c_str()}, options).connect();
  CHECK(session.version(0) == written);
  CHECK((s3_read(session, 0, 0, large.size()) == large));
  CHECK((s3_read(session, 0, 5'000'000, 1'000'000) == large.substr(5'000'000, 1'000'000)));
  CHECK(ps::s3::list(bucket + "/a b/", options) ==
        std::vector<std::string>{"s3://" + bucket + "/a b/large", "s3://" + bucket + "/a b/small"});
}

}  // namespace

TEST_CASE("storage/s3: reading, listing and writing in parts over TLS, and buckets in the host's name") {
  if (!have_seaweed() || !have_nginx() || !have_openssl()) return;
  const deadline limit("S3 over TLS", 180s);
  const seaweed_server store;
  store.put("bucket", "first", "x");
  store.put("other", "first", "x");
  const nginx_server front(s3_behind_tls(store));
  ps::s3_options options = s3_at(store);
  options.connection.ca_file = front.authority().string();
  options.place.endpoint = "https://localhost:" + std::to_string(front.port(certificate::good));
  s3_writes_and_reads(options, "bucket");
  const auto seen = front.requests();
  CHECK(std::all_of(seen.begin(), seen.end(), [](const logged_request& one) { return one.tls; }));
  CHECK(std::count_if(seen.begin(), seen.end(), [](const logged_request& one) {
          return one.method == "PUT" && one.status == 200;
        }) >= 4);

  // nginx refuses what is too large by the head alone, and reads no further.
  ps::s3_writer out(options);
  out.open("bucket/too-large");
  out.write(ps::bytes_of(web_content(7 << 20)));
  const ps::error e = s3_error_of([&] { (void)out.finish(); });
  INFO(e.what());
  CHECK(says(e, "status 413"));
  CHECK(out.counters().retries == 0);

  ps::s3_options stranger = options;
  stranger.connection.ca_file.clear();
  CHECK(says(s3_error_of([&] { (void)s3_read(ps::s3({"bucket/first"}, stranger).connect(), 0, 0, 1); }),
             "certificate is refused"));

  // Whatever host is asked for, proxies lead to the server: plain, and through a tunnel.
  fault_proxy plain(store.port()), tunnel(front.port(certificate::other_host));
  const s3_proxy_variable http("http_proxy", plain.url()), https("https_proxy", tunnel.url());
  options.connection.proxies = true;
  options.place.addressing = ps::s3_addressing::host;
  for (const bool encrypted : {false, true}) {
    CAPTURE(encrypted);
    options.place.endpoint = encrypted ? "https://example" : "http://example";
    s3_writes_and_reads(options, "other");
    const auto asked = front.requests();
    CHECK(std::any_of(asked.begin(), asked.end(), [](const logged_request& one) {
            return one.host == "other.example" && one.method == "PUT" &&
                   one.target.starts_with("/a%20b/large?");
          }) == encrypted);
  }
  const auto through = plain.seen();
  CHECK(std::any_of(through.begin(), through.end(), [](const proxied_request& one) {
    return one.target.starts_with("http://other.example/a%20b/");
  }));
  CHECK((store.get("other", "a b/small") == web_content(10'000)));
}
