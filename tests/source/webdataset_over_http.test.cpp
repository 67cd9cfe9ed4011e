// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds a server of HTTP to the stores from which the tests of webdataset read; see support/stored.hpp.

#include <penstock/source/webdataset.hpp>
#include <penstock/storage/http.hpp>

#include "support/catch.hpp"
#include "support/nginx.hpp"
#include "support/raw_tar.hpp"
#include "support/stored.hpp"
#include "support/web_reads.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace webdataset_over_http_test {

using namespace std::chrono_literals;

/// A path as a part of a URL.
std::string encoded(const std::string& path) {
  std::string text;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    if (plain) {
      text += c;
    } else {
      constexpr std::string_view digits = "0123456789ABCDEF";
      const auto value = static_cast<unsigned char>(c);
      text += '%';
      text += digits[value / 16];
      text += digits[value % 16];
    }
  }
  return text;
}

/// One server for the program, which shows every file of this machine.
penstock_test::nginx_server& server_of_files() {
  static penstock_test::nginx_server server({.lines = "location /everything/ { alias /; }"});
  return server;
}
class own_nginx final : public penstock_test::store_server {
 public:
  void put(const std::vector<std::string>& paths) override {
    for (const std::string& path : paths)
      server_.put(std::filesystem::path(path).filename().string(), penstock_test::text_in(path));
  }
  penstock_test::stored open(const std::vector<std::string>& names, std::uint16_t port) const override {
    std::vector<std::string> urls;
    for (const std::string& name : names)
      urls.push_back("http://127.0.0.1:" + std::to_string(port) + "/" + name);
    return penstock_test::stored(
        penstock::http(std::move(urls), penstock_test::direct({.first_byte_time = 1s, .progress_time = 1s})));
  }
  std::uint16_t port() const override { return server_.port(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }

 private:
  penstock_test::nginx_server server_;
};
const bool added = penstock_test::add_store(
    {"http",
     [] {
       static const bool here = penstock_test::have_nginx();
       return here;
     },
     [](const std::vector<std::string>& paths) {
       std::vector<std::string> urls;
       for (const std::string& path : paths)
         urls.push_back(server_of_files().url("everything" + encoded(path)));
       return penstock_test::stored(penstock::http(std::move(urls), penstock_test::direct()));
     },
     []() -> std::unique_ptr<penstock_test::store_server> { return std::make_unique<own_nginx>(); }});

}  // namespace webdataset_over_http_test

TEST_CASE("source/webdataset_over_http: the tests of webdataset read from a server, too") {
  CHECK(webdataset_over_http_test::added);
  if (!penstock_test::have_nginx()) return;
  std::vector<std::string> kinds;
  const std::string shard = penstock_test::raw_tar().member("a.txt", "1").end().bytes;
  penstock_test::put_in_each_store({{"t.tar", shard}}, [&](const std::string& kind, const auto& where) {
    kinds.push_back(kind);
    CHECK(where.local() == (kind == "file"));
    CHECK(where.names()[0].starts_with("http://") == (kind == "http"));
    CHECK(penstock::webdataset(where).size() == 1);
  });
  std::sort(kinds.begin(), kinds.end());
  CHECK(std::count(kinds.begin(), kinds.end(), "http") == 1);
  CHECK(std::count(kinds.begin(), kinds.end(), "file") == 1);
}
