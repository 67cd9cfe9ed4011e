// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/iceberg_catalog.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/self_signed.hpp"
#include "support/web_reads.hpp"
#include "support/web_server.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace iceberg_catalog_test {

/// A catalogue: what it answers by path, and what it was asked.
class catalog {
 public:
  struct reply {
    int status = 200;
    std::string body;
  };

  /// `shown`: for TLS
  explicit catalog(SSL_CTX* shown = nullptr)
      : server_([this](web_peer& peer) { serve(peer); }, false, shown) {}

  /// The next answers for a path, one each; the last stays.
  void answer(const std::string& path, std::vector<reply> with) {
    const std::scoped_lock lock(mutex_);
    answers_[path] = std::move(with);
  }
  [[nodiscard]] std::string url() const { return server_.at("/api"); }
  [[nodiscard]] std::vector<std::string> asked() const { return log_.all(); }

 private:
  void serve(web_peer& peer) {
    for (web_request request; peer.next(request);) {
      const std::string path = request.target();
      log_.add(path + " " + request.header("Authorization") + request.body);
      reply with{404, R"({"error":{"message":"Table does not exist","code":404}})"};
      {
        const std::scoped_lock lock(mutex_);
        if (const auto found = answers_.find(path); found != answers_.end()) {
          with = found->second.front();
          if (found->second.size() > 1) found->second.erase(found->second.begin());
        }
      }
      if (!peer.send("HTTP/1.1 " + std::to_string(with.status) +
                     " Some\r\nContent-Type: application/json\r\nContent-Length: " +
                     std::to_string(with.body.size()) + "\r\n\r\n" + with.body))
        return;
    }
  }

  std::mutex mutex_;
  std::map<std::string, std::vector<reply>> answers_;
  web_log log_;
  web_server server_;
};

ps::iceberg_catalog_options asking() {
  ps::iceberg_catalog_options made;
  made.connection = direct();
  made.connection.retries = {.attempts = 3, .initial_backoff = std::chrono::milliseconds(1)};
  return made;
}
std::string error_of(const catalog& from, std::string_view table) {
  return web_error_of([&] { (void)ps::iceberg_location(from.url(), table, asking()); }).what();
}

}  // namespace iceberg_catalog_test

using namespace iceberg_catalog_test;

TEST_CASE("storage/iceberg_catalog: a table is asked for as the catalogue wants it") {
  const deadline limit("a catalogue");
  catalog there;
  const std::string place = "s3://bucket/shop/sales/metadata/00012-x.metadata.json";
  const std::string found = R"({"metadata-location":")" + place + R"(","metadata":{"format-version":2}})";
  there.answer("/api/v1/config", {{200, R"({"defaults":{},"overrides":{}})"}});
  there.answer("/api/v1/namespaces/shop/tables/sales", {{200, found}});
  CHECK(ps::iceberg_location(there.url(), "shop.sales", asking()) == place);
  CHECK(ps::iceberg_location(there.url() + "//", "shop.sales", asking()) == place);

  // Levels, names that must be encoded, a warehouse, a prefix, a token, and a busy catalogue.
  there.answer("/api/v1/config?warehouse=my%20house",
               {{503, ""}, {200, R"({"defaults":{"prefix":"a"},"overrides":{"prefix":"ws/b"}})"}});
  there.answer("/api/v1/ws/b/namespaces/shop%1Fnorth%2Fwest/tables/sales%20now", {{500, ""}, {200, found}});
  ps::iceberg_catalog_options options = asking();
  options.warehouse = "my house";
  options.connection.headers = {{"Authorization", "Bearer secret"}};
  CHECK(ps::iceberg_location(there.url(), "shop.north/west.sales now", options) == place);
  CHECK(there.asked().back() ==
        "/api/v1/ws/b/namespaces/shop%1Fnorth%2Fwest/tables/sales%20now Bearer secret");

  // Its tables may be asked for elsewhere.
  catalog elsewhere;
  elsewhere.answer("/api/v1/namespaces/shop/tables/sales", {{200, found}});
  there.answer("/api/v1/config", {{200, R"({"overrides":{"uri":")" + elsewhere.url() + R"("}})"}});
  CHECK(ps::iceberg_location(there.url(), "shop.sales", asking()) == place);
  CHECK(elsewhere.asked().size() == 1);
}

