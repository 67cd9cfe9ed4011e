// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/url.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace ps = penstock;

namespace {

/// The sentence of the error for this text; "" if it is a URL.
std::string refused(std::string_view text) {
  try {
    (void)ps::parse_url(text);
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return e.what();
  }
  return {};
}
bool says(std::string_view line, std::string_view part) { return line.find(part) != std::string_view::npos; }

}  // namespace

TEST_CASE("storage/url: the parts of a URL") {
  const ps::url one = ps::parse_url("HTTPS://Data.Example.com:8443/a%20b/train-0000.tar?x=1&y=%2F?");
  CHECK(one.scheme == "https");
  CHECK(one.host == "data.example.com");
  CHECK(one.port == 8443);
  CHECK(one.port_number() == 8443);
  CHECK(one.path == "/a%20b/train-0000.tar");
  CHECK(one.query == "x=1&y=%2F?");
  CHECK(one.authority() == "data.example.com:8443");
  CHECK(one.target() == "/a%20b/train-0000.tar?x=1&y=%2F?");
  CHECK(one.text() == "https://data.example.com:8443/a%20b/train-0000.tar?x=1&y=%2F?");
  CHECK(one.without_secrets() == "https://data.example.com:8443/a%20b/train-0000.tar?...");
  CHECK(one == ps::parse_url(one.text()));
}

TEST_CASE("storage/url: what a URL need not say") {
  const ps::url bare = ps::parse_url("http://h");
  CHECK(bare.path == "/");
  CHECK(bare.target() == "/");
  CHECK(bare.port == 0);
  CHECK(bare.port_number() == 80);
  CHECK(ps::parse_url("https://h").port_number() == 443);
  CHECK(ps::parse_url("http://h:/x").text() == "http://h/x");
  CHECK(ps::parse_url("http://h:80/x").authority() == "h");
  CHECK(ps::parse_url("https://h:80/x").authority() == "h:80");
  CHECK(ps::parse_url("http://h?q").target() == "/?q");
  CHECK(ps::parse_url("http://h/a/../b//c").path == "/a/../b//c");
  CHECK(ps::parse_url("s3://Bucket.of_mine/k").host == "Bucket.of_mine");
  CHECK(ps::parse_url("http://1.2.3.4/").host == "1.2.3.4");
  CHECK(ps::parse_url("http://h/a@b:c").path == "/a@b:c");
}

TEST_CASE("storage/url: IPv6 in brackets") {
  const ps::url six = ps::parse_url("http://[2001:DB8::1]:81/x");
  CHECK(six.host == "2001:db8::1");
  CHECK(six.port == 81);
  CHECK(six.authority() == "[2001:db8::1]:81");
  CHECK(ps::parse_url("http://[::ffff:1.2.3.4]").authority() == "[::ffff:1.2.3.4]");
  for (const char* text :
       {"http://[::1/x", "http://[::1]x/", "http://[fe80::1%25eth0]/", "http://[1.2.3.4]/", "http://[]/"})
    CHECK(says(refused(text), text[8] == ':' && text[11] == ']' ? "between its host" : "no IPv6 address"));
  CHECK(says(refused(std::string_view("http://[::\0x]/", 14)), "no IPv6 address"));
  CHECK(says(refused("http://2001:db8::1/"), "in brackets"));
}

