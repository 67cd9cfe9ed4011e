// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Headers of one's own, such as credentials: sent to whom they are for, and shown to nobody.

#include <penstock/core/error.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/http_session.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr const char* secret = "s3cr3t-of-mine";
ps::http_options with_secret() {
  return direct({.headers = {{"Authorization", std::string("Bearer ") + secret}, {"X-Team", "data"}}});
}
bool has_secret(std::string_view text) { return text.find(secret) != std::string_view::npos; }

}  // namespace

TEST_CASE("storage/http: headers of one's own go with each request") {
  const deadline limit("headers");
  const std::string bytes = web_content(1000);
  web_log seen;
  web_server server(answering([&](const web_request& request) {
    seen.add(request.method() + " " + request.header("Authorization") + " " + request.header("X-Team"));
    return web_object(request, bytes);
  }));
  const ps::http where({server.at("/a").c_str()}, with_secret());
  const auto session = where.connect();
  CHECK(session.size(0) == bytes.size());
  CHECK(first_of(session) == bytes.substr(0, 10));
  CHECK(first_of(where.sidecars({".idx"}).connect()) == bytes.substr(0, 10));
  const std::string sent = std::string(" Bearer ") + secret + " data";
  CHECK(seen.all() == std::vector<std::string>{"HEAD" + sent, "GET" + sent, "GET" + sent});
}

TEST_CASE("storage/http: headers of one's own are dropped where a redirect leaves the server") {
  const deadline limit("headers and redirects");
  const std::string bytes = web_content(1000);
  web_log seen, seen_elsewhere;
  web_server other(answering([&](const web_request& request) {
    seen_elsewhere.add(request.head);
    return web_object(request, bytes);
  }));
  web_server server(answering([&](const web_request& request) {
    seen.add(request.header("Authorization") + request.header("X-Team"));
    if (request.target() == "/here") return web_object(request, bytes);
    return web_answer("307 Temporary Redirect",
                      "Location: " + (request.target() == "/a" ? other.at("/there") : "/here") + "\r\n", "");
  }));
  CHECK(first_of(ps::http({server.at("/a").c_str()}, with_secret()).connect()) == bytes.substr(0, 10));
  CHECK(seen.all().size() == 1);
  REQUIRE(seen_elsewhere.all().size() == 1);
  CHECK_FALSE(has_secret(seen_elsewhere.last()));
  CHECK(seen_elsewhere.last().find("X-Team") == std::string::npos);
  CHECK(first_of(ps::http({server.at("/b").c_str()}, with_secret()).connect()) == bytes.substr(0, 10));
  CHECK(seen.all().size() == 3);
  for (const std::string& one : seen.all()) CHECK(has_secret(one));
  CHECK(seen_elsewhere.all().size() == 1);
}

TEST_CASE("storage/http: nothing shows the headers of one's own") {
  const deadline limit("hidden headers");
  web_server server(answering([&](const web_request& request) {
    const std::string status = request.target().substr(1, 3);
    if (status == "302") return web_answer("302 Found", "Location: ftp://h/\r\n", "");
    return status == "bad" ? std::string("what\r\n\r\n") : web_answer(status + " No", "", "");
  }));
  for (const char* path : {"/401", "/403", "/404", "/500", "/503", "/302", "/bad"}) {
    const ps::http where({server.at(path).c_str()}, with_secret());
    CHECK_FALSE(has_secret(where.describe()));
    CHECK_FALSE(has_secret(where.names()[0]));
    const ps::error e = web_error_of([&] { first_of(where.connect()); });
    INFO(e.what());
    CHECK_FALSE(has_secret(e.what()));
    CHECK_FALSE(has_secret(e.message()));
    if (std::string_view(path) == "/401") CHECK(says(e, "http_options::headers"));
  }
  CHECK(says(web_error_of([] { (void)ps::http({"http://me:word@h/"}); }), "http_options::headers"));
}

TEST_CASE("storage/http: headers that cannot be sent are refused, and not shown") {
  const std::string value = std::string("Bearer ") + secret;
  const std::vector<std::pair<std::pair<std::string, std::string>, const char*>> cases{
      {{"Authorization: " + value, ""}, "a name that no header may have"},
      {{"", value}, "a name that no header may have"},
      {{"X-\xc3\xa4", value}, "a name that no header may have"},
      {{"Authorization", value + "\r\nX: y"}, "Authorization of http_options::headers has a line break"},
      {{"Authorization", value + std::string(1, '\0')}, "has a line break or another control character"},
      {{"Range", "bytes=0-1"}, "sets the header Range itself"},
      {{"HOST", "h"}, "sets the header HOST itself"},
  };
  for (const auto& [header, sentence] : cases) {
    const ps::error e = web_error_of([&] { (void)ps::http({"http://h/a"}, direct({.headers = {header}})); });
    INFO(e.what());
    CHECK(e.code() == ps::errc::argument);
    CHECK(says(e, sentence));
    CHECK_FALSE(has_secret(e.what()));
  }
  CHECK_NOTHROW(ps::http({"http://h/a"}, direct({.headers = {{"X-Any", "a\tb \xc3\xa4"}}})));
}
