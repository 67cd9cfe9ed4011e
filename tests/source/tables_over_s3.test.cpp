// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tables of Delta Lake and Iceberg in SeaweedFS, also by its REST catalogue, as deltalake and pyiceberg write
// and read them there; see support/s3_tables.py.

#include <penstock/codec/arrow_value.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/source/delta.hpp>
#include <penstock/source/iceberg.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/iceberg_catalog.hpp>
#include <penstock/storage/s3.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/s3_session.hpp"
#include "support/seaweed.hpp"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ps = penstock;

namespace tables_over_s3_test {

using stored_rows = std::multiset<std::string>;
using stored_table = ps::parquet_source<ps::s3>;

/// A server with the tables, and what the writers read from them.
struct stored_tables {
  penstock_test::seaweed_server server{penstock_test::seaweed_server::tables::iceberg};
  std::map<std::string, std::map<std::int64_t, stored_rows>> expected;  // by table and version

  stored_tables(const std::string& python, const std::string& support) {
    server.add_warehouse("house");
    const auto written = penstock_test::run_program(
        "env -u http_proxy -u HTTP_PROXY AWS_ACCESS_KEY_ID='" + server.key() + "' AWS_SECRET_ACCESS_KEY='" +
        server.secret() + "' " + python + " -B " + support + "/s3_tables.py " + server.endpoint() + " lake " +
        server.catalog() + " s3://house");
    INFO(written.output);
    REQUIRE(written.status == 0);
    std::istringstream lines(written.output);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream parts(line);
      std::string name, version, row;
      REQUIRE((std::getline(parts, name, '\t') && std::getline(parts, version, '\t') &&
               std::getline(parts, row)));
      expected[name][std::stoll(version)].insert(row);
    }
    CHECK(expected["delta"].size() == 4);
    CHECK(expected["catalogue"].size() == 3);
    CHECK(expected["listed"].size() == 3);
  }

  [[nodiscard]] ps::iceberg_catalog_options login() const {
    ps::iceberg_catalog_options made;
    made.warehouse = "s3://house";
    made.credential = server.key() + ":" + server.secret();
    made.connection.proxies = false;
    made.connection.retries.attempts = 1;
    return made;
  }
};

/// Whether the programs that write them are here; see `have_program`.
bool have_table_writers(const std::string& python) {
  static const bool here =
      penstock_test::have_seaweed() &&
      penstock_test::have_program("deltalake and pyiceberg",
                                  python + " -c 'import deltalake, pyiceberg.catalog.sql, pyiceberg_core'");
  return here;
}
/// Written by the first test that needs them; null if a program for that is not here.
const stored_tables* written_tables() {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  const char* const named = std::getenv("PENSTOCK_TEST_ARROW");
  const std::string python = named == nullptr || *named == '\0' ? "python3" : named;
  if (support == nullptr || !have_table_writers(python)) return nullptr;
  static const stored_tables made(python, support);
  return &made;
}

stored_rows stored_rows_of(const stored_table& from) {
  using ps::arrow_value, ps::field, std::optional, std::string;
  stored_rows made;
  for (auto&& row :
       (from | ps::shuffle(ps::seed(7)) |
        ps::decode<field<"id", arrow_value<std::int64_t>>, field<"name", arrow_value<optional<string>>>,
                   field<"region", arrow_value<string>>, field<"time", arrow_value<std::int64_t>>> |
        ps::workers(2))
           .epoch(0)) {
    const auto& name = ps::get<"name">(row);
    made.insert(std::to_string(ps::get<"id">(row)) + "|" + (name ? "=" + *name : "null") +
                "|=" + ps::get<"region">(row) + "|" + std::to_string(ps::get<"time">(row)));
  }
  return made;
}

template <class Call>
std::string refusal_of(Call&& call) {
  return penstock_test::s3_error_of(call).what();
}

TEST_CASE("source/tables_over_s3: each version that deltalake has written to a store") {
  const penstock_test::deadline limit("Delta Lake in a store");
  const stored_tables* const there = written_tables();
  if (there == nullptr) return;
  const ps::s3_options store = penstock_test::s3_at(there->server);
  const ps::s3 log(ps::s3::list("lake/my sales/north west/_delta_log/", store), store);
  std::set<std::uint64_t> marks;
  for (const auto& [version, expected] : there->expected.at("delta")) {
    const stored_table found = ps::delta(log, {.version = static_cast<std::uint64_t>(version)});
    INFO(found.describe());
    CHECK(stored_rows_of(found) == expected);
    marks.insert(found.fingerprint());
  }
  CHECK(marks.size() == 4);
  CHECK(marks.contains(ps::delta(log).fingerprint()));

  // A listing of the whole table has the log, too.
  const ps::s3 all(ps::s3::list("lake/my sales/", store), store);
  const stored_table newest = ps::delta(all);
  CHECK(newest.describe().starts_with("delta('s3://lake/my sales/north west', version 3)"));
  CHECK(newest.fingerprint() == ps::delta(log).fingerprint());
  const auto found = ps::dataset(all, ps::iceberg_format{}, ps::delta_format{});
  CHECK(std::get<0>(found).fingerprint() == newest.fingerprint());

  CHECK_THAT(refusal_of([&] { (void)ps::delta(ps::s3(ps::s3::list("lake/nothing/", store), store)); }),
             penstock_test::contains("this is no table of Delta Lake"));
  CHECK_THAT(
      refusal_of([&] { (void)ps::delta(log, {.version = 9}); }),
      penstock_test::contains("versions 0 to 3") && penstock_test::contains("s3://lake/my sales/north west"));
}

