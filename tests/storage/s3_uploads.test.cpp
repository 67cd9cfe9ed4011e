// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Uploads to servers that answer early, late, or not at all.
#include <penstock/storage/s3_writer.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/fake_s3.hpp"
#include "support/s3_session.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;

namespace {

constexpr ps::s3_writer_options s3_quick{
    .part_size = std::size_t{5} << 20, .max_in_flight = 2, .attempts = 4, .initial_backoff = 1ms};

/// More than sockets hold, so that it cannot be sent to a server that does not read it.
const std::string& s3_large_part() {
  static const std::string bytes = web_content(std::size_t{5} << 20);
  return bytes;
}
/// Reads the head of a request, and nothing of its body but what came with it.
bool s3_read_head(web_peer& peer) {
  std::string head;
  for (std::array<char, 256> part{}; head.find("\r\n\r\n") == std::string::npos;) {
    const auto got = ::recv(peer.socket(), part.data(), part.size(), 0);
    if (got <= 0) return false;
    head.append(part.data(), static_cast<std::size_t>(got));
  }
  return true;
}
/// Answers each connection's first request before its body has come, and closes it when it may.
web_server::script s3_answering_early(std::function<std::string()> answer, const std::atomic<bool>& closes) {
  return [answer = std::move(answer), &closes](web_peer& peer) {
    if (!s3_read_head(peer) || !peer.send(answer())) return;
    while (!closes.load()) std::this_thread::sleep_for(1ms);
  };
}
ps::object_version s3_put(ps::s3_writer& out, std::string_view bytes) {
  out.open("bucket/a b");
  out.write(ps::bytes_of(bytes));
  return out.finish();
}

/// A store that takes one upload of one part, or an object by one request.
class upload_store {
 public:
  using hook = std::function<std::string(const web_request&)>;  // an answer; "" for the store's own
  explicit upload_store(hook asked_first = {})
      : hook_(std::move(asked_first)), server_([this](web_peer& peer) {
          for (web_request request; peer.next(request);) {
            const std::string instead = hook_ ? hook_(request) : std::string();
            if (instead == "(none)" || !peer.send(instead.empty() ? answer(request) : instead)) return;
          }
        }) {}
  [[nodiscard]] std::string endpoint() const { return server_.at(""); }
  [[nodiscard]] std::string bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }
  static constexpr const char* part_tag = "\"0cc175b9c0f1b6a831c399e269772661\"";
  static constexpr const char* whole_tag = "\"b6ff9a06b7e20bcb2858c5b8ff744aea-1\"";

 private:
  std::string answer(const web_request& request) {
    const std::string target = request.target();
    const std::scoped_lock lock(mutex_);
    if (request.method() == "PUT") {
      bytes_ = request.body;
      return web_answer("200 OK", "ETag: " + std::string(part_tag) + "\r\n", "");
    }
    if (request.method() == "DELETE") return web_answer("204 No Content", "", "");
    if (target.ends_with("uploads="))
      return web_answer(
          "200 OK", "Date: Mon, 23 Nov 2026 12:00:00 GMT\r\n",
          "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>");
    return web_answer("200 OK", "",
                      "<CompleteMultipartUploadResult><ETag>&quot;e-1&quot;</ETag>"
                      "</CompleteMultipartUploadResult>");
  }

  hook hook_;
  mutable std::mutex mutex_;
  std::string bytes_;
  web_server server_;
};

}  // namespace

