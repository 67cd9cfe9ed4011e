// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/web/http_proxies.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <string>
#include <string_view>

namespace ps = penstock;
using ps::detail::http_proxies;

namespace {

/// The proxy for a URL, as its authority; "" for none.
std::string by(const http_proxies& all, std::string_view url) {
  const auto* const found = all.of(ps::parse_url(url));
  return found == nullptr ? "" : found->where.authority();
}

}  // namespace

TEST_CASE("storage/web/http_proxies: each scheme has its proxy") {
  const http_proxies both("http://p:3128", "q.example:81/", "");
  CHECK(by(both, "http://h/") == "p:3128");
  CHECK(by(both, "https://h/") == "q.example:81");
  CHECK(by(http_proxies("", "p", ""), "http://h/").empty());
  CHECK(by(http_proxies("", "p", ""), "https://h/") == "p:1080");
  CHECK(by(http_proxies("[::1]:8", "", ""), "http://h/") == "[::1]:8");
  CHECK(by({}, "http://h/").empty());
}

TEST_CASE("storage/web/http_proxies: user and password become a header") {
  const http_proxies one("http://Aladdin:open%20sesame@p:1", "me@q", "");
  CHECK(one.of(ps::parse_url("http://h/"))->authorization == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  CHECK(one.of(ps::parse_url("https://h/"))->authorization == "Basic bWU=");
  CHECK(http_proxies("p", "", "").of(ps::parse_url("http://h/"))->authorization.empty());
}

TEST_CASE("storage/web/http_proxies: what is reached directly") {
  const http_proxies one("p", "p", "localhost, .Example.com,10.0.0.7:81 [2001:db8::1],*.other.org");
  for (const char* url :
       {"http://localhost/", "http://x.localhost/", "https://example.com/", "http://a.b.example.com/",
        "http://10.0.0.7:81/", "http://[2001:db8::1]:9/", "http://x.other.org/"})
    CHECK(by(one, url).empty());
  for (const char* url :
       {"http://localhost2/", "http://badexample.com/", "http://10.0.0.7/", "http://[2001:db8::2]/"})
    CHECK(by(one, url) == "p:1080");
  CHECK(by(http_proxies("p", "p", "*"), "http://h/").empty());
  CHECK(by(http_proxies("p", "p", " ,, "), "http://h/") == "p:1080");
  CHECK(by(http_proxies("p", "p", "2001:db8::1"), "http://[2001:db8::1]/").empty());
}

TEST_CASE("storage/web/http_proxies: networks are reached directly") {
  const http_proxies one("p", "p", "10.0.0.0/8, 172.16.128.0/17,2001:db8::/33 [fd00::]/8,192.168.1.7/32");
  for (const char* url : {"http://10.1.2.3/", "https://10.255.0.1:9/", "http://172.16.200.1/",
                          "http://[2001:db8:7fff::1]/", "http://[fd12::1]/", "http://192.168.1.7/"}) {
    INFO(url);
    CHECK(by(one, url).empty());
  }
  for (const char* url : {"http://11.1.2.3/", "http://172.16.127.1/", "http://[2001:db8:8000::1]/",
                          "http://[fe00::1]/", "http://192.168.1.6/", "http://10.example.com/"}) {
    INFO(url);
    CHECK(by(one, url) == "p:1080");
  }
  CHECK(by(http_proxies("p", "p", "0.0.0.0/0"), "http://1.2.3.4/").empty());
  for (const char* wrong : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "/8", "::/129", "x/8"})
    CHECK(by(http_proxies("p", "p", wrong), "http://10.0.0.0/") == "p:1080");
}

TEST_CASE("storage/web/http_proxies: what is no proxy is refused, without its password") {
  for (const char* text : {"socks5://me:secret@p:1", "https://me:secret@p", "http://me:secret@",
                           "me:secret@p:x", "http://me:sec/ret@p q"}) {
    try {
      (void)http_proxies(text, "", "").of(ps::parse_url("http://h/"));
      FAIL("accepted " << text);
    } catch (const ps::error& e) {
      INFO(e.what());
      CHECK(e.code() == ps::errc::argument);
      CHECK(std::string_view(e.what()).find("sec") == std::string_view::npos);
      CHECK(std::string_view(e.what()).find("proxy") != std::string_view::npos);
      CHECK(std::string_view(e.what()).find("no_proxy") != std::string_view::npos);
    }
  }
}

TEST_CASE("storage/web/http_proxies: what is no proxy harms no host that is excepted, and none of others") {
  const http_proxies one("socks5://p:1", "HTTP://p:2", "inside.example");
  CHECK(by(one, "http://inside.example/").empty());
  CHECK(by(one, "https://h/") == "p:2");
  CHECK_THROWS_AS(by(one, "http://h/"), ps::error);
}

TEST_CASE("storage/web/http_proxies: the dot that ends an absolute name is no difference") {
  CHECK(by(http_proxies("p", "p", "example.com."), "http://a.example.com/").empty());
  CHECK(by(http_proxies("p", "p", "example.com"), "http://example.com./").empty());
  CHECK(by(http_proxies("p", "p", "."), "http://example.com./") == "p:1080");
}