TEST_CASE("source/tables_over_s3: each snapshot of a table that a catalogue of Iceberg keeps") {
  const penstock_test::deadline limit("a catalogue of Iceberg");
  const stored_tables* const there = written_tables();
  if (there == nullptr) return;
  const ps::s3_options store = penstock_test::s3_at(there->server);
  const std::string place = ps::iceberg_location(there->server.catalog(), "shop.sales", there->login());
  CHECK(place.starts_with("s3://house/shop/sales/metadata/"));
  const ps::s3 metadata(place, store);
  std::set<std::uint64_t> marks;
  for (const auto& [snapshot, expected] : there->expected.at("catalogue")) {
    const stored_table found = ps::iceberg(metadata, {.snapshot = snapshot});
    INFO(found.describe());
    CHECK(stored_rows_of(found) == expected);
    marks.insert(found.fingerprint());
  }
  CHECK(marks.size() == 3);

  // The newest metadata file that a list has is the catalogue's.
  const ps::s3 listed(ps::s3::list("house/shop/sales/metadata/", store), store);
  CHECK(ps::iceberg(listed).fingerprint() == ps::iceberg(metadata).fingerprint());
  CHECK(marks.contains(ps::iceberg(metadata).fingerprint()));
  const auto found = ps::dataset(ps::s3(ps::s3::list("house/shop/sales/", store), store),
                                 ps::iceberg_format{}, ps::delta_format{});
  CHECK(std::get<0>(found).fingerprint() == ps::iceberg(metadata).fingerprint());

  const auto refused = [&](std::string_view name, const ps::iceberg_catalog_options& with) {
    return refusal_of([&] { (void)ps::iceberg_location(there->server.catalog(), name, with); });
  };
  ps::iceberg_catalog_options login = there->login();
  CHECK_THAT(refused("shop.nothing", login),
             penstock_test::contains("the catalogue does not have the table 'shop.nothing'"));
  login.credential = "key-of-seaweed:SeCrEt";
  CHECK_THAT(refused("shop.sales", login), penstock_test::contains("(401)") &&
                                               penstock_test::contains("asking for a token: invalid_client"));
  login.credential.clear();
  CHECK_THAT(refused("shop.sales", login), penstock_test::contains("asking the catalogue"));
}

TEST_CASE("source/tables_over_s3: each snapshot of a table of Iceberg whose files are named s3a://") {
  const penstock_test::deadline limit("Iceberg in a store");
  const stored_tables* const there = written_tables();
  if (there == nullptr) return;
  const ps::s3_options store = penstock_test::s3_at(there->server);
  const ps::s3 metadata(ps::s3::list("lake/ice house/50%25/shop/sales/metadata/", store), store);
  for (const auto& [snapshot, expected] : there->expected.at("listed")) {
    const stored_table found = ps::iceberg(metadata, {.snapshot = snapshot});
    INFO(found.describe());
    CHECK(stored_rows_of(found) == expected);
  }
  // Who may not read gets one error.
  ps::s3_options stranger = store;
  stranger.identity.credentials = ps::s3_credentials(there->server.key(), "SeCrEt");
  CHECK_THAT(
      refusal_of([&] { (void)ps::iceberg(ps::s3(metadata.names()[0], stranger)); }),
      penstock_test::contains("SignatureDoesNotMatch") && penstock_test::contains("s3://lake/ice house"));
}

TEST_CASE("source/tables_over_s3: the code of the documentation") {
  const penstock_test::deadline limit("tables in a store");
  const stored_tables* const there = written_tables();
  if (there == nullptr) return;
  const std::string endpoint = there->server.endpoint(), catalog = there->server.catalog();
  const std::string key = there->server.key(), secret = there->server.secret();
  ::setenv("no_proxy", "127.0.0.1", 1);  // the machine's own proxies are not for tests
  const ps::s3_options store{.place = {.endpoint = endpoint},
                             .identity = {.credentials = ps::s3_credentials(key, secret)}};
  const auto log = ps::s3::list("lake/my sales/north west/_delta_log/", store);
  const auto sales = ps::delta(ps::s3(log, store), {.version = 2});

  const auto found = ps::iceberg_location(catalog, "shop.sales",
                                          {.warehouse = "s3://house", .credential = key + ":" + secret});
  auto loader = ps::iceberg(ps::s3(found, store)) | ps::shuffle(ps::seed(1)) |
                ps::decode<ps::field<"id", ps::arrow_value<std::int64_t>>>;
  CHECK(sales.size() == 13);
  std::int64_t sum = 0;
  for (auto&& row : loader.epoch(0)) sum += ps::get<"id">(row);
  CHECK(sum == 14 * 15 / 2 - 3 - 12);
}

}  // namespace tables_over_s3_test