TEST_CASE("storage/s3_writer: an answer that comes before the body was sent is followed, or is the error") {
  const deadline limit("early answers", 120s);
  for (const bool closes_first : {true, false}) {
    CAPTURE(closes_first);
    std::atomic<bool> closes{closes_first};
    // As AIStore's gateway: another server takes the bytes, by a URL that is signed.
    std::atomic<int> asked{0};
    web_log heads;
    upload_store target([&](const web_request& request) {
      heads.add(request.head);
      return std::string();
    });
    const std::string location = target.endpoint() + "/t/bucket/a%20b?signed=SeCrEt";
    web_server gate(s3_answering_early(
        [&] {
          ++asked;
          return web_answer("307 Temporary Redirect", "Location: " + location + "\r\n", "");
        },
        closes));
    ps::s3_writer out(s3_at(gate.at("")), s3_quick);
    CHECK(s3_put(out, s3_large_part().substr(1)).size == s3_large_part().size() - 1);
    CHECK((target.bytes() == s3_large_part().substr(1)));
    CHECK(heads.last().starts_with("PUT /t/bucket/a%20b?signed=SeCrEt HTTP/1.1\r\n"));
    CHECK(heads.last().find("uthorization") == std::string::npos);
    CHECK(asked == 1);
    CHECK(out.counters().retries == 0);

    // One that is busy, and says so without looking at the body.
    asked = 0;
    upload_store store;
    web_server busy([&](web_peer& peer) {
      if (++asked == 1)
        return s3_answering_early([] { return s3_refusal("503 Slow Down", "SlowDown"); }, closes)(peer);
      web_request request;
      if (peer.next(request)) peer.send(web_answer("200 OK", "ETag: \"e\"\r\n", ""));
    });
    ps::s3_writer retried(s3_at(busy.at("")), s3_quick);
    CHECK(s3_put(retried, s3_large_part().substr(1)).size == s3_large_part().size() - 1);
    CHECK(asked == 2);
    CHECK(retried.counters().retries == 1);
    CHECK(retried.counters().slow_downs == 1);

    asked = 0;
    web_server closed(s3_answering_early(
        [&] {
          ++asked;
          return s3_refusal("403 Forbidden", "AccessDenied");
        },
        closes));
    ps::s3_writer refused(s3_at(closed.at("")), s3_quick);
    const ps::error e = s3_error_of([&] { (void)s3_put(refused, s3_large_part().substr(1)); });
    INFO(e.what());
    CHECK(says(e, "AccessDenied"));
    CHECK(e.recurs());
    CHECK(asked == 1);
    closes = true;
  }
}

TEST_CASE("storage/s3_writer: a store is obeyed as long as the options say, and not when all is given up") {
  const deadline limit("long waits");
  std::atomic<int> parts{0}, deletes{0};
  upload_store store([&](const web_request& request) {
    const std::string busy = s3_refusal("503 Slow Down", "SlowDown", "Retry-After: 86400\r\n");
    if (request.method() == "PUT") return ++parts < 3 ? busy : std::string();
    if (request.method() == "DELETE") return ++deletes < 3 ? busy : std::string();
    return std::string();
  });
  ps::s3_options options = s3_at(store.endpoint());
  options.connection.retries.max_retry_after = 5ms;
  {
    ps::s3_writer out(options, s3_quick);
    (void)s3_put(out, "small");
    CHECK(parts == 3);
    CHECK(out.counters().slow_downs == 2);
    parts = 0;
    (void)s3_put(out, s3_large_part());
    CHECK(parts == 3);
  }
  options.connection.retries.max_retry_after = 23h;
  options.connection.retries.max_time = 24h;
  {
    ps::s3_writer out(options, s3_quick);
    out.open("bucket/a");
    out.write(ps::bytes_of(s3_large_part()));
    out.abort();
    CHECK(deletes == 3);
    deletes = 0;
    out.open("bucket/a");
    out.write(ps::bytes_of(s3_large_part()));
  }
  CHECK(deletes == 3);
  options.connection.retries.max_retry_after = -1ms;
  CHECK(s3_error_of([&] { (void)ps::s3_writer(options); }).code() == ps::errc::argument);
}

TEST_CASE("storage/s3_writer: after a lost answer, the object must be the one that was written") {
  const deadline limit("lost answers");
  const auto finishes = [](std::string_view tag, std::string_view date, std::size_t size) {
    std::atomic<int> completions{0};
    upload_store store([&](const web_request& request) {
      if (request.method() == "HEAD")
        return "HTTP/1.1 200 OK\r\nETag: " + std::string(tag) + "\r\nLast-Modified: " + std::string(date) +
               "\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
      if (request.method() == "POST" && request.target().ends_with("uploadId=u"))
        return ++completions == 1 ? std::string("(none)") : s3_refusal("404 Not Found", "NoSuchUpload");
      return std::string();
    });
    ps::s3_writer out(s3_at(store.endpoint()), s3_quick);
    try {
      return s3_put(out, s3_large_part()).size == size;
    } catch (const ps::error& e) {
      CHECK(says(e, "the upload ended without its object"));
      return false;
    }
  };
  constexpr std::string_view before = "Mon, 23 Nov 2026 11:59:00 GMT", now = "Mon, 23 Nov 2026 12:00:01 GMT";
  const std::size_t size = s3_large_part().size();
  CHECK(finishes(upload_store::whole_tag, before, size));  // a clock of another server
  CHECK(finishes("\"opaque\"", now, size));
  CHECK_FALSE(finishes("\"opaque\"", before, size));  // of the same size, and older
  CHECK_FALSE(finishes("\"opaque\"", "", size));
  CHECK_FALSE(finishes(upload_store::whole_tag, now, size - 1));
}