TEST_CASE("storage/url: what is refused, with what to write instead") {
  for (const auto& [text, part] : {
           std::pair<std::string_view, std::string_view>{"", "is not absolute"},
           {"/a/b.tar", "is not absolute"},
           {"host/a.tar", "is not absolute"},
           {"http:/host/a.tar", "is not absolute"},
           {"1http://host/", "is not absolute"},
           {"ftp://host/a.tar", "another scheme"},
           {"file:///a.tar", "another scheme"},
           {"http://", "names no host"},
           {"http:///a.tar", "names no host"},
           {"http://:80/", "names no host"},
           {"http://a..b/", "is no name"},
           {"http://.a/", "is no name"},
           {"http://a%20b/", "is no name"},
           {"http://b\xc3\xbc"
            "cher.example/",
            "xn--"},
           {"http://h:x/", "a port that is no number"},
           {"http://h:-1/", "a port that is no number"},
           {"http://h:0/", "between 1 and 65535"},
           {"http://h:65536/", "between 1 and 65535"},
           {"http://h:99999999999999999999/", "between 1 and 65535"},
           {"http://h/a#b", "%23"},
           {"http://h/a b", "%20"},
           {"http://h/a\nb", "percent-encode"},
           {"http://h/{0..9}", "percent-encode"},
           {"http://h/\xff", "percent-encode"},
           {"http://h/a%2", "%25"},
           {"http://h/?%zz", "%25"},
           {"http://h/?a\"", "in its query"},
       }) {
    INFO(text);
    CHECK(says(refused(text), part));
  }
  CHECK(says(refused("http://" + std::string(254, 'a') + "/"), "253 characters"));
  CHECK(says(refused("http://h/" + std::string(40'000, 'a')), "has more than 32768 characters"));
  CHECK(refused("http://h/" + std::string(40'000, 'a')).size() < 400);
}

TEST_CASE("storage/url: no message shows a password or a query") {
  for (const char* text :
       {"http://me:secret@host/a", "http://secret@host/a", "http://h/a b?sig=secret", "http://h/?sig=secret#",
        "ftp://me:secret@h/", "http://me:sec/ret@h:x/?secret", "me:secret@host/a", "http://h:x/?a=secret",
        "http://h/#?secret", "http://a@secret@h/"}) {
    const std::string line = refused(text);
    INFO(line);
    CHECK_FALSE(line.empty());
    CHECK_FALSE(says(line, "sec"));
    CHECK_FALSE(says(ps::without_secrets(text), "sec"));
  }
  CHECK(says(refused("http://me:secret@host/a"), "credentials"));
  CHECK(ps::without_secrets("https://h/a@1.tar?x") == "https://h/a@1.tar?...");
  CHECK(ps::without_secrets("https://[::1]/a@1.tar") == "https://[::1]/a@1.tar");
  CHECK(ps::without_secrets("https://u:p@h:80/a") == "https://h:80/a");
  CHECK(ps::without_secrets("any text") == "any text");
  CHECK(ps::without_secrets("").empty());
}

TEST_CASE("storage/url: where a redirect leads") {
  const ps::url base = ps::parse_url("http://a:81/b/c/d;p?q");
  const auto to = [&](std::string_view location) { return ps::resolve(base, location).text(); };
  CHECK(to("https://other/x?y") == "https://other/x?y");
  CHECK(to("http://other/a/../b") == "http://other/a/../b");
  CHECK(to("//other:82/x#f") == "http://other:82/x");
  CHECK(to("g") == "http://a:81/b/c/g");
  CHECK(to("./g") == "http://a:81/b/c/g");
  CHECK(to("g/") == "http://a:81/b/c/g/");
  CHECK(to("/g") == "http://a:81/g");
  CHECK(to("?y") == "http://a:81/b/c/d;p?y");
  CHECK(to("g?y/./x") == "http://a:81/b/c/g?y/./x");
  CHECK(to("#s") == "http://a:81/b/c/d;p?q");
  CHECK(to("") == "http://a:81/b/c/d;p?q");
  CHECK(to(".") == "http://a:81/b/c/");
  CHECK(to("..") == "http://a:81/b/");
  CHECK(to("../..") == "http://a:81/");
  CHECK(to("../../../g") == "http://a:81/g");
  CHECK(to("/./g/../h/.") == "http://a:81/h/");
  CHECK(to("g;x=1/../y") == "http://a:81/b/c/y");
  CHECK(ps::resolve(ps::parse_url("http://[::1]:8/x"), "y").text() == "http://[::1]:8/y");
  CHECK_THROWS_AS(to("ftp://a/"), ps::error);
  CHECK_THROWS_AS(to("/a b"), ps::error);
}

TEST_CASE("storage/url: what one connection can serve") {
  const ps::url one = ps::parse_url("http://h/a");
  CHECK(one.same_origin(ps::parse_url("http://H:80/b?c")));
  CHECK_FALSE(one.same_origin(ps::parse_url("https://h:80/a")));
  CHECK_FALSE(one.same_origin(ps::parse_url("http://h:81/a")));
  CHECK_FALSE(one.same_origin(ps::parse_url("http://h2/a")));
}
