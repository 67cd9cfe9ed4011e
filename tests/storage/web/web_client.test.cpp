// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/web/web_client.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;
namespace web = penstock::detail::web;
using namespace penstock_test;

TEST_CASE("storage/web/web_client: a small body goes and comes, with headers and a signature") {
  const deadline limit("PUT");
  web_log heads, bodies;
  web_server server(answering([&](const web_request& request) {
    heads.add(request.head);
    bodies.add(request.body);
    return web_answer("200 OK", "ETag: \"new\"\r\nx-amz-id: 7\r\n", "stored");
  }));
  web::client client(direct());
  struct signs {
    int count = 0;
    std::string seen;
  } signer;
  web::call put;
  put.method = web::verb::put;
  put.where = ps::parse_url(server.at("/bucket/key?partNumber=1"));
  put.headers = {{"x-amz-date", "today"}};
  put.body = std::string(5000, 'b');
  put.signer = &signer;
  put.sign = [](void* self, const web::call& what, std::string& lines) {
    auto& mine = *static_cast<signs*>(self);
    ++mine.count;
    mine.seen = lines;
    lines += "Authorization: signed " + what.where.path + "\r\n";
  };
  client.perform(put);
  CHECK(put.reply.status == 200);
  CHECK(put.reply.body == "stored");
  CHECK(put.reply.header("etag") == "\"new\"");
  CHECK(put.reply.header("X-Amz-Id") == "7");
  CHECK(put.reply.header("none").empty());
  CHECK(put.reply.length == 6u);
  REQUIRE(heads.all().size() == 1);
  CHECK(heads.all()[0].starts_with("PUT /bucket/key?partNumber=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
  CHECK(heads.all()[0].find(
            "\r\nContent-Length: 5000\r\nx-amz-date: today\r\nAuthorization: signed /bucket/key\r\n") !=
        std::string::npos);
  CHECK(bodies.all()[0] == put.body);
  CHECK(signer.count == 1);
  CHECK(signer.seen.find("x-amz-date: today\r\n") != std::string::npos);

  web::call empty;
  empty.method = web::verb::put;
  empty.where = put.where;
  client.perform(empty);
  CHECK(heads.last().find("\r\nContent-Length: 0\r\n") != std::string::npos);
  CHECK(server.connections() == 1);
}

TEST_CASE("storage/web/web_client: an error's body is bounded") {
  const deadline limit("bodies");
  web_server server(answering([&](const web_request& request) {
    const bool chunked = request.target().starts_with("/chunked");
    const std::string body =
        web_content(std::stoul(request.target().substr(request.target().rfind('/') + 1)));
    if (!chunked) return web_answer("400 Bad Request", "", body);
    std::array<char, 32> size{};
    std::snprintf(size.data(), size.size(), "%zx", body.size());
    return "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(size.data()) +
           "\r\n" + body + "\r\n0\r\n\r\n";
  }));
  web::client client(direct());
  for (const bool in_chunks : {false, true}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1000}, std::size_t{65'536}, std::size_t{65'537}}) {
      if (in_chunks && size == 0) continue;
      web::call get;
      get.where = ps::parse_url(server.at((in_chunks ? "/chunked/" : "/whole/") + std::to_string(size)));
      client.perform(get);
      INFO(size);
      CHECK(get.reply.status == 400);
      CHECK(get.reply.cut == (size > 65'536));
      if (size <= 65'536) CHECK((get.reply.body == web_content(size)));
    }
  }
}

TEST_CASE(
    "storage/web/web_client: redirects of other hosts get no credentials, and may be left to the caller") {
  const deadline limit("redirects with credentials");
  web_log heads;
  web_server other(answering([&](const web_request& request) {
    heads.add(request.head);
    return web_answer("200 OK", "", request.body);
  }));
  web_server server(answering([&](const web_request& request) {
    heads.add(request.head);
    return web_answer(request.target() == "/see" ? "303 See Other" : "307 Temporary Redirect",
                      "Location: " + other.at("/x?its=signature") + "\r\n", "elsewhere");
  }));
  web::client client(direct());
  int signatures = 0;
  const auto ask = [&](const char* path, bool follow) {
    web::call put;
    put.method = web::verb::put;
    put.where = ps::parse_url(server.at(path));
    put.headers = {{"Authorization", "Bearer secret"},
                   {"Content-Type", "text/plain"},
                   {"X-Amz-Security-Token", "secret"}};
    put.body = "body";
    put.follow_redirects = follow;
    put.signer = &signatures;
    // It is asked for each request, and knows which are for another host.
    put.sign = [](void* self, const web::call& what, std::string& lines) {
      ++*static_cast<int*>(self);
      if (what.been.empty()) lines += "X-Signature: secret\r\n";
    };
    heads.clear();
    client.perform(put);
    return put.reply;
  };
  CHECK(ask("/keep", true).body == "body");
  REQUIRE(heads.all().size() == 2);
  CHECK(heads.all()[0].find("secret") != std::string::npos);
  CHECK(heads.all()[1].starts_with("PUT /x?its=signature HTTP/1.1\r\n"));
  CHECK(heads.all()[1].find("secret") == std::string::npos);
  CHECK(heads.all()[1].find("Content-Type: text/plain") != std::string::npos);
  CHECK(signatures == 2);
  CHECK(ask("/see", true).status == 200);
  CHECK(heads.all()[1].starts_with("GET /x"));
  const web::answer left = ask("/keep", false);
  CHECK(left.status == 307);
  CHECK(left.header("Location") == other.at("/x?its=signature"));
  CHECK(left.body == "elsewhere");
}

TEST_CASE("storage/web/web_client: headers with line breaks are refused") {
  const deadline limit("bad headers");
  web_server server(answering([&](const web_request&) { return web_answer("200 OK", "", ""); }));
  web::client client(direct());
  for (const std::string& value :
       {std::string("a\nb"), std::string("secret\r\nX: y"), std::string("a\0b", 3)}) {
    for (int reused = 0; reused < 2; ++reused) {
      web::call get;
      get.where = ps::parse_url(server.at("/a"));
      if (reused == 1) client.perform(get);
      get.headers = {{"X-Token", value}};
      const ps::error e = web_error_of([&] { client.perform(get); });
      CHECK(e.code() == ps::errc::argument);
      CHECK_FALSE(says(e, "secret"));
    }
  }
}
