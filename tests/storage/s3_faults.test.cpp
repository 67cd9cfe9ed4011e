// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs over S3 whose store, credentials or network fail in mid-epoch; and what they show of secrets.
#include <penstock/storage/s3.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/observe/counters.hpp>
#include <penstock/observe/timeline.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/s3/requests/hash.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fake_s3.hpp"
#include "support/fault_proxy.hpp"
#include "support/nginx.hpp"
#include "support/s3_session.hpp"
#include "support/server_process.hpp"
#include "support/temp_dir.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

/// Little is read ahead, so that there are requests to come at any time.
template <class Source>
auto s3_faulty_loader(const Source& source) {
  return source | ps::shuffle(ps::seed(7)) | ps::fields<"txt"> | ps::prefetch(16) | ps::batch(8, ps::ragged) |
         ps::prefetch(2) | ps::workers(2);
}
/// Ten shards of 30 samples, as files and in a store, and what an epoch of them gives.
struct s3_dataset {
  s3_dataset() {
    ps::shard_writer out((folder / "a-%d.tar").string(), {.maxcount = 30});
    for (std::size_t i = 0; i < 300; ++i)
      out.write(std::to_string(i),
                {{"txt", std::string(1000 + i % 30 * 137, static_cast<char>('a' + (i + i / 30) % 26))}});
    (void)out.close();
    for (int i = 0; i < 10; ++i) {
      const std::string name = "a-" + std::to_string(i) + ".tar";
      store.put("r/" + name, text_in(folder / name));
    }
    auto run = s3_faulty_loader(ps::webdataset((folder / "a-{0..9}.tar").string())).open();
    for (auto&& b : run.epoch(0)) append(expected, b);
  }
  [[nodiscard]] static ps::webdataset<ps::s3> source(const ps::s3_options& options) {
    return ps::webdataset(ps::s3("bucket/r/a-{0..9}.tar", options));
  }
  template <class Batch>
  static void append(std::string& all, const Batch& batch) {
    for (std::size_t i = 0; i < batch.valid_size(); ++i) {
      const auto text = ps::get<"txt">(batch)[i];
      all.append(reinterpret_cast<const char*>(text.data()), text.size()).append("\n");
    }
  }

  temp_dir folder;
  fake_s3 store;
  std::string expected;
};

/// What is written to standard error meanwhile.
template <class Call>
std::string s3_errors_of(const std::filesystem::path& path, Call&& call) {
  std::fflush(stderr);
  const int before = ::dup(2), file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(file, 2);
  ::close(file);
  call();
  std::fflush(stderr);
  ::dup2(before, 2);
  ::close(before);
  return text_in(path);
}

}  // namespace

TEST_CASE("storage/s3: a run goes on with new credentials when its token expires in mid-epoch") {
  const deadline limit("an expired token", 120s);
  s3_dataset data;
  std::atomic<int> given{0}, expired{0}, refused{0};  // tokens, by their numbers
  web_server service(answering([&](const web_request&) {
    const std::string number = std::to_string(++given);
    return web_answer("200 OK", "",
                      R"({"AccessKeyId": "id)" + number +
                          R"(", "SecretAccessKey": "SeCrEt", "Token": "SeCrEt)" + number +
                          R"(", "Expiration": "2099-01-01T00:00:00Z"})");
  }));
  data.store.set_hook([&](const web_request& request) {
    std::optional<std::string> instead;
    if (std::stoi(request.header("x-amz-security-token").substr(6)) <= expired.load()) {
      ++refused;
      instead = s3_refusal("400 Bad Request", "ExpiredToken");
    }
    return instead;
  });
  ps::s3_options options = s3_at(data.store.endpoint());
  options.identity = {};
  options.environment = ps::s3_environment(
      {std::pair<std::string, std::string>("AWS_CONTAINER_CREDENTIALS_FULL_URI", service.at("/role"))});
  std::string got;
  auto run = s3_faulty_loader(s3_dataset::source(options)).open();
  std::size_t batches = 0;
  for (auto&& b : run.epoch(0)) {
    s3_dataset::append(got, b);
    if (++batches % 8 == 0) expired = given.load();
  }
  CHECK((got == data.expected));
  CHECK(refused > 0);
  CHECK(run.counters().storage.retries == 0);  // it is no failure
}

TEST_CASE("storage/s3: a run ends at once, however many requests are in flight") {
  const deadline limit("requests in flight", 120s);
  s3_dataset data;
  fault_proxy proxy(data.store.port());
  ps::s3_options options = s3_at("http://127.0.0.1:" + std::to_string(proxy.port()));
  const auto loader = s3_faulty_loader(s3_dataset::source(options));
  // The store falls silent after the first batches.
  const auto begin = [&](auto& run) {
    std::size_t batches = 0;
    for (auto&& b : run.epoch(0)) {
      CHECK(b.valid_size() == 8);
      if (++batches == 3) break;
    }
    proxy.sometimes(network_fault::silent(), {.one_in = 1});
  };
  SECTION("destroyed") {
    auto run = loader.open();
    begin(run);
  }
  SECTION("stopped by another thread while it is waited for") {
    auto run = loader.open();
    begin(run);
    std::thread other([&] {
      while (proxy.count(fault_kind::silent) < 2) std::this_thread::sleep_for(1ms);
      run.request_stop();
    });
    for (auto&& b : run.epoch(1)) (void)b;
    other.join();
    CHECK(run.stopped());
  }
  SECTION("left by an exception") {
    CHECK_THROWS_AS(
        [&] {
          auto run = loader.open();
          begin(run);
          throw 1;
        }(),
        int);
  }
}