TEST_CASE("storage/iceberg_catalog: what is sent by TLS is not sent without it") {
  if (!have_openssl()) return;
  const deadline limit("a catalogue");
  const self_signed shown;
  catalog there(shown.get()), elsewhere;
  const std::string config = R"({"defaults":{"uri":")" + elsewhere.url() + R"("},"overrides":{"uri":")";
  there.answer("/api/v1/config",
               {{200, config + elsewhere.url() + "\"}}"}, {200, config + there.url() + "\"}}"}});
  there.answer("/api/v1/namespaces/shop/tables/sales", {{200, R"({"metadata-location":"s3://b/x"})"}});
  ps::iceberg_catalog_options options = asking();
  options.connection.verify = false;
  const auto location = [&] { return ps::iceberg_location(there.url(), "shop.sales", options); };
  CHECK_THAT(std::string(web_error_of([&] { (void)location(); }).what()),
             contains("from https to http") && contains(elsewhere.url()) && contains(there.url()));
  CHECK(location() == "s3://b/x");
  CHECK(elsewhere.asked().empty());
}

TEST_CASE("storage/iceberg_catalog: each fault is one error") {
  const deadline limit("a catalogue");
  catalog there;
  CHECK_THAT(error_of(there, "shop.sales"), contains("there is no catalogue of Iceberg at this URL"));
  there.answer("/api/v1/config", {{200, "{}"}});
  CHECK_THAT(error_of(there, "shop.sales"),
             contains("the catalogue does not have the table 'shop.sales': Table does not exist") &&
                 contains("/api/v1/namespaces/shop/tables/sales"));
  const std::string path = "/api/v1/namespaces/shop/tables/sales";
  there.answer(path, {{200, "[1]"}});
  CHECK_THAT(error_of(there, "shop.sales"), contains("the catalogue's answer is no object of JSON"));
  there.answer(path, {{200, R"({"metadata-location":7})"}});
  CHECK_THAT(error_of(there, "shop.sales"),
             contains("the catalogue does not say where the metadata of 'shop.sales' are"));
  there.answer(path, {{403, R"({"error":{"message":"not for you"}})"}});
  CHECK_THAT(error_of(there, "shop.sales"),
             contains("(403)") && contains("asking the catalogue: not for you"));
  const std::size_t before = there.asked().size();
  there.answer(path, {{503, R"({"error":{"message":"busy"}})"}});
  CHECK_THAT(error_of(there, "shop.sales"), contains("(503)") && contains("after 3 attempts"));
  CHECK(there.asked().size() == before + 4);
  for (const char* const name : {"sales", ".sales", "shop.", ""})
    CHECK_THAT(error_of(there, name), contains("a table of a catalogue is called namespace.table"));
  CHECK(there.asked().size() == before + 4);
  CHECK(web_error_of([] { (void)ps::iceberg_location("ftp://x", "a.b", asking()); }).code() ==
        ps::errc::argument);
}

TEST_CASE("storage/iceberg_catalog: a credential is exchanged for a token") {
  const deadline limit("a catalogue");
  catalog there;
  const std::string tokens = "/api/v1/oauth/tokens";
  there.answer(tokens, {{503, ""}, {200, R"({"access_token":"abc.def","token_type":"bearer"})"}});
  there.answer("/api/v1/config", {{200, "{}"}});
  there.answer("/api/v1/namespaces/shop/tables/sales",
               {{200, R"({"metadata-location":"s3a://bucket/s3a://x/v1.metadata.json"})"}});
  ps::iceberg_catalog_options options = asking();
  options.credential = "me:SeCrEt&:%";
  const auto location = [&] { return ps::iceberg_location(there.url(), "shop.sales", options); };
  CHECK(location() == "s3://bucket/s3a://x/v1.metadata.json");
  const std::string form =
      "grant_type=client_credentials&client_id=me&client_secret=SeCrEt%26%3A%25&scope=catalog";
  CHECK(there.asked() == std::vector<std::string>{tokens + " " + form, tokens + " " + form,
                                                  "/api/v1/config Bearer abc.def",
                                                  "/api/v1/namespaces/shop/tables/sales Bearer abc.def"});

  // Without an id and a scope, from a server of its own.
  catalog another;
  another.answer("/api/give", {{200, R"({"access_token":"other"})"}});
  options.credential = "SeCrEt";
  options.scope = "";
  options.token_server = another.url() + "/give";
  (void)location();
  CHECK(another.asked().back() == "/api/give grant_type=client_credentials&client_secret=SeCrEt");
  CHECK(there.asked().back() == "/api/v1/namespaces/shop/tables/sales Bearer other");

  const auto refused = [&] { return std::string(web_error_of([&] { (void)location(); }).what()); };
  const std::size_t before = there.asked().size();
  another.answer("/api/give",
                 {{401, R"({"error":"invalid_client","error_description":"the client is not known"})"}});
  CHECK_THAT(refused(), contains("(401)") && contains("iceberg_catalog_options::credential") &&
                            contains("asking for a token: invalid_client, the client is not known") &&
                            contains("/api/give") && !contains("SeCrEt"));
  for (const char* const repeated : {"SeCrEt", "abc.def", "A%2FB"}) {  // servers may echo what they were sent
    options.credential = std::string(repeated) == "A%2FB" ? "A/B" : repeated;
    another.answer("/api/give", {{400, R"({"error":"no ')" + std::string(repeated) + R"('"})"}});
    CHECK_THAT(refused(), contains("(400)") &&
                              contains("asking for a token: (left out, because it repeats") &&
                              !contains(repeated));
  }
  options.credential = "SeCrEt";
  for (const char* const no_token : {R"({"access_token":7})", R"({"access_token":"a\r\nb"})", "{}"}) {
    another.answer("/api/give", {{200, no_token}});
    CHECK_THAT(refused(), contains("the answer has no token") && contains("/api/give"));
  }
  another.answer("/api/give", {{307, ""}});  // the secret goes nowhere else
  CHECK_THAT(refused(), contains("(307)"));
  options.token_server = another.url() + "/nowhere";
  CHECK_THAT(refused(), contains("there are no tokens at this URL"));
  for (const char* const half : {":SeCrEt", "SeCrEt:", ":"}) {
    options.credential = half;
    CHECK_THAT(refused(), contains("nothing") && contains("\"id:secret\"") && !contains("SeCrEt"));
  }
  options.credential = "SeCrEt";
  options.connection.headers = {{"authorization", "Bearer SeCrEt"}};
  CHECK_THAT(refused(), contains("name one of them") && !contains("SeCrEt"));
  CHECK(there.asked().size() == before);

  // Nor does an error show a token, whether it was given or exchanged.
  there.answer("/api/v1/config", {{403, R"({"error":{"message":"Bearer tOkEn is not allowed"}})"}});
  another.answer("/api/give", {{200, R"({"access_token":"tOkEn"})"}});
  options.token_server = another.url() + "/give";
  options.connection.headers = {};
  CHECK_THAT(refused(), contains("(403)") && contains("(left out") && !contains("tOkEn"));
  options.credential = "";
  options.connection.headers = {{"Authorization", "Bearer tOkEn"}};
  CHECK_THAT(refused(), contains("(403)") && contains("(left out") && !contains("tOkEn"));
  options.connection.headers = {{"X-Api-Key", "tOkEn"}};
  CHECK_THAT(refused(), contains("(403)") && contains("(left out") && !contains("tOkEn"));
}