TEST_CASE("storage/s3: the default retries outlive a server that dies and comes back in mid-epoch") {
  if (!have_nginx()) return;
  const deadline limit("a server that comes back", 120s);
  // For who only reads and is nobody, files on a web server are a store.
  s3_dataset data;
  nginx_server server;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "a-" + std::to_string(i) + ".tar";
    server.put("bucket/r/" + name, text_in(data.folder / name));
  }
  const ps::s3_options options{
      .place = {.region = "us-east-1", .endpoint = "http://127.0.0.1:" + std::to_string(server.port())},
      .identity = {.credentials = ps::s3_credentials()},
      .connection = {.proxies = false},
      .environment = ps::s3_environment()};
  auto run = s3_faulty_loader(s3_dataset::source(options)).open();
  std::string got;
  std::size_t batches = 0;
  std::thread back;
  for (auto&& b : run.epoch(0)) {
    s3_dataset::append(got, b);
    if (++batches != 10) continue;
    server.kill();
    back = std::thread([&] {
      std::this_thread::sleep_for(300ms);
      server.start();
    });
  }
  back.join();
  CHECK((got == data.expected));
  CHECK(run.counters().storage.retries > 0);
  CHECK(run.counters().storage.given_up == 0);
}

TEST_CASE("storage/s3: whole objects that changed on their way are read again, if the store has a checksum") {
  const deadline limit("changed bytes");
  const std::string whole = web_content(20'000);
  const std::string sum = ps::detail::s3::checksum_of("crc32c", ps::bytes_of(whole));
  web_server server(answering([&](const web_request& request) {
    std::string answer = web_object(request, whole);
    return answer.insert(answer.find("\r\n") + 2, "x-amz-checksum-crc32c: " + sum + "\r\n");
  }));
  fault_proxy proxy(server.port());
  ps::s3_options options = s3_at("http://127.0.0.1:" + std::to_string(proxy.port()));
  options.connection.retries = {.attempts = 4, .initial_backoff = 1ms};
  const auto flips = [&] { proxy.script({network_fault::flip(7), network_fault::flip(19'999)}); };
  {
    flips();
    const auto session = ps::s3({"bucket/a"}, options).connect();
    CHECK((s3_read(session, 0, 0, whole.size()) == whole));
    CHECK(session.report().counters.retries == 2);
    CHECK(proxy.count(fault_kind::flip) == 2);
  }
  proxy.behave();
  flips();
  options.connection.retries.attempts = 2;
  const ps::error e =
      s3_error_of([&] { (void)s3_read(ps::s3({"bucket/a"}, options).connect(), 0, 0, whole.size()); });
  CHECK(says(e, "do not have the crc32c that the store keeps of them"));
  CHECK(says(e, "after 2 attempts"));
  proxy.behave();
  flips();
  options.verify_checksums = false;
  CHECK_FALSE((s3_read(ps::s3({"bucket/a"}, options).connect(), 0, 0, whole.size()) == whole));
}

TEST_CASE("storage/s3: nothing that a run says has a secret, a token, a key's id or a signature") {
  const deadline limit("secrets", 120s);
  s3_dataset data;
  fault_proxy proxy(data.store.port());
  ps::s3_options options = s3_at("http://127.0.0.1:" + std::to_string(proxy.port()));
  options.connection.retries = {.initial_backoff = 1ms, .max_backoff = 5ms};
  web_log authorizations;
  std::atomic<int> asked{0};
  data.store.set_hook([&](const web_request& request) {
    authorizations.add(request.header("authorization"));
    std::optional<std::string> instead;
    if (++asked % 60 == 0) instead = s3_refusal("503 Slow Down", "SlowDown");
    return instead;
  });
  std::string said;
  const auto source = s3_dataset::source(options);
  const ps::timeline trace;
  const auto loader = s3_faulty_loader(source) | ps::watchdog(50ms) | trace;
  said += s3_errors_of(data.folder / "errors", [&] {
    auto run = loader.open();
    std::size_t batches = 0;
    for (auto&& b : run.epoch(0)) {
      (void)b;
      if (++batches == 5) proxy.script({network_fault::delay(300ms), network_fault::delay(300ms)});
    }
    said += ps::to_string(run.state()) + ps::report(run.counters());
  });
  CHECK(said.find("the oldest request, for s3://bucket/r/a-") != std::string::npos);
  said += source.describe() + trace.json();
  CHECK(trace.json().find("\"name\":\"request\"") != std::string::npos);
  // An error for each way in which a run can fail.
  data.store.set_hook({});
  options.connection.retries.attempts = 2;
  const auto brief = s3_faulty_loader(s3_dataset::source(options));
  for (const char* const code :
       {"AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken",
        "PreconditionFailed", "RequestTimeTooSkewed"}) {
    said += s3_errors_of(data.folder / "errors", [&] {
      auto run = brief.open();
      data.store.set_hook([&](const web_request&) {
        return std::optional(s3_refusal("403 Forbidden", code, "Date: Mon, 23 Nov 2026 12:00:00 GMT\r\n",
                                        "<StringToSign>SeCrEt</StringToSign>"
                                        "<AWSAccessKeyId>key-id</AWSAccessKeyId>"));
      });
      said += s3_error_of([&] {
                for (auto&& b : run.epoch(0)) (void)b;
              }).what();
    });
    data.store.set_hook({});
  }
  CHECK(said.find("AccessDenied") != std::string::npos);
  shows_no_secret(said);
  CHECK(said.find("key-id") == std::string::npos);
  CHECK(said.find("AWS4-HMAC-SHA256") == std::string::npos);
  const std::string last = authorizations.last();
  REQUIRE(last.find("Signature=") != std::string::npos);
  for (const std::string& one : authorizations.all())
    CHECK(said.find(one.substr(one.find("Signature=") + 10)) == std::string::npos);
}
